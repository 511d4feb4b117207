// SPDX-License-Identifier: Apache-2.0

// nearside_reset with any started writes and any outstanding memory responses.
//
// Shown: the function is not reset in the middle of a write before the whole timeout. The reset is
// not reported as done while responses are outstanding, before the whole timeout. The device is
// stopped before and throughout the reset. A request is answered within both timeouts, and the
// function runs again when the request is withdrawn.
`include "ns_assert.svh"

module reset_proof #(
  /// Cycles of each wait.
  parameter int unsigned Timeout = 16
) (
  input logic clk_i,
  input logic rst_ni,
  input logic request_i,
  input logic begun_i,
  input logic open_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic stop, reset, done, busy;

  logic rst_n;
  nearside_reset #(
    .Timeout(Timeout)
  ) u_reset (
    .clk_i,
    .rst_ni,
    .request_i,
    .started_i(begun_i),
    .open_i,
    .stop_o (stop),
    .reset_o(reset),
    .rst_no (rst_n),
    .done_o (done),
    .busy_o (busy)
  );

  // The protocol: a request stays until it is done.
  logic request_q, write_started_q, open_q, stop_q, reset_q, done_q;
  logic [6:0] stopped_q, resetting_q;  // cycles of each wait
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {request_q, write_started_q, open_q, stop_q, reset_q, done_q} <= '0;
      stopped_q <= '0;
      resetting_q <= '0;
    end else begin
      {request_q, write_started_q, open_q, stop_q, reset_q, done_q} <= {
        request_i, begun_i, open_i, stop, reset, done
      };
      stopped_q <= (stop && !reset) ? stopped_q + 1'b1 : '0;
      resetting_q <= (reset && !done) ? resetting_q + 1'b1 : '0;
    end
  end
  StaysUntilDone :
  assume property (@(posedge clk_i) !request_q || done_q || request_i);

  `NS_ASSERT(no_reset_in_a_write,
             !(reset && !reset_q) || !write_started_q || 32'(stopped_q) > Timeout)
  `NS_ASSERT(not_done_while_outstanding,
             !(done && !done_q) || !open_q || 32'(resetting_q) > Timeout)
  `NS_ASSERT(reset_lasts, !(done && !done_q) || resetting_q >= 7'd8)
  `NS_ASSERT(stopped_throughout, !(reset || done) || (stop && stop_q))
  `NS_ASSERT(first_wait_ends, 32'(stopped_q) <= Timeout + 1)
  `NS_ASSERT(second_wait_ends, 32'(resetting_q) <= Timeout + 1)
  `NS_ASSERT(starts_immediately, !request_q || stop)
  `NS_ASSERT(ends_immediately, !(done_q && !request_q) || !stop)
  `NS_ASSERT(idle_only_without_change, busy || (stop == request_i && done == request_i))
  `NS_COVER(complete_sequence, done_q && !done && stopped_q == '0)

  // One cycle after power-on the function's reset follows requests only.
  `NS_ASSERT(only_on_request, !($past(rst_ni) && reset == rst_n))

endmodule
