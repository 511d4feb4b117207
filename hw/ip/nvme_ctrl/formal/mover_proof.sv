// SPDX-License-Identifier: Apache-2.0

// nvme_mover towards the media. A burst begins only when all of its beats are in the FIFO, none of
// them with a read error. No beat with an error leaves on the bus, and no burst begins without
// permission. No read begins without permission either. Of a group in flight, all outstanding data
// arrive before its end, however long its descriptors are held up.
//
// Bounded, from reset on. Descriptors of up to 96 bytes in groups of up to 160, at any dword;
// bursts of 128 bytes. Assumed of the neighbours: groups as made by nvme_block_assembler, data only
// for requested reads.
`include "ns_assert.svh"

module mover_proof
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input logic        desc_valid_i,
  input logic        desc_more_i,
  input logic [12:0] desc_len_i,
  input logic [12:0] desc_total_i,
  input logic [11:0] desc_src_i,
  input logic [11:0] desc_dst_i,
  input logic        ar_ready_i,
  input logic        r_valid_i,
  input logic        r_error_i,
  input logic        read_hold_i,
  input logic        read_open_i,
  input logic        write_open_i,
  input logic        aw_ready_i,
  input logic        w_ready_i,
  input logic        b_valid_i,
  input logic        event_ready_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  desc_t desc;
  logic
      desc_ready, ar_valid, r_ready, aw_valid, w_valid, b_ready, read_begin, read_end, write_begin;
  ax_t ar, aw;
  w_t w;
  transfer_event_t desc_event;
  logic desc_event_valid;

  assign desc = '{
          slot: '0,
          kind: KindCopy,
          more: desc_more_i,
          total: desc_total_i,
          len: desc_len_i,
          src: {'0, desc_src_i},
          dst: {'0, desc_dst_i}
      };

  ns_axi_if source ();
  ns_axi_if target ();

  assign ar = source.ar;
  assign ar_valid = source.ar_valid;
  assign source.ar_ready = ar_ready_i;
  assign source.r = '{id: '0, resp: {r_error_i, 1'b0}, last: 1'b0, data: '0};
  assign source.r_valid = r_valid_i;
  assign r_ready = source.r_ready;
  assign aw = target.aw;
  assign aw_valid = target.aw_valid;
  assign target.aw_ready = aw_ready_i;
  assign w = target.w;
  assign w_valid = target.w_valid;
  assign target.w_ready = w_ready_i;
  assign target.b = '0;
  assign target.b_valid = b_valid_i;
  assign b_ready = target.b_ready;

  nvme_mover #(
    .FifoBeats (64),
    .MaxDescs  (4),
    .QueueDescs(2),
    .BurstBytes(128),
    .MaxBursts (2),
    .Merge     (1'b1)
  ) u_mover (
    .clk_i,
    .rst_ni,
    .busy_o       (),
    .desc_i       (desc),
    .desc_valid_i,
    .desc_ready_o (desc_ready),
    .event_o      (desc_event),
    .event_valid_o(desc_event_valid),
    .event_ready_i,
    .peer_data_i  ('0),
    .peer_error_i (1'b0),
    .peer_valid_i (1'b0),
    .cmp_data_o   (),
    .cmp_error_o  (),
    .cmp_valid_o  (),
    .read_hold_i,
    .read_open_i,
    .read_req_o   (),
    .read_addr_o  (),
    .read_begin_o (read_begin),
    .read_end_o   (read_end),
    .read_busy_o  (),
    .write_open_i,
    .write_req_o  (),
    .write_addr_o (),
    .write_begin_o(write_begin),
    .write_end_o  (),
    .m_source     (source),
    .m_target     (target)
  );

  // A group: address of its next descriptor, and the bytes left.
  logic group_open_q, desc_fire;
  logic [11:0] next_q;
  logic [12:0] left_q, total;
  assign desc_fire = desc_valid_i && desc_ready;
  assign total = group_open_q ? left_q : desc_total_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) group_open_q <= 1'b0;
    else if (desc_fire) group_open_q <= desc_more_i;
  end
  always_ff @(posedge clk_i) begin
    if (desc_fire) begin
      next_q <= desc_dst_i + desc_len_i[11:0];
      left_q <= total - desc_len_i;
    end
  end

  // Beats requested.
  logic [6:0] requested_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) requested_q <= '0;
    else
      requested_q <= requested_q + ((ar_valid && ar_ready_i) ? 7'(ar.len) + 7'd1 : '0) - 7'(r_valid_i && r_ready);
  end

  // Groups being read. An address is valid a cycle after the decision.
  logic [3:0] groups_q;
  logic ar_shown_q, read_held_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      groups_q <= '0;
      ar_shown_q <= 1'b0;
      read_held_q <= 1'b1;
    end else begin
      groups_q <= groups_q + 4'(read_begin) - 4'(read_end);
      ar_shown_q <= ar_valid && !ar_ready_i;
      read_held_q <= read_hold_i;
    end
  end

  // Beats in the FIFO, and beats that begun or discarded bursts still have to take from it.
  logic [6:0] fifo_beats_q, owed_beats_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fifo_beats_q <= '0;
      owed_beats_q <= '0;
    end else begin
      fifo_beats_q <= fifo_beats_q + 7'(u_mover.align_out) - 7'(u_mover.beat_out_valid);
      owed_beats_q <= owed_beats_q + (u_mover.u_write.issue_valid ? u_mover.u_write.beats_q : '0) - 7'(u_mover.beat_out_valid);
    end
  end

  `NS_ASSUME(dwords, {desc_len_i[1:0], desc_total_i[1:0], desc_src_i[1:0], desc_dst_i[1:0]} == '0)
  `NS_ASSUME(has_bytes, desc_len_i != '0 && desc_len_i <= 13'd96)
  `NS_ASSUME(source_in_page, 32'(desc_src_i) + 32'(desc_len_i) <= 4096)
  `NS_ASSUME(target_in_page, 32'(desc_dst_i) + 32'(total) <= 4096)
  `NS_ASSUME(group_adds_up, desc_more_i ? desc_len_i < total : desc_len_i == total)
  `NS_ASSUME(few_bytes, desc_total_i <= 13'd160 && {desc_src_i[11:7], desc_dst_i[11:8]} == '0)
  `NS_ASSUME(pieces_follow, !group_open_q || desc_dst_i == next_q)
  `NS_ASSUME(data_requested, !r_valid_i || requested_q != '0)

  `NS_ASSERT(reads_open, !read_begin || (read_open_i && !read_hold_i))
  `NS_ASSERT(reads_not_held, !ar_valid || ar_shown_q || !read_held_q)
  `NS_ASSERT(
      reads_in_groups,
      groups_q != '0 || (!ar_valid && requested_q == '0 && !read_end && u_mover.u_read.first_q))
  `NS_ASSERT(begins_open, !write_begin || write_open_i)
  `NS_ASSERT(begins_complete,
             !write_begin || fifo_beats_q - owed_beats_q >= u_mover.u_write.beats_q)
  `NS_ASSERT(data_without_error, !w_valid || !u_mover.beat_error)
  `NS_ASSERT(data_is_there, !w_valid || fifo_beats_q != '0)

  logic unused;
  assign unused = ^{aw_valid, aw, w, b_ready, rst_ni};

endmodule
