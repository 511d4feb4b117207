// SPDX-License-Identifier: Apache-2.0

// Holds new addresses while it is closed; transactions in flight continue.
//
// A closing gate may withdraw an address from the slave. So a register slice or a multiplexer must
// follow that accepts addresses only together with `ready`.
module ns_axi_gate (
  /// Write addresses pass.
  input logic      aw_open_i,
  /// Read addresses pass.
  input logic      ar_open_i,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Slave.
  ns_axi_if.master m_axi
);

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && aw_open_i;
  assign s_axi.aw_ready = m_axi.aw_ready && aw_open_i;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid;
  assign s_axi.w_ready = m_axi.w_ready;
  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;
  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid && ar_open_i;
  assign s_axi.ar_ready = m_axi.ar_ready && ar_open_i;
  assign s_axi.r = m_axi.r;
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

endmodule
