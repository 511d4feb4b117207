// SPDX-License-Identifier: Apache-2.0

// Weighted round-robin arbiter with urgent requesters.
//
// Urgent requesters have priority, round robin among themselves. The others are served in rounds,
// in each of which a requester may use up its weight. The last grant of a round may exceed the
// weight; the excess is deducted from the next rounds. When no requester has weight left, a new
// round starts, which takes one cycle. So shares follow the weights whatever the sizes of requests,
// and nothing is reserved for idle requesters. As in ns_rr_arbiter, the grant stays until `next_i`,
// unless an urgent request arrives.
`include "ns_assert.svh"

module ns_wrr_arbiter #(
  /// Number of requesters.
  parameter int unsigned N = 4,
  /// Bits of a weight.
  parameter int unsigned WeightBits = 8,
  /// Bits of a cost.
  parameter int unsigned CostBits = 9,
  localparam int unsigned IdxBits = N > 1 ? unsigned'($clog2(N)) : 1
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  /// Requesters with priority. From a register.
  input  logic [N-1:0]                 urgent_i,
  /// Weight of each of the others per round, at least 1. From registers.
  input  logic [N-1:0][WeightBits-1:0] weight_i,
  /// Requests.
  input  logic [N-1:0]                 req_i,
  /// Cost of each request.
  input  logic [N-1:0][CostBits-1:0]   cost_i,
  /// The grant is used: advance. Ignored while there is none.
  input  logic                         next_i,
  /// Grant, one-hot or zero.
  output logic [N-1:0]                 gnt_o,
  /// Number of the requester granted, 0 if none.
  output logic [IdxBits-1:0]           idx_o,
  /// There is a grant.
  output logic                         valid_o
);

  // Weight left, or excess below 0: less than the highest cost.
  localparam int unsigned BalanceBits = ((WeightBits > CostBits) ? WeightBits : CostBits) + 1;
  typedef logic signed [BalanceBits-1:0] balance_t;

  balance_t balance_q[N];
  logic [N-1:0] eligible_q;  // weight is left
  logic [N-1:0] urgent, eligible, candidates;
  logic round_start;

  assign urgent = req_i & urgent_i;
  assign eligible = req_i & eligible_q;
  assign candidates = (urgent != '0) ? urgent : eligible;
  assign round_start = req_i != '0 && candidates == '0;

  ns_rr_arbiter #(
    .N(N)
  ) u_turns (
    .clk_i,
    .rst_ni,
    .req_i  (candidates),
    .next_i,
    .gnt_o,
    .idx_o,
    .valid_o
  );

  for (genvar i = 0; i < N; i++) begin : gen_balance
    balance_t weight, sum, balance_d;
    assign weight = balance_t'({1'b0, weight_i[i]});
    assign sum = balance_q[i] + weight;

    always_comb begin
      balance_d = balance_q[i];
      if (round_start) balance_d = (balance_q[i] > 0 || sum > weight) ? weight : sum;
      else if (gnt_o[i] && next_i && !urgent_i[i])
        balance_d = balance_q[i] - balance_t'({1'b0, cost_i[i]});
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        balance_q[i] <= balance_t'(1);
        eligible_q[i] <= 1'b1;
      end else begin
        balance_q[i] <= balance_d;
        eligible_q[i] <= balance_d > 0;
      end
    end

    `NS_ASSERT(weight_is_not_zero, weight_i[i] != '0 || urgent_i[i])
    `NS_ASSERT(excess_below_one_burst, balance_q[i] > -balance_t'(2 ** CostBits - 1))
  end

  `NS_ASSERT(urgent_first, urgent == '0 || (gnt_o & ~urgent_i) == '0)
  `NS_ASSERT(granted_or_round_start, (req_i != '0) == (valid_o || round_start))

endmodule
