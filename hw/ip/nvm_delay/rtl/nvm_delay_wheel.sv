// Calendar wheel: says of each slot put in when the cycle that it waits for has come, any number of slots per cycle.
//
// A row for each of the next `Rows` cycles holds a list of the slots that become due in it. Slots that are due later
// wait aside with their absolute deadline, and a scan, which comes round to every slot once in `Slots` cycles (at
// most twice that), moves them to the wheel when it reaches that far: nothing drifts, however long the wait.
// The list of a row whose cycle comes is appended to `ready`, which gives out one slot a cycle: as many as can be put in,
// and as many as the port can answer. A slot put in too late for its row goes to `ready` itself, or to the next row.
// A row is empty while its bits in `filled` and `emptied` are equal; the slot after s is `next_a` ^ `next_b`: two
// memories with one writer each stand for one with two. After reset `init_i` makes all rows empty.
// Assumes that a slot is put in only once at a time and leaves the far side of its deadline within 2**23 cycles.
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
  /// From now on all are due as soon as they can be.
  input  logic   flush_i,
  /// Row `init_row_i` is made empty; nothing is put in meanwhile.
  input  logic   init_i,
  /// See init_i.
  input  logic [RowBits-1:0] init_row_i,
  /// A slot is put in.
  input  logic   valid_i,
  /// It is taken.
  output logic   ready_o,
  /// Which one.
  input  logic [SlotWidth-1:0]  slot_i,
  /// Cycle in which it becomes due.
  input  cycle_t due_i,
  /// A slot becomes due with the next cycle.
  output logic   due_o,
  /// This is noted; the deadlines of others wait otherwise.
  input  logic   due_ready_i,
  /// Which one.
  output logic [SlotWidth-1:0]  due_slot_o
);

  (* ram_style = "distributed" *) logic [SlotWidth-1:0] first[Rows];
  (* ram_style = "distributed" *) logic [SlotWidth-1:0] last[Rows];
  (* ram_style = "distributed" *) logic filled[Rows];
  (* ram_style = "distributed" *) logic emptied[Rows];
  (* ram_style = "distributed" *) logic [SlotWidth-1:0] next_a[Slots];
  (* ram_style = "distributed" *) logic [SlotWidth-1:0] next_b[Slots];
  (* ram_style = "distributed" *) cycle_t due_of[Slots];
  (* ram_style = "distributed" *) logic far[Slots];  // aside

  // The slot put in during the last cycle.
  logic in_valid_q;
  logic [SlotWidth-1:0] in_slot_q;
  cycle_t in_due_q;

  // Scan over the slots aside; a hit takes precedence over `in` in the next cycle.
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

  // The row whose cycle comes: its slots are given out from the next cycle on, and are due one later.
  localparam int unsigned Ahead = 2;
  logic [RowBits-1:0] fire_row;
  logic
      fire,
      ready_q,
      rest,
      link;  // `ready` is not empty; nor will it be in the next cycle; a row is appended to it
  logic [SlotWidth-1:0] ready_first_q, ready_last_q, ready_next, fire_first, fire_last;

  assign fire_row = now_i[RowBits-1:0] + RowBits'(Ahead);
  assign fire = filled[fire_row] != emptied[fire_row] && !init_i;
  assign fire_first = first[fire_row];
  assign fire_last = last[fire_row];
  assign ready_next = next_a[ready_first_q] ^ next_b[ready_first_q];
  assign rest = ready_q && !(due_ready_i && ready_first_q == ready_last_q);
  assign link = fire && rest;
  assign due_o = ready_q;
  assign due_slot_o = ready_first_q;

  // Insertion.
  logic
      put,
      near,
      put_late,
      put_ready,
      put_row_used;  // late: its row has gone; ready: it goes to `ready`
  logic [SlotWidth-1:0] put_slot, put_last;
  cycle_t put_due, left;
  logic [RowBits-1:0] put_row;

  assign ready_o = !in_valid_q || !hit_q;
  assign put = hit_q || in_valid_q;

  always_comb begin
    put_slot = '0;
    put_due = '0;
    put_row = '0;
    put_last = '0;
    put_row_used = 1'b0;
    left = '0;
    near = 1'b0;
    put_late = 1'b0;
    put_ready = 1'b0;
    if (put) begin
      put_slot = hit_q ? hit_slot_q : in_slot_q;
      put_due = hit_q ? hit_due_q : in_due_q;
      left = put_due - now_i;
      put_late = flush_i || left[CycleWidth-1] || (left[CycleWidth-1:2] == '0 && left[1:0] != 2'd3);
      put_ready = put_late && !rest && !fire;
      near = (put_late || left[CycleWidth-1:RowBits] == '0) && !put_ready;
      put_row = put_late ? now_i[RowBits-1:0] + RowBits'(Ahead + 1) : put_due[RowBits-1:0];
      put_row_used = filled[put_row] != emptied[put_row];
      put_last = last[put_row];
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
      ready_q <= rest || fire || put_ready;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rest && due_ready_i) ready_first_q <= ready_next;
    else if (!rest) ready_first_q <= fire ? fire_first : put_slot;
    if (fire) ready_last_q <= fire_last;
    else if (put_ready) ready_last_q <= put_slot;
    if (valid_i && ready_o) begin
      in_slot_q <= slot_i;
      in_due_q <= due_i;
    end
    if (scan_hit) begin
      hit_slot_q <= scan_q;
      hit_due_q <= scan_due;
    end
    if (near) begin
      last[put_row] <= put_slot;
      if (put_row_used) next_a[put_last] <= put_slot ^ next_b[put_last];
      else begin
        first[put_row] <= put_slot;
        filled[put_row] <= !emptied[put_row];
      end
    end
    if (link) next_b[ready_last_q] <= fire_first ^ next_a[ready_last_q];
    if (init_i) emptied[init_row_i] <= filled[init_row_i];
    else if (fire) emptied[fire_row] <= filled[fire_row];
    if (valid_i && ready_o) due_of[slot_i] <= due_i;
    if (init_i) far[init_row_i[SlotWidth-1:0]] <= 1'b0;
    else if (put) far[put_slot] <= !near && !put_ready;
  end

  `NS_ASSERT(far_slot_not_put_in_again, !in_valid_q || !far[in_slot_q])
  `NS_ASSERT(scan_in_time, !hit_q || flush_i || $signed(left) > 0)

endmodule
