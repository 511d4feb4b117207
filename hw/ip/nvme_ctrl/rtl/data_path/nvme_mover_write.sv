// SPDX-License-Identifier: Apache-2.0

// Write side of a mover: cuts descriptors into bursts and sends each burst as soon as all of its
// beats have arrived.
//
// A burst ends at the next multiple of BurstBytes at the latest. Its address leaves only when its
// data are complete in the FIFO, so that the data follow without a gap. Other users of the bus
// therefore never wait for the mover's source. Towards the media, a burst that holds bytes with a
// read error is not written at all, as blocks must not be mixed. Towards the host, such bytes are
// written as zeros. Each descriptor yields one event, after the responses to all of its bursts,
// with the first error.
//
// Zeros need no beats from the FIFO. Bursts without a target (discarded or compared data) take
// their beats from the FIFO and end without an address or a response. A comparison waits for
// another mover. No address leaves while a comparison is ahead of its data: other users of the bus,
// such as completions, would wait for it.
`include "ns_assert.svh"

module nvme_mover_write
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Write beats in the FIFO.
  parameter int unsigned  FifoBeats   = 512,
  /// Largest burst in bytes: 64 to 4096, a power of two.
  parameter int unsigned  BurstBytes  = 512,
  /// Bursts whose response is outstanding.
  parameter int unsigned  MaxBursts   = 64,
  /// Status after a read error.
  parameter data_status_e ReadStatus  = DataReadError,
  /// Status after a write error.
  parameter data_status_e WriteStatus = DataHostError,
  /// Compares beats.
  parameter bit           Compare     = 1'b0,
  /// A burst of a copy is written only if none of its bytes had a read error.
  parameter bit           Whole       = 1'b0
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// Descriptor whose beats will arrive.
  input  write_desc_t desc_i,
  input  logic        desc_valid_i,
  output logic        desc_ready_o,

  /// A beat enters the FIFO.
  input  logic                 beat_arrived_i,
  /// With `Whole`: it is the last one of its burst.
  input  logic                 burst_arrived_i,
  /// With `Whole`: a part of that burst had a read error.
  input  logic                 burst_error_i,
  /// Oldest beat in the FIFO.
  input  logic [DataWidth-1:0] beat_data_i,
  /// A part of it had a read error.
  input  logic                 beat_error_i,
  input  logic                 beat_valid_i,
  /// It leaves the FIFO.
  output logic                 beat_ready_o,

  /// Beat of the other mover for a comparison. Both movers advance when both beats are valid.
  input  logic [DataWidth-1:0] peer_data_i,
  /// It had a read error.
  input  logic                 peer_error_i,
  input  logic                 peer_valid_i,
  /// The oldest beat in the FIFO is to be compared.
  output logic                 cmp_valid_o,

  /// The burst at `req_addr_o` may begin.
  input  logic                 write_open_i,
  /// Only this permission is missing. Stays until the burst begins.
  output logic                 req_o,
  /// Address of the burst.
  output logic [63:0]          req_addr_o,
  /// It begins.
  output logic                 write_begin_o,
  /// The oldest burst that has begun ends.
  output logic                 write_end_o,
  /// The last beat of a compared descriptor leaves.
  output logic                 compare_done_o,

  /// Write address.
  output ax_t                  aw_o,
  output logic                 aw_valid_o,
  input  logic                 aw_ready_i,
  /// Write data.
  output w_t                   w_o,
  output logic                 w_valid_o,
  input  logic                 w_ready_i,
  /// Write response.
  input  b_t                   b_i,
  input  logic                 b_valid_i,
  output logic                 b_ready_o,

  /// A descriptor has ended.
  output transfer_event_t event_o,
  output logic            event_valid_o,
  input  logic            event_ready_i
);

  localparam int unsigned BeatsBits = unsigned'($clog2(FifoBeats + 1));
  localparam int unsigned BurstsBits = unsigned'($clog2(MaxBursts + 1));

  function automatic logic no_target(transfer_kind_e kind);
    return kind == KindDrop || kind == KindCompare;
  endfunction

  // Burst fields that the data need.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e       kind;
    logic                 desc_last;  // last burst of its descriptor
    logic [5:0]           len;       // beats - 1
    logic [15:0]          first;     // dwords of the first beat
    logic [3:0]           to;        // last dword of the last beat
  } burst_t;

  // Burst fields that a response needs.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic                 desc_last;
    logic                 at_once;   // there is no response to wait for
    logic                 error;
  } resp_t;

  // First step: cut the next burst from the descriptor.
  logic [63:0] desc_addr_q;
  logic [LenWidth-1:0] desc_len_q;
  logic [SlotWidth-1:0] desc_slot_q;
  transfer_kind_e desc_kind_q;
  logic desc_valid_q;
  logic [LenWidth-1:0] room, cut_len;
  logic cut_last, cut_ready;

  assign room = LenWidth'(BurstBytes) - LenWidth'(32'(desc_addr_q[11:0]) % BurstBytes);
  assign cut_last = desc_len_q <= room;
  assign cut_len = cut_last ? desc_len_q : room;
  assign desc_ready_o = !desc_valid_q || (cut_ready && cut_last);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) desc_valid_q <= 1'b0;
    else if (desc_ready_o) desc_valid_q <= desc_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (desc_ready_o && desc_valid_i) begin
      desc_addr_q <= desc_i.dst;
      desc_len_q <= desc_i.len;
      desc_slot_q <= desc_i.slot;
      desc_kind_q <= desc_i.kind;
    end else if (desc_valid_q && cut_ready) begin
      // A descriptor ends within its page: no carry beyond it.
      desc_addr_q[11:0] <= desc_addr_q[11:0] + 12'(cut_len);
      desc_len_q <= desc_len_q - cut_len;
    end
  end

  // Second step: wait for its beats, then send the address.
  ax_t aw_q;
  burst_t burst_q;
  logic burst_valid_q;
  logic issue_valid, burst_queue_ready;
  logic [BeatsBits-1:0] arrived_q;  // beats in the FIFO beyond the bursts sent so far
  logic [BurstsBits-1:0] bursts_q;  // bursts without response
  logic [3:0] compares_ahead_q;  // compared bursts whose last beat has not left
  logic [6:0] beats_q;  // beats of the burst to take from the FIFO
  logic resp_fire;

  // A copy with a read error is discarded.
  transfer_kind_e kind;
  logic burst_poisoned;

  if (Whole) begin : gen_whole
    logic whole_ready, poisoned, poisoned_valid;

    ns_fifo #(
      .Width(1),
      .Depth(FifoBeats),
      .Style("lutram")
    ) u_errors (
      .clk_i,
      .rst_ni,
      .in_valid_i (burst_arrived_i),
      .in_ready_o (whole_ready),
      .in_data_i  (burst_error_i),
      .out_valid_o(poisoned_valid),
      .out_ready_i(issue_valid && burst_q.kind != KindZero),
      .out_data_o (poisoned),
      .count_o    ()
    );
    assign burst_poisoned = poisoned;

    `NS_ASSERT(error_has_place, !burst_arrived_i || whole_ready)
    `NS_ASSERT(burst_is_complete, !issue_valid || burst_q.kind == KindZero || poisoned_valid)
    `NS_ASSERT(only_whole_bursts,
               !write_begin_o || burst_q.kind == KindZero || (poisoned_valid && !poisoned))
  end else begin : gen_parts
    assign burst_poisoned = 1'b0;
    logic unused;
    assign unused = ^{burst_arrived_i, burst_error_i};
  end
  assign kind = (burst_poisoned && burst_q.kind == KindCopy) ? KindDrop : burst_q.kind;

  // At most every other cycle, which keeps the arbiter of `aw_ready_i` out of this path; bursts are
  // longer.
  logic issue_ready;
  assign issue_ready = burst_valid_q && burst_queue_ready && !aw_valid_o
      && 32'(arrived_q) >= 32'(beats_q) && bursts_q != BurstsBits'(MaxBursts);
  assign req_o = issue_ready && compares_ahead_q == '0 && !no_target(kind);
  assign issue_valid = (req_o && write_open_i) || (issue_ready && no_target(kind));
  assign req_addr_o = aw_q.addr;
  assign write_begin_o = issue_valid && !no_target(kind);
  assign cut_ready = !burst_valid_q || issue_valid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      burst_valid_q <= 1'b0;
      aw_valid_o <= 1'b0;
      arrived_q <= '0;
      bursts_q <= '0;
    end else begin
      if (cut_ready) burst_valid_q <= desc_valid_q;
      if (write_begin_o) aw_valid_o <= 1'b1;
      else if (aw_ready_i) aw_valid_o <= 1'b0;
      if (issue_valid || beat_arrived_i) begin
        arrived_q <= arrived_q + BeatsBits'(beat_arrived_i) - (issue_valid ? BeatsBits'(beats_q) : '0);
      end
      if (issue_valid && !resp_fire) bursts_q <= bursts_q + 1'b1;
      if (!issue_valid && resp_fire) bursts_q <= bursts_q - 1'b1;
    end
  end

  logic [6:0] cut_beats;
  assign cut_beats = 7'((32'(desc_addr_q[5:0]) + 32'(cut_len) + 32'd63) >> 6);

  always_ff @(posedge clk_i) begin
    if (cut_ready && desc_valid_q) begin
      beats_q <= (desc_kind_q == KindZero) ? '0 : cut_beats;
      aw_q <= '{id: '0, len: 8'(cut_beats - 7'd1), size: 3'd6, burst: BurstIncr, addr: desc_addr_q};
      burst_q <= '{
          slot: desc_slot_q,
          kind: desc_kind_q,
          desc_last: cut_last,
          len: 6'(cut_beats - 7'd1),
          first: 16'hffff << desc_addr_q[5:2],
          to: 4'(32'(desc_addr_q[5:2]) + 32'(cut_len[LenWidth-1:2]) - 32'd1)
      };
    end
    if (issue_valid) aw_o <= aw_q;
  end

  // Data. All beats of a queued burst are in the FIFO. The current burst is in registers, with the
  // lanes of its next beat.
  burst_t next_burst;
  logic [SlotWidth-1:0] slot_q;  // of the current burst
  transfer_kind_e kind_q;
  logic desc_last_q;
  logic next_valid, next_load, next_single, burst_valid;
  logic first_q, last_q;  // position of the next beat in its burst
  logic w_fire, w_error;
  logic [5:0] w_left_q;  // beats after the next one
  logic w_error_q;       // in an earlier beat of the burst
  logic [15:0] to_mask, lanes_q, to_q;
  burst_t burst_in;

  function automatic logic [15:0] lanes_to(logic [3:0] dword);
    return 16'hffff >> (4'd15 - dword);
  endfunction

  // The first beat may also be the last one.
  always_comb begin
    burst_in = burst_q;
    burst_in.kind = kind;
    if (burst_q.len == '0) burst_in.first &= lanes_to(burst_q.to);
  end

  ns_fifo #(
    .Width($bits(burst_t)),
    .Depth(8)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .in_valid_i (issue_valid),
    .in_ready_o (burst_queue_ready),
    .in_data_i  (burst_in),
    .out_valid_o(next_valid),
    .out_ready_i(next_load),
    .out_data_o (next_burst),
    .count_o    ()
  );

  assign next_load = !burst_valid || (w_fire && last_q);
  assign next_single = next_burst.len == '0;
  assign to_mask = lanes_to(next_burst.to);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) burst_valid <= 1'b0;
    else if (next_load) burst_valid <= next_valid;
  end

  always_ff @(posedge clk_i) begin
    if (next_load && next_valid) begin
      slot_q <= next_burst.slot;
      kind_q <= next_burst.kind;
      desc_last_q <= next_burst.desc_last;
      first_q <= 1'b1;
      last_q <= next_single;
      w_left_q <= next_burst.len;
      lanes_q <= next_burst.first;
      to_q <= to_mask;
    end else if (w_fire) begin
      first_q <= 1'b0;
      last_q <= w_left_q == 6'd1;
      w_left_q <= w_left_q - 1'b1;
      lanes_q <= (w_left_q == 6'd1) ? to_q : '1;
    end
  end

  assign w_valid_o = burst_valid && (kind_q == KindZero || (kind_q == KindCopy && beat_valid_i));
  assign cmp_valid_o = burst_valid && kind_q == KindCompare && beat_valid_i;
  assign w_fire = (w_valid_o && w_ready_i) || (cmp_valid_o && peer_valid_i)
      || (burst_valid && kind_q == KindDrop && beat_valid_i);
  assign beat_ready_o = w_fire && kind_q != KindZero;
  assign w_error = beat_error_i && kind_q != KindZero;

  always_comb begin
    // A PCIe bridge needs strobes without a gap: the host receives zeros in place of data with an
    // error.
    for (int unsigned i = 0; i < 16; i++) w_o.strb[i*4+:4] = {4{lanes_q[i]}};
    w_o.last = last_q;
    w_o.data = (kind_q == KindZero || w_error) ? '0 : beat_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) w_error_q <= 1'b0;
    else if (w_fire) w_error_q <= !last_q && (w_error_q || w_error);
  end

  // The burst whose last beat left in the cycle before.
  resp_t end_q;
  logic end_valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) end_valid_q <= 1'b0;
    else end_valid_q <= w_fire && last_q;
  end

  always_ff @(posedge clk_i) begin
    end_q <= '{
        slot: slot_q,
        desc_last: desc_last_q,
        at_once: no_target(kind_q),
        error: w_error_q || w_error
    };
  end

  // Comparisons ahead of the next burst to issue.
  logic compare_start, compare_end;
  assign compare_start = issue_valid && burst_q.kind == KindCompare;
  assign compare_end = w_fire && last_q && kind_q == KindCompare;
  assign compare_done_o = compare_end && desc_last_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) compares_ahead_q <= '0;
    else if (compare_start && !compare_end) compares_ahead_q <= compares_ahead_q + 1'b1;
    else if (!compare_start && compare_end) compares_ahead_q <= compares_ahead_q - 1'b1;
  end

  // Comparison, a cycle later: dwords first, then all of them.
  logic mismatch;  // in the burst that ends

  if (Compare) begin : gen_compare
    logic [15:0] dword_mismatch_q;
    logic mismatch_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        dword_mismatch_q <= '0;
        mismatch_q <= 1'b0;
      end else begin
        dword_mismatch_q <= '0;
        if (cmp_valid_o && peer_valid_i && !peer_error_i && !beat_error_i) begin
          for (int unsigned i = 0; i < 16; i++) begin
            dword_mismatch_q[i] <= lanes_q[i] && beat_data_i[i*32+:32] != peer_data_i[i*32+:32];
          end
        end
        mismatch_q <= !end_valid_q && mismatch;
      end
    end
    assign mismatch = mismatch_q || dword_mismatch_q != '0;
  end else begin : gen_no_compare
    assign mismatch = 1'b0;
    logic unused;
    assign unused = ^{peer_data_i, peer_error_i};
  end

  // Responses: a burst enters the queue a cycle after its last beat. Its response is accepted from
  // then on.
  resp_t resp;
  logic resp_valid, resp_mismatch, resp_queue_ready;
  data_status_e status_q, status;  // first error of the descriptor

  ns_fifo #(
    .Width($bits(resp_t) + 1),
    .Depth(MaxBursts)
  ) u_responses (
    .clk_i,
    .rst_ni,
    .in_valid_i (end_valid_q),
    .in_ready_o (resp_queue_ready),
    .in_data_i  ({end_q, mismatch}),
    .out_valid_o(resp_valid),
    .out_ready_i(resp_fire),
    .out_data_o ({resp, resp_mismatch}),
    .count_o    ()
  );

  logic event_free;
  assign event_free = !event_valid_o || event_ready_i;
  assign b_ready_o = resp_valid && !resp.at_once && event_free;
  assign resp_fire = resp_valid && (resp.at_once || b_valid_i) && event_free;
  assign write_end_o = resp_fire && !resp.at_once;

  always_comb begin
    status = status_q;
    if (status_q == DataOk) begin
      if (resp.error) status = ReadStatus;
      else if (resp_mismatch) status = DataMismatch;
      else if (b_i.resp[1] && !resp.at_once) status = WriteStatus;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      status_q <= DataOk;
      event_valid_o <= 1'b0;
    end else begin
      if (resp_fire) status_q <= resp.desc_last ? DataOk : status;
      if (resp_fire && resp.desc_last) event_valid_o <= 1'b1;
      else if (event_ready_i) event_valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (resp_fire && resp.desc_last)
      event_o <= '{slot: resp.slot, walk: 1'b0, descs: '0, status: status};
  end

  if (BurstBytes < 64 || BurstBytes > 4096 || (BurstBytes & (BurstBytes - 1)) != 0) begin : gen_bad_burst
    $error("nvme_mover_write: BurstBytes must be a power of two from 64 to 4096");
  end
  if (FifoBeats * 64 < BurstBytes) begin : gen_bad_beats
    $error("nvme_mover_write: a burst must fit into the FIFO");
  end

  `NS_ASSERT(data_follows_without_gap,
             !burst_valid || first_q || beat_valid_i || kind_q == KindZero)
  `NS_ASSERT(response_queue_has_room, !end_valid_q || resp_queue_ready)
  `NS_ASSERT(no_write_without_target, !w_valid_o || !no_target(kind_q))
  `NS_ASSERT(no_address_during_comparison, !aw_valid_o || !burst_valid || kind_q != KindCompare)
  `NS_ASSERT(beats_in_range, 32'(arrived_q) <= FifoBeats)

endmodule
