// SPDX-License-Identifier: Apache-2.0

// engine_axil with a host that sends any addresses at any time, as far ahead as the slave accepts.
// The host only keeps what it has offered. The contents of the words change at any time.
//
// Shown: the n-th write has the word of the n-th write address, and the n-th write data and mask.
// The n-th read has the word of the n-th read address. Each access is performed once. Each write
// has one B and each read one R, in the order of the accesses. An R has the contents of its word in
// the cycle of the read. At most two performed accesses are unanswered. A stalled response is
// stable. An address or data is accepted unless an earlier one is held. A complete access waits at
// most two cycles in which the host accepts responses.
`include "ns_assert.svh"

module engine_axil_proof #(
  /// Address bits that are decoded.
  parameter int unsigned AddrBits = 12
) (
  input logic        clk_i,
  input logic        rst_ni,
  // The host.
  input logic        awvalid_i,
  input logic [23:0] awaddr_i,
  input logic        wvalid_i,
  input logic [31:0] wdata_i,
  input logic [3:0]  wstrb_i,
  input logic        bready_i,
  input logic        arvalid_i,
  input logic [23:0] araddr_i,
  input logic        rready_i,
  // Contents of the word that is read.
  input logic [31:0] rdata_i,
  // Follow the next address, data or access.
  input logic        pick_aw_i,
  input logic        pick_w_i,
  input logic        pick_ar_i,
  input logic        pick_access_i
);

  localparam int unsigned WordBits = AddrBits - 2;
  localparam int unsigned Bound = 3;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  ns_axil_if bus ();
  assign bus.awvalid = awvalid_i;
  assign bus.awaddr = awaddr_i;
  assign bus.wvalid = wvalid_i;
  assign bus.wdata = wdata_i;
  assign bus.wstrb = wstrb_i;
  assign bus.bready = bready_i;
  assign bus.arvalid = arvalid_i;
  assign bus.araddr = araddr_i;
  assign bus.rready = rready_i;

  logic busy, write, read;
  logic [WordBits-1:0] word;
  logic [31:0] wdata, wmask, mask;

  engine_axil #(
    .AddrBits(AddrBits)
  ) u_axil (
    .clk_i,
    .rst_ni,
    .busy_o (busy),
    .s_axil (bus),
    .write_o(write),
    .word_o (word),
    .wdata_o(wdata),
    .wmask_o(wmask),
    .rdata_i
  );
  assign read = u_axil.read;
  assign mask = {{8{wstrb_i[3]}}, {8{wstrb_i[2]}}, {8{wstrb_i[1]}}, {8{wstrb_i[0]}}};

  // ---------------------------------------------------------------- stable channels

  logic aw_stalled_q, w_stalled_q, ar_stalled_q, b_stalled_q, r_stalled_q;
  logic [23:0] awaddr_q, araddr_q;
  logic [35:0] w_q;
  logic [31:0] rdata_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {aw_stalled_q, w_stalled_q, ar_stalled_q, b_stalled_q, r_stalled_q} <= '0;
    end else begin
      aw_stalled_q <= bus.awvalid && !bus.awready;
      w_stalled_q  <= bus.wvalid && !bus.wready;
      ar_stalled_q <= bus.arvalid && !bus.arready;
      b_stalled_q  <= bus.bvalid && !bus.bready;
      r_stalled_q  <= bus.rvalid && !bus.rready;
    end
  end
  always_ff @(posedge clk_i) begin
    awaddr_q <= awaddr_i;
    araddr_q <= araddr_i;
    w_q <= {wdata_i, wstrb_i};
    rdata_q <= bus.rdata;
  end

  `NS_ASSUME(aw_stable, !aw_stalled_q || (awvalid_i && awaddr_i == awaddr_q))
  `NS_ASSUME(w_stable, !w_stalled_q || (wvalid_i && {wdata_i, wstrb_i} == w_q))
  `NS_ASSUME(ar_stable, !ar_stalled_q || (arvalid_i && araddr_i == araddr_q))
  `NS_ASSERT(b_stable, !b_stalled_q || bus.bvalid)
  `NS_ASSERT(r_stable, !r_stalled_q || (bus.rvalid && bus.rdata == rdata_q))
  `NS_ASSERT(responses_okay, bus.bresp == '0 && bus.rresp == '0)

  // ---------------------------------------------------------------- from the channels to accesses

  logic aw_held, w_held, ar_held, host_ready;
  assign aw_held = u_aw.count_q != '0;
  assign w_held = u_w.count_q != '0;
  assign ar_held = u_ar.count_q != '0;
  assign host_ready = bready_i && rready_i;

  channel_order #(
    .Width(WordBits),
    .Depth(1),
    .Bound(Bound)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .in_fire_i  (bus.awvalid && bus.awready),
    .in_data_i  (awaddr_i[AddrBits-1:2]),
    .out_valid_i(write),
    .out_ready_i(1'b1),
    .out_data_i (word),
    .progress_i (host_ready && w_held),
    .pick_i     (pick_aw_i)
  );

  channel_order #(
    .Width(64),
    .Depth(1),
    .Bound(Bound)
  ) u_w (
    .clk_i,
    .rst_ni,
    .in_fire_i  (bus.wvalid && bus.wready),
    .in_data_i  ({wdata_i, mask}),
    .out_valid_i(write),
    .out_ready_i(1'b1),
    .out_data_i ({wdata, wmask}),
    .progress_i (host_ready && aw_held),
    .pick_i     (pick_w_i)
  );

  channel_order #(
    .Width(WordBits),
    .Depth(1),
    .Bound(Bound)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .in_fire_i  (bus.arvalid && bus.arready),
    .in_data_i  (araddr_i[AddrBits-1:2]),
    .out_valid_i(read),
    .out_ready_i(1'b1),
    .out_data_i (word),
    .progress_i (host_ready),
    .pick_i     (pick_ar_i)
  );

  `NS_ASSERT(accepts_address_of_write, bus.awready == (!aw_held || write))
  `NS_ASSERT(accepts_data, bus.wready == (!w_held || write))
  `NS_ASSERT(accepts_address_of_read, bus.arready == (!ar_held || read))
  `NS_ASSERT(one_access_per_cycle, !(read && write))

  // ---------------------------------------------------------------- from accesses to responses

  channel_order #(
    .Width(33),
    .Depth(2),
    .Bound(1)
  ) u_response (
    .clk_i,
    .rst_ni,
    .in_fire_i  (write || read),
    .in_data_i  ({write, write ? 32'd0 : rdata_i}),
    .out_valid_i(bus.bvalid || bus.rvalid),
    .out_ready_i(bus.bvalid ? bready_i : rready_i),
    .out_data_i ({bus.bvalid, bus.bvalid ? 32'd0 : bus.rdata}),
    .progress_i (host_ready),
    .pick_i     (pick_access_i)
  );

  `NS_ASSERT(one_response_at_a_time, !(bus.bvalid && bus.rvalid))
  `NS_ASSERT(busy_while_held, busy == (aw_held || w_held || ar_held || u_response.count_q != '0))

  // Invariants that the proof needs: what the slave holds is what has been counted and followed.
  logic slot;
  assign slot = u_axil.answered_q[0] ^ u_response.ahead_q[0];

  `NS_ASSERT(address_of_write_held, u_axil.aw_valid_q == aw_held)
  `NS_ASSERT(data_held, u_axil.w_valid_q == w_held)
  `NS_ASSERT(address_of_read_held, u_axil.ar_valid_q == ar_held)
  `NS_ASSERT(responses_held, u_axil.issued_q - u_axil.answered_q == u_response.count_q)
  `NS_ASSERT(followed_address_of_write, !u_aw.following_q || u_axil.aw_word_q == u_aw.word_q)
  `NS_ASSERT(followed_data, !u_w.following_q || {u_axil.wdata_q, u_axil.wmask_o} == u_w.word_q)
  `NS_ASSERT(followed_address_of_read, !u_ar.following_q || u_axil.ar_word_q == u_ar.word_q)
  `NS_ASSERT(
      followed_response,
      !u_response.following_q || u_response.word_q == (u_axil.is_write_q[slot] ? {1'b1, 32'd0} : {1'b0, u_axil.rdata_q[slot]}))

  // ---------------------------------------------------------------- reached

  logic full, writes_only_q;  // all accesses so far are writes
  assign full = u_response.count_q == 2'd2;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) writes_only_q <= 1'b1;
    else if (read) writes_only_q <= 1'b0;
  end

  `NS_COVER(two_writes_unanswered_and_one_held, full && writes_only_q && aw_held && w_held)
  `NS_COVER(addresses_accepted_in_the_cycle_of_a_write,
            write && bus.awvalid && bus.awready && bus.wvalid && bus.wready)
  `NS_COVER(address_accepted_in_the_cycle_of_a_read, read && bus.arvalid && bus.arready)
  `NS_COVER(all_channels_stalled, full && aw_stalled_q && w_stalled_q && ar_stalled_q)
  `NS_COVER(response_stalled_and_accepted, r_stalled_q && bus.rvalid && bus.rready && full)
  `NS_COVER(unaligned_write, write && awaddr_q[1:0] != '0 && $past(bus.awvalid && bus.awready))
  `NS_COVER(longest_wait, u_aw.waited_q == 5'(Bound - 1) && write)

endmodule
