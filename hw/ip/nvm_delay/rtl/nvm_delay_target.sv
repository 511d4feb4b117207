// SPDX-License-Identifier: Apache-2.0

// Target latency of a transaction: looks up the times of its address, adds base, beats and dither,
// and outputs the cycle in which the transaction becomes due.
//
// Dither: the fraction of a cycle is not rounded. A value of a sequence that is evenly spread over
// [0, 1) is added, and then the fraction is cut off. So the mean of any set of latencies is exact,
// also for every beat of a burst. The sequence steps by the golden ratio, so that it stays even for
// every n-th transaction as well.
//
// All values are read from `config_i` and the times in the cycle of `accept_i`. Assumes that
// `accept_i` is 1 only while `ready_o` is, and that times are written to the inactive bank only.
module nvm_delay_target
  import nvm_delay_pkg::*;
#(
  /// Transactions in flight: a power of two, 32 to 128.
  parameter int unsigned Slots = 64,
  /// Bits of an address.
  parameter int unsigned AddrWidth = 64,
  /// 1: all beats of the burst count (writes). 0: the first beat only (reads, whose beats have
  /// separate deadlines).
  parameter bit WholeBurst = 1'b0,
  /// Cycles between becoming due and the response at the port.
  parameter int unsigned Lead = 1,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Current cycle.
  input  cycle_t               now_i,
  /// Committed parameters.
  input  config_t              config_i,
  /// A time is written.
  input  logic                 time_valid_i,
  /// Its index and value.
  input  time_write_t          time_i,

  /// A transaction can be accepted.
  output logic                 ready_o,
  /// A transaction is accepted.
  input  logic                 accept_i,
  /// Its slot.
  input  logic [SlotWidth-1:0]                slot_i,
  /// Its address.
  input  logic [AddrWidth-1:0] addr_i,
  /// Its beats - 1.
  input  logic [7:0]           len_i,

  /// The times of a transaction are known, one cycle later. May stay 1 for the same transaction.
  output logic                 timing_valid_o,
  /// Its slot.
  output logic [SlotWidth-1:0]                timing_slot_o,
  /// Cycles per beat.
  output time_t                timing_beat_o,
  /// The emulation was off.
  output logic                 timing_off_o,

  /// A deadline is known. Transactions accepted while the emulation was off have none.
  output logic                 valid_o,
  /// The deadline is accepted.
  input  logic                 ready_i,
  /// Its slot.
  output logic [SlotWidth-1:0]                slot_o,
  /// Latency, dither included, of the burst or of its first beat.
  output time_t                rel_o,
  /// Cycle in which the slot becomes due.
  output cycle_t               due_o
);

  // 1/phi in Q0.16; odd, so that all 65536 values occur.
  localparam logic [15:0] Golden = 16'd40503;
  localparam int unsigned ProdWidth = TimeWidth + 9;

  // The lowest region that contains an address.
  function automatic region_t region_of(logic [AddrWidth-1:0] addr);
    logic [63-PageBits:0] page;
    page = (64 - PageBits)'(addr >> PageBits);
    region_of = region_t'(NumRegions);
    for (int r = int'(NumRegions) - 1; r >= 0; r--) begin
      if (config_i.region_enable[r] && page[63-PageBits:32] == '0 && page[31:0] >= config_i.first[r]
          && page[31:0] <= config_i.last[r]) begin
        region_of = region_t'(r);
      end
    end
  endfunction

  (* ram_style = "distributed" *) time_t bases[2**(RegionWidth+1)];
  (* ram_style = "distributed" *) time_t beats[2**(RegionWidth+1)];

  always_ff @(posedge clk_i) begin
    if (time_valid_i) begin
      if (time_i.base) bases[{time_i.bank, time_i.region}] <= time_i.data;
      else beats[{time_i.bank, time_i.region}] <= time_i.data;
    end
  end

  // Stages: a: times read; b: multiplied; c: added.
  logic advance, a_valid_q, a_off_q, b_valid, c_valid_q;
  logic [SlotWidth-1:0] a_slot_q, b_slot, c_slot_q;
  time_t a_base_q, a_beat_q, b_base, c_rel_q;
  cycle_t a_received_q, b_received, c_received_q;
  logic [ProdWidth-1:0] b_prod;
  logic [15:0] dither_q;
  logic [ProdWidth:0] sum;

  assign advance = !c_valid_q || ready_i;
  assign ready_o = advance;
  assign timing_valid_o = a_valid_q;
  assign timing_slot_o = a_slot_q;
  assign timing_beat_o = a_beat_q;
  assign timing_off_o = a_off_q;

  always_comb begin
    sum = '0;
    if (b_valid) begin
      sum = (ProdWidth + 1)'(b_base) + (ProdWidth + 1)'(b_prod) + (ProdWidth + 1)'(dither_q[15-:FracBits]);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_valid_q <= 1'b0;
      c_valid_q <= 1'b0;
      dither_q <= '0;
    end else if (advance) begin
      a_valid_q <= accept_i;
      c_valid_q <= b_valid;
      if (b_valid) dither_q <= dither_q + Golden;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept_i) begin
      a_off_q <= !config_i.enable;
      a_slot_q <= slot_i;
      a_base_q <= bases[{config_i.bank, region_of(addr_i)}];
      a_beat_q <= beats[{config_i.bank, region_of(addr_i)}];
      a_received_q <= now_i;
    end
    if (advance && b_valid) begin
      c_slot_q <= b_slot;
      c_rel_q <= (sum[ProdWidth:TimeWidth] != '0) ? '1 : sum[TimeWidth-1:0];
      c_received_q <= b_received;
    end
  end

  if (WholeBurst) begin : gen_burst
    logic b_valid_q;
    logic [SlotWidth-1:0] b_slot_q;
    time_t b_base_q;
    cycle_t b_received_q;
    logic [8:0] a_beats_q;
    logic [ProdWidth-1:0] b_prod_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) b_valid_q <= 1'b0;
      else if (advance) b_valid_q <= a_valid_q && !a_off_q;
    end
    always_ff @(posedge clk_i) begin
      if (accept_i) a_beats_q <= 9'(len_i) + 9'd1;
      if (advance && a_valid_q) begin
        b_slot_q <= a_slot_q;
        b_base_q <= a_base_q;
        b_prod_q <= ProdWidth'(a_beat_q) * ProdWidth'(a_beats_q);
        b_received_q <= a_received_q;
      end
    end
    assign b_valid = b_valid_q;
    assign b_slot = b_slot_q;
    assign b_base = b_base_q;
    assign b_prod = b_prod_q;
    assign b_received = b_received_q;
  end else begin : gen_first
    logic unused_len;
    assign unused_len = ^len_i;
    assign b_valid = a_valid_q && !a_off_q;
    assign b_slot = a_slot_q;
    assign b_base = a_base_q;
    assign b_prod = ProdWidth'(a_beat_q);
    assign b_received = a_received_q;
  end

  assign valid_o = c_valid_q;
  assign slot_o = c_slot_q;
  assign rel_o = c_rel_q;
  assign due_o = c_received_q + cycle_t'(c_rel_q[TimeWidth-1:FracBits]) - cycle_t'(Lead);

endmodule
