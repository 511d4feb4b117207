// SPDX-License-Identifier: Apache-2.0

// nvme_fused_arbiter: from the start of a pair's Compare to the end of its Write, no other
// overlapping data command is in flight. The Write starts after the Compare has succeeded; after a
// failed Compare it ends once, as Failed Fused Command. Each command is forwarded once, unchanged,
// and nothing else is. An incoming command waits for at most a few cycles while the data path
// accepts commands. A pair starts soon when no overlapping command is in flight. A command named
// for its queue's deletion, at any time, is forwarded or ends as deleted. No other command ends as
// deleted, except a Write whose Compare has. The two bounds do not count during the rotation.
//
// Four slots, four blocks in each of two namespaces, commands of one or two blocks, otherwise
// arbitrary, which end at any time. Assumptions: a command stays until it is accepted; slots of
// commands inside or in flight are not reused. A second command follows its first one, with the
// same namespace and range. A command that ends is in flight.
`include "ns_assert.svh"
`ifdef REACHED
// Only the property to be refuted is asserted.
`undef NS_ASSERT
`define NS_ASSERT(name, prop)
`endif

module fused_arbiter_proof
  import nvme_pkg::*;
(
  input logic       clk_i,
  input logic       rst_ni,
  input logic [1:0] slot_i,
  input logic       ns_i,
  input logic [1:0] first_i,
  input logic       two_i,
  input logic       dealloc_i,
  input logic       sgl_i,
  input logic [1:0] tag_i,
  input logic       cmd_valid_i,
  input logic       data_ready_i,
  input logic       end_i,
  input logic [1:0] end_slot_i,
  input logic       end_error_i,
  input logic       cpl_ready_i,
  input logic       abort_waiting_i,
  input logic [1:0] abort_waiting_slot_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // A namespace's blocks are eight of the media's, so nothing wraps. `sgl` represents all fields
  // that are only passed on.
  data_cmd_t cmd, data;
  logic tagged_first, tagged_second, cmd_ready, data_valid, cpl_valid, drop_valid;
  cpl_t cpl;
  logic [SlotWidth-1:0] drop_slot;
  assign tagged_first = tag_i == 2'd1;
  assign tagged_second = tag_i == 2'd2;
  always_comb begin
    cmd = '0;
    cmd.slot = {6'd0, slot_i};
    cmd.op = tagged_first ? OpCompare : tagged_second ? OpWrite : dealloc_i ? OpDeallocate : OpRead;
    cmd.ns = {'0, ns_i};
    cmd.bytes = two_i ? BytesWidth'(1024) : BytesWidth'(512);
    cmd.mem_addr = {'0, ns_i, 1'b0, first_i, 9'd0};
    cmd.sgl = sgl_i;
  end
  `NS_ASSUME(tags, tag_i != 2'd3)

  nvme_fused_arbiter #(
    .NumSlots  (4),
    .MediaBytes(8192)
  ) u_fused_arbiter (
    .clk_i,
    .rst_ni,
    .busy_o              (),
    .cmd_i               (cmd),
    .cmd_first_i         (tagged_first),
    .cmd_second_i        (tagged_second),
    .cmd_valid_i,
    .cmd_ready_o         (cmd_ready),
    .data_o              (data),
    .data_valid_o        (data_valid),
    .data_ready_i,
    .end_i,
    .end_slot_i          ({6'd0, end_slot_i}),
    .end_error_i,
    .abort_waiting_i,
    .abort_waiting_slot_i({6'd0, abort_waiting_slot_i}),
    .cpl_o               (cpl),
    .cpl_valid_o         (cpl_valid),
    .cpl_ready_i,
    .drop_valid_o        (drop_valid),
    .drop_slot_o         (drop_slot)
  );

  // Command of each slot, and its place: inside, or in flight.
  typedef struct packed {
    logic       ns;
    logic [1:0] first;
    logic       two;
    logic       all;
    logic       sgl;
    logic [1:0] tag;
  } span_t;
  span_t span, span_q[4];
  logic [3:0] inside_q, in_flight_q;
  logic cmd_fire, start, cpl_fire;
  assign cmd_fire = cmd_valid_i && cmd_ready;
  assign start = data_valid && data_ready_i;
  assign cpl_fire = cpl_valid && cpl_ready_i;
  assign span = '{ns: ns_i, first: first_i, two: two_i, all: cmd.op == OpDeallocate, sgl: sgl_i, tag: tag_i};

  // A pair between the start of its Compare and its end: slots, and whether each is in flight.
  logic open_q, failed_q, good_q, writing_q, dropping_q;
  span_t pair_q;
  logic [1:0] pair_slot_q;
  logic follows_q;  // the next one is a second command
  span_t last_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {inside_q, in_flight_q} <= '0;
      {open_q, failed_q, good_q, writing_q, dropping_q, follows_q} <= '0;
    end else begin
      if (cmd_fire) inside_q[slot_i] <= 1'b1;
      if (start) inside_q[data.slot[1:0]] <= 1'b0;
      if (cpl_fire) inside_q[cpl.slot[1:0]] <= 1'b0;
      if (end_i) in_flight_q[end_slot_i] <= 1'b0;
      if (start) in_flight_q[data.slot[1:0]] <= 1'b1;
      if (cmd_fire) follows_q <= tagged_first;
      if (start && data.op == OpCompare) begin
        open_q <= 1'b1;
        {failed_q, good_q, writing_q} <= '0;
      end
      if (end_i && open_q && end_slot_i == pair_slot_q) begin
        if (writing_q) open_q <= 1'b0;
        else if (!failed_q && !good_q) {failed_q, good_q} <= {end_error_i, !end_error_i};
      end
      if (start && data.op == OpWrite) writing_q <= 1'b1;
      if (cpl_fire) begin
        open_q <= 1'b0;
        dropping_q <= 1'b1;
      end
      if (drop_valid) dropping_q <= 1'b0;
    end
  end

  span_t started;
  logic direct;  // passed straight through
  assign direct = cmd_fire && start && data.slot[1:0] == slot_i;
  assign started = direct ? span : span_q[data.slot[1:0]];
  always_ff @(posedge clk_i) begin
    if (cmd_fire) begin
      span_q[slot_i] <= span;
      last_q <= span;
    end
    if (start && data.op inside {OpCompare, OpWrite}) begin
      pair_q <= started;
      pair_slot_q <= data.slot[1:0];
    end
    if (cpl_fire) pair_slot_q <= cpl.slot[1:0];
  end

  // Commands named for the deletion of their queue; the Compare whose Write has ended as deleted.
  logic [3:0] named_q;
  logic deleted, orphan_q;
  assign deleted = cpl_valid && cpl.status == data_status(DataDeleted, 1'b0);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      named_q  <= '0;
      orphan_q <= 1'b0;
    end else begin
      if (abort_waiting_i) named_q[abort_waiting_slot_i] <= 1'b1;
      if (cmd_fire) named_q[slot_i] <= 1'b0;
      if (cpl_fire) orphan_q <= deleted && span_q[cpl.slot[1:0]].tag == 2'd1;
    end
  end

  // The neighbours.
  logic cmd_stalled_q;
  span_t stalled_span_q;
  logic [1:0] stalled_slot_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cmd_stalled_q <= 1'b0;
    else cmd_stalled_q <= cmd_valid_i && !cmd_ready;
  end
  always_ff @(posedge clk_i) {stalled_span_q, stalled_slot_q} <= {span, slot_i};
  `NS_ASSUME(cmd_stays,
             !cmd_stalled_q || (cmd_valid_i && span == stalled_span_q && slot_i == stalled_slot_q))
  `NS_ASSUME(slot_is_free,
             !cmd_valid_i || !(inside_q[slot_i] || in_flight_q[slot_i]) || cmd_stalled_q)
  `NS_ASSUME(slot_is_free_after_drop, !(cmd_valid_i && dropping_q) || slot_i != pair_slot_q)
  `NS_ASSUME(second_follows, !cmd_valid_i || tagged_second == follows_q)
  `NS_ASSUME(
      same_range,
      !(cmd_valid_i && tagged_second) || (ns_i == last_q.ns && first_i == last_q.first && two_i == last_q.two))
  `NS_ASSUME(not_alone, !(follows_q && !cmd_valid_i))
  `NS_ASSUME(in_range, !cmd_valid_i || !(two_i && first_i == 2'd3))
  `NS_ASSUME(end_of_in_flight, !end_i || in_flight_q[end_slot_i])

`ifdef DELETION
  // Closer to a deletion: the first commands are a Dataset Management of a namespace, and a pair in
  // it, which waits.
  logic [4:0] cycle_q = '0;
  logic [1:0] arrivals_q;
  always_ff @(posedge clk_i) if (reset_q && cycle_q != '1) cycle_q <= cycle_q + 1'b1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) arrivals_q <= '0;
    else if (cmd_fire && arrivals_q != 2'd3) arrivals_q <= arrivals_q + 1'b1;
  end
  `NS_ASSUME(
      three_arrive,
      arrivals_q == 2'd3 || (cmd_valid_i && slot_i == arrivals_q && tag_i == arrivals_q && !ns_i && dealloc_i && data_ready_i))
  `NS_ASSUME(blocker_stays, !(in_flight_q[0] && end_i && end_slot_i == '0) || cycle_q > 5'd15)
`endif

  function automatic logic overlaps(span_t a, span_t b);
    return a.ns == b.ns && (a.all || ({1'b0, a.first} <= {1'b0, b.first} + 3'(b.two) && {1'b0, b.first} <= {1'b0, a.first} + 3'(a.two)));
  endfunction

  // How long an incoming command waits while the data path accepts commands; how long a pair could
  // have begun.
  logic [3:0] in_wait_cycles_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_wait_cycles_q <= '0;
    else if (!cmd_valid_i || cmd_ready || u_fused_arbiter.round_active_q || (data_valid && !data_ready_i))
      in_wait_cycles_q <= '0;
    else in_wait_cycles_q <= in_wait_cycles_q + 1'b1;
  end
  logic [4:0] idle_cycles_q;  // something is inside, and nothing is in flight or moves
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) idle_cycles_q <= '0;
    else if (inside_q == '0 || in_flight_q != '0 || start || cpl_valid || u_fused_arbiter.round_active_q || (data_valid && !data_ready_i))
      idle_cycles_q <= '0;
    else idle_cycles_q <= idle_cycles_q + 1'b1;
  end

  logic blocked;
  assign blocked = u_fused_arbiter.state_q == 5'd6;

  // What is proven.
  for (genvar s = 0; s < 4; s++) begin : gen_atomic
    `NS_ASSERT(atomic,
               !(open_q && in_flight_q[s] && !(pair_slot_q == 2'(s) && (writing_q || !(good_q || failed_q)))) || !overlaps(
               span_q[s], pair_q))
  end
  `NS_ASSERT(one_pair, !(start && data.op == OpCompare) || !open_q)
  `NS_ASSERT(write_after_compare,
             !(data_valid && data.op == OpWrite) || (open_q && good_q && !writing_q))
  `NS_ASSERT(
      the_partner,
      !(data_valid && data.op == OpWrite) || (started.ns == pair_q.ns && started.first == pair_q.first && started.two == pair_q.two))
  `NS_ASSERT(
      failed_once,
      !cpl_valid || deleted || (open_q && failed_q && inside_q[cpl.slot[1:0]] && span_q[cpl.slot[1:0]].tag == 2'd2 && cpl.slot[7:2] == '0 && !cpl.silent && cpl.status == generic_status(
      ScFailedFused)))
  `NS_ASSERT(deleted_was_inside,
             !deleted || (inside_q[cpl.slot[1:0]] && cpl.slot[7:2] == '0 && !cpl.silent))
  `NS_ASSERT(deleted_was_named,
             !deleted || (span_q[cpl.slot[1:0]].tag == 2'd2 ? orphan_q : named_q[cpl.slot[1:0]]))
  `NS_ASSERT(write_aborted_too,
             !(orphan_q && cpl_valid) || (deleted && span_q[cpl.slot[1:0]].tag == 2'd2))
  `NS_ASSERT(no_write_alone, !(orphan_q && start) || data.op != OpWrite)
  `NS_ASSERT(drop_follows, !dropping_q || end_i || drop_valid)
  `NS_ASSERT(dropped, !drop_valid || (dropping_q && !end_i && drop_slot == {6'd0, pair_slot_q}))
  `NS_ASSERT(
      data_is_right,
      !start || (data.slot[7:2] == '0 && (direct || inside_q[data.slot[1:0]]) && data.sgl == started.sgl && data.ns == {3'd0, started.ns} && data.bytes == (started.two ? BytesWidth'(1024) : BytesWidth'(512)) && data.mem_addr == {51'd0, started.ns, 1'b0, started.first, 9'd0} && data.op == (started.tag == 2'd1 ? OpCompare : started.tag == 2'd2 ? OpWrite : started.all ? OpDeallocate : OpRead)))
  `NS_ASSERT(blocked_by_overlap, !(blocked && in_flight_q[u_fused_arbiter.scan_q]) || overlaps(
             span_q[u_fused_arbiter.scan_q], span_q[u_fused_arbiter.held.cmd.slot[1:0]]))
  `NS_ASSERT(in_soon, in_wait_cycles_q < 4'd12)
  `NS_ASSERT(progress_bounded, idle_cycles_q < 5'd12)

`ifdef DELETION
  // All of it happens in one run. It is an assertion that fails, because SAT solvers find that in a
  // fifth of the time of SMT solvers.
  logic [2:0] reached_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reached_q <= '0;
    else begin
      if (deleted && span_q[cpl.slot[1:0]].tag == 2'd0) reached_q[0] <= 1'b1;
      if (deleted && span_q[cpl.slot[1:0]].tag == 2'd2) reached_q[1] <= 1'b1;
      // A command that waited for the pair is forwarded, though the pair's blocker is still in
      // flight.
      if (start && !direct && started.tag == 2'd0 && started.ns == '0 && in_flight_q[0] && named_q[1])
        reached_q[2] <= 1'b1;
    end
  end
`ifdef REACHED
  NotAllReached :
  assert property (@(posedge clk_i) reached_q != '1);
`endif
`else
  `NS_COVER(pair_done, end_i && open_q && writing_q)
  `NS_COVER(pair_failed, drop_valid)
  `NS_COVER(beside, start && open_q && started.tag == 2'd0 && started.ns == pair_q.ns)
  `NS_COVER(held, inside_q == 4'b0111 && span_q[2].tag == 2'd0)
  `NS_COVER(pair_blocked, blocked)
`endif

endmodule
