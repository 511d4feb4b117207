// SPDX-License-Identifier: Apache-2.0

// Test bench of ns_axi_mux and ns_axi_xbar: flat ports for cocotbext-axi for up to four masters and
// four slaves, and AXI protocol checks on all outputs of the interconnect.
`include "ns_assert.svh"
`include "ns_axi_flat.svh"

module axi_tb
  import ns_axi_pkg::*;
#(
  /// 0: ns_axi_xbar, 1: ns_axi_mux (then NumSlaves is 1).
  parameter bit Mux = 0,
  /// Masters, 1 to 4; the other ports are unused.
  parameter int unsigned NumMasters = 4,
  /// Slaves, 1, 2 or 4.
  parameter int unsigned NumSlaves = 4,
  /// Interleaving.
  parameter int unsigned Granule = 4096,
  /// Size of the address space.
  parameter logic [AddrWidth-1:0] Bytes = 64'h4_0000,
  /// Bits of the masters' IDs.
  parameter int unsigned IdBits = 6,
  /// Low ID bits used for order.
  parameter int unsigned OrderBits = 4
) (
  input logic clk_i,
  input logic rst_ni,
  `NS_AXI_PORTS(s0_axi, IdBits, input, output),
  `NS_AXI_PORTS(s1_axi, IdBits, input, output),
  `NS_AXI_PORTS(s2_axi, IdBits, input, output),
  `NS_AXI_PORTS(s3_axi, IdBits, input, output),
  `NS_AXI_PORTS(m0_axi, ns_axi_pkg::IdWidth, output, input),
  `NS_AXI_PORTS(m1_axi, ns_axi_pkg::IdWidth, output, input),
  `NS_AXI_PORTS(m2_axi, ns_axi_pkg::IdWidth, output, input),
  `NS_AXI_PORTS(m3_axi, ns_axi_pkg::IdWidth, output, input)
);

  ns_axi_if s[4] ();
  ns_axi_if m[4] ();

  `NS_AXI_FROM_FLAT(s0_axi, s[0])
  `NS_AXI_FROM_FLAT(s1_axi, s[1])
  `NS_AXI_FROM_FLAT(s2_axi, s[2])
  `NS_AXI_FROM_FLAT(s3_axi, s[3])
  `NS_AXI_TO_FLAT(m0_axi, m[0])
  `NS_AXI_TO_FLAT(m1_axi, m[1])
  `NS_AXI_TO_FLAT(m2_axi, m[2])
  `NS_AXI_TO_FLAT(m3_axi, m[3])

  for (genvar i = NumMasters; i < 4; i++) begin : gen_no_master
    assign s[i].aw_ready = 1'b0;
    assign s[i].w_ready = 1'b0;
    assign s[i].b = '0;
    assign s[i].b_valid = 1'b0;
    assign s[i].ar_ready = 1'b0;
    assign s[i].r = '0;
    assign s[i].r_valid = 1'b0;
  end

  for (genvar i = NumSlaves; i < 4; i++) begin : gen_no_slave
    assign m[i].aw = '0;
    assign m[i].aw_valid = 1'b0;
    assign m[i].w = '0;
    assign m[i].w_valid = 1'b0;
    assign m[i].b_ready = 1'b0;
    assign m[i].ar = '0;
    assign m[i].ar_valid = 1'b0;
    assign m[i].r_ready = 1'b0;
  end

  if (Mux) begin : gen_mux
    ns_axi_mux #(
      .N     (NumMasters),
      .IdBits(IdBits)
    ) u_dut (
      .clk_i,
      .rst_ni,
      .s_axi(s[0+:NumMasters]),
      .m_axi(m[0])
    );
  end else begin : gen_xbar
    ns_axi_xbar #(
      .NumMasters(NumMasters),
      .NumSlaves (NumSlaves),
      .Granule   (Granule),
      .Bytes     (Bytes),
      .IdBits    (IdBits),
      .OrderBits (OrderBits)
    ) u_dut (
      .clk_i,
      .rst_ni,
      .s_axi(s[0+:NumMasters]),
      .m_axi(m[0+:NumSlaves])
    );
  end

  for (genvar i = 0; i < NumSlaves; i++) begin : gen_check_slave
    stable_check #($bits(ax_t)) u_aw (clk_i, rst_ni, m[i].aw_valid, m[i].aw_ready, m[i].aw);
    stable_check #($bits(w_t)) u_w (clk_i, rst_ni, m[i].w_valid, m[i].w_ready, m[i].w);
    stable_check #($bits(ax_t)) u_ar (clk_i, rst_ni, m[i].ar_valid, m[i].ar_ready, m[i].ar);
  end

  for (genvar i = 0; i < NumMasters; i++) begin : gen_check_master
    stable_check #($bits(b_t)) u_b (clk_i, rst_ni, s[i].b_valid, s[i].b_ready, s[i].b);
    stable_check #($bits(r_t)) u_r (clk_i, rst_ni, s[i].r_valid, s[i].r_ready, s[i].r);
    read_check #(
      .IdBits(IdBits),
      .Whole (NumSlaves == 1)
    ) u_reads (
      .clk_i,
      .rst_ni,
      .s_axi(s[i])
    );
  end

endmodule
