// SPDX-License-Identifier: Apache-2.0

// Command arbitration (NVMe 1.4, 4.13): selects the submission queue whose command is fetched next.
//
// Round robin: all queues take turns, including the admin queue. Weighted round robin with urgent
// priority class (CC.AMS 1): the admin queue first, then the urgent queues, then the high, medium
// and low queues. Each of these three classes may have as many commands in a round as its weight in
// Arbitration (feature 01h), high first. An empty class does not block the others: when no class
// with commands has a credit left, all get new credits. Within a class, queues take turns. A burst
// is one command, which every Arbitration Burst allows.
//
// A choice takes two cycles, or four with classes, and comes from a register, which keeps paths
// short. A choice that is not followed by `issue_valid_i` costs its queue the turn, but no credit.
`include "ns_assert.svh"

module nvme_arbiter
  import nvme_pkg::*;
#(
  /// Queues, the admin queue included.
  parameter int unsigned NumQueues = 17,
  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumQueues)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// Weighted round robin is selected. Changes only between choices.
  input  logic                 wrr_i,
  /// A feature changes.
  input  feature_write_t       feature_i,
  input  logic                 feature_valid_i,
  /// The priority of an I/O submission queue is set.
  input  logic                 prio_we_i,
  /// Which.
  input  logic [Bits-1:0]      prio_idx_i,
  /// Its priority.
  input  sq_prio_e             prio_i,

  /// Queues that have a command to fetch.
  input  logic [NumQueues-1:0] req_i,
  /// Choose one of them. Not before the previous choice is done.
  input  logic                 start_i,
  /// The choice is done.
  output logic                 done_o,
  /// A queue has been chosen; 0 if no request was left.
  output logic                 valid_o,
  /// The queue, with done_o.
  output logic [Bits-1:0]      idx_o,
  /// A command of the last chosen queue is being fetched.
  input  logic                 issue_valid_i
);

  // Priority of each I/O queue, one vector for each bit.
  logic [NumQueues-1:0] prio0_q, prio1_q;

  always_ff @(posedge clk_i) begin
    if (prio_we_i) {prio1_q[prio_idx_i], prio0_q[prio_idx_i]} <= prio_i;
  end

  // Members of the classes: urgent, high, medium, low.
  logic [3:0][NumQueues-1:0] members;
  localparam logic [NumQueues-1:0] Io = {{(NumQueues - 1) {1'b1}}, 1'b0};
  assign members[PrioUrgent] = Io & ~prio1_q & ~prio0_q;
  assign members[PrioHigh] = Io & ~prio1_q & prio0_q;
  assign members[PrioMedium] = Io & prio1_q & ~prio0_q;
  assign members[PrioLow] = Io & prio1_q & prio0_q;

  // Weights, 0-based, and credits left in this round.
  logic [3:1][7:0] weight_q;
  logic [3:1][8:0] credit_q;
  logic [3:1] credit_left_q;

  // First step, with classes: which classes have commands?
  logic choose_q, served_valid_q, grant_q;
  logic admin_q;
  logic [3:0] any_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      choose_q <= 1'b0;
      served_valid_q <= 1'b0;
      grant_q <= 1'b0;
    end else begin
      choose_q <= start_i && wrr_i;
      served_valid_q <= choose_q;
      grant_q <= served_valid_q || (start_i && !wrr_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i && wrr_i) begin
      admin_q <= req_i[0];
      for (int unsigned c = 0; c < 4; c++) any_q[c] <= (req_i & members[c]) != '0;
    end
  end

  // Second step: which class is served?
  logic [3:1] has_credit;
  logic refill;
  logic [3:0] served, served_q;  // one-hot, or 0 for the admin queue

  assign has_credit = any_q[3:1] & credit_left_q;
  assign refill = choose_q && !admin_q && !any_q[PrioUrgent] && has_credit == '0;

  always_comb begin
    served = '0;
    if (!admin_q) begin
      if (any_q[PrioUrgent]) served[PrioUrgent] = 1'b1;
      else if (has_credit[PrioHigh] || (has_credit == '0 && any_q[PrioHigh]))
        served[PrioHigh] = 1'b1;
      else if (has_credit[PrioMedium] || (has_credit == '0 && any_q[PrioMedium]))
        served[PrioMedium] = 1'b1;
      else served[PrioLow] = 1'b1;
    end
  end

  always_ff @(posedge clk_i) if (choose_q) served_q <= served;

  // Third step: members of the class, those with commands, and those whose turn comes before the
  // wrap-around. This is the first step of round robin, with all queues. All classes share one bit
  // a queue: each class changes the bits of its members.
  logic [NumQueues-1:0] served_members, members_q, mask_q, req, first, req_q, first_q;
  logic any_first_q;

  always_comb begin
    served_members = NumQueues'(served_q == '0);
    for (int unsigned c = 0; c < 4; c++) served_members |= members[c] & {NumQueues{served_q[c]}};
    if (!wrr_i) served_members = '1;
  end

  assign req   = req_i & served_members;
  assign first = req & mask_q;

  always_ff @(posedge clk_i) begin
    if (served_valid_q || (start_i && !wrr_i)) begin
      members_q <= served_members;
      req_q <= req;
      first_q <= first;
      any_first_q <= first != '0;
    end
  end

  // Fourth step: select the queue.
  logic [NumQueues-1:0] candidates, above_lowest, gnt_q;
  logic done_q;

  assign candidates  = any_first_q ? first_q : req_q;
  // Bits above the lowest one: a carry chain is shorter than the mapper's OR here.
  assign above_lowest = ~(candidates ^ (candidates - 1'b1));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mask_q <= '1;
      done_q <= 1'b0;
    end else begin
      done_q <= grant_q;
      if (grant_q) mask_q <= (mask_q & ~members_q) | (above_lowest & members_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (grant_q) gnt_q <= candidates & ~above_lowest;
  end

  // Last step: encode its number.
  always_comb begin
    idx_o = '0;
    for (int unsigned i = 0; i < NumQueues; i++) if (gnt_q[i]) idx_o |= Bits'(i);
  end

  assign done_o = done_q;
  assign valid_o = gnt_q != '0;

  // Credits. The next choice, two cycles later at the earliest, sees the credit used by a command
  // of a weighted class.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      weight_q <= '0;
      credit_q <= '0;
      credit_left_q   <= '0;
    end else begin
      if (feature_valid_i && feature_i.idx == FeatureArbitration) begin
        weight_q[PrioHigh] <= feature_i.value[31:24];
        weight_q[PrioMedium] <= feature_i.value[23:16];
        weight_q[PrioLow] <= feature_i.value[15:8];
      end
      for (int unsigned c = 1; c < 4; c++) begin
        if (refill) credit_q[c] <= 9'(weight_q[c]) + 1'b1;
        else if (issue_valid_i && wrr_i && served_q[c]) credit_q[c] <= credit_q[c] - 1'b1;
        credit_left_q[c] <= credit_q[c] != '0;
      end
    end
  end

  logic unused;
  assign unused = ^feature_i.value[7:0];

  `NS_ASSERT(grant_one_hot, !done_q || (gnt_q & (gnt_q - 1'b1)) == '0)
  `NS_ASSERT(one_choice_at_a_time, !start_i || !(choose_q || served_valid_q || grant_q || done_q))
  `NS_ASSERT(
      credit_available,
      !(issue_valid_i && wrr_i) || (served_q[3:1] & {credit_q[3] == '0, credit_q[2] == '0, credit_q[1] == '0}) == '0)

endmodule
