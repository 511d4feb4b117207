// SPDX-License-Identifier: Apache-2.0

// Checks one ready/valid channel in a test bench: once valid, it stays valid and unchanged until it
// is accepted.
`include "ns_assert.svh"

module stable_check #(
  /// Bits of the payload.
  parameter int unsigned Width = 1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic             ready_i,
  /// Payload.
  input logic [Width-1:0] data_i
);

  logic waiting_q;
  logic [Width-1:0] data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waiting_q <= 1'b0;
      data_q <= '0;
    end else begin
      waiting_q <= valid_i && !ready_i;
      data_q <= data_i;
    end
  end

  `NS_ASSERT(valid_held, !waiting_q || valid_i)
  `NS_ASSERT(payload_held, !waiting_q || data_i == data_q)

endmodule
