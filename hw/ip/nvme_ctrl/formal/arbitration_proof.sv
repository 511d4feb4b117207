// SPDX-License-Identifier: Apache-2.0

// nvme_arbiter: the chosen queue has requested, and every queue waits for a bounded number of
// others. With classes: the admin queue before urgent, urgent before the weighted classes. No
// weighted class has more commands in a round than its weight, and no round ends while a class with
// commands has credit.
//
// A few queues, weights of one or two commands. Requests rise and fall in any cycle. Assumed of
// nvme_fetch: one choice at a time, used at most once and before the next one; priorities and the
// mode change between choices.
`include "ns_assert.svh"

module arbitration_proof
  import nvme_pkg::*;
#(
  /// Queues, the admin queue included.
  parameter int unsigned NumQueues = 4,
  /// By classes, too.
  parameter bit          Weighted  = 1'b1,
  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumQueues)
) (
  input logic                 clk_i,
  input logic                 rst_ni,
  input logic                 wrr_i,
  input feature_write_t       feature_i,
  input logic                 feature_valid_i,
  input logic                 prio_we_i,
  input logic [Bits-1:0]      prio_idx_i,
  input sq_prio_e             prio_i,
  input logic [NumQueues-1:0] req_i,
  input logic                 start_i,
  input logic                 issue_valid_i,
  input logic [Bits-1:0]      watched_i,
  input logic [1:0]           watched_class_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // One queue and one weighted class, both arbitrary, are watched all the time.
  logic [Bits-1:0] watched_q;
  logic [1:0] watched_class_q;
  always_ff @(posedge clk_i) begin
    if (!reset_q) {watched_q, watched_class_q} <= {watched_i, watched_class_i};
  end
  `NS_ASSUME(watched, 32'(watched_q) < NumQueues && watched_class_q != '0)

  logic done, valid;
  logic [Bits-1:0] idx;

  nvme_arbiter #(
    .NumQueues(NumQueues)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .wrr_i,
    .feature_i,
    .feature_valid_i,
    .prio_we_i,
    .prio_idx_i,
    .prio_i,
    .req_i,
    .start_i,
    .done_o (done),
    .valid_o(valid),
    .idx_o  (idx),
    .issue_valid_i
  );

  // The choice in progress, and the one that has been made.
  logic choosing_q, unused_q, wrr_q;
  logic [NumQueues-1:0]
      req1_q,
      req_q,
      req_at_start_q,
      always_q;  // of the previous cycle, of two cycles ago; at the start; since the start
  logic [Bits-1:0] choice_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      choosing_q <= 1'b0;
      unused_q   <= 1'b0;
      wrr_q <= 1'b0;
    end else begin
      wrr_q <= wrr_i;
      if (start_i) choosing_q <= 1'b1;
      else if (done) choosing_q <= 1'b0;
      if (issue_valid_i || start_i) unused_q <= 1'b0;
      else if (done) unused_q <= valid;
    end
  end

  always_ff @(posedge clk_i) begin
    req1_q <= req_i;
    req_q  <= req1_q;
    if (start_i) {req_at_start_q, always_q} <= {2{req_i}};
    else always_q <= always_q & req_i;
    if (done) choice_q <= idx;
  end

  // The neighbours.
  logic quiet;
  assign quiet = !choosing_q && !unused_q && !start_i;
  `NS_ASSUME(one_choice, !start_i || !choosing_q)
  `NS_ASSUME(start_with_requests, !start_i || req_i != '0)
  `NS_ASSUME(used_once, !issue_valid_i || (unused_q || (done && valid)))
  `NS_ASSUME(used_before_next, !issue_valid_i || !start_i)
  `NS_ASSUME(mode_between, wrr_i == wrr_q || quiet)
  `NS_ASSUME(mode, Weighted || !wrr_i)
  `NS_ASSUME(prio_between, !prio_we_i || (quiet && prio_idx_i != '0 && 32'(prio_idx_i) < NumQueues))
  `NS_ASSUME(
      small_weights,
      feature_i.value[31:25] == '0 && feature_i.value[23:17] == '0 && feature_i.value[15:9] == '0)

  logic grant;
  assign grant = done && valid;

  // Any mode: the granted queue requested two cycles before.
  `NS_ASSERT(in_range, !grant || 32'(idx) < NumQueues)
  `NS_ASSERT(only_requesters, !grant || req_q[idx])
  `NS_ASSERT(choice_if_all_stay, !(done && always_q == req_at_start_q) || valid)

  // Round robin: each other queue is served at most once before the watched queue.
  logic [Bits:0] passed_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) passed_q <= '0;
    else if (wrr_i) passed_q <= '0;
    else if (grant && (idx == watched_q || !req_q[watched_q])) passed_q <= '0;
    else if (grant) passed_q <= passed_q + 1'b1;
  end

  `NS_ASSERT(waiting_bounded, 32'(passed_q) < NumQueues)

  if (Weighted) begin : gen_weighted
    // Members of the classes, and their credits in this round, from outside.
    sq_prio_e prio_q[NumQueues];
    logic [3:1][1:0] weight_q, left_q;
    logic [3:1] left;
    logic [3:0] any;
    logic new_round, new_round_q;  // it starts in the cycle after the choice

    always_comb begin
      any = '0;
      for (int unsigned q = 1; q < NumQueues; q++) if (req_i[q]) any[prio_q[q]] = 1'b1;
    end

    assign left = {left_q[3] != '0, left_q[2] != '0, left_q[1] != '0};
    assign new_round = start_i && wrr_i && !req_i[0] && !any[PrioUrgent] && (any[3:1] & left) == '0;

    // Result of the last start: the class to be served.
    logic admin_q;
    logic [3:0] best_q;  // one-hot
    logic [1:0] cls;  // of the queue that has been chosen
    assign cls = prio_q[done?idx : choice_q];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        weight_q <= '0;
        left_q   <= '0;
        new_round_q <= 1'b0;
      end else begin
        new_round_q <= new_round;
        if (feature_valid_i && feature_i.idx == FeatureArbitration) begin
          weight_q[PrioHigh] <= {1'b0, feature_i.value[24]};
          weight_q[PrioMedium] <= {1'b0, feature_i.value[16]};
          weight_q[PrioLow] <= {1'b0, feature_i.value[8]};
        end
        if (new_round_q) for (int unsigned c = 1; c < 4; c++) left_q[c] <= weight_q[c] + 1'b1;
        if (issue_valid_i && wrr_i && (done ? idx : choice_q) != '0 && cls != PrioUrgent)
          left_q[cls] <= left_q[cls] - 1'b1;
      end
    end

    always_ff @(posedge clk_i) begin
      if (prio_we_i) prio_q[prio_idx_i] <= prio_i;
      if (start_i) begin
        admin_q <= req_i[0];
        best_q  <= '0;
        if (any[PrioUrgent]) best_q[PrioUrgent] <= 1'b1;
        else if (any[PrioHigh] && (new_round || left[PrioHigh])) best_q[PrioHigh] <= 1'b1;
        else if (any[PrioMedium] && (new_round || left[PrioMedium])) best_q[PrioMedium] <= 1'b1;
        else if (any[PrioLow] && (new_round || left[PrioLow])) best_q[PrioLow] <= 1'b1;
      end
    end

    // A queue has a priority before it has commands.
    logic [NumQueues-1:0] known_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) known_q <= '0;
      else if (prio_we_i) known_q[prio_idx_i] <= 1'b1;
    end
    `NS_ASSUME(priority_first, (req_i & ~known_q & ~NumQueues'(1)) == '0)

    `NS_ASSERT(admin_first, !(grant && wrr_i) || (idx == '0) == admin_q)
    `NS_ASSERT(classes_in_order, !(grant && wrr_i && idx != '0) || best_q[cls])
    `NS_ASSERT(no_underflow,
               !(issue_valid_i && wrr_i && (done ? idx : choice_q) != '0 && cls != PrioUrgent) || left_q[cls] != '0)

    // Within a class, each other queue is served at most once before the watched queue.
    logic [Bits:0] class_passed_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) class_passed_q <= '0;
      else if (!wrr_i || prio_we_i) class_passed_q <= '0;
      else if ((grant && idx == watched_q) || (done && !req_q[watched_q])) class_passed_q <= '0;
      else if (grant && idx != '0 && watched_q != '0 && cls == prio_q[watched_q])
        class_passed_q <= class_passed_q + 1'b1;
    end
    `NS_ASSERT(class_passed_bounded, 32'(class_passed_q) < NumQueues - 1)

    // The watched class, while it has commands, waits at most for the commands of two rounds of the
    // others.
    logic [3:0] others_served_q;
    logic chosen_watched;
    assign chosen_watched = grant && idx != '0 && cls == watched_class_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) others_served_q <= '0;
      else if (!wrr_i || prio_we_i || chosen_watched || (start_i && !any[watched_class_q]))
        others_served_q <= '0;
      else if (issue_valid_i && (done ? idx : choice_q) != '0 && cls != PrioUrgent && cls != watched_class_q)
        others_served_q <= others_served_q + 1'b1;
    end
    `NS_ASSERT(class_wait_bounded, others_served_q <= 4'd8)

    // The arbiter's credits are the same.
    `NS_ASSERT(same_credit,
               u_arbiter.credit_q[1] == 9'(left_q[1]) && u_arbiter.credit_q[2] == 9'(left_q[2]) && u_arbiter.credit_q[3] == 9'(left_q[3]))

    `NS_COVER(low_after_high,
              issue_valid_i && wrr_i && cls == PrioLow && others_served_q == 4'd0 && left_q[PrioHigh] == '0 && weight_q[PrioHigh] == 2'd1)
    `NS_COVER(long_wait, others_served_q == 4'd4)
    `NS_COVER(second_round, new_round && weight_q[PrioMedium] == 2'd1 && left_q[PrioLow] == 2'd1)
    `NS_COVER(turn, class_passed_q == (Bits + 1)'(NumQueues - 2))
    `NS_COVER(mode_changed,
              grant && !wrr_i && left_q[PrioLow] == 2'd2 && passed_q == (Bits + 1)'(2))
  end

endmodule
