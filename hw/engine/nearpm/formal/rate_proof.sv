// SPDX-License-Identifier: Apache-2.0

// nearpm_rate: no read is accepted while lines are owed, and one unit's at a time. Each other unit
// is accepted at most once before one that requests. If nothing is owed and the memory is ready, a
// unit waits for less than a cycle per unit.
`include "ns_assert.svh"

module rate_proof #(
  parameter int unsigned Units = 3,
  parameter int unsigned Lines = 300
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [Units-1:0]      request_i,
  input logic [Units-1:0]      ready_i,
  input logic [Units-1:0][1:0] len_i
);

  localparam int unsigned BurstBytes = 256;

  logic [Units-1:0] open, accepted;
  logic [Units-1:0][7:0] len;
  for (genvar u = 0; u < Units; u++) begin : gen_len
    assign len[u] = {6'd0, len_i[u]};
  end
  assign accepted = request_i & ready_i & open;

  nearpm_rate #(
    .Units     (Units),
    .Lines     (Lines),
    .BurstBytes(BurstBytes)
  ) u_rate (
    .clk_i,
    .rst_ni,
    .request_i,
    .accepted_i(accepted),
    .len_i     (len),
    .open_o    (open)
  );

  logic reset_q = 1'b0;
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // A request stays until it is accepted.
  logic [Units-1:0] waits_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waits_q <= '0;
    else waits_q <= request_i & ~accepted;
  end
  always_comb assume ((waits_q & ~request_i) == '0);

  // Lines owed, in 1/1024: of all units, counted apart from the module.
  logic [15:0] owed_q, lines;
  always_comb begin
    lines = '0;
    for (int unsigned u = 0; u < Units; u++) if (accepted[u]) lines += 16'(len_i[u]) + 16'd1;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) owed_q <= '0;
    else if (owed_q + (lines << 10) > 16'(Lines)) owed_q <= owed_q + (lines << 10) - 16'(Lines);
    else owed_q <= '0;
  end

  `NS_ASSERT(within_rate, accepted == '0 || owed_q == '0)
  `NS_ASSERT(one_at_a_time, $onehot0(accepted))

  for (genvar u = 0; u < Units; u++) begin : gen_fair
    logic [2:0] passed_q, idle_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        passed_q <= '0;
        idle_q   <= '0;
      end else if (!request_i[u] || accepted[u]) begin
        passed_q <= '0;
        idle_q   <= '0;
      end else begin
        if (accepted != '0) passed_q <= passed_q + 1'b1;
        // Each other one may need its cycle.
        if (accepted != '0) idle_q <= '0;
        else if (owed_q == '0 && ready_i == '1) idle_q <= idle_q + 1'b1;
      end
    end
    `NS_ASSERT(fair, passed_q < 3'(Units))
    `NS_ASSERT(prompt, idle_q < 3'(Units))
    `NS_COVER(third, passed_q == 3'(Units - 1) && accepted[u])
  end

endmodule
