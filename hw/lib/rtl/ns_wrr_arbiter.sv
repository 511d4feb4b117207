// Weighted round-robin arbiter with urgent requesters.
//
// Urgent ones go first, in turns. The others go in rounds: in each, a requester may use up its weight; the last grant of a round may exceed
// it, and what is too much is taken from its next rounds. When nobody who asks has anything left, a round begins, which takes a
// cycle. So shares are those of the weights, whatever the sizes of the requests, and nothing is kept for those who do not ask.
// As in ns_rr_arbiter, the grant stays until `next_i`, unless an urgent request comes.
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
  /// Requesters that go first. From a register.
  input  logic [N-1:0]                 urgent_i,
  /// What each of the others may use in a round, at least 1. From registers.
  input  logic [N-1:0][WeightBits-1:0] weight_i,
  /// Requests.
  input  logic [N-1:0]                 req_i,
  /// What each costs.
  input  logic [N-1:0][CostBits-1:0]   cost_i,
  /// The grant is being used: move on. Ignored while there is none.
  input  logic                         next_i,
  /// Grant, one-hot or zero.
  output logic [N-1:0]                 gnt_o,
  /// Number of the requester granted, 0 if none.
  output logic [IdxBits-1:0]           idx_o,
  /// There is a grant.
  output logic                         valid_o
);

  // What is left of a weight, or used beyond it: less than the highest cost.
  localparam int unsigned LeftBits = ((WeightBits > CostBits) ? WeightBits : CostBits) + 1;
  typedef logic signed [LeftBits-1:0] left_t;

  left_t left_q[N];
  logic [N-1:0] able_q;  // something is left
  logic [N-1:0] urgent, able, candidates;
  logic round;

  assign urgent = req_i & urgent_i;
  assign able = req_i & able_q;
  assign candidates = (urgent != '0) ? urgent : able;
  assign round = req_i != '0 && candidates == '0;

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

  for (genvar i = 0; i < N; i++) begin : gen_left
    left_t weight, sum, left_d;
    assign weight = left_t'({1'b0, weight_i[i]});
    assign sum = left_q[i] + weight;

    always_comb begin
      left_d = left_q[i];
      if (round) left_d = (left_q[i] > 0 || sum > weight) ? weight : sum;
      else if (gnt_o[i] && next_i && !urgent_i[i]) left_d = left_q[i] - left_t'({1'b0, cost_i[i]});
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        left_q[i] <= left_t'(1);
        able_q[i] <= 1'b1;
      end else begin
        left_q[i] <= left_d;
        able_q[i] <= left_d > 0;
      end
    end

    `NS_ASSERT(weighed, weight_i[i] != '0 || urgent_i[i])
    `NS_ASSERT(no_more_than_a_burst_too_much, left_q[i] > -left_t'(2 ** CostBits - 1))
  end

  `NS_ASSERT(urgent_first, urgent == '0 || (gnt_o & ~urgent_i) == '0)
  `NS_ASSERT(granted_or_round, (req_i != '0) == (valid_o || round))

endmodule
