// SPDX-License-Identifier: Apache-2.0

// Bandwidth cap: a token bucket of two beats, kept as a debt that beats add to and `rate_i` pays
// back.
//
// A beat may pass while the debt is at most two beats. So no cycle's payment is lost as long as
// beats wait, and the rate is met exactly. A rate of 0 is no cap.
`include "ns_assert.svh"

module nvm_delay_cap
  import nvm_delay_pkg::*;
#(
  /// Bytes of a beat.
  parameter int unsigned BeatBytes = 64
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Bytes per cycle, Q8.16.
  input  rate_t rate_i,
  /// A beat may pass.
  output logic                 allowed_o,
  /// A beat passes.
  input  logic                 beat_i,
  /// Its size, log2 of bytes.
  input  logic [2:0]           size_i,
  /// The debt is not 0.
  output logic                 busy_o
);

  localparam int unsigned DebtWidth = RateFracBits + $clog2(BeatBytes) + 2;
  localparam logic [DebtWidth-1:0] Depth = DebtWidth'(2 * BeatBytes) << RateFracBits;

  logic [DebtWidth-1:0] debt_q, debt_left;

  assign debt_left = (32'(debt_q) > 32'(rate_i)) ? debt_q - DebtWidth'(rate_i) : '0;
  assign allowed_o = debt_q <= Depth;
  assign busy_o = debt_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) debt_q <= '0;
    else if (rate_i == '0) debt_q <= '0;
    else if (beat_i) debt_q <= debt_left + (DebtWidth'(1) << (RateFracBits + 32'(size_i)));
    else if (busy_o) debt_q <= debt_left;
  end

  `NS_ASSERT(debt_in_range, 32'(debt_q) <= 32'(Depth) + 32'(BeatBytes << RateFracBits))

endmodule
