// engine_nvme between a controller that gives and stops commands when it likes, and an engine that judges them a cycle after it sees
// them, and takes as long as it likes.
//
// What a command is about is one bit of its entry: the engine refuses it or not. Shown: one command at a time, each answered once, in its
// slot; one that is refused never begins; the answer is what the engine has said, `stopped` only by its word; a stop reaches the
// command that it names and no later one; nothing but engine and controller can hold a command up.
`include "ns_assert.svh"

module engine_nvme_proof
  import nvme_pkg::*;
(
  input logic       clk_i,
  input logic       rst_ni,
  input logic       give_i,
  input logic [1:0] slot_i,
  input logic       wrong_i,
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
  logic busy, want, stop, finish, refused_q;

  assign nvme.cmd = '{slot: SlotWidth'(slot_i), sqe: 512'(wrong_i), default: '0};
  assign nvme.cmd_valid = give_i;
  assign nvme.stop_slot = SlotWidth'(stop_slot_i);
  assign nvme.stop_valid = stop_i;
  assign nvme.done_ready = ready_i;

  always_ff @(posedge clk_i) refused_q <= cmd.sqe[0];
  assign refused = generic_status(refused_q ? ScInvalidField : ScSuccess);
  assign status = data_status(fault_i ? DataWriteFault : DataOk, 1'b0);
  assign finish = end_i && want;

  engine_nvme u_nvme (
    .clk_i,
    .rst_ni,
    .busy_o   (busy),
    .s_nvme   (nvme),
    .cmd_o    (cmd),
    .refused_i(refused),
    .request_o(want),
    .stop_o   (stop),
    .done_i   (finish),
    .stopped_i(stopped_i),
    .status_i (status),
    .dw0_i    (32'(dw0_i))
  );

  `NS_ASSUME(stopped_if_asked, !stopped_i || stop)

  // The command that is here.
  typedef struct packed {
    logic       wrong;
    logic [1:0] slot;
  } kept_t;
  kept_t kept_q;
  logic here_q, asked_q, ended_q, stopped_q, fault_q, dw0_q, take, answer;
  logic [2:0] idle_q;  // cycles in which neither side was asked for anything
  assign take = nvme.cmd_valid && nvme.cmd_ready;
  assign answer = nvme.done_valid && nvme.done_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {here_q, asked_q, ended_q, idle_q} <= '0;
    end else begin
      here_q  <= (here_q && !answer) || take;
      asked_q <= here_q && (asked_q || (stop_i && stop_slot_i == kept_q.slot));
      ended_q <= here_q && !answer && (ended_q || finish);
      idle_q  <= (!here_q || want || nvme.done_valid) ? '0 : idle_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) kept_q <= '{wrong: wrong_i, slot: slot_i};
    if (finish) {stopped_q, fault_q, dw0_q} <= {stopped_i, fault_i, dw0_i};
  end

  `NS_ASSERT(one_at_a_time, !take || !here_q)
  `NS_ASSERT(busy_with_it, busy == here_q)
  `NS_ASSERT(refused_never_begins, !want || (here_q && !kept_q.wrong && !ended_q))
  `NS_ASSERT(stop_is_its_own, !want || stop == asked_q)
  `NS_ASSERT(answers_what_it_has,
             !nvme.done_valid || (here_q && nvme.done.slot == SlotWidth'(kept_q.slot)))
  `NS_ASSERT(answers_when_it_has_ended, !nvme.done_valid || (kept_q.wrong ? !ended_q : ended_q))
  `NS_ASSERT(
      refused_is_told,
      !(nvme.done_valid && kept_q.wrong) || (!nvme.done.stopped && nvme.done.status == generic_status(
      ScInvalidField) && nvme.done.dw0 == '0))
  `NS_ASSERT(stopped_by_the_engines_word,
             !(nvme.done_valid && !kept_q.wrong) || nvme.done.stopped == stopped_q)
  `NS_ASSERT(end_is_told,
             !(nvme.done_valid && ended_q && !stopped_q) || (nvme.done.status == data_status(
             fault_q ? DataWriteFault : DataOk, 1'b0) && nvme.done.dw0 == 32'(dw0_q)))
  `NS_ASSERT(goes_on, idle_q <= 3'd3)

endmodule
