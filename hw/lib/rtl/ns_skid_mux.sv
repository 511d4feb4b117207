// SPDX-License-Identifier: Apache-2.0

// Skid buffer with an input multiplexer: accepts the word of the input selected by `in_idx_i`.
//
// Otherwise like ns_skid. It is a separate module so that a simulator moves a wide word only when
// one is accepted, instead of evaluating a wide multiplexer in every cycle.
`include "ns_assert.svh"

module ns_skid_mux #(
  /// Number of inputs.
  parameter int unsigned N = 2,
  /// Bits of a word.
  parameter int unsigned Width = 32,
  localparam int unsigned IdxBits = N > 1 ? unsigned'($clog2(N)) : 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// The selected input offers a word.
  input  logic               in_valid_i,
  /// It is accepted.
  output logic               in_ready_o,
  /// The selected input, below N.
  input  logic [IdxBits-1:0] in_idx_i,
  /// The words offered.
  input  logic [Width-1:0]   in_data_i[N],
  /// A word is available.
  output logic               out_valid_o,
  /// It is accepted.
  input  logic               out_ready_i,
  /// The oldest word.
  output logic [Width-1:0]   out_data_o
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
      if (output_free) data_q <= in_data_i[in_idx_i];
      else spare_q <= in_data_i[in_idx_i];
    end
  end

  if (N < 1 || Width < 1) begin : gen_bad_size
    $error("ns_skid_mux: N and Width must be at least 1");
  end

  `NS_ASSERT(spare_only_with_output, ready_q || valid_q)
  `NS_ASSERT(idx_in_range, !in_valid_i || 32'(in_idx_i) < N)

endmodule
