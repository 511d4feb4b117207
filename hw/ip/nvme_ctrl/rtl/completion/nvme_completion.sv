// SPDX-License-Identifier: Apache-2.0

// Completion queues: head doorbells, and the completion queue entries and MSI-X messages for the
// host.
//
// Each completion becomes one write of 16 bytes at the tail of the command's completion queue, with
// its phase. The slot is then returned and, if the queue has interrupts enabled, an interrupt of
// its vector is requested. MSI-X messages (msix) take the same path through nvme_host_writes, after
// the entries that they announce.
//
// The queue always has room, because nvme_fetch has reserved the entry. Assumptions: the host port
// keeps writes in order; the data of a command has been accepted before its completion arrives
// here.
`include "ns_assert.svh"

module nvme_completion
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
  /// Queues, the admin queue included.
  parameter int unsigned NumQueues  = 17,
  /// Sources of completions, served round robin.
  parameter int unsigned NumSources = 3
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic                  busy_o,
  /// Forget all queues. Only while nothing is in flight.
  input  logic                  clear_i,

  /// Completion queue head doorbell written.
  input  logic                  head_valid_i,
  /// The doorbell is accepted.
  output logic                  head_ready_o,
  /// Queue, below NumQueues.
  input  logic [QidWidth-1:0]   head_qid_i,
  /// New head.
  input  logic [PtrWidth-1:0]   head_i,
  /// The accepted doorbell is ignored: there is no such queue.
  output logic                  head_bad_qid_o,
  /// The accepted doorbell is ignored: its value lies outside the queue, or beyond its last entry.
  output logic                  head_bad_value_o,

  /// A completion queue can be created or deleted in this cycle.
  output logic                  cfg_ready_o,
  /// It is done in this cycle.
  input  logic                  cfg_fire_i,
  /// What to create or delete.
  input  queue_cfg_t            cfg_i,
  /// Completion queues that exist.
  output logic [NumQueues-1:0]  cq_valid_o,

  /// Queue looked up by nvme_fetch.
  input  logic [QidWidth-1:0]   cq_qid_i,
  /// Its head.
  output logic [PtrWidth-1:0]   cq_head_o,
  /// Its size, 0-based.
  output logic [PtrWidth-1:0]   cq_size_o,
  /// A head moves at the end of this cycle.
  output logic                  cq_moved_o,

  /// Completions.
  input  cpl_t [NumSources-1:0] cpl_i,
  input  logic [NumSources-1:0] cpl_valid_i,
  output logic [NumSources-1:0] cpl_ready_o,

  /// Slot being looked up.
  output logic [SlotWidth-1:0]  slot_o,
  /// Its submission queue.
  input  logic [QidWidth-1:0]   slot_qid_i,
  /// Its command identifier.
  input  logic [15:0]           slot_cid_i,
  /// Submission queue being looked up.
  output logic [QidWidth-1:0]   sq_qid_o,
  /// Its completion queue.
  input  logic [QidWidth-1:0]   sq_cqid_i,
  /// Its head.
  input  logic [PtrWidth-1:0]   sq_head_i,
  /// The command of slot_o and sq_qid_o has ended.
  output logic                  retire_o,

  /// Entry that is being posted.
  output posted_t               posted_o,
  output logic                  posted_valid_o,
  /// Request an interrupt.
  output logic                  irq_o,
  /// Its vector.
  output logic [QidWidth-1:0]   irq_vector_o,
  /// The vector is that of the admin completion queue.
  output logic                  irq_admin_o,
  /// The host has emptied the only completion queue of a vector, or deleted that queue.
  output logic                  withdraw_o,
  /// The vector.
  output logic [QidWidth-1:0]   withdraw_vector_o,
  /// Message to send: ID of its write.
  input  logic [IdWidth-1:0]    msg_id_i,
  /// Its address, a multiple of 4.
  input  logic [63:2]           msg_addr_i,
  /// Its data.
  input  logic [31:0]           msg_data_i,
  input  logic                  msg_valid_i,
  output logic                  msg_ready_o,

  /// Write to the host.
  output host_write_t           write_o,
  output logic                  write_valid_o,
  /// There is room for it and one more.
  input  logic                  write_room_i
);

  localparam int unsigned Bits = idx_width(NumQueues);
  typedef logic [Bits-1:0] idx_t;

  typedef enum logic [1:0] {
    StIdle,
    StSlot,   // look up the command's owner
    StQueue,  // its completion queue
    StEntry   // where in that queue
  } state_e;

  state_e state_q;
  logic retire_q;
  // With retire_q: the entry was the last one of its queue, so the phase changes.
  logic phase_flip_q;

  // State of each completion queue.
  logic [NumQueues-1:0] valid_q, phase_q, ien_q;
  (* ram_style = "distributed" *) logic [63:12] base_mem[NumQueues];
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] size_mem[NumQueues];
  (* ram_style = "distributed" *) logic [QidWidth-1:0] vector_mem[NumQueues];
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] head_mem[NumQueues];
  (* ram_style = "distributed" *) logic [PtrWidth-1:0] tail_mem[NumQueues];

  // Head doorbells, in three steps: read the queue's state, count its entries, check the value.
  typedef enum logic [1:0] {
    HeadRead,
    HeadCount,
    HeadDecide
  } head_e;

  head_e head_state_q;
  idx_t head_idx;
  logic head_valid_q, head_fire, head_ok;
  logic users_update_q;  // a queue with interrupts has been created or deleted
  logic [PtrWidth-1:0] head_q, tail_q, size_q, filled_q, freed_q;

  // Entries from `from` to `to` in a queue of size + 1.
  function automatic logic [PtrWidth-1:0] distance(
      logic [PtrWidth-1:0] from, logic [PtrWidth-1:0] to, logic [PtrWidth-1:0] size);
    return to - from + ((to >= from) ? '0 : size + 1'b1);
  endfunction

  assign head_idx = idx_t'(head_qid_i);
  assign head_fire = head_state_q == HeadDecide && !cfg_fire_i && !users_update_q;
  assign head_ready_o = head_fire;
  assign head_ok = head_valid_q && head_i <= size_q && freed_q <= filled_q;
  assign head_bad_qid_o = head_fire && !head_valid_q;
  assign head_bad_value_o = head_fire && head_valid_q && !head_ok;
  assign cq_moved_o = head_fire && head_ok;
  assign cq_head_o = head_mem[idx_t'(cq_qid_i)];
  assign cq_size_o = size_mem[idx_t'(cq_qid_i)];
  assign cq_valid_o = valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) head_state_q <= HeadRead;
    else
      unique case (head_state_q)
        HeadRead:  if (head_valid_i) head_state_q <= HeadCount;
        HeadCount: head_state_q <= HeadDecide;
        default:   if (head_fire) head_state_q <= HeadRead;
      endcase
  end

  always_ff @(posedge clk_i) begin
    if (head_state_q == HeadRead) begin
      head_valid_q <= valid_q[head_idx];
      head_q <= head_mem[head_idx];
      tail_q <= tail_mem[head_idx];
      size_q <= size_mem[head_idx];
    end
    filled_q <= distance(head_q, tail_q, size_q);
    freed_q <= distance(head_q, head_i, size_q);
  end

  // Creation and deletion.
  logic create;
  idx_t cfg_idx;
  assign cfg_ready_o = state_q != StEntry;
  assign create = cfg_fire_i && cfg_i.cq && cfg_i.create;
  assign cfg_idx = idx_t'(cfg_i.qid);

  // Queues of each vector, counted because the head of one queue does not tell whether the others
  // are empty. The count changes a cycle after the creation or deletion, and doorbells wait for
  // that.
  logic [NumQueues-1:0] used_q;  // else users_mem does not count
  (* ram_style = "distributed" *) logic [QidWidth-1:0] users_mem[NumQueues];
  logic [QidWidth-1:0] users, withdraw_vector;
  logic create_q, sole_user, last_user_removed;
  idx_t vector_q;
  assign users = used_q[vector_q] ? users_mem[vector_q] : '0;
  assign sole_user = users_mem[idx_t'(withdraw_vector)] == QidWidth'(1);
  assign last_user_removed = users_update_q && !create_q && users == QidWidth'(1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      users_update_q <= 1'b0;
      used_q   <= '0;
    end else begin
      users_update_q <= cfg_fire_i && cfg_i.cq && (create ? cfg_i.ien : ien_q[cfg_idx]);
      if (clear_i) used_q <= '0;
      else if (users_update_q) used_q[vector_q] <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    create_q <= create;
    vector_q <= create ? idx_t'(cfg_i.vector) : idx_t'(vector_mem[cfg_idx]);
    if (users_update_q) users_mem[vector_q] <= create_q ? users + 1'b1 : users - 1'b1;
  end

  // A cycle after the doorbell: interrupts of entries that the doorbell did not count arrive later,
  // or in the same cycle, and win. The interrupt of a deleted queue is withdrawn.
  logic withdraw_q;
  logic [QidWidth-1:0] withdraw_vector_q;
  assign withdraw_vector = vector_mem[head_idx];
  assign withdraw_o = withdraw_q;
  assign withdraw_vector_o = withdraw_vector_q;

  // The doorbell of a queue that was deleted after its lookup has no effect: the only queue on the
  // vector is now another one.
  logic queue_emptied;
  assign queue_emptied = cq_moved_o && valid_q[head_idx] && head_i == tail_mem[head_idx] && ien_q[head_idx];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) withdraw_q <= 1'b0;
    else withdraw_q <= last_user_removed || (queue_emptied && sole_user);
  end

  always_ff @(posedge clk_i)
    withdraw_vector_q <= users_update_q ? QidWidth'(vector_q) : withdraw_vector;

  // Taking a completion.
  logic [NumSources-1:0] cpl_gnt;
  logic [idx_width(NumSources)-1:0] cpl_idx;
  logic cpl_valid, cpl_fire, msg_fire;
  cpl_t cpl_q;

  ns_rr_arbiter #(
    .N(NumSources)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (cpl_valid_i),
    .next_i (cpl_fire),
    .gnt_o  (cpl_gnt),
    .idx_o  (cpl_idx),
    .valid_o(cpl_valid)
  );

  // No message in the cycle in which a command ends: a trace shows only one of the two at a time.
  assign msg_ready_o = state_q == StIdle && write_room_i && !retire_q;
  assign msg_fire = msg_valid_i && msg_ready_o;
  assign cpl_fire = state_q == StIdle && write_room_i && !msg_valid_i && cpl_valid;
  assign cpl_ready_o = cpl_gnt & {NumSources{cpl_fire}};

  // Looking up.
  logic [QidWidth-1:0] qid_q;
  logic [15:0] cid_q;
  idx_t cqid_q;
  logic [PtrWidth-1:0] sq_head_q, tail, tail_next;
  assign slot_o = cpl_q.slot;
  assign sq_qid_o = qid_q;
  assign tail = tail_mem[cqid_q];
  assign tail_next = (tail == size_mem[cqid_q]) ? '0 : tail + 1'b1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      retire_q <= 1'b0;
      phase_flip_q <= 1'b0;
      valid_q <= '0;
      phase_q <= '0;
      ien_q <= '0;
    end else begin
      unique case (state_q)
        StIdle:  if (cpl_fire) state_q <= StSlot;
        StSlot:  state_q <= StQueue;
        StQueue: state_q <= cpl_q.silent ? StIdle : StEntry;
        default: state_q <= StIdle;
      endcase
      phase_flip_q <= state_q == StEntry && tail_next == '0;
      if (phase_flip_q) phase_q[cqid_q] <= !phase_q[cqid_q];
      retire_q <= state_q == StEntry || (state_q == StQueue && cpl_q.silent);

      if (create) begin
        valid_q[cfg_idx] <= 1'b1;
        phase_q[cfg_idx] <= 1'b1;
        ien_q[cfg_idx] <= cfg_i.ien;
      end
      if (cfg_fire_i && cfg_i.cq && !cfg_i.create) valid_q[cfg_idx] <= 1'b0;
      if (clear_i) valid_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (create) begin
      base_mem[cfg_idx] <= cfg_i.base;
      size_mem[cfg_idx] <= cfg_i.size;
      vector_mem[cfg_idx] <= cfg_i.vector;
    end
    if (create || cq_moved_o) head_mem[create?cfg_idx : head_idx] <= create ? '0 : head_i;
    if (create || state_q == StEntry) tail_mem[create?cfg_idx : cqid_q] <= create ? '0 : tail_next;
  end

  always_ff @(posedge clk_i) begin
    if (cpl_fire) cpl_q <= cpl_i[cpl_idx];
    if (state_q == StSlot) begin
      qid_q <= slot_qid_i;
      cid_q <= slot_cid_i;
    end
    if (state_q == StQueue) begin
      cqid_q <= idx_t'(sq_cqid_i);
      sq_head_q <= sq_head_i;
    end
  end

  // The write.
  always_comb begin
    write_o.whole = state_q == StEntry;
    if (state_q == StEntry) begin
      write_o.id = '0;
      write_o.addr = {base_mem[cqid_q], 10'b0} + {44'b0, tail, 2'b0};
      // DW3 to DW0.
      write_o.data = {
        cpl_q.status, phase_q[cqid_q], cid_q, 16'(qid_q), sq_head_q, 32'b0, cpl_q.dw0
      };
    end else begin
      write_o.id   = msg_id_i;
      write_o.addr = msg_addr_i;
      write_o.data = {4{msg_data_i}};
    end
  end

  assign write_valid_o = state_q == StEntry || msg_fire;

  // After the write: the slot is returned, and the interrupt follows.
  assign retire_o = retire_q;
  assign irq_o = retire_q && !cpl_q.silent && ien_q[cqid_q];
  assign irq_vector_o = vector_mem[cqid_q];
  assign irq_admin_o = cqid_q == '0;

  assign posted_valid_o = state_q == StEntry;
  assign posted_o = '{
      slot: cpl_q.slot,
      sqid: qid_q,
      cid: cid_q,
      phase: phase_q[cqid_q],
      status: cpl_q.status
  };

  assign busy_o = state_q != StIdle || retire_q || users_update_q || withdraw_q || head_state_q != HeadRead;

  logic unused;
  assign unused = ^{cfg_i.cqid, cfg_i.prio};

  `NS_ASSERT(no_overrun, !(state_q == StEntry) || tail_next != head_mem[cqid_q])
  `NS_ASSERT(queue_exists, !(state_q == StEntry) || valid_q[cqid_q])
  `NS_ASSERT(write_has_room, !cpl_fire || write_room_i)

endmodule
