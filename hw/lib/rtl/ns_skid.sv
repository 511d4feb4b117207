// SPDX-License-Identifier: Apache-2.0

// Skid buffer (register slice): cuts every combinational path of a ready/valid stream at full
// throughput.
//
// A word is offered one cycle after it was accepted. All outputs are registers. Holds up to two
// words.
`include "ns_assert.svh"

module ns_skid #(
  /// Bits of a word.
  parameter int unsigned Width = 32
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  /// Discards all words: in the next cycle the buffer is empty.
  input  logic             flush_i = 1'b0,
  /// A word is offered.
  input  logic             in_valid_i,
  /// It is accepted.
  output logic             in_ready_o,
  /// The word offered.
  input  logic [Width-1:0] in_data_i,
  /// A word is available.
  output logic             out_valid_o,
  /// It is accepted.
  input  logic             out_ready_i,
  /// The oldest word.
  output logic [Width-1:0] out_data_o
);

  logic ready_q, valid_q;  // !ready_q: the second word is in use
  logic [Width-1:0] data_q, spare_q;
  logic output_free;  // the output word may be replaced

  assign output_free = out_ready_i || !valid_q;
  assign in_ready_o = ready_q;
  assign out_valid_o = valid_q;
  assign out_data_o = data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ready_q <= 1'b1;
      valid_q <= 1'b0;
    end else if (flush_i) begin
      ready_q <= 1'b1;
      valid_q <= 1'b0;
    end else if (output_free) begin
      ready_q <= 1'b1;
      valid_q <= in_valid_i || !ready_q;
    end else if (in_valid_i) begin
      ready_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!ready_q) begin
      if (output_free) data_q <= spare_q;
    end else if (in_valid_i) begin
      if (output_free) data_q <= in_data_i;
      else spare_q <= in_data_i;
    end
  end

  if (Width < 1) begin : gen_bad_width
    $error("ns_skid: Width must be at least 1");
  end

  `NS_ASSERT(spare_only_with_output, ready_q || valid_q)

endmodule
