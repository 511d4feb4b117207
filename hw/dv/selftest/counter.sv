// SPDX-License-Identifier: Apache-2.0

// A counter whose assertion can be made to fail: a subject for tests of the simulation runner.
module counter #(
  /// Bits.
  parameter int unsigned Width = 8,
  /// The assertion holds below this value.
  parameter int unsigned Limit = 200
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  /// Count.
  input  logic             en_i,
  /// Value.
  output logic [Width-1:0] count_o
);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_o <= '0;
    else if (en_i) count_o <= count_o + 1'b1;
  end

  below_limit :
  assert property (@(posedge clk_i) disable iff (!rst_ni) count_o < Width'(Limit));

endmodule
