// Order of the responses: which slot may go next.
//
// A slot may go when it is due, full (its response, or a beat of it, is there), and head (the oldest of its ID). Whatever
// makes the last of these true puts it into the queue `go` (nvm_delay_ready_queue), and only then: nothing ever searches the slots.
// A slot is looked at when it becomes due (`due_i`), when memory answers (`came_i`), and when the one before it in the
// list of its ID (nvm_delay_id_lists) is released; each time the two other conditions are read from memories.
// A slot with a single response is released by entering `go`, since what enters later also leaves later; others by `release_i`.
// An answer for a slot that is due and head already, and not full, need not be stored: it may pass.
`include "ns_assert.svh"

module nvm_delay_order #(
  /// Slots: a power of two.
  parameter int unsigned Slots = 64,
  /// Bits of an ID.
  parameter int unsigned IdWidth = 8,
  /// 1: answers come by ID and in order, one for each slot; 0: the answer ports are not used.
  parameter bit Answers = 1'b0,
  /// 1: a response may pass only from the cycle after becoming due on.
  parameter bit PassLater = 1'b0,
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
  /// This is noted.
  output logic                 due_ready_o,
  /// Which one.
  input  logic [SlotWidth-1:0] due_slot_i,

  /// Memory has answered.
  input  logic                 came_i,
  /// The slot of the answer.
  input  logic [SlotWidth-1:0] look_slot_i,
  /// Nothing else is on its way out.
  input  logic                 room_i,
  /// The answer passes: the slot is due and head and not full. Otherwise it is stored, and the slot is full.
  output logic                 pass_o,
  /// A slot is not full any more.
  input  logic                 empty_i,
  /// Which one.
  input  logic [SlotWidth-1:0] empty_slot_i,

  /// A slot may go.
  output logic                 go_valid_o,
  /// Which one.
  output logic [SlotWidth-1:0] go_slot_o,
  /// If it has a single response, it has been released.
  output logic                 go_released_o,
  /// It goes.
  input  logic                 go_take_i,
  /// It stays due.
  input  logic                 go_keep_i,
  /// A slot is released.
  input  logic                 release_i,
  /// Which one.
  input  logic [SlotWidth-1:0] release_slot_i,

  /// Memory has answered with an ID.
  input  logic                 answer_i,
  /// The ID.
  input  logic [IdWidth-1:0]   answer_id_i,
  /// The slot that the answer belongs to.
  output logic [SlotWidth-1:0] answer_slot_o
);

  // ---------------------------------------------------------------------------------------------------------------
  // Release: in the cycle after a slot has entered `go` or been released from outside. The next one of its ID becomes head.

  (* ram_style = "distributed" *) logic single_of[Slots];
  logic enter, left_q, release_q, leaves;  // left: a slot may be released; release: by `release_i`
  logic [SlotWidth-1:0] enter_slot, left_slot_q;
  logic behind, followed, heads;  // heads: a slot becomes head
  logic [SlotWidth-1:0] tail_slot, heads_slot;
  logic answer_followed;
  logic [SlotWidth-1:0] answer_next;

  assign leaves = left_q && (release_q || single_of[left_slot_q]);
  assign heads = leaves && followed;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) left_q <= 1'b0;
    else left_q <= enter || release_i;
  end

  always_ff @(posedge clk_i) begin
    release_q <= release_i;
    if (enter || release_i) left_slot_q <= release_i ? release_slot_i : enter_slot;
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
    .put_i          (accept_i),
    .put_slot_i     (slot_i),
    .put_id_i       (id_i),
    .put_behind_o   (behind),
    .put_tail_o     (tail_slot),
    .take_i         (leaves),
    .take_slot_i    (left_slot_q),
    .take_followed_o(followed),
    .take_next_o    (heads_slot),
    .ask_slot_i     (answer_slot_o),
    .ask_followed_o (answer_followed),
    .ask_next_o     (answer_next)
  );

  // ---------------------------------------------------------------------------------------------------------------
  // The three conditions of each slot.

  logic
      becomes_due, store, refill;  // refill: a slot is made full and empty at once, and stays full
  logic look_due, look_full, look_head;  // of the slot of the answer
  logic due_full, due_head;  // of the slot that becomes due
  logic heads_due, heads_full;  // of the slot that becomes head
  logic look_was_full, look_was_head, due_was_head, go_full, empty_full;

  assign becomes_due = due_i && due_ready_o;
  assign store = came_i && !pass_o;
  assign refill = store && empty_i && empty_slot_i == look_slot_i;

  // A slot with one answer goes once, so it is due until it starts anew: a port less in front of a long path.
  localparam int unsigned DueWrites = Answers ? 2 : 3;

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(DueWrites),
    .Reads (2)
  ) u_due (
    .clk_i,
    .rst_ni,
    .we_i   (DueWrites'({go_take_i && !go_keep_i, becomes_due, accept_i})),
    .waddr_i((DueWrites * SlotWidth)'({go_slot_o, due_slot_i, slot_i})),
    .wdata_i(DueWrites'({1'b0, 1'b1, due_now_i})),
    .raddr_i({look_slot_i, heads_slot}),
    .rdata_o({look_due, heads_due})
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
    .waddr_i({look_slot_i, init_i ? init_slot_i : empty_slot_i}),
    .wdata_i({1'b1, 1'b0}),
    .raddr_i({look_slot_i, due_slot_i, heads_slot, go_slot_o, empty_slot_i}),
    .rdata_o({look_was_full, due_full, heads_full, go_full, empty_full})
  );

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (2)
  ) u_head (
    .clk_i,
    .rst_ni,
    .we_i   ({heads, accept_i}),
    .waddr_i({heads_slot, slot_i}),
    .wdata_i({1'b1, !behind}),
    .raddr_i({look_slot_i, due_slot_i}),
    .rdata_o({look_was_head, due_was_head})
  );

  assign look_full = !Answers && look_was_full;  // a slot with one answer isn't full before it
  assign look_head = look_was_head || (heads && heads_slot == look_slot_i);
  assign due_head = due_was_head || (heads && heads_slot == due_slot_i);

  // ---------------------------------------------------------------------------------------------------------------
  // What the events of this cycle make of them.

  logic
      may_pass,
      look_due_now;  // a response may pass if its slot is ready for it; the slot becomes due in this cycle
  logic due_ready, full_ready, head_ready;  // a slot becomes ready by becoming due, full, head
  logic just_due_q;
  logic [SlotWidth-1:0] just_due_slot_q;

  assign may_pass = room_i && !(PassLater && just_due_q && just_due_slot_q == look_slot_i);
  assign pass_o = came_i && may_pass && look_head && look_due && !look_full;
  assign look_due_now = becomes_due && due_slot_i == look_slot_i;

  assign due_ready = due_i && due_full && due_head;
  assign head_ready = heads && heads_full && heads_due;

  // Full already: ready only if the slot is emptied and refilled. Else: if the response does not pass; what passes is due.
  always_comb begin
    full_ready = 1'b0;
    if (came_i && look_head) begin
      if (look_full)
        full_ready = (look_due || look_due_now) && empty_i && empty_slot_i == look_slot_i;
      else full_ready = look_due ? !may_pass : look_due_now;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) just_due_q <= 1'b0;
    else just_due_q <= becomes_due;
  end

  always_ff @(posedge clk_i) just_due_slot_q <= due_slot_i;

  nvm_delay_ready_queue #(
    .Slots(Slots)
  ) u_ready (
    .clk_i,
    .rst_ni,
    .due_valid_i (due_ready),
    .due_ready_o,
    .due_slot_i,
    .full_valid_i(full_ready),
    .full_slot_i (look_slot_i),
    .head_valid_i(head_ready),
    .head_slot_i (heads_slot),
    .enter_o     (enter),
    .enter_slot_o(enter_slot),
    .enter_tag_i (!release_i),
    .go_valid_o,
    .go_take_i,
    .go_slot_o,
    .go_tag_o    (go_released_o)
  );

  if (Answers) begin : gen_answers
    nvm_delay_responses #(
      .Slots  (Slots),
      .IdWidth(IdWidth)
    ) u_answers (
      .clk_i,
      .rst_ni,
      .put_i        (accept_i),
      .put_slot_i   (slot_i),
      .put_id_i     (id_i),
      .put_behind_i (behind),
      .put_tail_i   (tail_slot),
      .answer_i,
      .answer_id_i,
      .answer_slot_o,
      .followed_i   (answer_followed),
      .next_i       (answer_next)
    );
  end else begin : gen_no_answers
    logic unused_answer;
    assign unused_answer = ^{answer_i, answer_id_i, answer_followed, answer_next, tail_slot};
    assign answer_slot_o = '0;
  end

  `NS_ASSERT(ready_when_stored, !full_ready || store)
  `NS_ASSERT(answered_is_not_full, !(Answers && came_i && look_was_full))
  `NS_ASSERT(go_is_full, !go_take_i || go_full)
  `NS_ASSERT(empty_was_full, !empty_i || empty_full)

endmodule
