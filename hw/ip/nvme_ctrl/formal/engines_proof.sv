// SPDX-License-Identifier: Apache-2.0

// nvme_engines: each command ends once. Its engine, and no other, receives it once and unchanged,
// unless it ends before; then it ends without the engine. A command that an engine has accepted
// ends only by the engine's answer: with the engine's status or, if the engine stopped it, with the
// requester's status. The engine is asked to stop only commands that it holds, only on request, and
// once. A command that has to end and that no engine has accepted ends soon, while completions are
// accepted. Other commands are issued soon, while their engine has room. A namespace counts as in
// use while it has a command here.
//
// Three slots, two engines, two namespaces, any answers of the engines to the commands they hold.
// Assumptions: slots inside are not reused, nor in the cycle of their completion (nvme_slot_table).
// An engine keeps signalled room, and keeps an answer valid until it is accepted.
`include "ns_assert.svh"

module engines_proof
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
(
  input logic            clk_i,
  input logic            rst_ni,
  input logic            cmd_data_i,
  input logic            cmd_engine_i,
  input logic            cmd_ns_i,
  input logic [1:0]      cmd_slot_i,
  input logic            cmd_valid_i,
  input logic            stop_i,
  input logic            acre_i,
  input logic            abort_valid_i,
  input logic [1:0]      abort_slot_i,
  input logic            abort_current_i,
  input logic            abort_deleted_i,
  input logic            cpl_ready_i,
  input logic [1:0]      ready_i,
  input logic [1:0][1:0] done_slot_i,
  input logic [1:0]      done_stopped_i,
  input logic [1:0]      done_bit_i,
  input logic [1:0]      done_valid_i,
  input logic [1:0]      watched_i
);

  localparam int unsigned NumSlots = 3;
  localparam ns_blocks_t Blocks = ns_blocks_t'({64'd3, 64'd8});

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // One slot, arbitrary, is watched all the time.
  logic [1:0] slot_q;
  always_ff @(posedge clk_i) if (!reset_q) slot_q <= watched_i;
  always_comb assume (watched_i != 2'd3);

  nvme_engine_if engine[2] ();
  logic [511:0] sqe;
  engine_route_t route;
  logic abort_found, cpl_valid, busy;
  cpl_t cpl;
  logic [MaxNamespaces-1:0] flying;

  always_comb begin
    sqe = '0;
    sqe[511] = cmd_data_i;
    sqe[63:32] = cmd_ns_i ? 32'd2 : 32'd1;
    route = '0;
    route.engine = EngineWidth'(cmd_engine_i);
    route.command = EngineCommandWidth'(cmd_data_i);
  end

  nvme_engines #(
    .NumSlots     (NumSlots),
    .NumNamespaces(2),
    .NsBlocks     (Blocks),
    .MediaBytes   (64'd1 << 20),
    .NumEngines   (2)
  ) u_engines (
    .clk_i,
    .rst_ni,
    .busy_o       (busy),
    .cmd_sqe_i    (sqe),
    .cmd_slot_i   (SlotWidth'(cmd_slot_i)),
    .cmd_route_i  (route),
    .cmd_ns_i     (NsWidth'(cmd_ns_i)),
    .cmd_valid_i,
    .stop_i,
    .acre_i,
    .abort_valid_i,
    .abort_slot_i (SlotWidth'(abort_slot_i)),
    .abort_current_i,
    .abort_deleted_i,
    .abort_found_o(abort_found),
    .cpl_o        (cpl),
    .cpl_valid_o  (cpl_valid),
    .cpl_ready_i,
    .in_flight_o  (flying),
    .m_engine     (engine)
  );

  logic [1:0] issued, stop_sent, done_fire, ready_q, done_stalled_q;
  engine_done_t [1:0] done, done_q;
  engine_cmd_t [1:0] shown;
  logic [1:0][SlotWidth-1:0] stop_slot;
  for (genvar e = 0; e < 2; e++) begin : gen_engine
    // A bit of status and dword 0 is free.
    assign done[e] = '{
            slot: SlotWidth'(done_slot_i[e]),
            stopped: done_stopped_i[e],
            status: status_t'(done_bit_i[e]),
            dw0: 32'(done_bit_i[e])
        };
    assign engine[e].cmd_ready = ready_i[e];
    assign engine[e].done = done[e];
    assign engine[e].done_valid = done_valid_i[e];
    assign issued[e] = engine[e].cmd_valid && engine[e].cmd_ready;
    assign shown[e] = engine[e].cmd;
    assign stop_sent[e] = engine[e].stop_valid;
    assign stop_slot[e] = engine[e].stop_slot;
    assign done_fire[e] = engine[e].done_valid && engine[e].done_ready;
  end

  // Commands inside, their place, and their history.
  logic [2:0] inside_q, engine0_has_q, engine1_has_q, stop_sent_slots_q;
  logic
      watched_inside_q,
      engine_has_q,
      answered_q,
      end_requested_q,
      deleted_q,
      aborted_q,
      stop_sent_q,
      ns_q,
      data_q,
      engine_q,
      stopped_q,
      stop_seen_q;
  logic [1:0][2:0] engine_has;
  status_t status_q;
  logic [31:0] dw0_q;
  logic in_fire, cpl_fire, watched_issued, watched_stop, watched_answered, watched_cpl;
  assign engine_has = {engine1_has_q, engine0_has_q};
  assign in_fire = cmd_valid_i && cmd_slot_i == slot_q;
  assign cpl_fire = cpl_valid && cpl_ready_i;
  assign watched_cpl = cpl_valid && cpl.slot == SlotWidth'(slot_q);
  assign watched_issued = (issued[0] && shown[0].slot == SlotWidth'(slot_q)) || (issued[1] && shown[1].slot == SlotWidth'(slot_q));
  assign watched_stop = (stop_sent[0] && stop_slot[0] == SlotWidth'(slot_q)) || (stop_sent[1] && stop_slot[1] == SlotWidth'(slot_q));
  assign watched_answered = done_fire[engine_q] && done[engine_q].slot == SlotWidth'(slot_q) && engine_has_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q <= '0;
      engine0_has_q <= '0;
      engine1_has_q <= '0;
      stop_sent_slots_q <= '0;
      {watched_inside_q, engine_has_q, answered_q, end_requested_q, deleted_q, aborted_q, stop_sent_q, stopped_q, stop_seen_q} <= '0;
    end else begin
      if (cpl_fire) inside_q[cpl.slot[1:0]] <= 1'b0;
      if (cmd_valid_i) inside_q[cmd_slot_i] <= 1'b1;
      if (done_fire[0]) engine0_has_q[done[0].slot[1:0]] <= 1'b0;
      if (done_fire[1]) engine1_has_q[done[1].slot[1:0]] <= 1'b0;
      if (issued[0]) engine0_has_q[shown[0].slot[1:0]] <= 1'b1;
      if (issued[1]) engine1_has_q[shown[1].slot[1:0]] <= 1'b1;
      if (cmd_valid_i) stop_sent_slots_q[cmd_slot_i] <= 1'b0;
      for (int e = 0; e < 2; e++) if (stop_sent[e]) stop_sent_slots_q[stop_slot[e][1:0]] <= 1'b1;
      watched_inside_q <= (watched_inside_q && !(cpl_fire && watched_cpl)) || in_fire;
      if (in_fire)
        {engine_has_q, answered_q, end_requested_q, deleted_q, aborted_q, stop_sent_q, stopped_q, stop_seen_q} <= '0;
      else begin
        if (watched_issued) engine_has_q <= 1'b1;
        if (watched_stop) stop_sent_q <= 1'b1;
        if (watched_answered) begin
          engine_has_q <= 1'b0;
          answered_q <= 1'b1;
          stopped_q <= done[engine_q].stopped;
        end
        if (stop_i) {end_requested_q, stop_seen_q} <= '1;
        if (abort_found && abort_slot_i == slot_q) begin
          end_requested_q <= 1'b1;
          if (abort_deleted_i) deleted_q <= 1'b1;
          else aborted_q <= 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (in_fire) {data_q, engine_q, ns_q} <= {cmd_data_i, cmd_engine_i, cmd_ns_i};
    if (watched_answered) {status_q, dw0_q} <= {done[engine_q].status, done[engine_q].dw0};
  end

  // The neighbours.
  logic stop_q, acre_q;
  always_ff @(posedge clk_i) begin
    ready_q <= ready_i & ~issued;
    done_stalled_q <= done_valid_i & ~done_fire;
    done_q <= done;
    stop_q <= reset_q && stop_i;
    acre_q <= acre_i;
  end
  `NS_ASSUME(slot_is_free, !cmd_valid_i || (cmd_slot_i != 2'd3 && !inside_q[cmd_slot_i]))
  `NS_ASSUME(abort_of_a_slot, abort_slot_i != 2'd3)
  `NS_ASSUME(acre_stays, !reset_q || acre_i == acre_q)
  // Fetching resumes when nothing is inside.
  `NS_ASSUME(stop_stays, !stop_q || stop_i || inside_q == '0)
  for (genvar e = 0; e < 2; e++) begin : gen_assume
    `NS_ASSUME(room_stays, !ready_q[e] || ready_i[e])
    `NS_ASSUME(answer_stays, !done_stalled_q[e] || (done_valid_i[e] && done[e] == done_q[e]))
    `NS_ASSUME(answer_to_held_command,
               !done_valid_i[e] || (done[e].slot < SlotWidth'(3) && engine_has[e][done[e].slot[1:0]] && (!done[e].stopped || stop_sent_slots_q[done[e].slot[1:0]])))
  end

  // How long the watched command waits.
  logic [4:0] end_wait_cycles_q, issue_wait_cycles_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {end_wait_cycles_q, issue_wait_cycles_q} <= '0;
    else begin
      if (!watched_inside_q || engine_has_q || watched_cpl || !cpl_ready_i || !(stop_i || aborted_q || deleted_q))
        end_wait_cycles_q <= '0;
      else if (end_wait_cycles_q != '1) end_wait_cycles_q <= end_wait_cycles_q + 1'b1;
      if (!watched_inside_q || engine_has_q || answered_q || watched_cpl || ready_i != '1 || stop_i || aborted_q || deleted_q)
        issue_wait_cycles_q <= '0;
      else if (issue_wait_cycles_q != '1) issue_wait_cycles_q <= issue_wait_cycles_q + 1'b1;
    end
  end

  // What is proven.
  `NS_ASSERT(completion_of_inside,
             !cpl_valid || (cpl.slot < SlotWidth'(3) && inside_q[cpl.slot[1:0]] && !cpl.silent))
  `NS_ASSERT(completion_after_answer,
             !watched_cpl || (!engine_has_q && (answered_q || end_requested_q)))
  `NS_ASSERT(
      status_of_the_engine,
      !(watched_cpl && answered_q && !stopped_q) || (cpl.status == status_q && cpl.dw0 == dw0_q))
  `NS_ASSERT(
      status_of_requester,
      !(watched_cpl && !(answered_q && !stopped_q)) || (aborted_q && cpl.status == abort_status()) || (deleted_q && cpl.status == retry_status(
      ScSqDeletion)) || (stop_seen_q && cpl.status == interrupted_status(acre_i)))
  `NS_ASSERT(issued_once, !watched_issued || (watched_inside_q && !engine_has_q && !answered_q))
  for (genvar e = 0; e < 2; e++) begin : gen_given
    `NS_ASSERT(issued_unchanged,
               !(issued[e] && shown[e].slot == SlotWidth'(slot_q)) || (engine_q == 1'(e) && shown[e].sqe[511] == data_q && shown[e].command == EngineCommandWidth'(data_q) && shown[e].ns_base == (ns_q ? 64'd8 : 64'd0) && shown[e].ns_blocks == (ns_q ? 64'd3 : 64'd8)))
    `NS_ASSERT(stop_to_right_engine,
               !(stop_sent[e] && stop_slot[e] == SlotWidth'(slot_q)) || !watched_inside_q || engine_q == 1'(e))
    `NS_ASSERT(shown_with_room, !engine[e].cmd_valid || ready_i[e])
  end
  `NS_ASSERT(
      stop_when_requested,
      !watched_stop || !watched_inside_q || (end_requested_q && !stop_sent_q && (engine_has_q || answered_q)))
  `NS_ASSERT(ends_soon, end_wait_cycles_q < 5'd7)
  `NS_ASSERT(issued_soon, issue_wait_cycles_q < 5'd6)
  `NS_ASSERT(
      in_use,
      !(watched_inside_q && !answered_q && (engine_has_q || !end_requested_q)) || flying[ns_q])
  `NS_ASSERT(busy_while_it_matters, !watched_inside_q || busy || engine_has_q || answered_q)

  `NS_COVER(ended, cpl_fire && watched_cpl && answered_q && !stopped_q)
  `NS_COVER(stopped, cpl_fire && watched_cpl && answered_q && stopped_q && deleted_q)
  `NS_COVER(never_accepted, cpl_fire && watched_cpl && !answered_q && aborted_q)
  `NS_COVER(interrupted, cpl_fire && watched_cpl && !answered_q && !aborted_q)
  `NS_COVER(all_inside, inside_q == '1 && engine0_has_q == 3'b011)
  `NS_COVER(idle_while_engine_works, watched_inside_q && engine_has_q && !busy)

endmodule
