// Lets several sources start one engine that does one job at a time, each in its turn: registers, NVMe commands.
//
// A source asks with its job's arguments until the job has ended. What it asks to end is told the engine as long as its job lasts; a
// job that has not begun ends at once then, whatever the engine works on.
`include "ns_assert.svh"

module engine_launch #(
  /// Sources.
  parameter int unsigned N     = 2,
  /// Bits of a job's arguments.
  parameter int unsigned Width = 64
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  /// From registers: a job has begun and not ended.
  output logic                    busy_o,

  /// A source has a job; until it has ended.
  input  logic [N-1:0]            want_i,
  /// Its arguments, as long as it asks.
  input  logic [N-1:0][Width-1:0] args_i,
  /// It asks for the end of its job, until then.
  input  logic [N-1:0]            stop_i,
  /// Its job ends in this cycle.
  output logic [N-1:0]            done_o,
  /// And has not begun.
  output logic [N-1:0]            dropped_o,

  /// A job begins, for one cycle. The engine rests.
  output logic                    start_o,
  /// Its arguments, until the next one begins.
  output logic [Width-1:0]        args_o,
  /// It is to end early.
  output logic                    stop_o,
  /// It ends.
  input  logic                    done_i
);

  logic [N-1:0] gnt, source_q;
  logic [ns_axi_pkg::idx_width(N)-1:0] idx;
  logic any, begins, start_q;

  assign begins = source_q == '0 && any;

  ns_rr_arbiter #(
    .N(N)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (want_i & ~stop_i),
    .next_i (begins),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(any)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      source_q <= '0;
      start_q  <= 1'b0;
    end else begin
      start_q <= begins;
      if (begins) source_q <= gnt;
      else if (done_i) source_q <= '0;
    end
  end

  always_ff @(posedge clk_i) if (begins) args_o <= args_i[idx];

  assign start_o = start_q;
  assign stop_o = (source_q & stop_i) != '0;
  assign dropped_o = want_i & stop_i & ~source_q;
  assign done_o = source_q & {N{done_i}} | dropped_o;
  assign busy_o = source_q != '0;

  `NS_ASSERT(asks_until_the_end, (source_q & ~want_i) == '0)
  `NS_ASSERT(ends_once, !done_i || (source_q != '0 && !start_q))

endmodule
