// SPDX-License-Identifier: Apache-2.0

// Connects flat ports to a bus (ns_axi_if, ns_axil_if): `flat` is the prefix of the ports, `bus`
// the interface.
`ifndef NS_AXI_FLAT_SVH
`define NS_AXI_FLAT_SVH

// Flat ports with IDs of `ids` bits. A slave's are written with (input, output), a master's with
// (output, input).
`define NS_AXI_PORTS(p, ids, from, to) \
  from logic [ids-1:0] p``_awid, \
  from logic [63:0]  p``_awaddr, \
  from logic [7:0]   p``_awlen, \
  from logic [2:0]   p``_awsize, \
  from logic [1:0]   p``_awburst, \
  from logic         p``_awvalid, \
  to   logic         p``_awready, \
  from logic [511:0] p``_wdata, \
  from logic [63:0]  p``_wstrb, \
  from logic         p``_wlast, \
  from logic         p``_wvalid, \
  to   logic         p``_wready, \
  to   logic [ids-1:0] p``_bid, \
  to   logic [1:0]   p``_bresp, \
  to   logic         p``_bvalid, \
  from logic         p``_bready, \
  from logic [ids-1:0] p``_arid, \
  from logic [63:0]  p``_araddr, \
  from logic [7:0]   p``_arlen, \
  from logic [2:0]   p``_arsize, \
  from logic [1:0]   p``_arburst, \
  from logic         p``_arvalid, \
  to   logic         p``_arready, \
  to   logic [ids-1:0] p``_rid, \
  to   logic [511:0] p``_rdata, \
  to   logic [1:0]   p``_rresp, \
  to   logic         p``_rlast, \
  to   logic         p``_rvalid, \
  from logic         p``_rready

// The same for AXI4-Lite.
`define NS_AXIL_PORTS(p, from, to) \
  from logic [23:0] p``_awaddr, \
  from logic        p``_awvalid, \
  to   logic        p``_awready, \
  from logic [31:0] p``_wdata, \
  from logic [3:0]  p``_wstrb, \
  from logic        p``_wvalid, \
  to   logic        p``_wready, \
  to   logic [1:0]  p``_bresp, \
  to   logic        p``_bvalid, \
  from logic        p``_bready, \
  from logic [23:0] p``_araddr, \
  from logic        p``_arvalid, \
  to   logic        p``_arready, \
  to   logic [31:0] p``_rdata, \
  to   logic [1:0]  p``_rresp, \
  to   logic        p``_rvalid, \
  from logic        p``_rready

// Flat slave ports drive the bus.
`define NS_AXI_FROM_FLAT(flat, bus) \
  assign bus.aw.id = ns_axi_pkg::IdWidth'(flat``_awid); \
  assign bus.aw.addr = flat``_awaddr; \
  assign bus.aw.len = flat``_awlen; \
  assign bus.aw.size = flat``_awsize; \
  assign bus.aw.burst = flat``_awburst; \
  assign bus.aw_valid = flat``_awvalid; \
  assign flat``_awready = bus.aw_ready; \
  assign bus.w.data = flat``_wdata; \
  assign bus.w.strb = flat``_wstrb; \
  assign bus.w.last = flat``_wlast; \
  assign bus.w_valid = flat``_wvalid; \
  assign flat``_wready = bus.w_ready; \
  assign flat``_bid = $bits(flat``_bid)'(bus.b.id); \
  assign flat``_bresp = bus.b.resp; \
  assign flat``_bvalid = bus.b_valid; \
  assign bus.b_ready = flat``_bready; \
  assign bus.ar.id = ns_axi_pkg::IdWidth'(flat``_arid); \
  assign bus.ar.addr = flat``_araddr; \
  assign bus.ar.len = flat``_arlen; \
  assign bus.ar.size = flat``_arsize; \
  assign bus.ar.burst = flat``_arburst; \
  assign bus.ar_valid = flat``_arvalid; \
  assign flat``_arready = bus.ar_ready; \
  assign flat``_rid = $bits(flat``_rid)'(bus.r.id); \
  assign flat``_rdata = bus.r.data; \
  assign flat``_rresp = bus.r.resp; \
  assign flat``_rlast = bus.r.last; \
  assign flat``_rvalid = bus.r_valid; \
  assign bus.r_ready = flat``_rready;

// The bus drives flat master ports.
`define NS_AXI_TO_FLAT(flat, bus) \
  assign flat``_awid = $bits(flat``_awid)'(bus.aw.id); \
  assign flat``_awaddr = bus.aw.addr; \
  assign flat``_awlen = bus.aw.len; \
  assign flat``_awsize = bus.aw.size; \
  assign flat``_awburst = bus.aw.burst; \
  assign flat``_awvalid = bus.aw_valid; \
  assign bus.aw_ready = flat``_awready; \
  assign flat``_wdata = bus.w.data; \
  assign flat``_wstrb = bus.w.strb; \
  assign flat``_wlast = bus.w.last; \
  assign flat``_wvalid = bus.w_valid; \
  assign bus.w_ready = flat``_wready; \
  assign bus.b.id = ns_axi_pkg::IdWidth'(flat``_bid); \
  assign bus.b.resp = flat``_bresp; \
  assign bus.b_valid = flat``_bvalid; \
  assign flat``_bready = bus.b_ready; \
  assign flat``_arid = $bits(flat``_arid)'(bus.ar.id); \
  assign flat``_araddr = bus.ar.addr; \
  assign flat``_arlen = bus.ar.len; \
  assign flat``_arsize = bus.ar.size; \
  assign flat``_arburst = bus.ar.burst; \
  assign flat``_arvalid = bus.ar_valid; \
  assign bus.ar_ready = flat``_arready; \
  assign bus.r.id = ns_axi_pkg::IdWidth'(flat``_rid); \
  assign bus.r.data = flat``_rdata; \
  assign bus.r.resp = flat``_rresp; \
  assign bus.r.last = flat``_rlast; \
  assign bus.r_valid = flat``_rvalid; \
  assign flat``_rready = bus.r_ready;

