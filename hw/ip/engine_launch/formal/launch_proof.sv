// SPDX-License-Identifier: Apache-2.0

// engine_launch with three sources that request and stop at any time, and an engine that runs for
// any time.
//
// A source's arguments are its number. Shown: one job at a time, with the arguments of a requesting
// source. Each started job ends by the engine's word. A job that has not started ends only when it
// is stopped, and then immediately, whatever the engine works on. The engine receives stops of its
// current job only. A source that does not stop waits for two other jobs at most.
`include "ns_assert.svh"

module launch_proof (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [2:0] request_i,
  input logic [2:0] stop_i,
  input logic       end_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic [2:0] request_q, stop_q, done, dropped;
  logic [2:0][1:0] args;
  logic [1:0] job;
  logic busy, start, stop, finish;
  logic working_q;  // the engine
  logic [1:0] source_q;
  assign args = {2'd2, 2'd1, 2'd0};
  assign finish = working_q && end_i;

  engine_launch #(
    .N    (3),
    .Width(2)
  ) u_launch (
    .clk_i,
    .rst_ni,
    .busy_o   (busy),
    .request_i(request_q),
    .args_i   (args),
    .stop_i   (stop_q),
    .done_o   (done),
    .dropped_o(dropped),
    .start_o  (start),
    .args_o   (job),
    .stop_o   (stop),
    .done_i   (finish)
  );

  // A source requests until its job has ended, and may stop it early.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      request_q <= '0;
      stop_q <= '0;
    end else begin
      request_q <= (request_q & ~done) | (~request_q & request_i);
      stop_q <= request_q & ~done & (stop_q | stop_i);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      working_q <= 1'b0;
      source_q  <= '0;
    end else begin
      if (start) begin
        working_q <= 1'b1;
        source_q  <= job;
      end else if (finish) begin
        working_q <= 1'b0;
      end
    end
  end

  // The current job, from its start on.
  logic [1:0] current;
  logic running;
  assign current = start ? job : source_q;
  assign running = start || working_q;

  `NS_ASSERT(one_at_a_time, !(start && working_q))
  `NS_ASSERT(job_was_requested, !start || (job != 2'd3 && request_q[job]))
  `NS_ASSERT(busy_while_running, !running || busy)
  `NS_ASSERT(started_ends_by_the_engine, done == ((finish ? 3'd1 << source_q : '0) | dropped))
  `NS_ASSERT(dropped_since_stopped, (dropped & ~(request_q & stop_q)) == '0)
  `NS_ASSERT(dropped_has_not_started, !running || !dropped[current])
  `NS_ASSERT(stop_matches_job, !running || stop == stop_q[current])
  for (genvar i = 0; i < 3; i++) begin : gen_source
    `NS_ASSERT(stopped_ends_immediately,
               !(request_q[i] && stop_q[i]) || dropped[i] || (running && current == 2'(i)))

    logic [1:0] passed_q;  // jobs of others started since its request
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) passed_q <= '0;
      else if (!request_q[i] || done[i] || (start && job == 2'(i))) passed_q <= '0;
      else if (start && passed_q != 2'd3) passed_q <= passed_q + 1'b1;
    end
    `NS_ASSERT(wait_is_bounded, passed_q <= 2'd2)
  end

endmodule
