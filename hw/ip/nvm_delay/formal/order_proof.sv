// SPDX-License-Identifier: Apache-2.0

// nvm_delay_order as used by nvm_delay_write (ResponsesById 1) or nvm_delay_read (ResponsesById 0).
// This module reproduces their use of it with all choices left open, beside a reference record of
// each slot.
//
// A slot leaves only when it is due, full and the oldest of its ID that has not left. Every such
// slot leaves, after few others, and none twice. A response belongs to the oldest slot of its ID
// that waits for one. No queue overflows.
`include "ns_assert.svh"

module order_proof #(
  /// Number of slots.
  parameter int unsigned Slots = 2,
  /// 1: as in nvm_delay_write; 0: as in nvm_delay_read.
  parameter bit ResponsesById = 1'b0,
  /// Most beats of a read: 1 to 3.
  parameter int unsigned MaxBeats = 2,
  /// Cycles in which the queue advances or is empty until a ready slot leaves.
  parameter int unsigned MaxWait = 3 * Slots,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input logic                 clk_i,
  input logic                 rst_ni,
  // Choices of the slave port, of the wheel and of memory.
  input logic                 accept_i,
  input logic [SlotWidth-1:0] slot_i,
  input logic                 id_i,
  input logic [1:0]           beats_i,
  input logic                 together_i,
  input logic                 due_now_i,
  input logic                 due_i,
  input logic [SlotWidth-1:0] due_slot_i,
  input logic                 response_i,
  input logic                 response_id_i,
  input logic [SlotWidth-1:0] read_slot_i,
  // The output is accepted; a beat may leave the buffer; the leaving slot continues with its next
  // beat; a beat may bypass.
  input logic                 out_ready_i,
  input logic                 may_fire_i,
  input logic                 may_keep_i,
  input logic                 may_bypass_i,
  // Any slot, constant.
  input logic [SlotWidth-1:0] pick_i
);

  typedef logic [SlotWidth-1:0] slot_t;

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  // After reset each slot is set up.
  logic init_q;
  slot_t init_slot_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      init_q <= 1'b1;
      init_slot_q <= '0;
    end else if (init_q) begin
      init_q <= init_slot_q != slot_t'(Slots - 1);
      init_slot_q <= init_slot_q + 1'b1;
    end
  end

  logic
      due_ready,
      bypass,
      ready_valid,
      ready_released,
      ready_pop,
      ready_keep_due,
      bypass_ready,
      empty,
      release_slot,
      store;
  slot_t lookup_slot, response_slot, ready_slot, empty_slot, released;

  nvm_delay_order #(
    .Slots          (Slots),
    .IdWidth        (1),
    .ResponsesById  (ResponsesById),
    .BypassNextCycle(!ResponsesById)
  ) u_order (
    .clk_i,
    .rst_ni,
    .init_i          (init_q),
    .init_slot_i     (init_slot_q),
    .accept_i,
    .slot_i,
    .id_i,
    .single_i        (beats_i == 2'd1),
    .due_now_i,
    .due_i,
    .due_ready_o     (due_ready),
    .due_slot_i,
    .response_i      (response_i),
    .response_slot_i (response_slot),
    .bypass_ready_i  (bypass_ready),
    .bypass_o        (bypass),
    .empty_i         (empty),
    .empty_slot_i    (empty_slot),
    .ready_valid_o   (ready_valid),
    .ready_slot_o    (ready_slot),
    .ready_released_o(ready_released),
    .ready_pop_i     (ready_pop),
    .ready_keep_due_i(ready_keep_due),
    .release_i       (release_slot),
    .release_slot_i  (released),
    .lookup_i        (ResponsesById && response_i),
    .lookup_id_i     (response_id_i),
    .lookup_slot_o   (lookup_slot)
  );

  // -----------------------------------------------------------------------------------------------
  // The reference: for each slot, its transaction and the pending events.

  logic [Slots-1:0] used_q;  // in flight, until its last response is accepted
  logic [Slots-1:0] id_q, single_q, together_q;
  logic [Slots-1:0] in_wheel_q;  // in the wheel
  logic [Slots-1:0] due_q;
  logic [1:0] outstanding_q[Slots];  // beats outstanding at the memory
  logic [1:0] stored_q[Slots];  // beats stored that have not left
  logic [Slots-1:0] older_q[Slots];  // bit i of older_q[s]: i has the same ID, and is older than s

  // The slot whose beats are leaving (reads), and the output register.
  logic cur_valid_q, cur_released_q, out_valid_q, out_last_q;
  slot_t cur_q, out_q;
  logic out_free, fire, fire_last, has_more, cur_keep, cur_last, response_last, take;
  slot_t leaving_slot;  // the slot whose beat leaves the buffer

  assign out_free = !out_valid_q || out_ready_i;
  assign response_last = outstanding_q[response_slot] == 2'd1;
  assign store = response_i && !bypass;

  if (ResponsesById) begin : gen_write
    assign response_slot = lookup_slot;
    assign bypass_ready = out_free && !ready_valid;
    assign ready_pop = ready_valid && out_free;
    assign ready_keep_due = 1'b0;
    assign empty = ready_pop;
    assign empty_slot = ready_slot;
    assign release_slot = bypass || (ready_pop && !ready_released);
    assign released = ready_valid ? ready_slot : response_slot;
    assign fire = ready_pop;
    assign fire_last = ready_pop;
    assign has_more = 1'b0;
    assign cur_keep = 1'b0;
    assign cur_last = 1'b0;
    assign leaving_slot = ready_slot;
  end else begin : gen_read
    assign response_slot = read_slot_i;
    assign bypass_ready = out_free && !cur_valid_q && !ready_valid && may_bypass_i && (response_last || together_q[response_slot]);
    assign fire = cur_valid_q && out_free && may_fire_i;
    assign has_more = stored_q[cur_q] > 2'd1;
    assign fire_last = fire && outstanding_q[cur_q] == '0 && !has_more;
    assign cur_keep = fire && has_more && (together_q[cur_q] || may_keep_i);
    assign cur_last = cur_keep && outstanding_q[cur_q] == '0 && stored_q[cur_q] == 2'd2;
    assign ready_pop = ready_valid && (!cur_valid_q || (fire && !cur_keep));
    assign ready_keep_due = together_q[ready_slot];
    assign empty = fire && !has_more;
    assign empty_slot = cur_q;
    assign release_slot = (bypass && response_last) || (fire_last && !cur_released_q) || cur_last;
    assign released = cur_valid_q ? cur_q : response_slot;
    assign leaving_slot = cur_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q <= '0;
      in_wheel_q <= '0;
      due_q <= '0;
      cur_valid_q <= 1'b0;
      out_valid_q <= 1'b0;
      for (int s = 0; s < Slots; s++) begin
        outstanding_q[s] <= '0;
        stored_q[s] <= '0;
        older_q[s] <= '0;
      end
    end else begin
      if (ready_pop && !ResponsesById) cur_valid_q <= 1'b1;
      else if (fire && !cur_keep) cur_valid_q <= 1'b0;
      if (out_free) out_valid_q <= fire || bypass;

      if (response_i) outstanding_q[response_slot] <= outstanding_q[response_slot] - 1'b1;
      for (int s = 0; s < Slots; s++) begin
        stored_q[s] <= stored_q[s] + 2'(store && response_slot == slot_t'(s)) - 2'(fire && leaving_slot == slot_t'(s));
      end
      if (ready_pop && !ready_keep_due) due_q[ready_slot] <= 1'b0;
      if (!ResponsesById && fire && !cur_keep && !fire_last && !together_q[cur_q])
        in_wheel_q[cur_q] <= 1'b1;
      if (due_i && due_ready) begin
        due_q[due_slot_i] <= 1'b1;
        in_wheel_q[due_slot_i] <= 1'b0;
      end
      if (out_valid_q && out_ready_i && out_last_q) begin
        used_q[out_q] <= 1'b0;
        for (int s = 0; s < Slots; s++) older_q[s][out_q] <= 1'b0;
      end
      if (accept_i) begin
        used_q[slot_i] <= 1'b1;
        due_q[slot_i] <= due_now_i;
        in_wheel_q[slot_i] <= !due_now_i;
        outstanding_q[slot_i] <= beats_i;
        for (int s = 0; s < Slots; s++) begin
          older_q[slot_i][s] <= used_q[s] && id_q[s] == id_i && !(out_valid_q && out_ready_i && out_last_q && out_q == slot_t'(s));
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept_i) begin
      id_q[slot_i] <= id_i;
      single_q[slot_i] <= beats_i == 2'd1;
      together_q[slot_i] <= together_i;
    end
    if (ready_pop) begin
      cur_q <= ready_slot;
      cur_released_q <= single_q[ready_slot] && ready_released;
    end else if (cur_last) begin
      cur_released_q <= 1'b1;
    end
    if (fire || bypass) begin
      out_q <= bypass ? response_slot : leaving_slot;
      out_last_q <= bypass ? response_last : fire_last;
    end
  end

  // Assumptions about the user of the order.
  `NS_ASSUME(starts_in_a_free_slot, !accept_i || (!init_q && !used_q[slot_i]))
  `NS_ASSUME(beats, beats_i != '0 && 32'(beats_i) <= (ResponsesById ? 32'd1 : MaxBeats))
  `NS_ASSUME(off_is_together, !(due_now_i && !together_i))
  `NS_ASSUME(due_from_the_wheel, !due_i || in_wheel_q[due_slot_i])
  `NS_ASSUME(due_is_held_until_accepted, !(rst_ni && $past(rst_ni && due_i && !due_ready)
             ) || (due_i && due_slot_i == $past(due_slot_i)))
  if (!ResponsesById) begin : gen_read_beats
    `NS_ASSUME(memory_answers_outstanding, !response_i || outstanding_q[read_slot_i] != '0)
  end
  `NS_ASSUME(pick_stays, $past(!rst_ni) || pick_i == $past(pick_i))

  // -----------------------------------------------------------------------------------------------
  // The properties.

  // Slots with beats left; oldest: no older slot of its ID has beats left, but for the one that
  // leaves in this cycle.
  logic [Slots-1:0] beats_left, leaving, oldest;
  always_comb begin
    for (int s = 0; s < Slots; s++) begin
      beats_left[s] = used_q[s] && (outstanding_q[s] != '0 || stored_q[s] != '0);
      leaving[s] = fire_last && leaving_slot == slot_t'(s);
    end
    for (int s = 0; s < Slots; s++)
    oldest[s] = (older_q[s] & beats_left & (ResponsesById ? '1 : ~leaving)) == '0;
  end

  `NS_ASSERT(leaves_in_use, !ready_pop || used_q[ready_slot])
  `NS_ASSERT(leaves_when_due, !ready_pop || due_q[ready_slot])
  `NS_ASSERT(leaves_when_full,
             !ready_pop || stored_q[ready_slot] > 2'(!ResponsesById && fire && cur_q == ready_slot))
  `NS_ASSERT(leaves_when_oldest, !ready_pop || oldest[ready_slot])
  `NS_ASSERT(
      bypasses_when_ready,
      !bypass || (used_q[response_slot] && due_q[response_slot] && stored_q[response_slot] == '0 && oldest[response_slot]))
  `NS_ASSERT(bypasses_next_cycle, ResponsesById || !bypass || !($past(due_i && due_ready) && $past
             (due_slot_i) == response_slot))
  `NS_ASSERT(one_beat_per_cycle, !(fire && bypass))

  // A ready slot leaves after few others, not only eventually.
  logic ready_pick;
  logic [5:0] waited_q;
  assign ready_pick = beats_left[pick_i] && due_q[pick_i] && stored_q[pick_i] != '0 && (older_q[pick_i] & beats_left) == '0
                      && !(cur_valid_q && cur_q == pick_i);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else if (!ready_pick || (ready_pop && ready_slot == pick_i)) waited_q <= '0;
    else if (ready_pop || !ready_valid) waited_q <= waited_q + 1'b1;
  end
  `NS_ASSERT(leaves_after_few_others, 32'(waited_q) <= MaxWait)
  `NS_ASSERT(due_waits_one_cycle, !$past(due_i && !due_ready && rst_ni) || due_ready)

  if (ResponsesById) begin : gen_responses
    logic [Slots-1:0] unanswered;
    always_comb for (int s = 0; s < Slots; s++) unanswered[s] = used_q[s] && outstanding_q[s] != '0;

    `NS_ASSUME(memory_answers_a_write,
               !response_i || (unanswered & (response_id_i ? id_q : ~id_q)) != '0)
    `NS_ASSERT(response_of_the_oldest,
               !response_i || (unanswered[lookup_slot] && id_q[lookup_slot] == response_id_i && (older_q[lookup_slot] & unanswered) == '0))
  end

  `NS_COVER(all_in_use, used_q == '1 && id_q == '0 && (due_q & beats_left) == '1)
  `NS_COVER(bypasses, bypass && (used_q & ~(Slots'(1) << response_slot)) != '0)
  `NS_COVER(leaves_after_another, ready_pop && waited_q != '0)
  `NS_COVER(due_has_to_wait, due_i && !due_ready)

endmodule
