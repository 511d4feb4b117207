// SPDX-License-Identifier: Apache-2.0

// Submission queues: tail doorbells, arbitration (nvme_arbiter), and the reads that fetch entries
// from the host.
//
// One 64-byte read for each command, up to `FetchDepth` in flight, all with one ID, so that they
// return in the order of the requests. A command is fetched only when a slot is free and an entry
// of its completion queue can be reserved. A queue whose completion queue is full is skipped until
// a head moves. A fetched command therefore never waits for the host to make room, and queues
// cannot block each other. Admin commands are fetched one at a time: the next one after
// `admin_done_i`.
//
// Assumptions: the host's reads return in order; queue sizes and base addresses are legal. The
// content of commands is not decoded here.
`include "ns_assert.svh"

module nvme_fetch
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
  /// Queues, the admin queue included.
  parameter int unsigned NumQueues  = 17,
  /// Reads outstanding.
  parameter int unsigned FetchDepth = 32
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// From registers and enable_i: a further clock edge could change the state without new input.
  output logic                 busy_o,

  /// Commands may be fetched.
  input  logic                 enable_i,
  /// Forget all queues. Only while nothing is in flight.
  input  logic                 clear_i,

  /// CC.AMS: weighted round robin with urgent priority class. Takes effect the next time that
  /// fetching is enabled.
  input  logic                 wrr_i,
  /// A feature changes.
  input  feature_write_t       feature_i,
  input  logic                 feature_valid_i,

  /// Submission queue tail doorbell written. Stays until it is accepted.
  input  logic                 tail_valid_i,
  /// The doorbell is accepted.
  output logic                 tail_ready_o,
  /// Queue, below NumQueues.
  input  logic [QidWidth-1:0]  tail_qid_i,
  /// New tail.
  input  logic [PtrWidth-1:0]  tail_i,
  /// The accepted doorbell is ignored: there is no such queue.
  output logic                 tail_bad_qid_o,
  /// The accepted doorbell is ignored: the tail lies outside the queue.
  output logic                 tail_bad_value_o,

  /// A queue is to be created or deleted.
  input  logic                 cfg_valid_i,
  /// The queue can be created or deleted in this cycle.
  output logic                 cfg_ready_o,
  /// It is done in this cycle.
  input  logic                 cfg_fire_i,
  /// What to create or delete.
  input  queue_cfg_t           cfg_i,
  /// Submission queues that exist.
  output logic [NumQueues-1:0] sq_valid_o,
  /// Submission queues with commands to fetch.
  output logic [NumQueues-1:0] sq_nonempty_o,
  /// Queue to look up for nvme_admin.
  input  logic [QidWidth-1:0]  admin_qid_i,
  /// Its completion queue.
  output logic [QidWidth-1:0]  admin_cqid_o,
  /// It has no command in flight.
  output logic                 admin_idle_o,
  /// Return the completion queue entry reserved for the current admin command.
  input  logic                 unreserve_valid_i,
  /// The entry is returned.
  output logic                 unreserve_ready_o,
  /// Reserve an entry of the admin completion queue, for a command that has returned its entry.
  /// Stays until the answer.
  input  logic                 reserve_valid_i,
  /// Answer.
  output logic                 reserve_done_o,
  /// The entry is reserved; otherwise the queue is full at present.
  output logic                 reserve_ok_o,
  /// The admin command has ended: fetch the next one.
  input  logic                 admin_done_i,

  /// Completion queue being looked up.
  output logic [QidWidth-1:0]  cq_qid_o,
  /// Its head.
  input  logic [PtrWidth-1:0]  cq_head_i,
  /// Its size, 0-based.
  input  logic [PtrWidth-1:0]  cq_size_i,
  /// It has no room for the command that is to be fetched.
  output logic                 cq_full_o,
  /// The head of a completion queue moves at the end of this cycle.
  input  logic                 cq_moved_i,

  /// Submission queue being looked up by nvme_completion.
  input  logic [QidWidth-1:0]  sq_qid_i,
  /// Its completion queue.
  output logic [QidWidth-1:0]  sq_cqid_o,
  /// Its head: entries before it have been read.
  output logic [PtrWidth-1:0]  sq_head_o,
  /// A command of this queue has ended.
  input  logic                 retire_i,
  /// Its queue.
  input  logic [QidWidth-1:0]  retire_qid_i,

  /// A free command slot.
  input  logic [SlotWidth-1:0] slot_i,
  /// There is one.
  input  logic                 slot_valid_i,
  /// There is another one. The last free slot is reserved for the admin queue, so that an Abort
  /// gets through.
  input  logic                 slot_spare_i,
  /// The slot is allocated.
  output logic                 slot_alloc_o,
  /// For a command of this queue.
  output logic [QidWidth-1:0]  slot_qid_o,
  /// The queue's head after this command.
  output logic [PtrWidth-1:0]  slot_head_o,

  /// Read address to the host.
  output ax_t                  ar_o,
  output logic                 ar_valid_o,
  input  logic                 ar_ready_i,
  /// Read data from the host.
  input  r_t                   r_i,
  input  logic                 r_valid_i,
  output logic                 r_ready_o,

  /// A command has been fetched.
  output fetched_t             cmd_o,
  output logic                 cmd_valid_o,
  input  logic                 cmd_ready_i
);

  localparam int unsigned Bits = idx_width(NumQueues);
  typedef logic [Bits-1:0] idx_t;

  typedef enum logic [2:0] {
    StIdle,
    StChoose,   // wait for the arbiter
    StLookup,   // read the submission queue's state
    StReserve,  // read its completion queue's state
    StIssue     // reserve an entry there, if there is one, and send the read
  } state_e;

  typedef struct packed {
    logic [QidWidth-1:0]  qid;
    logic [SlotWidth-1:0] slot;
    logic [PtrWidth-1:0]  head;  // after this entry
    logic                 more;  // another entry follows it
  } outstanding_t;

  state_e state_q;
  logic [NumQueues-1:0] valid_q, nonempty_q, blocked_q, req;
  logic admin_pending_q;

  // State of each submission queue, each with a single write port.
  (* ram_style = "distributed" *) logic [63:12] base_mem[NumQueues];
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] size_mem[NumQueues];
  (* ram_style = "distributed" *) logic [QidWidth-1:0] cqid_mem[NumQueues];
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] tail_mem[NumQueues];
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] head_mem[NumQueues];  // next to request
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] read_mem[NumQueues];  // next entry to arrive
  // Next entry of each completion queue to be reserved.
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] reserve_mem[NumQueues];
  // Commands requested and retired, modulo 2**SlotWidth.
  logic [SlotWidth-1:0] issued_q[NumQueues];
  logic [SlotWidth-1:0] retired_q[NumQueues];

  // Arbitration.
  idx_t gnt_idx, qid_q;
  logic start, start_reserve, reserve_only_q;  // own: for reserve_*
  logic choice_done, gnt_valid, issue_valid, sq_create, wrr_q;
  idx_t cfg_idx;

  // Never under a choice.
  always_ff @(posedge clk_i) if (!enable_i && state_q == StIdle) wrr_q <= wrr_i;

  assign req = nonempty_q & ~blocked_q & {{(NumQueues - 1) {slot_spare_i}}, !admin_pending_q};

  nvme_arbiter #(
    .NumQueues(NumQueues)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .wrr_i        (wrr_q),
    .feature_i,
    .feature_valid_i,
    .prio_we_i    (sq_create),
    .prio_idx_i   (cfg_idx),
    .prio_i       (cfg_i.prio),
    .req_i        (req),
    .start_i      (start),
    .done_o       (choice_done),
    .valid_o      (gnt_valid),
    .idx_o        (gnt_idx),
    .issue_valid_i(issue_valid)
  );

  logic ar_valid_q, outstanding_ready;
  assign start = state_q == StIdle && enable_i && req != '0 && slot_valid_i && outstanding_ready && !ar_valid_q
               && !cfg_valid_i && !unreserve_valid_i && !reserve_valid_i;
  assign start_reserve = state_q == StIdle && reserve_valid_i;

  // StLookup -> StIssue.
  logic [PtrWidth-1:0] head_q, head_next_q;
  logic [63:12] base_q;
  idx_t cqid_q;

  // StReserve -> StIssue. Before StLookup, cqid_q is the admin queue, for reserve_* and
  // unreserve_*.
  logic [PtrWidth-1:0] reserve, reserve_prev, reserve_next_q, cq_head_q;
  logic issue_wanted, cq_room, cq_moved_q;

  assign cq_qid_o = QidWidth'(cqid_q);
  assign reserve = reserve_mem[cqid_q];
  assign reserve_prev = (reserve == '0) ? cq_size_i : reserve - 1'b1;
  assign issue_wanted = reserve_only_q || nonempty_q[qid_q];
  assign cq_room = reserve_next_q != cq_head_q;
  assign issue_valid = state_q == StIssue && !reserve_only_q && cq_room;
  assign cq_full_o = state_q == StIssue && !reserve_only_q && !cq_room;
  assign reserve_done_o = state_q == StIssue && reserve_only_q;
  assign reserve_ok_o = cq_room && enable_i;
  assign slot_alloc_o = issue_valid;
  assign slot_qid_o = QidWidth'(qid_q);
  assign slot_head_o = head_next_q;

  // Requests of nvme_admin are served between two fetches.
  logic sq_delete, cq_create, unreserve;
  assign cfg_ready_o = state_q == StIdle && !r_valid_i;  // one writer of read_mem
  assign cfg_idx = idx_t'(cfg_i.qid);
  assign sq_create = cfg_fire_i && !cfg_i.cq && cfg_i.create;
  assign sq_delete = cfg_fire_i && !cfg_i.cq && !cfg_i.create;
  assign cq_create = cfg_fire_i && cfg_i.cq && cfg_i.create;
  assign unreserve_ready_o = state_q == StIdle && !cfg_valid_i;
  assign unreserve = unreserve_valid_i && unreserve_ready_o;

  // Doorbells, in two steps: read the queue's state, then check the value. A doorbell waits, and
  // repeats the lookup, while another writer may change the same state. It also waits from the
  // point at which the chosen queue is known to have a command.
  idx_t tail_idx;
  logic tail_decide, tail_fire, tail_ok, tail_lookup_q, tail_valid_q;
  logic [PtrWidth-1:0] tail_size_q, tail_head_q;
  assign tail_idx = idx_t'(tail_qid_i);
  assign tail_decide = state_q != StReserve && state_q != StIssue && !cfg_valid_i;
  assign tail_ready_o = tail_lookup_q && tail_decide;
  assign tail_fire = tail_valid_i && tail_ready_o;
  assign tail_ok = tail_valid_q && tail_i <= tail_size_q;
  assign tail_bad_qid_o = tail_fire && !tail_valid_q;
  assign tail_bad_value_o = tail_fire && tail_valid_q && !tail_ok;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) tail_lookup_q <= 1'b0;
    else tail_lookup_q <= tail_valid_i && !tail_fire && tail_decide && !clear_i;
  end

  always_ff @(posedge clk_i) begin
    if (tail_valid_i) begin
      tail_valid_q <= valid_q[tail_idx];
      tail_size_q <= size_mem[tail_idx];
      tail_head_q <= head_mem[tail_idx];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      valid_q <= '0;
      nonempty_q <= '0;
      blocked_q <= '0;
      admin_pending_q <= 1'b0;
      ar_valid_q <= 1'b0;
      cq_moved_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:  if (start_reserve) state_q <= StReserve;
                 else if (start) state_q <= StChoose;
        StChoose: if (choice_done) state_q <= gnt_valid ? StLookup : StIdle;
        StLookup: state_q <= StReserve;
        // The host may have set the tail back to the head.
        StReserve: state_q <= issue_wanted ? StIssue : StIdle;
        default: state_q <= StIdle;
      endcase

      if (sq_create) valid_q[cfg_idx] <= 1'b1;
      if (sq_delete) begin
        valid_q[cfg_idx] <= 1'b0;
        nonempty_q[cfg_idx] <= 1'b0;
      end
      if (tail_fire && tail_ok) nonempty_q[tail_idx] <= tail_i != tail_head_q;
      if (issue_valid) nonempty_q[qid_q] <= tail_mem[qid_q] != head_next_q;

      if (cq_full_o) blocked_q[qid_q] <= 1'b1;
      // A head that has just moved may have been missed: try again.
      cq_moved_q <= cq_moved_i;
      if (cq_moved_i || cq_moved_q || unreserve || cfg_fire_i) blocked_q <= '0;

      if (issue_valid && qid_q == '0) admin_pending_q <= 1'b1;
      if (admin_done_i) admin_pending_q <= 1'b0;

      if (issue_valid) ar_valid_q <= 1'b1;
      else if (ar_ready_i) ar_valid_q <= 1'b0;

      if (clear_i) begin
        valid_q <= '0;
        nonempty_q <= '0;
        blocked_q <= '0;
        admin_pending_q <= 1'b0;
      end
    end
  end

  logic [63:6] ar_addr_q;

  always_ff @(posedge clk_i) begin
    if (state_q == StChoose) qid_q <= gnt_idx;
    if (state_q == StIdle) reserve_only_q <= start_reserve;
    if (state_q == StLookup) begin
      head_q <= head_mem[qid_q];
      head_next_q <= (head_mem[qid_q] == size_mem[qid_q]) ? '0 : head_mem[qid_q] + 1'b1;
      base_q <= base_mem[qid_q];
    end
    if (state_q == StReserve) begin
      reserve_next_q <= (reserve == cq_size_i) ? '0 : reserve + 1'b1;
      cq_head_q <= cq_head_i;
    end
    if (issue_valid) ar_addr_q <= {base_q, 6'b0} + 58'(head_q);
  end

  always_ff @(posedge clk_i) begin
    if (sq_create) begin
      base_mem[cfg_idx] <= cfg_i.base;
      size_mem[cfg_idx] <= cfg_i.size;
      cqid_mem[cfg_idx] <= cfg_i.cqid;
    end
    if (sq_create || (tail_fire && tail_ok)) begin
      tail_mem[sq_create?cfg_idx : tail_idx] <= sq_create ? '0 : tail_i;
    end
    if (sq_create || issue_valid)
      head_mem[sq_create?cfg_idx : qid_q] <= sq_create ? '0 : head_next_q;
    if (cq_create || unreserve || issue_valid || (reserve_done_o && reserve_ok_o)) begin
      reserve_mem[cq_create ? cfg_idx : cqid_q] <= cq_create ? '0 : unreserve ? reserve_prev : reserve_next_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cqid_q <= '0;
    else if (state_q == StLookup) cqid_q <= idx_t'(cqid_mem[qid_q]);
    else if (state_q != StReserve || !issue_wanted) cqid_q <= '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < NumQueues; i++) issued_q[i] <= '0;
      for (int unsigned i = 0; i < NumQueues; i++) retired_q[i] <= '0;
    end else begin
      if (issue_valid) issued_q[qid_q] <= issued_q[qid_q] + 1'b1;
      if (retire_i) retired_q[idx_t'(retire_qid_i)] <= retired_q[idx_t'(retire_qid_i)] + 1'b1;
    end
  end

  // The read.
  assign ar_o = '{
      id: '0,
      len: 8'd0,
      size: 3'd6,
      burst: BurstIncr,
      addr: {ar_addr_q, 6'b0}
  };
  assign ar_valid_o = ar_valid_q;

  outstanding_t outstanding_in, outstanding;
  logic outstanding_valid;
  assign outstanding_in = '{
          qid: slot_qid_o,
          slot: slot_i,
          head: slot_head_o,
          more: tail_mem[qid_q] != slot_head_o
      };

  ns_fifo #(
    .Width($bits(outstanding_t)),
    .Depth(FetchDepth)
  ) u_outstanding (
    .clk_i,
    .rst_ni,
    .in_valid_i (issue_valid),
    .in_ready_o (outstanding_ready),
    .in_data_i  (outstanding_in),
    .out_valid_o(outstanding_valid),
    .out_ready_i(r_valid_i && r_ready_o),
    .out_data_o (outstanding),
    .count_o    ()
  );

  // The answer. The new head is reported to the host from here on: before, the host had to keep the
  // entry.
  assign r_ready_o = cmd_ready_i;
  assign cmd_valid_o = r_valid_i;
  assign cmd_o = '{qid: outstanding.qid, slot: outstanding.slot, error: r_i.resp[1], more: outstanding.more, sqe: r_i.data};

  logic read_we;
  assign read_we = r_valid_i && r_ready_o;
  always_ff @(posedge clk_i) begin
    if (sq_create || read_we)
      read_mem[sq_create?cfg_idx : idx_t'(outstanding.qid)] <= sq_create ? '0 : outstanding.head;
  end

  assign sq_valid_o = valid_q;
  assign sq_nonempty_o = nonempty_q;
  assign sq_cqid_o = cqid_mem[idx_t'(sq_qid_i)];
  assign sq_head_o = read_mem[idx_t'(sq_qid_i)];
  assign admin_cqid_o = cqid_mem[idx_t'(admin_qid_i)];
  assign admin_idle_o = issued_q[idx_t'(admin_qid_i)] == retired_q[idx_t'(admin_qid_i)];

  assign busy_o = state_q != StIdle || ar_valid_q || cq_moved_q || (enable_i && req != '0);

  logic unused;
  assign unused = ^{r_i.id, r_i.last, r_i.resp[0], cfg_i.ien, cfg_i.vector};

  `NS_ASSERT(admin_queue_before_lookup,
             !(state_q inside {StIdle, StChoose, StLookup}) || cqid_q == '0)
  `NS_ASSERT(reads_are_expected, !r_valid_i || outstanding_valid)
  `NS_ASSERT(outstanding_has_room, !issue_valid || outstanding_ready)
  `NS_ASSERT(clear_only_when_quiet,
             !clear_i || (state_q == StIdle && !ar_valid_q && !outstanding_valid))
  `NS_ASSERT(one_request, !reserve_valid_i || !(cfg_valid_i || unreserve_valid_i))
  `NS_ASSERT(cfg_fire_is_ready, !cfg_fire_i || (cfg_valid_i && cfg_ready_o))

endmodule
