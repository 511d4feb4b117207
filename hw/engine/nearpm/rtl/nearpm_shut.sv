// In front of a hook: passes everything, or answers it with errors when what was kept could not be brought back, so that nobody waits for it.
//
// Assumes that it is shut before anything has come, and until a reset.
`include "ns_assert.svh"

module nearpm_shut
  import ns_axi_pkg::*;
(
  input logic      clk_i,
  input logic      rst_ni,
  /// From a register.
  input logic      shut_i,
  ns_axi_if.slave  s_axi,
  ns_axi_if.master m_axi
);

  ns_axi_if wrong ();

  ns_axi_error_slave #(
    .Resp(RespSlvErr)
  ) u_error (
    .clk_i,
    .rst_ni,
    .busy_o(),
    .s_axi (wrong)
  );

  assign wrong.aw = s_axi.aw;
  assign wrong.aw_valid = s_axi.aw_valid && shut_i;
  assign wrong.w = s_axi.w;
  assign wrong.w_valid = s_axi.w_valid && shut_i;
  assign wrong.b_ready = s_axi.b_ready;
  assign wrong.ar = s_axi.ar;
  assign wrong.ar_valid = s_axi.ar_valid && shut_i;
  assign wrong.r_ready = s_axi.r_ready;

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && !shut_i;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid && !shut_i;
  assign m_axi.b_ready = s_axi.b_ready;
  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid && !shut_i;
  assign m_axi.r_ready = s_axi.r_ready;

  assign s_axi.aw_ready = shut_i ? wrong.aw_ready : m_axi.aw_ready;
  assign s_axi.w_ready = shut_i ? wrong.w_ready : m_axi.w_ready;
  assign s_axi.b = shut_i ? wrong.b : m_axi.b;
  assign s_axi.b_valid = shut_i ? wrong.b_valid : m_axi.b_valid;
  assign s_axi.ar_ready = shut_i ? wrong.ar_ready : m_axi.ar_ready;
  assign s_axi.r = shut_i ? wrong.r : m_axi.r;
  assign s_axi.r_valid = shut_i ? wrong.r_valid : m_axi.r_valid;

  `NS_ASSERT(stays_shut, !$past(rst_ni) || !$past(shut_i) || shut_i)

endmodule
