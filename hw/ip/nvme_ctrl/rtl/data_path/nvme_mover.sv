// SPDX-License-Identifier: Apache-2.0

// DMA mover: executes descriptors in order. Copies data from one AXI bus to another, writes zeros,
// reads data that are discarded, or compares data with those of another mover.
//
// The source is read far ahead, up to MaxDescs descriptors and FifoBeats write beats. The data are
// realigned and kept until a whole burst can be sent. One beat a cycle. Read and write responses
// must arrive in order, as they do for one ID. The instantiating module may gate the clock while
// `busy_o` is 0 and no descriptor is valid.
`include "ns_assert.svh"

module nvme_mover
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Write beats held or in flight, at least 64; 64 bytes each.
  parameter int unsigned  FifoBeats   = 512,
  /// Descriptors being read.
  parameter int unsigned  MaxDescs     = 64,
  /// Descriptors waiting to be read.
  parameter int unsigned  QueueDescs   = 16,
  /// Largest write burst in bytes.
  parameter int unsigned  BurstBytes  = 512,
  /// Write bursts whose response is outstanding.
  parameter int unsigned  MaxBursts   = 64,
  /// Status after a read error.
  parameter data_status_e ReadStatus  = DataReadError,
  /// Status after a write error.
  parameter data_status_e WriteStatus = DataHostError,
  /// Compares beats, in one of the two movers of a comparison.
  parameter bit           Compare     = 1'b0,
  /// Descriptors of a group are merged at the target: in a burst, either all bytes are right or
  /// none is written. Without it, each descriptor is written separately, and what cannot be read
  /// becomes zeros.
  parameter bit           Merge       = 1'b0
) (
  input  logic   clk_i,
  input  logic   rst_ni,
  /// From registers: there are descriptors inside.
  output logic   busy_o,

  /// Descriptor.
  input  desc_t           desc_i,
  input  logic            desc_valid_i,
  output logic            desc_ready_o,
  /// A descriptor has ended.
  output transfer_event_t event_o,
  output logic            event_valid_o,
  input  logic            event_ready_i,

  /// Beat of the other mover for a comparison. Both movers advance when both beats are valid.
  input  logic [DataWidth-1:0] peer_data_i,
  /// It had a read error.
  input  logic                 peer_error_i,
  input  logic                 peer_valid_i,
  /// Beat to be compared.
  output logic [DataWidth-1:0] cmp_data_o,
  /// It had a read error.
  output logic                 cmp_error_o,
  output logic                 cmp_valid_o,

  /// No read of the source may begin, not even within a group in flight.
  input  logic        read_hold_i,
  /// Permission to read the source, group by group: the group at `read_addr_o` may begin.
  input  logic        read_open_i,
  /// Only this permission, or `read_hold_i`, is missing. Stays until the group begins.
  output logic        read_req_o,
  /// Address of the group.
  output logic [63:0] read_addr_o,
  /// It begins.
  output logic        read_begin_o,
  /// All data of the oldest group in flight have arrived.
  output logic        read_end_o,
  /// From registers: data are outstanding. 0 between two descriptors of a group.
  output logic        read_busy_o,
  /// Permission to write the target: the burst at `write_addr_o` may begin.
  input  logic        write_open_i,
  /// Only this permission is missing. Stays until the burst begins.
  output logic        write_req_o,
  /// Address of the burst.
  output logic [63:0] write_addr_o,
  /// It begins.
  output logic        write_begin_o,
  /// The oldest burst in flight ends.
  output logic        write_end_o,

  /// Source.
  ns_axi_if.read_master m_source,

  /// Target.
  ns_axi_if.write_master m_target
);

  localparam int unsigned CountBits = unsigned'($clog2(MaxDescs + QueueDescs + MaxBursts + 8));

  logic [CountBits-1:0] descs_q;  // inside
  logic desc_in, desc_out, desc_first_q;

  assign busy_o = descs_q != '0;
  assign desc_in = desc_valid_i && desc_ready_o && (desc_first_q || !Merge);
  assign desc_out = event_valid_o && event_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) desc_first_q <= 1'b1;
    else if (desc_valid_i && desc_ready_o) desc_first_q <= !desc_i.more;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) descs_q <= '0;
    else if (desc_in && !desc_out) descs_q <= descs_q + 1'b1;
    else if (!desc_in && desc_out) descs_q <= descs_q - 1'b1;
  end

  desc_t queue_desc;
  logic queue_valid, queue_ready;

  ns_fifo #(
    .Width($bits(desc_t)),
    .Depth(QueueDescs)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (desc_valid_i),
    .in_ready_o (desc_ready_o),
    .in_data_i  (desc_i),
    .out_valid_o(queue_valid),
    .out_ready_i(queue_ready),
    .out_data_o (queue_desc),
    .count_o    ()
  );

  write_desc_t issue_desc;
  logic
      issue_read,
      issue_write,
      issue_skip,
      issue_flush,
      issue_more,
      issue_partial_end,
      align_queue_ready,
      write_queue_ready;
  logic [9:0] issue_at, align_at;
  logic compare_done;
  logic [3:0] issue_rotate;
  logic [5:0] issue_beats, align_beats;
  logic beat_out_valid;

  nvme_mover_read #(
    .FifoBeats(FifoBeats),
    .Merge    (Merge)
  ) u_read (
    .clk_i,
    .rst_ni,
    .desc_i             (queue_desc),
    .desc_valid_i       (queue_valid),
    .desc_ready_o       (queue_ready),
    .hold_i             (read_hold_i),
    .read_open_i,
    .req_o              (read_req_o),
    .req_addr_o         (read_addr_o),
    .read_begin_o       (read_begin_o),
    .compare_done_i     (compare_done),
    .ar_o               (m_source.ar),
    .ar_valid_o         (m_source.ar_valid),
    .ar_ready_i         (m_source.ar_ready),
    .issue_read_o       (issue_read),
    .issue_write_o      (issue_write),
    .issue_ready_i      (align_queue_ready && write_queue_ready),
    .issue_desc_o       (issue_desc),
    .issue_rotate_o     (issue_rotate),
    .issue_skip_o       (issue_skip),
    .issue_flush_o      (issue_flush),
    .issue_beats_o      (issue_beats),
    .issue_more_o       (issue_more),
    .issue_at_o         (issue_at),
    .issue_partial_end_o(issue_partial_end),
    .beat_out_i         (beat_out_valid)
  );

  logic align_valid, align_ready, align_skip, align_flush, align_more, align_partial_end;
  logic [3:0] align_rotate;

  ns_fifo #(
    .Width(24),
    .Depth(MaxDescs),
    .Style("lutram")
  ) u_align_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (issue_read),
    .in_ready_o (align_queue_ready),
    .in_data_i  ({issue_more, issue_at, issue_partial_end, issue_beats, issue_rotate, issue_skip, issue_flush}),
    .out_valid_o(align_valid),
    .out_ready_i(align_ready),
    .out_data_o ({align_more, align_at, align_partial_end, align_beats, align_rotate, align_skip, align_flush}),
    .count_o    ()
  );

  logic [DataWidth-1:0] align_data, beat_data;
  logic align_error, align_out, beat_error, beat_valid, fifo_ready, burst_arrived, burst_error;

  nvme_aligner #(
    .Merge     (Merge),
    .BurstBytes(BurstBytes)
  ) u_aligner (
    .clk_i,
    .rst_ni,
    .desc_valid_i      (align_valid),
    .desc_rotate_i     (align_rotate),
    .desc_skip_i       (align_skip),
    .desc_flush_i      (align_flush),
    .desc_more_i       (align_more),
    .desc_at_i         (align_at),
    .desc_partial_end_i(align_partial_end),
    .desc_beats_i      (align_beats),
    .desc_ready_o      (align_ready),
    .r_i               (m_source.r),
    .r_valid_i         (m_source.r_valid),
    .r_ready_o         (m_source.r_ready),
    .out_data_o        (align_data),
    .out_error_o       (align_error),
    .out_valid_o       (align_out),
    .burst_valid_o     (burst_arrived),
    .burst_error_o     (burst_error)
  );

  ns_fifo #(
    .Width(DataWidth + 1),
    .Depth(FifoBeats)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .in_valid_i (align_out),
    .in_ready_o (fifo_ready),
    .in_data_i  ({align_error, align_data}),
    .out_valid_o(beat_valid),
    .out_ready_i(beat_out_valid),
    .out_data_o ({beat_error, beat_data}),
    .count_o    ()
  );

  write_desc_t write_desc;
  logic write_valid, write_ready;

  ns_fifo #(
    .Width($bits(write_desc_t)),
    .Depth(MaxDescs),
    .Style("lutram")
  ) u_write_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (issue_write),
    .in_ready_o (write_queue_ready),
    .in_data_i  (issue_desc),
    .out_valid_o(write_valid),
    .out_ready_i(write_ready),
    .out_data_o (write_desc),
    .count_o    ()
  );

  nvme_mover_write #(
    .FifoBeats  (FifoBeats),
    .BurstBytes (BurstBytes),
    .MaxBursts  (MaxBursts),
    .ReadStatus (ReadStatus),
    .WriteStatus(WriteStatus),
    .Compare    (Compare),
    .Whole      (Merge)
  ) u_write (
    .clk_i,
    .rst_ni,
    .desc_i       (write_desc),
    .desc_valid_i (write_valid),
    .desc_ready_o (write_ready),
    .beat_arrived_i (align_out),
    .burst_arrived_i(burst_arrived),
    .burst_error_i(burst_error),
    .beat_data_i  (beat_data),
    .beat_error_i (beat_error),
    .beat_valid_i (beat_valid),
    .beat_ready_o (beat_out_valid),
    .peer_data_i,
    .peer_error_i,
    .peer_valid_i,
    .cmp_valid_o,
    .write_open_i,
    .req_o      (write_req_o),
    .req_addr_o (write_addr_o),
    .write_begin_o,
    .write_end_o,
    .compare_done_o  (compare_done),
    .aw_o(m_target.aw),
    .aw_valid_o(m_target.aw_valid),
    .aw_ready_i(m_target.aw_ready),
    .w_o(m_target.w),
    .w_valid_o(m_target.w_valid),
    .w_ready_i(m_target.w_ready),
    .b_i(m_target.b),
    .b_valid_i(m_target.b_valid),
    .b_ready_o(m_target.b_ready),
    .event_o,
    .event_valid_o,
    .event_ready_i
  );

  assign read_end_o = align_ready && !align_more;
  assign read_busy_o = align_valid;
  assign cmp_data_o = beat_data;
  assign cmp_error_o = beat_error;

  `NS_ASSERT(reserved_room, !align_out || fifo_ready)
  `NS_ASSERT(
      quiet_without_descs,
      busy_o || (!m_source.ar_valid && !m_target.aw_valid && !m_target.w_valid && !event_valid_o))

endmodule
