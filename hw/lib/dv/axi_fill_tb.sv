// SPDX-License-Identifier: Apache-2.0

// Test top of ns_axi_fill: its write channels as packed structs of ns_axi_pkg.
module axi_fill_tb
  import ns_axi_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  output logic                 busy_o,
  input  logic [AddrWidth-1:0] fill_addr_i,
  input  logic [15:0]          fill_blocks_i,
  input  logic                 fill_valid_i,
  output logic                 fill_ready_o,
  input  logic                 fill_stop_i,
  output logic                 fill_done_o,
  output logic                 fill_error_o,
  input  ax_t                  s_aw_i,
  input  logic                 s_aw_valid_i,
  output logic                 s_aw_ready_o,
  input  w_t                   s_w_i,
  input  logic                 s_w_valid_i,
  output logic                 s_w_ready_o,
  output b_t                   s_b_o,
  output logic                 s_b_valid_o,
  input  logic                 s_b_ready_i,
  output ax_t                  m_aw_o,
  output logic                 m_aw_valid_o,
  input  logic                 m_aw_ready_i,
  output w_t                   m_w_o,
  output logic                 m_w_valid_o,
  input  logic                 m_w_ready_i,
  input  b_t                   m_b_i,
  input  logic                 m_b_valid_i,
  output logic                 m_b_ready_o
);

  ns_axi_if s_axi ();
  ns_axi_if m_axi ();

  assign s_axi.aw = s_aw_i;
  assign s_axi.aw_valid = s_aw_valid_i;
  assign s_aw_ready_o = s_axi.aw_ready;
  assign s_axi.w = s_w_i;
  assign s_axi.w_valid = s_w_valid_i;
  assign s_w_ready_o = s_axi.w_ready;
  assign s_b_o = s_axi.b;
  assign s_b_valid_o = s_axi.b_valid;
  assign s_axi.b_ready = s_b_ready_i;
  assign s_axi.ar = '0;
  assign s_axi.ar_valid = 1'b0;
  assign s_axi.r_ready = 1'b1;

  assign m_aw_o = m_axi.aw;
  assign m_aw_valid_o = m_axi.aw_valid;
  assign m_axi.aw_ready = m_aw_ready_i;
  assign m_w_o = m_axi.w;
  assign m_w_valid_o = m_axi.w_valid;
  assign m_axi.w_ready = m_w_ready_i;
  assign m_axi.b = m_b_i;
  assign m_axi.b_valid = m_b_valid_i;
  assign m_b_ready_o = m_axi.b_ready;
  assign m_axi.ar_ready = 1'b0;
  assign m_axi.r = '0;
  assign m_axi.r_valid = 1'b0;

  ns_axi_fill u_dut (
    .clk_i,
    .rst_ni,
    .busy_o,
    .fill_addr_i,
    .fill_blocks_i,
    .fill_valid_i,
    .fill_ready_o,
    .fill_stop_i,
    .fill_done_o,
    .fill_error_o,
    .s_axi,
    .m_axi
  );

endmodule
