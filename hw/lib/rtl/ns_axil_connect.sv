// SPDX-License-Identifier: Apache-2.0

// Connects two AXI4-Lite buses: wires only.
module ns_axil_connect (
  /// From the master.
  ns_axil_if.slave  s_axil,
  /// To the slave.
  ns_axil_if.master m_axil
);
  assign m_axil.awaddr = s_axil.awaddr;
  assign m_axil.awvalid = s_axil.awvalid;
  assign m_axil.wdata = s_axil.wdata;
  assign m_axil.wstrb = s_axil.wstrb;
  assign m_axil.wvalid = s_axil.wvalid;
  assign m_axil.bready = s_axil.bready;
  assign m_axil.araddr = s_axil.araddr;
  assign m_axil.arvalid = s_axil.arvalid;
  assign m_axil.rready = s_axil.rready;
  assign s_axil.awready = m_axil.awready;
  assign s_axil.wready = m_axil.wready;
  assign s_axil.bresp = m_axil.bresp;
  assign s_axil.bvalid = m_axil.bvalid;
  assign s_axil.arready = m_axil.arready;
  assign s_axil.rdata = m_axil.rdata;
  assign s_axil.rresp = m_axil.rresp;
  assign s_axil.rvalid = m_axil.rvalid;

endmodule
