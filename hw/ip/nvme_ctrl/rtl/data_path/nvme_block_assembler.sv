// SPDX-License-Identifier: Apache-2.0

// Combines the segments of a walker into groups of whole logical blocks, which can be executed
// without the walker.
//
// A group lies within 4 KiB of the media and ends with a block of 512 bytes or with the command.
// Its transfer segments leave without interruption, so that they are read or written together. If a
// walk ends with an error, the segments of an incomplete group are dropped. Segments are cut at 4
// KiB boundaries of the media. With `ManySegments`, they are also cut at the next block as soon as
// segments are held. A group then has at most 127 segments, the dwords of a block, and fits the
// store. Without it, of any two consecutive segments of the walker, the second one must contain the
// end of a block. The end of the walk follows, with the number of descriptors that have been made.
`include "ns_assert.svh"

module nvme_block_assembler
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Each transfer segment is a descriptor, for the mover to the host. Otherwise a group is one
  /// descriptor, or two if it is compared.
  parameter bit ToHost = 1'b0,
  /// Groups of several segments; towards the host, with gaps between segments on the media.
  parameter bit ManySegments   = 1'b0
) (
  input  logic   clk_i,
  input  logic   rst_ni,

  /// Segment; `more`: not the last one of its command.
  input  seg_t            seg_i,
  input  logic            seg_valid_i,
  output logic            seg_ready_o,
  /// End of the walk, without the number of descriptors.
  input  transfer_event_t event_i,
  input  logic            event_valid_i,
  output logic            event_ready_o,

  /// Transfer segment; `more`: not the last one of its group, and the next one follows at once.
  output seg_t            seg_o,
  output logic            seg_valid_o,
  input  logic            seg_ready_i,
  /// End of the walk.
  output transfer_event_t event_o,
  output logic            event_valid_o,
  input  logic            event_ready_i
);

  typedef struct packed {
    logic [LenWidth-1:0] len;
    logic [63:0]         mem;
    logic [63:0]         host;
  } transfer_seg_t;

  // First step: cut a transfer segment.
  logic [LenWidth-1:0] cut_bytes_q;  // bytes of the segment that have been cut
  logic [12:0] offset;  // of the first byte to cut
  logic [3:0] last_block;  // block in which the segment ends
  logic [8:0] end_offset;  // within a block
  logic [LenWidth-1:0] seg_remaining, cut_room, len;
  logic cut_at_block, cut_last, block_end, cut_ready;
  transfer_seg_t cut_seg_q;
  logic valid_q, block_end_q, media_gap;
  logic [SlotWidth-1:0] slot_q;
  transfer_kind_e kind_q;
  logic held_valid, held_next;  // segments are held; segments are held after this one
  logic push, pop, flush_q, drop_q, flush_with_cut_q, bypass, end_while_held, push_ready;

  // All offsets count from the start of the 4 KiB in which the segment begins. It may end in the
  // next 4 KiB.
  assign offset = 13'(seg_i.mem[11:0]) + cut_bytes_q;
  assign last_block = 4'((13'(seg_i.mem[11:0]) + seg_i.len - 13'd1) >> 9);
  assign seg_remaining = seg_i.len - cut_bytes_q;
  assign cut_at_block = ManySegments && held_next;
  assign cut_last = last_block[3] == offset[12] && (!cut_at_block || last_block[2:0] == offset[11:9]);
  assign cut_room = cut_at_block ? LenWidth'(13'd512 - 13'(offset[8:0])) : LenWidth'(13'd4096 - 13'(offset[11:0]));
  assign len = cut_last ? seg_remaining : cut_room;
  assign end_offset = offset[8:0] + len[8:0];
  assign block_end = end_offset == '0 || (cut_last && !seg_i.more);
  assign seg_ready_o = cut_ready && cut_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cut_bytes_q <= '0;
      valid_q <= 1'b0;
    end else if (cut_ready) begin
      valid_q <= seg_valid_i;
      if (seg_valid_i) cut_bytes_q <= cut_last ? '0 : cut_bytes_q + len;
    end
  end

  always_ff @(posedge clk_i) begin
    if (cut_ready && seg_valid_i) begin
      // A segment ends within its host page. It is cut where it crosses 4 KiB of the media.
      cut_seg_q.mem <= {seg_i.mem[63:12] + 52'(offset[12]), offset[11:0]};
      cut_seg_q.host <= {seg_i.host[63:12], seg_i.host[11:0] + cut_bytes_q[11:0]};
      cut_seg_q.len <= len;
      block_end_q <= block_end;
      slot_q <= seg_i.slot;
      kind_q <= seg_i.kind;
    end
  end

  // The segment belongs to another block than the end of the held segments.
  if (ManySegments && ToHost) begin : gen_gap
    logic [54:0] block_q;
    always_ff @(posedge clk_i) if (push) block_q <= 55'((cut_seg_q.mem + 64'(cut_seg_q.len)) >> 9);
    assign media_gap = held_valid && cut_seg_q.mem[63:9] != block_q;
  end else begin : gen_no_gap
    assign media_gap = 1'b0;
  end

  // Second step: hold the segment, or release all held segments.
  logic [LenWidth-1:0] held_q, total_q;  // bytes held; bytes of the group that leaves
  transfer_seg_t oldest;
  logic [(ManySegments ? 8 : 1)-1:0] count;
  logic [7:0] held_count;

  assign bypass = valid_q && block_end_q && !held_valid && !flush_q && !drop_q;
  assign push = valid_q && !block_end_q && !media_gap && !flush_q && !drop_q;
  assign cut_ready = !valid_q || push || (bypass && seg_ready_i);
  assign held_next = valid_q ? !block_end_q : held_valid;
  assign end_while_held = event_valid_i && !valid_q && !seg_valid_i && held_valid;
  assign pop = (flush_q && seg_ready_i) || drop_q;

  ns_fifo #(
    .Width($bits(transfer_seg_t)),
    .Depth(ManySegments ? 128 : 1),
    .Style(ManySegments ? "lutram" : "reg")
  ) u_held (
    .clk_i,
    .rst_ni,
    .in_valid_i (push),
    .in_ready_o (push_ready),
    .in_data_i  (cut_seg_q),
    .out_valid_o(held_valid),
    .out_ready_i(pop),
    .out_data_o (oldest),
    .count_o    (count)
  );

  assign held_count = 8'(count);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flush_q <= 1'b0;
      drop_q <= 1'b0;
      held_q <= '0;
    end else begin
      if (flush_q || drop_q) begin
        if (pop && held_count == 8'd1) begin
          flush_q <= 1'b0;
          drop_q <= 1'b0;
          held_q <= '0;
        end
      end else if (held_valid && valid_q && (block_end_q || media_gap)) begin
        flush_q <= 1'b1;
      end else if (end_while_held) begin
        flush_q <= event_i.status == DataOk;
        drop_q <= event_i.status != DataOk;
      end
      if (push) held_q <= held_q + cut_seg_q.len;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!flush_q) begin
      flush_with_cut_q <= valid_q && !media_gap;
      total_q <= held_q + ((valid_q && !media_gap) ? cut_seg_q.len : '0);
    end
  end

  assign seg_valid_o = flush_q || bypass;

  always_comb begin
    seg_o = '{
        slot: slot_q,
        kind: kind_q,
        more: 1'b0,
        total: cut_seg_q.len,
        len: cut_seg_q.len,
        mem: cut_seg_q.mem,
        host: cut_seg_q.host
    };
    if (flush_q) begin
      seg_o.more = flush_with_cut_q || held_count != 8'd1;
      seg_o.total = total_q;
      seg_o.len = oldest.len;
      seg_o.mem = oldest.mem;
      seg_o.host = oldest.host;
    end
  end

  // Descriptors made.
  logic [DescsWidth-1:0] descs_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) descs_q <= '0;
    else if (event_valid_o && event_ready_i) descs_q <= '0;
    else if (seg_valid_o && seg_ready_i && (ToHost || !seg_o.more))
      descs_q <= descs_q + ((kind_q == KindCompare) ? DescsWidth'(2) : DescsWidth'(1));
  end

  assign event_valid_o = event_valid_i && !valid_q && !seg_valid_i && !held_valid;
  assign event_ready_o = event_ready_i && event_valid_o;
  assign event_o = '{slot: event_i.slot, walk: 1'b1, descs: descs_q, status: event_i.status};

  `NS_ASSERT(room_to_wait, !push || push_ready)
  `NS_ASSERT(within_granule, !seg_valid_o || 32'(seg_o.mem[11:0]) + 32'(seg_o.len) <= 4096)
  `NS_ASSERT(first_of_group, !flush_q || held_valid)

endmodule
