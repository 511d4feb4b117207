// SPDX-License-Identifier: Apache-2.0

// nvme_completion: no entry of a completion queue is overwritten before the host has consumed it.
// Each new entry has the phase that distinguishes it from the old one. Each completion makes one
// entry and releases its slot once, in that order.
//
// Two queues of two or three entries, two sources. The host writes any head doorbell at any time.
// Assumed of the neighbours: an entry is reserved before a completion arrives (nvme_fetch). Queues
// are created and deleted while nothing of them is in flight, and some cycles apart (nvme_admin).
`include "ns_assert.svh"

module completion_proof
  import ns_axi_pkg::*;
  import nvme_pkg::*;
(
  input logic                clk_i,
  input logic                rst_ni,
  input logic                clear_i,
  input logic                head_valid_i,
  input logic                head_qid_i,
  input logic [PtrWidth-1:0] head_i,
  input logic                cfg_i,
  input logic                cfg_cq_i,
  input logic                cfg_create_i,
  input logic                cfg_qid_i,
  input logic [1:0]          cfg_size_i,
  input logic                cfg_base_i,
  input logic                cfg_ien_i,
  input logic [1:0]          reserve_i,
  input logic [1:0]          cpl_valid_i,
  input logic [1:0]          cpl_silent_i,
  input logic [1:0]          cpl_qid_i,
  input logic [15:0]         cid_i,
  input logic                msg_valid_i,
  input logic                room_i,
  input logic                watched_qid_i,
  input logic [1:0]          watched_entry_i
);

  // Reset once.
  logic reset_q = 1'b0;
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // One queue and one entry, both arbitrary, are watched all the time.
  logic watched_qid_q;
  logic [1:0] watched_entry_q;
  always_ff @(posedge clk_i) begin
    if (!reset_q) {watched_qid_q, watched_entry_q} <= {watched_qid_i, watched_entry_i};
  end

  // The design.
  logic head_ready, cfg_ready, cfg_fire, cq_moved, retire, posted_valid, msg_ready;
  logic write_valid, irq;
  logic [1:0] cq_valid, cpl_ready;
  logic [SlotWidth-1:0] slot;
  logic [QidWidth-1:0] sq_qid;
  posted_t posted;
  queue_cfg_t cfg;
  cpl_t [1:0] cpl;
  host_write_t write;

  // A slot belongs to the submission queue given by its lowest bit, which uses the completion queue
  // of the same number.
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      cpl[i] = '{
          silent: cpl_silent_i[i],
          slot: {'0, 1'(i), cpl_qid_i[i]},
          status: status_t'('0),
          dw0: '0
      };
    end
    cfg = '{
        cq: cfg_cq_i,
        create: cfg_create_i,
        qid: {'0, cfg_qid_i},
        cqid: '0,
        prio: PrioUrgent,
        ien: cfg_ien_i,
        vector: '0,
        size: {'0, cfg_size_i},
        base: {'0, cfg_base_i}
    };
  end

  assign cfg_fire = cfg_i && cfg_ready;

  nvme_completion #(
    .NumQueues (2),
    .NumSources(2)
  ) u_completion (
    .clk_i,
    .rst_ni,
    .busy_o           (),
    .clear_i,
    .head_valid_i,
    .head_ready_o     (head_ready),
    .head_qid_i       ({6'b0, head_qid_i}),
    .head_i,
    .head_bad_qid_o   (),
    .head_bad_value_o (),
    .cfg_ready_o      (cfg_ready),
    .cfg_fire_i       (cfg_fire),
    .cfg_i            (cfg),
    .cq_valid_o       (cq_valid),
    .cq_qid_i         ('0),
    .cq_head_o        (),
    .cq_size_o        (),
    .cq_moved_o       (cq_moved),
    .cpl_i            (cpl),
    .cpl_valid_i,
    .cpl_ready_o      (cpl_ready),
    .slot_o           (slot),
    .slot_qid_i       ({6'b0, slot[0]}),
    .slot_cid_i       (cid_i),
    .sq_qid_o         (sq_qid),
    .sq_cqid_i        (sq_qid),
    .sq_head_i        ('0),
    .retire_o         (retire),
    .posted_o         (posted),
    .posted_valid_o   (posted_valid),
    .irq_o            (irq),
    .irq_vector_o     (),
    .irq_admin_o      (),
    .withdraw_o       (),
    .withdraw_vector_o(),
    .msg_id_i         ('0),
    .msg_addr_i       ('0),
    .msg_data_i       ('0),
    .msg_valid_i,
    .msg_ready_o      (msg_ready),
    .write_o          (write),
    .write_valid_o    (write_valid),
    .write_room_i     (room_i)
  );

  // The host's knowledge of each queue, from reports and writes.
  logic [1:0] exists_q, phase_q;
  logic [1:0][1:0] size_q, head_q, tail_q;
  logic [1:0] base_q;
  // Entries that are reserved, or in flight to the queue.
  logic [1:0][2:0] reserved_q, reserved_d;
  logic [1:0] cpl_fire;

  function automatic logic [2:0] filled(logic [1:0] from, logic [1:0] to, logic [1:0] size);
    return 3'(to) - 3'(from) + ((to >= from) ? 3'd0 : 3'(size) + 3'd1);
  endfunction

  assign cpl_fire = cpl_valid_i & cpl_ready;

  always_comb begin
    reserved_d = reserved_q;
    for (int q = 0; q < 2; q++) begin
      if (reserve_i[q]) reserved_d[q] += 1'b1;
      if (posted_valid && posted.sqid[0] == 1'(q)) reserved_d[q] -= 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      exists_q <= '0;
      reserved_q <= '0;
    end else begin
      reserved_q <= reserved_d;
      if (cfg_fire && cfg_cq_i) exists_q[cfg_qid_i] <= cfg_create_i;
      if (clear_i) exists_q <= '0;
    end
  end

  logic [1:0] tail_next;
  logic posted_qid;
  assign posted_qid = posted.sqid[0];
  assign tail_next = (tail_q[posted_qid] == size_q[posted_qid]) ? '0 : tail_q[posted_qid] + 1'b1;

  always_ff @(posedge clk_i) begin
    if (cfg_fire && cfg_cq_i && cfg_create_i) begin
      size_q[cfg_qid_i] <= cfg_size_i;
      base_q[cfg_qid_i] <= cfg_base_i;
      head_q[cfg_qid_i] <= '0;
      tail_q[cfg_qid_i] <= '0;
      phase_q[cfg_qid_i] <= 1'b1;
    end
    if (cq_moved) head_q[head_qid_i] <= head_i[1:0];
    if (posted_valid) begin
      tail_q[posted_qid] <= tail_next;
      if (tail_next == '0) phase_q[posted_qid] <= !phase_q[posted_qid];
    end
  end

  // Accepted completions: what is still owed for them.
  logic owed_entry_q, owed_retire_q, owed_qid_q;
  logic [SlotWidth-1:0] owed_slot_q;
  logic [1:0] cpl_shown;  // valid completions that need an entry, by queue

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      owed_entry_q <= 1'b0;
      owed_retire_q <= 1'b0;
    end else begin
      if (posted_valid) owed_entry_q <= 1'b0;
      if (retire) owed_retire_q <= 1'b0;
      if (cpl_fire != '0) begin
        owed_entry_q <= !cpl_silent_i[cpl_fire[1]];
        owed_retire_q <= 1'b1;
        owed_slot_q <= cpl[cpl_fire[1]].slot;
        owed_qid_q <= cpl_qid_i[cpl_fire[1]];
      end
    end
  end

  // Cycles since the last change of queues.
  logic [1:0] quiet_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) quiet_q <= '1;
    else if (cfg_fire || clear_i) quiet_q <= '0;
    else if (quiet_q != '1) quiet_q <= quiet_q + 1'b1;
  end

  // The watched entry: whether it holds something that the host has not consumed, and its phase.
  logic full_q, seen_q, watched_post, watched_free;
  logic [1:0] ahead;  // from the old head to the entry
  assign watched_post = posted_valid && posted_qid == watched_qid_q && tail_q[posted_qid] == watched_entry_q;
  assign ahead = 2'(filled(head_q[watched_qid_q], watched_entry_q, size_q[watched_qid_q]));
  assign watched_free = cq_moved && head_qid_i == watched_qid_q &&
      3'(ahead) < filled(head_q[watched_qid_q], head_i[1:0], size_q[watched_qid_q]);

  always_ff @(posedge clk_i) begin
    if (cfg_fire && cfg_cq_i && cfg_create_i && cfg_qid_i == watched_qid_q) begin
      full_q <= 1'b0;
      seen_q <= 1'b0;  // the host has zeroed it
    end else begin
      if (watched_free) full_q <= 1'b0;
      if (watched_post) begin
        full_q <= 1'b1;
        seen_q <= posted.phase;
      end
    end
  end

  logic [63:0] due_addr;  // required address of the entry
  assign due_addr = {51'b0, base_q[posted_qid], 6'b0, tail_q[posted_qid], 4'b0};

  // The neighbours.
  for (genvar q = 0; q < 2; q++) begin : gen_assumed
    assign cpl_shown[q] = (cpl_valid_i[0] && !cpl_silent_i[0] && cpl_qid_i[0] == 1'(q)) ||
        (cpl_valid_i[1] && !cpl_silent_i[1] && cpl_qid_i[1] == 1'(q));
    // Entries of the queue needed by valid completions and the current one.
    logic [2:0] needed;
    assign needed = 3'(cpl_valid_i[0] && !cpl_silent_i[0] && cpl_qid_i[0] == 1'(q)) +
        3'(cpl_valid_i[1] && !cpl_silent_i[1] && cpl_qid_i[1] == 1'(q)) + 3'(owed_entry_q && owed_qid_q == 1'(q));
    `NS_ASSUME(reserved_first, needed <= reserved_q[q])
    `NS_ASSUME(reserves_what_is_there, !reserve_i[q] || (exists_q[q] && filled(
               head_q[q], tail_q[q], size_q[q]) + reserved_q[q] < 3'(size_q[q])))
    `NS_ASSUME(changed_at_rest,
               !((cfg_fire && cfg_cq_i && cfg_qid_i == 1'(q)) || clear_i) || (reserved_q[q] == '0 && !reserve_i[q]))
  end
  `NS_ASSUME(created_once, !(cfg_fire && cfg_cq_i) || exists_q[cfg_qid_i] != cfg_create_i)
  `NS_ASSUME(sizes, cfg_size_i == 2'd1 || cfg_size_i == 2'd2)
  `NS_ASSUME(changes_apart, !(cfg_fire || clear_i) || quiet_q == '1)
  `NS_ASSUME(one_change, !(cfg_fire && clear_i))
  `NS_ASSUME(clear_at_rest, !clear_i || (!owed_retire_q && cpl_valid_i == '0))
  logic head_wait_q, head_qid_q;
  logic [PtrWidth-1:0] head_value_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) head_wait_q <= 1'b0;
    else head_wait_q <= head_valid_i && !head_ready;
  end
  always_ff @(posedge clk_i) {head_qid_q, head_value_q} <= {head_qid_i, head_i};
  `NS_ASSUME(doorbell_stays,
             !head_wait_q || (head_valid_i && head_qid_i == head_qid_q && head_i == head_value_q))

  // What is proven.
  `NS_ASSERT(queues_known, cq_valid == exists_q)
  `NS_ASSERT(posted_when_owed, !posted_valid || (owed_entry_q && posted.slot == owed_slot_q))
  `NS_ASSERT(retired_after_entry,
             !retire || (owed_retire_q && !owed_entry_q && slot == owed_slot_q))
  `NS_ASSERT(one_at_a_time,
             cpl_fire == '0 || (!owed_entry_q && (!owed_retire_q || retire) && cpl_fire != 2'b11))
  `NS_ASSERT(interrupt_after_entry, !irq || retire)
  `NS_ASSERT(never_onto_unconsumed, !watched_post || !full_q)
  `NS_ASSERT(phase_is_new, !watched_post || posted.phase != seen_q)
  `NS_ASSERT(heads_within, !cq_moved || head_i <= PtrWidth'(size_q[head_qid_i]))
  `NS_ASSERT(heads_not_beyond_tail, !cq_moved || filled(head_q[head_qid_i], head_i[1:0],
                                                        size_q[head_qid_i]) <= filled(
             head_q[head_qid_i], tail_q[head_qid_i], size_q[head_qid_i]))
  `NS_ASSERT(
      entry_written,
      !posted_valid || (write_valid && write.whole && {write.addr, 2'b0} == due_addr && write.data[112] == phase_q[posted_qid] && write.data[111:96] == posted.cid))
  `NS_ASSERT(nothing_else_written, !write_valid || posted_valid || (msg_valid_i && msg_ready))

  logic moved_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) moved_q <= 1'b0;
    else moved_q <= moved_q || cq_moved;
  end

  `NS_COVER(after_head, posted_valid && moved_q)
  `NS_COVER(full, posted_valid && filled(head_q[0], tail_q[0], size_q[0]
            ) == 3'd1 && size_q[0] == 2'd2)

  logic unused;
  assign unused = ^cpl_shown;

endmodule
