/// Registers whose reads wait until what was written before shows, but not for ever: peers may tell without end.
module nearpm_read_gate (
  input logic             clk_i,
  input logic             rst_ni,
  /// What is read is as new as what was written.
  input logic             shows_i,
  ns_axil_if.slave        s_axil,
  ns_axil_if.master       m_axil
);

  logic reads;
  logic [4:0] waited_q;
  assign reads = shows_i || waited_q == '1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else if (!s_axil.arvalid || s_axil.arready) waited_q <= '0;
    else if (waited_q != '1) waited_q <= waited_q + 1'b1;
  end

  assign m_axil.araddr = s_axil.araddr;
  assign m_axil.arvalid = s_axil.arvalid && reads;
  assign s_axil.arready = m_axil.arready && reads;
  assign s_axil.rdata = m_axil.rdata;
  assign s_axil.rresp = m_axil.rresp;
  assign s_axil.rvalid = m_axil.rvalid;
  assign m_axil.rready = s_axil.rready;

  assign m_axil.awaddr = s_axil.awaddr;
  assign m_axil.awvalid = s_axil.awvalid;
  assign s_axil.awready = m_axil.awready;
  assign m_axil.wdata = s_axil.wdata;
  assign m_axil.wstrb = s_axil.wstrb;
  assign m_axil.wvalid = s_axil.wvalid;
  assign s_axil.wready = m_axil.wready;
  assign s_axil.bresp = m_axil.bresp;
  assign s_axil.bvalid = m_axil.bvalid;
  assign m_axil.bready = s_axil.bready;

endmodule
