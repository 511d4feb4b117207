// SPDX-License-Identifier: Apache-2.0

// Replaces a slave that does not respond: passes a bus on, or answers every transaction with
// SLVERR.
//
// The switch happens while nothing is in flight: to error responses when `lost_i` rises, which
// requires that nothing is in flight. It switches back once `lost_i` is 0 and the last error
// response has left.
module ns_axi_fallback
  import ns_axi_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,
  /// The slave does not respond.
  input  logic     lost_i,
  /// Error responses are given instead. From a register.
  output logic     lost_o,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Slave.
  ns_axi_if.master m_axi
);

  ns_axi_if err ();
  logic err_busy, lost_q;

  assign lost_o = lost_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) lost_q <= 1'b0;
    else lost_q <= lost_i || (lost_q && err_busy);
  end

  ns_axi_error_slave #(
    .Resp(RespSlvErr)
  ) u_error (
    .clk_i,
    .rst_ni,
    .busy_o(err_busy),
    .s_axi (err)
  );

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && !lost_q;
  assign err.aw = s_axi.aw;
  assign err.aw_valid = s_axi.aw_valid && lost_q && lost_i;
  assign s_axi.aw_ready = lost_q ? err.aw_ready && lost_i : m_axi.aw_ready;

  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid && !lost_q;
  assign err.w = s_axi.w;
  assign err.w_valid = s_axi.w_valid && lost_q;
  assign s_axi.w_ready = lost_q ? err.w_ready : m_axi.w_ready;

  assign s_axi.b = lost_q ? err.b : m_axi.b;
  assign s_axi.b_valid = lost_q ? err.b_valid : m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;
  assign err.b_ready = s_axi.b_ready;

  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid && !lost_q;
  assign err.ar = s_axi.ar;
  assign err.ar_valid = s_axi.ar_valid && lost_q && lost_i;
  assign s_axi.ar_ready = lost_q ? err.ar_ready && lost_i : m_axi.ar_ready;

  assign s_axi.r = lost_q ? err.r : m_axi.r;
  assign s_axi.r_valid = lost_q ? err.r_valid : m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;
  assign err.r_ready = s_axi.r_ready;

endmodule
