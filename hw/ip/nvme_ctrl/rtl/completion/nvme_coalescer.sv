// SPDX-License-Identifier: Apache-2.0

// Interrupt coalescing (NVMe 1.4, 5.21.1.8 and 5.21.1.9). An interrupt is held until enough entries
// have been posted for its vector, or the first one held has waited for the aggregation time.
//
// All vectors share one timer. When it expires, all held vectors fire, at most one a cycle, so no
// entry waits longer than the time. The timer is derived from the count of cycles, so that a
// simulation can skip the wait (`remaining_o`). Coalescing is off while threshold or time are 0, as
// after a reset. It never applies to the admin completion queue, nor to vectors with Coalescing
// Disable. It ends when commands are no longer fetched, so that a shutdown does not have to wait. A
// held interrupt is dropped when its cause is gone (`withdraw_i`), masked or not: nothing has been
// sent yet. Entries that the host has consumed, or of a deleted queue, do not count for later
// interrupts.
`include "ns_assert.svh"

module nvme_coalescer
  import nvme_pkg::*;
#(
  /// Vectors, 1 to 128.
  parameter int unsigned NumVectors = 17,
  /// Clock in kHz, at least 10.
  parameter int unsigned ClockKhz   = 250_000
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  /// From registers: an interrupt is held, or an interrupt or a withdrawal has just been requested.
  output logic                  busy_o,
  /// Cycles since power-on.
  input  logic [31:0]           cycles_i,
  /// From registers: at least this number of cycles, up to three fewer, passes without any action.
  /// 0 if an action is due.
  output logic [31:0]           remaining_o,
  /// Controller reset: drop what is held.
  input  logic                  reset_i,
  /// Commands are fetched.
  input  logic                  enable_i,
  /// A feature changes.
  input  feature_write_t        feature_i,
  input  logic                  feature_valid_i,
  /// Coalescing Disable of each vector.
  input  logic [NumVectors-1:0] disable_i,

  /// An entry that requests an interrupt has been posted.
  input  logic                  irq_i,
  /// Its vector.
  input  logic [QidWidth-1:0]   irq_vector_i,
  /// The entry is in the admin completion queue.
  input  logic                  irq_admin_i,
  /// The cause of all requests before this cycle is gone.
  input  logic                  withdraw_i,
  /// Its vector.
  input  logic [QidWidth-1:0]   withdraw_vector_i,
  /// Interrupt.
  output logic                  irq_o,
  /// Its vector.
  output logic [QidWidth-1:0]   irq_vector_o,
  /// The withdrawal, a cycle later: in order with the interrupts.
  output logic                  withdraw_o,
  /// Its vector.
  output logic [QidWidth-1:0]   withdraw_vector_o
);

  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumVectors);
  localparam int unsigned Unit = ClockKhz / 10;  // cycles in 100 us
  typedef logic [Bits-1:0] idx_t;

  // Interrupts and withdrawals are processed a cycle after they arrive, as the vector is read from
  // a memory.
  logic irq_q, irq_admin_q, withdraw_q;
  logic [QidWidth-1:0] irq_vector_q, withdraw_vector_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      irq_q <= 1'b0;
      withdraw_q <= 1'b0;
    end else begin
      irq_q <= irq_i;
      withdraw_q <= withdraw_i;
    end
  end

  always_ff @(posedge clk_i) begin
    irq_vector_q <= irq_vector_i;
    irq_admin_q <= irq_admin_i;
    withdraw_vector_q <= withdraw_vector_i;
  end

  assign withdraw_o = withdraw_q;
  assign withdraw_vector_o = withdraw_vector_q;

  logic [7:0] threshold_q, time_q;
  logic disabled_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      threshold_q <= '0;
      time_q <= '0;
      disabled_q <= 1'b1;
    end else begin
      if (feature_valid_i && feature_i.idx == FeatureCoalescing) begin
        threshold_q <= feature_i.value[7:0];
        time_q <= feature_i.value[15:8];
      end
      disabled_q <= threshold_q == '0 || time_q == '0;
    end
  end

  // Entries posted for each held vector.
  logic [NumVectors-1:0] held_q;
  (* ram_style = "distributed" *) logic [7:0] count_mem[NumVectors];
  logic [7:0] count;
  idx_t vector, scan_q;
  logic immediate, threshold_reached, hold_valid, expiry_valid, expired;

  // An interrupt requested in the cycle of a withdrawal belongs to a later entry: it stays, as the
  // first one.
  idx_t withdrawn;
  assign withdrawn = idx_t'(withdraw_vector_q);

  assign vector = idx_t'(irq_vector_q);
  assign immediate = irq_q && (disabled_q || !enable_i || irq_admin_q || disable_i[vector]);
  assign count = (held_q[vector] && !(withdraw_q && withdrawn == vector)) ? count_mem[vector] : '0;
  assign threshold_reached = irq_q && !immediate && count >= threshold_q;
  assign hold_valid = irq_q && !immediate && count < threshold_q;

  always_ff @(posedge clk_i) if (hold_valid) count_mem[vector] <= count + 1'b1;

  // The time.
  logic [31:0] period_q, start_q, waited_q, remaining_q;
  assign expired = waited_q >= period_q || disabled_q || !enable_i;

  always_ff @(posedge clk_i) begin
    period_q <= 32'(time_q) * 32'(Unit);
    if (held_q == '0) start_q <= cycles_i;
    waited_q <= (held_q == '0) ? '0 : cycles_i - start_q;
    remaining_q <= (held_q == '0 || expired) ? '0 : period_q - waited_q;
  end

  // Fires a cycle later: the threshold is reached, or the time is over and the scan is at this
  // vector.
  logic fire_q, fire;
  idx_t fire_vector_q;
  assign fire = fire_q && !(withdraw_q && withdrawn == fire_vector_q);
  assign expiry_valid = expired && held_q[scan_q] && !(withdraw_q && withdrawn == scan_q) && !irq_q && !fire_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      held_q <= '0;
      fire_q <= 1'b0;
      scan_q <= '0;
    end else begin
      if (held_q != '0 && expired) scan_q <= (32'(scan_q) == NumVectors - 1) ? '0 : scan_q + 1'b1;
      if (withdraw_q) held_q[withdrawn] <= 1'b0;
      if (immediate || threshold_reached) held_q[vector] <= 1'b0;
      if (hold_valid) held_q[vector] <= 1'b1;
      if (expiry_valid) held_q[scan_q] <= 1'b0;
      fire_q <= threshold_reached || expiry_valid || (fire && immediate);
      if (reset_i) held_q <= '0;
    end
  end

  always_ff @(posedge clk_i)
    if (threshold_reached || expiry_valid)
      fire_vector_q <= threshold_reached ? vector : scan_q;

  assign remaining_o = (fire_q || irq_q || withdraw_q || expired) ? '0 : remaining_q;
  assign irq_o = immediate || fire;
  assign irq_vector_o = immediate ? irq_vector_q : QidWidth'(fire_vector_q);
  assign busy_o = irq_q || withdraw_q || fire_q || held_q != '0;

  logic unused;
  assign unused = ^feature_i.value[31:16];

  if (Unit < 1) begin : gen_bad_clock
    $error("nvme_coalescer: ClockKhz must be at least 10");
  end

  `NS_ASSERT(one_at_a_time, !(expiry_valid && (irq_q || fire_q)))
  `NS_ASSERT(vector_exists, !irq_q || 32'(irq_vector_q) < NumVectors)
  `NS_ASSERT(withdrawn_exists, !withdraw_q || 32'(withdraw_vector_q) < NumVectors)

endmodule
