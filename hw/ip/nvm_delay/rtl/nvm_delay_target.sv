// Target latency of each transaction: finds the timing of its address, adds base, beats and dither, and hands on the
// cycle at which the transaction becomes due.
//
// Dither: the fraction of a cycle is not rounded but added to a sequence that is spread evenly over [0, 1), and then
// cut off; the mean of any set of latencies then comes out right, of every beat of a burst as well. The sequence
// steps by the golden ratio, so that it stays even for every n-th transaction too.
// Everything about a transaction is taken from `config_i` in the cycle of `accept_i`.
// Assumes that `accept_i` is 1 only while `ready_o` is.
module nvm_delay_target
  import nvm_delay_pkg::*;
#(
  /// Bits of an address.
  parameter int unsigned AddrWidth = 64,
  /// 1: all beats of the burst count (writes). 0: the first beat only (reads, whose beats have deadlines of their own).
  parameter bit WholeBurst = 1'b0,
  /// Cycles between becoming due and the response at the port.
  parameter int unsigned Lead = 1
) (
  /// Clock.
  input  logic                 clk_i,
  /// Reset.
  input  logic                 rst_ni,
  /// Current cycle.
  input  cycle_t               now_i,
  /// Parameters as last committed.
  input  config_t              config_i,

  /// A transaction can be taken.
  output logic                 ready_o,
  /// It is taken, in this cycle.
  input  logic                 accept_i,
  /// Its slot.
  input  slot_t                slot_i,
  /// Its address.
  input  logic [AddrWidth-1:0] addr_i,
  /// Its beats less one.
  input  logic [7:0]           len_i,
  /// Cycles per beat at `addr_i`.
  output time_t                beat_o,

  /// A deadline is known.
  output logic                 valid_o,
  /// It is taken.
  input  logic                 ready_i,
  /// Of which slot.
  output slot_t                slot_o,
  /// Latency, dither included, of the burst or of its first beat.
  output time_t                rel_o,
  /// Cycle in which the slot becomes due.
  output cycle_t               due_o
);

  // Cycles of 1/phi in Q0.16; odd, so that all 65536 values come up.
  localparam logic [15:0] Golden = 16'd40503;
  localparam int unsigned ProdWidth = TimeWidth + 9;

  logic [63-PageBits:0] page;
  logic [NumRegions-1:0] hit;
  time_t base, beat;

  assign page = (64 - PageBits)'(addr_i >> PageBits);
  assign beat_o = beat;

  always_comb begin
    for (int unsigned r = 0; r < NumRegions; r++) begin
      hit[r] = config_i.region_enable[r] && page[63-PageBits:32] == '0
               && page[31:0] >= config_i.first[r] && page[31:0] <= config_i.last[r];
    end
    base = config_i.base[NumRegions];
    beat = config_i.beat[NumRegions];
    for (int r = int'(NumRegions) - 1; r >= 0; r--) begin
      if (hit[r]) begin
        base = config_i.base[r];
        beat = config_i.beat[r];
      end
    end
  end

  // a: parameters looked up; b: multiplied; c: added
  logic go, a_valid_q, b_valid, c_valid_q;
  slot_t a_slot_q, b_slot, c_slot_q;
  time_t a_base_q, a_beat_q, b_base, c_rel_q;
  cycle_t a_rx_q, b_rx, c_rx_q;
  logic [ProdWidth-1:0] b_prod;
  logic [15:0] dither_q;
  logic [ProdWidth:0] sum;

  assign go = !c_valid_q || ready_i;
  assign ready_o = go;
  assign sum = (ProdWidth + 1)'(b_base) + (ProdWidth + 1)'(b_prod) + (ProdWidth + 1)'(dither_q[15-:FracBits]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_valid_q <= 1'b0;
      c_valid_q <= 1'b0;
      dither_q <= '0;
    end else if (go) begin
      a_valid_q <= accept_i && config_i.enable;
      c_valid_q <= b_valid;
      if (b_valid) dither_q <= dither_q + Golden;
    end
  end

  always_ff @(posedge clk_i) begin
    if (go && accept_i) begin
      a_slot_q <= slot_i;
      a_base_q <= base;
      a_beat_q <= beat;
      a_rx_q <= now_i;
    end
    if (go && b_valid) begin
      c_slot_q <= b_slot;
      c_rel_q <= (sum[ProdWidth:TimeWidth] != '0) ? '1 : sum[TimeWidth-1:0];
      c_rx_q <= b_rx;
    end
  end

  if (WholeBurst) begin : gen_burst
    logic b_valid_q;
    slot_t b_slot_q;
    time_t b_base_q;
    cycle_t b_rx_q;
    logic [8:0] a_beats_q;
    logic [ProdWidth-1:0] b_prod_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) b_valid_q <= 1'b0;
      else if (go) b_valid_q <= a_valid_q;
    end
    always_ff @(posedge clk_i) begin
      if (go && accept_i) a_beats_q <= 9'(len_i) + 9'd1;
      if (go && a_valid_q) begin
        b_slot_q <= a_slot_q;
        b_base_q <= a_base_q;
        b_prod_q <= ProdWidth'(a_beat_q) * ProdWidth'(a_beats_q);
        b_rx_q <= a_rx_q;
      end
    end
    assign b_valid = b_valid_q;
    assign b_slot = b_slot_q;
    assign b_base = b_base_q;
    assign b_prod = b_prod_q;
    assign b_rx = b_rx_q;
  end else begin : gen_first
    logic unused_len;
    assign unused_len = ^len_i;
    assign b_valid = a_valid_q;
    assign b_slot = a_slot_q;
    assign b_base = a_base_q;
    assign b_prod = ProdWidth'(a_beat_q);
    assign b_rx = a_rx_q;
  end

  assign valid_o = c_valid_q;
  assign slot_o = c_slot_q;
  assign rel_o = c_rel_q;
  assign due_o = c_rx_q + cycle_t'(c_rel_q[TimeWidth-1:FracBits]) - cycle_t'(Lead);

endmodule
