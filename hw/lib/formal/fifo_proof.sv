// SPDX-License-Identifier: Apache-2.0

// ns_fifo with its properties, also after a flush at any time.
module fifo_proof #(
  /// Capacity in words.
  parameter int unsigned Depth = 4,
  /// Variant.
  parameter string Style = "reg",
  /// Cycles until a word is available.
  parameter int unsigned Latency = 1
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       flush_i,
  input logic       in_valid_i,
  input logic [3:0] in_data_i,
  input logic       out_ready_i,
  input logic       pick_i
);

  logic in_ready, out_valid;
  logic [3:0] out_data;

  ns_fifo #(
    .Width(4),
    .Depth(Depth),
    .Style(Style)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i,
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data),
    .count_o    ()
  );

  stream_order #(
    .Width  (4),
    .Depth  (Depth),
    .Latency(Latency)
  ) u_properties (
    .clk_i,
    .rst_ni,
    .flush_i,
    .in_valid_i,
    .in_ready_i (in_ready),
    .in_data_i,
    .out_valid_i(out_valid),
    .out_ready_i,
    .out_data_i (out_data),
    .pick_i
  );

endmodule
