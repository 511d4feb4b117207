// SPDX-License-Identifier: Apache-2.0

// nvme_fused_pairing: each received command leaves once: as a data command or engine command,
// unchanged, or as a completion with its slot and the documented status. Only a first command that
// is followed by another one is kept. It leaves with its partner, or at a command that is no
// partner. It also leaves when its queue is deleted, fetching has ended, or the time is over. A
// valid pair leaves as two consecutive data commands that are marked; nothing else is marked. An
// Abort ends the kept command that it names, unless that has an error, and no other. All waits are
// bounded: of a command, of an Abort, and of a kept command after its timeout. Without commands and
// Aborts it ends within 9 cycles, otherwise before the fourth command.
//
// Three queues, eight slots, commands of two sizes at two addresses, otherwise arbitrary; queues
// and fetching change at any time. Assumptions: a command stays until it is accepted, and its
// attributes are consistent (nvme_decode). Slots of kept commands are not reused (nvme_slot_table).
// An Abort stays until its answer, and the next one does not follow in the next cycle (nvme_abort).
`include "ns_assert.svh"

module fused_pairing_proof
  import nvme_pkg::*;
(
  input logic       clk_i,
  input logic       rst_ni,
  input logic       enable_i,
  input logic [2:0] sq_valid_i,
  input logic [1:0] cmd_qid_i,
  input logic [1:0] cmd_fuse_i,
  input logic       cmd_more_i,
  input logic [7:0] cmd_sc_i,
  input logic       cmd_data_op_i,
  input logic       cmd_engine_i,
  input logic [2:0] cmd_slot_i,
  input data_op_e   cmd_op_i,
  input logic [1:0] cmd_fields_i,
  input logic       cmd_valid_i,
  input logic       data_ready_i,
  input logic       cpl_ready_i,
  input logic       abort_valid_i,
  input logic [1:0] abort_qid_i,
  input logic [2:0] abort_slot_i,
  input logic       abort_current_i,
  input logic       acre_i,
  input logic [1:0] watched_i
);

  localparam int unsigned Cycles = 3;
  localparam logic [1:0] FuseFirst = 2'b01;
  localparam logic [1:0] FuseSecond = 2'b10;

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // One queue, arbitrary, is watched all the time: how long its kept command waits.
  logic [1:0] watched_q;
  always_ff @(posedge clk_i) if (!reset_q) watched_q <= watched_i;
  always_comb assume (watched_i != 2'd3);

  // The host accepts Command Interrupted, or not.
  logic acre_q;
  always_ff @(posedge clk_i) if (!reset_q) acre_q <= acre_i;

  // Two bits of the remaining fields are free.
  data_cmd_t cmd;
  always_comb begin
    cmd = '0;
    cmd.slot = {5'd0, cmd_slot_i};
    cmd.op = cmd_op_i;
    cmd.bytes = {'0, cmd_fields_i[0], 9'd0};
    cmd.mem_addr = {'0, cmd_fields_i[1], 9'd0};
  end

  logic [2:0] pending;
  logic cmd_ready, data_valid, data_first_o, data_second_o, cpl_valid;
  logic abort_ready, abort_found, engine_valid;
  data_cmd_t data;
  cpl_t cpl;

  nvme_fused_pairing #(
    .NumQueues(3),
    .Cycles   (Cycles)
  ) u_fused_pairing (
    .clk_i,
    .rst_ni,
    .elapsed_i     (32'd1),
    .kept_count_o  (),
    .remaining_o   (),
    .enable_i,
    .acre_i        (acre_q),
    .sq_valid_i,
    .pending_o     (pending),
    .cmd_qid_i     ({5'b0, cmd_qid_i}),
    .cmd_fuse_i,
    .cmd_more_i,
    .cmd_sc_i,
    .cmd_data_op_i,
    .cmd_engine_i,
    .cmd_i         (cmd),
    .cmd_valid_i,
    .cmd_ready_o   (cmd_ready),
    .abort_valid_i,
    .abort_qid_i   ({5'b0, abort_qid_i}),
    .abort_slot_i  ({5'b0, abort_slot_i}),
    .abort_current_i,
    .abort_ready_o (abort_ready),
    .abort_found_o (abort_found),
    .engine_valid_o(engine_valid),
    .data_o        (data),
    .data_first_o,
    .data_second_o,
    .data_valid_o  (data_valid),
    .data_ready_i,
    .cpl_o         (cpl),
    .cpl_valid_o   (cpl_valid),
    .cpl_ready_i
  );

  // Kept commands, by queue, and their age; whether their queue or fetching was off meanwhile.
  typedef struct packed {
    logic [7:0] sc;
    data_cmd_t  cmd;
  } first_t;
  first_t [2:0] first_q;
  first_t partner_q;  // first command of the pair whose second one is here
  logic [2:0] kept_q, orphaned_q;
  logic [2:0][3:0] age_q;
  logic pair_q;   // the first command of a pair has left as a data command; the second one follows
  logic had_partner_q;  // the command that is here has had a partner

  logic data_fire, cpl_fire, cmd_fire, keep_fire, cmd_as_data, cmd_as_cpl, cmd_leaves;
  logic [2:0] first_leaves, data_first, cpl_first;
  assign data_fire = data_valid && data_ready_i;
  assign cpl_fire = cpl_valid && cpl_ready_i;
  assign cmd_fire = cmd_valid_i && cmd_ready;
  for (genvar q = 0; q < 3; q++) begin : gen_first
    assign data_first[q] = kept_q[q] && data_valid && data.slot == first_q[q].cmd.slot;
    assign cpl_first[q] = kept_q[q] && cpl_valid && cpl.slot == first_q[q].cmd.slot;
  end
  assign cmd_as_data = cmd_valid_i && data_valid && data.slot == cmd.slot;
  assign cmd_as_cpl = cmd_valid_i && cpl_valid && cpl.slot == cmd.slot;
  assign cmd_leaves = (cmd_as_data && data_ready_i) || (cmd_as_cpl && cpl_ready_i) || engine_valid;
  assign first_leaves = (data_ready_i ? data_first : '0) | (cpl_ready_i ? cpl_first : '0);
  assign keep_fire = cmd_fire && !cmd_leaves;  // it was accepted and has not left

  logic pair_leaves;  // a first command leaves as the partner of the command that is here
  assign pair_leaves = cmd_valid_i && first_leaves[cmd_qid_i] && cmd_fuse_i == FuseSecond && (data_fire || !u_fused_pairing.give_up_first_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      kept_q <= '0;
      had_partner_q <= 1'b0;
      pair_q <= 1'b0;
    end else begin
      kept_q <= kept_q & ~first_leaves;
      if (keep_fire) kept_q[cmd_qid_i] <= 1'b1;
      had_partner_q <= (had_partner_q || pair_leaves) && !cmd_fire;
      if (data_fire) pair_q <= data_first != '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (keep_fire) first_q[cmd_qid_i] <= '{sc: cmd_sc_i, cmd: cmd};
    if (pair_leaves) partner_q <= first_q[cmd_qid_i];
    for (int q = 0; q < 3; q++) begin
      if (!kept_q[q]) age_q[q] <= '0;
      else if (age_q[q] != '1) age_q[q] <= age_q[q] + 1'b1;
      orphaned_q[q] <= kept_q[q] && (orphaned_q[q] || !enable_i || !sq_valid_i[q]);
    end
  end

  // Abort: a kept command that ends has been named by one.
  logic abort_stalled_q, abort_done_q, aborted_q;
  logic [4:0] abort_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {abort_stalled_q, abort_done_q, aborted_q} <= '0;
    else begin
      abort_stalled_q <= abort_valid_i && !abort_ready;
      abort_done_q <= abort_valid_i && abort_ready;
      aborted_q <= (abort_valid_i && abort_ready && abort_found) || (aborted_q && cpl_valid && !cpl_ready_i);
    end
  end
  always_ff @(posedge clk_i) abort_q <= {abort_qid_i, abort_slot_i};
  `NS_ASSUME(abort_stays,
             !abort_stalled_q || (abort_valid_i && {abort_qid_i, abort_slot_i} == abort_q))
  `NS_ASSUME(abort_pauses, !abort_done_q || !abort_valid_i)
  `NS_ASSUME(abort_of_io_queue, !abort_valid_i || abort_qid_i inside {2'd1, 2'd2})

  // The neighbours.
  typedef struct packed {
    logic [1:0] qid;
    logic [1:0] fuse;
    logic       more;
    logic [7:0] sc;
    logic       data_op;
    logic       engine;
    data_cmd_t  cmd;
  } port_t;
  port_t port, port_q;
  logic cmd_stalled_q;
  assign port = '{
          qid: cmd_qid_i,
          fuse: cmd_fuse_i,
          more: cmd_more_i,
          sc: cmd_sc_i,
          data_op: cmd_data_op_i,
          engine: cmd_engine_i,
          cmd: cmd
      };
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cmd_stalled_q <= 1'b0;
    else cmd_stalled_q <= cmd_valid_i && !cmd_ready;
  end
  always_ff @(posedge clk_i) port_q <= port;

  `NS_ASSUME(cmd_stays, !cmd_stalled_q || (cmd_valid_i && port == port_q))
  `NS_ASSUME(of_io_queues, !cmd_valid_i || cmd_qid_i inside {2'd1, 2'd2})
  `NS_ASSUME(
      decoded,
      !cmd_valid_i || (cmd_data_op_i ? cmd_sc_i == ScSuccess : (cmd_sc_i != ScSuccess || cmd.op == OpDeallocate)))
  `NS_ASSUME(
      decoded_for_engine,
      !(cmd_valid_i && cmd_engine_i) || (!cmd_data_op_i && cmd_sc_i == ScSuccess && cmd.op == OpDeallocate))
  `NS_ASSUME(fuse_checked, !(cmd_valid_i && cmd_fuse_i == 2'b11) || cmd_sc_i != ScSuccess)
  for (genvar q = 0; q < 3; q++) begin : gen_slot_is_free
    `NS_ASSUME(slot_is_free, !(cmd_valid_i && kept_q[q]) || cmd.slot != first_q[q].cmd.slot)
  end

  // Required status of the kept command of this queue, and of the command that is here, without the
  // data path.
  first_t kept_first;
  logic is_second, same, pair_valid;
  status_t first_status, cmd_status;
  assign kept_first = first_q[cmd_qid_i];
  assign is_second = cmd_fuse_i == FuseSecond;
  assign same = kept_first.cmd.mem_addr == cmd.mem_addr && kept_first.cmd.bytes == cmd.bytes;
  assign pair_valid = kept_first.sc == ScSuccess && kept_first.cmd.op == OpCompare && cmd_sc_i == ScSuccess && cmd.op == OpWrite && same;
  always_comb begin
    if (kept_first.sc != ScSuccess) first_status = generic_status(kept_first.sc);
    else if (!is_second) first_status = generic_status(ScMissingFused);
    else if (kept_first.cmd.op != OpCompare) first_status = generic_status(ScInvalidField);
    else if (cmd_sc_i != ScSuccess || cmd.op != OpWrite)
      first_status = generic_status(ScFailedFused);
    else first_status = generic_status(ScInvalidField);  // different range
  end
  always_comb begin
    if (cmd_sc_i != ScSuccess || cmd_fuse_i == '0) cmd_status = generic_status(cmd_sc_i);
    else if (!had_partner_q) cmd_status = generic_status(ScMissingFused);
    else if (cmd.op != OpWrite) cmd_status = generic_status(ScInvalidField);
    else if (partner_q.sc != ScSuccess || partner_q.cmd.op != OpCompare)
      cmd_status = generic_status(ScFailedFused);
    else cmd_status = generic_status(ScInvalidField);
  end

  // A valid output stays.
  logic data_stalled_q, cpl_stalled_q;
  data_cmd_t data_q;
  cpl_t cpl_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {data_stalled_q, cpl_stalled_q} <= '0;
    else
      {data_stalled_q, cpl_stalled_q} <= {data_valid && !data_ready_i, cpl_valid && !cpl_ready_i};
  end
  always_ff @(posedge clk_i) {data_q, cpl_q} <= {data, cpl};

  // How long the command waits, and the watched kept command after its timeout, while no neighbour
  // blocks.
  logic blocked, overdue;
  logic [3:0] cmd_wait_cycles_q, over_wait_cycles_q, over_cmds_q, abort_wait_cycles_q;
  assign blocked = (data_valid && !data_ready_i) || (cpl_valid && !cpl_ready_i);
  assign overdue = kept_q[watched_q] && (!enable_i || !sq_valid_i[watched_q] || age_q[watched_q] >= 4'(2 * (Cycles + 1)));
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cmd_wait_cycles_q <= '0;
      over_wait_cycles_q <= '0;
      over_cmds_q <= '0;
      abort_wait_cycles_q <= '0;
    end else begin
      if (!cmd_valid_i || cmd_ready || blocked) cmd_wait_cycles_q <= '0;
      else cmd_wait_cycles_q <= cmd_wait_cycles_q + 1'b1;
      if (!overdue || cmd_valid_i || abort_valid_i || (cpl_valid && !cpl_ready_i))
        over_wait_cycles_q <= '0;
      else over_wait_cycles_q <= over_wait_cycles_q + 1'b1;
      if (!overdue) over_cmds_q <= '0;
      else if (cmd_fire) over_cmds_q <= over_cmds_q + 1'b1;
      if (!abort_valid_i || abort_ready || (cpl_valid && !cpl_ready_i)) abort_wait_cycles_q <= '0;
      else abort_wait_cycles_q <= abort_wait_cycles_q + 1'b1;
    end
  end

  // What is proven. Each command leaves once.
  `NS_ASSERT(data_of_one, !data_valid || 2'(cmd_as_data) + 2'($countones(data_first)) == 2'd1)
  `NS_ASSERT(cpl_of_one, !cpl_valid || 2'(cmd_as_cpl) + 2'($countones(cpl_first)) == 2'd1)
  `NS_ASSERT(not_both, !(cmd_as_data && cmd_as_cpl))
  `NS_ASSERT(
      engine_right,
      !engine_valid || (cmd_fire && cmd_engine_i && cmd_fuse_i == '0 && !kept_q[cmd_qid_i] && !pair_q && !data_valid && !cpl_valid))
  `NS_ASSERT(ready_means_accepted, !cmd_ready || cmd_valid_i)
  `NS_ASSERT(kept_is_first,
             !keep_fire || (cmd_fuse_i == FuseFirst && cmd_more_i && !kept_q[cmd_qid_i]))
  `NS_ASSERT(alone_is_not_kept, !(cmd_as_cpl && cmd_fuse_i == FuseFirst) || !cmd_more_i)
  `NS_ASSERT(after_the_first, !(cmd_as_data || cmd_as_cpl) || !kept_q[cmd_qid_i])
  `NS_ASSERT(data_stays, !data_stalled_q || (data_valid && data == data_q))
  `NS_ASSERT(cpl_stays, !cpl_stalled_q || (cpl_valid && cpl == cpl_q))
  `NS_ASSERT(cmd_soon, cmd_wait_cycles_q < 4'd15)
  `NS_ASSERT(over_soon, over_wait_cycles_q < 4'd9 && over_cmds_q < 4'd4)
  `NS_ASSERT(abort_soon, abort_wait_cycles_q < 4'd7)
  `NS_ASSERT(
      abort_right,
      !(abort_valid_i && abort_ready && abort_found) || (abort_current_i && kept_q[abort_qid_i] && first_q[abort_qid_i].cmd.slot == {5'd0, abort_slot_i} && first_q[abort_qid_i].sc == ScSuccess))

  // How a kept command leaves.
  for (genvar q = 0; q < 3; q++) begin : gen_kept
    `NS_ASSERT(compare_right,
               !data_first[q] || (data == first_q[q].cmd && cmd_valid_i && cmd_qid_i == 2'(q) && is_second && pair_valid && !pair_q && data_first_o))
    `NS_ASSERT(first_status_right,
               !(cpl_first[q] && !u_fused_pairing.give_up_first_q) || (cmd_valid_i && cmd_qid_i == 2'(q) && cpl.status == first_status && !(is_second && pair_valid)))
    `NS_ASSERT(given_up_right,
               !(cpl_first[q] && u_fused_pairing.give_up_first_q) || (aborted_q ? cpl.status == abort_status() : (first_q[q].sc == ScSuccess) ?
        (cpl.status == interrupted_status(
               acre_q) && age_q[q] >= 4'(Cycles)) || (cpl.status == generic_status(ScMissingFused
               ) && orphaned_q[q]) : cpl.status == generic_status(first_q[q].sc
               ) && (orphaned_q[q] || age_q[q] >= 4'(Cycles))))
    // Until then the queue's next command has to come here.
    `NS_ASSERT(
        pending_is_kept,
        pending[q] == kept_q[q] || (kept_q[q] && cmd_valid_i && cmd_qid_i == 2'(q)) || cpl_first[q])
  end

  // How the command that is here leaves.
  `NS_ASSERT(
      data_right,
      !cmd_as_data || (data == cmd && cmd_data_op_i && data_second_o == pair_q && (pair_q ? had_partner_q && is_second && cmd.op == OpWrite : cmd_fuse_i == '0)))
  `NS_ASSERT(
      cmd_status_right,
      !cmd_as_cpl || (cpl.status == cmd_status && !(cmd_fuse_i == '0 && (cmd_data_op_i || cmd_engine_i)) && !pair_q))
  `NS_ASSERT(cpl_plain, !cpl_valid || (!cpl.silent && cpl.dw0 == '0))

  // Nothing comes between, and only a pair is marked.
  `NS_ASSERT(
      together,
      !data_valid || !pair_q || (cmd_as_data && data.bytes == partner_q.cmd.bytes && data.mem_addr == partner_q.cmd.mem_addr))
  `NS_ASSERT(marked, !data_valid || (data_first_o == (data_first != '0) && data_second_o == pair_q))
  `NS_ASSERT(no_completion_between, !(cpl_valid && pair_q))

  // Invariants. The states are those of nvme_fused_pairing.
  typedef enum logic [3:0] {
    StIdle,
    StLookup,
    StKeep,
    StPair,
    StFirst,
    StSecond,
    StCompleteFirst,
    StComplete,
    StForward,
    StAbortLookup,
    StAbort
  } state_e;
  state_e state;
  assign state = state_e'(u_fused_pairing.state_q);
  status_t second_status;  // status of the second command if the first one does not begin
  always_comb begin
    if (cmd_sc_i != ScSuccess) second_status = generic_status(cmd_sc_i);
    else if (cmd.op != OpWrite || (kept_first.sc == ScSuccess && kept_first.cmd.op == OpCompare))
      second_status = generic_status(ScInvalidField);
    else second_status = generic_status(ScFailedFused);
  end
  localparam data_cmd_t Free = '{
      slot: 8'd7,
      op: data_op_e'(3'd7),
      bytes: 'h200,
      mem_addr: 'h200,
      default: '0
  };
  logic working, looked_up;  // processes the command that is here; first_q holds the kept command
  assign working = state != StIdle && !u_fused_pairing.give_up_first_q;
  assign looked_up = state inside {StPair, StFirst, StCompleteFirst, StAbort};
  `NS_ASSERT(works_at_it, !working || (cmd_valid_i && u_fused_pairing.idx_q == cmd_qid_i))
  `NS_ASSERT(
      gives_up_one,
      !(state != StIdle && u_fused_pairing.give_up_first_q) || (state inside {StLookup, StCompleteFirst, StAbortLookup, StAbort} && kept_q[u_fused_pairing.idx_q] && !u_fused_pairing.paired_q && (state == StCompleteFirst || (pending[u_fused_pairing.idx_q] && (state != StLookup || orphaned_q[u_fused_pairing.idx_q] || u_fused_pairing.expired_q[u_fused_pairing.idx_q])))))
  `NS_ASSERT(
      at_abort,
      !(state inside {StAbortLookup, StAbort}) || (u_fused_pairing.give_up_first_q && abort_valid_i && u_fused_pairing.idx_q == abort_qid_i && (state == StAbortLookup || u_fused_pairing.first_status_q == abort_status())))
  `NS_ASSERT(
      aborts_one,
      !aborted_q || (state == StCompleteFirst && u_fused_pairing.give_up_first_q && u_fused_pairing.first_q.sc == ScSuccess))
  `NS_ASSERT(indices,
             u_fused_pairing.scan_q != 2'd3 && (state == StIdle || u_fused_pairing.idx_q != 2'd3))
  `NS_ASSERT(
      looked_at,
      !looked_up || (kept_q[u_fused_pairing.idx_q] && u_fused_pairing.first_q == first_q[u_fused_pairing.idx_q]))
  `NS_ASSERT(phase, pair_q == (state == StSecond))
  logic
      pairable,
      free;  // the kept command and the one that is here form a pair; nothing is kept of its queue
  assign pairable = working && is_second && kept_q[cmd_qid_i] && !had_partner_q;
  assign free = working && !kept_q[cmd_qid_i];
  `NS_ASSERT(
      at_look,
      !(working && state == StLookup) || (!u_fused_pairing.paired_q && !had_partner_q && pending[cmd_qid_i] == kept_q[cmd_qid_i] && (kept_q[cmd_qid_i] || !u_fused_pairing.aged_q[cmd_qid_i])))
  `NS_ASSERT(
      at_keep,
      state != StKeep || (free && cmd_fuse_i == FuseFirst && cmd_more_i && !had_partner_q && !u_fused_pairing.aged_q[cmd_qid_i]))
  `NS_ASSERT(at_pair, state != StPair || (pairable && pending[cmd_qid_i]))
  `NS_ASSERT(at_first,
             state != StFirst || (pairable && !pending[cmd_qid_i] && pair_valid && cmd_data_op_i))
  `NS_ASSERT(
      at_second,
      state != StSecond || (free && had_partner_q && is_second && cmd_data_op_i && cmd.op == OpWrite && partner_q.sc == ScSuccess && partner_q.cmd.op == OpCompare && partner_q.cmd.bytes == cmd.bytes && partner_q.cmd.mem_addr == cmd.mem_addr))
  `NS_ASSERT(
      at_end_first,
      !(state == StCompleteFirst && working) || (!had_partner_q && (u_fused_pairing.paired_q ? pairable && !pair_valid && u_fused_pairing.status_q == second_status : !is_second)))
  `NS_ASSERT(
      at_end,
      state != StComplete || (free && cmd_fuse_i != '0 && (had_partner_q || cmd_fuse_i == FuseSecond || !cmd_more_i) && (!had_partner_q || is_second)))
  `NS_ASSERT(at_pass,
             state != StForward || (free && cmd_fuse_i inside {2'b00, 2'b11} && !had_partner_q))
  `NS_ASSERT(at_idle, !(state == StIdle || !working) || !had_partner_q)
  `NS_ASSERT(states, u_fused_pairing.state_q <= StAbort)
  `NS_ASSERT(late_is_aged, (u_fused_pairing.expired_q & ~u_fused_pairing.aged_q) == '0)
  for (genvar q = 0; q < 3; q++) begin : gen_why
    `NS_ASSERT(mem_kept,
               !kept_q[q] || (u_fused_pairing.first_mem[q] == first_q[q] && (first_q[q].cmd & ~Free) == '0))
    `NS_ASSERT(pending_kept,
               pending[q] ? kept_q[q] : (!kept_q[q] || (looked_up && !(state inside {StPair, StAbort}) && u_fused_pairing.idx_q == 2'(q))))
    `NS_ASSERT(slots_differ,
               !(kept_q[q] && kept_q[(q+1)%3]) || first_q[q].cmd.slot != first_q[(q+1)%3].cmd.slot)
    `NS_ASSERT(aged,
               !pending[q] || (u_fused_pairing.expired_q[q] ? age_q[q] > 4'(Cycles) :
        u_fused_pairing.aged_q[q] ? age_q[q] > 4'(u_fused_pairing.timer_q) && age_q[q] <= 4'(u_fused_pairing.timer_q) + 4'(Cycles + 1) :
        age_q[q] <= 4'(u_fused_pairing.timer_q)))
  end

  // Longest wait of the command that is here. Before its lookup, each kept command can time out in
  // 3 cycles, after an unsuccessful Abort in 3, or be aborted in 4. Longest remaining wait of the
  // watched kept command: the scan takes a cycle for each queue, and three more for one that times
  // out. Further: the number of commands that still precede it, and the longest wait of an Abort.
  logic [3:0] base, waited, left, scan_left, abort_waited;
  logic [2:0] at;
  logic [1:0] number, ahead;
  always_comb begin
    number = 2'(pending[1]) + 2'(pending[2]);
    base = (number == 2'd2) ? 4'd0 : (number == 2'd1) ? 4'd6 : 4'd12;
    unique case (state)
      StIdle:      waited = (number != '0 && abort_done_q) ? base + 4'd3 : base;
      StAbortLookup:      waited = base + 4'd1;
      StAbort:     waited = base + 4'd2;
      StLookup:      waited = (number != '0) ? base + 4'd4 : base + 4'd1;
      StPair:      waited = base + 4'd5;
      StFirst:     waited = base;
      StSecond:    waited = base + 4'd1;
      // When it is no longer pending, the previous cycle has not counted.
      StCompleteFirst:  waited = u_fused_pairing.paired_q ? base : pending[u_fused_pairing.idx_q] ? base + 4'd5 : 4'd0;
      default:     waited = (number != '0) ? base + 4'd5 : base + 4'd2;
    endcase
    if (!cmd_valid_i) waited = '0;
  end
  always_comb begin
    unique case (state)
      StLookup:     abort_waited = 4'd0;
      StKeep:     abort_waited = 4'd1;
      StPair:     abort_waited = 4'd1;
      StCompleteFirst: abort_waited = 4'd2;
      StComplete:      abort_waited = 4'd3;
      StIdle:     abort_waited = 4'd4;
      StAbortLookup:     abort_waited = 4'd5;
      default:    abort_waited = 4'd6;
    endcase
  end
  assign ahead = (watched_q >= u_fused_pairing.scan_q) ? watched_q - u_fused_pairing.scan_q : watched_q + 2'd3 - u_fused_pairing.scan_q;
  always_comb begin
    scan_left = 4'd2;
    for (int i = 0; i < 2; i++) begin
      at = 3'(u_fused_pairing.scan_q) + 3'(i);
      if (at > 3'd2) at = at - 3'd3;
      if (2'(at) == watched_q) break;
      scan_left += (pending[2'(at)] && !(state != StIdle && 2'(at) == u_fused_pairing.idx_q)) ? 4'd4 : 4'd1;
    end
    unique case (state)
      StIdle:  left = scan_left;
      StLookup:  left = (u_fused_pairing.idx_q == watched_q) ? 4'd1 : scan_left + 4'd2;
      default: left = (u_fused_pairing.idx_q == watched_q) ? 4'd0 : scan_left + 4'd1;
    endcase
  end
  `NS_ASSERT(cmd_waited, cmd_wait_cycles_q <= waited)
  `NS_ASSERT(
      over_waited,
      (overdue && !cmd_valid_i && !abort_valid_i) ? over_wait_cycles_q + left <= 4'd7 : over_wait_cycles_q <= 4'd8)
  `NS_ASSERT(
      over_passed,
      !overdue || (working && u_fused_pairing.idx_q == watched_q) || over_cmds_q + 4'(ahead) <= (working ? 4'd2 : 4'd3))
  `NS_ASSERT(abort_waited_for, abort_wait_cycles_q <= abort_waited)
  `NS_ASSERT(abort_here, abort_stalled_q || abort_wait_cycles_q == '0)
  `NS_ASSERT(io_queues_only, !pending[0] && !kept_q[0] && watched_q != 2'd3)
  `NS_ASSERT(
      scans,
      !(state inside {StLookup, StCompleteFirst} && u_fused_pairing.give_up_first_q && !aborted_q) || u_fused_pairing.idx_q == u_fused_pairing.scan_q)
  `NS_ASSERT(waiting_here, cmd_stalled_q || cmd_wait_cycles_q == '0)

  `NS_COVER(pair_done, cmd_fire && pair_q)
  `NS_COVER(
      other_range,
      cpl_fire && cpl_first[1] && is_second && cpl.status.sc == ScInvalidField && kept_first.sc == '0)
  `NS_COVER(no_partner, cpl_fire && cpl_first[1] && cmd_fuse_i == FuseFirst && keep_fire == '0)
  `NS_COVER(interrupted, cpl_fire && cpl_first[2] && cpl.status == interrupted_status(acre_q))
  `NS_COVER(
      deleted,
      cpl_fire && cpl_first[2] && cpl.status.sc == ScMissingFused && enable_i && u_fused_pairing.give_up_first_q)
  `NS_COVER(two_kept, kept_q == 3'b110 && data_fire && pair_leaves)
  `NS_COVER(aborted, cpl_fire && cpl_first[1] && aborted_q && cmd_valid_i)
  `NS_COVER(
      given_up_before,
      cpl_fire && cpl_first[2] && u_fused_pairing.give_up_first_q && !aborted_q && cmd_valid_i)
  `NS_COVER(forwarded, cmd_fire && cmd_fuse_i == '0 && cpl_fire && cpl.status.sc == '0)

endmodule
