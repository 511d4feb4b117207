// Reset of the function, and what happens when the power fails: ends what has been begun, then resets everything else.
//
// A request (function level reset, hot reset, or failing power) first stops the device (`stop_o`): its host is dead from
// that cycle on, and no access to the media begins any more. Once the writes that had begun have given all their data to
// the memory ports, the function is in reset (`reset_o`), while the memory ports collect what the memories still owe
// (`cut_o`). `done_o` says that nothing is left; the function stays in reset until the request is taken back.
// Each of the two waits ends after `Timeout` cycles in any case: a memory that does not answer cannot hold up the reset.
// Its port then goes on collecting, and answers with errors until it has got everything. A burst that it has taken a part of by
// then loses the strobes of its rest: the only way in which a logical block can be torn.
// Runs on the free clock, and is reset with the memory controllers only.
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
  /// A write to the media that has begun has data to come. From registers.
  input  logic begun_i,
  /// The memories owe answers. From registers.
  input  logic open_i,
  /// The host is dead, and nothing begins.
  output logic stop_o,
  /// The function is in reset, after a request.
  output logic reset_o,
  /// Its reset: then, and that of power-on. From a register, since it is asynchronous.
  output logic rst_no,
  /// All that had begun has ended.
  output logic done_o,
  /// It works, or a request has come or gone.
  output logic busy_o
);

  /// Cycles of reset: enough for the function's clocks to be stopped and started.
  localparam int unsigned ResetCycles = 8;
  localparam int unsigned TimerBits = unsigned'($clog2(Timeout + 1));

  typedef enum logic [1:0] {
    StRun,
    StStop,
    StReset,
    StDone
  } state_e;

  state_e state_q;
  logic stop_q, reset_q, done_q;
  // A simulation begins with it released, so that blocks whose clock is stopped see it fall.
  logic rst_nq = 1'b1;
  logic [TimerBits-1:0] timer_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StRun;
      stop_q  <= 1'b0;
      reset_q <= 1'b0;
      rst_nq  <= 1'b0;
      done_q  <= 1'b0;
      timer_q <= '0;
    end else begin
      timer_q <= timer_q + 1'b1;
      unique case (state_q)
        StRun: begin
          timer_q <= '0;
          rst_nq  <= 1'b1;
          if (request_i) begin
            state_q <= StStop;
            stop_q  <= 1'b1;
          end
        end
        StStop: begin
          // In its first cycle an address may just have passed that is not counted yet.
          if ((!begun_i && timer_q != '0) || timer_q == TimerBits'(Timeout)) begin
            state_q <= StReset;
            reset_q <= 1'b1;
            rst_nq  <= 1'b0;
            timer_q <= '0;
          end
        end
        StReset: begin
          if ((!open_i && timer_q >= TimerBits'(ResetCycles)) || timer_q == TimerBits'(Timeout)) begin
            state_q <= StDone;
            done_q  <= 1'b1;
          end
        end
        default: begin
          if (!request_i) begin
            state_q <= StRun;
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
  assign busy_o = state_q == StRun ? request_i || !rst_nq : !(state_q == StDone && request_i);

  if (Timeout < 2 * ResetCycles) begin : gen_bad_timeout
    $error("nearside_reset: Timeout must be at least 16");
  end

  `NS_ASSERT(stopped_before_reset, !reset_q || stop_q)
  `NS_ASSERT(resets_agree, !(reset_q && rst_nq) && (reset_q || rst_nq || state_q == StRun))

endmodule
