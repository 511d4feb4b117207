// SPDX-License-Identifier: Apache-2.0

// One direction of ns_axi_timeout: ends transactions that are never answered, and drops late
// responses.
//
// It stands in a response channel (R or B) and tracks, per ID, the requested bursts and their
// progress. An ID is stuck if it made no progress for `Cycles` to 2 x `Cycles` while something of
// it was outstanding. Scans that end other IDs may add to that time. All outstanding bursts of a
// stuck ID are answered with errors: each with its missing beats, `last` on its last one. A late
// response is dropped, up to its last beat. So each transaction ends whatever the slave does, and
// the bus stays in step if the slave resumes.
//
// Assumes that responses of one ID arrive in order, each with all requested beats. Also assumes
// that the slave accepts addresses and write data eventually. An address waits while `MaxBursts` of
// its ID are outstanding.
`include "ns_assert.svh"

module ns_axi_timeout_channel
  import ns_axi_pkg::*;
#(
  /// Bits of an ID; those above are 0.
  parameter int unsigned IdBits = 4,
  /// Cycles without progress, at least 2.
  parameter int unsigned Cycles = 6_250_000,
  /// Bursts outstanding of an ID, a power of two.
  parameter int unsigned MaxBursts = 64,
  /// Responses have one beat (B); lengths are ignored.
  parameter bit Single = 1'b0,
  /// Bits of the count of abandoned bursts that may still be answered. A slave that never responds
  /// again adds at most MaxBursts of an ID per timeout. At one timeout in 25 ms the default lasts
  /// for 200 years.
  parameter int unsigned LostBits = 50
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// From registers: active, or late responses of abandoned bursts may still arrive.
  output logic               busy_o,

  /// An address with this ID may be issued. 0 after reset until the tables are cleared.
  output logic               ready_o,
  /// An address is accepted by the slave.
  input  logic               issue_i,
  /// Its ID.
  input  logic [IdWidth-1:0] issue_id_i,
  /// Beats of its response - 1.
  input  logic [7:0]         issue_len_i,

  /// ID of a response from the slave.
  input  logic [IdWidth-1:0] in_id_i,
  /// Last beat of a burst.
  input  logic               in_last_i,
  input  logic               in_valid_i,
  output logic               in_ready_o,
  /// ID of a response towards the master.
  output logic [IdWidth-1:0] out_id_o,
  /// Last beat of a burst.
  output logic               out_last_o,
  /// Abandoned: an error, without data.
  output logic               out_error_o,
  output logic               out_valid_o,
  input  logic               out_ready_i
);

  localparam int unsigned SlotBits = unsigned'($clog2(MaxBursts));
  localparam int unsigned CountBits = SlotBits + 1;
  localparam int unsigned BeatBits = Single ? 1 : 8;
  localparam int unsigned TimerBits = unsigned'($clog2(Cycles + 1));

  typedef logic [IdBits-1:0] idx_t;
  typedef logic [CountBits-1:0] count_t;
  typedef logic [BeatBits-1:0] beat_t;
  typedef logic [LostBits-1:0] lost_t;

  // From `StCount` on no response of the slave is accepted.
  typedef enum logic [2:0] {
    StWait  = 3'b000,
    StScan  = 3'b001,  // is an ID stuck since the last scan?
    StCount = 3'b100,  // count its outstanding bursts, if it is still stuck
    StFetch = 3'b101,  // read the length of the next burst
    StError  = 3'b110,  // send error responses
    StClear = 3'b111
  } state_e;

  state_e state_q;
  idx_t idx_q;
  logic [TimerBits-1:0] timer_q;
  logic [LostBits+IdBits-1:0] lost_q;  // abandoned bursts not yet answered
  logic any_lost_q;                   // 1 at least while lost_q is not 0

  // Per ID: bursts requested, ended, and abandoned; beats delivered of the current burst.
  (* ram_style = "distributed" *) count_t issued_mem[2**IdBits];
  (* ram_style = "distributed" *) count_t ended_mem[2**IdBits];
  (* ram_style = "distributed" *) lost_t lost_mem[2**IdBits];
  (* ram_style = "distributed" *) beat_t beat_mem[2**IdBits];
  // Progress since the last scan: a beat makes the two marks differ, a scan makes them equal,
  // whatever the number of beats. And whether something was outstanding at that scan.
  (* ram_style = "distributed" *) logic mark_mem[2**IdBits];
  (* ram_style = "distributed" *) logic scanned_mem[2**IdBits];
  (* ram_style = "distributed" *) logic outstanding_mem[2**IdBits];

  logic
      clear,
      input_blocked,
      error_valid,
      dropped,
      resp_fire,
      drop_fire,
      error_last_fire,
      stuck,
      idx_last,
      id_done;
  idx_t issue_idx, resp_idx;
  count_t issued_q, ended;
  lost_t lost;
  beat_t beat;
  logic [7:0] len;  // of the abandoned burst
  logic scan, outstanding;

  assign clear = state_q == StClear;
  assign error_valid = state_q == StError;
  assign scan = state_q == StScan;
  assign input_blocked = state_q[2];
  assign issue_idx = clear ? idx_q : idx_t'(issue_id_i);
  assign resp_idx = input_blocked ? idx_q : idx_t'(in_id_i);
  assign ended = ended_mem[resp_idx];
  assign lost = lost_mem[resp_idx];
  assign beat = beat_mem[resp_idx];
  assign dropped = any_lost_q && lost != '0;

  assign in_ready_o = out_ready_i && !input_blocked;
  assign out_valid_o = error_valid || (in_valid_i && !input_blocked && !dropped);
  assign out_error_o = error_valid;
  assign out_last_o = error_valid ? (Single || 8'(beat) == len) : in_last_i;
  assign out_id_o = error_valid ? IdWidth'(idx_q) : in_id_i;

  assign resp_fire = out_valid_o && out_ready_i;
  assign error_last_fire = error_valid && out_ready_i && out_last_o;
  assign drop_fire = in_valid_i && in_ready_o && dropped && in_last_i;

  always_ff @(posedge clk_i) begin
    if (issue_i || clear) issued_mem[issue_idx] <= clear ? '0 : issued_mem[issue_idx] + 1'b1;
    if (resp_fire || clear) begin
      ended_mem[resp_idx] <= clear ? '0 : ended + count_t'(out_last_o);
      beat_mem[resp_idx] <= (clear || out_last_o) ? '0 : beat + 1'b1;
      mark_mem[resp_idx] <= clear ? 1'b0 : (scan && resp_idx == idx_q) ? !mark_mem[idx_q] : !scanned_mem[resp_idx];
    end
    if (error_last_fire || drop_fire || clear)
      lost_mem[resp_idx] <= clear ? '0 : error_valid ? lost + 1'b1 : lost - 1'b1;
    if (scan || clear) begin
      scanned_mem[idx_q] <= clear ? 1'b0 : mark_mem[idx_q];
      outstanding_mem[idx_q] <= clear ? 1'b0 : outstanding;
    end
  end

  if (Single) begin : gen_single
    logic unused_len;
    assign unused_len = ^issue_len_i;
    assign len = '0;
  end else begin : gen_lengths
    ns_ram_1r1w #(
      .Width(8),
      .Depth(MaxBursts << IdBits)
    ) u_lengths (
      .clk_i,
      .we_i   (issue_i),
      .waddr_i({issue_idx, issued_mem[issue_idx][SlotBits-1:0]}),
      .wdata_i(issue_len_i),
      .re_i   (state_q == StFetch),
      .raddr_i({idx_q, ended[SlotBits-1:0]}),
      .rdata_o(len)
    );
  end

  assign outstanding = issued_mem[idx_q] != ended_mem[idx_q];
  assign stuck = outstanding && outstanding_mem[idx_q] && mark_mem[idx_q] == scanned_mem[idx_q];
  assign idx_last = idx_q == '1;

  always_comb begin
    unique case (state_q)
      StScan, StCount: id_done = !stuck;
      StError: id_done = error_last_fire && count_t'(ended + 1'b1) == issued_q;
      default: id_done = 1'b0;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StClear;
      idx_q <= '0;
      timer_q <= TimerBits'(Cycles);
      lost_q <= '0;
      any_lost_q <= 1'b0;
    end else begin
      // The time between two scans of an ID never falls below `Cycles`, however long a scan takes.
      timer_q <= (state_q != StWait) ? TimerBits'(Cycles) : timer_q - 1'b1;
      if (clear || id_done) idx_q <= idx_q + 1'b1;
      unique case (state_q)
        StClear: if (idx_last) state_q <= StWait;
        StWait:  if (timer_q == '0) state_q <= StScan;
        StScan:  if (stuck) state_q <= StCount;
                 else if (idx_last) state_q <= StWait;
        StCount: state_q <= stuck ? StFetch : idx_last ? StWait : StScan;
        StFetch: state_q <= StError;
        default: if (error_last_fire) state_q <= !id_done ? StFetch : idx_last ? StWait : StScan;
      endcase

      if (error_last_fire) lost_q <= lost_q + 1'b1;
      else if (drop_fire) lost_q <= lost_q - 1'b1;
      any_lost_q <= error_valid || lost_q != '0;
    end
  end

  always_ff @(posedge clk_i) if (state_q == StCount) issued_q <= issued_mem[idx_q];

  count_t issue_outstanding;  // outstanding of the ID
  assign issue_outstanding = issued_mem[issue_idx] - ended_mem[issue_idx];
  assign ready_o = !clear && issue_outstanding != count_t'(MaxBursts);
  assign busy_o = clear || input_blocked || any_lost_q;

  if (IdBits < 1 || IdBits > IdWidth) begin : gen_bad_bits
    $error("ns_axi_timeout_channel: IdBits must be 1 to 12");
  end
  if (Cycles < 2) begin : gen_bad_cycles
    $error("ns_axi_timeout_channel: Cycles must be at least 2");
  end
  if (MaxBursts < 2 || (MaxBursts & (MaxBursts - 1)) != 0) begin : gen_bad_bursts
    $error("ns_axi_timeout_channel: MaxBursts must be a power of two of at least 2");
  end

  `NS_ASSERT(issue_when_ready, !issue_i || ready_o)
  `NS_ASSERT(known_bits, !issue_i || (issue_id_i >> IdBits) == '0)
  `NS_ASSERT(lost_are_counted, !drop_fire || lost_q != '0)
  `NS_ASSERT(response_was_requested,
             !(in_valid_i && in_ready_o) || issued_mem[resp_idx] != ended || lost != '0)

endmodule
