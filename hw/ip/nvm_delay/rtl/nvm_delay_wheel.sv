// SPDX-License-Identifier: Apache-2.0

// Calendar wheel: reports each inserted slot in the cycle for which it waits, any number of slots
// per cycle.
//
// A row for each of the next `Rows` cycles holds a list of the slots that become due in it. Slots
// due later wait aside with their absolute deadline. A scan visits every slot once in `Slots`
// cycles (at most twice that) and moves slots to the wheel when their row comes into range. So
// nothing drifts, however long the wait.
//
// When a row's cycle comes, its list is appended to `ready`, which outputs one slot a cycle. That
// is as many as can be inserted, and as many as the port can answer. A slot inserted too late for
// its row goes to `ready` itself, or to the next row.
//
// A row is empty while its bits in `filled` and `emptied` are equal. The successor of slot s is
// `next_a` ^ `next_b`: two memories with one writer each replace one with two. After reset `init_i`
// empties all rows.
//
// Assumes that a slot is inserted only once at a time, and that it leaves within 2**23 cycles after
// its deadline.
`include "ns_assert.svh"

module nvm_delay_wheel
  import nvm_delay_pkg::*;
#(
  /// Transactions in flight: a power of two, 32 to 512.
  parameter int unsigned Slots = 64,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots)),
  localparam int unsigned Rows = 2 * Slots,  // cycles of the wheel
  localparam int unsigned RowBits = $clog2(Rows)
) (
  input  logic   clk_i,
  input  logic   rst_ni,
  /// Current cycle.
  input  cycle_t now_i,
  /// All slots become due as soon as possible.
  input  logic   flush_i,
  /// Row `init_row_i` is emptied; nothing is inserted meanwhile.
  input  logic   init_i,
  /// See init_i.
  input  logic [RowBits-1:0] init_row_i,
  /// A slot is inserted.
  input  logic   valid_i,
  /// It is accepted.
  output logic   ready_o,
  /// The slot.
  input  logic [SlotWidth-1:0]  slot_i,
  /// Cycle in which it becomes due.
  input  cycle_t due_i,
  /// A slot becomes due with the next cycle.
  output logic   due_o,
  /// It is accepted; the deadlines of others wait otherwise.
  input  logic   due_ready_i,
  /// The slot.
  output logic [SlotWidth-1:0]  due_slot_o
);

  (* ram_style = "distributed" *) logic [SlotWidth-1:0] first[Rows];
  (* ram_style = "distributed" *) logic [SlotWidth-1:0] last[Rows];
  (* ram_style = "distributed" *) logic filled[Rows];
  (* ram_style = "distributed" *) logic emptied[Rows];
  (* ram_style = "distributed" *) logic [SlotWidth-1:0] next_a[Slots];
  (* ram_style = "distributed" *) logic [SlotWidth-1:0] next_b[Slots];
  (* ram_style = "distributed" *) cycle_t due_of[Slots];
  (* ram_style = "distributed" *) logic far[Slots];  // waits aside

  // The slot inserted in the previous cycle.
  logic in_valid_q;
  logic [SlotWidth-1:0] in_slot_q;
  cycle_t in_due_q;

  // Scan of the slots aside; a hit takes precedence over `in` in the next cycle.
  logic [SlotWidth-1:0] scan_q, hit_slot_q;
  logic hit_q, blocked_q, scan_hit;
  cycle_t hit_due_q, scan_due, scan_left;
  logic unused_scan_left;

  assign unused_scan_left = ^scan_left[RowBits-1:0];

  always_comb begin
    scan_due = '0;
    scan_left = '0;
    scan_hit = 1'b0;
    if (far[scan_q] && !blocked_q && !init_i) begin
      scan_due = due_of[scan_q];
      scan_left = scan_due - now_i;
      scan_hit = flush_i || scan_left[CycleWidth-1] || scan_left[CycleWidth-1:RowBits] == '0;
    end
  end

  // The row whose cycle comes: its slots are output from the next cycle on, and are due one later.
  localparam int unsigned Ahead = 2;
  logic [RowBits-1:0] fire_row;
  logic
      fire,
      ready_q,
      ready_stays,
      ready_append;  // `ready` is not empty; it stays so; a row is appended to it
  logic [SlotWidth-1:0] ready_first_q, ready_last_q, ready_next, fire_first, fire_last;

  assign fire_row = now_i[RowBits-1:0] + RowBits'(Ahead);
  assign fire = filled[fire_row] != emptied[fire_row] && !init_i;
  assign fire_first = first[fire_row];
  assign fire_last = last[fire_row];
  assign ready_next = next_a[ready_first_q] ^ next_b[ready_first_q];
  assign ready_stays = ready_q && !(due_ready_i && ready_first_q == ready_last_q);
  assign ready_append = fire && ready_stays;
  assign due_o = ready_q;
  assign due_slot_o = ready_first_q;

  // Insertion.
  logic
      insert,
      insert_row,
      insert_late,
      insert_ready,
      row_used;  // late: its row has passed; ready: it goes to `ready`
  logic [SlotWidth-1:0] insert_slot, insert_last;
  cycle_t insert_due, time_left;
  logic [RowBits-1:0] row;

  assign ready_o = !in_valid_q || !hit_q;
  assign insert = hit_q || in_valid_q;

  always_comb begin
    insert_slot = '0;
    insert_due = '0;
    row = '0;
    insert_last = '0;
    row_used = 1'b0;
    time_left = '0;
    insert_row = 1'b0;
    insert_late = 1'b0;
    insert_ready = 1'b0;
    if (insert) begin
      insert_slot = hit_q ? hit_slot_q : in_slot_q;
      insert_due = hit_q ? hit_due_q : in_due_q;
      time_left = insert_due - now_i;
      insert_late = flush_i || time_left[CycleWidth-1] || (time_left[CycleWidth-1:2] == '0 && time_left[1:0] != 2'd3);
      insert_ready = insert_late && !ready_stays && !fire;
      insert_row = (insert_late || time_left[CycleWidth-1:RowBits] == '0) && !insert_ready;
      row = insert_late ? now_i[RowBits-1:0] + RowBits'(Ahead + 1) : insert_due[RowBits-1:0];
      row_used = filled[row] != emptied[row];
      insert_last = last[row];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_valid_q <= 1'b0;
      hit_q <= 1'b0;
      blocked_q <= 1'b0;
      scan_q <= '0;
      ready_q <= 1'b0;
    end else begin
      if (ready_o) in_valid_q <= valid_i;
      hit_q <= scan_hit;
      blocked_q <= hit_q && in_valid_q;
      if (!blocked_q) scan_q <= scan_q + 1'b1;
      ready_q <= ready_stays || fire || insert_ready;
    end
  end

  always_ff @(posedge clk_i) begin
    if (ready_stays && due_ready_i) ready_first_q <= ready_next;
    else if (!ready_stays) ready_first_q <= fire ? fire_first : insert_slot;
    if (fire) ready_last_q <= fire_last;
    else if (insert_ready) ready_last_q <= insert_slot;
    if (valid_i && ready_o) begin
      in_slot_q <= slot_i;
      in_due_q <= due_i;
    end
    if (scan_hit) begin
      hit_slot_q <= scan_q;
      hit_due_q <= scan_due;
    end
    if (insert_row) begin
      last[row] <= insert_slot;
      if (row_used) next_a[insert_last] <= insert_slot ^ next_b[insert_last];
      else begin
        first[row] <= insert_slot;
        filled[row] <= !emptied[row];
      end
    end
    if (ready_append) next_b[ready_last_q] <= fire_first ^ next_a[ready_last_q];
    if (init_i) emptied[init_row_i] <= filled[init_row_i];
    else if (fire) emptied[fire_row] <= filled[fire_row];
    if (valid_i && ready_o) due_of[slot_i] <= due_i;
    if (init_i) far[init_row_i[SlotWidth-1:0]] <= 1'b0;
    else if (insert) far[insert_slot] <= !insert_row && !insert_ready;
  end

  `NS_ASSERT(far_slot_is_not_inserted, !in_valid_q || !far[in_slot_q])
  `NS_ASSERT(scan_in_time, !hit_q || flush_i || $signed(time_left) > 0)

endmodule
