// One direction of ns_axi_timeout: ends transactions that are never answered, and drops answers that come too late.
//
// It stands in a channel of responses (R or B) and counts, ID by ID, the beats asked for and those handed on. When an ID
// has made no progress for `Cycles` to 2 x `Cycles` while something of it was outstanding, all that it is owed is handed on
// as errors, and as many of its later beats are dropped when they come. So each transaction ends, whatever the slave does,
// and the bus stays in step if it comes back. Beats given up are single: `last` of a burst
// does not count.
//
// It assumes that responses of one ID come in order, and that addresses and write data are accepted in the end.
`include "ns_assert.svh"

module ns_axi_timeout_ids
  import ns_axi_pkg::*;
#(
  /// Bits of an ID; those above are 0.
  parameter int unsigned IdBits = 4,
  /// Cycles, at least 4 for each ID.
  parameter int unsigned Cycles   = 6_250_000
) (
  /// Clock.
  input  logic               clk_i,
  /// Reset, active low.
  input  logic               rst_ni,
  /// From registers: it works, or answers that it has given up may still come.
  output logic               busy_o,

  /// Addresses may be issued. 0 for a while after reset.
  output logic               ready_o,
  /// An address is accepted by the slave.
  input  logic               issue_i,
  /// Its ID.
  input  logic [IdWidth-1:0] issue_id_i,
  /// Beats of its response.
  input  logic [8:0]         issue_beats_i,

  /// ID of a response from the slave.
  input  logic [IdWidth-1:0] in_id_i,
  /// Valid.
  input  logic               in_valid_i,
  /// Ready.
  output logic               in_ready_o,
  /// ID of a response towards the master.
  output logic [IdWidth-1:0] out_id_o,
  /// It has been given up: an error, without data.
  output logic               out_error_o,
  /// Valid.
  output logic               out_valid_o,
  /// Ready.
  input  logic               out_ready_i
);

  localparam int unsigned CountBits = 12;  // of the beats outstanding of an ID
  // Of the beats given up of an ID: a slave that never answers again costs at most 2**CountBits of them in a time-out. At one
  // in 25 ms these are enough for 200 years.
  localparam int unsigned LostBits = 50;
  localparam int unsigned TimerBits = unsigned'($clog2(Cycles + 1));

  typedef logic [IdBits-1:0] idx_t;
  typedef logic [CountBits-1:0] count_t;
  typedef logic [LostBits-1:0] lost_t;

  typedef enum logic [2:0] {
    StClear,
    StWait,
    StScan,   // read an ID's counts
    StJudge,  // has it been stuck since the last time?
    StHold,   // read them again while nothing comes
    StCount,  // what is owed
    StGive    // hand errors on
  } state_e;

  state_e state_q;
  idx_t idx_q;
  logic [TimerBits-1:0] timer_q;
  count_t left_q;
  logic [LostBits+IdBits-1:0] lost_q;  // beats given up that have not come yet
  logic any_lost_q;                   // 1 at least as long as lost_q is not 0

  // Beats asked for, handed on, given up and still to come; and those handed on when last looked at, with a bit
  // that there were more to come.
  (* ram_style = "distributed" *) count_t issued_mem[2**IdBits];
  (* ram_style = "distributed" *) count_t given_mem[2**IdBits];
  (* ram_style = "distributed" *) lost_t lost_mem[2**IdBits];
  (* ram_style = "distributed" *) logic [CountBits:0] seen_mem[2**IdBits];

  logic clear, hold, giving, dropped, resp_fire, drop_fire, give_fire, stuck, idx_last;
  idx_t issue_idx, resp_idx;
  count_t issued_q, given_q;
  lost_t lost;
  logic [CountBits:0] seen_q;

  assign clear = state_q == StClear;
  assign giving = state_q == StGive;
  assign hold = state_q == StHold || state_q == StCount || giving || clear;
  assign issue_idx = clear ? idx_q : idx_t'(issue_id_i);
  assign resp_idx = (giving || clear) ? idx_q : idx_t'(in_id_i);
  assign lost = lost_mem[resp_idx];
  assign dropped = any_lost_q && lost != '0;

  assign in_ready_o = out_ready_i && !hold;
  assign out_valid_o = giving || (in_valid_i && !hold && !dropped);
  assign out_error_o = giving;
  assign out_id_o = giving ? IdWidth'(idx_q) : in_id_i;

  assign resp_fire = out_valid_o && out_ready_i;
  assign give_fire = giving && out_ready_i;
  assign drop_fire = in_valid_i && in_ready_o && dropped;

  always_ff @(posedge clk_i) begin
    if (issue_i || clear)
      issued_mem[issue_idx] <= clear ? '0 : issued_mem[issue_idx] + count_t'(issue_beats_i);
    if (resp_fire || clear) given_mem[resp_idx] <= clear ? '0 : given_mem[resp_idx] + 1'b1;
    if (give_fire || drop_fire || clear)
      lost_mem[resp_idx] <= clear ? '0 : giving ? lost + 1'b1 : lost - 1'b1;
    if (state_q == StJudge || clear) seen_mem[idx_q] <= clear ? '0 : {issued_q != given_q, given_q};
  end

  assign stuck = issued_q != given_q && seen_q == {1'b1, given_q};
  assign idx_last = idx_q == '1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StClear;
      idx_q <= '0;
      timer_q <= TimerBits'(Cycles);
      lost_q <= '0;
      any_lost_q <= 1'b0;
    end else begin
      timer_q <= (timer_q == '0) ? TimerBits'(Cycles) : timer_q - 1'b1;
      unique case (state_q)
        StClear: begin
          idx_q <= idx_q + 1'b1;
          if (idx_last) state_q <= StWait;
        end
        StWait:  if (timer_q == '0) state_q <= StScan;
        StScan:  state_q <= StJudge;
        StJudge: begin
          if (stuck) state_q <= StHold;
          else begin
            idx_q <= idx_q + 1'b1;
            state_q <= idx_last ? StWait : StScan;
          end
        end
        StHold:  state_q <= StCount;
        StCount: begin
          if (stuck) state_q <= StGive;
          else begin
            idx_q <= idx_q + 1'b1;
            state_q <= idx_last ? StWait : StScan;
          end
        end
        default: begin
          if (out_ready_i && left_q == count_t'(1)) begin
            idx_q <= idx_q + 1'b1;
            state_q <= idx_last ? StWait : StScan;
          end
        end
      endcase

      if (give_fire) lost_q <= lost_q + 1'b1;
      else if (drop_fire) lost_q <= lost_q - 1'b1;
      any_lost_q <= giving || lost_q != '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StScan || state_q == StHold) begin
      issued_q <= issued_mem[idx_q];
      given_q <= given_mem[idx_q];
    end
    if (state_q == StScan) seen_q <= seen_mem[idx_q];
    if (state_q == StCount) left_q <= issued_q - given_q;
    else if (give_fire) left_q <= left_q - 1'b1;
  end

  assign ready_o = !clear;
  assign busy_o = clear || hold || any_lost_q;

  if (IdBits < 1 || IdBits > IdWidth) begin : gen_bad_bits
    $error("ns_axi_timeout_ids: IdBits must be 1 to 12");
  end
  if (Cycles < 2 ** (IdBits + 2)) begin : gen_bad_cycles
    $error("ns_axi_timeout_ids: Cycles must be at least 4 for each ID");
  end

  `NS_ASSERT(issue_when_ready, !issue_i || ready_o)
  `NS_ASSERT(known_bits, !issue_i || (issue_id_i >> IdBits) == '0)
  `NS_ASSERT(
      outstanding_are_counted,
      !issue_i || 32'(count_t'(issued_mem[issue_idx] - given_mem[issue_idx])) + 32'(issue_beats_i) < 2 ** CountBits)
  `NS_ASSERT(lost_are_counted, !drop_fire || lost_q != '0)
  `NS_ASSERT(
      response_was_asked_for,
      !(in_valid_i && in_ready_o) || issued_mem[resp_idx] != given_mem[resp_idx] || lost != '0)

endmodule
