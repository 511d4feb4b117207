// sorter_select: of the next 8 records of each of two sorted streams it takes the 8 least.
//
// It only compares records, at most 16 that are all different, so those of 4 bits show each order that there is: complete for any width.
// Streams may have ended, and show anything there; at least 8 records are left of both together.
`include "ns_assert.svh"

module select_proof
  import sorter_pkg::*;
#(
  localparam int unsigned Width = LaneBits + 1
) (
  input logic                        clk_i,
  input logic                        rst_ni,
  input logic [LaneBits-1:0]         taken_i,
  /// Both streams, the next record first, and how many records there are.
  input logic [Lanes-1:0][Width-1:0] a_i,
  input logic [Lanes-1:0][Width-1:0] b_i,
  input logic [LaneBits:0]           a_count_i,
  input logic [LaneBits:0]           b_count_i,
  /// Any bound.
  input logic [Width-1:0]            bound_i
);

  localparam int unsigned CountBits = LaneBits + 2;
  typedef logic [CountBits-1:0] count_t;

  // ---------------------------------------------------------------- the streams

  `NS_ASSUME(a_ends, a_count_i <= (LaneBits + 1)'(Lanes))
  `NS_ASSUME(b_ends, b_count_i <= (LaneBits + 1)'(Lanes))
  `NS_ASSUME(a_row_is_left, count_t'(a_count_i) + count_t'(b_count_i) >= count_t'(Lanes))
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

  // A record's rank in both streams: those of its own before it, and those of the other one that are less.
  logic [Lanes-1:0] a_least, b_least;  // among the 8 least
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

  // ---------------------------------------------------------------- the selector

  logic [Lanes-1:0][LaneBits-1:0] place;
  logic [Lanes-1:0] expected_from_a, a_none, b_none;
  logic [LaneBits-1:0] taken, expected_taken;
  logic [1:0] over, expected_over;
  logic [Lanes-1:0][Width-1:0] a, b, row;

  merge_step u_step (
    .taken_i,
    .count_i (a_of_least[LaneBits:0]),
    .place_o (place),
    .from_a_o(expected_from_a),
    .taken_o (expected_taken),
    .a_over_o(expected_over[0]),
    .b_over_o(expected_over[1])
  );

  sorter_select #(
    .Width(Width)
  ) u_select (
    .taken_i,
    .a_i     (a),
    .a_none_i(a_none),
    .b_i     (b),
    .b_none_i(b_none),
    .row_o   (row),
    .taken_o (taken),
    .a_over_o(over[0]),
    .b_over_o(over[1])
  );

  `NS_ASSERT(taken_right, taken == expected_taken)
  `NS_ASSERT(a_over_right, over[0] == expected_over[0])
  `NS_ASSERT(b_over_right, over[1] == expected_over[1])

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    logic [LaneBits-1:0] b_place;
    assign b_place = LaneBits'(Lanes - 1) - place[i];
    assign a[i] = a_i[place[i]];
    assign b[i] = b_i[b_place];
    assign a_none[i] = (LaneBits + 1)'(place[i]) >= a_count_i;
    assign b_none[i] = (LaneBits + 1)'(b_place) >= b_count_i;
    // Each of the 8 least has its lane, and its lane has it.
    `NS_ASSERT(lane_of_a_least, a_least[place[i]] == expected_from_a[i])
    `NS_ASSERT(lane_of_b_least, b_least[b_place] == !expected_from_a[i])
    `NS_ASSERT(takes_the_least, row[i] == (expected_from_a[i] ? a[i] : b[i]))
  end

  // Bitonic in any rotation, as the network's proof assumes it: with any bound, a row of zeros and ones that changes twice, all around, or never.
  logic [Lanes-1:0] ones;
  for (genvar i = 0; i < Lanes; i++) begin : gen_one
    assign ones[i] = row[i] >= bound_i;
  end
  `NS_ASSERT(bitonic, $countones(ones ^ {ones[0], ones[Lanes-1:1]}) <= 2)

  `NS_COVER(all_of_a, a_of_least == count_t'(Lanes) && b_count_i != '0)
  `NS_COVER(some_of_both, a_of_least == count_t'(3) && taken_i == LaneBits'(6))
  `NS_COVER(
      both_end,
      count_t'(a_count_i) + count_t'(b_count_i) == count_t'(Lanes) && a_count_i != '0 && b_count_i != '0)

endmodule
