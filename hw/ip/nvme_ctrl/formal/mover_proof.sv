// nvme_mover towards the media: a burst begins only when all of its beats are in the FIFO, none of them with a read error; no
// beat with an error leaves on the bus; and no further burst begins while none may. No read begins while none may, either; of a
// group that has begun to be read, all data that are to come do so before its end, however long its pieces are held up.
//
// Bounded, from reset on. Jobs of up to 96 bytes in groups of up to 160, at any dword; bursts of 128 bytes. Assumed of the neighbours: groups as nvme_block_assembler makes them, data only for what has been asked for.
`include "ns_assert.svh"

module mover_proof
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input logic        job_valid_i,
  input logic        job_more_i,
  input logic [12:0] job_len_i,
  input logic [12:0] job_total_i,
  input logic [11:0] job_src_i,
  input logic [11:0] job_dst_i,
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

  job_t job;
  logic job_ready, ar_valid, r_ready, aw_valid, w_valid, b_ready, read_begin, read_end, write_begin;
  ax_t ar, aw;
  w_t w;
  event_t job_event;
  logic job_event_valid;

  assign job = '{
          slot: '0,
          kind: KindCopy,
          more: job_more_i,
          total: job_total_i,
          len: job_len_i,
          src: {'0, job_src_i},
          dst: {'0, job_dst_i}
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
    .MaxJobs   (4),
    .QueueJobs (2),
    .BurstBytes(128),
    .MaxBursts (2),
    .Merge     (1'b1)
  ) u_mover (
    .clk_i,
    .rst_ni,
    .busy_o       (),
    .job_i        (job),
    .job_valid_i,
    .job_ready_o  (job_ready),
    .event_o      (job_event),
    .event_valid_o(job_event_valid),
    .event_ready_i,
    .peer_data_i  ('0),
    .peer_error_i (1'b0),
    .peer_valid_i (1'b0),
    .cmp_data_o   (),
    .cmp_error_o  (),
    .cmp_valid_o  (),
    .read_hold_i,
    .read_open_i,
    .read_want_o  (),
    .read_addr_o  (),
    .read_begin_o (read_begin),
    .read_end_o   (read_end),
    .read_busy_o  (),
    .write_open_i,
    .write_want_o (),
    .write_addr_o (),
    .write_begin_o(write_begin),
    .write_end_o  (),
    .m_source     (source),
    .m_target     (target)
  );

  // A group: where its next piece begins, what is left of it.
  logic inside_q, job_fire;
  logic [11:0] next_q;
  logic [12:0] left_q, total;
  assign job_fire = job_valid_i && job_ready;
  assign total = inside_q ? left_q : job_total_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) inside_q <= 1'b0;
    else if (job_fire) inside_q <= job_more_i;
  end
  always_ff @(posedge clk_i) begin
    if (job_fire) begin
      next_q <= job_dst_i + job_len_i[11:0];
      left_q <= total - job_len_i;
    end
  end

  // Beats that have been asked for.
  logic [6:0] asked_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) asked_q <= '0;
    else
      asked_q <= asked_q + ((ar_valid && ar_ready_i) ? 7'(ar.len) + 7'd1 : '0) - 7'(r_valid_i && r_ready);
  end

  // Groups that are being read. An address is shown a cycle after it was decided upon.
  logic [3:0] groups_q;
  logic ar_shown_q, held_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      groups_q <= '0;
      ar_shown_q <= 1'b0;
      held_q <= 1'b1;
    end else begin
      groups_q <= groups_q + 4'(read_begin) - 4'(read_end);
      ar_shown_q <= ar_valid && !ar_ready_i;
      held_q <= read_hold_i;
    end
  end

  // Beats in the FIFO, and those that bursts which have begun, or are dropped, have still to take out of it.
  logic [6:0] here_q, due_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      here_q <= '0;
      due_q <= '0;
    end else begin
      here_q <= here_q + 7'(u_mover.align_out) - 7'(u_mover.beat_left);
      due_q <= due_q + (u_mover.u_write.issue ? u_mover.u_write.beats_q : '0) - 7'(u_mover.beat_left);
    end
  end

  `NS_ASSUME(dwords, {job_len_i[1:0], job_total_i[1:0], job_src_i[1:0], job_dst_i[1:0]} == '0)
  `NS_ASSUME(has_bytes, job_len_i != '0 && job_len_i <= 13'd96)
  `NS_ASSUME(source_in_page, 32'(job_src_i) + 32'(job_len_i) <= 4096)
  `NS_ASSUME(target_in_page, 32'(job_dst_i) + 32'(total) <= 4096)
  `NS_ASSUME(group_adds_up, job_more_i ? job_len_i < total : job_len_i == total)
  `NS_ASSUME(few_bytes, job_total_i <= 13'd160 && {job_src_i[11:7], job_dst_i[11:8]} == '0)
  `NS_ASSUME(pieces_follow, !inside_q || job_dst_i == next_q)
  `NS_ASSUME(data_asked_for, !r_valid_i || asked_q != '0)

  `NS_ASSERT(reads_open, !read_begin || (read_open_i && !read_hold_i))
  `NS_ASSERT(reads_not_held, !ar_valid || ar_shown_q || !held_q)
  `NS_ASSERT(reads_in_groups,
             groups_q != '0 || (!ar_valid && asked_q == '0 && !read_end && u_mover.u_read.first_q))
  `NS_ASSERT(begins_open, !write_begin || write_open_i)
  `NS_ASSERT(begins_complete, !write_begin || here_q - due_q >= u_mover.u_write.beats_q)
  `NS_ASSERT(data_without_error, !w_valid || !u_mover.beat_error)
  `NS_ASSERT(data_is_there, !w_valid || here_q != '0)

  logic unused;
  assign unused = ^{aw_valid, aw, w, b_ready, rst_ni};

endmodule
