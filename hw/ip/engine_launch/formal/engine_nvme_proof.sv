// SPDX-License-Identifier: Apache-2.0

// engine_nvme between a controller that sends and stops commands at any time, and an engine that
// validates them one cycle later and runs for any time.
//
// One bit of a command's entry says whether the engine rejects it. Shown: one command at a time,
// each completed once, in its slot. A rejected command never starts. The completion carries the
// engine's status, and `stopped` only by the engine's word. A stop reaches the command that it
// names and no later one. Only engine and controller can delay a command.
`include "ns_assert.svh"

module engine_nvme_proof
  import nvme_pkg::*;
(
  input logic       clk_i,
  input logic       rst_ni,
  input logic       cmd_valid_i,
  input logic [1:0] slot_i,
  input logic       invalid_i,
  input logic       stop_i,
  input logic [1:0] stop_slot_i,
  input logic       ready_i,
  input logic       end_i,
  input logic       stopped_i,
  input logic       fault_i,
  input logic       dw0_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  nvme_engine_if nvme ();
  engine_cmd_t cmd;
  status_t refused, status;
  logic busy, request, stop, finish, refused_q;

  assign nvme.cmd = '{slot: SlotWidth'(slot_i), sqe: 512'(invalid_i), default: '0};
  assign nvme.cmd_valid = cmd_valid_i;
  assign nvme.stop_slot = SlotWidth'(stop_slot_i);
  assign nvme.stop_valid = stop_i;
  assign nvme.done_ready = ready_i;

  always_ff @(posedge clk_i) refused_q <= cmd.sqe[0];
  assign refused = generic_status(refused_q ? ScInvalidField : ScSuccess);
  assign status = data_status(fault_i ? DataWriteFault : DataOk, 1'b0);
  assign finish = end_i && request;

  engine_nvme u_nvme (
    .clk_i,
    .rst_ni,
    .busy_o   (busy),
    .s_nvme   (nvme),
    .cmd_o    (cmd),
    .refused_i(refused),
    .request_o(request),
    .stop_o   (stop),
    .done_i   (finish),
    .stopped_i(stopped_i),
    .status_i (status),
    .dw0_i    (32'(dw0_i))
  );

  `NS_ASSUME(stopped_if_requested, !stopped_i || stop)

  // The held command.
  typedef struct packed {
    logic       wrong;
    logic [1:0] slot;
  } kept_t;
  kept_t kept_q;
  logic held_q, stop_requested_q, ended_q, stopped_q, fault_q, dw0_q, accept, complete;
  logic [2:0] idle_q;  // cycles in which neither side was requested
  assign accept = nvme.cmd_valid && nvme.cmd_ready;
  assign complete = nvme.done_valid && nvme.done_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {held_q, stop_requested_q, ended_q, idle_q} <= '0;
    end else begin
      held_q  <= (held_q && !complete) || accept;
      stop_requested_q <= held_q && (stop_requested_q || (stop_i && stop_slot_i == kept_q.slot));
      ended_q <= held_q && !complete && (ended_q || finish);
      idle_q  <= (!held_q || request || nvme.done_valid) ? '0 : idle_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) kept_q <= '{wrong: invalid_i, slot: slot_i};
    if (finish) {stopped_q, fault_q, dw0_q} <= {stopped_i, fault_i, dw0_i};
  end

  `NS_ASSERT(one_at_a_time, !accept || !held_q)
  `NS_ASSERT(busy_while_held, busy == held_q)
  `NS_ASSERT(rejected_never_starts, !request || (held_q && !kept_q.wrong && !ended_q))
  `NS_ASSERT(stop_matches_command, !request || stop == stop_requested_q)
  `NS_ASSERT(completes_held_command,
             !nvme.done_valid || (held_q && nvme.done.slot == SlotWidth'(kept_q.slot)))
  `NS_ASSERT(completes_after_end, !nvme.done_valid || (kept_q.wrong ? !ended_q : ended_q))
  `NS_ASSERT(
      rejected_status,
      !(nvme.done_valid && kept_q.wrong) || (!nvme.done.stopped && nvme.done.status == generic_status(
      ScInvalidField) && nvme.done.dw0 == '0))
  `NS_ASSERT(stopped_by_the_engines_word,
             !(nvme.done_valid && !kept_q.wrong) || nvme.done.stopped == stopped_q)
  `NS_ASSERT(completion_status,
             !(nvme.done_valid && ended_q && !stopped_q) || (nvme.done.status == data_status(
             fault_q ? DataWriteFault : DataOk, 1'b0) && nvme.done.dw0 == 32'(dw0_q)))
  `NS_ASSERT(makes_progress, idle_q <= 3'd3)

endmodule
