// SPDX-License-Identifier: Apache-2.0

// ns_rr_arbiter: mutual exclusion, no grant without request, a grant stays until it is taken or
// until a flush, bounded waiting between flushes. In the cycle after a flush or reset, the lowest
// requester is granted.
`include "ns_assert.svh"

module arbiter_proof #(
  /// Number of requesters.
  parameter int unsigned N = 4
) (
  input logic         clk_i,
  input logic         rst_ni,
  input logic         flush_i,
  input logic [N-1:0] req_i,
  input logic         next_i
);

  localparam int unsigned IdxBits = N > 1 ? unsigned'($clog2(N)) : 1;

  logic [N-1:0] gnt;
  logic [IdxBits-1:0] idx;
  logic valid;

  ns_rr_arbiter #(
    .N(N)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .flush_i,
    .req_i,
    .next_i,
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(valid)
  );

  logic reset_q = 1'b0;  // has been reset
  logic flushed_q;  // a flush or reset in the previous cycle
  logic [N-1:0] waiting_gnt_q;  // grant of the previous cycle, if it was not used

  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flushed_q <= 1'b1;
      waiting_gnt_q <= '0;
    end else begin
      flushed_q <= flush_i;
      waiting_gnt_q <= (next_i || flush_i) ? '0 : gnt;
    end
  end

  // Grants to others while requester i holds its request.
  for (genvar i = 0; i < N; i++) begin : gen_fair
    logic [IdxBits:0] passed_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) passed_q <= '0;
      else if (!req_i[i] || gnt[i] || flush_i) passed_q <= '0;
      else if (next_i && valid) passed_q <= passed_q + 1'b1;
    end

    `NS_ASSERT(waiting_bounded, !(req_i[i] && !gnt[i]) || 32'(passed_q) < N - 1)
  end

  `NS_ASSERT(mutual_exclusion, (gnt & (gnt - 1'b1)) == '0)
  `NS_ASSERT(only_requesters, (gnt & ~req_i) == '0)
  `NS_ASSERT(grant_if_any, valid == (req_i != '0) && (gnt != '0) == valid)
  `NS_ASSERT(idx_names_grant, !valid || gnt == N'(1) << idx)
  `NS_ASSERT(grant_stays, (waiting_gnt_q & req_i) == '0 || gnt == waiting_gnt_q)

  `NS_ASSERT(lowest_after_flush, !flushed_q || gnt == (req_i & -req_i))

  // Without the flush, the last requester would keep its grant.
  `NS_COVER(flush_ends_grant, flushed_q && $past(gnt[N-1] && flush_i && !next_i) && req_i == '1)
  `NS_COVER(last_taken, next_i && gnt[N-1])

endmodule
