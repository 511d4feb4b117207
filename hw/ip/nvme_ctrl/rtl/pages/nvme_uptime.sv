// SPDX-License-Identifier: Apache-2.0

// Time for the host: Power On Hours, and the Timestamp feature (NVMe 1.4, 5.21.1.14).
//
// Time is a number of clock cycles, counted outside the gated clock. Hours and milliseconds are
// computed by division on demand, a bit a cycle, so that nothing runs while the controller is idle.
// A Timestamp is the value set by the host, or 0 at the last controller reset, plus the
// milliseconds since.
`include "ns_assert.svh"

module nvme_uptime #(
  /// Clock in kHz.
  parameter int unsigned ClockKhz = 250_000
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// Cycles since power-on, counted on the ungated clock.
  input  logic [63:0] cycles_i,

  /// Controller reset: the Timestamp is 0.
  input  logic        reset_i,
  /// The host sets the Timestamp.
  input  logic        set_i,
  /// To this, in ms.
  input  logic [47:0] set_value_i,

  /// Compute the time. Stays 1 until done.
  input  logic        req_i,
  /// Hours since power-on; otherwise the Timestamp.
  input  logic        hours_i,
  /// Done.
  output logic        done_o,
  /// Hours, if requested.
  output logic [47:0] hours_o,
  /// Data structure of the Timestamp, if requested (figure 291).
  output logic [63:0] timestamp_o
);

  localparam logic [63:0] Hour = 64'(ClockKhz) * 64'd3_600_000;
  localparam int unsigned DivisorBits = unsigned'($clog2(Hour + 1));

  // Start of the Timestamp.
  logic [63:0] base_cycles_q;
  logic [47:0] base_q;
  logic set_by_host_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      base_cycles_q <= '0;
      base_q <= '0;
      set_by_host_q <= 1'b0;
    end else if (reset_i || set_i) begin
      base_cycles_q <= cycles_i;
      base_q <= set_i ? set_value_i : '0;
      set_by_host_q <= set_i;
    end
  end

  // Long division: each step shifts one bit of the dividend into the remainder and one bit of the
  // quotient in.
  typedef enum logic [1:0] {
    StIdle,
    StDivide,
    StDone
  } state_e;

  state_e state_q;
  logic [5:0] step_q;
  logic [63:0] dividend_q;  // dividend from the left, quotient from the right
  logic [DivisorBits-1:0] remainder_q, divisor_q;
  logic [DivisorBits:0] shifted, difference;

  assign shifted = {remainder_q, dividend_q[63]};
  assign difference = shifted - {1'b0, divisor_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle:   if (req_i) state_q <= StDivide;
        StDivide: if (step_q == '1) state_q <= StDone;
        default:  state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle && req_i) begin
      step_q <= '0;
      remainder_q <= '0;
      dividend_q <= hours_i ? cycles_i : cycles_i - base_cycles_q;
      divisor_q <= hours_i ? DivisorBits'(Hour) : DivisorBits'(ClockKhz);
    end else if (state_q == StDivide) begin
      step_q <= step_q + 1'b1;
      dividend_q <= {dividend_q[62:0], shifted >= {1'b0, divisor_q}};
      remainder_q <= (shifted >= {1'b0, divisor_q}) ? difference[DivisorBits-1:0] : shifted[DivisorBits-1:0];
    end else if (state_q == StDone) begin
      hours_o <= dividend_q[47:0];
      // Attributes: it never stopped (Synch 0), and its origin (Timestamp Origin).
      timestamp_o <= {8'b0, 4'b0, 2'b0, set_by_host_q, 1'b0, base_q + dividend_q[47:0]};
    end
  end

  assign done_o = state_q == StDone;

  logic unused;
  assign unused = ^{difference[DivisorBits], dividend_q[63:48]};

  `NS_ASSERT(request_stays, state_q == StIdle || req_i)

endmodule
