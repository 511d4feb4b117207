// msix_order with any writes and requests, seen from one vector.
//
// Shown: a request goes on only when all writes that had entered by then have left, goes on once, and does so within `Bound`
// cycles of the last of them, whatever other vectors ask meanwhile. Assumes that the vector asks again only after that.
`include "ns_assert.svh"

module msix_order_proof #(
  /// Vectors.
  parameter int unsigned NumVectors = 2,
  /// Writes on their way.
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

  // Writes on their way, and those of them that were there when the vector asked.
  logic [2:0] count_q, before_q, count;
  logic [3:0] late_q;
  logic asks, owed_q;
  assign asks = irq_i[v] && !irq_q[v];
  assign count = count_q + 3'(enter_i) - 3'(leave_i);
  `NS_ASSUME(room, !(enter_i && !leave_i) || 32'(count_q) < MaxWrites)
  `NS_ASSUME(leaves_what_is_there, !leave_i || count_q != '0)
  `NS_ASSUME(one_at_a_time, !asks || !owed_q)

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      irq_q    <= '0;
      count_q  <= '0;
      before_q <= '0;
      owed_q   <= 1'b0;
      late_q   <= '0;
    end else begin
      irq_q   <= irq_i;
      count_q <= count;
      if (asks) before_q <= count;
      else if (leave_i && before_q != '0) before_q <= before_q - 1'b1;
      owed_q <= asks || (owed_q && !raise[v]);
      // Requests of others may wait for writes that came later than this one's; then all of those must go.
      late_q <= (owed_q && count_q == '0) ? late_q + 4'(late_q != '1) : '0;
    end
  end

  `NS_ASSERT(behind_its_writes, !raise[v] || before_q == '0)
  `NS_ASSERT(once, !raise[v] || owed_q)
  `NS_ASSERT(in_time, 32'(late_q) <= Bound)
  `NS_ASSERT(busy_until_then, !owed_q || busy)
  `NS_COVER(waited, raise[v] && count_q != '0)


endmodule
