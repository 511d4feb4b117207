// SPDX-License-Identifier: Apache-2.0

// Counts the values of a beat that lie between two bounds, bounds included. Throughput is one beat
// per cycle, latency three cycles.
//
// Each 32-bit word is compared with the matching word of the bounds; a 64-bit value combines two
// such comparisons. For two's complement the sign bits of both sides are inverted, so that all
// comparisons are unsigned.
module scan_count (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Values have 64 bits, else 32. The mode and the bounds are stable while beats are in flight.
  input  logic         wide_i,
  /// Values are in two's complement.
  input  logic         signed_i,
  /// Lower bound, in the low 32 bits unless `wide_i`.
  input  logic [63:0]  low_i,
  /// Upper bound.
  input  logic [63:0]  high_i,
  /// Data of a beat.
  input  logic [511:0] data_i,
  /// Words of the beat that belong to the range.
  input  logic [15:0]  words_i,
  /// The beat is the last one of the range.
  input  logic         last_i,
  /// The beat is valid.
  input  logic         valid_i,
  /// Number of values between the bounds.
  output logic [4:0]   count_o,
  /// Values between the bounds, one bit each, first value first: 8 of 64 bits or 16 of 32 bits.
  output logic [15:0]  bits_o,
  /// The result belongs to the last beat.
  output logic         last_o,
  /// The result is valid, three cycles after its beat.
  output logic         valid_o,
  /// A beat is in flight.
  output logic         busy_o
);

  logic [511:0] data_q;
  logic [15:0] words_q, words2_q, below_q, above_q, hits, bits, bits_q;
  logic [7:0] same_low_q, same_high_q;  // of the upper words
  logic valid_q, valid2_q, valid3_q, last_q, last2_q, last3_q;
  logic [4:0] count_q;
  logic [15:0][31:0] value, low, high;

  for (genvar i = 0; i < 16; i++) begin : gen_word
    logic [31:0] sign;
    assign sign = {signed_i && (!wide_i || i % 2 == 1), 31'd0};
    assign value[i] = data_q[32*i+:32] ^ sign;
    assign low[i] = ((wide_i && i % 2 == 1) ? low_i[63:32] : low_i[31:0]) ^ sign;
    assign high[i] = ((wide_i && i % 2 == 1) ? high_i[63:32] : high_i[31:0]) ^ sign;
  end

  // A 64-bit value is counted at its upper word.
  for (genvar i = 0; i < 8; i++) begin : gen_pair
    logic below, above;
    assign below = below_q[2*i+1] || (same_low_q[i] && below_q[2*i]);
    assign above = above_q[2*i+1] || (same_high_q[i] && above_q[2*i]);
    assign hits[2*i] = words2_q[2*i] && !wide_i && !below_q[2*i] && !above_q[2*i];
    assign hits[2*i+1] = words2_q[2*i+1] &&
        (wide_i ? !below && !above : !below_q[2*i+1] && !above_q[2*i+1]);
  end

  always_comb begin
    bits = hits;
    if (wide_i) begin
      bits = '0;
      for (int unsigned i = 0; i < 8; i++) bits[i] = hits[2*i+1];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {valid_q, valid2_q, valid3_q} <= '0;
    else {valid_q, valid2_q, valid3_q} <= {valid_i, valid_q, valid2_q};
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      data_q  <= data_i;
      last_q  <= last_i;
      words_q <= words_i;
    end
    if (valid_q) begin
      words2_q <= words_q;
      last2_q  <= last_q;
      for (int unsigned i = 0; i < 16; i++) begin
        below_q[i] <= value[i] < low[i];
        above_q[i] <= value[i] > high[i];
      end
      for (int unsigned i = 0; i < 8; i++) begin
        same_low_q[i]  <= value[2*i+1] == low[2*i+1];
        same_high_q[i] <= value[2*i+1] == high[2*i+1];
      end
    end
    if (valid2_q) begin
      count_q <= 5'($countones(hits));
      bits_q  <= bits;
      last3_q <= last2_q;
    end
  end

  assign count_o = count_q;
  assign bits_o  = bits_q;
  assign last_o  = last3_q;
  assign valid_o = valid3_q;
  assign busy_o  = valid_q || valid2_q || valid3_q;

endmodule
