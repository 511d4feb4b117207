// Order of the transactions of each ID: which slots are the oldest of their ID, and which slot an answer belongs to.
//
// The slots of one ID form a list, linked by `next`; `tail` finds its end by the ID. A `tail` that is no longer in
// use is recognised by its slot being in no list or having another ID.
// A slot is in a list while its bits in `entered` and `left` differ, and is followed by another while those in `linked` and
// `unlinked` differ: two memories with one writer each stand for one with two. After reset `init_i` empties the lists.
// With `Answers`, `una` = `una_a` ^ `una_b` is the oldest slot of an ID that memory has not answered yet; two memories
// with one writer each stand for one with two.
`include "ns_assert.svh"

module nvm_delay_order
  import nvm_delay_pkg::*;
#(
  /// Bits of an ID.
  parameter int unsigned IdWidth = 8,
  /// 1: answers come by ID and in order; 0: the answer ports are not used.
  parameter bit Answers = 1'b0
) (
  /// Clock.
  input  logic               clk_i,
  /// Reset.
  input  logic               rst_ni,
  /// Slot `init_slot_i` is taken out of all lists; no transaction starts meanwhile.
  input  logic               init_i,
  /// See init_i.
  input  slot_t              init_slot_i,
  /// A transaction starts.
  input  logic               accept_i,
  /// Its slot.
  input  slot_t              slot_i,
  /// Its ID.
  input  logic [IdWidth-1:0] id_i,
  /// A slot has had its turn: the next one of its ID may go. Never together with other_i.
  input  logic               done_i,
  /// Which one.
  input  slot_t              done_slot_i,
  /// The same, for another slot: so that neither slot number waits for the other's condition.
  input  logic               other_i,
  /// Which one.
  input  slot_t              other_slot_i,
  /// Slots that are the oldest of their ID.
  output mask_t              head_o,
  /// Memory has answered.
  input  logic               answer_i,
  /// The ID of the answer.
  input  logic [IdWidth-1:0] answer_id_i,
  /// The slot that it belongs to.
  output slot_t              answer_slot_o
);

  localparam int unsigned Ids = 2 ** IdWidth;

  (* ram_style = "distributed" *) slot_t tail[Ids];
  (* ram_style = "distributed" *) slot_t next[Slots];
  (* ram_style = "distributed" *) logic [IdWidth-1:0] id_of[Slots];
  (* ram_style = "distributed" *) logic entered[Slots];
  (* ram_style = "distributed" *) logic left[Slots];
  (* ram_style = "distributed" *) logic linked[Slots];
  (* ram_style = "distributed" *) logic unlinked[Slots];
  // Copies for `other_slot_i`: synthesis would let the two lookups share a port, one behind the other's condition.
  (* ram_style = "distributed" *) slot_t other_next[Slots];
  (* ram_style = "distributed" *) logic other_linked[Slots];
  (* ram_style = "distributed" *) logic other_unlinked[Slots];
  mask_t head_q, set, clear;  // at the front of a list; changes of it

  slot_t tail_slot, left_slot;
  logic append;

  assign left_slot = other_i ? other_slot_i : done_slot_i;

  assign head_o = head_q;

  always_comb begin
    tail_slot = '0;
    append = 1'b0;
    if (accept_i) begin
      tail_slot = tail[id_i];
      append = entered[tail_slot] != left[tail_slot] && id_of[tail_slot] == id_i
               && !(done_i && done_slot_i == tail_slot) && !(other_i && other_slot_i == tail_slot);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q <= '0;
    end else begin
      head_q <= (head_q & ~clear) | set;
    end
  end

  always_comb begin
    set = '0;
    clear = '0;
    if (done_i) begin
      clear = one_hot(done_slot_i);
      if (linked[done_slot_i] != unlinked[done_slot_i]) set = one_hot(next[done_slot_i]);
    end
    if (other_i) begin
      clear |= one_hot(other_slot_i);
      if (other_linked[other_slot_i] != other_unlinked[other_slot_i])
        set |= one_hot(other_next[other_slot_i]);
    end
    if (accept_i && !append) set |= one_hot(slot_i);
  end

  always_ff @(posedge clk_i) begin
    if (accept_i) begin
      tail[id_i] <= slot_i;
      id_of[slot_i] <= id_i;
      entered[slot_i] <= !left[slot_i];
      unlinked[slot_i] <= linked[slot_i];
      other_unlinked[slot_i] <= other_linked[slot_i];
      if (append) begin
        next[tail_slot] <= slot_i;
        other_next[tail_slot] <= slot_i;
        linked[tail_slot] <= !unlinked[tail_slot];
        other_linked[tail_slot] <= !other_unlinked[tail_slot];
      end
    end
    if (init_i) left[init_slot_i] <= entered[init_slot_i];
    else if (done_i || other_i) left[left_slot] <= entered[left_slot];
  end

  if (Answers) begin : gen_answers
    (* ram_style = "distributed" *) slot_t una_a[Ids];
    (* ram_style = "distributed" *) slot_t una_b[Ids];
    mask_t answered_q;
    logic restart;

    always_comb begin
      answer_slot_o = '0;
      if (answer_i) answer_slot_o = una_a[answer_id_i] ^ una_b[answer_id_i];
    end

    // Nothing of this ID is left to be answered.
    assign restart = !append || answered_q[tail_slot] || (answer_i && answer_slot_o == tail_slot);

    always_ff @(posedge clk_i) begin
      if (answer_i) answered_q[answer_slot_o] <= 1'b1;
      if (accept_i) answered_q[slot_i] <= 1'b0;
      if (accept_i && restart) una_a[id_i] <= slot_i ^ una_b[id_i];
      if (answer_i && linked[answer_slot_o] != unlinked[answer_slot_o])
        una_b[answer_id_i] <= next[answer_slot_o] ^ una_a[answer_id_i];
    end

    `NS_ASSERT(answer_belongs,
               !answer_i || (entered[answer_slot_o] != left[answer_slot_o] && id_of[answer_slot_o] == answer_id_i))
    `NS_ASSERT(answered_once, !answer_i || !answered_q[answer_slot_o])
  end else begin : gen_no_answers
    logic unused_answer;
    assign unused_answer = ^{answer_i, answer_id_i};
    assign answer_slot_o = '0;
  end

  `NS_ASSERT(one_done, !done_i || !other_i)
  `NS_ASSERT(done_is_head, !done_i || head_q[done_slot_i])
  `NS_ASSERT(other_is_head, !other_i || head_q[other_slot_i])
  `NS_ASSERT(slot_is_new, !accept_i || entered[slot_i] == left[slot_i])

endmodule
