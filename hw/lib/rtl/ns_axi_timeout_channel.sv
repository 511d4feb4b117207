// One direction of ns_axi_timeout: ends transactions that are never answered, and drops answers that come too late.
//
// It stands in a channel of responses (R or B) and knows, ID by ID, the bursts asked for and how far they have been handed
// on. When an ID has made no progress for `Cycles` to 2 x `Cycles` (and the time that looks at others take) while something
// of it was outstanding, all that it is owed is handed on as errors: each burst with the beats that it still lacks, `last`
// with its last. An answer that comes after all is dropped, up to its own last beat. So each transaction ends, whatever
// the slave does, and the bus stays in step if it comes back.
//
// It assumes that responses of one ID come in order, each with as many beats as asked for, and that addresses and write data
// are accepted in the end. An address waits while `MaxBursts` of its ID are outstanding.
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
  /// Responses have one beat (B); lengths are not looked at.
  parameter bit Single = 1'b0,
  /// Bits of the number of bursts given up that may still come. A slave that never answers again costs at most MaxBursts of
  /// an ID in a time-out: at one in 25 ms these are enough for 200 years.
  parameter int unsigned LostBits = 50
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// From registers: it works, or answers that it has given up may still come.
  output logic               busy_o,

  /// An address with this ID may be issued. 0 for a while after reset.
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
  /// It has been given up: an error, without data.
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

  // From `StCount` on nothing is taken from the slave.
  typedef enum logic [2:0] {
    StWait  = 3'b000,
    StLook  = 3'b001,  // has an ID been stuck since the last look?
    StCount = 3'b100,  // what it is owed, if it still is
    StFetch = 3'b101,  // the length of the next burst
    StGive  = 3'b110,  // hand errors on
    StClear = 3'b111
  } state_e;

  state_e state_q;
  idx_t idx_q;
  logic [TimerBits-1:0] timer_q;
  logic [LostBits+IdBits-1:0] lost_q;  // bursts given up that have not come yet
  logic any_lost_q;                   // 1 at least as long as lost_q is not 0

  // Bursts asked for, ended, given up and still to come; beats handed on of the burst that goes on.
  (* ram_style = "distributed" *) count_t issued_mem[2**IdBits];
  (* ram_style = "distributed" *) count_t ended_mem[2**IdBits];
  (* ram_style = "distributed" *) lost_t lost_mem[2**IdBits];
  (* ram_style = "distributed" *) beat_t beat_mem[2**IdBits];
  // What has moved since it was last looked at: a beat makes the two marks differ, a look makes them equal, however many
  // beats there were. And whether something was owed at that look.
  (* ram_style = "distributed" *) logic mark_mem[2**IdBits];
  (* ram_style = "distributed" *) logic looked_mem[2**IdBits];
  (* ram_style = "distributed" *) logic owed_mem[2**IdBits];

  logic clear, hold, giving, dropped, resp_fire, drop_fire, give_fire, stuck, idx_last, next_id;
  idx_t issue_idx, resp_idx;
  count_t issued_q, ended;
  lost_t lost;
  beat_t beat;
  logic [7:0] len;  // of the burst being given up
  logic look, open;

  assign clear = state_q == StClear;
  assign giving = state_q == StGive;
  assign look = state_q == StLook;
  assign hold = state_q[2];
  assign issue_idx = clear ? idx_q : idx_t'(issue_id_i);
  assign resp_idx = hold ? idx_q : idx_t'(in_id_i);
  assign ended = ended_mem[resp_idx];
  assign lost = lost_mem[resp_idx];
  assign beat = beat_mem[resp_idx];
  assign dropped = any_lost_q && lost != '0;

  assign in_ready_o = out_ready_i && !hold;
  assign out_valid_o = giving || (in_valid_i && !hold && !dropped);
  assign out_error_o = giving;
  assign out_last_o = giving ? (Single || 8'(beat) == len) : in_last_i;
  assign out_id_o = giving ? IdWidth'(idx_q) : in_id_i;

  assign resp_fire = out_valid_o && out_ready_i;
  assign give_fire = giving && out_ready_i && out_last_o;
  assign drop_fire = in_valid_i && in_ready_o && dropped && in_last_i;

  always_ff @(posedge clk_i) begin
    if (issue_i || clear) issued_mem[issue_idx] <= clear ? '0 : issued_mem[issue_idx] + 1'b1;
    if (resp_fire || clear) begin
      ended_mem[resp_idx] <= clear ? '0 : ended + count_t'(out_last_o);
      beat_mem[resp_idx] <= (clear || out_last_o) ? '0 : beat + 1'b1;
      mark_mem[resp_idx] <= clear ? 1'b0 : (look && resp_idx == idx_q) ? !mark_mem[idx_q] : !looked_mem[resp_idx];
    end
    if (give_fire || drop_fire || clear)
      lost_mem[resp_idx] <= clear ? '0 : giving ? lost + 1'b1 : lost - 1'b1;
    if (look || clear) begin
      looked_mem[idx_q] <= clear ? 1'b0 : mark_mem[idx_q];
      owed_mem[idx_q] <= clear ? 1'b0 : open;
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

  assign open = issued_mem[idx_q] != ended_mem[idx_q];
  assign stuck = open && owed_mem[idx_q] && mark_mem[idx_q] == looked_mem[idx_q];
  assign idx_last = idx_q == '1;

  always_comb begin
    unique case (state_q)
      StLook, StCount: next_id = !stuck;
      StGive: next_id = give_fire && count_t'(ended + 1'b1) == issued_q;
      default: next_id = 1'b0;
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
      // Between two looks at an ID there are never fewer cycles, however long a look at others takes.
      timer_q <= (state_q != StWait) ? TimerBits'(Cycles) : timer_q - 1'b1;
      if (clear || next_id) idx_q <= idx_q + 1'b1;
      unique case (state_q)
        StClear: if (idx_last) state_q <= StWait;
        StWait:  if (timer_q == '0) state_q <= StLook;
        StLook:  if (stuck) state_q <= StCount;
                 else if (idx_last) state_q <= StWait;
        StCount: state_q <= stuck ? StFetch : idx_last ? StWait : StLook;
        StFetch: state_q <= StGive;
        default: if (give_fire) state_q <= !next_id ? StFetch : idx_last ? StWait : StLook;
      endcase

      if (give_fire) lost_q <= lost_q + 1'b1;
      else if (drop_fire) lost_q <= lost_q - 1'b1;
      any_lost_q <= giving || lost_q != '0;
    end
  end

  always_ff @(posedge clk_i) if (state_q == StCount) issued_q <= issued_mem[idx_q];

  count_t issue_open;  // outstanding of the ID
  assign issue_open = issued_mem[issue_idx] - ended_mem[issue_idx];
  assign ready_o = !clear && issue_open != count_t'(MaxBursts);
  assign busy_o = clear || hold || any_lost_q;

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
  `NS_ASSERT(response_was_asked_for,
             !(in_valid_i && in_ready_o) || issued_mem[resp_idx] != ended || lost != '0)

endmodule
