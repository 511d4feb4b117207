// Order of the responses: which slot may go next.
//
// A slot may go when it is due, full (its response, or a beat of it, is there), and head (the oldest of its ID). Whatever
// makes the last of these true puts the slot into the queue `go`, and only then: there is no search over the slots. One
// slot enters `go` per cycle; those made head or full wait in queues of their own, one becoming due makes the wheel wait.
// They take turns.
//
// The slots of one ID form a list, linked by `next`; `tail` finds its end by the ID. A `tail` that is no longer in
// use is recognised by its slot being in no list or having another ID. The next slot of the ID becomes head when a slot is
// released: one with a single response in entering `go`, as what enters later also leaves later; others on `release_i`.
// The state of a slot is a bit in two or three memories with one writer each, which together, by exclusive or, stand for
// one with several. After reset `init_i` takes each slot out of all lists.
// With `Answers`, `una_a` ^ `una_b` is the oldest slot of an ID that memory has not answered yet.
`include "ns_assert.svh"

module nvm_delay_order
  import nvm_delay_pkg::*;
#(
  /// Bits of an ID.
  parameter int unsigned IdWidth = 8,
  /// 1: answers come by ID and in order; 0: the answer ports are not used.
  parameter bit Answers = 1'b0,
  /// 1: a response may pass only from the cycle after becoming due on.
  parameter bit PassLater = 1'b0
) (
  /// Clock.
  input  logic               clk_i,
  /// Reset.
  input  logic               rst_ni,
  /// Slot `init_slot_i` is set up; no transaction starts meanwhile.
  input  logic               init_i,
  /// See init_i.
  input  slot_t              init_slot_i,

  /// A transaction starts.
  input  logic               accept_i,
  /// Its slot.
  input  slot_t              slot_i,
  /// Its ID.
  input  logic [IdWidth-1:0] id_i,
  /// It has a single response.
  input  logic               single_i,
  /// It is due from the start.
  input  logic               due_now_i,

  /// A slot becomes due with the next cycle.
  input  logic               due_i,
  /// This is noted.
  output logic               due_ready_o,
  /// Which one.
  input  slot_t              due_slot_i,

  /// Memory has answered.
  input  logic               came_i,
  /// The slot of the answer.
  input  slot_t              look_slot_i,
  /// Nothing else is on its way out.
  input  logic               room_i,
  /// The answer passes: the slot is due and head and not full. Otherwise it is stored, and the slot is full.
  output logic               pass_o,
  /// A slot is not full any more.
  input  logic               empty_i,
  /// Which one.
  input  slot_t              empty_slot_i,

  /// A slot may go.
  output logic               go_valid_o,
  /// Which one.
  output slot_t              go_slot_o,
  /// If it has a single response, it has been released.
  output logic               go_released_o,
  /// It goes.
  input  logic               go_take_i,
  /// It stays due.
  input  logic               go_keep_i,
  /// A slot is released.
  input  logic               release_i,
  /// Which one.
  input  slot_t              release_slot_i,

  /// Memory has answered with an ID.
  input  logic               answer_i,
  /// The ID.
  input  logic [IdWidth-1:0] answer_id_i,
  /// The slot that the answer belongs to.
  output slot_t              answer_slot_o
);

  localparam int unsigned Ids = 2 ** IdWidth;

  (* ram_style = "distributed" *) slot_t tail[Ids];
  (* ram_style = "distributed" *) slot_t next[Slots];
  (* ram_style = "distributed" *) logic [IdWidth-1:0] id_of[Slots];
  (* ram_style = "distributed" *) logic single_of[Slots];
  // In a list; followed by another.
  (* ram_style = "distributed" *) logic entered[Slots];
  (* ram_style = "distributed" *) logic left[Slots];
  (* ram_style = "distributed" *) logic linked[Slots];
  (* ram_style = "distributed" *) logic unlinked[Slots];
  // Due: written by the wheel, when the slot goes, and when it starts.
  (* ram_style = "distributed" *) logic due_a[Slots];
  (* ram_style = "distributed" *) logic due_b[Slots];
  (* ram_style = "distributed" *) logic due_c[Slots];
  (* ram_style = "distributed" *) logic full_a[Slots];
  (* ram_style = "distributed" *) logic full_b[Slots];
  // Head: written on a release, and when the slot starts.
  (* ram_style = "distributed" *) logic head_a[Slots];
  (* ram_style = "distributed" *) logic head_b[Slots];

  // ---------------------------------------------------------------------------------------------------------------
  // Lists.

  logic
      rel_q,
      rel_told_q,
      rel,
      heads;  // a slot may be released; was by `release_i`; is; another one becomes head
  slot_t rel_slot_q, head_slot;
  slot_t tail_slot;
  logic append;

  assign rel = rel_q && (rel_told_q || single_of[rel_slot_q]);
  assign head_slot = next[rel_slot_q];
  assign heads = rel && linked[rel_slot_q] != unlinked[rel_slot_q];

  always_comb begin
    tail_slot = '0;
    append = 1'b0;
    if (accept_i) begin
      tail_slot = tail[id_i];
      append = entered[tail_slot] != left[tail_slot] && id_of[tail_slot] == id_i
               && !(rel && rel_slot_q == tail_slot);
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept_i) begin
      tail[id_i] <= slot_i;
      id_of[slot_i] <= id_i;
      single_of[slot_i] <= single_i;
      entered[slot_i] <= !left[slot_i];
      unlinked[slot_i] <= linked[slot_i];
      head_b[slot_i] <= head_a[slot_i] ^ !append;
      due_c[slot_i] <= due_a[slot_i] ^ due_b[slot_i] ^ due_now_i;
      if (append) begin
        next[tail_slot] <= slot_i;
        linked[tail_slot] <= !unlinked[tail_slot];
      end
    end
    if (heads) head_a[head_slot] <= !head_b[head_slot];
    if (init_i) left[init_slot_i] <= entered[init_slot_i];
    else if (rel) left[rel_slot_q] <= entered[rel_slot_q];
  end

  // ---------------------------------------------------------------------------------------------------------------
  // What makes a slot ready.

  logic look_head, look_due, look_full, store, refill;
  logic due_ready, full_ready, head_ready;  // by becoming due, full, head
  logic may_pass, due_now;  // if the slot is ready for it; the slot becomes due in this cycle
  logic just_q;
  slot_t just_slot_q;

  assign store = came_i && !pass_o;
  assign refill = store && empty_i && empty_slot_i == look_slot_i;
  assign look_head = (head_a[look_slot_i] ^ head_b[look_slot_i]) || (heads && head_slot == look_slot_i);
  assign look_due = due_a[look_slot_i] ^ due_b[look_slot_i] ^ due_c[look_slot_i];
  assign look_full = full_a[look_slot_i] ^ full_b[look_slot_i];
  assign may_pass = room_i && !(PassLater && just_q && just_slot_q == look_slot_i);
  assign pass_o = came_i && may_pass && look_head && look_due && !look_full;

  always_comb begin
    due_ready = 1'b0;
    full_ready = 1'b0;
    due_now = 1'b0;
    head_ready = 1'b0;
    if (due_i) begin
      due_ready = (full_a[due_slot_i] ^ full_b[due_slot_i])
                  && ((head_a[due_slot_i] ^ head_b[due_slot_i]) || (heads && head_slot == due_slot_i));
    end
    if (came_i) begin
      // `store` written out: what passes is due and not full.
      due_now = due_i && due_ready_o && due_slot_i == look_slot_i;
      if (look_full)
        full_ready = look_head && (look_due || due_now) && empty_i && empty_slot_i == look_slot_i;
      else full_ready = look_head && (look_due ? !may_pass : due_now);
    end
    if (heads) begin
      head_ready = (full_a[head_slot] ^ full_b[head_slot]) && (due_a[head_slot] ^ due_b[head_slot] ^ due_c[head_slot]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (due_i && due_ready_o) due_a[due_slot_i] <= !(due_b[due_slot_i] ^ due_c[due_slot_i]);
    if (go_take_i && !go_keep_i) due_b[go_slot_o] <= due_a[go_slot_o] ^ due_c[go_slot_o];
    if (store && !refill) full_a[look_slot_i] <= !full_b[look_slot_i];
    if (init_i) full_b[init_slot_i] <= full_a[init_slot_i];
    else if (empty_i && !refill) full_b[empty_slot_i] <= full_a[empty_slot_i];
    just_slot_q <= due_slot_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) just_q <= 1'b0;
    else just_q <= due_i && due_ready_o;
  end

  // ---------------------------------------------------------------------------------------------------------------
  // One of them a cycle.

  // Becoming due goes first, unless a slot that waits has its turn: whether the wheel goes on is known from registers.
  logic wait_turn_q, full_turn_q;  // of waiting slots; of those, the full one's
  logic head_wait, full_wait, head_valid, full_valid, go_push, head_gnt, full_gnt, due_gnt;
  logic head_room, full_room, go_room;
  slot_t head_wait_slot, full_wait_slot, go_push_slot;

  assign head_valid = head_wait || head_ready;
  assign full_valid = full_wait || full_ready;
  assign due_ready_o = !(wait_turn_q && (head_wait || full_wait));
  assign due_gnt = due_ready && due_ready_o;
  assign head_gnt = head_valid && !due_gnt && !(full_valid && full_turn_q);
  assign full_gnt = full_valid && !due_gnt && !(head_valid && !full_turn_q);

  assign go_push = head_valid || full_valid || due_gnt;

  always_comb begin
    go_push_slot = due_slot_i;
    if (head_gnt) go_push_slot = head_wait ? head_wait_slot : head_slot;
    if (full_gnt) go_push_slot = full_wait ? full_wait_slot : look_slot_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wait_turn_q <= 1'b0;
      full_turn_q <= 1'b0;
      rel_q <= 1'b0;
    end else begin
      if (go_push) wait_turn_q <= due_gnt;
      if (head_gnt || full_gnt) full_turn_q <= head_gnt;
      rel_q <= go_push || release_i;
    end
  end

  always_ff @(posedge clk_i) begin
    rel_told_q <= release_i;
    if (go_push || release_i) rel_slot_q <= release_i ? release_slot_i : go_push_slot;
  end

  ns_fifo #(
    .Width(SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_head (
    .clk_i,
    .rst_ni,
    .in_valid_i (head_ready && (head_wait || !head_gnt)),
    .in_ready_o (head_room),
    .in_data_i  (head_slot),
    .out_valid_o(head_wait),
    .out_ready_i(head_gnt),
    .out_data_o (head_wait_slot),
    .count_o    ()
  );

  ns_fifo #(
    .Width(SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_full (
    .clk_i,
    .rst_ni,
    .in_valid_i (full_ready && (full_wait || !full_gnt)),
    .in_ready_o (full_room),
    .in_data_i  (look_slot_i),
    .out_valid_o(full_wait),
    .out_ready_i(full_gnt),
    .out_data_o (full_wait_slot),
    .count_o    ()
  );

  ns_fifo #(
    .Width(1 + SlotWidth),
    .Depth(Slots),
    .Style("lutram")
  ) u_go (
    .clk_i,
    .rst_ni,
    .in_valid_i (go_push),
    .in_ready_o (go_room),
    .in_data_i  ({!release_i, go_push_slot}),
    .out_valid_o(go_valid_o),
    .out_ready_i(go_take_i),
    .out_data_o ({go_released_o, go_slot_o}),
    .count_o    ()
  );

  if (Answers) begin : gen_answers
    (* ram_style = "distributed" *) slot_t una_a[Ids];
    (* ram_style = "distributed" *) slot_t una_b[Ids];
    (* ram_style = "distributed" *) logic answered_a[Slots];
    (* ram_style = "distributed" *) logic answered_b[Slots];
    logic restart;

    always_comb begin
      answer_slot_o = '0;
      if (answer_i) answer_slot_o = una_a[answer_id_i] ^ una_b[answer_id_i];
    end

    // Nothing of this ID is left to be answered.
    assign restart = !append || answered_a[tail_slot] != answered_b[tail_slot] || (answer_i && answer_slot_o == tail_slot);

    always_ff @(posedge clk_i) begin
      if (answer_i) answered_a[answer_slot_o] <= !answered_b[answer_slot_o];
      if (accept_i) answered_b[slot_i] <= answered_a[slot_i];
      if (accept_i && restart) una_a[id_i] <= slot_i ^ una_b[id_i];
      if (answer_i && linked[answer_slot_o] != unlinked[answer_slot_o])
        una_b[answer_id_i] <= next[answer_slot_o] ^ una_a[answer_id_i];
    end

    `NS_ASSERT(answered_once, !answer_i || answered_a[answer_slot_o] == answered_b[answer_slot_o])
    `NS_ASSERT(answer_belongs, !answer_i || id_of[answer_slot_o] == answer_id_i)
  end else begin : gen_no_answers
    logic unused_answer;
    assign unused_answer = ^{answer_i, answer_id_i};
    assign answer_slot_o = '0;
  end

  `NS_ASSERT(ready_when_stored, !full_ready || store)
  `NS_ASSERT(queues_never_full, head_room && full_room && (go_room || !go_push))
  `NS_ASSERT(released_is_in_a_list, !rel || entered[rel_slot_q] != left[rel_slot_q])
  `NS_ASSERT(go_is_full, !go_take_i || (full_a[go_slot_o] ^ full_b[go_slot_o]))
  `NS_ASSERT(empty_was_full, !empty_i || (full_a[empty_slot_i] ^ full_b[empty_slot_i]))
  `NS_ASSERT(slot_is_new, !accept_i || entered[slot_i] == left[slot_i])

endmodule
