// nvme_transfer_tracker: a command's transfer is reported only when its walk has ended and as many jobs as the walk made, once, with the
// first error; and then it is, soon. Every event is accepted soon.
//
// Two slots, two movers, one walker, up to three jobs a command; jobs end before, with or after the walk. Assumed of the
// neighbours: each job ends once, each walk ends once, an event stays until it is taken (nvme_mover_write, nvme_prp_walker).
`include "ns_assert.svh"

module transfer_tracker_proof
  import nvme_pkg::*;
  import nvme_data_pkg::*;
(
  input logic         clk_i,
  input logic         rst_ni,
  input logic         start_i,
  input logic         start_slot_i,
  input logic [1:0]   start_jobs_i,
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

  // One slot, any, is watched all the time.
  logic watched_q;
  always_ff @(posedge clk_i) if (!reset_q) watched_q <= watched_i;

  // What each command has: a transfer, so many jobs, how many have ended, whether the walk has, the first error.
  logic [1:0] open_q, walked_q;
  logic [1:0][1:0] jobs_q, ended_q;
  data_status_e status_q[2];

  event_t [2:0] news;
  logic [2:0] ready, fire;
  data_done_t done;
  logic done_valid, done_fire, busy;

  assign news[0] = '{slot: {'0, slot_i[0]}, walk: 1'b0, jobs: '0, status: status0_i};
  assign news[1] = '{slot: {'0, slot_i[1]}, walk: 1'b0, jobs: '0, status: status1_i};
  assign news[2] = '{slot: {'0, slot_i[2]}, walk: 1'b1, jobs: {'0, jobs_q[slot_i[2]]}, status: status2_i};
  assign fire = valid_i & ready;
  assign done_fire = done_valid && done_ready_i;

  nvme_transfer_tracker #(
    .NumSources(3),
    .NumSlots  (2)
  ) u_slots (
    .clk_i,
    .rst_ni,
    .busy_o       (busy),
    .event_i      (news),
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
      jobs_q[start_slot_i]   <= start_jobs_i;
      ended_q[start_slot_i]  <= '0;
      walked_q[start_slot_i] <= 1'b0;
      status_q[start_slot_i] <= DataOk;
    end
  end

  // The neighbours.
  `NS_ASSUME(start_free, !start_i || !open_q[start_slot_i])
  for (genvar s = 0; s < 2; s++) begin : gen_slot
    `NS_ASSUME(each_job_once,
               {1'b0, ended_q[s]} + 3'(valid_i[0] && slot_i[0] == 1'(s)) + 3'(valid_i[1] && slot_i[1] == 1'(s)) <=
        {1'b0, jobs_q[s]} || !((valid_i[0] && slot_i[0] == 1'(s)) || (valid_i[1] && slot_i[1] == 1'(s))))
  end
  `NS_ASSUME(
      of_open_commands,
      !(valid_i[0] && !open_q[slot_i[0]]) && !(valid_i[1] && !open_q[slot_i[1]]) && !(valid_i[2] && (!open_q[slot_i[2]] || walked_q[slot_i[2]])))
  logic [2:0] wait_q, wait_slot_q;
  data_status_e wait0_q, wait1_q, wait2_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) wait_q <= '0;
    else wait_q <= valid_i & ~ready;
  end
  always_ff @(posedge clk_i)
    {wait_slot_q, wait0_q, wait1_q, wait2_q} <= {
      slot_i, status0_i, status1_i, status2_i
    };
  `NS_ASSUME(
      events_stay,
      (wait_q & ~valid_i) == '0 && (wait_q & (slot_i ^ wait_slot_q)) == '0 && (!wait_q[0] || status0_i == wait0_q) && (!wait_q[1] || status1_i == wait1_q) && (!wait_q[2] || status2_i == wait2_q))

  // How long the watched command, or an event, has waited.
  logic over;
  logic [3:0] waits_q;
  logic [2:0][3:0] event_waits_q;
  assign over = open_q[watched_q] && walked_q[watched_q] && ended_q[watched_q] == jobs_q[watched_q];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waits_q <= '0;
      event_waits_q <= '0;
    end else begin
      if (!over || !done_ready_i || done_fire) waits_q <= '0;
      else waits_q <= waits_q + 1'b1;
      for (int i = 0; i < 3; i++)
      event_waits_q[i] <= (valid_i[i] && !ready[i]) ? event_waits_q[i] + 1'b1 : '0;
    end
  end

  // What is proven.
  `NS_ASSERT(one_event, (fire & (fire - 1'b1)) == '0)
  `NS_ASSERT(only_open, !done_valid || (done.slot[SlotWidth-1:1] == '0 && open_q[done.slot[0]]))
  `NS_ASSERT(after_walk, !done_valid || walked_q[done.slot[0]])
  `NS_ASSERT(after_all_jobs, !done_valid || ended_q[done.slot[0]] == jobs_q[done.slot[0]])
  `NS_ASSERT(first_error, !done_valid || done.status == status_q[done.slot[0]])
  `NS_ASSERT(soon, waits_q < 4'd8)
  for (genvar i = 0; i < 3; i++) begin : gen_accepted
    `NS_ASSERT(accepted_soon, event_waits_q[i] < 4'd6)
  end
  `NS_ASSERT(busy_inside, busy || !over)

  // Why that holds: where what has been taken is.
  typedef struct packed {
    logic                 walked;
    data_status_e         status;
    logic [JobsWidth-1:0] jobs;
  } state_t;
  event_t taken;  // an event that is changing its slot
  logic changing;
  data_done_t [1:0] over_of;  // ends that wait in the FIFO
  logic [1:0] over_valid;
  logic [1:0] fifo_count;
  assign taken = u_slots.event_q;
  assign changing = u_slots.chosen_q || u_slots.change_q;
  assign fifo_count = u_slots.u_done.count_q;
  assign over_of[0] = u_slots.u_done.gen_reg.mem[u_slots.u_done.rptr_q];
  assign over_of[1] = u_slots.u_done.gen_reg.mem[!u_slots.u_done.rptr_q];
  assign over_valid = {fifo_count == 2'd2, fifo_count != '0};

  for (genvar s = 0; s < 2; s++) begin : gen_kept
    logic of_this_slot;  // the event changes this slot
    logic [1:0] mine;
    logic [1:0] counted;
    state_t state;
    assign of_this_slot = changing && taken.slot == SlotWidth'(s);
    for (genvar i = 0; i < 2; i++) begin : gen_mine
      assign mine[i] = over_valid[i] && over_of[i].slot == SlotWidth'(s);
      `NS_ASSERT(over_known, !mine[i] || over_of[i].status == status_q[s])
    end
    assign state = u_slots.open_q[s] ? u_slots.states_q[s] : '{walked: 1'b0, status: DataOk, jobs: '0};
    assign counted = ended_q[s] - 2'(of_this_slot && !taken.walk);
    `NS_ASSERT(over_once, (mine & (mine - 1'b1)) == '0)
    `NS_ASSERT(over_rests,
               mine == '0 || (open_q[s] && !u_slots.open_q[s] && !of_this_slot && walked_q[s] && ended_q[s] == jobs_q[s]))
    `NS_ASSERT(closed_rests, open_q[s] || (!u_slots.open_q[s] && !of_this_slot))
    `NS_ASSERT(
        ended_some,
        !open_q[s] || (ended_q[s] <= jobs_q[s] && ended_q[s] >= 2'(of_this_slot && !taken.walk)))
    `NS_ASSERT(
        walk_kept,
        !open_q[s] || mine != '0 || state.walked == (walked_q[s] && !(of_this_slot && taken.walk)))
    `NS_ASSERT(
        walk_here,
        !(of_this_slot && taken.walk) || (walked_q[s] && taken.jobs == JobsWidth'(jobs_q[s])))
    `NS_ASSERT(jobs_kept,
               !open_q[s] || mine != '0 ||
        state.jobs == (state.walked ? JobsWidth'(jobs_q[s]) : '0) - JobsWidth'(counted))
    `NS_ASSERT(status_kept,
               !open_q[s] || mine != '0 ||
        status_q[s] == ((state.status == DataOk && of_this_slot) ? taken.status : state.status))
    `NS_ASSERT(
        not_over_yet,
        !open_q[s] || mine != '0 || of_this_slot || !(walked_q[s] && ended_q[s] == jobs_q[s]))
    `NS_ASSERT(old_kept, !(u_slots.change_q && of_this_slot) || u_slots.old_q == state)
  end
  for (genvar i = 0; i < 2; i++) begin : gen_slots
    `NS_ASSERT(over_slot, !over_valid[i] || over_of[i].slot < 2)
  end
  `NS_ASSERT(taken_slot, !changing || taken.slot < 2)
  `NS_ASSERT(fifo_pointers,
             u_slots.u_done.wptr_q == (u_slots.u_done.rptr_q ^ fifo_count[0]) && fifo_count != 2'd3)
  `NS_ASSERT(
      one_step,
      (u_slots.take_q & (u_slots.take_q - 1'b1)) == '0 && !(u_slots.chosen_q && u_slots.change_q) && !(u_slots.take_q != '0 && u_slots.chosen_q))
  `NS_ASSERT(index_known, u_slots.take_q == '0 || u_slots.take_q == 3'd1 << u_slots.idx_q)
  `NS_ASSERT(taken_waits, (u_slots.take_q & ~wait_q) == '0)

  `NS_COVER(jobs_before_walk,
            done_fire && jobs_q[done.slot[0]] == 2'd3 && done.status == DataWriteFault)
  `NS_COVER(no_jobs, done_fire && jobs_q[done.slot[0]] == '0)
  `NS_COVER(both_over, over && waits_q == '0 && done_fire && done.slot[0] != watched_q)
  logic used_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) used_q <= 1'b0;
    else if (done_fire && done.slot[0]) used_q <= 1'b1;
  end
  `NS_COVER(slot_again, used_q && done_fire && done.slot[0] && jobs_q[1] == 2'd1)

endmodule
