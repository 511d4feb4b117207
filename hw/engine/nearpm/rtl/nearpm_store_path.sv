// SPDX-License-Identifier: Apache-2.0

// Stores of the PM window: conflicting stores enter the queue, others are forwarded, and all are
// answered in their order.
//
// A store leaves the lookup stage in the next cycle: it is forwarded, or reserves places in the
// queue. A store that cannot be queued waits until its conflicts are gone and is then forwarded; no
// later store passes it.
//
// The place in the ring of stores is the AXI ID towards the memory, so responses may arrive in any
// order. Data follow in the order of the stores, to the memory or into the queue. Lines of the
// queue share the bus to the memory; data there follow the order of the addresses.
`include "ns_assert.svh"

module nearpm_store_path
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
(
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  freeze_i,
  input  commands_t             retired_i,

  /// An address may be accepted from the bus; its lookup follows in the next cycle.
  output logic                  lookup_ready_o,
  input  logic                  accept_i,
  /// An address is looked up. Its conflicts are valid at the end of this cycle, except those that
  /// the preceding store adds.
  input  logic                  lookup_valid_i,
  input  ax_t                   lookup_ax_i,
  input  burst_t                lookup_burst_i,
  input  conflict_set_t                lookup_conflicts_i,

  /// Stores that arrived, and stores that are answered. From registers.
  output count_t                stores_o,
  output count_t                answered_o,
  /// No store is on its way to these counters or to those of the queue. From registers.
  output logic                  quiet_o,
  /// A store is present. From registers.
  output logic                  busy_o,
  /// A store enters the queue.
  output logic                  store_queued_o,

  /// The queue, see nearpm_queue.
  input  count_t                written_i,
  input  place_t                queue_tail_i,
  input  logic   [CountBits-1:0] free_i,
  output logic                  insert_valid_o,
  output burst_t                insert_burst_o,
  output commands_t             insert_commands_o,
  output logic                  fill_valid_o,
  output place_t fill_place_o,
  output line_t                 fill_line_o,
  output logic [StrbWidth-1:0]  fill_strb_o,
  output logic [DataWidth-1:0]  fill_data_o,
  input  logic                  line_aw_valid_i,
  input  line_t                 line_aw_line_i,
  output logic                  line_aw_ready_o,
  input  logic                  line_w_valid_i,
  input  w_t                    line_w_i,
  output logic                  line_w_ready_o,
  output logic                  line_response_o,
  output count_t                settled_add_o,

  /// Data from the host and responses to it.
  input  logic                  s_w_valid_i,
  input  w_t                    s_w_i,
  output logic                  s_w_ready_o,
  output logic                  s_b_valid_o,
  output b_t                    s_b_o,
  input  logic                  s_b_ready_i,
  /// To the memory.
  ns_axi_if.write_master        m_axi
);

  localparam int unsigned Bits = unsigned'($clog2(Stores));
  localparam int unsigned Depth = 1 << Bits;
  typedef logic [Bits-1:0] ring_place_t;  // place in the ring

  function automatic ring_place_t next_place(ring_place_t place);
    next_place = (place == ring_place_t'(Stores - 1)) ? '0 : place + 1'b1;
  endfunction

  // ---------------------------------------------------------------- lookup

  logic
      valid_q,
      fresh_q,
      queueable_q,
      // fresh_q: arrived in this cycle; queueable_q: whole lines; room_q: queueable, and there is
      // room
      room_q;
  ax_t ax_q;
  burst_t burst_q;
  conflict_set_t conflicts_q;
  logic lookup_queueable, lookup_room, overlaps_previous, forward_push, queue_push, lookup_pop;
  count_t lookup_lines, lines;
  ring_place_t ring_tail_q;  // place of the next store
  count_t stores_q, used_q;
  logic b_fire;

  assign lines = count_t'(burst_q.last - burst_q.first) + count_t'(1);
  assign lookup_lines = count_t'(lookup_burst_i.last - lookup_burst_i.first) + count_t'(1);
  assign lookup_queueable = lookup_ax_i.burst == BurstIncr && lookup_ax_i.size == 3'($clog2(StrbWidth));
  assign lookup_room = lookup_queueable &&
      (CountBits + 1)'(lookup_lines) + (CountBits + 1)'(valid_q ? lines : '0) <= (CountBits + 1)'(free_i);
  assign lookup_ready_o = !freeze_i && used_q != count_t'(Stores) && !(lookup_valid_i && !lookup_room) && !(valid_q && !room_q);

  assign forward_push = valid_q && no_conflict(conflicts_q);
  assign queue_push = valid_q && fresh_q && queueable_q && lines <= free_i && !no_conflict(conflicts_q);
  assign lookup_pop = forward_push || queue_push;
  // The preceding store enters the queue in this cycle.
  assign overlaps_previous = queue_push && burst_q.page == lookup_burst_i.page && burst_q.first <= lookup_burst_i.last &&
      lookup_burst_i.first <= burst_q.last;

  assign stores_o = stores_q;
  assign quiet_o = !lookup_valid_i && !(valid_q && fresh_q);
  assign busy_o = used_q != '0;
  assign store_queued_o = queue_push;
  assign insert_valid_o = queue_push;
  assign insert_burst_o = burst_q;
  assign insert_commands_o = conflicts_q.commands;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      fresh_q  <= 1'b0;
      queueable_q  <= 1'b0;
      room_q   <= 1'b0;
      ring_tail_q    <= '0;
      stores_q <= '0;
      used_q   <= '0;
    end else begin
      fresh_q <= lookup_valid_i;
      if (lookup_valid_i) begin
        valid_q <= 1'b1;
        queueable_q <= lookup_queueable;
        room_q  <= lookup_room;
      end else if (lookup_pop) begin
        valid_q <= 1'b0;
      end
      if (lookup_pop) ring_tail_q <= next_place(ring_tail_q);
      stores_q <= stores_q + count_t'(lookup_valid_i);
      used_q   <= used_q + count_t'(accept_i) - count_t'(b_fire);
    end
  end

  always_ff @(posedge clk_i) begin
    if (lookup_valid_i) begin
      ax_q <= lookup_ax_i;
      burst_q <= lookup_burst_i;
      conflicts_q <= lookup_conflicts_i;
      conflicts_q.lines <= lookup_conflicts_i.lines || overlaps_previous;
    end else begin
      conflicts_q <= remaining(conflicts_q, retired_i, written_i);
    end
  end

  // ---------------------------------------------------------------- addresses to the memory

  typedef struct packed {
    ring_place_t               store;
    logic [7:0]           len;
    logic [2:0]           size;
    logic [1:0]           burst;
    logic [MediaBits-1:0] addr;
  } forward_t;

  forward_t forward;
  logic forward_valid, order_room;
  logic line_q, aw_held_q, turn_q, line, line_next, order_valid, aw_fire;

  ns_fifo #(
    .Width($bits(forward_t)),
    .Depth(Depth),
    .Style("lutram")
  ) u_forward (
    .clk_i,
    .rst_ni,
    .in_valid_i (forward_push),
    .in_ready_o (),
    .in_data_i  ({ring_tail_q, ax_q.len, ax_q.size, ax_q.burst, ax_q.addr[MediaBits-1:0]}),
    .out_valid_o(forward_valid),
    .out_ready_i(aw_fire && !line),
    .out_data_o (forward),
    .count_o    ()
  );

  // Forwarded stores and lines of the queue alternate; a valid address is held.
  assign line = aw_held_q ? line_q : line_aw_valid_i && (turn_q || !forward_valid);
  assign m_axi.aw_valid = aw_held_q || (!freeze_i && order_room && (line_aw_valid_i || forward_valid));
  assign m_axi.aw = line ?
      '{id: LineId, len: '0, size: 3'($clog2(StrbWidth)), burst: BurstIncr, addr: AddrWidth'({line_aw_line_i, 6'd0})} :
      '{id: IdWidth'(forward.store), len: forward.len, size: forward.size, burst: forward.burst, addr: AddrWidth'(forward.addr)};
  assign aw_fire = m_axi.aw_valid && m_axi.aw_ready;
  assign line_aw_ready_o = aw_fire && line;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_held_q <= 1'b0;
      line_q  <= 1'b0;
      turn_q  <= 1'b0;
    end else begin
      aw_held_q <= m_axi.aw_valid && !m_axi.aw_ready;
      line_q  <= line;
      if (aw_fire) turn_q <= !line;
    end
  end

  // ---------------------------------------------------------------- data

  // Destination of a store's data.
  typedef struct packed {
    logic   queued;
    ring_place_t ring;
    place_t place;
    line_t  line;
  } plan_t;

  plan_t plan;
  logic plan_valid, w_fire, w_end, to_memory;
  logic [PageLineBits-1:0] beat_q;

  ns_fifo #(
    .Width($bits(plan_t)),
    .Depth(Depth),
    .Style("lutram")
  ) u_plan (
    .clk_i,
    .rst_ni,
    .in_valid_i (lookup_pop),
    .in_ready_o (),
    .in_data_i  ({queue_push, ring_tail_q, queue_tail_i, burst_q.page, burst_q.first}),
    .out_valid_o(plan_valid),
    .out_ready_i(w_end),
    .out_data_o (plan),
    .count_o    ()
  );

  // Source of the next data on the bus to the memory: a line of the queue, or a forwarded store.
  ns_fifo #(
    .Width(1),
    .Depth(Depth),
    .Style("lutram")
  ) u_order (
    .clk_i,
    .rst_ni,
    .in_valid_i (aw_fire),
    .in_ready_o (order_room),
    .in_data_i  (line),
    .out_valid_o(order_valid),
    .out_ready_i(m_axi.w_valid && m_axi.w_ready && m_axi.w.last),
    .out_data_o (line_next),
    .count_o    ()
  );

  assign to_memory = plan_valid && !plan.queued && order_valid && !line_next;
  assign s_w_ready_o = plan_valid && (plan.queued || (to_memory && m_axi.w_ready));
  assign w_fire = s_w_valid_i && s_w_ready_o;
  assign w_end = w_fire && s_w_i.last;
  assign m_axi.w_valid = order_valid && (line_next ? line_w_valid_i : to_memory && s_w_valid_i);
  assign m_axi.w = line_next ? line_w_i : s_w_i;
  assign line_w_ready_o = order_valid && line_next && m_axi.w_ready;
  assign fill_valid_o = w_fire && plan.queued;
  assign fill_place_o = plan.place + QueueBits'(beat_q);
  assign fill_line_o = plan.line + line_t'(beat_q);
  assign fill_strb_o = s_w_i.strb;
  assign fill_data_o = s_w_i.data;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) beat_q <= '0;
    else if (w_fire) beat_q <= s_w_i.last ? '0 : beat_q + 1'b1;
  end

  // ---------------------------------------------------------------- responses

  logic [Depth-1:0] done_q;
  logic [1:0] resp_q[Depth];
  logic [IdWidth-1:0] id[Depth];
  count_t queued_lines[Depth];
  ring_place_t answer_place_q, b_place_q;
  count_t answered_q, b_pending_q;  // b_pending_q: answered, response not yet sent
  logic answer_pop, answer_valid, line_response;

  assign line_response = m_axi.b_valid && m_axi.b.id == LineId;
  assign line_response_o = line_response;
  assign m_axi.b_ready = 1'b1;
  assign answer_valid = m_axi.b_valid && !line_response;
  assign answer_pop = done_q[answer_place_q] && !freeze_i;
  assign answered_o = answered_q;
  assign settled_add_o = answer_pop ? queued_lines[answer_place_q] : '0;
  assign s_b_valid_o = b_pending_q != '0;
  assign s_b_o = '{id: id[b_place_q], resp: resp_q[b_place_q]};
  assign b_fire = s_b_valid_o && s_b_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      done_q <= '0;
      answer_place_q <= '0;
      b_place_q <= '0;
      answered_q <= '0;
      b_pending_q <= '0;
    end else begin
      if (answer_valid) done_q[m_axi.b.id[Bits-1:0]] <= 1'b1;
      if (fill_valid_o && s_w_i.last) done_q[plan.ring] <= 1'b1;
      if (answer_pop) begin
        done_q[answer_place_q] <= 1'b0;
        answer_place_q <= next_place(answer_place_q);
        answered_q <= answered_q + 1'b1;
      end
      if (b_fire) b_place_q <= next_place(b_place_q);
      b_pending_q <= b_pending_q + count_t'(answer_pop) - count_t'(b_fire);
    end
  end

  always_ff @(posedge clk_i) begin
    if (lookup_pop) id[ring_tail_q] <= ax_q.id;
    if (lookup_pop) queued_lines[ring_tail_q] <= queue_push ? lines : '0;
    if (answer_valid) resp_q[m_axi.b.id[Bits-1:0]] <= m_axi.b.resp;
    if (fill_valid_o && s_w_i.last) resp_q[plan.ring] <= RespOkay;
  end

  // Last beat according to the address of a queued store, for the assertion.
`ifdef NS_ASSERT_ON
  logic [PageLineBits-1:0] last_beat[Depth];
  logic plan_ends;
  always_ff @(posedge clk_i) if (lookup_pop) last_beat[ring_tail_q] <= burst_q.last - burst_q.first;
  assign plan_ends = beat_q == last_beat[plan.ring];
`endif

  `NS_ASSERT(one_at_a_time, !lookup_valid_i || !valid_q || lookup_pop)
  `NS_ASSERT(leaves_when_room, !(valid_q && room_q) || lookup_pop)
  `NS_ASSERT(alone_unless_room, !(valid_q && !room_q) || !lookup_valid_i)
  `NS_ASSERT(forwarded_without_conflict, !forward_push || no_conflict(conflicts_q))
  `NS_ASSERT(counted, used_q <= count_t'(Stores))
  `NS_ASSERT(answered_once, !answer_valid || !done_q[m_axi.b.id[Bits-1:0]])
  `NS_ASSERT(whole_lines_only, !fill_valid_o || s_w_i.last == plan_ends)

endmodule
