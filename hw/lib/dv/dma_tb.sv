// SPDX-License-Identifier: Apache-2.0

// Test top of ns_dma: its memory port flat, commands as plain vectors.
`include "ns_axi_flat.svh"

module dma_tb
  import ns_dma_pkg::*;
#(
  parameter int unsigned BurstBytes = 1024
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  output logic        busy_o,
  input  logic [63:0] src_i,
  input  logic [63:0] dst_i,
  input  logic [31:0] bytes_i,
  input  logic        cmd_valid_i,
  output logic        cmd_ready_o,
  output logic [1:0]  done_o,
  output logic        done_valid_o,
  input  logic        done_ready_i,
  `NS_AXI_PORTS(m_axi, 4, output, input)
);

  ns_axi_if m_axi ();

  `NS_AXI_TO_FLAT(m_axi, m_axi)

  ns_dma #(
    .BurstBytes(BurstBytes)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o,
    .cmd_i('{bytes: bytes_i, dst: dst_i, src: src_i}),
    .cmd_valid_i,
    .cmd_ready_o,
    .done_o,
    .done_valid_o,
    .done_ready_i,
    .m_axi
  );

  stable_check #(64 + 4 + 8) u_aw (clk_i, rst_ni, m_axi_awvalid, m_axi_awready, {m_axi_awaddr, m_axi_awid, m_axi_awlen});
  stable_check #(577) u_w (clk_i, rst_ni, m_axi_wvalid, m_axi_wready, {m_axi_wdata, m_axi_wstrb, m_axi_wlast});
  stable_check #(64 + 4 + 8) u_ar (clk_i, rst_ni, m_axi_arvalid, m_axi_arready, {m_axi_araddr, m_axi_arid, m_axi_arlen});

endmodule
