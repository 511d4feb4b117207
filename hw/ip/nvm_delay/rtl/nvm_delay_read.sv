// SPDX-License-Identifier: Apache-2.0

// Read direction: AR passes through, each R beat is held until its deadline.
//
// A read has a slot, and the slot's number is its ID in memory. It is issued once the beat buffer
// has room for all of it. So `m_rready` is always 1, and memory is never blocked in whatever order
// it responds.
//
// Beat buffer: the beats of a read are a linked list in one block RAM. The address of the next beat
// is allocated when a beat is stored, and stored with it. The first beat of slot s has address s;
// only the others use the free list.
//
// A slot is ready when its next beat is stored and due and all older reads of its ID have left. It
// then stays the current slot (`cur`) as long as consecutive beats are due and stored. Otherwise it
// returns to the waiting slots.
//
// A beat that is overdue on arrival bypasses the buffer if it is the last one, or if all beats of
// the read are due together. Other overdue beats pass through the buffer, two cycles later.
//
// A response is late if its last beat is offered after its deadline for any reason but a slow
// master.
`include "ns_assert.svh"

module nvm_delay_read
  import nvm_delay_pkg::*;
#(
  /// Transactions in flight: a power of two, 32 to 128.
  parameter int unsigned Slots = 64,
  /// Bits of an ID, at least SlotWidth.
  parameter int unsigned IdWidth = 8,
  /// Bits of an address.
  parameter int unsigned AddrWidth = 64,
  /// Bits of a beat.
  parameter int unsigned DataWidth = 512,
  /// Beats of the buffer: at least Slots + 255.
  parameter int unsigned BufferBeats = 512,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots)),
  localparam int unsigned InitBits = SlotWidth + 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Current cycle.
  input  cycle_t               now_i,
  /// Committed parameters.
  input  config_t              config_i,
  /// A time is written.
  input  logic                 time_valid_i,
  /// Its index and value.
  input  time_write_t          time_i,
  /// Committed bandwidth cap.
  input  rate_t                rate_i,
  /// Set-up after reset: slot and row `init_index_i` are initialised; nothing is accepted
  /// meanwhile.
  input  logic                 init_i,
  /// See init_i.
  input  logic [InitBits-1:0]           init_index_i,
  /// Something is in flight.
  output logic                 busy_o,
  /// Reads in flight.
  output logic [7:0]           used_o,

  /// Slave port.
  input  logic                 s_arvalid_i,
  output logic                 s_arready_o,
  input  logic [IdWidth-1:0]   s_arid_i,
  input  logic [AddrWidth-1:0] s_araddr_i,
  input  logic [7:0]           s_arlen_i,
  input  logic [2:0]           s_arsize_i,
  input  extra_t               s_arextra_i,
  output logic                 s_rvalid_o,
  input  logic                 s_rready_i,
  output logic [IdWidth-1:0]   s_rid_o,
  output logic [DataWidth-1:0] s_rdata_o,
  output logic [1:0]           s_rresp_o,
  output logic                 s_rlast_o,

  /// Master port; R is always accepted.
  output logic                 m_arvalid_o,
  input  logic                 m_arready_i,
  output logic [IdWidth-1:0]   m_arid_o,
  output logic [AddrWidth-1:0] m_araddr_o,
  output logic [7:0]           m_arlen_o,
  output logic [2:0]           m_arsize_o,
  output extra_t               m_arextra_o,
  input  logic                 m_rvalid_i,
  input  logic [IdWidth-1:0]   m_rid_i,
  input  logic [DataWidth-1:0] m_rdata_i,
  input  logic [1:0]           m_rresp_i,
  input  logic                 m_rlast_i,

  /// For the counters: an R beat is accepted.
  output logic                 beat_o,
  /// For the counters: it is the last of its read.
  output logic                 done_o,
  /// Latency of that read.
  output cycle_t               latency_o,
  /// The read is late.
  output logic                 late_o
);

  localparam int unsigned PtrWidth = $clog2(BufferBeats);
  localparam int unsigned FreeBeats = BufferBeats - Slots;
  localparam int unsigned CreditWidth = $clog2(FreeBeats + 1);

  typedef logic [PtrWidth-1:0] ptr_t;

  typedef struct packed {
    logic [7:0]           len;
    logic [2:0]           size;
    extra_t               extra;
    logic [AddrWidth-1:0] addr;
  } ar_t;

  typedef struct packed {
    ptr_t                 next;
    logic [1:0]           resp;
    logic                 last;
    logic [DataWidth-1:0] data;
  } beat_t;

  // Per slot, written when a read is accepted.
  (* ram_style = "distributed" *) ar_t ar_of[Slots];
  (* ram_style = "distributed" *) logic [IdWidth-1:0] id_of[Slots];
  (* ram_style = "distributed" *) logic [2:0] size_of[Slots];
  (* ram_style = "distributed" *) cycle_t received[Slots];
  (* ram_style = "distributed" *) logic single_of[Slots];  // one beat only
  (* ram_style = "distributed" *) logic off_of[Slots];  // accepted while the emulation was off
  // Written one cycle later.
  (* ram_style = "distributed" *) time_t beat_of[Slots];
  (* ram_style = "distributed" *) logic together_of[Slots];  // all beats are due together: off, or no time per beat
  // Latency of the next beat, written when the beat enters the wheel.
  (* ram_style = "distributed" *) time_t rel_of[Slots];
  // Written when a beat is stored: it is the last one; beats stored so far; address of the next
  // beat.
  (* ram_style = "distributed" *) logic ended_of[Slots];
  (* ram_style = "distributed" *) logic [7:0] stored_of[Slots];
  (* ram_style = "distributed" *) ptr_t wptr_of[Slots];
  // Written when a stored beat leaves: beats that have left, and address of the next beat.
  (* ram_style = "distributed" *) logic [7:0] sent_of[Slots];
  (* ram_style = "distributed" *) ptr_t rptr_of[Slots];
  // A beat has been stored, or has left, while two bits differ: the event writes one, acceptance
  // the other.
  (* ram_style = "distributed" *) logic stored_set[Slots];
  (* ram_style = "distributed" *) logic stored_clear[Slots];
  (* ram_style = "distributed" *) logic sent_set[Slots];
  (* ram_style = "distributed" *) logic sent_clear[Slots];

  logic accept, slot_valid, target_ready;
  logic [SlotWidth-1:0] slot;
  logic [SlotWidth:0] used;

  logic out_valid_q, out_free, out_last;
  logic [SlotWidth-1:0] out_slot_q;

  logic cap_allowed, cap_busy;

  logic cur_valid_q, cur_chain_q, cur_released_q;
  logic [1:0] cur_wait_q;  // cycles until the next beat may leave
  logic [SlotWidth-1:0] cur_slot_q;

  logic fire, fire_last, bypass, bypass_last;
  logic ready_valid, ready_pop, ready_released;
  logic [SlotWidth-1:0] ready_slot;

  // -----------------------------------------------------------------------------------------------
  // AR: allocates a slot; reads are issued in order when the buffer has room.

  assign s_arready_o = slot_valid && target_ready && !init_i;
  assign accept = s_arvalid_i && s_arready_o;

  nvm_delay_free_list #(
    .Count(Slots)
  ) u_slots (
    .clk_i,
    .rst_ni,
    .valid_o(slot_valid),
    .index_o(slot),
    .pop_i  (accept),
    .push_i (done_o),
    .index_i(out_slot_q),
    .used_o (used)
  );

  assign used_o = 8'(used);

  logic issue_valid, issue, issue_ready;
  logic [SlotWidth-1:0] issue_slot;
  ar_t m_ar;
  logic [CreditWidth-1:0] credits_q;  // free list entries not reserved by issued reads
  logic credit;

  ns_fifo #(
    .Width(SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_issue (
    .clk_i,
    .rst_ni,
    .in_valid_i (accept),
    .in_ready_o (issue_ready),
    .in_data_i  (slot),
    .out_valid_o(issue_valid),
    .out_ready_i(issue),
    .out_data_o (issue_slot),
    .count_o    ()
  );

  assign m_ar = ar_of[issue_slot];
  assign m_arvalid_o = issue_valid && CreditWidth'(m_ar.len) <= credits_q;
  assign m_arid_o = IdWidth'(issue_slot);
  assign m_araddr_o = m_ar.addr;
  assign m_arlen_o = m_ar.len;
  assign m_arsize_o = m_ar.size;
  assign m_arextra_o = m_ar.extra;
  assign issue = m_arvalid_o && m_arready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) credits_q <= CreditWidth'(FreeBeats);
    else credits_q <= credits_q + CreditWidth'(credit) - (issue ? CreditWidth'(m_ar.len) : '0);
  end

  // -----------------------------------------------------------------------------------------------
  // Arrival: a beat is stored in the buffer, or bypasses it.

  logic [SlotWidth-1:0] arrival_slot;
  logic bypass_ready, store, arrival_stored_any;
  ptr_t arrival_ptr, free_ptr;
  logic [7:0] arrival_stored;
  logic free_valid, free_push;
  ptr_t free_back;

  assign arrival_slot = m_rid_i[SlotWidth-1:0];

  always_comb begin
    arrival_ptr = '0;
    arrival_stored = '0;
    bypass_ready = 1'b0;
    arrival_stored_any = 1'b0;
    if (m_rvalid_i) begin
      arrival_stored_any = stored_set[arrival_slot] != stored_clear[arrival_slot];
      arrival_ptr = arrival_stored_any ? wptr_of[arrival_slot] : ptr_t'(arrival_slot);
      arrival_stored = (arrival_stored_any ? stored_of[arrival_slot] : '0) + 8'd1;
      bypass_ready = out_free && !cur_valid_q && !ready_valid && cap_allowed && (m_rlast_i || together_of[arrival_slot]);
    end
  end

  assign bypass_last = bypass && m_rlast_i;
  assign store = m_rvalid_i && !bypass;

  nvm_delay_free_list #(
    .Count(FreeBeats),
    .First(Slots)
  ) u_free (
    .clk_i,
    .rst_ni,
    .valid_o(free_valid),
    .index_o(free_ptr),
    .pop_i  (store && !m_rlast_i),
    .push_i (free_push),
    .index_i(free_back),
    .used_o ()
  );

  always_ff @(posedge clk_i) begin
    if (store) begin
      stored_of[arrival_slot] <= arrival_stored;
      ended_of[arrival_slot] <= m_rlast_i;
      stored_set[arrival_slot] <= !stored_clear[arrival_slot];
      if (!m_rlast_i) wptr_of[arrival_slot] <= free_ptr;
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Current slot: reads its beats from the buffer, one a cycle.

  time_t cur_rel_q, cur_beat_q, next_rel;
  logic [TimeWidth:0] next_sum;
  cycle_t cur_received_q, cur_age, next_age;
  logic [7:0] cur_count_q, ready_count;  // beats sent, including this one
  ptr_t cur_ptr_q, fetch_ptr;
  logic cur_off_q, cur_together_q, cur_end_q;  // end: the last beat
  logic has_more, ended, cur_keep, keep_due, keep_soon, cur_release, cur_last;
  logic wheel_ready, wheel_valid, target_valid;
  beat_t fetched;

  assign fetch_ptr = cur_chain_q ? fetched.next : cur_ptr_q;

  always_comb begin
    fire = 1'b0;
    fire_last = 1'b0;
    has_more = 1'b0;
    cur_keep = 1'b0;
    keep_due = 1'b0;
    keep_soon = 1'b0;
    cur_release = 1'b0;
    cur_last = 1'b0;
    ended = 1'b0;
    cur_age = '0;
    next_age = '0;
    next_sum = '0;
    next_rel = '0;
    if (cur_valid_q && cur_wait_q == '0 && out_free && cap_allowed) begin
      ended = ended_of[cur_slot_q];
      has_more = stored_of[cur_slot_q] != cur_count_q;
      // Any beat but those without a deadline needs the wheel to be free.
      fire = cur_together_q || (wheel_ready && !target_valid) || cur_end_q;
      fire_last = fire && cur_end_q;
      cur_age = now_i - cur_received_q;
      next_sum = {1'b0, cur_rel_q} + {1'b0, cur_beat_q};
      next_rel = next_sum[TimeWidth] ? '1 : next_sum[TimeWidth-1:0];
      next_age = cycle_t'(next_rel[TimeWidth-1:FracBits]) - cur_age;  // cycles from now to the next deadline
      keep_due = cur_together_q || next_age[CycleWidth-1] || next_age[CycleWidth-1:2] == '0 && next_age[1:0] != 2'd3;
      // Through the wheel it would take five cycles.
      keep_soon = next_age == cycle_t'(3) || next_age == cycle_t'(4);
      cur_keep = fire && has_more && (keep_due || (keep_soon && !ready_valid));
      cur_release = fire && !fire_last && !cur_keep;
      cur_last = cur_keep && ended && stored_of[cur_slot_q] == cur_count_q + 8'd1;
    end
  end

  assign ready_pop = ready_valid && (!cur_valid_q || (fire && !cur_keep));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cur_valid_q <= 1'b0;
    end else begin
      if (ready_pop) cur_valid_q <= 1'b1;
      else if (fire && !cur_keep) cur_valid_q <= 1'b0;
    end
  end

  logic fired_q, ready_sent;
  logic [SlotWidth-1:0] fired_slot_q;

  assign ready_sent = sent_set[ready_slot] != sent_clear[ready_slot];
  assign ready_count = (ready_sent ? sent_of[ready_slot] : '0) + 8'd1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) fired_q <= 1'b0;
    else fired_q <= fire;
  end

  always_ff @(posedge clk_i) begin
    if (ready_pop) begin
      cur_slot_q <= ready_slot;
      cur_wait_q <= '0;
      cur_chain_q <= 1'b0;
      cur_rel_q <= rel_of[ready_slot];
      cur_beat_q <= beat_of[ready_slot];
      cur_received_q <= received[ready_slot];
      cur_off_q <= off_of[ready_slot];
      cur_together_q <= together_of[ready_slot];
      cur_count_q <= ready_count;
      cur_end_q <= ended_of[ready_slot] && stored_of[ready_slot] == ready_count;
      if (fired_q && fired_slot_q == ready_slot) cur_ptr_q <= fetched.next;
      else cur_ptr_q <= ready_sent ? rptr_of[ready_slot] : ptr_t'(ready_slot);
    end else if (cur_keep) begin
      cur_wait_q <= keep_due ? '0 : next_age[1:0] - 2'd2;
      cur_chain_q <= 1'b1;
      if (!cur_together_q) cur_rel_q <= next_rel;
      cur_count_q <= cur_count_q + 8'd1;
      cur_end_q <= cur_last;
    end else if (cur_wait_q != '0) begin
      cur_wait_q <= cur_wait_q - 1'b1;
    end
    if (fire) begin
      fired_slot_q <= cur_slot_q;
      sent_of[cur_slot_q] <= cur_count_q;
      sent_set[cur_slot_q] <= !sent_clear[cur_slot_q];
    end
    if (fired_q) rptr_of[fired_slot_q] <= fetched.next;
  end

  ns_ram_1r1w #(
    .Width($bits(beat_t)),
    .Depth(BufferBeats),
    .Style("bram")
  ) u_buffer (
    .clk_i,
    .we_i   (store),
    .waddr_i(arrival_ptr),
    .wdata_i({free_ptr, m_rresp_i, m_rlast_i, m_rdata_i}),
    .re_i   (fire),
    .raddr_i(fetch_ptr),
    .rdata_o(fetched)
  );

  // A bypassing beat returns its buffer entry: the allocated address, or the credit for one.
  assign free_push = (fire && fetch_ptr >= ptr_t'(Slots)) || (bypass_last && arrival_stored_any);
  assign free_back = fire ? fetch_ptr : arrival_ptr;
  assign credit = free_push || (bypass && !m_rlast_i);

  // -----------------------------------------------------------------------------------------------
  // Deadlines: of first beats from `u_target`, of further ones from `cur`.

  logic [SlotWidth-1:0] target_slot, wheel_slot;
  time_t target_rel, timing_beat;
  logic timing_valid, timing_off;
  logic [SlotWidth-1:0] timing_slot;
  cycle_t target_due, wheel_cycle;
  logic wheel_due, wheel_due_ready;
  logic [SlotWidth-1:0] wheel_due_slot;

  nvm_delay_target #(
    .Slots     (Slots),
    .AddrWidth (AddrWidth),
    .WholeBurst(1'b0),
    .Lead      (2)
  ) u_target (
    .clk_i,
    .rst_ni,
    .now_i,
    .config_i,
    .time_valid_i,
    .time_i,
    .ready_o       (target_ready),
    .accept_i      (accept),
    .slot_i        (slot),
    .addr_i        (s_araddr_i),
    .len_i         (s_arlen_i),
    .timing_valid_o(timing_valid),
    .timing_slot_o (timing_slot),
    .timing_beat_o (timing_beat),
    .timing_off_o  (timing_off),
    .valid_o       (target_valid),
    .ready_i       (wheel_ready),
    .slot_o        (target_slot),
    .rel_o         (target_rel),
    .due_o         (target_due)
  );

  assign wheel_valid = target_valid || (cur_release && !cur_together_q);
  assign wheel_slot = target_valid ? target_slot : cur_slot_q;
  assign wheel_cycle = target_valid ? target_due
                                    : cur_received_q + cycle_t'(next_rel[TimeWidth-1:FracBits]) - cycle_t'(2);

  nvm_delay_wheel #(
    .Slots(Slots)
  ) u_wheel (
    .clk_i,
    .rst_ni,
    .now_i,
    .flush_i    (1'b0),
    .init_i,
    .init_row_i (init_index_i),
    .valid_i    (wheel_valid),
    .ready_o    (wheel_ready),
    .slot_i     (wheel_slot),
    .due_i      (wheel_cycle),
    .due_o      (wheel_due),
    .due_ready_i(wheel_due_ready),
    .due_slot_o (wheel_due_slot)
  );

  always_ff @(posedge clk_i) begin
    if (timing_valid) begin
      beat_of[timing_slot] <= timing_beat;
      together_of[timing_slot] <= timing_off || timing_beat == '0;
    end
    if (wheel_valid && wheel_ready) rel_of[wheel_slot] <= target_valid ? target_rel : next_rel;
  end

  // -----------------------------------------------------------------------------------------------
  // Order by ID: the next read may start once all beats of this one have been read, or are certain
  // to precede it.

  logic done;
  logic [SlotWidth-1:0] unused_lookup_slot;

  assign done = bypass_last || (fire_last && !cur_released_q) || cur_last;

  always_ff @(posedge clk_i) begin
    if (ready_pop) cur_released_q <= single_of[ready_slot] && ready_released;
    else if (cur_last) cur_released_q <= 1'b1;
  end

  nvm_delay_order #(
    .Slots          (Slots),
    .IdWidth        (IdWidth),
    .BypassNextCycle(1'b1)
  ) u_order (
    .clk_i,
    .rst_ni,
    .init_i,
    .init_slot_i     (init_index_i[SlotWidth-1:0]),
    .accept_i        (accept),
    .slot_i          (slot),
    .id_i            (s_arid_i),
    .single_i        (s_arlen_i == '0),
    .due_now_i       (!config_i.enable),
    .due_i           (wheel_due),
    .due_ready_o     (wheel_due_ready),
    .due_slot_i      (wheel_due_slot),
    .response_i      (m_rvalid_i),
    .response_slot_i (arrival_slot),
    .bypass_ready_i  (bypass_ready),
    .bypass_o        (bypass),
    .empty_i         (fire && !has_more),
    .empty_slot_i    (cur_slot_q),
    .ready_valid_o   (ready_valid),
    .ready_slot_o    (ready_slot),
    .ready_released_o(ready_released),
    .ready_pop_i     (ready_pop),
    // Its beats are due together: only the first one has a deadline.
    .ready_keep_due_i(together_of[ready_slot]),
    .release_i       (done),
    .release_slot_i  (cur_valid_q ? cur_slot_q : arrival_slot),
    .lookup_i        (1'b0),
    .lookup_id_i     ('0),
    .lookup_slot_o   (unused_lookup_slot)
  );

  always_ff @(posedge clk_i) begin
    if (accept) begin
      ar_of[slot] <= {s_arlen_i, s_arsize_i, s_arextra_i, s_araddr_i};
      id_of[slot] <= s_arid_i;
      size_of[slot] <= s_arsize_i;
      received[slot] <= now_i;
      single_of[slot] <= s_arlen_i == '0;
      off_of[slot] <= !config_i.enable;
      stored_clear[slot] <= stored_set[slot];
      sent_clear[slot] <= sent_set[slot];
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Output: the beat from the buffer, or the bypassing beat.

  logic out_bypassed_q, out_first_q, out_off_q, out_late_q, bypassed_last_q;
  cycle_t out_received_q;
  logic [IntBits-1:0] out_rel_q;
  logic [IdWidth-1:0] out_id_q;
  logic [DataWidth-1:0] bypassed_data_q;
  logic [1:0] bypassed_resp_q;

  assign out_free = !out_valid_q || s_rready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) out_valid_q <= 1'b0;
    else if (out_free) out_valid_q <= fire || bypass;
  end

  always_ff @(posedge clk_i) begin
    out_first_q <= fire || bypass;
    if (out_valid_q) out_late_q <= late_o;
    if (fire || bypass) begin
      out_bypassed_q <= bypass;
      out_slot_q <= bypass ? arrival_slot : cur_slot_q;
      out_id_q <= id_of[bypass ? arrival_slot : cur_slot_q];
      out_received_q <= bypass ? received[arrival_slot] : cur_received_q;
      out_rel_q <= bypass ? rel_of[arrival_slot][TimeWidth-1:FracBits] : cur_rel_q[TimeWidth-1:FracBits];
      out_off_q <= bypass ? off_of[arrival_slot] : cur_off_q;
    end
    if (bypass) begin
      bypassed_data_q <= m_rdata_i;
      bypassed_resp_q <= m_rresp_i;
      bypassed_last_q <= m_rlast_i;
    end
  end

  assign out_last = out_bypassed_q ? bypassed_last_q : fetched.last;
  assign s_rvalid_o = out_valid_q;
  assign s_rid_o = out_id_q;
  assign s_rdata_o = out_bypassed_q ? bypassed_data_q : fetched.data;
  assign s_rresp_o = out_bypassed_q ? bypassed_resp_q : fetched.resp;
  assign s_rlast_o = out_last;

  nvm_delay_cap #(
    .BeatBytes(DataWidth / 8)
  ) u_cap (
    .clk_i,
    .rst_ni,
    .rate_i   (rate_i),
    .allowed_o(cap_allowed),
    .beat_i   (fire || bypass),
    .size_i   (size_of[bypass ? arrival_slot : cur_slot_q]),
    .busy_o   (cap_busy)
  );

  assign beat_o = out_valid_q && s_rready_i;
  assign done_o = beat_o && out_last;
  assign latency_o = now_i - out_received_q;
  // Evaluated in the cycle in which the beat is first offered.
  assign late_o = out_first_q ? !out_off_q && latency_o > cycle_t'(out_rel_q) : out_late_q;
  assign busy_o = used != '0 || cap_busy;

  `NS_ASSERT(issue_never_full, !accept || issue_ready)
  `NS_ASSERT(m_r_id_known, !m_rvalid_i || 32'(m_rid_i) < Slots)
  `NS_ASSERT(buffer_has_room, !store || m_rlast_i || free_valid)
  `NS_ASSERT(end_has_no_more, !(fire && cur_end_q) || !has_more)
  `NS_ASSERT(arrival_has_no_more, !m_rvalid_i || !(arrival_stored_any && ended_of[arrival_slot]))

endmodule
