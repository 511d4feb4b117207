// SPDX-License-Identifier: Apache-2.0

// Round-robin arbiter.
//
// The grant is combinational from `req_i` and one register. It stays with the same requester until
// `next_i`, as long as that one keeps requesting; then the priority passes to the next one above
// it. So a requester that holds its request waits for at most N-1 grants of others. Requests may be
// withdrawn; a withdrawn request loses the grant.
`include "ns_assert.svh"

module ns_rr_arbiter #(
  /// Number of requesters.
  parameter int unsigned N = 4,
  localparam int unsigned IdxBits = N > 1 ? unsigned'($clog2(N)) : 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// Requester 0 has priority in the next cycle, as after a reset.
  input  logic               flush_i = 1'b0,
  /// Requests.
  input  logic [N-1:0]       req_i,
  /// The grant is used: advance. Ignored while there is none.
  input  logic               next_i,
  /// Grant, one-hot or zero.
  output logic [N-1:0]       gnt_o,
  /// Number of the requester granted, 0 if none.
  output logic [IdxBits-1:0] idx_o,
  /// There is a grant.
  output logic               valid_o
);

  // Bit i: any of the bits below i. Doubling steps instead of a subtraction: shorter than a carry
  // chain.
  function automatic logic [N-1:0] above(logic [N-1:0] bits);
    above = bits << 1;
    for (int unsigned step = 1; step < N; step *= 2) above |= above << step;
  endfunction

  logic [N-1:0] mask_q;  // requesters served before the wrap-around
  logic [N-1:0] first, above_first, above_req, later, gnt;

  // Both cases in parallel, then the choice.
  assign first = req_i & mask_q;
  assign above_first = above(first);
  assign above_req = above(req_i);
  assign gnt = (first != '0) ? first & ~above_first : req_i & ~above_req;
  assign later = (first != '0) ? above_first : above_req;
  assign gnt_o = gnt;
  assign valid_o = req_i != '0;

  always_comb begin
    idx_o = '0;
    for (int unsigned i = 0; i < N; i++) if (gnt[i]) idx_o |= IdxBits'(i);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) mask_q <= '1;
    else if (flush_i) mask_q <= '1;
    else if (valid_o) mask_q <= next_i ? later : later | gnt;
  end

  if (N < 1) begin : gen_bad_n
    $error("ns_rr_arbiter: N must be at least 1");
  end

  `NS_ASSERT(grant_one_hot, (gnt & (gnt - 1'b1)) == '0)
  `NS_ASSERT(grant_requested, (gnt & ~req_i) == '0)
  `NS_ASSERT(grant_if_any, (gnt != '0) == (req_i != '0))

endmodule
