// SPDX-License-Identifier: Apache-2.0

// nvme_mover_write: a descriptor ends only after the write responses to all of its bursts, and
// after all of its beats. It ends once, in the order of the descriptors, with the first error of
// its bursts. Its event stays until it is accepted. There are as many addresses and last beats as
// bursts, and a response is only accepted after its data. While there are descriptors, something
// moves or waits for a neighbour. The module's assertions hold.
//
// Bursts of 128 bytes, a FIFO of four beats, two bursts without response. Descriptors of all kinds
// and up to four bursts, anywhere in a page. Left out: the results of comparisons (Compare = 0).
// Assumed of the neighbours: descriptors have bytes and stay within their page. A beat arrives only
// when there is room for it (nvme_mover_read). The FIFO shows a beat at most two cycles after its
// arrival (ns_fifo). Nothing is assumed of the bus: a response may arrive before its address or its
// data.
`include "ns_assert.svh"

module mover_write_proof
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
(
  input logic                clk_i,
  input logic                rst_ni,
  input logic                desc_valid_i,
  input logic                desc_slot_i,
  input transfer_kind_e      desc_kind_i,
  input logic [LenWidth-1:0] desc_len_i,
  input logic [11:0]         desc_dst_i,
  input logic                beat_arrived_i,
  input logic                beat_valid_i,
  input logic                beat_error_i,
  input logic                peer_valid_i,
  input logic                write_open_i,
  input logic                aw_ready_i,
  input logic                w_ready_i,
  input logic                b_valid_i,
  input logic [1:0]          b_resp_i,
  input logic                event_ready_i
);

  localparam int unsigned FifoBeats = 4;
  localparam int unsigned BurstBytes = 128;
  localparam int unsigned MaxBursts = 2;
  localparam int unsigned Own = 4;  // bursts of the watched descriptor at most

  typedef logic [4:0] count_t;

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // The design. Nothing in it depends on the slot: number 0 marks the watched descriptor, an
  // arbitrary one.
  write_desc_t desc;
  transfer_event_t desc_event;
  logic
      desc_ready,
      beat_ready,
      compares,
      write_begin,
      write_end,
      aw_valid,
      w_valid,
      b_ready,
      desc_event_valid;
  w_t w;

  assign desc = '{
          slot: {'0, desc_slot_i},
          kind: desc_kind_i,
          len: desc_len_i,
          dst: {'0, desc_dst_i}
      };

  nvme_mover_write #(
    .FifoBeats (FifoBeats),
    .BurstBytes(BurstBytes),
    .MaxBursts (MaxBursts)
  ) u_write (
    .clk_i,
    .rst_ni,
    .desc_i         (desc),
    .desc_valid_i,
    .desc_ready_o   (desc_ready),
    .beat_arrived_i,
    .burst_arrived_i(1'b0),
    .burst_error_i  (1'b0),
    .beat_data_i    ('0),
    .beat_error_i,
    .beat_valid_i,
    .beat_ready_o   (beat_ready),
    .peer_data_i    ('0),
    .peer_error_i   (1'b0),
    .peer_valid_i,
    .cmp_valid_o    (compares),
    .write_open_i,
    .req_o          (),
    .req_addr_o     (),
    .write_begin_o  (write_begin),
    .write_end_o    (write_end),
    .compare_done_o (),
    .aw_o           (),
    .aw_valid_o     (aw_valid),
    .aw_ready_i,
    .w_o            (w),
    .w_valid_o      (w_valid),
    .w_ready_i,
    .b_i            ('{id: '0, resp: b_resp_i}),
    .b_valid_i,
    .b_ready_o      (b_ready),
    .event_o        (desc_event),
    .event_valid_o  (desc_event_valid),
    .event_ready_i
  );

  function automatic logic has_target(transfer_kind_e kind);
    return kind == KindCopy || kind == KindZero;
  endfunction

  function automatic count_t bursts_of(logic [11:0] dst, logic [LenWidth-1:0] len);
    return count_t'((32'(dst) % BurstBytes + 32'(len) + BurstBytes - 1) / BurstBytes);
  endfunction

  function automatic count_t beats_of(logic [11:0] dst, logic [LenWidth-1:0] len,
                                      transfer_kind_e kind);
    return (kind == KindZero) ? '0 : count_t'((32'(dst) % 64 + 32'(len) + 63) / 64);
  endfunction

  logic accept_fire, watch, beat_out, address, last_beat, response, event_fire;
  count_t desc_bursts, desc_owes, desc_beats;
  assign accept_fire = desc_valid_i && desc_ready;
  assign watch = accept_fire && !desc_slot_i;
  assign beat_out = beat_valid_i && beat_ready;
  assign address = aw_valid && aw_ready_i;
  assign last_beat = w_valid && w_ready_i && w.last;
  assign response = b_valid_i && b_ready;
  assign event_fire = desc_event_valid && event_ready_i;
  assign desc_bursts = bursts_of(desc_dst_i, desc_len_i);
  assign desc_owes = has_target(desc_kind_i) ? desc_bursts : '0;
  assign desc_beats = beats_of(desc_dst_i, desc_len_i, desc_kind_i);

  // Owed for all descriptors so far: addresses, last beats, responses, events, beats from the FIFO.
  count_t addresses_q, lasts_q, responses_q, descs_q, beats_q;
  logic [2:0] fifo_beats_q;  // beats in the FIFO
  logic new_beat_q;       // one arrived in the previous cycle

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      addresses_q <= '0;
      lasts_q <= '0;
      responses_q <= '0;
      descs_q <= '0;
      beats_q <= '0;
      fifo_beats_q <= '0;
      new_beat_q <= 1'b0;
    end else begin
      addresses_q <= addresses_q + (accept_fire ? desc_owes : '0) - count_t'(address);
      lasts_q <= lasts_q + (accept_fire ? desc_owes : '0) - count_t'(last_beat);
      responses_q <= responses_q + (accept_fire ? desc_owes : '0) - count_t'(response);
      descs_q <= descs_q + count_t'(accept_fire) - count_t'(event_fire);
      beats_q <= beats_q + (accept_fire ? desc_beats : '0) - count_t'(beat_out);
      fifo_beats_q <= fifo_beats_q + 3'(beat_arrived_i) - 3'(beat_out);
      new_beat_q <= beat_arrived_i;
    end
  end

  // The watched descriptor: what is owed ahead of it, and for it.
  logic active_q;
  transfer_kind_e kind_q;
  count_t descs_front_q, responses_front_q, responses_own_q, beats_front_q, beats_own_q;
  // Place of its next beat, in beats from the start of its first burst; index of its next response.
  logic [3:0] to_q;
  logic [2:0] response_q;
  logic [Own-1:0] read_error_q, write_error_q;  // of its bursts

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) active_q <= 1'b0;
    else if (watch) active_q <= 1'b1;
    else if (event_fire && desc_event.slot == '0) active_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (watch) begin
      kind_q <= desc_kind_i;
      descs_front_q <= descs_q - count_t'(event_fire);
      responses_front_q <= responses_q - count_t'(response);
      responses_own_q <= desc_owes;
      beats_front_q <= beats_q - count_t'(beat_out);
      beats_own_q <= desc_beats;
      to_q <= 4'((32'(desc_dst_i) % BurstBytes) / 64);
      response_q <= '0;
      read_error_q <= '0;
      write_error_q <= '0;
    end else begin
      if (event_fire && descs_front_q != '0) descs_front_q <= descs_front_q - 1'b1;
      if (response && responses_front_q != '0) begin
        responses_front_q <= responses_front_q - 1'b1;
      end else if (response && responses_own_q != '0) begin
        responses_own_q <= responses_own_q - 1'b1;
        response_q <= response_q + 1'b1;
        if (b_resp_i[1]) write_error_q[response_q[1:0]] <= 1'b1;
      end
      if (beat_out && beats_front_q != '0) begin
        beats_front_q <= beats_front_q - 1'b1;
      end else if (beat_out && beats_own_q != '0) begin
        beats_own_q <= beats_own_q - 1'b1;
        to_q <= to_q + 1'b1;
        if (beat_error_i) read_error_q[to_q[2:1]] <= 1'b1;
      end
    end
  end

  // The first error of the first `bursts` bursts.
  function automatic data_status_e first_error(logic [2:0] bursts, logic [Own-1:0] read_error,
                                               logic [Own-1:0] write_error);
    data_status_e status;
    status = DataOk;
    for (int i = int'(Own) - 1; i >= 0; i--) begin
      if (i < int'(bursts)) begin
        if (write_error[i]) status = DataHostError;
        if (read_error[i]) status = DataReadError;
      end
    end
    return status;
  endfunction

  // The neighbours.
  `NS_ASSUME(desc_has_bytes, !desc_valid_i || desc_len_i != '0)
  `NS_ASSUME(dword_aligned, {desc_len_i[1:0], desc_dst_i[1:0]} == '0)
  `NS_ASSUME(target_in_page, 32'(desc_dst_i) + 32'(desc_len_i) <= 4096)
  `NS_ASSUME(one_is_watched, !desc_valid_i || desc_slot_i || !active_q)
  `NS_ASSUME(few_bursts, 32'(desc_dst_i) % BurstBytes + 32'(desc_len_i) <= Own * BurstBytes)
  `NS_ASSUME(room_for_beat, !beat_arrived_i || fifo_beats_q != 3'(FifoBeats))
  `NS_ASSUME(beat_shown, beat_valid_i ? fifo_beats_q != '0 : fifo_beats_q <= 3'(new_beat_q))

  // What is proven.
  logic mine;
  logic event_stalled_q;
  transfer_event_t event_q;
  assign mine = desc_event_valid && desc_event.slot == '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) event_stalled_q <= 1'b0;
    else event_stalled_q <= desc_event_valid && !event_ready_i;
  end
  always_ff @(posedge clk_i) event_q <= desc_event;

  `NS_ASSERT(after_responses,
             !mine || (active_q && responses_front_q == '0 && responses_own_q == '0))
  `NS_ASSERT(after_beats, !mine || (beats_front_q == '0 && beats_own_q == '0))
  `NS_ASSERT(in_order, !(desc_event_valid && active_q) || mine == (descs_front_q == '0))
  `NS_ASSERT(one_event, !desc_event_valid || descs_q != '0)
  `NS_ASSERT(first_error_reported, !mine || desc_event.status == first_error(3'(Own), read_error_q,
                                                                             write_error_q))
  `NS_ASSERT(event_stays, !event_stalled_q || (desc_event_valid && desc_event == event_q))
  `NS_ASSERT(address_of_burst, !aw_valid || addresses_q != '0)
  `NS_ASSERT(data_of_burst, !w_valid || lasts_q != '0)
  `NS_ASSERT(beat_of_desc, !beat_ready || beats_q != '0)
  `NS_ASSERT(begins_open, !write_begin || write_open_i)
  `NS_ASSERT(ends_with_response, write_end == response)
  `NS_ASSERT(response_after_data, !b_ready || responses_q > lasts_q)
  `NS_ASSERT(
      nothing_left,
      descs_q != '0 || (addresses_q == count_t'(aw_valid) && {lasts_q, responses_q, beats_q} == '0))

  // Every step advances a burst, so that none stays forever.
  logic progress, stalled;
  assign progress = address || u_write.w_fire || u_write.end_valid_q || u_write.resp_fire || event_fire
      || u_write.issue_valid || (u_write.desc_valid_q && u_write.cut_ready)
      || (u_write.next_valid && u_write.next_load);
  assign stalled = (aw_valid && !aw_ready_i) || (w_valid && !w_ready_i) || (compares && !peer_valid_i)
      || (b_ready && !b_valid_i) || (desc_event_valid && !event_ready_i)
      || (u_write.burst_valid_q && 7'(u_write.arrived_q) < u_write.beats_q)
      || (u_write.burst_valid_q && has_target(u_write.burst_q.kind) && !write_open_i);
  `NS_ASSERT(never_stuck, descs_q == '0 || progress || stalled)

  // Invariants: bursts in the order of the pipeline, the oldest first. Responses owed, the burst
  // that has ended, the current one, those with complete data, the one that waits for data, the
  // rest of the descriptor.
  localparam int unsigned EndPlace = MaxBursts;
  localparam int unsigned WorkPlace = EndPlace + 1;
  localparam int unsigned QueuePlace = WorkPlace + 1;
  localparam int unsigned BurstPlace = QueuePlace + MaxBursts;
  localparam int unsigned DescPlace = BurstPlace + 1;
  localparam int unsigned Places = DescPlace + 1;

  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e       kind;
    logic                 desc_last;
    logic [5:0]           len;
    logic [15:0]          first;
    logic [3:0]           to;
  } burst_t;

  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic                 desc_last;
    logic                 at_once;
    logic                 error;
    logic                 differ;
  } resp_t;

  typedef struct packed {
    logic           valid;
    logic           mine;
    logic           last;
    logic           target;
    logic           error;
    transfer_kind_e kind;
    count_t         bursts;
    count_t         beats;
    logic           fits;  // the burst has few beats
  } place_t;

  function automatic place_t burst_place(logic valid, burst_t burst);
    place_t place;
    place = '{
        valid: valid,
        mine: valid && burst.slot == '0,
        last: burst.desc_last,
        target: has_target(burst.kind),
        error: 1'b0,
        kind: burst.kind,
        bursts: 5'd1,
        beats: (burst.kind == KindZero) ? '0 : count_t'(burst.len) + 5'd1,
        fits: 32'(burst.len) < BurstBytes / 64
    };
    return place;
  endfunction

  function automatic place_t resp_place(logic valid, resp_t resp);
    place_t place;
    place = '{
        valid: valid,
        mine: valid && resp.slot == '0,
        last: resp.desc_last,
        target: !resp.at_once,
        error: resp.error,
        kind: KindCopy,
        bursts: 5'd1,
        beats: '0,
        fits: 1'b1
    };
    return place;
  endfunction

  place_t [Places-1:0] at;
  resp_t resps[MaxBursts];
  logic [1:0] resps_count;
  logic [3:0] bursts_count;
  assign resps_count = u_write.u_responses.count_q;
  assign bursts_count = u_write.u_bursts.count_q;

  for (genvar i = 0; i < MaxBursts; i++) begin : gen_resp
    assign resps[i] = u_write.u_responses.gen_reg.mem[1'(u_write.u_responses.rptr_q + 1'(i))];
    assign at[i] = resp_place(i < 32'(resps_count), resps[i]);
    `NS_ASSERT(no_difference, !at[i].valid || !resps[i].differ)
  end
  assign at[EndPlace] = resp_place(u_write.end_valid_q, {u_write.end_q, 1'b0});
  assign at[WorkPlace] = '{
      valid: u_write.burst_valid,
      mine: u_write.burst_valid && u_write.slot_q == '0,
      last: u_write.desc_last_q,
      target: has_target(u_write.kind_q),
      error: u_write.w_error_q,
      kind: u_write.kind_q,
      bursts: 5'd1,
      beats: (u_write.kind_q == KindZero) ? '0 : count_t'(u_write.w_left_q) + 5'd1,
      fits: 32'(u_write.w_left_q) < BurstBytes / 64
  };
  for (genvar i = 0; i < MaxBursts; i++) begin : gen_burst
    assign at[QueuePlace+i] = burst_place(
        i < 32'(bursts_count), u_write.u_bursts.gen_lutram.mem[3'(u_write.u_bursts.rptr_q+3'(i))]
    );
  end
  assign at[BurstPlace] = burst_place(u_write.burst_valid_q, u_write.burst_q);
  assign at[DescPlace] = '{
      valid: u_write.desc_valid_q,
      mine: u_write.desc_valid_q && u_write.desc_slot_q == '0,
      last: 1'b1,
      target: has_target(u_write.desc_kind_q),
      error: 1'b0,
      kind: u_write.desc_kind_q,
      bursts: bursts_of(u_write.desc_addr_q[11:0], u_write.desc_len_q),
      beats: beats_of(u_write.desc_addr_q[11:0], u_write.desc_len_q, u_write.desc_kind_q),
      fits: 1'b1
  };

  // Bursts of the watched descriptor that have left, and whether the last burst that left was not
  // the last of its descriptor.
  logic [2:0] left_q;
  logic within_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) within_q <= 1'b0;
    else if (u_write.resp_fire) within_q <= !u_write.resp.desc_last;
  end
  always_ff @(posedge clk_i) begin
    if (watch) left_q <= '0;
    else if (u_write.resp_fire && u_write.resp.slot == '0) left_q <= left_q + 1'b1;
  end

  // Sums over the places.
  count_t all_addresses, all_lasts, all_responses, all_descs, all_beats, issued, to_compare;
  count_t front_descs, front_responses, own_responses, front_beats, own_beats, to;
  logic found, open, open_mine, joined, known, placed;
  logic [2:0] idx;  // of the watched descriptor's next burst

  always_comb begin
    all_addresses = count_t'(u_write.aw_valid_o);
    all_lasts = '0;
    all_responses = '0;
    all_descs = count_t'(desc_event_valid);
    all_beats = '0;
    issued = '0;
    to_compare = '0;
    front_descs = count_t'(desc_event_valid && !mine);
    front_responses = '0;
    own_responses = '0;
    front_beats = '0;
    own_beats = '0;
    to = count_t'(to_q);
    found = mine;
    open = within_q;
    open_mine = active_q && !mine && left_q != '0;
    joined = 1'b1;
    known = 1'b1;
    placed = 1'b1;
    idx = left_q;
    for (int unsigned i = 0; i < Places; i++) begin
      if (at[i].valid) begin
        // Of all descriptors.
        if (at[i].target) begin
          if (i >= BurstPlace) all_addresses += at[i].bursts;
          if (i >= WorkPlace) all_lasts += at[i].bursts;
          all_responses += at[i].bursts;
        end
        all_descs += count_t'(at[i].last);
        all_beats += at[i].beats;
        if (i < BurstPlace) issued += 5'd1;
        if (i >= WorkPlace && i < BurstPlace && at[i].kind == KindCompare) to_compare += 5'd1;
        // The bursts of a descriptor are consecutive; at most one descriptor has slot 0.
        if (open && at[i].mine != open_mine) joined = 1'b0;
        if (!open && at[i].mine && (found || idx != '0)) joined = 1'b0;
        open = !at[i].last;
        open_mine = at[i].mine;
        // Ahead of the watched descriptor.
        if (!at[i].mine && !found) begin
          front_descs += count_t'(at[i].last);
          front_beats += at[i].beats;
          if (at[i].target) front_responses += at[i].bursts;
        end
        // Of the watched descriptor.
        if (at[i].mine) begin
          own_beats += at[i].beats;
          if (at[i].target) own_responses += at[i].bursts;
          if (at[i].target != has_target(kind_q)) known = 1'b0;
          if (i >= WorkPlace && at[i].kind != kind_q) known = 1'b0;
          if (count_t'(idx) + at[i].bursts > count_t'(Own)) known = 1'b0;
          else if (i == DescPlace) known &= (read_error_q >> idx) == '0;
          else if (read_error_q[idx[1:0]] != at[i].error) known = 1'b0;
          if (i >= WorkPlace && kind_q != KindZero) begin
            if (to[3:1] != idx) placed = 1'b0;
            if (i == DescPlace) placed &= to[0] == u_write.desc_addr_q[6];
            else if (at[i].last) placed &= count_t'(to[0]) + at[i].beats <= 5'd2;
            else placed &= count_t'(to[0]) + at[i].beats == 5'd2;
            to += at[i].beats;
          end
          idx += at[i].bursts[2:0];
          if (at[i].last) found = 1'b1;
        end
      end
    end
    if (open) joined = 1'b0;
    if (active_q && (read_error_q >> idx) != '0) known = 1'b0;
  end

  `NS_ASSERT(addresses_due, addresses_q == all_addresses)
  `NS_ASSERT(lasts_due, lasts_q == all_lasts)
  `NS_ASSERT(responses_due, responses_q == all_responses)
  `NS_ASSERT(descs_due, descs_q == all_descs)
  `NS_ASSERT(beats_due, beats_q == all_beats)
  `NS_ASSERT(watched_inside, active_q == found)
  `NS_ASSERT(descs_in_front, !active_q || descs_front_q == front_descs)
  `NS_ASSERT(responses_in_front, !active_q || responses_front_q == front_responses)
  `NS_ASSERT(responses_own, !active_q || responses_own_q == own_responses)
  `NS_ASSERT(beats_in_front, !active_q || beats_front_q == front_beats)
  `NS_ASSERT(beats_own, !active_q || beats_own_q == own_beats)
  `NS_ASSERT(descs_together, joined)
  `NS_ASSERT(read_errors_known, known)
  `NS_ASSERT(beats_placed, placed)
  `NS_ASSERT(bursts_left, !active_q || (left_q <= 3'(Own) && response_q == (has_target(kind_q
             ) ? left_q : 3'd0)))
  `NS_ASSERT(write_errors_known, !active_q || (write_error_q >> response_q) == '0)
  `NS_ASSERT(status_of_desc, within_q || u_write.status_q == DataOk)
  `NS_ASSERT(status_known,
             !active_q || mine || left_q == '0 || (within_q && u_write.status_q == first_error(
             left_q, read_error_q, write_error_q)))
  `NS_ASSERT(bursts_counted, count_t'(u_write.bursts_q) == issued && issued <= count_t'(MaxBursts))
  `NS_ASSERT(compares_counted, count_t'(u_write.compares_ahead_q) == to_compare)
  `NS_ASSERT(no_compare_ahead_of_address, !aw_valid || to_compare == '0)
  `NS_ASSERT(
      desc_bounded,
      !u_write.desc_valid_q || 32'(u_write.desc_addr_q[11:0]) % BurstBytes + 32'(u_write.desc_len_q) <= Own * BurstBytes)
  `NS_ASSERT(
      desc_sane,
      !u_write.desc_valid_q || (u_write.desc_len_q != '0 && {u_write.desc_len_q[1:0], u_write.desc_addr_q[1:0]} == '0))
  `NS_ASSERT(
      desc_in_page,
      !u_write.desc_valid_q || 32'(u_write.desc_addr_q[11:0]) + 32'(u_write.desc_len_q) <= 4096)
  `NS_ASSERT(beats_of_burst, !u_write.burst_valid_q || u_write.beats_q == 7'(at[BurstPlace].beats))
  `NS_ASSERT(last_known, !u_write.burst_valid || u_write.last_q == (u_write.w_left_q == '0))
  `NS_ASSERT(
      no_error_yet,
      !u_write.w_error_q || (u_write.burst_valid && !u_write.first_q && u_write.kind_q != KindZero))
  `NS_ASSERT(
      burst_pointers,
      u_write.u_bursts.wptr_q == 3'(u_write.u_bursts.rptr_q + bursts_count[2:0]) && bursts_count <= 4'(MaxBursts))
  `NS_ASSERT(
      resp_pointers,
      u_write.u_responses.wptr_q == (u_write.u_responses.rptr_q ^ resps_count[0]) && resps_count <= 2'(MaxBursts))
  for (genvar i = WorkPlace; i <= BurstPlace; i++) begin : gen_beats
    `NS_ASSERT(few_beats, !at[i].valid || at[i].fits)
  end
  count_t complete;
  always_comb begin
    complete = count_t'(u_write.arrived_q);
    for (int unsigned i = WorkPlace; i < BurstPlace; i++) if (at[i].valid) complete += at[i].beats;
  end
  `NS_ASSERT(beats_complete, complete == count_t'(fifo_beats_q) && fifo_beats_q <= 3'(FifoBeats))
  `NS_ASSERT(shown_in_time, !new_beat_q || u_write.arrived_q != '0)

  `NS_COVER(four_bursts,
            event_fire && mine && kind_q == KindCopy && left_q == 3'd4 && descs_q > 5'd1)
  `NS_COVER(write_error, event_fire && mine && write_error_q == 4'b0010 && read_error_q == 4'b0100)
  `NS_COVER(read_error, event_fire && mine && write_error_q == 4'b0010 && read_error_q == 4'b0010)
  `NS_COVER(zeros, event_fire && mine && kind_q == KindZero && left_q == 3'd3 && event_stalled_q)
  `NS_COVER(dropped, event_fire && mine && kind_q == KindDrop && read_error_q == 4'b0010)
  `NS_COVER(compared, event_fire && mine && kind_q == KindCompare && left_q == 3'd2)
  `NS_COVER(full, active_q && u_write.bursts_q == 2'(MaxBursts) && descs_q > 5'd4)

endmodule
