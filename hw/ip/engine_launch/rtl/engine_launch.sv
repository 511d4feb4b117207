// SPDX-License-Identifier: Apache-2.0

// Arbitrates the jobs of several sources for one engine that performs one job at a time.
//
// A source requests with its job's arguments until the job has ended. A stop request is passed to
// the engine while the source's job runs. A job that has not started ends immediately when it is
// stopped, whatever the engine is working on.
`include "ns_assert.svh"

module engine_launch #(
  /// Number of sources.
  parameter int unsigned N     = 2,
  /// Bits of a job's arguments.
  parameter int unsigned Width = 64
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  /// From registers: a job is in progress.
  output logic                    busy_o,

  /// A source has a job; held until it has ended.
  input  logic [N-1:0]            request_i,
  /// Its arguments, held with the request.
  input  logic [N-1:0][Width-1:0] args_i,
  /// Its job is to end early; held until it has ended.
  input  logic [N-1:0]            stop_i,
  /// Its job ends in this cycle.
  output logic [N-1:0]            done_o,
  /// With done_o: the job has not started.
  output logic [N-1:0]            dropped_o,

  /// A job starts, for one cycle. The engine is idle.
  output logic                    start_o,
  /// Its arguments, until the next one starts.
  output logic [Width-1:0]        args_o,
  /// It is to end early.
  output logic                    stop_o,
  /// The job ends.
  input  logic                    done_i
);

  logic [N-1:0] gnt, source_q;
  logic [ns_axi_pkg::idx_width(N)-1:0] idx;
  logic grant_valid, grant, start_q;

  assign grant = source_q == '0 && grant_valid;

  ns_rr_arbiter #(
    .N(N)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (request_i & ~stop_i),
    .next_i (grant),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(grant_valid)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      source_q <= '0;
      start_q  <= 1'b0;
    end else begin
      start_q <= grant;
      if (grant) source_q <= gnt;
      else if (done_i) source_q <= '0;
    end
  end

  always_ff @(posedge clk_i) if (grant) args_o <= args_i[idx];

  assign start_o = start_q;
  assign stop_o = (source_q & stop_i) != '0;
  assign dropped_o = request_i & stop_i & ~source_q;
  assign done_o = source_q & {N{done_i}} | dropped_o;
  assign busy_o = source_q != '0;

  `NS_ASSERT(requests_until_the_end, (source_q & ~request_i) == '0)
  `NS_ASSERT(ends_once, !done_i || (source_q != '0 && !start_q))

endmodule
