// nvm_delay_order, as nvm_delay_write (Answers 1) or nvm_delay_read (Answers 0) use it: what they do with it is written down
// here in little, with every choice of theirs left open, beside plain books of what each slot is to do.
//
// A slot goes only when it is due, full and the oldest of its ID that has not gone; whatever is that goes, after few others;
// nothing goes twice; an answer belongs to the oldest slot of its ID that waits for one; no queue overflows.
`include "ns_assert.svh"

module order_proof #(
  /// Slots.
  parameter int unsigned Slots = 2,
  /// 1: as in nvm_delay_write; 0: as in nvm_delay_read.
  parameter bit ResponsesById = 1'b0,
  /// Beats of a read at most: 1 to 3.
  parameter int unsigned MaxBeats = 2,
  /// A slot that may go does, at the latest so many cycles later in which the queue moves or is empty.
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
  input logic                 came_i,
  input logic                 came_id_i,
  input logic [SlotWidth-1:0] came_slot_i,
  // The output is taken; a beat may leave the buffer; the slot that leaves goes on with its next beat; a beat may pass.
  input logic                 out_ready_i,
  input logic                 may_fire_i,
  input logic                 may_stay_i,
  input logic                 may_pass_i,
  // Any slot, always the same.
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

  logic due_ready, pass, go_valid, go_released, go_take, go_keep, room, empty, release_slot, store;
  slot_t answer_slot, look_slot, go_slot, empty_slot, released;

  nvm_delay_order #(
    .Slots    (Slots),
    .IdWidth  (1),
    .ResponsesById  (ResponsesById),
    .BypassNextCycle(!ResponsesById)
  ) u_order (
    .clk_i,
    .rst_ni,
    .init_i        (init_q),
    .init_slot_i   (init_slot_q),
    .accept_i,
    .slot_i,
    .id_i,
    .single_i      (beats_i == 2'd1),
    .due_now_i,
    .due_i,
    .due_ready_o   (due_ready),
    .due_slot_i,
    .response_i     (came_i),
    .response_slot_i   (look_slot),
    .bypass_ready_i        (room),
    .bypass_o        (pass),
    .empty_i       (empty),
    .empty_slot_i  (empty_slot),
    .ready_valid_o    (go_valid),
    .ready_slot_o     (go_slot),
    .ready_released_o (go_released),
    .ready_pop_i     (go_take),
    .ready_keep_due_i     (go_keep),
    .release_i     (release_slot),
    .release_slot_i(released),
    .lookup_i      (ResponsesById && came_i),
    .lookup_id_i   (came_id_i),
    .lookup_slot_o (answer_slot)
  );

  // -----------------------------------------------------------------------------------------------
  // The books: of each slot, what its transaction is and what is still to happen to it.

  logic [Slots-1:0] used_q;  // in flight, until its last response has been taken
  logic [Slots-1:0] id_q, single_q, together_q;
  logic [Slots-1:0] waits_q;  // in the wheel
  logic [Slots-1:0] due_q;
  logic [1:0] owed_q[Slots];  // beats that memory has not answered yet
  logic [1:0] stored_q[Slots];  // beats that have been stored and have not left
  logic [Slots-1:0] older_q[Slots];  // bit i of older_q[s]: i has the same ID, and was there before s

  // The slot whose beats are leaving (reads), and the output register.
  logic cur_valid_q, cur_passed_on_q, out_valid_q, out_last_q;
  slot_t cur_q, out_q;
  logic out_free, fire, fire_last, more, stay, cur_last, came_last, take;
  slot_t taken;  // the slot whose beat leaves the buffer

  assign out_free = !out_valid_q || out_ready_i;
  assign came_last = owed_q[look_slot] == 2'd1;
  assign store = came_i && !pass;

  if (ResponsesById) begin : gen_write
    assign look_slot = answer_slot;
    assign room = out_free && !go_valid;
    assign go_take = go_valid && out_free;
    assign go_keep = 1'b0;
    assign empty = go_take;
    assign empty_slot = go_slot;
    assign release_slot = pass || (go_take && !go_released);
    assign released = go_valid ? go_slot : look_slot;
    assign fire = go_take;
    assign fire_last = go_take;
    assign more = 1'b0;
    assign stay = 1'b0;
    assign cur_last = 1'b0;
    assign taken = go_slot;
  end else begin : gen_read
    assign look_slot = came_slot_i;
    assign room = out_free && !cur_valid_q && !go_valid && may_pass_i && (came_last || together_q[look_slot]);
    assign fire = cur_valid_q && out_free && may_fire_i;
    assign more = stored_q[cur_q] > 2'd1;
    assign fire_last = fire && owed_q[cur_q] == '0 && !more;
    assign stay = fire && more && (together_q[cur_q] || may_stay_i);
    assign cur_last = stay && owed_q[cur_q] == '0 && stored_q[cur_q] == 2'd2;
    assign go_take = go_valid && (!cur_valid_q || (fire && !stay));
    assign go_keep = together_q[go_slot];
    assign empty = fire && !more;
    assign empty_slot = cur_q;
    assign release_slot = (pass && came_last) || (fire_last && !cur_passed_on_q) || cur_last;
    assign released = cur_valid_q ? cur_q : look_slot;
    assign taken = cur_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q <= '0;
      waits_q <= '0;
      due_q <= '0;
      cur_valid_q <= 1'b0;
      out_valid_q <= 1'b0;
      for (int s = 0; s < Slots; s++) begin
        owed_q[s] <= '0;
        stored_q[s] <= '0;
        older_q[s] <= '0;
      end
    end else begin
      if (go_take && !ResponsesById) cur_valid_q <= 1'b1;
      else if (fire && !stay) cur_valid_q <= 1'b0;
      if (out_free) out_valid_q <= fire || pass;

      if (came_i) owed_q[look_slot] <= owed_q[look_slot] - 1'b1;
      for (int s = 0; s < Slots; s++) begin
        stored_q[s] <= stored_q[s] + 2'(store && look_slot == slot_t'(s)) - 2'(fire && taken == slot_t'(s));
      end
      if (go_take && !go_keep) due_q[go_slot] <= 1'b0;
      if (!ResponsesById && fire && !stay && !fire_last && !together_q[cur_q])
        waits_q[cur_q] <= 1'b1;
      if (due_i && due_ready) begin
        due_q[due_slot_i] <= 1'b1;
        waits_q[due_slot_i] <= 1'b0;
      end
      if (out_valid_q && out_ready_i && out_last_q) begin
        used_q[out_q] <= 1'b0;
        for (int s = 0; s < Slots; s++) older_q[s][out_q] <= 1'b0;
      end
      if (accept_i) begin
        used_q[slot_i] <= 1'b1;
        due_q[slot_i] <= due_now_i;
        waits_q[slot_i] <= !due_now_i;
        owed_q[slot_i] <= beats_i;
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
    if (go_take) begin
      cur_q <= go_slot;
      cur_passed_on_q <= single_q[go_slot] && go_released;
    end else if (cur_last) begin
      cur_passed_on_q <= 1'b1;
    end
    if (fire || pass) begin
      out_q <= pass ? look_slot : taken;
      out_last_q <= pass ? came_last : fire_last;
    end
  end

  // What a user of the order keeps to.
  `NS_ASSUME(starts_in_a_free_slot, !accept_i || (!init_q && !used_q[slot_i]))
  `NS_ASSUME(beats, beats_i != '0 && 32'(beats_i) <= (ResponsesById ? 32'd1 : MaxBeats))
  `NS_ASSUME(off_is_together, !(due_now_i && !together_i))
  `NS_ASSUME(due_from_the_wheel, !due_i || waits_q[due_slot_i])
  `NS_ASSUME(due_is_offered_until_it_is_noted, !(rst_ni && $past(rst_ni && due_i && !due_ready)
             ) || (due_i && due_slot_i == $past(due_slot_i)))
  if (!ResponsesById) begin : gen_read_beats
    `NS_ASSUME(memory_answers_what_it_owes, !came_i || owed_q[came_slot_i] != '0)
  end
  `NS_ASSUME(pick_stays, $past(!rst_ni) || pick_i == $past(pick_i))

  // -----------------------------------------------------------------------------------------------
  // The properties.

  // Slots with beats to go; oldest: nothing older of its ID has, but for what goes in this cycle.
  logic [Slots-1:0] left, going, oldest;
  always_comb begin
    for (int s = 0; s < Slots; s++) begin
      left[s] = used_q[s] && (owed_q[s] != '0 || stored_q[s] != '0);
      going[s] = fire_last && taken == slot_t'(s);
    end
    for (int s = 0; s < Slots; s++)
    oldest[s] = (older_q[s] & left & (ResponsesById ? '1 : ~going)) == '0;
  end

  `NS_ASSERT(goes_in_use, !go_take || used_q[go_slot])
  `NS_ASSERT(goes_when_due, !go_take || due_q[go_slot])
  `NS_ASSERT(goes_when_full,
             !go_take || stored_q[go_slot] > 2'(!ResponsesById && fire && cur_q == go_slot))
  `NS_ASSERT(goes_when_oldest, !go_take || oldest[go_slot])
  `NS_ASSERT(
      passes_when_ready,
      !pass || (used_q[look_slot] && due_q[look_slot] && stored_q[look_slot] == '0 && oldest[look_slot]))
  `NS_ASSERT(passes_later, ResponsesById || !pass || !($past(due_i && due_ready) && $past
             (due_slot_i) == look_slot))
  `NS_ASSERT(one_way_out, !(fire && pass))

  // What may go does: not only in the end, but after few others.
  logic ready_pick;
  logic [5:0] waited_q;
  assign ready_pick = left[pick_i] && due_q[pick_i] && stored_q[pick_i] != '0 && (older_q[pick_i] & left) == '0
                      && !(cur_valid_q && cur_q == pick_i);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else if (!ready_pick || (go_take && go_slot == pick_i)) waited_q <= '0;
    else if (go_take || !go_valid) waited_q <= waited_q + 1'b1;
  end
  `NS_ASSERT(goes_after_few_others, 32'(waited_q) <= MaxWait)
  `NS_ASSERT(due_waits_one_cycle, !$past(due_i && !due_ready && rst_ni) || due_ready)

  if (ResponsesById) begin : gen_answers
    logic [Slots-1:0] unanswered;
    always_comb for (int s = 0; s < Slots; s++) unanswered[s] = used_q[s] && owed_q[s] != '0;

    `NS_ASSUME(memory_answers_a_write, !came_i || (unanswered & (came_id_i ? id_q : ~id_q)) != '0)
    `NS_ASSERT(answer_of_the_oldest,
               !came_i || (unanswered[answer_slot] && id_q[answer_slot] == came_id_i && (older_q[answer_slot] & unanswered) == '0))
  end

  `NS_COVER(all_in_use, used_q == '1 && id_q == '0 && (due_q & left) == '1)
  `NS_COVER(passes, pass && (used_q & ~(Slots'(1) << look_slot)) != '0)
  `NS_COVER(goes_after_another, go_take && waited_q != '0)
  `NS_COVER(due_has_to_wait, due_i && !due_ready)

endmodule
