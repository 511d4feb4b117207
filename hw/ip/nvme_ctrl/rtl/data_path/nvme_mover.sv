// DMA mover: copies jobs, in order, from one AXI bus to another; writes zeros; reads data that is dropped or compared
// with what another mover reads.
//
// The source is read far ahead (up to MaxJobs jobs and FifoBeats write beats), the data realigned and kept until a whole
// burst can be sent. One beat per cycle. Read and write responses must come in order, as they do for one ID.
// `clk_o`-style gating is the instantiator's: while `busy_o` is 0 and no job is offered, the clock may stop.
`include "ns_assert.svh"

module nvme_mover
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Write beats held or under way, at least 64; 64 bytes each.
  parameter int unsigned  FifoBeats   = 512,
  /// Jobs being read.
  parameter int unsigned  MaxJobs     = 64,
  /// Jobs waiting to be read.
  parameter int unsigned  QueueJobs   = 16,
  /// Largest write burst in bytes.
  parameter int unsigned  BurstBytes  = 512,
  /// Write bursts whose response is outstanding.
  parameter int unsigned  MaxBursts   = 64,
  /// Status after a read error.
  parameter data_status_e ReadStatus  = DataReadError,
  /// Status after a write error.
  parameter data_status_e WriteStatus = DataHostError,
  /// Finds out whether beats that are compared differ; the other mover need not.
  parameter bit           Compare     = 1'b0,
  /// Jobs of a group are one at the target, in whose bursts either all bytes are right or none is written. Without, each
  /// stands for itself there, and what cannot be read becomes zeros.
  parameter bit           Merge       = 1'b0
) (
  input  logic   clk_i,
  input  logic   rst_ni,
  /// From registers: there are jobs inside.
  output logic   busy_o,

  /// Job.
  input  job_t   job_i,
  input  logic   job_valid_i,
  output logic   job_ready_o,
  /// Job ended.
  output event_t event_o,
  output logic   event_valid_o,
  input  logic   event_ready_i,

  /// Beat of the other mover to be compared with. Both go on when both are valid.
  input  logic [DataWidth-1:0] peer_data_i,
  /// It came with a read error.
  input  logic                 peer_error_i,
  input  logic                 peer_valid_i,
  /// Beat to be compared.
  output logic [DataWidth-1:0] cmp_data_o,
  /// It came with a read error.
  output logic                 cmp_error_o,
  output logic                 cmp_valid_o,

  /// No read of the source may begin, not even of a group that has begun.
  input  logic        read_hold_i,
  /// Reads of the source, group by group: the one at `read_addr_o` may begin.
  input  logic        read_open_i,
  /// It waits for that, or for `read_hold_i`, and for nothing else. Stays until it begins.
  output logic        read_want_o,
  /// Its address.
  output logic [63:0] read_addr_o,
  /// It begins.
  output logic        read_begin_o,
  /// All data of the oldest group that has begun have come.
  output logic        read_end_o,
  /// From registers: data are to come. Not so between two pieces of a group.
  output logic        read_busy_o,
  /// Bursts to the target: the one at `write_addr_o` may begin.
  input  logic        write_open_i,
  /// It waits for that and for nothing else. Stays until it begins.
  output logic        write_want_o,
  /// Its address.
  output logic [63:0] write_addr_o,
  /// It begins.
  output logic        write_begin_o,
  /// The oldest one that has begun ends.
  output logic        write_end_o,

  /// Source.
  ns_axi_if.read_master m_source,

  /// Target.
  ns_axi_if.write_master m_target
);

  localparam int unsigned CountBits = unsigned'($clog2(MaxJobs + QueueJobs + MaxBursts + 8));

  logic [CountBits-1:0] jobs_q;  // inside
  logic job_in, job_out, job_first_q;

  assign busy_o = jobs_q != '0;
  assign job_in = job_valid_i && job_ready_o && (job_first_q || !Merge);
  assign job_out = event_valid_o && event_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) job_first_q <= 1'b1;
    else if (job_valid_i && job_ready_o) job_first_q <= !job_i.more;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) jobs_q <= '0;
    else if (job_in && !job_out) jobs_q <= jobs_q + 1'b1;
    else if (!job_in && job_out) jobs_q <= jobs_q - 1'b1;
  end

  job_t queue_job;
  logic queue_valid, queue_ready;

  ns_fifo #(
    .Width($bits(job_t)),
    .Depth(QueueJobs)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (job_valid_i),
    .in_ready_o (job_ready_o),
    .in_data_i  (job_i),
    .out_valid_o(queue_valid),
    .out_ready_i(queue_ready),
    .out_data_o (queue_job),
    .count_o    ()
  );

  target_t issue_job;
  logic
      issue_read,
      issue_write,
      issue_skip,
      issue_flush,
      issue_more,
      issue_mid,
      align_queue_ready,
      write_queue_ready;
  logic [9:0] issue_at, align_at;
  logic compared;
  logic [3:0] issue_rotate;
  logic [5:0] issue_beats, align_beats;
  logic beat_left;

  nvme_mover_read #(
    .FifoBeats(FifoBeats),
    .Merge    (Merge)
  ) u_read (
    .clk_i,
    .rst_ni,
    .job_i         (queue_job),
    .job_valid_i   (queue_valid),
    .job_ready_o   (queue_ready),
    .hold_i        (read_hold_i),
    .read_open_i,
    .want_o        (read_want_o),
    .want_addr_o   (read_addr_o),
    .begin_o       (read_begin_o),
    .compared_i    (compared),
    .ar_o(m_source.ar),
    .ar_valid_o(m_source.ar_valid),
    .ar_ready_i(m_source.ar_ready),
    .issue_read_o  (issue_read),
    .issue_write_o (issue_write),
    .issue_ready_i (align_queue_ready && write_queue_ready),
    .issue_job_o   (issue_job),
    .issue_rotate_o(issue_rotate),
    .issue_skip_o  (issue_skip),
    .issue_flush_o (issue_flush),
    .issue_beats_o (issue_beats),
    .issue_more_o  (issue_more),
    .issue_at_o    (issue_at),
    .issue_mid_o   (issue_mid),
    .beat_left_i   (beat_left)
  );

  logic align_valid, align_ready, align_skip, align_flush, align_more, align_mid;
  logic [3:0] align_rotate;

  ns_fifo #(
    .Width(24),
    .Depth(MaxJobs),
    .Style("lutram")
  ) u_align_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (issue_read),
    .in_ready_o (align_queue_ready),
    .in_data_i  ({issue_more, issue_at, issue_mid, issue_beats, issue_rotate, issue_skip, issue_flush}),
    .out_valid_o(align_valid),
    .out_ready_i(align_ready),
    .out_data_o ({align_more, align_at, align_mid, align_beats, align_rotate, align_skip, align_flush}),
    .count_o    ()
  );

  logic [DataWidth-1:0] align_data, beat_data;
  logic align_error, align_out, beat_error, beat_valid, fifo_ready, burst_came, burst_error;

  nvme_aligner #(
    .Merge     (Merge),
    .BurstBytes(BurstBytes)
  ) u_align (
    .clk_i,
    .rst_ni,
    .job_valid_i (align_valid),
    .job_rotate_i(align_rotate),
    .job_skip_i  (align_skip),
    .job_flush_i (align_flush),
    .job_more_i  (align_more),
    .job_at_i    (align_at),
    .job_mid_i   (align_mid),
    .job_beats_i (align_beats),
    .job_ready_o (align_ready),
    .r_i(m_source.r),
    .r_valid_i(m_source.r_valid),
    .r_ready_o(m_source.r_ready),
    .out_data_o  (align_data),
    .out_error_o (align_error),
    .out_valid_o (align_out),
    .burst_valid_o(burst_came),
    .burst_error_o(burst_error)
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
    .out_ready_i(beat_left),
    .out_data_o ({beat_error, beat_data}),
    .count_o    ()
  );

  target_t write_job;
  logic write_valid, write_ready;

  ns_fifo #(
    .Width($bits(target_t)),
    .Depth(MaxJobs),
    .Style("lutram")
  ) u_write_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (issue_write),
    .in_ready_o (write_queue_ready),
    .in_data_i  (issue_job),
    .out_valid_o(write_valid),
    .out_ready_i(write_ready),
    .out_data_o (write_job),
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
    .job_i       (write_job),
    .job_valid_i (write_valid),
    .job_ready_o (write_ready),
    .beat_came_i (align_out),
    .burst_came_i(burst_came),
    .burst_error_i(burst_error),
    .beat_data_i (beat_data),
    .beat_error_i(beat_error),
    .beat_valid_i(beat_valid),
    .beat_ready_o(beat_left),
    .peer_data_i,
    .peer_error_i,
    .peer_valid_i,
    .cmp_valid_o,
    .write_open_i,
    .want_o      (write_want_o),
    .want_addr_o (write_addr_o),
    .write_begin_o,
    .write_end_o,
    .compared_o  (compared),
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
      quiet_without_jobs,
      busy_o || (!m_source.ar_valid && !m_target.aw_valid && !m_target.w_valid && !event_valid_o))

endmodule
