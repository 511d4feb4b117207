// SPDX-License-Identifier: Apache-2.0

// Properties of a block with one ready/valid stream in and one out that holds up to `Depth` words.
// They are: order, no loss, no duplicate, stable output under stall, capacity, and no stuck word.
//
// The solver picks any word of the input stream (the first that arrives while `pick_i` is 1) and
// this module follows it. If that one word leaves in order with its content, for every choice, then
// order and integrity hold for all. Assumes a well-behaved source: an offered word stays offered.
`include "ns_assert.svh"

module stream_order #(
  /// Bits of a word.
  parameter int unsigned Width = 8,
  /// Capacity of the block in words.
  parameter int unsigned Depth = 4,
  /// Cycles from a word's acceptance until it is available, in an empty block.
  parameter int unsigned Latency = 1
) (
  input logic             clk_i,
  input logic             rst_ni,
  /// All words are discarded.
  input logic             flush_i,
  /// Input stream.
  input logic             in_valid_i,
  input logic             in_ready_i,
  /// Data.
  input logic [Width-1:0] in_data_i,
  /// Output stream.
  input logic             out_valid_i,
  input logic             out_ready_i,
  /// Data.
  input logic [Width-1:0] out_data_i,
  /// Follow the next word.
  input logic             pick_i
);

  localparam int unsigned Bits = unsigned'($clog2(Depth + 2));

  logic reset_q = 1'b0;  // has been reset
  logic [Bits-1:0] count_q;  // words inside
  logic following_q;
  logic [Bits-1:0] ahead_q;  // words ahead of the followed one
  logic [Width-1:0] word_q;
  logic [1:0] empty_for_q;  // cycles without an output while words are inside
  logic waiting_in_q, waiting_out_q;
  logic [Width-1:0] in_q, out_q;
  logic accept, leave;

  assign accept = in_valid_i && in_ready_i;
  assign leave = out_valid_i && out_ready_i;

  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      following_q <= 1'b0;
      ahead_q <= '0;
      word_q <= '0;
      empty_for_q <= '0;
      waiting_in_q <= 1'b0;
      waiting_out_q <= 1'b0;
      in_q <= '0;
      out_q <= '0;
    end else if (flush_i) begin
      count_q <= '0;
      following_q <= 1'b0;
      ahead_q <= '0;
      empty_for_q <= '0;
      waiting_in_q <= 1'b0;
      waiting_out_q <= 1'b0;
    end else begin
      count_q <= count_q + Bits'(accept) - Bits'(leave);
      if (!following_q) begin
        if (accept && pick_i) begin
          following_q <= 1'b1;
          ahead_q <= count_q - Bits'(leave);
          word_q <= in_data_i;
        end
      end else if (leave) begin
        if (ahead_q == '0) following_q <= 1'b0;
        else ahead_q <= ahead_q - 1'b1;
      end
      empty_for_q <= (count_q == '0 || out_valid_i) ? 2'd0 : empty_for_q + 1'b1;
      waiting_in_q <= in_valid_i && !in_ready_i;
      waiting_out_q <= out_valid_i && !out_ready_i;
      in_q <= in_data_i;
      out_q <= out_data_i;
    end
  end

  `NS_ASSUME(source_holds, !waiting_in_q || (in_valid_i && in_data_i == in_q))

  `NS_ASSERT(no_spurious_word, !out_valid_i || count_q != '0)
  `NS_ASSERT(no_overflow, count_q <= Bits'(Depth))
  `NS_ASSERT(capacity, in_ready_i == (count_q != Bits'(Depth)))
  `NS_ASSERT(in_order_and_intact,
             !(following_q && out_valid_i && ahead_q == '0) || out_data_i == word_q)
  `NS_ASSERT(output_stable, !waiting_out_q || (out_valid_i && out_data_i == out_q))
  `NS_ASSERT(not_stuck, count_q == '0 || out_valid_i || 32'(empty_for_q) < Latency - 1)
  // The followed word is inside; makes the order provable by induction.
  `NS_ASSERT(followed_inside, !following_q || ahead_q < count_q)

  `NS_COVER(flushed, $past(flush_i && count_q == Bits'(Depth)))
  `NS_COVER(full, count_q == Bits'(Depth))
  `NS_COVER(followed_leaves, following_q && leave && ahead_q == '0)

endmodule
