// SPDX-License-Identifier: Apache-2.0

// Reset of the function, and power failure: completes started writes, then resets all other blocks.
//
// A request (function level reset, hot reset, or power failure) first stops the device (`stop_o`).
// From that cycle on the host counts as gone, and no access to the media starts any more. Once
// started writes have delivered all their data to the memory ports, the function is in reset
// (`reset_o`). Meanwhile the memory ports collect outstanding responses (`cut_i` of
// nearside_channel). `done_o` reports the end; the function stays in reset until the request is
// withdrawn.
//
// Each of the two waits ends after `Timeout` cycles at the latest: a memory that does not respond
// cannot block the reset. Its port continues to collect, and answers accesses with errors until all
// responses have arrived. A burst that such a memory has accepted in part loses the strobes of its
// remaining beats. That is the only way in which a logical block can be torn.
//
// Runs on the free-running clock, and is reset with the memory controllers only.
`include "ns_assert.svh"

module nearside_reset #(
  /// Cycles of each wait.
  parameter int unsigned Timeout = 250_000
) (
  input  logic clk_i,
  /// Power-on reset.
  input  logic rst_ni,
  /// Function level reset or failing power. 1 until `done_o`, at least.
  input  logic request_i,
  /// A started write to the media has data to come. From registers.
  input  logic started_i,
  /// Memory responses are outstanding. From registers.
  input  logic open_i,
  /// The host counts as gone, and no access starts.
  output logic stop_o,
  /// The function is in reset, after a request.
  output logic reset_o,
  /// Reset of the function: then, and at power-on. From a register, since it is asynchronous.
  output logic rst_no,
  /// All started transactions have ended.
  output logic done_o,
  /// A reset is in progress, or a request has changed.
  output logic busy_o
);

  /// Cycles of reset: enough for the function's clocks to be stopped and started.
  localparam int unsigned ResetCycles = 8;
  localparam int unsigned TimerBits = unsigned'($clog2(Timeout + 1));

  typedef enum logic [1:0] {
    StRunning,
    StStopping,
    StResetting,
    StDone
  } state_e;

  state_e state_q;
  logic stop_q, reset_q, done_q;
  // A simulation starts with the reset released, so that blocks with a stopped clock see it fall.
  logic rst_nq = 1'b1;
  logic [TimerBits-1:0] timer_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StRunning;
      stop_q  <= 1'b0;
      reset_q <= 1'b0;
      rst_nq  <= 1'b0;
      done_q  <= 1'b0;
      timer_q <= '0;
    end else begin
      timer_q <= timer_q + 1'b1;
      unique case (state_q)
        StRunning: begin
          timer_q <= '0;
          rst_nq  <= 1'b1;
          if (request_i) begin
            state_q <= StStopping;
            stop_q  <= 1'b1;
          end
        end
        StStopping: begin
          // In the first cycle an address may just have passed that is not counted yet.
          if ((!started_i && timer_q != '0) || timer_q == TimerBits'(Timeout)) begin
            state_q <= StResetting;
            reset_q <= 1'b1;
            rst_nq  <= 1'b0;
            timer_q <= '0;
          end
        end
        StResetting: begin
          if ((!open_i && timer_q >= TimerBits'(ResetCycles)) || timer_q == TimerBits'(Timeout)) begin
            state_q <= StDone;
            done_q  <= 1'b1;
          end
        end
        default: begin
          if (!request_i) begin
            state_q <= StRunning;
            stop_q  <= 1'b0;
            reset_q <= 1'b0;
            rst_nq  <= 1'b1;
            done_q  <= 1'b0;
          end
        end
      endcase
    end
  end

  assign stop_o = stop_q;
  assign reset_o = reset_q;
  assign rst_no = rst_nq;
  assign done_o = done_q;
  assign busy_o = state_q == StRunning ? request_i || !rst_nq : !(state_q == StDone && request_i);

  if (Timeout < 2 * ResetCycles) begin : gen_bad_timeout
    $error("nearside_reset: Timeout must be at least %0d", 2 * ResetCycles);
  end

  `NS_ASSERT(stopped_before_reset, !reset_q || stop_q)
  `NS_ASSERT(resets_agree, !(reset_q && rst_nq) && (reset_q || rst_nq || state_q == StRunning))

endmodule
