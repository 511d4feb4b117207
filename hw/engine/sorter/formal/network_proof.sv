// SPDX-License-Identifier: Apache-2.0

// sorter_network sorts, by the 0-1 principle (D. Knuth, The Art of Computer Programming 3, 5.3.4):
// a network of compare-and-swaps that sorts all rows of zeros and ones sorts all rows. So records
// have one bit.
//
// Proven: each row leaves once, in order of arrival, after as many cycles as there are stages. It
// is sorted and has as many ones as before. The final merge part does so for all bitonic rows. Of
// zeros and ones these are the rotations of sorted rows, as sorter_select makes them.
`include "ns_assert.svh"

module network_proof #(
  parameter int unsigned Lanes = 8,
  parameter bit Full = 1'b1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic [Lanes-1:0] row_i
);

  localparam int unsigned Log = unsigned'($clog2(Lanes));
  localparam int unsigned Stages = Full ? Log * (Log + 1) / 2 : Log;
  localparam int unsigned CountBits = Log + 1;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  function automatic logic [CountBits-1:0] ones(logic [Lanes-1:0] row);
    ones = '0;
    for (int unsigned i = 0; i < Lanes; i++) ones += CountBits'(row[i]);
  endfunction

  // Number of changes from a lane to the next one, cyclically. A rotation of a sorted row has none
  // or two.
  logic [CountBits-1:0] changes;
  assign changes = ones(row_i ^ {row_i[0], row_i[Lanes-1:1]});
  if (!Full) begin : gen_bitonic
    `NS_ASSUME(bitonic, changes <= CountBits'(2))
  end

  logic out_valid;
  logic [CountBits-1:0] expected;
  logic [Lanes-1:0] row;

  sorter_network #(
    .Width  (1),
    .Lanes  (Lanes),
    .Full   (Full),
    .TagBits(CountBits)
  ) u_network (
    .clk_i,
    .rst_ni,
    .flush_i(1'b0),
    .busy_o  (),
    .valid_i,
    .tag_i  (ones(row_i)),
    .row_i  (row_i),
    .valid_o(out_valid),
    .tag_o  (expected),
    .row_o  (row)
  );

  logic [Stages-1:0] valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= Stages'({valid_q, valid_i});
  end

  `NS_ASSERT(row_latency_is_fixed, out_valid == valid_q[Stages-1])
  `NS_ASSERT(ones_are_kept, !out_valid || ones(row) == expected)
  for (genvar i = 0; i + 1 < Lanes; i++) begin : gen_pair
    `NS_ASSERT(sorted, !out_valid || row[i] <= row[i+1])
  end

endmodule
