// SPDX-License-Identifier: Apache-2.0

// nvme_transfer_tracker: a command's transfer is reported once, with the first error, only after
// its walk and as many descriptors as the walk made. It is then reported soon. Every event is
// accepted soon.
//
// Two slots, two movers, one walker, up to three descriptors a command; descriptors end before,
// with or after the walk. Assumed of the neighbours: each descriptor ends once, each walk ends
// once, an event stays until it is accepted (nvme_mover_write, nvme_prp_walker).
`include "ns_assert.svh"

module transfer_tracker_proof
  import nvme_pkg::*;
  import nvme_data_pkg::*;
(
  input logic         clk_i,
  input logic         rst_ni,
  input logic         start_i,
  input logic         start_slot_i,
  input logic [1:0]   start_descs_i,
  input logic [2:0]   valid_i,
  input logic [2:0]   slot_i,
  input data_status_e status0_i,
  input data_status_e status1_i,
  input data_status_e status2_i,
  input logic         done_ready_i,
  input logic         watched_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // One slot, arbitrary, is watched all the time.
  logic watched_q;
  always_ff @(posedge clk_i) if (!reset_q) watched_q <= watched_i;

  // Of each command: whether it has a transfer, its descriptors, how many have ended, whether the
  // walk has, the first error.
  logic [1:0] open_q, walked_q;
  logic [1:0][1:0] descs_q, ended_q;
  data_status_e status_q[2];

  transfer_event_t [2:0] events;
  logic [2:0] ready, fire;
  data_done_t done;
  logic done_valid, done_fire, busy;

  assign events[0] = '{slot: {'0, slot_i[0]}, walk: 1'b0, descs: '0, status: status0_i};
  assign events[1] = '{slot: {'0, slot_i[1]}, walk: 1'b0, descs: '0, status: status1_i};
  assign events[2] = '{slot: {'0, slot_i[2]}, walk: 1'b1, descs: {'0, descs_q[slot_i[2]]}, status: status2_i};
  assign fire = valid_i & ready;
  assign done_fire = done_valid && done_ready_i;

  nvme_transfer_tracker #(
    .NumSources(3),
    .NumSlots  (2)
  ) u_transfer_tracker (
    .clk_i,
    .rst_ni,
    .busy_o       (busy),
    .event_i      (events),
    .event_valid_i(valid_i),
    .event_ready_o(ready),
    .done_o       (done),
    .done_valid_o (done_valid),
    .done_ready_i
  );

  logic fired_slot;
  data_status_e fired_status;
  always_comb begin
    fired_slot = fire[0] ? slot_i[0] : fire[1] ? slot_i[1] : slot_i[2];
    fired_status = fire[0] ? status0_i : fire[1] ? status1_i : status2_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q <= '0;
    end else begin
      if (start_i) open_q[start_slot_i] <= 1'b1;
      if (done_fire) open_q[done.slot[0]] <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fire[0] || fire[1]) ended_q[fired_slot] <= ended_q[fired_slot] + 1'b1;
    if (fire[2]) walked_q[fired_slot] <= 1'b1;
    if (fire != '0 && status_q[fired_slot] == DataOk) status_q[fired_slot] <= fired_status;
    if (start_i) begin
      descs_q[start_slot_i]   <= start_descs_i;
      ended_q[start_slot_i]  <= '0;
      walked_q[start_slot_i] <= 1'b0;
      status_q[start_slot_i] <= DataOk;
    end
  end

  // The neighbours.
  `NS_ASSUME(start_free, !start_i || !open_q[start_slot_i])
  for (genvar s = 0; s < 2; s++) begin : gen_slot
    `NS_ASSUME(each_desc_once,
               {1'b0, ended_q[s]} + 3'(valid_i[0] && slot_i[0] == 1'(s)) + 3'(valid_i[1] && slot_i[1] == 1'(s)) <=
        {1'b0, descs_q[s]} || !((valid_i[0] && slot_i[0] == 1'(s)) || (valid_i[1] && slot_i[1] == 1'(s))))
  end
  `NS_ASSUME(
      of_open_commands,
      !(valid_i[0] && !open_q[slot_i[0]]) && !(valid_i[1] && !open_q[slot_i[1]]) && !(valid_i[2] && (!open_q[slot_i[2]] || walked_q[slot_i[2]])))
  logic [2:0] event_stalled_q, wait_slot_q;
  data_status_e wait0_q, wait1_q, wait2_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) event_stalled_q <= '0;
    else event_stalled_q <= valid_i & ~ready;
  end
  always_ff @(posedge clk_i)
    {wait_slot_q, wait0_q, wait1_q, wait2_q} <= {
      slot_i, status0_i, status1_i, status2_i
    };
  `NS_ASSUME(
      events_stay,
      (event_stalled_q & ~valid_i) == '0 && (event_stalled_q & (slot_i ^ wait_slot_q)) == '0 && (!event_stalled_q[0] || status0_i == wait0_q) && (!event_stalled_q[1] || status1_i == wait1_q) && (!event_stalled_q[2] || status2_i == wait2_q))

  // How long the watched command, or an event, has waited.
  logic complete;
  logic [3:0] wait_cycles_q;
  logic [2:0][3:0] event_wait_cycles_q;
  assign complete = open_q[watched_q] && walked_q[watched_q] && ended_q[watched_q] == descs_q[watched_q];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wait_cycles_q <= '0;
      event_wait_cycles_q <= '0;
    end else begin
      if (!complete || !done_ready_i || done_fire) wait_cycles_q <= '0;
      else wait_cycles_q <= wait_cycles_q + 1'b1;
      for (int i = 0; i < 3; i++)
      event_wait_cycles_q[i] <= (valid_i[i] && !ready[i]) ? event_wait_cycles_q[i] + 1'b1 : '0;
    end
  end

  // What is proven.
  `NS_ASSERT(one_event, (fire & (fire - 1'b1)) == '0)
  `NS_ASSERT(only_open, !done_valid || (done.slot[SlotWidth-1:1] == '0 && open_q[done.slot[0]]))
  `NS_ASSERT(after_walk, !done_valid || walked_q[done.slot[0]])
  `NS_ASSERT(after_all_descs, !done_valid || ended_q[done.slot[0]] == descs_q[done.slot[0]])
  `NS_ASSERT(first_error, !done_valid || done.status == status_q[done.slot[0]])
  `NS_ASSERT(soon, wait_cycles_q < 4'd8)
  for (genvar i = 0; i < 3; i++) begin : gen_accepted
    `NS_ASSERT(accepted_soon, event_wait_cycles_q[i] < 4'd6)
  end
  `NS_ASSERT(busy_inside, busy || !complete)

  // Invariants: the place of accepted events.
  typedef struct packed {
    logic                  walked;
    data_status_e          status;
    logic [DescsWidth-1:0] descs;
  } transfer_t;
  transfer_event_t event_accepted;  // an event that is updating its slot
  logic changing;
  data_done_t [1:0] complete_done;  // ended commands in the FIFO
  logic [1:0] complete_valid;
  logic [1:0] fifo_count;
  assign event_accepted = u_transfer_tracker.event_q;
  assign changing = u_transfer_tracker.lookup_q || u_transfer_tracker.update_q;
  assign fifo_count = u_transfer_tracker.u_done.count_q;
  assign complete_done[0] = u_transfer_tracker.u_done.gen_reg.mem[u_transfer_tracker.u_done.rptr_q];
  assign complete_done[1] = u_transfer_tracker.u_done.gen_reg.mem[!u_transfer_tracker.u_done.rptr_q];
  assign complete_valid = {fifo_count == 2'd2, fifo_count != '0};

  for (genvar s = 0; s < 2; s++) begin : gen_kept
    logic of_this_slot;  // the event updates this slot
    logic [1:0] mine_in_fifo;
    logic [1:0] counted;
    transfer_t state;
    assign of_this_slot = changing && event_accepted.slot == SlotWidth'(s);
    for (genvar i = 0; i < 2; i++) begin : gen_mine
      assign mine_in_fifo[i] = complete_valid[i] && complete_done[i].slot == SlotWidth'(s);
      `NS_ASSERT(complete_known, !mine_in_fifo[i] || complete_done[i].status == status_q[s])
    end
    assign state = u_transfer_tracker.open_q[s] ? u_transfer_tracker.transfers_q[s] : '{walked: 1'b0, status: DataOk, descs: '0};
    assign counted = ended_q[s] - 2'(of_this_slot && !event_accepted.walk);
    `NS_ASSERT(complete_once, (mine_in_fifo & (mine_in_fifo - 1'b1)) == '0)
    `NS_ASSERT(complete_rests,
               mine_in_fifo == '0 || (open_q[s] && !u_transfer_tracker.open_q[s] && !of_this_slot && walked_q[s] && ended_q[s] == descs_q[s]))
    `NS_ASSERT(closed_rests, open_q[s] || (!u_transfer_tracker.open_q[s] && !of_this_slot))
    `NS_ASSERT(ended_some,
               !open_q[s] || (ended_q[s] <= descs_q[s] && ended_q[s] >= 2'(of_this_slot && !event_accepted.walk)))
    `NS_ASSERT(walk_kept,
               !open_q[s] || mine_in_fifo != '0 || state.walked == (walked_q[s] && !(of_this_slot && event_accepted.walk)))
    `NS_ASSERT(walk_here,
               !(of_this_slot && event_accepted.walk) || (walked_q[s] && event_accepted.descs == DescsWidth'(descs_q[s])))
    `NS_ASSERT(descs_kept,
               !open_q[s] || mine_in_fifo != '0 ||
        state.descs == (state.walked ? DescsWidth'(descs_q[s]) : '0) - DescsWidth'(counted))
    `NS_ASSERT(status_kept,
               !open_q[s] || mine_in_fifo != '0 ||
        status_q[s] == ((state.status == DataOk && of_this_slot) ? event_accepted.status : state.status))
    `NS_ASSERT(not_complete_yet,
               !open_q[s] || mine_in_fifo != '0 || of_this_slot || !(walked_q[s] && ended_q[s] == descs_q[s]))
    `NS_ASSERT(
        old_kept,
        !(u_transfer_tracker.update_q && of_this_slot) || u_transfer_tracker.transfer_q == state)
  end
  for (genvar i = 0; i < 2; i++) begin : gen_slots
    `NS_ASSERT(complete_slot, !complete_valid[i] || complete_done[i].slot < 2)
  end
  `NS_ASSERT(accepted_slot, !changing || event_accepted.slot < 2)
  `NS_ASSERT(
      fifo_pointers,
      u_transfer_tracker.u_done.wptr_q == (u_transfer_tracker.u_done.rptr_q ^ fifo_count[0]) && fifo_count != 2'd3)
  `NS_ASSERT(
      one_step,
      (u_transfer_tracker.event_fire_q & (u_transfer_tracker.event_fire_q - 1'b1)) == '0 && !(u_transfer_tracker.lookup_q && u_transfer_tracker.update_q) && !(u_transfer_tracker.event_fire_q != '0 && u_transfer_tracker.lookup_q))
  `NS_ASSERT(
      index_known,
      u_transfer_tracker.event_fire_q == '0 || u_transfer_tracker.event_fire_q == 3'd1 << u_transfer_tracker.idx_q)
  `NS_ASSERT(accepted_waiting, (u_transfer_tracker.event_fire_q & ~event_stalled_q) == '0)

  `NS_COVER(descs_before_walk,
            done_fire && descs_q[done.slot[0]] == 2'd3 && done.status == DataWriteFault)
  `NS_COVER(no_descs, done_fire && descs_q[done.slot[0]] == '0)
  `NS_COVER(both_complete,
            complete && wait_cycles_q == '0 && done_fire && done.slot[0] != watched_q)
  logic used_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) used_q <= 1'b0;
    else if (done_fire && done.slot[0]) used_q <= 1'b1;
  end
  `NS_COVER(slot_again, used_q && done_fire && done.slot[0] && descs_q[1] == 2'd1)

endmodule