// The bus drives flat master ports of several buses, whose fields are concatenated: those with
// index `i`.
`define NS_AXI_TO_FLAT_AT(flat, i, bus) \
  assign flat``_awid[(i)*ns_axi_pkg::IdWidth+:ns_axi_pkg::IdWidth] = bus.aw.id; \
  assign flat``_awaddr[(i)*ns_axi_pkg::AddrWidth+:ns_axi_pkg::AddrWidth] = bus.aw.addr; \
  assign flat``_awlen[(i)*8+:8] = bus.aw.len; \
  assign flat``_awsize[(i)*3+:3] = bus.aw.size; \
  assign flat``_awburst[(i)*2+:2] = bus.aw.burst; \
  assign flat``_awvalid[i] = bus.aw_valid; \
  assign bus.aw_ready = flat``_awready[i]; \
  assign flat``_wdata[(i)*ns_axi_pkg::DataWidth+:ns_axi_pkg::DataWidth] = bus.w.data; \
  assign flat``_wstrb[(i)*ns_axi_pkg::StrbWidth+:ns_axi_pkg::StrbWidth] = bus.w.strb; \
  assign flat``_wlast[i] = bus.w.last; \
  assign flat``_wvalid[i] = bus.w_valid; \
  assign bus.w_ready = flat``_wready[i]; \
  assign bus.b.id = flat``_bid[(i)*ns_axi_pkg::IdWidth+:ns_axi_pkg::IdWidth]; \
  assign bus.b.resp = flat``_bresp[(i)*2+:2]; \
  assign bus.b_valid = flat``_bvalid[i]; \
  assign flat``_bready[i] = bus.b_ready; \
  assign flat``_arid[(i)*ns_axi_pkg::IdWidth+:ns_axi_pkg::IdWidth] = bus.ar.id; \
  assign flat``_araddr[(i)*ns_axi_pkg::AddrWidth+:ns_axi_pkg::AddrWidth] = bus.ar.addr; \
  assign flat``_arlen[(i)*8+:8] = bus.ar.len; \
  assign flat``_arsize[(i)*3+:3] = bus.ar.size; \
  assign flat``_arburst[(i)*2+:2] = bus.ar.burst; \
  assign flat``_arvalid[i] = bus.ar_valid; \
  assign bus.ar_ready = flat``_arready[i]; \
  assign bus.r.id = flat``_rid[(i)*ns_axi_pkg::IdWidth+:ns_axi_pkg::IdWidth]; \
  assign bus.r.data = flat``_rdata[(i)*ns_axi_pkg::DataWidth+:ns_axi_pkg::DataWidth]; \
  assign bus.r.resp = flat``_rresp[(i)*2+:2]; \
  assign bus.r.last = flat``_rlast[i]; \
  assign bus.r_valid = flat``_rvalid[i]; \
  assign flat``_rready[i] = bus.r_ready;

// Flat AXI4-Lite slave ports drive the bus.
`define NS_AXIL_FROM_FLAT(flat, bus) \
  assign bus.awaddr = 24'(flat``_awaddr); \
  assign bus.awvalid = flat``_awvalid; \
  assign flat``_awready = bus.awready; \
  assign bus.wdata = flat``_wdata; \
  assign bus.wstrb = flat``_wstrb; \
  assign bus.wvalid = flat``_wvalid; \
  assign flat``_wready = bus.wready; \
  assign flat``_bresp = bus.bresp; \
  assign flat``_bvalid = bus.bvalid; \
  assign bus.bready = flat``_bready; \
  assign bus.araddr = 24'(flat``_araddr); \
  assign bus.arvalid = flat``_arvalid; \
  assign flat``_arready = bus.arready; \
  assign flat``_rdata = bus.rdata; \
  assign flat``_rresp = bus.rresp; \
  assign flat``_rvalid = bus.rvalid; \
  assign bus.rready = flat``_rready;

// The bus drives flat AXI4-Lite master ports.
`define NS_AXIL_TO_FLAT(flat, bus) \
  assign flat``_awaddr = $bits(flat``_awaddr)'(bus.awaddr); \
  assign flat``_awvalid = bus.awvalid; \
  assign bus.awready = flat``_awready; \
  assign flat``_wdata = bus.wdata; \
  assign flat``_wstrb = bus.wstrb; \
  assign flat``_wvalid = bus.wvalid; \
  assign bus.wready = flat``_wready; \
  assign bus.bresp = flat``_bresp; \
  assign bus.bvalid = flat``_bvalid; \
  assign flat``_bready = bus.bready; \
  assign flat``_araddr = $bits(flat``_araddr)'(bus.araddr); \
  assign flat``_arvalid = bus.arvalid; \
  assign bus.arready = flat``_arready; \
  assign bus.rdata = flat``_rdata; \
  assign bus.rresp = flat``_rresp; \
  assign bus.rvalid = flat``_rvalid; \
  assign flat``_rready = bus.rready;

`endif
