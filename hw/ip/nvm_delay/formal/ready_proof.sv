// nvm_delay_ready_queue: every slot that is ready comes out, once, after few others, for whichever reason it became ready.
`include "ns_assert.svh"

module ready_proof #(
  /// Slots.
  parameter int unsigned Slots = 3,
  /// A slot comes out at the latest when so many others have.
  parameter int unsigned MaxWait = 6,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input logic                      clk_i,
  input logic                      rst_ni,
  // Reasons: 0 due, 1 full, 2 head.
  input logic [2:0]                valid_i,
  input logic [2:0][SlotWidth-1:0] slot_i,
  input logic                      tag_i,
  input logic                      take_i,
  // Any slot, always the same.
  input logic [SlotWidth-1:0]      pick_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  logic due_ready, enter, go_valid, go_tag, take;
  logic [SlotWidth-1:0] enter_slot, go_slot;
  logic [2:0] fire;

  assign take = go_valid && take_i;
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
    .push_o     (enter),
    .push_slot_o(enter_slot),
    .push_tag_i (tag_i),
    .valid_o  (go_valid),
    .pop_i   (take),
    .slot_o   (go_slot),
    .tag_o    (go_tag)
  );

  // Slots that are inside; those that have entered; their bits.
  logic [Slots-1:0] inside_q, entered_q, tag_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q <= '0;
      entered_q <= '0;
    end else begin
      for (int i = 0; i < 3; i++) if (fire[i]) inside_q[slot_i[i]] <= 1'b1;
      if (enter) begin
        entered_q[enter_slot] <= 1'b1;
        tag_q[enter_slot] <= tag_i;
      end
      if (take) begin
        inside_q[go_slot] <= 1'b0;
        entered_q[go_slot] <= 1'b0;
      end
    end
  end

  for (genvar i = 0; i < 3; i++) begin : gen_reason
    `NS_ASSUME(a_slot, 32'(slot_i[i]) < Slots)
    `NS_ASSUME(only_once_at_a_time, !valid_i[i] || !inside_q[slot_i[i]])
    `NS_ASSUME(for_one_reason, !(valid_i[i] && valid_i[(i+1)%3]) || slot_i[i] != slot_i[(i+1)%3])
  end
  `NS_ASSUME(due_is_offered_until_taken, !$past(rst_ni && valid_i[0] && !due_ready)
             || (valid_i[0] && slot_i[0] == $past(slot_i[0])))
  `NS_ASSUME(pick_is_a_slot, 32'(pick_i) < Slots)
  `NS_ASSUME(pick_stays, $past(!rst_ni) || pick_i == $past(pick_i))

  // Others that have come out, and cycles in which none could, since the picked slot became ready.
  logic [4:0] others_q, empty_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      others_q <= '0;
      empty_q <= '0;
    end else if (!inside_q[pick_i] || (take && go_slot == pick_i)) begin
      others_q <= '0;
      empty_q <= '0;
    end else begin
      if (take) others_q <= others_q + 1'b1;
      if (!go_valid) empty_q <= empty_q + 1'b1;
    end
  end

  `NS_ASSERT(comes_out_after_few_others, 32'(others_q) <= MaxWait)
  `NS_ASSERT(never_lost, empty_q == '0)
  `NS_ASSERT(comes_out_if_ready, !go_valid || entered_q[go_slot])
  `NS_ASSERT(with_its_bit, !go_valid || go_tag == tag_q[go_slot])
  `NS_ASSERT(
      enters_if_ready,
      !enter || ((inside_q[enter_slot] && !entered_q[enter_slot]) || (fire[0] && slot_i[0] == enter_slot) || (fire[1] && slot_i[1] == enter_slot) || (fire[2] && slot_i[2] == enter_slot)))
  `NS_ASSERT(due_waits_one_cycle, !$past(rst_ni && valid_i[0] && !due_ready) || due_ready)

  `NS_COVER(all_at_once, fire == '1)
  `NS_COVER(all_inside, inside_q == '1)

endmodule
