// SPDX-License-Identifier: Apache-2.0

// Keep Alive (NVMe 1.4, 5.16, 5.21.1.15, 7.12): a watchdog over the host. Only Keep Alive commands
// restart it (CTRATT.TBKAS 0).
//
// The host sets the timeout in milliseconds. It is rounded up to a multiple of 100, the granularity
// (KAS 1), and converted to cycles, a bit a cycle; only Set Features waits for that. The deadline
// is a number of cycles since power-on, counted outside the gated clock. The clock may stop until
// then: `busy_o` wakes it at the deadline. The watchdog is off while the timeout is 0, as after a
// reset. It is also off while commands are not fetched: before CSTS.RDY, after CC.SHN, after a
// fatal error. The 95 largest values are refused, because they would be rounded up beyond 32 bits.
`include "ns_assert.svh"

module nvme_keep_alive
  import nvme_pkg::*;
#(
  /// Clock in kHz.
  parameter int unsigned ClockKhz = 250_000
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// From registers, including those of cycles_i: a further clock edge could change the state
  /// without new input.
  output logic        busy_o,
  /// Cycles since power-on. From a register on the ungated clock.
  input  logic [63:0] cycles_i,
  /// Controller reset: the timeout is 0.
  input  logic        reset_i,
  /// Commands are fetched.
  input  logic        active_i,

  /// Requests of the host. The timer restarts when a Keep Alive command, or one that has set the
  /// timeout, completes.
  input  to_keep_alive_t   admin_i,
  /// What became of it.
  output from_keep_alive_t admin_o,

  /// From a register: the timer runs.
  output logic        armed_o,
  /// From a register: the deadline, compared with cycles_i.
  output logic [63:0] deadline_o,
  /// The timer has expired, for one cycle.
  output logic        expired_o
);

  localparam logic [6:0] Granularity = 7'd100;  // ms
  localparam int unsigned ClockBits = unsigned'($clog2(ClockKhz + 1));
  localparam int unsigned PeriodBits = 32 + ClockBits;

  typedef enum logic [2:0] {
    StIdle,
    StDivide,    // the rest beyond a multiple
    StRound,
    StMultiply,  // by the clock
    StDone
  } state_e;

  state_e state_q;
  logic [4:0] step_q;
  logic [31:0] rotate_q;  // rotates
  logic [6:0] remainder_q;
  logic [7:0] shifted;
  logic [32:0] rounded;
  logic [31:0] timeout_q;
  logic [PeriodBits-1:0] period_q;  // of timeout_q; in StMultiply, of a part of it
  logic refused_q;

  assign shifted = {remainder_q, rotate_q[31]};
  assign rounded = 33'(rotate_q) + ((remainder_q == '0) ? '0 : 33'(Granularity - remainder_q));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      timeout_q <= '0;
    end else begin
      unique case (state_q)
        StIdle:     if (admin_i.set) state_q <= StDivide;
        StDivide:   if (step_q == '1) state_q <= StRound;
        StRound:    state_q <= rounded[32] ? StDone : StMultiply;
        StMultiply: if (step_q == '1) state_q <= StDone;
        default:    state_q <= StIdle;
      endcase
      if (reset_i) timeout_q <= '0;
      else if (state_q == StDone && !refused_q) timeout_q <= rotate_q;
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StIdle: begin
        rotate_q <= admin_i.value;
        remainder_q <= '0;
        step_q <= '0;
      end
      StDivide: begin
        rotate_q <= {rotate_q[30:0], rotate_q[31]};
        remainder_q <= (shifted >= 8'(Granularity)) ? 7'(shifted - 8'(Granularity)) : shifted[6:0];
        step_q <= step_q + 1'b1;
      end
      StRound: begin
        rotate_q <= rounded[31:0];
        refused_q <= rounded[32];
        if (!rounded[32]) period_q <= '0;
      end
      StMultiply: begin
        rotate_q   <= {rotate_q[30:0], rotate_q[31]};
        period_q <= {period_q[PeriodBits-2:0], 1'b0} + (rotate_q[31] ? PeriodBits'(ClockKhz) : '0);
        step_q   <= step_q + 1'b1;
      end
      default: ;
    endcase
  end

  assign admin_o = '{done: state_q == StDone, refused: refused_q, timeout: timeout_q};

  // The time.
  logic armed_q, late_q, deadline_passed;
  logic [63:0] deadline_q;

  assign deadline_passed = armed_q && cycles_i >= deadline_q;
  assign expired_o = late_q && armed_q && active_i && !admin_i.restart;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      armed_q <= 1'b0;
      late_q  <= 1'b0;
    end else begin
      if (!active_i || expired_o) armed_q <= 1'b0;
      else if (admin_i.restart) armed_q <= timeout_q != '0;
      late_q <= deadline_passed && !admin_i.restart && !expired_o;
    end
  end

  always_ff @(posedge clk_i) if (admin_i.restart) deadline_q <= cycles_i + 64'(period_q);

  assign armed_o = armed_q;
  assign deadline_o = deadline_q;
  assign busy_o = state_q != StIdle || deadline_passed || late_q || (armed_q && !active_i);

  if (ClockKhz < 1) begin : gen_bad_clock
    $error("nvme_keep_alive: ClockKhz must be at least 1");
  end

  `NS_ASSERT(request_stays, state_q inside {StIdle, StDone} || admin_i.set)
  `NS_ASSERT(whole_units, !admin_i.restart || timeout_q % 32'(Granularity) == '0)
  `NS_ASSERT(period_is_known, !admin_i.restart || state_q == StIdle)

endmodule
