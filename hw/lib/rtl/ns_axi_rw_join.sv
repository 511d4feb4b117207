// SPDX-License-Identifier: Apache-2.0

// Joins the read half of one bus and the write half of another into one bus: wires only.
module ns_axi_rw_join (
  /// From the master that reads; its write half is not connected.
  ns_axi_if.slave  s_read,
  /// From the master that writes; its read half is not connected.
  ns_axi_if.slave  s_write,
  /// To the slave.
  ns_axi_if.master m_axi
);

  assign m_axi.ar = s_read.ar;
  assign m_axi.ar_valid = s_read.ar_valid;
  assign s_read.ar_ready = m_axi.ar_ready;
  assign s_read.r = m_axi.r;
  assign s_read.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_read.r_ready;

  assign m_axi.aw = s_write.aw;
  assign m_axi.aw_valid = s_write.aw_valid;
  assign s_write.aw_ready = m_axi.aw_ready;
  assign m_axi.w = s_write.w;
  assign m_axi.w_valid = s_write.w_valid;
  assign s_write.w_ready = m_axi.w_ready;
  assign s_write.b = m_axi.b;
  assign s_write.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_write.b_ready;

endmodule
