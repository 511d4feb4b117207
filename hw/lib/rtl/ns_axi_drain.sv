// SPDX-License-Identifier: Apache-2.0

// Completes an AXI4 master's transactions after the master is cut off by a reset or a dead link.
//
// It stands between a master that may vanish at any cycle and a slave that keeps running.
// Everything passes unchanged, except that write data passes only after its address. While `cut_i`
// is 1 the master counts as gone: nothing is accepted from it, and responses of the slave are
// dropped. Missing beats of its started bursts are supplied without strobes. `cut_o` stays 1 until
// the last response has arrived. So no response reaches the master after its reset, and no beat of
// an old burst is missing or left over.
//
// Assumes that the slave answers each transaction, in any order; until it has, nothing new passes.
`include "ns_assert.svh"

module ns_axi_drain #(
  /// Writes whose address has passed and whose data is incomplete. Further addresses wait.
  parameter int unsigned MaxWrites = 4,
  /// Bits of the counters of reads and of writes that wait for their response.
  parameter int unsigned CountBits = 10
) (
  input  logic       clk_i,
  /// Reset of the slave's side: neither side has anything in flight.
  input  logic       rst_ni,
  /// The master is gone. From a register.
  input  logic       cut_i,
  /// The master counts as gone.
  output logic       cut_o,
  /// Something is outstanding at the slave. From registers.
  output logic       open_o,

  /// Master.
  ns_axi_if.slave s_axi,

  /// Slave. Addresses and write data are withdrawn when the master is cut off, so a register slice
  /// has to follow.
  ns_axi_if.master m_axi
);

  logic cut_q, cut, w_last;
  logic [CountBits-1:0] writes_q, reads_q;  // without response; without last beat
  logic aw_fire, w_fire, b_fire, ar_fire, r_last_fire;

  assign cut = cut_i || cut_q;
  assign cut_o = cut;
  assign open_o = writes_q != '0 || reads_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cut_q <= 1'b0;
    else cut_q <= cut && open_o;
  end

  // Lengths of the bursts whose data is incomplete. The address of the first of them may pass in
  // this very cycle.
  logic len_ready, len_valid, w_open;
  logic [7:0] len_head, len, beat_q;

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && !cut && len_ready;
  assign s_axi.aw_ready = m_axi.aw_ready && !cut && len_ready;
  assign aw_fire = m_axi.aw_valid && m_axi.aw_ready;

  assign w_open = len_valid || aw_fire;
  assign len = len_valid ? len_head : s_axi.aw.len;
  assign m_axi.w_valid = w_open && (s_axi.w_valid || cut);
  assign w_last = beat_q == len;
  assign m_axi.w = '{last: w_last, strb: cut ? '0 : s_axi.w.strb, data: s_axi.w.data};
  assign s_axi.w_ready = w_open && m_axi.w_ready && !cut;
  assign w_fire = m_axi.w_valid && m_axi.w_ready;

  ns_fifo #(
    .Width(8),
    .Depth(MaxWrites)
  ) u_lengths (
    .clk_i,
    .rst_ni,
    .in_valid_i (aw_fire && (len_valid || !(w_fire && w_last))),
    .in_ready_o (len_ready),
    .in_data_i  (s_axi.aw.len),
    .out_valid_o(len_valid),
    .out_ready_i(w_fire && w_last),
    .out_data_o (len_head),
    .count_o    ()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) beat_q <= '0;
    else if (w_fire) beat_q <= w_last ? '0 : beat_q + 1'b1;
  end

  // Responses.
  assign s_axi.b = m_axi.b;
  assign s_axi.r = m_axi.r;
  assign s_axi.b_valid = m_axi.b_valid && !cut;
  assign m_axi.b_ready = s_axi.b_ready || cut;
  assign b_fire = m_axi.b_valid && m_axi.b_ready;
  assign s_axi.r_valid = m_axi.r_valid && !cut;
  assign m_axi.r_ready = s_axi.r_ready || cut;
  assign r_last_fire = m_axi.r_valid && m_axi.r_ready && m_axi.r.last;

  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid && !cut;
  assign s_axi.ar_ready = m_axi.ar_ready && !cut;
  assign ar_fire = m_axi.ar_valid && m_axi.ar_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_q <= '0;
      reads_q <= '0;
    end else begin
      if (aw_fire && !b_fire) writes_q <= writes_q + 1'b1;
      if (!aw_fire && b_fire) writes_q <= writes_q - 1'b1;
      if (ar_fire && !r_last_fire) reads_q <= reads_q + 1'b1;
      if (!ar_fire && r_last_fire) reads_q <= reads_q - 1'b1;
    end
  end

  if (MaxWrites < 2) begin : gen_bad_max
    $error("ns_axi_drain: MaxWrites must be at least 2");
  end

  `NS_ASSERT(response_was_requested, !b_fire || writes_q != '0)
  `NS_ASSERT(data_was_requested, !r_last_fire || reads_q != '0)
  `NS_ASSERT(counts_do_not_wrap, !(aw_fire && writes_q == '1) && !(ar_fire && reads_q == '1))
  `NS_ASSERT(last_beat_matches_address, !(w_fire && !cut) || s_axi.w.last == w_last)

endmodule
