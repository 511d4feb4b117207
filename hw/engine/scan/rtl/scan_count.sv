// Counts the values of one beat that lie between two bounds, both included: one beat a cycle.
//
// Words of 32 bits are compared with their part of the bounds first; a value of 64 bits takes two of these. For two's complement
// the top bits are inverted on both sides, so that all comparisons are of unsigned numbers. The beat goes through three registers.
module scan_count (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Values have 64 bits, not 32. This and the bounds hold still while beats are under way.
  input  logic         wide_i,
  /// They are in two's complement.
  input  logic         signed_i,
  /// Lower bound, in the low 32 bits unless `wide_i`.
  input  logic [63:0]  low_i,
  /// Upper bound.
  input  logic [63:0]  high_i,
  /// Beat.
  input  logic [511:0] data_i,
  /// Words of it that count.
  input  logic [15:0]  words_i,
  /// It is the last one.
  input  logic         last_i,
  /// There is one.
  input  logic         valid_i,
  /// Values within the bounds.
  output logic [4:0]   count_o,
  /// Which, from the first one on; 8 of 64 bits or 16 of 32.
  output logic [15:0]  bits_o,
  /// These are of the last beat.
  output logic         last_o,
  /// Of a beat, three cycles later.
  output logic         valid_o,
  /// A beat is under way.
  output logic         busy_o
);

  logic [511:0] data_q;
  logic [15:0] words_q, words2_q, below_q, above_q, hits, bits, bits_q;
  logic [7:0] same_low_q, same_high_q;  // upper words
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

  // A value of 64 bits is counted at its upper word.
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
