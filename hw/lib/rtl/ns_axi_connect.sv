// SPDX-License-Identifier: Apache-2.0

// Connects two AXI4 buses: wires only, for instance arrays whose elements need another order.
module ns_axi_connect (
  /// From the master.
  ns_axi_if.slave  s_axi,
  /// To the slave.
  ns_axi_if.master m_axi
);

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid;
  assign s_axi.aw_ready = m_axi.aw_ready;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid;
  assign s_axi.w_ready = m_axi.w_ready;
  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;
  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid;
  assign s_axi.ar_ready = m_axi.ar_ready;
  assign s_axi.r = m_axi.r;
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

endmodule
