// SPDX-License-Identifier: Apache-2.0

// Merge step: takes the 8 least of the next records of two sorted streams, one row per cycle.
//
// Lane i of stream A is compared with lane 7-i of stream B. The lesser records are the first ones
// of A and the first ones of B in the merged order, and form a bitonic row. The consumed records of
// A's and B's current rows add up to a whole row, modulo the lanes, so no lane is rotated.
// `consumed_i` is the number for A. Lanes below it show A's second row, the others show B's second
// row.
//
// After FLiMS (P. Papaphilippou, C. Brooks, W. Luk, "FLiMS: Fast Lightweight Merge Sorter", FPT
// 2018).
module sorter_select
  import sorter_pkg::*;
#(
  /// Bits of a record. Records are in ascending order.
  parameter int unsigned Width = 96
) (
  /// Records consumed of A's current row.
  input  logic [LaneBits-1:0]         consumed_i,
  /// Next record of A and of B in each lane. `a_ended_i`, `b_ended_i`: the stream has ended there.
  input  logic [Lanes-1:0][Width-1:0] a_i,
  input  logic [Lanes-1:0]            a_ended_i,
  input  logic [Lanes-1:0][Width-1:0] b_i,
  input  logic [Lanes-1:0]            b_ended_i,
  /// Selected records, a bitonic row.
  output logic [Lanes-1:0][Width-1:0] row_o,
  /// Records then consumed of A's row.
  output logic [LaneBits-1:0]         consumed_o,
  /// A's row, or B's row, has been consumed completely.
  output logic                        a_row_done_o,
  output logic                        b_row_done_o
);

  logic [Lanes-1:0] from_a;
  logic [LaneBits:0] count, sum;

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    assign from_a[i] = !a_ended_i[i] && (b_ended_i[i] || a_i[i] <= b_i[i]);
    assign row_o[i]  = from_a[i] ? a_i[i] : b_i[i];
  end

  always_comb begin
    count = '0;
    for (int unsigned i = 0; i < Lanes; i++) count += (LaneBits + 1)'(from_a[i]);
  end

  assign sum = (LaneBits + 1)'(consumed_i) + count;
  assign consumed_o = sum[LaneBits-1:0];
  assign a_row_done_o = sum[LaneBits];
  assign b_row_done_o = (consumed_i == '0) ? count == '0 : !sum[LaneBits] || sum[LaneBits-1:0] == '0;

endmodule
