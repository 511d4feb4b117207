// SPDX-License-Identifier: Apache-2.0

// msix_order with any writes and requests, observed at one vector.
//
// Shown: a request is raised only after all writes that had entered by then have left. It is raised
// once, within `Bound` cycles of the last of them, whatever other vectors request meanwhile.
// Assumes that the vector requests again only after that.
`include "ns_assert.svh"

module msix_order_proof #(
  /// Number of vectors.
  parameter int unsigned NumVectors = 2,
  /// Writes in flight.
  parameter int unsigned MaxWrites  = 3,
  parameter int unsigned Bound      = 5
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [NumVectors-1:0] irq_i,
  input logic                  enter_i,
  input logic                  leave_i,
  input logic                  v  // the vector
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic v_q;
  always_ff @(posedge clk_i) v_q <= v;
  TheSame :
  assume property (@(posedge clk_i) !started_q || v == v_q);
  logic busy;
  logic [NumVectors-1:0] raise, irq_q;

  msix_order #(
    .NumVectors(NumVectors),
    .MaxWrites (MaxWrites)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o (busy),
    .irq_i,
    .enter_i,
    .leave_i,
    .raise_o(raise)
  );

  // Writes in flight, and those that were in flight when the vector requested.
  logic [2:0] count_q, before_q, count;
  logic [3:0] late_q;
  logic requests, pending_q;
  assign requests = irq_i[v] && !irq_q[v];
  assign count = count_q + 3'(enter_i) - 3'(leave_i);
  `NS_ASSUME(room, !(enter_i && !leave_i) || 32'(count_q) < MaxWrites)
  `NS_ASSUME(leaves_in_flight, !leave_i || count_q != '0)
  `NS_ASSUME(one_at_a_time, !requests || !pending_q)

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      irq_q    <= '0;
      count_q  <= '0;
      before_q <= '0;
      pending_q   <= 1'b0;
      late_q   <= '0;
    end else begin
      irq_q   <= irq_i;
      count_q <= count;
      if (requests) before_q <= count;
      else if (leave_i && before_q != '0) before_q <= before_q - 1'b1;
      pending_q <= requests || (pending_q && !raise[v]);
      // Requests of others may wait for later writes; then all of those must leave.
      late_q <= (pending_q && count_q == '0) ? late_q + 4'(late_q != '1) : '0;
    end
  end

  `NS_ASSERT(after_its_writes, !raise[v] || before_q == '0)
  `NS_ASSERT(once, !raise[v] || pending_q)
  `NS_ASSERT(in_time, 32'(late_q) <= Bound)
  `NS_ASSERT(busy_until_then, !pending_q || busy)
  `NS_COVER(waited, raise[v] && count_q != '0)


endmodule
