// SPDX-License-Identifier: Apache-2.0

// sorter_select takes the 8 least of the next 8 records of each of two sorted streams.
//
// It only compares records, of which at most 16 are visible, all different. Records of 4 bits cover
// every order of these, so the proof is complete for any width. Streams can have ended and then
// show arbitrary values. At least 8 records are left in total.
`include "ns_assert.svh"

module select_proof
  import sorter_pkg::*;
#(
  localparam int unsigned Width = LaneBits + 1
) (
  input logic                        clk_i,
  input logic                        rst_ni,
  input logic [LaneBits-1:0]         consumed_i,
  /// Both streams, next record first, and the number of their records.
  input logic [Lanes-1:0][Width-1:0] a_i,
  input logic [Lanes-1:0][Width-1:0] b_i,
  input logic [LaneBits:0]           a_count_i,
  input logic [LaneBits:0]           b_count_i,
  /// Arbitrary bound.
  input logic [Width-1:0]            bound_i
);

  localparam int unsigned CountBits = LaneBits + 2;
  typedef logic [CountBits-1:0] count_t;

  // ---------------------------------------------------------------- streams

  `NS_ASSUME(a_count_fits, a_count_i <= (LaneBits + 1)'(Lanes))
  `NS_ASSUME(b_count_fits, b_count_i <= (LaneBits + 1)'(Lanes))
  `NS_ASSUME(enough_records, count_t'(a_count_i) + count_t'(b_count_i) >= count_t'(Lanes))
  for (genvar i = 0; i < Lanes; i++) begin : gen_record
    logic in_a, in_b;
    assign in_a = (LaneBits + 1)'(i) < a_count_i;
    assign in_b = (LaneBits + 1)'(i) < b_count_i;
    if (i > 0) begin : gen_sorted
      `NS_ASSUME(a_sorted, !in_a || a_i[i-1] < a_i[i])
      `NS_ASSUME(b_sorted, !in_b || b_i[i-1] < b_i[i])
    end
    for (genvar j = 0; j < Lanes; j++) begin : gen_other
      `NS_ASSUME(different, !in_a || !gen_record[j].in_b || a_i[i] != b_i[j])
    end
  end

  // Rank of a record in both streams: records before it in its stream, plus lesser records of the
  // other stream.
  logic [Lanes-1:0] a_least, b_least;  // is among the 8 least
  count_t a_of_least;
  always_comb begin
    a_of_least = '0;
    for (int unsigned i = 0; i < Lanes; i++) begin
      automatic count_t a_rank = count_t'(i);
      automatic count_t b_rank = count_t'(i);
      for (int unsigned j = 0; j < Lanes; j++) begin
        a_rank += count_t'(count_t'(j) < count_t'(b_count_i) && b_i[j] < a_i[i]);
        b_rank += count_t'(count_t'(j) < count_t'(a_count_i) && a_i[j] < b_i[i]);
      end
      a_least[i] = count_t'(i) < count_t'(a_count_i) && a_rank < count_t'(Lanes);
      b_least[i] = count_t'(i) < count_t'(b_count_i) && b_rank < count_t'(Lanes);
      a_of_least += count_t'(a_least[i]);
    end
  end

  // ---------------------------------------------------------------- selector

  logic [Lanes-1:0][LaneBits-1:0] offset;
  logic [Lanes-1:0] expected_from_a, a_ended, b_ended;
  logic [LaneBits-1:0] consumed, expected_consumed;
  logic [1:0] row_done, expected_row_done;
  logic [Lanes-1:0][Width-1:0] a, b, row;

  merge_step u_step (
    .consumed_i,
    .count_i     (a_of_least[LaneBits:0]),
    .offset_o    (offset),
    .from_a_o    (expected_from_a),
    .consumed_o  (expected_consumed),
    .a_row_done_o(expected_row_done[0]),
    .b_row_done_o(expected_row_done[1])
  );

  sorter_select #(
    .Width(Width)
  ) u_select (
    .consumed_i,
    .a_i         (a),
    .a_ended_i   (a_ended),
    .b_i         (b),
    .b_ended_i   (b_ended),
    .row_o       (row),
    .consumed_o  (consumed),
    .a_row_done_o(row_done[0]),
    .b_row_done_o(row_done[1])
  );

  `NS_ASSERT(consumed_matches, consumed == expected_consumed)
  `NS_ASSERT(a_row_done_matches, row_done[0] == expected_row_done[0])
  `NS_ASSERT(b_row_done_matches, row_done[1] == expected_row_done[1])

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    logic [LaneBits-1:0] b_offset;
    assign b_offset = LaneBits'(Lanes - 1) - offset[i];
    assign a[i] = a_i[offset[i]];
    assign b[i] = b_i[b_offset];
    assign a_ended[i] = (LaneBits + 1)'(offset[i]) >= a_count_i;
    assign b_ended[i] = (LaneBits + 1)'(b_offset) >= b_count_i;
    // Each of the 8 least records has its lane, and the lane sends it.
    `NS_ASSERT(lane_of_a_least, a_least[offset[i]] == expected_from_a[i])
    `NS_ASSERT(lane_of_b_least, b_least[b_offset] == !expected_from_a[i])
    `NS_ASSERT(row_is_least, row[i] == (expected_from_a[i] ? a[i] : b[i]))
  end

  // The row is bitonic in any rotation, as network_proof assumes: for any bound, the row of zeros
  // and ones changes twice or never, cyclically.
  logic [Lanes-1:0] ones;
  for (genvar i = 0; i < Lanes; i++) begin : gen_one
    assign ones[i] = row[i] >= bound_i;
  end
  `NS_ASSERT(bitonic, $countones(ones ^ {ones[0], ones[Lanes-1:1]}) <= 2)

  `NS_COVER(all_of_a, a_of_least == count_t'(Lanes) && b_count_i != '0)
  `NS_COVER(some_of_both, a_of_least == count_t'(3) && consumed_i == LaneBits'(6))
  `NS_COVER(
      both_end,
      count_t'(a_count_i) + count_t'(b_count_i) == count_t'(Lanes) && a_count_i != '0 && b_count_i != '0)

endmodule
