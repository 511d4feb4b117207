// Test bench of ns_axil_demux: flat ports for cocotbext-axi around three slaves.
`define NS_TB_LITE(p, from, to) \
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

`define NS_TB_LITE_SLAVE(i, p) \
  assign p``_awaddr = awaddr; \
  assign p``_awvalid = awvalid[i]; \
  assign awready[i] = p``_awready; \
  assign p``_wdata = wdata; \
  assign p``_wstrb = wstrb; \
  assign p``_wvalid = wvalid[i]; \
  assign wready[i] = p``_wready; \
  assign bresp[i] = p``_bresp; \
  assign bvalid[i] = p``_bvalid; \
  assign p``_bready = bready[i]; \
  assign p``_araddr = araddr; \
  assign p``_arvalid = arvalid[i]; \
  assign arready[i] = p``_arready; \
  assign rdata[i] = p``_rdata; \
  assign rresp[i] = p``_rresp; \
  assign rvalid[i] = p``_rvalid; \
  assign p``_rready = rready[i];

module axil_demux_tb (
  input  logic clk_i,
  input  logic rst_ni,
  output logic busy_o,
  `NS_TB_LITE(s_axil, input, output),
  `NS_TB_LITE(m0_axil, output, input),
  `NS_TB_LITE(m1_axil, output, input),
  `NS_TB_LITE(m2_axil, output, input)
);

  localparam int unsigned N = 3;

  logic [23:0] awaddr, araddr;
  logic [31:0] wdata;
  logic [3:0] wstrb;
  logic [N-1:0] awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
  logic [N-1:0][1:0] bresp, rresp;
  logic [N-1:0][31:0] rdata;

  `NS_TB_LITE_SLAVE(0, m0_axil)
  `NS_TB_LITE_SLAVE(1, m1_axil)
  `NS_TB_LITE_SLAVE(2, m2_axil)

  ns_axil_demux #(
    .N   (N),
    .Base({24'h11_0000, 24'h10_0000, 24'h00_0000}),
    .Mask({24'h00_0FFF, 24'h00_FFFF, 24'h00_FFFF})
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_awaddr_i (s_axil_awaddr),
    .s_awvalid_i(s_axil_awvalid),
    .s_awready_o(s_axil_awready),
    .s_wdata_i  (s_axil_wdata),
    .s_wstrb_i  (s_axil_wstrb),
    .s_wvalid_i (s_axil_wvalid),
    .s_wready_o (s_axil_wready),
    .s_bresp_o  (s_axil_bresp),
    .s_bvalid_o (s_axil_bvalid),
    .s_bready_i (s_axil_bready),
    .s_araddr_i (s_axil_araddr),
    .s_arvalid_i(s_axil_arvalid),
    .s_arready_o(s_axil_arready),
    .s_rdata_o  (s_axil_rdata),
    .s_rresp_o  (s_axil_rresp),
    .s_rvalid_o (s_axil_rvalid),
    .s_rready_i (s_axil_rready),
    .m_awaddr_o (awaddr),
    .m_awvalid_o(awvalid),
    .m_awready_i(awready),
    .m_wdata_o  (wdata),
    .m_wstrb_o  (wstrb),
    .m_wvalid_o (wvalid),
    .m_wready_i (wready),
    .m_bresp_i  (bresp),
    .m_bvalid_i (bvalid),
    .m_bready_o (bready),
    .m_araddr_o (araddr),
    .m_arvalid_o(arvalid),
    .m_arready_i(arready),
    .m_rdata_i  (rdata),
    .m_rresp_i  (rresp),
    .m_rvalid_i (rvalid),
    .m_rready_o (rready),
    .busy_o
  );

endmodule
