// SPDX-License-Identifier: Apache-2.0

// Queue of the ready slots. Up to three slots become ready in one cycle, by different events; one
// enters the queue.
//
// A slot that has become due has priority and is never stored: the wheel waits instead. Slots that
// have become full and slots that have become head wait in separate queues, which alternate. Once a
// slot has waited for one that became due, it enters before the next such slot. So every ready slot
// enters within a bounded number of cycles. Assumes that no slot is ready twice at a time: no queue
// then holds more than `Slots`.
`include "ns_assert.svh"

module nvm_delay_ready_queue #(
  /// Number of slots.
  parameter int unsigned Slots = 64,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// A slot is ready because it becomes due.
  input  logic                 due_valid_i,
  /// A slot may become due in this cycle. From registers.
  output logic                 due_ready_o,
  /// The slot.
  input  logic [SlotWidth-1:0] due_slot_i,
  /// A slot is ready because it becomes full.
  input  logic                 full_valid_i,
  /// The slot.
  input  logic [SlotWidth-1:0] full_slot_i,
  /// A slot is ready because it becomes head.
  input  logic                 head_valid_i,
  /// The slot.
  input  logic [SlotWidth-1:0] head_slot_i,

  /// A slot enters the queue.
  output logic                 push_o,
  /// The slot.
  output logic [SlotWidth-1:0] push_slot_o,
  /// A tag that is queued with the slot.
  input  logic                 push_tag_i,

  /// The queue is not empty.
  output logic                 valid_o,
  /// The oldest slot is removed.
  input  logic                 pop_i,
  /// The oldest slot.
  output logic [SlotWidth-1:0] slot_o,
  /// Its tag.
  output logic                 tag_o
);

  // wait: the waiting queue has a slot. valid: it has one, or a slot arrives in this cycle.
  logic full_wait, full_valid, full_queue_ready, full_push;
  logic head_wait, head_valid, head_queue_ready, head_push;
  logic due_push, queue_room;
  logic full_first, full_allowed;  // a full slot precedes one that became head; it may enter
  logic [SlotWidth-1:0] full_wait_slot, head_wait_slot;
  // Priority of the waiting slots over one that becomes due; among them, priority of the full ones.
  logic wait_turn_q, full_turn_q;

  assign full_valid = full_wait || full_valid_i;
  assign head_valid = head_wait || head_valid_i;

  assign due_ready_o = !(wait_turn_q && (full_wait || head_wait));
  assign due_push = due_valid_i && due_ready_o;
  assign full_first = !head_valid || (full_turn_q && full_valid);
  assign full_allowed = !due_push && (!head_valid || full_turn_q);
  assign full_push = full_valid && full_allowed;
  assign head_push = head_valid && !due_push && !full_first;
  assign push_o = due_push || full_valid || head_valid;

  always_comb begin
    if (due_push) push_slot_o = due_slot_i;
    else if (full_first) push_slot_o = full_wait ? full_wait_slot : full_slot_i;
    else push_slot_o = head_wait ? head_wait_slot : head_slot_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wait_turn_q <= 1'b0;
      full_turn_q <= 1'b0;
    end else begin
      if (push_o) wait_turn_q <= due_push;
      if (full_push || head_push) full_turn_q <= head_push;
    end
  end

  ns_fifo #(
    .Width(SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_full (
    .clk_i,
    .rst_ni,
    .in_valid_i (full_valid_i && (full_wait || !full_allowed)),
    .in_ready_o (full_queue_ready),
    .in_data_i  (full_slot_i),
    .out_valid_o(full_wait),
    .out_ready_i(full_allowed),
    .out_data_o (full_wait_slot),
    .count_o    ()
  );

  ns_fifo #(
    .Width(SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_head (
    .clk_i,
    .rst_ni,
    .in_valid_i (head_valid_i && (head_wait || !head_push)),
    .in_ready_o (head_queue_ready),
    .in_data_i  (head_slot_i),
    .out_valid_o(head_wait),
    .out_ready_i(head_push),
    .out_data_o (head_wait_slot),
    .count_o    ()
  );

  ns_fifo #(
    .Width(1 + SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (push_o),
    .in_ready_o (queue_room),
    .in_data_i  ({push_tag_i, push_slot_o}),
    .out_valid_o(valid_o),
    .out_ready_i(pop_i),
    .out_data_o ({tag_o, slot_o}),
    .count_o    ()
  );

  `NS_ASSERT(queues_never_full, full_queue_ready && head_queue_ready && (queue_room || !push_o))

endmodule
