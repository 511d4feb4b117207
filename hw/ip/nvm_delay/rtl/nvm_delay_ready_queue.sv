// Queue of the slots that may go. Up to three become ready in one cycle, for different reasons; one enters the queue.
//
// A slot that has become due goes first and is never stored: the wheel waits with it instead. Those that have become full and
// those that have become head wait in queues of their own, which take turns; once something has waited for one that
// became due, it goes before the next such one. So whatever is ready enters within a bounded number of cycles.
// Assumes that no slot is ready twice at a time: no queue then holds more than `Slots`.
`include "ns_assert.svh"

module nvm_delay_ready_queue #(
  /// Slots.
  parameter int unsigned Slots = 64,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// A slot is ready by becoming due.
  input  logic                 due_valid_i,
  /// One may become due in this cycle, ready or not. From registers.
  output logic                 due_ready_o,
  /// Which one.
  input  logic [SlotWidth-1:0] due_slot_i,
  /// A slot is ready by becoming full.
  input  logic                 full_valid_i,
  /// Which one.
  input  logic [SlotWidth-1:0] full_slot_i,
  /// A slot is ready by becoming head.
  input  logic                 head_valid_i,
  /// Which one.
  input  logic [SlotWidth-1:0] head_slot_i,

  /// A slot enters the queue.
  output logic                 enter_o,
  /// Which one.
  output logic [SlotWidth-1:0] enter_slot_o,
  /// A bit that stays with it.
  input  logic                 enter_tag_i,

  /// The queue is not empty.
  output logic                 go_valid_o,
  /// Its oldest slot is taken.
  input  logic                 go_take_i,
  /// That slot.
  output logic [SlotWidth-1:0] go_slot_o,
  /// Its bit.
  output logic                 go_tag_o
);

  // Wait: a slot is in the queue of those that wait. Valid: one is, or comes in this cycle.
  logic full_wait, full_valid, full_room, full_enter;
  logic head_wait, head_valid, head_room, head_enter;
  logic due_enter, go_room;
  logic
      full_first,
      full_may;  // a full slot goes before one that became head; one may enter, if there is one
  logic [SlotWidth-1:0] full_wait_slot, head_wait_slot;
  // The turn of those that wait, rather than of one that becomes due; of those, the turn of the full.
  logic wait_turn_q, full_turn_q;

  assign full_valid = full_wait || full_valid_i;
  assign head_valid = head_wait || head_valid_i;

  assign due_ready_o = !(wait_turn_q && (full_wait || head_wait));
  assign due_enter = due_valid_i && due_ready_o;
  assign full_first = !head_valid || (full_turn_q && full_valid);
  assign full_may = !due_enter && (!head_valid || full_turn_q);
  assign full_enter = full_valid && full_may;
  assign head_enter = head_valid && !due_enter && !full_first;
  assign enter_o = due_enter || full_valid || head_valid;

  always_comb begin
    if (due_enter) enter_slot_o = due_slot_i;
    else if (full_first) enter_slot_o = full_wait ? full_wait_slot : full_slot_i;
    else enter_slot_o = head_wait ? head_wait_slot : head_slot_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wait_turn_q <= 1'b0;
      full_turn_q <= 1'b0;
    end else begin
      if (enter_o) wait_turn_q <= due_enter;
      if (full_enter || head_enter) full_turn_q <= head_enter;
    end
  end

  ns_fifo #(
    .Width(SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_full (
    .clk_i,
    .rst_ni,
    .in_valid_i (full_valid_i && (full_wait || !full_may)),
    .in_ready_o (full_room),
    .in_data_i  (full_slot_i),
    .out_valid_o(full_wait),
    .out_ready_i(full_may),
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
    .in_valid_i (head_valid_i && (head_wait || !head_enter)),
    .in_ready_o (head_room),
    .in_data_i  (head_slot_i),
    .out_valid_o(head_wait),
    .out_ready_i(head_enter),
    .out_data_o (head_wait_slot),
    .count_o    ()
  );

  ns_fifo #(
    .Width(1 + SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_go (
    .clk_i,
    .rst_ni,
    .in_valid_i (enter_o),
    .in_ready_o (go_room),
    .in_data_i  ({enter_tag_i, enter_slot_o}),
    .out_valid_o(go_valid_o),
    .out_ready_i(go_take_i),
    .out_data_o ({go_tag_o, go_slot_o}),
    .count_o    ()
  );

  `NS_ASSERT(queues_never_full, full_room && head_room && (go_room || !enter_o))

endmodule
