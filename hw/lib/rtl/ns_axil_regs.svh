// Joins a generated register block (PeakRDL, ports `s_axil_*`) to an ns_axil_if, in the block's list of ports.
//
// The block decodes `Bits` bits of an address. What lies outside of them, up to bit `Limit`, goes to `Nowhere`, an
// address of the block at which no register is.
`ifndef NS_AXIL_REGS_SVH
`define NS_AXIL_REGS_SVH

`define NS_AXIL_REGS_ADDR(addr, Bits, Limit, Nowhere) \
    (addr[Limit-1:Bits] == '0) ? addr[Bits-1:0] : Bits'(Nowhere)

// With the read data channel's handshake as the block sees it.
`define NS_AXIL_REGS_READ_BY(bus, rready, rvalid, Bits, Limit, Nowhere) \
    .s_axil_awready(bus.awready), \
    .s_axil_awvalid(bus.awvalid), \
    .s_axil_awaddr (`NS_AXIL_REGS_ADDR(bus.awaddr, Bits, Limit, Nowhere)), \
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
    .s_axil_araddr (`NS_AXIL_REGS_ADDR(bus.araddr, Bits, Limit, Nowhere)), \
    .s_axil_arprot ('0), \
    .s_axil_rready (rready), \
    .s_axil_rvalid (rvalid), \
    .s_axil_rdata  (bus.rdata), \
    .s_axil_rresp  (bus.rresp)

`define NS_AXIL_REGS(bus, Bits, Limit, Nowhere) \
    `NS_AXIL_REGS_READ_BY(bus, bus.rready, bus.rvalid, Bits, Limit, Nowhere)

`endif
