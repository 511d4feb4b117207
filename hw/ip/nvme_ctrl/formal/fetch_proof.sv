// SPDX-License-Identifier: Apache-2.0

// nvme_fetch: whatever the host writes to tail doorbells, exactly the entries from head to tail are
// fetched, each once, in order. Never more than the completion queue has room for; one admin
// command at a time; only into free slots; not long after fetching was disabled. What can be
// fetched is fetched soon.
//
// Two queues of two or three entries, three slots, two reads at a time. The host writes any
// doorbell at any time. Assumed of the neighbours: queues are created and deleted once, a
// completion queue while nothing is reserved in it. A submission queue is created again only after
// its commands have ended (nvme_admin). Heads move over entries that have been posted
// (nvme_completion). Reads are answered in order, once each.
`include "ns_assert.svh"

module fetch_proof
  import ns_axi_pkg::*;
  import nvme_pkg::*;
(
  input logic                clk_i,
  input logic                rst_ni,
  input logic                enable_i,
  input logic                clear_i,
  input logic                wrr_i,
  input logic                tail_valid_i,
  input logic                tail_qid_i,
  input logic [PtrWidth-1:0] tail_i,
  input logic                cfg_valid_i,
  input logic                cfg_fire_i,
  input logic                cfg_cq_i,
  input logic                cfg_create_i,
  input logic                cfg_qid_i,
  input logic                cfg_cqid_i,
  input sq_prio_e            cfg_prio_i,
  input logic [1:0]          cfg_size_i,
  input logic                cfg_base_i,
  input logic                unreserve_valid_i,
  input logic                reserve_valid_i,
  input logic                admin_done_i,
  input logic                moved_i,
  input logic                moved_qid_i,
  input logic                moved_two_i,
  input logic [1:0]          posted_i,
  input logic                retire_i,
  input logic                retire_qid_i,
  input logic                lookup_qid_i,
  input logic                slot_valid_i,
  input logic                slot_spare_i,
  input logic [1:0]          slot_i,
  input logic                ar_ready_i,
  input logic                r_valid_i,
  input logic                cmd_ready_i,
  input logic                watch_i,
  input logic                watched_qid_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // One queue, arbitrary, is watched all the time.
  logic watched_qid_q;
  always_ff @(posedge clk_i) if (!reset_q) watched_qid_q <= watched_qid_i;

  // The design.
  logic
      tail_ready,
      bad_qid,
      bad_value,
      cfg_ready,
      admin_idle,
      unreserve_ready,
      reserve_done,
      reserve_ok;
  logic [1:0] sq_valid, sq_nonempty;
  logic [QidWidth-1:0] cq_qid, sq_cqid, slot_alloc_qid;
  logic [PtrWidth-1:0] sq_head, slot_alloc_head;
  logic full, slot_alloc, ar_valid, r_ready, cmd_valid;
  fetched_t cmd;
  queue_cfg_t cfg;
  ax_t ar;

  assign cfg = '{
          cq: cfg_cq_i,
          create: cfg_create_i,
          qid: {'0, cfg_qid_i},
          cqid: {'0, cfg_cqid_i},
          prio: cfg_prio_i,
          ien: 1'b0,
          vector: '0,
          size: {'0, cfg_size_i},
          base: {'0, cfg_base_i}
      };

  // State known to the host and the neighbours.
  logic [1:0] exists_q, cq_exists_q;
  logic [1:0][1:0]
      size_q, tail_q, head_q, read_q;  // of submission queues; read: end of the arrived entries
  logic [1:0] base_q, cqid_q;
  logic [1:0][1:0] cq_size_q, cq_head_q;
  logic [1:0][2:0]
      used_q, reserved_q;  // entries of completion queues: posted and not consumed; reserved
  logic [1:0][1:0] in_flight_q, arrived_q;  // commands: fetched and not ended; of these, arrived
  logic admin_q;  // an admin command is in flight
  logic [1:0] reads_q;  // without an answer

  nvme_fetch #(
    .NumQueues (2),
    .FetchDepth(2)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .busy_o           (),
    .enable_i,
    .clear_i,
    .wrr_i,
    .feature_i        ('0),
    .feature_valid_i  (1'b0),
    .tail_valid_i,
    .tail_ready_o     (tail_ready),
    .tail_qid_i       ({6'b0, tail_qid_i}),
    .tail_i,
    .tail_bad_qid_o   (bad_qid),
    .tail_bad_value_o (bad_value),
    .cfg_valid_i,
    .cfg_ready_o      (cfg_ready),
    .cfg_fire_i,
    .cfg_i            (cfg),
    .sq_valid_o       (sq_valid),
    .sq_nonempty_o    (sq_nonempty),
    .admin_qid_i      ({6'b0, lookup_qid_i}),
    .admin_cqid_o     (),
    .admin_idle_o     (admin_idle),
    .unreserve_valid_i,
    .unreserve_ready_o(unreserve_ready),
    .reserve_valid_i,
    .reserve_done_o   (reserve_done),
    .reserve_ok_o     (reserve_ok),
    .admin_done_i,
    .cq_qid_o         (cq_qid),
    .cq_head_i        ({14'b0, cq_head_q[cq_qid[0]]}),
    .cq_size_i        ({14'b0, cq_size_q[cq_qid[0]]}),
    .cq_full_o        (full),
    .cq_moved_i       (moved_i),
    .sq_qid_i         ({6'b0, lookup_qid_i}),
    .sq_cqid_o        (sq_cqid),
    .sq_head_o        (sq_head),
    .retire_i,
    .retire_qid_i     ({6'b0, retire_qid_i}),
    .slot_i           ({6'b0, slot_i}),
    .slot_valid_i,
    .slot_spare_i,
    .slot_alloc_o     (slot_alloc),
    .slot_qid_o       (slot_alloc_qid),
    .slot_head_o      (slot_alloc_head),
    .ar_o             (ar),
    .ar_valid_o       (ar_valid),
    .ar_ready_i,
    .r_i              ('0),
    .r_valid_i,
    .r_ready_o        (r_ready),
    .cmd_o            (cmd),
    .cmd_valid_o      (cmd_valid),
    .cmd_ready_i
  );

  function automatic logic [1:0] next(logic [1:0] from, logic [1:0] size);
    return (from == size) ? 2'd0 : from + 1'b1;
  endfunction

  logic tail_fire, tail_ok, reserve_only_ok, unreserve, answer, q;
  assign q = slot_alloc_qid[0];
  assign tail_fire = tail_valid_i && tail_ready;
  assign tail_ok = exists_q[tail_qid_i] && tail_i <= PtrWidth'(size_q[tail_qid_i]);
  assign reserve_only_ok = reserve_done && reserve_ok;
  assign unreserve = unreserve_valid_i && unreserve_ready;
  assign answer = r_valid_i && r_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      exists_q <= '0;
      cq_exists_q <= '0;
      used_q <= '0;
      reserved_q <= '0;
      in_flight_q <= '0;
      arrived_q <= '0;
      admin_q <= 1'b0;
      reads_q <= '0;
    end else begin
      if (cfg_fire_i && !cfg_cq_i) exists_q[cfg_qid_i] <= cfg_create_i;
      if (cfg_fire_i && cfg_cq_i) cq_exists_q[cfg_qid_i] <= cfg_create_i;
      if (clear_i) begin
        exists_q <= '0;
        cq_exists_q <= '0;
      end
      for (int i = 0; i < 2; i++) begin
        reserved_q[i] <= reserved_q[i] + 3'(slot_alloc && cqid_q[q] == 1'(i)) + 3'(reserve_only_ok && i == 0) - 3'(unreserve && i == 0) - 3'(posted_i[i]);
        if ((cfg_fire_i && cfg_cq_i && cfg_qid_i == 1'(i)) || clear_i) used_q[i] <= '0;
        else
          used_q[i] <= used_q[i] + 3'(posted_i[i]) - ((moved_i && moved_qid_i == 1'(i)) ? 3'd1 + 3'(moved_two_i) : 3'd0);
        in_flight_q[i] <= in_flight_q[i] + 2'(slot_alloc && q == 1'(i)) - 2'(retire_i && retire_qid_i == 1'(i));
        arrived_q[i] <= arrived_q[i] + 2'(answer && cmd.qid[0] == 1'(i)) - 2'(retire_i && retire_qid_i == 1'(i));
      end
      if (slot_alloc && q == 1'b0) admin_q <= 1'b1;
      else if (admin_done_i || clear_i) admin_q <= 1'b0;
      reads_q <= reads_q + 2'(ar_valid && ar_ready_i) - 2'(answer);
    end
  end

  always_ff @(posedge clk_i) begin
    if (tail_fire && tail_ok) tail_q[tail_qid_i] <= tail_i[1:0];
    if (slot_alloc) head_q[q] <= next(head_q[q], size_q[q]);
    if (answer) read_q[cmd.qid[0]] <= next(read_q[cmd.qid[0]], size_q[cmd.qid[0]]);
    if (cfg_fire_i && !cfg_cq_i && cfg_create_i) begin
      size_q[cfg_qid_i] <= cfg_size_i;
      base_q[cfg_qid_i] <= cfg_base_i;
      cqid_q[cfg_qid_i] <= cfg_cqid_i;
      tail_q[cfg_qid_i] <= '0;
      head_q[cfg_qid_i] <= '0;
      read_q[cfg_qid_i] <= '0;
    end
    if (moved_i)
      cq_head_q[moved_qid_i] <= moved_two_i ? next(
          next(cq_head_q[moved_qid_i], cq_size_q[moved_qid_i]), cq_size_q[moved_qid_i]
      ) : next(
          cq_head_q[moved_qid_i], cq_size_q[moved_qid_i]
      );
    if (cfg_fire_i && cfg_cq_i && cfg_create_i) begin
      cq_size_q[cfg_qid_i] <= cfg_size_i;
      cq_head_q[cfg_qid_i] <= '0;
    end
  end

  // Cycles since fetching was allowed.
  logic [3:0] off_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) off_q <= '1;
    else if (enable_i) off_q <= '0;
    else if (off_q != '1) off_q <= off_q + 1'b1;
  end

  // One fetched command, arbitrary: what is owed for it.
  typedef struct packed {
    logic       qid;
    logic [1:0] slot;
    logic       more;
  } owed_t;
  owed_t owed_q;
  logic command_owed_q;
  logic [1:0] before_q, outstanding;  // answers ahead of it; reads requested and not answered
  assign outstanding = reads_q + 2'(ar_valid);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) command_owed_q <= 1'b0;
    else if (slot_alloc && watch_i && !command_owed_q) command_owed_q <= 1'b1;
    else if (answer && before_q == '0) command_owed_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (!command_owed_q) begin
      owed_q   <= '{qid: q, slot: slot_i, more: tail_q[q] != next(head_q[q], size_q[q])};
      before_q <= outstanding - 2'(answer);
    end else if (answer) begin
      before_q <= before_q - 1'b1;
    end
  end

  // The read of the entry fetched in the previous cycle.
  logic alloc_q, ar_wait_q;
  logic [15:0] addr_q;
  logic [63:0] ar_addr_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {alloc_q, ar_wait_q} <= '0;
    else {alloc_q, ar_wait_q} <= {slot_alloc, ar_valid && !ar_ready_i};
  end
  always_ff @(posedge clk_i) begin
    addr_q <= {3'b0, base_q[q], 4'b0, head_q[q], 6'b0};
    ar_addr_q <= ar.addr;
  end

  // How long the watched queue could have had a command fetched.
  logic [4:0] wait_cycles_q;
  logic fetchable, room, w;
  assign w = watched_qid_q;
  assign room = used_q[cqid_q[w]] + reserved_q[cqid_q[w]] < 3'(cq_size_q[cqid_q[w]]);
  assign fetchable = enable_i && exists_q[w] && head_q[w] != tail_q[w] && room && (w ? slot_spare_i : !admin_q) && slot_valid_i &&
      !cfg_valid_i && !unreserve_valid_i && !reserve_valid_i && !(ar_valid && !ar_ready_i) && outstanding < 2'd2;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) wait_cycles_q <= '0;
    else if (!fetchable || (slot_alloc && q == w)) wait_cycles_q <= '0;
    else wait_cycles_q <= wait_cycles_q + 1'b1;
  end

  // The neighbours.
  logic reserve_wait_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reserve_wait_q <= 1'b0;
    else reserve_wait_q <= reserve_valid_i && !reserve_done;
  end
  `NS_ASSUME(fires_when_ready, !cfg_fire_i || (cfg_valid_i && cfg_ready))
  `NS_ASSUME(sizes, cfg_size_i == 2'd1 || cfg_size_i == 2'd2)
  `NS_ASSUME(
      created_once,
      !cfg_fire_i || (cfg_cq_i ? cq_exists_q[cfg_qid_i] : exists_q[cfg_qid_i]) != cfg_create_i)
  `NS_ASSUME(
      to_a_queue,
      !(cfg_fire_i && !cfg_cq_i && cfg_create_i) || (cq_exists_q[cfg_cqid_i] && in_flight_q[cfg_qid_i] == '0))
  for (genvar i = 0; i < 2; i++) begin : gen_assumed
    `NS_ASSUME(cq_at_rest,
               !(cfg_fire_i && cfg_cq_i && cfg_qid_i == 1'(i)) ||
        (reserved_q[i] == '0 && !posted_i[i] && !(moved_i && moved_qid_i == 1'(i)) &&
         !(exists_q[0] && cqid_q[0] == 1'(i)) && !(exists_q[1] && cqid_q[1] == 1'(i))))
    `NS_ASSUME(posts_reserved, !posted_i[i] || reserved_q[i] > 3'(unreserve && i == 0))
  end
  `NS_ASSUME(admin_queue_first, !(reserve_valid_i || unreserve_valid_i) || cq_exists_q[0])
  `NS_ASSUME(gives_back_reserved, !unreserve_valid_i || (admin_q && reserved_q[0] != '0))
  `NS_ASSUME(one_request, !(reserve_valid_i && (cfg_valid_i || unreserve_valid_i)))
  `NS_ASSUME(request_stays, !reserve_wait_q || reserve_valid_i)
  `NS_ASSUME(
      consumes_posted,
      !moved_i || (cq_exists_q[moved_qid_i] && used_q[moved_qid_i] >= 3'd1 + 3'(moved_two_i)))
  `NS_ASSUME(retires_arrived, !retire_i || arrived_q[retire_qid_i] != '0)
  `NS_ASSUME(three_slots, !slot_valid_i || in_flight_q[0] + 3'(in_flight_q[1]) < 3'd3)
  logic slot_offered_q, spare_offered_q;
  logic [1:0] slot_offer_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {slot_offered_q, spare_offered_q} <= '0;
    else {slot_offered_q, spare_offered_q} <= slot_alloc ? '0 : {slot_valid_i, slot_spare_i};
  end
  always_ff @(posedge clk_i) slot_offer_q <= slot_i;
  `NS_ASSUME(slot_stays, !slot_offered_q || (slot_valid_i && slot_i == slot_offer_q))
  `NS_ASSUME(spare_stays, !spare_offered_q || slot_spare_i)
  `NS_ASSUME(admin_ends, !admin_done_i || (admin_q && !slot_alloc))
  `NS_ASSUME(answers_to_reads, !r_valid_i || reads_q != '0)
  `NS_ASSUME(
      clear_at_rest,
      !clear_i || (off_q == '1 && !enable_i && in_flight_q == '0 && reserved_q == '0 && !reserve_valid_i && !unreserve_valid_i && !cfg_valid_i && !moved_i && posted_i == '0 && !tail_valid_i))

  logic tail_wait_q, tail_wait_qid_q;
  logic [PtrWidth-1:0] tail_wait_value_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) tail_wait_q <= 1'b0;
    else tail_wait_q <= tail_valid_i && !tail_ready;
  end
  always_ff @(posedge clk_i) {tail_wait_qid_q, tail_wait_value_q} <= {tail_qid_i, tail_i};
  `NS_ASSUME(
      doorbell_stays,
      !tail_wait_q || (tail_valid_i && tail_qid_i == tail_wait_qid_q && tail_i == tail_wait_value_q))

  // What is proven.
  `NS_ASSERT(queues_known, sq_valid == exists_q)
  for (genvar i = 0; i < 2; i++) begin : gen_proven
    `NS_ASSERT(none_forgotten, sq_nonempty[i] == (exists_q[i] && head_q[i] != tail_q[i]))
    `NS_ASSERT(in_flight, u_fetch.issued_q[i] - u_fetch.retired_q[i] == SlotWidth'(in_flight_q[i]))
  end
  `NS_ASSERT(
      doorbells_checked,
      bad_qid == (tail_fire && !exists_q[tail_qid_i]) && bad_value == (tail_fire && exists_q[tail_qid_i] && !tail_ok))
  `NS_ASSERT(
      none_outside,
      !slot_alloc || (exists_q[q] && head_q[q] != tail_q[q] && slot_alloc_qid[QidWidth-1:1] == '0))
  `NS_ASSERT(slot_is_free, !slot_alloc || slot_valid_i)
  `NS_ASSERT(head_moves_on, !slot_alloc || slot_alloc_head == PtrWidth'(next(head_q[q], size_q[q])))
  `NS_ASSERT(one_admin_command, !(slot_alloc && q == 1'b0) || !admin_q)
  `NS_ASSERT(entry_reserved,
             !slot_alloc || used_q[cqid_q[q]] + reserved_q[cqid_q[q]] < 3'(cq_size_q[cqid_q[q]]))
  `NS_ASSERT(reserve_only_has_room,
             !reserve_only_ok || used_q[0] + reserved_q[0] < 3'(cq_size_q[0]))
  `NS_ASSERT(not_when_forbidden, !slot_alloc || off_q < 4'd8)
  `NS_ASSERT(entry_is_read, !alloc_q || (ar_valid && ar.addr == 64'(addr_q) && ar.len == '0))
  `NS_ASSERT(read_stays, !ar_wait_q || (ar_valid && ar.addr == ar_addr_q))
  `NS_ASSERT(answer_is_known, cmd_valid == r_valid_i)
  `NS_ASSERT(
      answer_is_the_commands,
      !(command_owed_q && cmd_valid && before_q == '0) || {cmd.qid, cmd.slot, cmd.more} == {6'b0, owed_q.qid, 6'b0, owed_q.slot, owed_q.more})
  `NS_ASSERT(
      head_reported,
      !exists_q[lookup_qid_i] || (sq_head == PtrWidth'(read_q[lookup_qid_i]) && sq_cqid == {6'b0, cqid_q[lookup_qid_i]}))
  `NS_ASSERT(idle_reported, admin_idle == (in_flight_q[lookup_qid_i] == '0))
  `NS_ASSERT(fetched_soon, u_fetch.wrr_q || wait_cycles_q < 5'd16)

  // Invariants: the state of nvme_fetch equals the state recorded here.
  localparam logic [2:0] StIdle = 3'd0, StChoose = 3'd1, StLookup = 3'd2, StReserve = 3'd3, StIssue = 3'd4;
  typedef struct packed {
    logic [QidWidth-1:0]  qid;
    logic [SlotWidth-1:0] slot;
    logic [PtrWidth-1:0]  head;
    logic                 more;
  } outstanding_t;
  logic [2:0] state;
  logic reserve_only, at, fetch_active;  // a fetch is being prepared
  outstanding_t outstanding0, outstanding1;
  logic [1:0] outstanding_count;
  logic c;  // completion queue of the fetch
  assign state = u_fetch.state_q;
  assign reserve_only = u_fetch.reserve_only_q;
  assign at = u_fetch.qid_q;
  assign c = u_fetch.cqid_q;
  assign fetch_active = state != StIdle && !reserve_only;
  assign outstanding_count = u_fetch.u_outstanding.count_q;
  assign outstanding0 = u_fetch.u_outstanding.gen_reg.mem[u_fetch.u_outstanding.rptr_q];
  assign outstanding1 = u_fetch.u_outstanding.gen_reg.mem[!u_fetch.u_outstanding.rptr_q];

  function automatic logic [1:0] last(logic [1:0] from, logic [2:0] count, logic [1:0] size);
    logic [2:0] sum;
    sum = 3'(from) + count;
    return (sum > 3'(size)) ? 2'(sum - 3'(size) - 3'd1) : sum[1:0];
  endfunction

  for (genvar i = 0; i < 2; i++) begin : gen_kept
    `NS_ASSERT(sq_kept,
               !exists_q[i] || (u_fetch.size_mem[i] == PtrWidth'(size_q[i]) &&
        u_fetch.tail_mem[i] == PtrWidth'(tail_q[i]) && u_fetch.head_mem[i] == PtrWidth'(head_q[i]) &&
        u_fetch.read_mem[i] == PtrWidth'(read_q[i]) && u_fetch.cqid_mem[i] == QidWidth'(cqid_q[i]) &&
        u_fetch.base_mem[i] == 52'(base_q[i])))
    `NS_ASSERT(sq_legal,
               !exists_q[i] || (cq_exists_q[cqid_q[i]] && (size_q[i] == 2'd1 || size_q[i] == 2'd2) &&
        tail_q[i] <= size_q[i] && head_q[i] <= size_q[i] && read_q[i] <= size_q[i]))
    `NS_ASSERT(cq_kept,
               !cq_exists_q[i] || (cq_head_q[i] <= cq_size_q[i] && (cq_size_q[i] == 2'd1 || cq_size_q[i] == 2'd2) &&
        used_q[i] + reserved_q[i] <= 3'(cq_size_q[i]) &&
        u_fetch.reserve_mem[i] == PtrWidth'(last(
               cq_head_q[i], used_q[i] + reserved_q[i], cq_size_q[i]))))
    `NS_ASSERT(cq_counts_small, used_q[i] <= 3'd2 && reserved_q[i] <= 3'd2)
    `NS_ASSERT(nothing_without_queue, cq_exists_q[i] || reserved_q[i] == '0)
    `NS_ASSERT(in_flight_count,
               in_flight_q[i] == arrived_q[i] + 2'(outstanding_count != '0 && outstanding0.qid == QidWidth'(i)) +
        2'(outstanding_count == 2'd2 && outstanding1.qid == QidWidth'(i)))
    `NS_ASSERT(arrived_small, 3'(arrived_q[i]) + 3'(outstanding_count) <= 3'd3)
    `NS_ASSERT(arrived_head, !exists_q[i] || head_q[i] == last(
               read_q[i],
               3'(outstanding_count != '0 && outstanding0.qid == QidWidth'(i)) +
        3'(outstanding_count == 2'd2 && outstanding1.qid == QidWidth'(i)),
               size_q[i]
               ))
    `NS_ASSERT(blocked_when_full,
               !(exists_q[i] && u_fetch.blocked_q[i]) ||
        used_q[cqid_q[i]] + reserved_q[cqid_q[i]] == 3'(cq_size_q[cqid_q[i]]))
  end
  `NS_ASSERT(slots_in_all, 3'(in_flight_q[0]) + 3'(in_flight_q[1]) <= 3'd3)
  `NS_ASSERT(admin_known, u_fetch.admin_pending_q == admin_q)
  `NS_ASSERT(metas_are_reads,
             3'(outstanding_count) == 3'(reads_q) + 3'(ar_valid) && outstanding_count <= 2'd2)
  `NS_ASSERT(fifo_pointers,
             u_fetch.u_outstanding.wptr_q == (u_fetch.u_outstanding.rptr_q ^ outstanding_count[0]))
  `NS_ASSERT(state_legal, state <= StIssue)
  `NS_ASSERT(room_for_read,
             !fetch_active || (outstanding_count < 2'd2 && !ar_valid && slot_offered_q))
  `NS_ASSERT(
      reserve_only_requested,
      !(state != StIdle && reserve_only) || (reserve_wait_q && state >= StReserve && c == 1'b0))
  `NS_ASSERT(chosen_exists,
             !(fetch_active && state >= StLookup) || (exists_q[at] && (at || !admin_q)))
  `NS_ASSERT(
      granted_exists,
      !(fetch_active && state == StChoose) || (u_fetch.u_arbiter.gnt_q & {1'b0, admin_q}) == '0 || !u_fetch.u_arbiter.done_q)
  `NS_ASSERT(
      granted_valid,
      !u_fetch.u_arbiter.done_q || (state == StChoose && !reserve_only && (u_fetch.u_arbiter.gnt_q & ~exists_q) == '0 && u_fetch.u_arbiter.gnt_q != 2'b11))
  `NS_ASSERT(
      arbiter_in_step,
      (state == StChoose && !reserve_only) == (u_fetch.u_arbiter.done_q || u_fetch.u_arbiter.choose_q || u_fetch.u_arbiter.served_valid_q || u_fetch.u_arbiter.grant_q))
  `NS_ASSERT(
      arbiter_one_step,
      3'(u_fetch.u_arbiter.done_q) + 3'(u_fetch.u_arbiter.choose_q) + 3'(u_fetch.u_arbiter.served_valid_q) + 3'(u_fetch.u_arbiter.grant_q) <= 3'd1)
  `NS_ASSERT(
      looked_up,
      !(fetch_active && state >= StReserve) || (c == cqid_q[at] && u_fetch.head_q == PtrWidth'(head_q[at]) && u_fetch.head_next_q == PtrWidth'(next(
      head_q[at], size_q[at])) && u_fetch.base_q == 52'(base_q[at])))
  `NS_ASSERT(still_wanted, !(fetch_active && state == StIssue) || head_q[at] != tail_q[at])
  `NS_ASSERT(queue_for_reserve_only, !(state != StIdle && reserve_only) || cq_exists_q[0])
  `NS_ASSERT(
      reservation, state != StIssue || (u_fetch.reserve_next_q == PtrWidth'(next(
      u_fetch.reserve_mem[c][1:0], cq_size_q[c]
      )) && (u_fetch.cq_head_q == PtrWidth'(cq_head_q[c]) || used_q[c] + reserved_q[c] < 3'(cq_size_q[c]))))
  `NS_ASSERT(
      moved_stale,
      !(state == StIssue && u_fetch.cq_head_q != PtrWidth'(cq_head_q[c])) || u_fetch.cq_moved_q)
  logic [1:0] exists_or_gone;
  assign exists_or_gone[0] = !exists_q[outstanding0.qid[0]] || outstanding0.head == PtrWidth'(next(read_q[outstanding0.qid[0]], size_q[outstanding0.qid[0]]));
  assign exists_or_gone[1] = !exists_q[outstanding1.qid[0]] || outstanding1.head == PtrWidth'(last(
      read_q[outstanding1.qid[0]], (outstanding0.qid == outstanding1.qid) ? 3'd2 : 3'd1, size_q[outstanding1.qid[0]]));
  `NS_ASSERT(
      metas_legal,
      (outstanding_count == '0 || (outstanding0.qid < 2 && exists_or_gone[0])) && (outstanding_count != 2'd2 || (outstanding1.qid < 2 && exists_or_gone[1])))
  `NS_ASSERT(
      owed_is_there,
      !command_owed_q || (before_q < outstanding_count && (before_q[0] ? {outstanding1.qid, outstanding1.slot, outstanding1.more} : {outstanding0.qid, outstanding0.slot, outstanding0.more}) == {6'b0, owed_q.qid, 6'b0, owed_q.slot, owed_q.more}))

  `NS_ASSERT(
      started_when_allowed,
      !fetch_active || off_q <= (u_fetch.u_arbiter.choose_q ? 4'd1 : u_fetch.u_arbiter.served_valid_q ? 4'd2 : u_fetch.u_arbiter.grant_q ? 4'd3 : 4'd3 + 4'(state)))

  // Credits are visible, and used by classes that had one.
  for (genvar i = 1; i < 4; i++) begin : gen_credit
    `NS_ASSERT(credit_there,
               !(fetch_active && u_fetch.wrr_q && !u_fetch.u_arbiter.choose_q && u_fetch.u_arbiter.served_q[i]) ||
        u_fetch.u_arbiter.credit_q[i] != '0)
    `NS_ASSERT(credit_at_choice,
               !(u_fetch.u_arbiter.choose_q) ||
        u_fetch.u_arbiter.credit_left_q[i] == (u_fetch.u_arbiter.credit_q[i] != '0))
  end

  `NS_ASSERT(
      doorbell_looked_up,
      !u_fetch.tail_lookup_q || (tail_wait_q && u_fetch.tail_valid_q == exists_q[tail_wait_qid_q] && (!exists_q[tail_wait_qid_q] || (u_fetch.tail_size_q == PtrWidth'(size_q[tail_wait_qid_q]) && u_fetch.tail_head_q == PtrWidth'(head_q[tail_wait_qid_q])))))

  // Steps of the watched queue to its next fetch, with at most one of the other queue between.
  logic next_is_watched, of_watched;
  assign next_is_watched = u_fetch.u_arbiter.mask_q == {w, 1'b0};
  assign of_watched = (state == StChoose) ? u_fetch.u_arbiter.gnt_q[w] : at == w;
  `NS_ASSERT(modes_apart,
             u_fetch.wrr_q || !(u_fetch.u_arbiter.choose_q || u_fetch.u_arbiter.served_valid_q))
  `NS_ASSERT(
      sampled,
      !u_fetch.u_arbiter.grant_q || (state == StChoose && !reserve_only && (u_fetch.u_arbiter.req_q & ~exists_q) == '0 && (u_fetch.u_arbiter.req_q & {1'b0, admin_q}) == '0 && u_fetch.u_arbiter.first_q == (u_fetch.u_arbiter.req_q & u_fetch.u_arbiter.mask_q) && u_fetch.u_arbiter.any_first_q == (u_fetch.u_arbiter.first_q != '0)))
  `NS_ASSERT(
      sampled_round,
      !u_fetch.u_arbiter.grant_q || u_fetch.wrr_q || (u_fetch.u_arbiter.req_q != '0 && u_fetch.u_arbiter.members_q == '1))
  `NS_ASSERT(
      granted_one,
      !(state == StChoose && u_fetch.u_arbiter.done_q && !u_fetch.wrr_q) || u_fetch.u_arbiter.gnt_q != '0)
  logic sampling;
  assign sampling = u_fetch.u_arbiter.grant_q;
  `NS_ASSERT(then_watched,
             u_fetch.wrr_q || !fetch_active || sampling || of_watched || next_is_watched)
  `NS_ASSERT(sampled_watched,
             u_fetch.wrr_q || !sampling || wait_cycles_q == '0 || u_fetch.u_arbiter.req_q[w])
  `NS_ASSERT(
      full_before,
      !(state == StIssue && !reserve_only && at == w && u_fetch.reserve_next_q == u_fetch.cq_head_q) || wait_cycles_q == '0)
  `NS_ASSERT(
      steps,
      u_fetch.wrr_q || wait_cycles_q == '0 || (!(state == StIdle && !next_is_watched) || wait_cycles_q <= (ar_valid ? 5'd1 : 5'd2)) && (!sampling || wait_cycles_q <= 5'd3 || (next_is_watched && wait_cycles_q <= 5'd10)) && (state == StIdle || sampling || of_watched || wait_cycles_q <= 5'd3 + 5'(state)) && (!(state == StIdle && next_is_watched) || wait_cycles_q <= (ar_valid ? 5'd8 : 5'd9)) && (state == StIdle || wait_cycles_q <= 5'd10 + 5'(state)))

  `NS_COVER(in_turn, !u_fetch.wrr_q && slot_alloc)
  `NS_COVER(shared_queue, exists_q == '1 && cqid_q == '0 && reserved_q[0] == 3'd2)
  `NS_COVER(by_classes, u_fetch.wrr_q && slot_alloc)
  `NS_COVER(reserve_only_granted, reserve_only_ok && reserved_q[0] == 3'd1)
  `NS_COVER(tail_moved_back, fetch_active && state == StReserve && head_q[at] == tail_q[at])

  logic unused;
  assign unused = ^{full, cq_qid[QidWidth-1:1], ar.id, ar.size, ar.burst};

endmodule
