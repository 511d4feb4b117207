// Read direction: AR passes through, each R beat is held until its deadline.
//
// A read has a slot, and its number is the ID in memory. It is issued once the beat buffer has room for all of it, so
// `m_rready` needs no register: it is always 1, and memory is never blocked, whatever order it answers in.
// Beat buffer: the beats of a read are a list in one block RAM. The address of the next beat is drawn when a beat is
// stored, and stored with it. The first beat of slot s is at address s; only the others draw from the free list.
// A slot may go when its next beat is stored and due and all older reads of its ID have gone. It then stays in
// `cur` as long as beat after beat is due and stored; otherwise it goes back to waiting, so that others may go.
// A beat that is overdue when it arrives passes straight to the output register: at once if it is the last one or if
// all beats of the read are due together, else through the buffer, two cycles later.
// A response is late if its last beat is offered after its deadline for whatever reason but a slow master.
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
  /// Beats that the buffer holds: at least Slots + 255.
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
  /// Which, and what.
  input  time_write_t          time_i,
  /// Committed bandwidth cap.
  input  rate_t                rate_i,
  /// After reset, for each number in turn: slot and row `init_index_i` are set up; nothing is accepted meanwhile.
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

  /// Master port; R is always taken.
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

  /// For the counters: an R beat was taken.
  output logic                 beat_o,
  /// For the counters: it was the last of its read.
  output logic                 done_o,
  /// Latency of that read.
  output cycle_t               latency_o,
  /// It was late.
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

  // By slot, written when a read is accepted.
  (* ram_style = "distributed" *) ar_t ar_of[Slots];
  (* ram_style = "distributed" *) logic [IdWidth-1:0] id_of[Slots];
  (* ram_style = "distributed" *) logic [2:0] size_of[Slots];
  (* ram_style = "distributed" *) cycle_t received[Slots];
  (* ram_style = "distributed" *) logic single_of[Slots];  // one beat only
  (* ram_style = "distributed" *) logic off_of[Slots];  // accepted while the emulation was off
  // Written one cycle later.
  (* ram_style = "distributed" *) time_t beat_of[Slots];
  (* ram_style = "distributed" *) logic together_of[Slots];  // all beats are due together: off, or nothing per beat
  // Latency of the next beat, written when it is put in the wheel.
  (* ram_style = "distributed" *) time_t rel_of[Slots];
  // Written when a beat is stored: it was the last; beats stored so far; where the next goes.
  (* ram_style = "distributed" *) logic ended_of[Slots];
  (* ram_style = "distributed" *) logic [7:0] stored_of[Slots];
  (* ram_style = "distributed" *) ptr_t wptr_of[Slots];
  // Written when a stored beat leaves: beats that have left, and where the next is.
  (* ram_style = "distributed" *) logic [7:0] sent_of[Slots];
  (* ram_style = "distributed" *) ptr_t rptr_of[Slots];
  // A beat has been stored, or one has left, while two bits differ: one is written by that, the other on acceptance.
  (* ram_style = "distributed" *) logic stored_set[Slots];
  (* ram_style = "distributed" *) logic stored_clear[Slots];
  (* ram_style = "distributed" *) logic sent_set[Slots];
  (* ram_style = "distributed" *) logic sent_clear[Slots];

  logic accept, slot_valid, target_ready;
  logic [SlotWidth-1:0] slot;
  logic [SlotWidth:0] used;

  logic out_valid_q, out_free, out_last;
  logic [SlotWidth-1:0] out_slot_q;

  logic cap_ok, cap_busy;

  logic cur_valid_q, cur_chain_q, cur_passed_on_q;
  logic [1:0] cur_wait_q;  // cycles that the next beat has to wait still
  logic [SlotWidth-1:0] cur_slot_q;

  logic fire, fire_last, pass, pass_last;
  logic go_valid, go_take, go_released;
  logic [SlotWidth-1:0] go_slot;

  // ---------------------------------------------------------------------------------------------------------------
  // AR: a slot for each, issued in order when the buffer has room.

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
  logic [CreditWidth-1:0] credits_q;  // addresses of the free list that no issued read may need any more
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

  // ---------------------------------------------------------------------------------------------------------------
  // Arrival: to the buffer, or past it.

  logic [SlotWidth-1:0] arr_slot;
  logic room, store, arr_any;
  ptr_t arr_ptr, free_ptr;
  logic [7:0] arr_stored;
  logic free_valid, free_push;
  ptr_t free_back;

  assign arr_slot = m_rid_i[SlotWidth-1:0];

  always_comb begin
    arr_ptr = '0;
    arr_stored = '0;
    room = 1'b0;
    arr_any = 1'b0;
    if (m_rvalid_i) begin
      arr_any = stored_set[arr_slot] != stored_clear[arr_slot];
      arr_ptr = arr_any ? wptr_of[arr_slot] : ptr_t'(arr_slot);
      arr_stored = (arr_any ? stored_of[arr_slot] : '0) + 8'd1;
      room = out_free && !cur_valid_q && !go_valid && cap_ok && (m_rlast_i || together_of[arr_slot]);
    end
  end

  assign pass_last = pass && m_rlast_i;
  assign store = m_rvalid_i && !pass;

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
      stored_of[arr_slot] <= arr_stored;
      ended_of[arr_slot] <= m_rlast_i;
      stored_set[arr_slot] <= !stored_clear[arr_slot];
      if (!m_rlast_i) wptr_of[arr_slot] <= free_ptr;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------
  // Current slot: fetches its beats from the buffer, one a cycle.

  time_t cur_rel_q, cur_beat_q, next_rel;
  logic [TimeWidth:0] next_sum;
  cycle_t cur_received_q, cur_age, next_age;
  logic [7:0] cur_count_q, go_count;  // beats that have left once this one has
  ptr_t cur_ptr_q, fetch_ptr;
  logic cur_off_q, cur_together_q, cur_end_q;  // end: the last beat
  logic more, ended, stay, stay_due, stay_soon, leave, cur_last;
  logic wheel_ready, wheel_valid, target_valid;
  beat_t fetched;

  assign fetch_ptr = cur_chain_q ? fetched.next : cur_ptr_q;

  always_comb begin
    fire = 1'b0;
    fire_last = 1'b0;
    more = 1'b0;
    stay = 1'b0;
    stay_due = 1'b0;
    stay_soon = 1'b0;
    leave = 1'b0;
    cur_last = 1'b0;
    ended = 1'b0;
    cur_age = '0;
    next_age = '0;
    next_sum = '0;
    next_rel = '0;
    if (cur_valid_q && cur_wait_q == '0 && out_free && cap_ok) begin
      ended = ended_of[cur_slot_q];
      more = stored_of[cur_slot_q] != cur_count_q;
      // Any beat but those that need no deadline must find the wheel free.
      fire = cur_together_q || (wheel_ready && !target_valid) || cur_end_q;
      fire_last = fire && cur_end_q;
      cur_age = now_i - cur_received_q;
      next_sum = {1'b0, cur_rel_q} + {1'b0, cur_beat_q};
      next_rel = next_sum[TimeWidth] ? '1 : next_sum[TimeWidth-1:0];
      next_age = cycle_t'(next_rel[TimeWidth-1:FracBits]) - cur_age;  // cycles from now to the next deadline
      stay_due = cur_together_q || next_age[CycleWidth-1] || next_age[CycleWidth-1:2] == '0 && next_age[1:0] != 2'd3;
      // By way of the wheel it would take five cycles.
      stay_soon = next_age == cycle_t'(3) || next_age == cycle_t'(4);
      stay = fire && more && (stay_due || (stay_soon && !go_valid));
      leave = fire && !fire_last && !stay;
      cur_last = stay && ended && stored_of[cur_slot_q] == cur_count_q + 8'd1;
    end
  end

  assign go_take = go_valid && (!cur_valid_q || (fire && !stay));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cur_valid_q <= 1'b0;
    end else begin
      if (go_take) cur_valid_q <= 1'b1;
      else if (fire && !stay) cur_valid_q <= 1'b0;
    end
  end

  logic fired_q, go_sent;
  logic [SlotWidth-1:0] fired_slot_q;

  assign go_sent = sent_set[go_slot] != sent_clear[go_slot];
  assign go_count = (go_sent ? sent_of[go_slot] : '0) + 8'd1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) fired_q <= 1'b0;
    else fired_q <= fire;
  end

  always_ff @(posedge clk_i) begin
    if (go_take) begin
      cur_slot_q <= go_slot;
      cur_wait_q <= '0;
      cur_chain_q <= 1'b0;
      cur_rel_q <= rel_of[go_slot];
      cur_beat_q <= beat_of[go_slot];
      cur_received_q <= received[go_slot];
      cur_off_q <= off_of[go_slot];
      cur_together_q <= together_of[go_slot];
      cur_count_q <= go_count;
      cur_end_q <= ended_of[go_slot] && stored_of[go_slot] == go_count;
      if (fired_q && fired_slot_q == go_slot) cur_ptr_q <= fetched.next;
      else cur_ptr_q <= go_sent ? rptr_of[go_slot] : ptr_t'(go_slot);
    end else if (stay) begin
      cur_wait_q <= stay_due ? '0 : next_age[1:0] - 2'd2;
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
    .waddr_i(arr_ptr),
    .wdata_i({free_ptr, m_rresp_i, m_rlast_i, m_rdata_i}),
    .re_i   (fire),
    .raddr_i(fetch_ptr),
    .rdata_o(fetched)
  );

  // A beat that passes gives back what was kept for it: the address that it has been given, or the claim to one.
  assign free_push = (fire && fetch_ptr >= ptr_t'(Slots)) || (pass_last && arr_any);
  assign free_back = fire ? fetch_ptr : arr_ptr;
  assign credit = free_push || (pass && !m_rlast_i);

  // ---------------------------------------------------------------------------------------------------------------
  // Deadlines: of first beats from `u_target`, of further ones from `cur`.

  logic [SlotWidth-1:0] target_slot, wheel_slot;
  time_t target_rel, found_beat;
  logic found, found_off;
  logic [SlotWidth-1:0] found_slot;
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
    .ready_o     (target_ready),
    .accept_i    (accept),
    .slot_i      (slot),
    .addr_i      (s_araddr_i),
    .len_i       (s_arlen_i),
    .found_o     (found),
    .found_slot_o(found_slot),
    .found_beat_o(found_beat),
    .found_off_o (found_off),
    .valid_o     (target_valid),
    .ready_i     (wheel_ready),
    .slot_o      (target_slot),
    .rel_o       (target_rel),
    .due_o       (target_due)
  );

  assign wheel_valid = target_valid || (leave && !cur_together_q);
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
    if (found) begin
      beat_of[found_slot] <= found_beat;
      together_of[found_slot] <= found_off || found_beat == '0;
    end
    if (wheel_valid && wheel_ready) rel_of[wheel_slot] <= target_valid ? target_rel : next_rel;
  end

  // ---------------------------------------------------------------------------------------------------------------
  // Order by ID: the next read may be fetched once all beats of this one have been, or are sure to be before it.

  logic done;
  logic [SlotWidth-1:0] unused_answer;

  assign done = pass_last || (fire_last && !cur_passed_on_q) || cur_last;

  always_ff @(posedge clk_i) begin
    if (go_take) cur_passed_on_q <= single_of[go_slot] && go_released;
    else if (cur_last) cur_passed_on_q <= 1'b1;
  end

  nvm_delay_order #(
    .Slots    (Slots),
    .IdWidth  (IdWidth),
    .PassLater(1'b1)
  ) u_order (
    .clk_i,
    .rst_ni,
    .init_i,
    .init_slot_i   (init_index_i[SlotWidth-1:0]),
    .accept_i      (accept),
    .slot_i        (slot),
    .id_i          (s_arid_i),
    .single_i      (s_arlen_i == '0),
    .due_now_i     (!config_i.enable),
    .due_i         (wheel_due),
    .due_ready_o   (wheel_due_ready),
    .due_slot_i    (wheel_due_slot),
    .came_i        (m_rvalid_i),
    .look_slot_i   (arr_slot),
    .room_i        (room),
    .pass_o        (pass),
    .empty_i       (fire && !more),
    .empty_slot_i  (cur_slot_q),
    .go_valid_o    (go_valid),
    .go_slot_o     (go_slot),
    .go_released_o (go_released),
    .go_take_i     (go_take),
    // Its beats are due together: they need no deadline but the first.
    .go_keep_i     (together_of[go_slot]),
    .release_i     (done),
    .release_slot_i(cur_valid_q ? cur_slot_q : arr_slot),
    .answer_i      (1'b0),
    .answer_id_i   ('0),
    .answer_slot_o (unused_answer)
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

  // ---------------------------------------------------------------------------------------------------------------
  // Output: what the buffer gives out, or what passed it.

  logic out_passed_q, out_first_q, out_off_q, out_late_q, passed_last_q;
  cycle_t out_received_q;
  logic [IntBits-1:0] out_rel_q;
  logic [IdWidth-1:0] out_id_q;
  logic [DataWidth-1:0] passed_data_q;
  logic [1:0] passed_resp_q;

  assign out_free = !out_valid_q || s_rready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) out_valid_q <= 1'b0;
    else if (out_free) out_valid_q <= fire || pass;
  end

  always_ff @(posedge clk_i) begin
    out_first_q <= fire || pass;
    if (out_valid_q) out_late_q <= late_o;
    if (fire || pass) begin
      out_passed_q <= pass;
      out_slot_q <= pass ? arr_slot : cur_slot_q;
      out_id_q <= id_of[pass ? arr_slot : cur_slot_q];
      out_received_q <= pass ? received[arr_slot] : cur_received_q;
      out_rel_q <= pass ? rel_of[arr_slot][TimeWidth-1:FracBits] : cur_rel_q[TimeWidth-1:FracBits];
      out_off_q <= pass ? off_of[arr_slot] : cur_off_q;
    end
    if (pass) begin
      passed_data_q <= m_rdata_i;
      passed_resp_q <= m_rresp_i;
      passed_last_q <= m_rlast_i;
    end
  end

  assign out_last = out_passed_q ? passed_last_q : fetched.last;
  assign s_rvalid_o = out_valid_q;
  assign s_rid_o = out_id_q;
  assign s_rdata_o = out_passed_q ? passed_data_q : fetched.data;
  assign s_rresp_o = out_passed_q ? passed_resp_q : fetched.resp;
  assign s_rlast_o = out_last;

  nvm_delay_cap #(
    .BeatBytes(DataWidth / 8)
  ) u_cap (
    .clk_i,
    .rst_ni,
    .rate_i(rate_i),
    .ok_o  (cap_ok),
    .take_i(fire || pass),
    .size_i(size_of[pass ? arr_slot : cur_slot_q]),
    .busy_o(cap_busy)
  );

  assign beat_o = out_valid_q && s_rready_i;
  assign done_o = beat_o && out_last;
  assign latency_o = now_i - out_received_q;
  // Of the cycle in which the beat is offered first.
  assign late_o = out_first_q ? !out_off_q && latency_o > cycle_t'(out_rel_q) : out_late_q;
  assign busy_o = used != '0 || cap_busy;

  `NS_ASSERT(issue_never_full, !accept || issue_ready)
  `NS_ASSERT(m_r_id_known, !m_rvalid_i || 32'(m_rid_i) < Slots)
  `NS_ASSERT(buffer_has_room, !store || m_rlast_i || free_valid)
  `NS_ASSERT(end_has_no_more, !(fire && cur_end_q) || !more)
  `NS_ASSERT(arrival_has_no_more, !m_rvalid_i || !(arr_any && ended_of[arr_slot]))

endmodule
