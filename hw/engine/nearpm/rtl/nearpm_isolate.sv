// SPDX-License-Identifier: Apache-2.0

// Isolates a conflict filter when the saved state could not be restored. Normally all accesses
// pass; isolated, they end with SLVERR, so that none waits.
//
// Assumes that `isolate_i` rises before the first access and stays until a reset.
`include "ns_assert.svh"

module nearpm_isolate
  import ns_axi_pkg::*;
(
  input logic      clk_i,
  input logic      rst_ni,
  /// From a register.
  input logic      isolate_i,
  ns_axi_if.slave  s_axi,
  ns_axi_if.master m_axi
);

  ns_axi_if error_bus ();

  ns_axi_error_slave #(
    .Resp(RespSlvErr)
  ) u_error (
    .clk_i,
    .rst_ni,
    .busy_o(),
    .s_axi (error_bus)
  );

  assign error_bus.aw = s_axi.aw;
  assign error_bus.aw_valid = s_axi.aw_valid && isolate_i;
  assign error_bus.w = s_axi.w;
  assign error_bus.w_valid = s_axi.w_valid && isolate_i;
  assign error_bus.b_ready = s_axi.b_ready;
  assign error_bus.ar = s_axi.ar;
  assign error_bus.ar_valid = s_axi.ar_valid && isolate_i;
  assign error_bus.r_ready = s_axi.r_ready;

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && !isolate_i;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid && !isolate_i;
  assign m_axi.b_ready = s_axi.b_ready;
  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid && !isolate_i;
  assign m_axi.r_ready = s_axi.r_ready;

  assign s_axi.aw_ready = isolate_i ? error_bus.aw_ready : m_axi.aw_ready;
  assign s_axi.w_ready = isolate_i ? error_bus.w_ready : m_axi.w_ready;
  assign s_axi.b = isolate_i ? error_bus.b : m_axi.b;
  assign s_axi.b_valid = isolate_i ? error_bus.b_valid : m_axi.b_valid;
  assign s_axi.ar_ready = isolate_i ? error_bus.ar_ready : m_axi.ar_ready;
  assign s_axi.r = isolate_i ? error_bus.r : m_axi.r;
  assign s_axi.r_valid = isolate_i ? error_bus.r_valid : m_axi.r_valid;

  `NS_ASSERT(stays_isolated, !$past(rst_ni) || !$past(isolate_i) || isolate_i)

endmodule
