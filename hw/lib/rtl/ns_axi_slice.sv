// SPDX-License-Identifier: Apache-2.0

// Register slice of an AXI4 bus: write addresses, write data and read addresses are registered, at
// full throughput.
//
// Responses pass combinationally.
module ns_axi_slice
  import ns_axi_pkg::*;
(
  input logic      clk_i,
  input logic      rst_ni,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Slave.
  ns_axi_if.master m_axi
);

  ns_skid #(
    .Width($bits(ax_t))
  ) u_aw (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi.aw_valid),
    .in_ready_o (s_axi.aw_ready),
    .in_data_i  (s_axi.aw),
    .out_valid_o(m_axi.aw_valid),
    .out_ready_i(m_axi.aw_ready),
    .out_data_o (m_axi.aw)
  );

  ns_skid #(
    .Width($bits(w_t))
  ) u_w (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi.w_valid),
    .in_ready_o (s_axi.w_ready),
    .in_data_i  (s_axi.w),
    .out_valid_o(m_axi.w_valid),
    .out_ready_i(m_axi.w_ready),
    .out_data_o (m_axi.w)
  );

  ns_skid #(
    .Width($bits(ax_t))
  ) u_ar (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi.ar_valid),
    .in_ready_o (s_axi.ar_ready),
    .in_data_i  (s_axi.ar),
    .out_valid_o(m_axi.ar_valid),
    .out_ready_i(m_axi.ar_ready),
    .out_data_o (m_axi.ar)
  );

  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;
  assign s_axi.r = m_axi.r;
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

endmodule
