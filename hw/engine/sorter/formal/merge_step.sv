// SPDX-License-Identifier: Apache-2.0

// Expected step of sorter_select, given the number of records it takes of A.
//
// A lane shows the record of A that is `offset_o` records after A's next one. Of B it shows the
// record that is Lanes-1-`offset_o` records after B's next one. So each lane sends either A's or
// B's record, if the step takes the first records of both streams.
module merge_step
  import sorter_pkg::*;
(
  /// Records consumed of A's current row.
  input  logic [LaneBits-1:0]            consumed_i,
  /// Records taken of A, 0 to Lanes. The others are taken of B.
  input  logic [LaneBits:0]              count_i,
  output logic [Lanes-1:0][LaneBits-1:0] offset_o,
  /// The lane sends its record of A.
  output logic [Lanes-1:0]               from_a_o,
  /// Records then consumed of A's row. A's row, or B's row, has been consumed completely.
  output logic [LaneBits-1:0]            consumed_o,
  output logic                           a_row_done_o,
  output logic                           b_row_done_o
);

  localparam int unsigned Bits = LaneBits + 2;

  logic [LaneBits-1:0] b_consumed;
  logic [Bits-1:0] a_sum, b_sum;

  assign b_consumed = -consumed_i;  // both add up to a whole row, or to 0
  assign a_sum = Bits'(consumed_i) + Bits'(count_i);
  assign b_sum = Bits'(b_consumed) + Bits'(Lanes) - Bits'(count_i);
  assign consumed_o = LaneBits'(a_sum);
  assign a_row_done_o = a_sum >= Bits'(Lanes);
  assign b_row_done_o = b_sum >= Bits'(Lanes);

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    assign offset_o[i] = LaneBits'(i) - consumed_i;
    assign from_a_o[i] = (LaneBits + 1)'(offset_o[i]) < count_i;
  end

endmodule
