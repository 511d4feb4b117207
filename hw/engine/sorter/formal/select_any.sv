// SPDX-License-Identifier: Apache-2.0

// Replaces sorter_select by any choice that select_proof leaves open.
//
// It sees at most bit 1 of a record, which tells whether the record is at or above an arbitrary
// bound. Whatever the records and the bound are, sorter_select takes 8 records in total, which are
// the first ones of both streams. None below the bound stays while one at or above it leaves. So
// what holds for each choice here holds for sorter_select.
module sorter_select
  import sorter_pkg::*;
#(
  parameter int unsigned Width = 2
) (
  input  logic [LaneBits-1:0]         consumed_i,
  input  logic [Lanes-1:0][Width-1:0] a_i,
  input  logic [Lanes-1:0]            a_ended_i,
  input  logic [Lanes-1:0][Width-1:0] b_i,
  input  logic [Lanes-1:0]            b_ended_i,
  output logic [Lanes-1:0][Width-1:0] row_o,
  output logic [LaneBits-1:0]         consumed_o,
  output logic                        a_row_done_o,
  output logic                        b_row_done_o
);

  // Undriven, so unconstrained in each cycle (setundef in level.sby).
  logic [LaneBits:0] choice;

  logic [Lanes-1:0][LaneBits-1:0] offset;
  logic [Lanes-1:0] from_a;
  // By offset, next record first: it exists, and it is at or above the bound.
  logic [Lanes-1:0] a_valid, b_valid, a_above, b_above;

  merge_step u_step (
    .consumed_i,
    .count_i (choice),
    .offset_o(offset),
    .from_a_o(from_a),
    .consumed_o,
    .a_row_done_o,
    .b_row_done_o
  );

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    logic [LaneBits-1:0] a_lane, b_lane;
    assign a_lane = consumed_i + LaneBits'(i);
    assign b_lane = consumed_i + LaneBits'(Lanes - 1 - i);
    assign a_valid[i] = !a_ended_i[a_lane];
    assign b_valid[i] = !b_ended_i[b_lane];
    assign a_above[i] = Width > 1 && a_i[a_lane][Width-1];
    assign b_above[i] = Width > 1 && b_i[b_lane][Width-1];
    assign row_o[i] = from_a[i] ? a_i[i] : b_i[i];
  end

  // Assumptions of select_proof: streams that end once, in order, with a full row left.
  logic legal;
  assign legal = (a_valid & (a_valid + 1'b1)) == '0 && (b_valid & (b_valid + 1'b1)) == '0 && $countones(
      a_valid
  ) + $countones(
      b_valid
  ) >= Lanes && (a_valid & ~a_above & (a_above << 1)) == '0 &&
      (b_valid & ~b_above & (b_above << 1)) == '0;

  // Properties that select_proof shows.
  logic [Lanes-1:0] a_chosen, b_chosen;
  logic possible, least;
  assign a_chosen = ~({Lanes{1'b1}} << choice);
  assign b_chosen = ~({Lanes{1'b1}} << ((LaneBits + 1)'(Lanes) - choice));
  assign possible = choice <= (LaneBits + 1)'(Lanes) && (a_chosen & ~a_valid) == '0 && (b_chosen & ~b_valid) == '0;
  assign least = ((a_chosen & a_above) == '0 && (b_chosen & b_above) == '0) ||
      ((~a_chosen & a_valid & ~a_above) == '0 && (~b_chosen & b_valid & ~b_above) == '0);
  always_comb assume (!legal || (possible && least));

endmodule
