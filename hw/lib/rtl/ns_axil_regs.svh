// SPDX-License-Identifier: Apache-2.0

// Connects a generated register block (PeakRDL, ports `s_axil_*`) to an ns_axil_if, in the block's
// list of ports.
//
// The block decodes `Bits` bits of an address, which cover its whole window.
`ifndef NS_AXIL_REGS_SVH
`define NS_AXIL_REGS_SVH

// With a separate handshake of the read data channel.
`define NS_AXIL_REGS_READ_BY(bus, rready, rvalid, Bits) \
    .s_axil_awready(bus.awready), \
    .s_axil_awvalid(bus.awvalid), \
    .s_axil_awaddr (bus.awaddr[Bits-1:0]), \
    .s_axil_awprot ('0), \
    .s_axil_wready (bus.wready), \
    .s_axil_wvalid (bus.wvalid), \
    .s_axil_wdata  (bus.wdata), \
    .s_axil_wstrb  (bus.wstrb), \
    .s_axil_bready (bus.bready), \
    .s_axil_bvalid (bus.bvalid), \
    .s_axil_bresp  (bus.bresp), \
    .s_axil_arready(bus.arready), \
    .s_axil_arvalid(bus.arvalid), \
    .s_axil_araddr (bus.araddr[Bits-1:0]), \
    .s_axil_arprot ('0), \
    .s_axil_rready (rready), \
    .s_axil_rvalid (rvalid), \
    .s_axil_rdata  (bus.rdata), \
    .s_axil_rresp  (bus.rresp)

`define NS_AXIL_REGS(bus, Bits) \
    `NS_AXIL_REGS_READ_BY(bus, bus.rready, bus.rvalid, Bits)

`endif
