// Takes the lesser half of two sorted streams' next rows: the step of a merge by which 8 records leave in a cycle.
//
// Lane i of stream A stands against lane 7-i of stream B, so what is taken are the first records of A and the first ones of B that come next
// in the merged order, as a bitonic row. What has been taken of A, modulo the lanes, and of B add up to a whole row, so lanes need not be
// moved: `consumed_i` is that of A. A lane that is below it shows A's second row, one that is not below it shows B's second one.
//
// The idea: FLiMS (P. Papaphilippou, C. Brooks, W. Luk, "FLiMS: Fast Lightweight Merge Sorter", FPT 2018).
module sorter_select
  import sorter_pkg::*;
#(
  /// Bits of a record; less is first.
  parameter int unsigned Width = 96
) (
  /// Of A's present row, so many have been taken.
  input  logic [LaneBits-1:0]         consumed_i,
  /// For each lane, the record of A, and of B, that comes next; `none`: the stream has ended there.
  input  logic [Lanes-1:0][Width-1:0] a_i,
  input  logic [Lanes-1:0]            a_ended_i,
  input  logic [Lanes-1:0][Width-1:0] b_i,
  input  logic [Lanes-1:0]            b_ended_i,
  /// A bitonic row.
  output logic [Lanes-1:0][Width-1:0] row_o,
  /// What has been taken of A's row then.
  output logic [LaneBits-1:0]         consumed_o,
  /// A's, or B's, row has been taken whole.
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
