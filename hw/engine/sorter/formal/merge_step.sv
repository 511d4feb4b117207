// A step of a merge, as sorter_select is to take it, told by how many records of A it takes: what that means for the lanes.
//
// A lane shows the record of A that is `place_o` records behind A's next one, and the one of B that is Lanes-1-`place_o` behind B's next one.
// So of each lane it is A's or B's record that leaves, when all of them are the first ones of their streams.
module merge_step
  import sorter_pkg::*;
(
  /// Of A's present row, so many have been taken.
  input  logic [LaneBits-1:0]            taken_i,
  /// Records of A that are taken, 0 to Lanes; the others are B's.
  input  logic [LaneBits:0]              count_i,
  output logic [Lanes-1:0][LaneBits-1:0] place_o,
  /// The lane's record of A leaves.
  output logic [Lanes-1:0]               from_a_o,
  /// What has been taken of A's row then; A's, or B's, row has been taken whole.
  output logic [LaneBits-1:0]            taken_o,
  output logic                           a_over_o,
  output logic                           b_over_o
);

  localparam int unsigned Bits = LaneBits + 2;

  logic [LaneBits-1:0] b_taken;
  logic [Bits-1:0] a_sum, b_sum;

  assign b_taken = -taken_i;  // both make a whole row, or none
  assign a_sum = Bits'(taken_i) + Bits'(count_i);
  assign b_sum = Bits'(b_taken) + Bits'(Lanes) - Bits'(count_i);
  assign taken_o = LaneBits'(a_sum);
  assign a_over_o = a_sum >= Bits'(Lanes);
  assign b_over_o = b_sum >= Bits'(Lanes);

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    assign place_o[i]  = LaneBits'(i) - taken_i;
    assign from_a_o[i] = (LaneBits + 1)'(place_o[i]) < count_i;
  end

endmodule
