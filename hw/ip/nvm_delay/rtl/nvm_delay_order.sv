// SPDX-License-Identifier: Apache-2.0

// Order of the responses: selects the slot that responds next.
//
// A slot is ready when three conditions hold. It is due, full (its response, or a beat of it, is
// stored), and head (the oldest of its ID). The event that completes the three conditions puts the
// slot into a queue (nvm_delay_ready_queue), so no logic ever searches the slots. Three events are
// possible: the slot becomes due (`due_i`), memory responds (`response_i`), or the slot before it
// in the list of its ID (nvm_delay_id_lists) is released. Each event reads the two other conditions
// from memories.
//
// A slot with a single response is released when it enters the queue, since later entries also
// leave later. Other slots are released by `release_i`. A response for a slot that is due, head and
// not full may bypass the storage.
`include "ns_assert.svh"

module nvm_delay_order #(
  /// Slots: a power of two.
  parameter int unsigned Slots = 64,
  /// Bits of an ID.
  parameter int unsigned IdWidth = 8,
  /// 1: responses arrive by ID and in order, one for each slot; 0: the lookup ports are unused.
  parameter bit ResponsesById = 1'b0,
  /// 1: a response may bypass only from the cycle after the slot becomes due.
  parameter bit BypassNextCycle = 1'b0,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Slot `init_slot_i` is set up; no transaction starts meanwhile.
  input  logic                 init_i,
  /// See init_i.
  input  logic [SlotWidth-1:0] init_slot_i,

  /// A transaction starts.
  input  logic                 accept_i,
  /// Its slot.
  input  logic [SlotWidth-1:0] slot_i,
  /// Its ID.
  input  logic [IdWidth-1:0]   id_i,
  /// It has a single response.
  input  logic                 single_i,
  /// It is due from the start.
  input  logic                 due_now_i,

  /// A slot becomes due with the next cycle.
  input  logic                 due_i,
  /// The event is accepted.
  output logic                 due_ready_o,
  /// The slot.
  input  logic [SlotWidth-1:0] due_slot_i,

  /// A response of the memory arrives.
  input  logic                 response_i,
  /// The slot of the response.
  input  logic [SlotWidth-1:0] response_slot_i,
  /// The output is free.
  input  logic                 bypass_ready_i,
  /// The response bypasses: its slot is due, head and not full. Otherwise it is stored, and the
  /// slot is full.
  output logic                 bypass_o,
  /// A slot is no longer full.
  input  logic                 empty_i,
  /// The slot.
  input  logic [SlotWidth-1:0] empty_slot_i,

  /// A slot is ready to respond.
  output logic                 ready_valid_o,
  /// The slot.
  output logic [SlotWidth-1:0] ready_slot_o,
  /// It has been released, if it has a single response.
  output logic                 ready_released_o,
  /// The slot is removed from the queue.
  input  logic                 ready_pop_i,
  /// The slot stays due.
  input  logic                 ready_keep_due_i,
  /// A slot is released.
  input  logic                 release_i,
  /// The slot.
  input  logic [SlotWidth-1:0] release_slot_i,

  /// A response arrives by ID.
  input  logic                 lookup_i,
  /// Its ID.
  input  logic [IdWidth-1:0]   lookup_id_i,
  /// The slot of the response.
  output logic [SlotWidth-1:0] lookup_slot_o
);

  // -----------------------------------------------------------------------------------------------
  // Release: in the cycle after a slot has entered the queue, or has been released by `release_i`.
  // The next slot of its ID becomes head.

  (* ram_style = "distributed" *) logic single_of[Slots];
  logic queue_push;
  // released_q: a slot may be released; release_q: by `release_i`; release_valid: it is.
  logic released_q, release_q, release_valid;
  logic [SlotWidth-1:0] queue_push_slot, released_slot_q;
  logic list_nonempty, has_next;
  logic head_valid;  // a slot becomes head
  logic [SlotWidth-1:0] tail_slot, head_slot;
  logic lookup_followed;
  logic [SlotWidth-1:0] lookup_next;

  assign release_valid = released_q && (release_q || single_of[released_slot_q]);
  assign head_valid = release_valid && has_next;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) released_q <= 1'b0;
    else released_q <= queue_push || release_i;
  end

  always_ff @(posedge clk_i) begin
    release_q <= release_i;
    if (queue_push || release_i) released_slot_q <= release_i ? release_slot_i : queue_push_slot;
    if (accept_i) single_of[slot_i] <= single_i;
  end

  nvm_delay_id_lists #(
    .Slots  (Slots),
    .IdWidth(IdWidth)
  ) u_lists (
    .clk_i,
    .rst_ni,
    .init_i,
    .init_slot_i,
    .push_i          (accept_i),
    .push_slot_i     (slot_i),
    .push_id_i       (id_i),
    .push_nonempty_o (list_nonempty),
    .push_tail_o     (tail_slot),
    .pop_i           (release_valid),
    .pop_slot_i      (released_slot_q),
    .pop_followed_o  (has_next),
    .pop_next_o      (head_slot),
    .query_slot_i    (lookup_slot_o),
    .query_followed_o(lookup_followed),
    .query_next_o    (lookup_next)
  );

  // -----------------------------------------------------------------------------------------------
  // The three conditions of each slot.

  logic due_fire, store, refill;  // refill: a slot is emptied and filled at once, and stays full
  logic response_due, response_full, response_head;  // of the response's slot
  logic due_full, due_head;  // of the slot that becomes due
  logic head_due, head_full;  // of the slot that becomes head
  logic response_was_full, response_was_head, due_was_head, ready_full, empty_full;

  assign due_fire = due_i && due_ready_o;
  assign store = response_i && !bypass_o;
  assign refill = store && empty_i && empty_slot_i == response_slot_i;

  // A slot with one response leaves once, so it stays due until its next transaction. That saves a
  // write port in a long path.
  localparam int unsigned DueWrites = ResponsesById ? 2 : 3;

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(DueWrites),
    .Reads (2)
  ) u_due (
    .clk_i,
    .rst_ni,
    .we_i   (DueWrites'({ready_pop_i && !ready_keep_due_i, due_fire, accept_i})),
    .waddr_i((DueWrites * SlotWidth)'({ready_slot_o, due_slot_i, slot_i})),
    .wdata_i(DueWrites'({1'b0, 1'b1, due_now_i})),
    .raddr_i({response_slot_i, head_slot}),
    .rdata_o({response_due, head_due})
  );

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (5)
  ) u_full (
    .clk_i,
    .rst_ni,
    .we_i   ({store && !refill, init_i || (empty_i && !refill)}),
    .waddr_i({response_slot_i, init_i ? init_slot_i : empty_slot_i}),
    .wdata_i({1'b1, 1'b0}),
    .raddr_i({response_slot_i, due_slot_i, head_slot, ready_slot_o, empty_slot_i}),
    .rdata_o({response_was_full, due_full, head_full, ready_full, empty_full})
  );

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (2)
  ) u_head (
    .clk_i,
    .rst_ni,
    .we_i   ({head_valid, accept_i}),
    .waddr_i({head_slot, slot_i}),
    .wdata_i({1'b1, !list_nonempty}),
    .raddr_i({response_slot_i, due_slot_i}),
    .rdata_o({response_was_head, due_was_head})
  );

  assign response_full = !ResponsesById && response_was_full;  // a slot with one response is not full before it
  assign response_head = response_was_head || (head_valid && head_slot == response_slot_i);
  assign due_head = due_was_head || (head_valid && head_slot == due_slot_i);

  // -----------------------------------------------------------------------------------------------
  // Effects of the events of this cycle.

  logic
      bypass_allowed,
      response_due_now;  // the output allows a bypass; the slot becomes due in this cycle
  logic due_event, full_event, head_event;  // a slot becomes ready by becoming due, full, head
  logic just_due_q;
  logic [SlotWidth-1:0] just_due_slot_q;

  assign bypass_allowed = bypass_ready_i && !(BypassNextCycle && just_due_q && just_due_slot_q == response_slot_i);
  assign bypass_o = response_i && bypass_allowed && response_head && response_due && !response_full;
  assign response_due_now = due_fire && due_slot_i == response_slot_i;

  assign due_event = due_i && due_full && due_head;
  assign head_event = head_valid && head_full && head_due;

  // A slot that is already full becomes ready only if it is emptied and refilled. Otherwise it
  // becomes ready if the response does not bypass; a bypassing response is due.
  always_comb begin
    full_event = 1'b0;
    if (response_i && response_head) begin
      if (response_full)
        full_event = (response_due || response_due_now) && empty_i && empty_slot_i == response_slot_i;
      else full_event = response_due ? !bypass_allowed : response_due_now;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) just_due_q <= 1'b0;
    else just_due_q <= due_fire;
  end

  always_ff @(posedge clk_i) just_due_slot_q <= due_slot_i;

  nvm_delay_ready_queue #(
    .Slots(Slots)
  ) u_ready (
    .clk_i,
    .rst_ni,
    .due_valid_i (due_event),
    .due_ready_o,
    .due_slot_i,
    .full_valid_i(full_event),
    .full_slot_i (response_slot_i),
    .head_valid_i(head_event),
    .head_slot_i (head_slot),
    .push_o      (queue_push),
    .push_slot_o (queue_push_slot),
    .push_tag_i  (!release_i),
    .valid_o     (ready_valid_o),
    .pop_i       (ready_pop_i),
    .slot_o      (ready_slot_o),
    .tag_o       (ready_released_o)
  );

  if (ResponsesById) begin : gen_responses
    nvm_delay_responses #(
      .Slots  (Slots),
      .IdWidth(IdWidth)
    ) u_responses (
      .clk_i,
      .rst_ni,
      .push_i         (accept_i),
      .push_slot_i    (slot_i),
      .push_id_i      (id_i),
      .push_nonempty_i(list_nonempty),
      .push_tail_i    (tail_slot),
      .response_i     (lookup_i),
      .response_id_i  (lookup_id_i),
      .response_slot_o(lookup_slot_o),
      .followed_i     (lookup_followed),
      .next_i         (lookup_next)
    );
  end else begin : gen_no_responses
    logic unused_lookup;
    assign unused_lookup = ^{lookup_i, lookup_id_i, lookup_followed, lookup_next, tail_slot};
    assign lookup_slot_o = '0;
  end

  `NS_ASSERT(full_event_only_when_stored, !full_event || store)
  `NS_ASSERT(response_slot_is_not_full, !(ResponsesById && response_i && response_was_full))
  `NS_ASSERT(ready_is_full, !ready_pop_i || ready_full)
  `NS_ASSERT(empty_was_full, !empty_i || empty_full)

endmodule
