// SPDX-License-Identifier: Apache-2.0

// Ties off a bus that has no master.
module ns_axi_tie_off (
  /// Slave.
  ns_axi_if.master m_axi
);

  assign m_axi.aw = '0;
  assign m_axi.aw_valid = 1'b0;
  assign m_axi.w = '0;
  assign m_axi.w_valid = 1'b0;
  assign m_axi.b_ready = 1'b1;
  assign m_axi.ar = '0;
  assign m_axi.ar_valid = 1'b0;
  assign m_axi.r_ready = 1'b1;

endmodule
