// A step of a merge, as sorter_select is to take it, told by how many records of A it takes: what that means for the lanes.
//
// A lane shows the record of A that is `offset_o` records behind A's next one, and the one of B that is Lanes-1-`offset_o` behind B's next one.
// So of each lane it is A's or B's record that leaves, when all of them are the first ones of their streams.
module merge_step
  import sorter_pkg::*;
(
  /// Of A's present row, so many have been taken.
  input  logic [LaneBits-1:0]            consumed_i,
  /// Records of A that are taken, 0 to Lanes; the others are B's.
  input  logic [LaneBits:0]              count_i,
  output logic [Lanes-1:0][LaneBits-1:0] offset_o,
  /// The lane's record of A leaves.
  output logic [Lanes-1:0]               from_a_o,
  /// What has been taken of A's row then; A's, or B's, row has been taken whole.
  output logic [LaneBits-1:0]            consumed_o,
  output logic                           a_row_done_o,
  output logic                           b_row_done_o
);

  localparam int unsigned Bits = LaneBits + 2;

  logic [LaneBits-1:0] b_consumed;
  logic [Bits-1:0] a_sum, b_sum;

  assign b_consumed = -consumed_i;  // both make a whole row, or none
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
