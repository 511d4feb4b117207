// Calendar wheel: says of each slot put in when the cycle that it waits for has come, any number of slots per cycle.
//
// A row for each of the next `Rows` cycles holds a mask of the slots that become due in it. Slots that are due later
// wait aside with their absolute deadline, and a scan, which comes round to every slot once in `Slots` cycles (at
// most twice that), moves them to the wheel when it reaches that far: nothing drifts, however long the wait.
// A row is empty while its bits in `filled` and `emptied` are equal: two memories with one writer each stand for one
// with two, and nothing but the wheel itself is ever cleared. After reset `init_i` makes all rows empty.
// Assumes that a slot is put in only once at a time and leaves the far side of its deadline within 2**31 cycles.
`include "ns_assert.svh"

module nvm_delay_wheel
  import nvm_delay_pkg::*;
#(
  /// Cycles of the wheel: a power of two, at least twice Slots.
  parameter int unsigned Rows = 128,
  localparam int unsigned RowBits = $clog2(Rows)
) (
  /// Clock.
  input  logic   clk_i,
  /// Reset.
  input  logic   rst_ni,
  /// Current cycle.
  input  cycle_t now_i,
  /// Row `init_row_i` is made empty; nothing is put in meanwhile.
  input  logic   init_i,
  /// See init_i.
  input  logic [RowBits-1:0] init_row_i,
  /// A slot is put in.
  input  logic   valid_i,
  /// It is taken.
  output logic   ready_o,
  /// Which one.
  input  slot_t  slot_i,
  /// Cycle in which it becomes due.
  input  cycle_t due_i,
  /// Slots that become due with the next cycle.
  output mask_t  due_o,
  /// Any slot that has become due.
  input  slot_t  look_slot_i,
  /// The cycle that it became due in by its deadline.
  output cycle_t look_due_o
);

  (* ram_style = "distributed" *) mask_t rows[Rows];
  (* ram_style = "distributed" *) logic filled[Rows];
  (* ram_style = "distributed" *) logic emptied[Rows];
  (* ram_style = "distributed" *) cycle_t due_of[Slots];
  mask_t far_q;  // slots aside

  // The slot put in during the last cycle.
  logic in_valid_q;
  slot_t in_slot_q;
  cycle_t in_due_q;

  // Scan over the slots aside; a hit takes precedence over `in` in the next cycle.
  slot_t scan_q, hit_slot_q;
  logic hit_q, blocked_q, scan_hit;
  cycle_t hit_due_q, scan_due, scan_left;
  logic unused_scan_left;

  assign unused_scan_left = ^scan_left[RowBits-1:0];

  always_comb begin
    scan_due = '0;
    scan_left = '0;
    scan_hit = 1'b0;
    if (far_q[scan_q] && !blocked_q) begin
      scan_due = due_of[scan_q];
      scan_left = scan_due - now_i;
      scan_hit = scan_left[31] || scan_left[31:RowBits] == '0;
    end
  end

  // Insertion.
  logic put, near;
  slot_t put_slot;
  cycle_t put_due, left;
  mask_t put_mask;
  logic put_now;  // due in the next cycle or before
  logic fire;  // the next row is not empty
  logic [RowBits-1:0] put_row, next_row;

  assign ready_o = !in_valid_q || !hit_q;
  assign put = hit_q || in_valid_q;
  assign next_row = now_i[RowBits-1:0] + 1'b1;

  always_comb begin
    due_o = '0;
    put_slot = '0;
    put_due = '0;
    put_row = '0;
    put_mask = '0;
    left = '0;
    near = 1'b0;
    put_now = 1'b0;
    fire = filled[next_row] != emptied[next_row];
    if (fire) due_o = rows[next_row];
    if (put) begin
      put_slot = hit_q ? hit_slot_q : in_slot_q;
      put_due = hit_q ? hit_due_q : in_due_q;
      put_row = put_due[RowBits-1:0];
      put_mask = one_hot(put_slot);
      left = put_due - now_i;
      near = left[31:RowBits] == '0;
      put_now = left[31] || left[31:1] == '0;
      if (put_now) due_o |= put_mask;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      far_q <= '0;
      in_valid_q <= 1'b0;
      hit_q <= 1'b0;
      blocked_q <= 1'b0;
      scan_q <= '0;
    end else begin
      if (ready_o) in_valid_q <= valid_i;
      hit_q <= scan_hit;
      blocked_q <= hit_q && in_valid_q;
      if (!blocked_q) scan_q <= scan_q + 1'b1;
      if (put && !put_now) begin
        far_q[put_slot] <= !near;
      end else if (hit_q) begin
        far_q[put_slot] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o) begin
      in_slot_q <= slot_i;
      in_due_q <= due_i;
    end
    if (scan_hit) begin
      hit_slot_q <= scan_q;
      hit_due_q <= scan_due;
    end
    if (put && near && !put_now) begin
      rows[put_row] <= (filled[put_row] != emptied[put_row] ? rows[put_row] : '0) | put_mask;
      filled[put_row] <= !emptied[put_row];
    end
    if (init_i) emptied[init_row_i] <= filled[init_row_i];
    else if (fire) emptied[next_row] <= filled[next_row];
    if (valid_i && ready_o) due_of[slot_i] <= due_i;
  end

  assign look_due_o = due_of[look_slot_i];

  `NS_ASSERT(far_slot_not_put_in_again, !in_valid_q || !far_q[in_slot_q])
  `NS_ASSERT(scan_in_time, !hit_q || $signed(left) > 0)

endmodule
