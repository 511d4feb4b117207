`include "ns_assert.svh"

/// Registers whose accesses wait for what is written there to have its effect: reads until it shows, but not for ever, as peers may tell without
/// end; and what a peer tells until what one told before is taken.
module nearpm_register_gate
  import nearpm_pkg::*;
(
  input logic             clk_i,
  input logic             rst_ni,
  /// What is read is as new as what was written.
  input logic             shows_i,
  /// Something that a peer has told is not taken yet. From registers, from the cycle on in which the response to its write comes.
  input logic             told_i,
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

  // An upper half tells. Writes whose responses are outstanding, and how many of these responses come until that of the last one that told.
  logic tells, writes, aw_fire, b_fire;
  logic [1:0] open_q, behind_q;
  assign tells = s_axil.awaddr[11:5] == PeersDone[11:5] && s_axil.awaddr[2];
  assign writes = !tells || (behind_q == '0 && !told_i);
  assign aw_fire = m_axil.awvalid && m_axil.awready;
  assign b_fire = m_axil.bvalid && m_axil.bready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q <= '0;
      behind_q <= '0;
    end else begin
      if (aw_fire != b_fire) open_q <= aw_fire ? open_q + 1'b1 : open_q - 1'b1;
      if (aw_fire && tells) behind_q <= open_q + 1'b1 - 2'(b_fire);
      else if (b_fire && behind_q != '0) behind_q <= behind_q - 1'b1;
    end
  end

  assign m_axil.awaddr = s_axil.awaddr;
  assign m_axil.awvalid = s_axil.awvalid && writes;
  assign s_axil.awready = m_axil.awready && writes;
  assign m_axil.wdata = s_axil.wdata;
  assign m_axil.wstrb = s_axil.wstrb;
  assign m_axil.wvalid = s_axil.wvalid;
  assign s_axil.wready = m_axil.wready;
  assign s_axil.bresp = m_axil.bresp;
  assign s_axil.bvalid = m_axil.bvalid;
  assign m_axil.bready = s_axil.bready;

  `NS_ASSERT(few_writes, open_q != '1 || !aw_fire || b_fire)

endmodule
