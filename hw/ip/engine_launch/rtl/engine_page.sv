// SPDX-License-Identifier: Apache-2.0

// Commands of the command page for an engine that performs one at a time: holds the command, and
// reports its result.
//
// A command's first 8 bytes are 0, its arguments follow, 8 bytes each, little-endian, and the rest
// is 0. It becomes a job for engine_launch once the writes before it have been answered.
`include "ns_assert.svh"

module engine_page
  import command_page_pkg::*;
#(
  /// Arguments, 1 to 7.
  parameter int unsigned NumArgs = 3
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  /// From registers: a command is held.
  output logic                     busy_o,

  /// The page.
  command_page_if.engine           s_page,

  /// To engine_launch: the command's job.
  output logic                     request_o,
  /// Its arguments.
  output logic [NumArgs-1:0][63:0] args_o,
  /// Bytes that must be 0 are not.
  output logic                     malformed_o,
  /// The job ends in this cycle.
  input  logic                     done_i,
  /// With done_i: its return value,
  input  logic [31:0]              result_i,
  /// and its output.
  input  logic [63:0]              value_i
);

  typedef enum logic [1:0] {
    StIdle,
    StCheck,
    StRun,
    StComplete
  } state_e;

  state_e state_q;
  logic [511:0] cmd_q;
  logic malformed_q;
  page_done_t done_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (s_page.cmd_valid && s_page.settled) state_q <= StCheck;
        StCheck:  state_q <= StRun;
        StRun:  if (done_i) state_q <= StComplete;
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      cmd_q <= s_page.cmd;
      done_q.line <= s_page.line;
    end
    malformed_q <= cmd_q[63:0] != '0 || (cmd_q >> (64 * (NumArgs + 1))) != '0;
    if (done_i) begin
      done_q.result <= result_i;
      done_q.value  <= value_i;
    end
  end

  assign request_o = state_q == StRun;
  assign args_o = cmd_q[64+:64*NumArgs];
  assign malformed_o = malformed_q;
  assign busy_o = state_q != StIdle;
  assign s_page.cmd_ready = state_q == StIdle && s_page.settled;
  assign s_page.done = done_q;
  assign s_page.done_valid = state_q == StComplete;

  if (NumArgs < 1 || NumArgs > 7) begin : gen_bad_args
    $error("engine_page: NumArgs must be 1 to 7");
  end

  `NS_ASSERT(done_while_running, !done_i || state_q == StRun)

endmodule
