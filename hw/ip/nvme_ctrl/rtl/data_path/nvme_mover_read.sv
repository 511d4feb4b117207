// SPDX-License-Identifier: Apache-2.0

// Read side of a mover: issues the source read of a descriptor as early as room for all of its
// write beats can be reserved.
//
// A descriptor is read in one burst. At the same time the write side receives the descriptor, and
// the aligner its attributes. Zeros are not read: only the write side receives their descriptor.
// The descriptors of a group follow each other. The group is in flight from the start of its first
// read to the end of its last one. Assumption: a descriptor lies within one 4 KiB page at both
// ends.
`include "ns_assert.svh"

module nvme_mover_read
  import ns_axi_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Write beats that fit into the mover's FIFO, at least 64.
  parameter int unsigned FifoBeats = 512,
  /// The descriptors of a group are merged: the write side receives one descriptor for the group.
  parameter bit          Merge     = 1'b0
) (
  input  logic       clk_i,
  input  logic       rst_ni,

  /// Descriptor.
  input  desc_t desc_i,
  input  logic  desc_valid_i,
  output logic  desc_ready_o,

  /// No read may begin, not even within a group in flight.
  input  logic        hold_i,
  /// The read of the group that begins at `req_addr_o` may begin. Its other descriptors follow
  /// regardless of this input: what excludes others from a group waits for the group's end.
  input  logic        read_open_i,
  /// Only this permission, or `hold_i`, is missing. Stays until the group begins.
  output logic        req_o,
  /// Address of the group.
  output logic [63:0] req_addr_o,

  /// A group begins to be read.
  output logic       read_begin_o,
  /// All beats of a compared descriptor have left.
  input  logic       compare_done_i,

  /// Read address.
  output ax_t        ar_o,
  output logic       ar_valid_o,
  input  logic       ar_ready_i,

  /// A descriptor is issued to the aligner.
  output logic        issue_read_o,
  /// A descriptor is issued to the write side.
  output logic        issue_write_o,
  /// There is room in both queues.
  input  logic        issue_ready_i,
  /// The write side's part of the descriptor.
  output write_desc_t issue_desc_o,
  /// For the aligner: rotation in dwords.
  output logic [3:0]  issue_rotate_o,
  /// For the aligner: the first read beat yields no write beat.
  output logic        issue_skip_o,
  /// For the aligner: the last write beat needs no further read beat.
  output logic        issue_flush_o,

  /// For the aligner: read beats, less 1.
  output logic [5:0] issue_beats_o,
  /// Another descriptor of the group follows.
  output logic       issue_more_o,
  /// For the aligner: dword of the write beats at which the descriptor begins.
  output logic [9:0] issue_at_o,
  /// For the aligner: the descriptor ends within a write beat.
  output logic       issue_partial_end_o,

  /// A beat has left the FIFO.
  input  logic       beat_out_i
);

  localparam int unsigned FreeBits = unsigned'($clog2(FifoBeats + 1));

  logic issue_valid;  // to the queues

  // First step: what the descriptor needs.
  desc_t desc_q;
  logic valid_q;
  logic [6:0] read_beats, write_beats, read_beats_q, write_beats_q;
  logic [6:0] needed_q;  // places in the FIFO; 0 for zeros
  logic partial_end, partial_end_q;
  logic first_q;  // first of its group
  logic [6:0] compares_ahead_q;  // compared descriptors ahead

  assign read_beats = 7'((32'(desc_i.src[5:0]) + 32'(desc_i.len) + 32'd63) >> 6);
  assign write_beats = 7'((32'(desc_i.dst[5:0]) + 32'(desc_i.len) + 32'd63) >> 6);
  assign partial_end = (desc_i.dst[5:2] + desc_i.len[5:2]) != '0;
  assign desc_ready_o = !valid_q || issue_valid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (desc_ready_o) valid_q <= desc_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (desc_ready_o && desc_valid_i) begin
      desc_q <= desc_i;
      read_beats_q <= read_beats;
      write_beats_q <= write_beats;
      partial_end_q <= partial_end;
      // A beat that the next descriptor of the group completes counts for that descriptor.
      needed_q <= (desc_i.kind == KindZero) ? '0 : write_beats - 7'(Merge && desc_i.more && partial_end);
    end
  end

  // Second step: reserve the room and send the address.
  logic [FreeBits-1:0] free_q;

  // At most every other cycle, which keeps the arbiter of `ar_ready_i` out of this path; a
  // descriptor has more beats. A group in flight must not wait for a comparison: a write of the
  // media may wait for the group, and the comparison for data that follow that write.
  logic issue_ready;
  assign issue_ready = valid_q && issue_ready_i && !ar_valid_o && (32'(free_q) >= 32'(needed_q));
  assign req_o = issue_ready && desc_q.kind != KindZero && first_q && !(desc_q.more && compares_ahead_q != '0);
  assign issue_valid = (req_o && read_open_i && !hold_i) || (issue_ready && (desc_q.kind == KindZero || (!first_q && !hold_i)));
  assign req_addr_o = desc_q.src;
  assign read_begin_o = issue_read_o && first_q;
  assign issue_write_o = issue_valid && (first_q || !Merge);
  assign issue_more_o = desc_q.more;
  assign issue_at_o = desc_q.dst[11:2];
  assign issue_partial_end_o = partial_end_q;
  assign issue_read_o = issue_valid && desc_q.kind != KindZero;
  assign issue_desc_o = '{slot: desc_q.slot, kind: desc_q.kind, len: Merge ? desc_q.total : desc_q.len, dst: desc_q.dst};
  assign issue_rotate_o = desc_q.dst[5:2] - desc_q.src[5:2];
  assign issue_skip_o = desc_q.src[5:2] > desc_q.dst[5:2];
  assign issue_beats_o = 6'(read_beats_q - 7'd1);
  assign issue_flush_o = write_beats_q + 7'(issue_skip_o) > read_beats_q;

  logic compare_start;
  assign compare_start = issue_write_o && desc_q.kind == KindCompare;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      compares_ahead_q <= '0;
      ar_valid_o <= 1'b0;
      free_q <= FreeBits'(FifoBeats);
    end else begin
      if (issue_read_o) ar_valid_o <= 1'b1;
      else if (ar_ready_i) ar_valid_o <= 1'b0;
      if (issue_valid) first_q <= !desc_q.more;
      if (compare_start && !compare_done_i) compares_ahead_q <= compares_ahead_q + 1'b1;
      if (!compare_start && compare_done_i) compares_ahead_q <= compares_ahead_q - 1'b1;
      if (issue_valid || beat_out_i) begin
        free_q <= free_q + FreeBits'(beat_out_i) - (issue_valid ? FreeBits'(needed_q) : '0);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (issue_read_o) begin
      ar_o <= '{
          id: '0,
          len: 8'(read_beats_q - 7'd1),
          size: 3'd6,
          burst: BurstIncr,
          addr: desc_q.src
      };
    end
  end

  if (FifoBeats < 64) begin : gen_bad_beats
    $error("nvme_mover_read: FifoBeats must be at least 64");
  end

  `NS_ASSERT(desc_has_bytes, !desc_valid_i || (desc_i.len != '0 && desc_i.len <= 13'd4096))
  `NS_ASSERT(dword_aligned,
             !desc_valid_i || {desc_i.len[1:0], desc_i.src[1:0], desc_i.dst[1:0]} == '0)
  `NS_ASSERT(source_in_page, !desc_valid_i || 32'(desc_i.src[11:0]) + 32'(desc_i.len) <= 4096)
  `NS_ASSERT(target_in_page, !desc_valid_i || 32'(desc_i.dst[11:0]) + 32'(desc_i.len) <= 4096)
  `NS_ASSERT(reservation_in_range, 32'(free_q) <= FifoBeats)

endmodule
