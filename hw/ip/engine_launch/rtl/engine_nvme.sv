// SPDX-License-Identifier: Apache-2.0

// NVMe I/O commands of an engine that performs one at a time: holds the command, and completes it.
//
// The engine validates the held command and returns an error status. Without an error the command
// becomes a job for engine_launch.
`include "ns_assert.svh"

module engine_nvme
  import nvme_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  /// From registers: a command is held.
  output logic busy_o,

  /// The controller.
  nvme_engine_if.engine s_nvme,

  /// The command, until it is completed.
  output engine_cmd_t cmd_o,
  /// Its error status, within two cycles; ScSuccess: none.
  input  status_t     refused_i,

  /// To engine_launch: the command's job.
  output logic        request_o,
  /// It is to end early.
  output logic        stop_o,
  /// The job ends in this cycle.
  input  logic        done_i,
  /// With done_i: it was stopped.
  input  logic        stopped_i,
  /// With done_i, if it was not stopped: its status.
  input  status_t     status_i,
  /// With done_i: dword 0 of its completion queue entry.
  input  logic [31:0] dw0_i
);

  typedef enum logic [2:0] {
    StIdle,
    StValidate,  // the engine validates it
    StStatus,    // its error status is registered
    StDecide,
    StRun,
    StComplete
  } state_e;

  state_e state_q;
  engine_cmd_t cmd_q;
  logic stop_q, stopped_q;
  status_t status_q;
  logic [31:0] dw0_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      stop_q  <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle: if (s_nvme.cmd_valid) state_q <= StValidate;
        StValidate: state_q <= StStatus;
        StStatus: state_q <= StDecide;
        StDecide: state_q <= (status_q.sct == '0 && status_q.sc == ScSuccess) ? StRun : StComplete;
        StRun: if (done_i) state_q <= StComplete;
        default: if (s_nvme.done_ready) state_q <= StIdle;
      endcase
      if (state_q == StIdle) stop_q <= 1'b0;
      else if (s_nvme.stop_valid && s_nvme.stop_slot == cmd_q.slot) stop_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) cmd_q <= s_nvme.cmd;
    if (state_q == StStatus) begin
      stopped_q <= 1'b0;
      status_q <= refused_i;
      dw0_q <= '0;
    end else if (done_i) begin
      stopped_q <= stopped_i;
      status_q <= status_i;
      dw0_q <= dw0_i;
    end
  end

  assign cmd_o = cmd_q;
  assign request_o = state_q == StRun;
  assign stop_o = stop_q;
  assign busy_o = state_q != StIdle;
  assign s_nvme.cmd_ready = state_q == StIdle;
  assign s_nvme.done_valid = state_q == StComplete;
  assign s_nvme.done = '{
          slot: cmd_q.slot,
          stopped: stopped_q && stop_q,
          status: status_q,
          dw0: stopped_q ? '0 : dw0_q
      };

  `NS_ASSERT(done_while_running, !done_i || state_q == StRun)
  `NS_ASSERT(stopped_if_requested, !done_i || !stopped_i || stop_q)

endmodule
