// SPDX-License-Identifier: Apache-2.0

/// 64-bit numbers read as two words, low word first. The high word is latched with the low word and
/// held until it is read, so both belong to one number.
module nearpm_reg_snapshot #(
  parameter int unsigned Count = 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic [Count-1:0][63:0]  number_i,
  /// A word of a number is read; one at a time.
  input  logic [Count-1:0]        low_read_i,
  input  logic [Count-1:0]        high_read_i,
  output logic [Count-1:0][63:0]  number_o
);

  logic [Count-1:0] held_q;
  logic [31:0] high, high_q;

  always_comb begin
    high = '0;
    for (int unsigned n = 0; n < Count; n++) begin
      if (low_read_i[n]) high |= number_i[n][63:32];
      number_o[n] = {held_q[n] ? high_q : number_i[n][63:32], number_i[n][31:0]};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) held_q <= '0;
    else held_q <= (low_read_i != '0) ? low_read_i : held_q & ~high_read_i;
  end

  always_ff @(posedge clk_i) if (low_read_i != '0) high_q <= high;

endmodule
