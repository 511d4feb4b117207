// SPDX-License-Identifier: Apache-2.0

// Test bench of interconnects for many masters: eight on flat ports, two memories, three
// interconnects between them. An ns_axi_id_remap precedes each memory, so that the memory sees IDs
// of `MemBits` bits. AXI protocol checks on all outputs of the interconnect.
`include "ns_assert.svh"
`include "ns_axi_flat.svh"

module fabric_tb
  import ns_axi_pkg::*;
#(
  /// 0: one ns_axi_mux; 1: two stages of multiplexers; 2: an ns_axi_xbar of four by two after
  /// multiplexers of two.
  parameter int unsigned Kind = 0,
  /// Bits of the masters' IDs.
  parameter int unsigned IdBits = 3,
  /// Bits of the memories' IDs.
  parameter int unsigned MemBits = 2
) (
  input logic clk_i,
  input logic rst_ni,
  `NS_AXI_PORTS(s0_axi, IdBits, input, output),
  `NS_AXI_PORTS(s1_axi, IdBits, input, output),
  `NS_AXI_PORTS(s2_axi, IdBits, input, output),
  `NS_AXI_PORTS(s3_axi, IdBits, input, output),
  `NS_AXI_PORTS(s4_axi, IdBits, input, output),
  `NS_AXI_PORTS(s5_axi, IdBits, input, output),
  `NS_AXI_PORTS(s6_axi, IdBits, input, output),
  `NS_AXI_PORTS(s7_axi, IdBits, input, output),
  `NS_AXI_PORTS(m0_axi, ns_axi_pkg::IdWidth, output, input),
  `NS_AXI_PORTS(m1_axi, ns_axi_pkg::IdWidth, output, input)
);

  ns_axi_if s[8] ();
  ns_axi_if wide[2] ();
  ns_axi_if m[2] ();

  `NS_AXI_FROM_FLAT(s0_axi, s[0])
  `NS_AXI_FROM_FLAT(s1_axi, s[1])
  `NS_AXI_FROM_FLAT(s2_axi, s[2])
  `NS_AXI_FROM_FLAT(s3_axi, s[3])
  `NS_AXI_FROM_FLAT(s4_axi, s[4])
  `NS_AXI_FROM_FLAT(s5_axi, s[5])
  `NS_AXI_FROM_FLAT(s6_axi, s[6])
  `NS_AXI_FROM_FLAT(s7_axi, s[7])
  `NS_AXI_TO_FLAT(m0_axi, m[0])
  `NS_AXI_TO_FLAT(m1_axi, m[1])

  if (Kind == 0) begin : gen_mux
    ns_axi_mux #(
      .N     (8),
      .IdBits(IdBits)
    ) u_mux (
      .clk_i,
      .rst_ni,
      .s_axi(s),
      .m_axi(wide[0])
    );
  end else if (Kind == 1) begin : gen_cascade
    ns_axi_if upper[2] ();
    for (genvar i = 0; i < 2; i++) begin : gen_lower
      ns_axi_mux #(
        .N     (4),
        .IdBits(IdBits)
      ) u_mux (
        .clk_i,
        .rst_ni,
        .s_axi(s[4*i+:4]),
        .m_axi(upper[i])
      );
    end
    ns_axi_mux #(
      .N     (2),
      .IdBits(IdBits + 2)
    ) u_mux (
      .clk_i,
      .rst_ni,
      .s_axi(upper),
      .m_axi(wide[0])
    );
  end else begin : gen_xbar
    ns_axi_if upper[4] ();
    for (genvar i = 0; i < 4; i++) begin : gen_lower
      ns_axi_mux #(
        .N     (2),
        .IdBits(IdBits)
      ) u_mux (
        .clk_i,
        .rst_ni,
        .s_axi(s[2*i+:2]),
        .m_axi(upper[i])
      );
    end
    ns_axi_xbar #(
      .NumMasters(4),
      .NumSlaves (2),
      .IdBits    (IdBits + 1),
      .OrderBits (2)
    ) u_xbar (
      .clk_i,
      .rst_ni,
      .s_axi(upper),
      .m_axi(wide)
    );
  end

  localparam int unsigned Memories = (Kind == 2) ? 2 : 1;

  for (genvar i = 0; i < Memories; i++) begin : gen_memory
    ns_axi_id_remap #(
      .InBits        (IdBits + 3),
      .OutBits       (MemBits),
      .MaxOutstanding(4)
    ) u_remap (
      .clk_i,
      .rst_ni,
      .s_axi(wide[i]),
      .m_axi(m[i])
    );
    stable_check #($bits(ax_t)) u_aw (clk_i, rst_ni, m[i].aw_valid, m[i].aw_ready, m[i].aw);
    stable_check #($bits(w_t)) u_w (clk_i, rst_ni, m[i].w_valid, m[i].w_ready, m[i].w);
    stable_check #($bits(ax_t)) u_ar (clk_i, rst_ni, m[i].ar_valid, m[i].ar_ready, m[i].ar);
  end

  for (genvar i = Memories; i < 2; i++) begin : gen_no_memory
    assign m[i].aw = '0;
    assign m[i].aw_valid = 1'b0;
    assign m[i].w = '0;
    assign m[i].w_valid = 1'b0;
    assign m[i].b_ready = 1'b0;
    assign m[i].ar = '0;
    assign m[i].ar_valid = 1'b0;
    assign m[i].r_ready = 1'b0;
  end

  for (genvar i = 0; i < 8; i++) begin : gen_check_master
    stable_check #($bits(b_t)) u_b (clk_i, rst_ni, s[i].b_valid, s[i].b_ready, s[i].b);
    stable_check #($bits(r_t)) u_r (clk_i, rst_ni, s[i].r_valid, s[i].r_ready, s[i].r);
  end

endmodule
