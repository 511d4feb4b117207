// SPDX-License-Identifier: Apache-2.0

// Properties of a ready/valid channel through a block with several sources: the words of one source
// stay in order, none is lost or added, and all come out.
//
// The solver picks any word (the first that arrives while `pick_i` is 1) and this module follows
// it, as stream_order does. The input and the output may be shared with other sources, whose words
// do not count here.
`include "ns_assert.svh"

module channel_order #(
  /// Bits of a word.
  parameter int unsigned Width = 8,
  /// Most words inside.
  parameter int unsigned Depth = 2,
  /// Cycles with `progress_i` until a word inside leaves; 0: not checked.
  parameter int unsigned Bound = 0
) (
  input logic             clk_i,
  input logic             rst_ni,
  /// A word of this source is offered.
  input logic             in_fire_i,
  /// Data.
  input logic [Width-1:0] in_data_i,
  /// A word of this source is offered.
  input logic             out_valid_i,
  input logic             out_ready_i,
  /// Data.
  input logic [Width-1:0] out_data_i,
  /// All receivers accept.
  input logic             progress_i,
  /// Follow the next word.
  input logic             pick_i
);

  localparam int unsigned Bits = unsigned'($clog2(Depth + 2));

  logic [Bits-1:0] count_q, ahead_q;  // words inside; words ahead of the followed one
  logic following_q, leave;
  logic [Width-1:0] word_q;
  logic [4:0] waited_q;

  assign leave = out_valid_i && out_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      following_q <= 1'b0;
      ahead_q <= '0;
      word_q <= '0;
      waited_q <= '0;
    end else begin
      count_q <= count_q + Bits'(in_fire_i) - Bits'(leave);
      if (!following_q) begin
        if (in_fire_i && pick_i) begin
          following_q <= 1'b1;
          ahead_q <= count_q - Bits'(leave);
          word_q <= in_data_i;
        end
      end else if (leave) begin
        if (ahead_q == '0) following_q <= 1'b0;
        else ahead_q <= ahead_q - 1'b1;
      end
      if (count_q == '0 || leave) waited_q <= '0;
      else if (progress_i && waited_q != '1) waited_q <= waited_q + 1'b1;
    end
  end

  `NS_ASSERT(no_spurious_word, !out_valid_i || count_q != '0)
  `NS_ASSERT(no_overflow, count_q <= Bits'(Depth))
  `NS_ASSERT(in_order_and_intact,
             !(following_q && out_valid_i && ahead_q == '0) || out_data_i == word_q)
  `NS_ASSERT(comes_out, Bound == 0 || 32'(waited_q) < Bound)
  // Makes the order provable by induction.
  `NS_ASSERT(followed_inside, !following_q || ahead_q < count_q)

  `NS_COVER(followed_leaves, following_q && leave && ahead_q == '0 && word_q != '0)

endmodule
