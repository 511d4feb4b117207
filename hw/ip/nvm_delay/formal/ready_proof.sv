// SPDX-License-Identifier: Apache-2.0

// nvm_delay_ready_queue: every ready slot comes out, once, after few others, whichever event made
// it ready.
`include "ns_assert.svh"

module ready_proof #(
  /// Number of slots.
  parameter int unsigned Slots = 3,
  /// Most other slots that come out before a ready slot.
  parameter int unsigned MaxWait = 6,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input logic                      clk_i,
  input logic                      rst_ni,
  // Events: 0 due, 1 full, 2 head.
  input logic [2:0]                valid_i,
  input logic [2:0][SlotWidth-1:0] slot_i,
  input logic                      tag_i,
  input logic                      pop_i,
  // Any slot, constant.
  input logic [SlotWidth-1:0]      pick_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  logic due_ready, push, valid, tag, pop;
  logic [SlotWidth-1:0] push_slot, slot;
  logic [2:0] fire;

  assign pop = valid && pop_i;
  assign fire = {valid_i[2:1], valid_i[0] && due_ready};

  nvm_delay_ready_queue #(
    .Slots(Slots)
  ) u_ready (
    .clk_i,
    .rst_ni,
    .due_valid_i (valid_i[0]),
    .due_ready_o (due_ready),
    .due_slot_i  (slot_i[0]),
    .full_valid_i(valid_i[1]),
    .full_slot_i (slot_i[1]),
    .head_valid_i(valid_i[2]),
    .head_slot_i (slot_i[2]),
    .push_o      (push),
    .push_slot_o (push_slot),
    .push_tag_i  (tag_i),
    .valid_o     (valid),
    .pop_i       (pop),
    .slot_o      (slot),
    .tag_o       (tag)
  );

  // Slots inside; slots that have entered; their tags.
  logic [Slots-1:0] inside_q, entered_q, tag_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q <= '0;
      entered_q <= '0;
    end else begin
      for (int i = 0; i < 3; i++) if (fire[i]) inside_q[slot_i[i]] <= 1'b1;
      if (push) begin
        entered_q[push_slot] <= 1'b1;
        tag_q[push_slot] <= tag_i;
      end
      if (pop) begin
        inside_q[slot] <= 1'b0;
        entered_q[slot] <= 1'b0;
      end
    end
  end

  for (genvar i = 0; i < 3; i++) begin : gen_event
    `NS_ASSUME(slot_exists, 32'(slot_i[i]) < Slots)
    `NS_ASSUME(only_once_at_a_time, !valid_i[i] || !inside_q[slot_i[i]])
    `NS_ASSUME(for_one_event, !(valid_i[i] && valid_i[(i+1)%3]) || slot_i[i] != slot_i[(i+1)%3])
  end
  `NS_ASSUME(due_is_held_until_accepted, !$past(rst_ni && valid_i[0] && !due_ready)
             || (valid_i[0] && slot_i[0] == $past(slot_i[0])))
  `NS_ASSUME(pick_is_a_slot, 32'(pick_i) < Slots)
  `NS_ASSUME(pick_stays, $past(!rst_ni) || pick_i == $past(pick_i))

  // Other slots that have come out, and cycles in which none could, since the picked slot became
  // ready.
  logic [4:0] others_q, empty_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      others_q <= '0;
      empty_q <= '0;
    end else if (!inside_q[pick_i] || (pop && slot == pick_i)) begin
      others_q <= '0;
      empty_q <= '0;
    end else begin
      if (pop) others_q <= others_q + 1'b1;
      if (!valid) empty_q <= empty_q + 1'b1;
    end
  end

  `NS_ASSERT(comes_out_after_few_others, 32'(others_q) <= MaxWait)
  `NS_ASSERT(never_lost, empty_q == '0)
  `NS_ASSERT(comes_out_if_ready, !valid || entered_q[slot])
  `NS_ASSERT(keeps_its_tag, !valid || tag == tag_q[slot])
  `NS_ASSERT(
      pushed_if_ready,
      !push || ((inside_q[push_slot] && !entered_q[push_slot]) || (fire[0] && slot_i[0] == push_slot) || (fire[1] && slot_i[1] == push_slot) || (fire[2] && slot_i[2] == push_slot)))
  `NS_ASSERT(due_waits_one_cycle, !$past(rst_ni && valid_i[0] && !due_ready) || due_ready)

  `NS_COVER(all_at_once, fire == '1)
  `NS_COVER(all_inside, inside_q == '1)

endmodule
