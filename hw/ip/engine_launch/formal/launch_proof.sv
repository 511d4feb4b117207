// engine_launch with three sources that ask and stop when they like, and an engine that takes as long as it likes.
//
// A source's arguments are its number. Shown: one job at a time, with the arguments of a source that asks; each job that has begun ends
// with the engine's word, one that has not only if it is to end, and then at once, whatever the engine works on; the engine is told of
// a stop of its own job alone; whoever asks and does not stop waits for two other jobs at most.
`include "ns_assert.svh"

module launch_proof (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [2:0] ask_i,
  input logic [2:0] stop_i,
  input logic       end_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic [2:0] want_q, stop_q, done, dropped;
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
    .request_i(want_q),
    .args_i   (args),
    .stop_i   (stop_q),
    .done_o   (done),
    .dropped_o(dropped),
    .start_o  (start),
    .args_o   (job),
    .stop_o   (stop),
    .done_i   (finish)
  );

  // A source asks until its job has ended, and may want that to be soon.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      want_q <= '0;
      stop_q <= '0;
    end else begin
      want_q <= (want_q & ~done) | (~want_q & ask_i);
      stop_q <= want_q & ~done & (stop_q | stop_i);
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

  // The job under way, from its start on.
  logic [1:0] own;
  logic runs;
  assign own = start ? job : source_q;
  assign runs = start || working_q;

  `NS_ASSERT(one_at_a_time, !(start && working_q))
  `NS_ASSERT(of_one_who_asks, !start || (job != 2'd3 && want_q[job]))
  `NS_ASSERT(busy_while_it_works, !runs || busy)
  `NS_ASSERT(begun_ends_by_the_engine, done == ((finish ? 3'd1 << source_q : '0) | dropped))
  `NS_ASSERT(dropped_since_stopped, (dropped & ~(want_q & stop_q)) == '0)
  `NS_ASSERT(dropped_has_not_begun, !runs || !dropped[own])
  `NS_ASSERT(stop_is_its_own, !runs || stop == stop_q[own])
  for (genvar i = 0; i < 3; i++) begin : gen_source
    `NS_ASSERT(stopped_ends_at_once,
               !(want_q[i] && stop_q[i]) || dropped[i] || (runs && own == 2'(i)))

    logic [1:0] passed_q;  // jobs of others that have begun since it asked
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) passed_q <= '0;
      else if (!want_q[i] || done[i] || (start && job == 2'(i))) passed_q <= '0;
      else if (start && passed_q != 2'd3) passed_q <= passed_q + 1'b1;
    end
    `NS_ASSERT(turns, passed_q <= 2'd2)
  end

endmodule
