// Order of the transactions of each ID: which slots are the oldest of their ID, and which slot an answer belongs to.
//
// The slots of one ID form a list, linked by `next`; `tail` finds its end by the ID. A `tail` that is no longer in
// use is recognised by the ID that its slot has, so nothing is initialised.
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
  /// A transaction starts.
  input  logic               accept_i,
  /// Its slot.
  input  slot_t              slot_i,
  /// Its ID.
  input  logic [IdWidth-1:0] id_i,
  /// A slot has had its turn: the next one of its ID may go.
  input  logic               done_i,
  /// Which one.
  input  slot_t              done_slot_i,
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
  mask_t listed_q, head_q, linked_q;  // in a list; at its front; followed by another slot

  slot_t tail_slot;
  logic append;

  assign head_o = head_q;

  always_comb begin
    tail_slot = '0;
    append = 1'b0;
    if (accept_i) begin
      tail_slot = tail[id_i];
      append = listed_q[tail_slot] && id_of[tail_slot] == id_i && !(done_i && done_slot_i == tail_slot);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      listed_q <= '0;
      head_q <= '0;
      linked_q <= '0;
    end else begin
      if (done_i) begin
        listed_q[done_slot_i] <= 1'b0;
        head_q[done_slot_i] <= 1'b0;
        if (linked_q[done_slot_i]) head_q[next[done_slot_i]] <= 1'b1;
      end
      if (accept_i) begin
        listed_q[slot_i] <= 1'b1;
        head_q[slot_i] <= !append;
        linked_q[slot_i] <= 1'b0;
        if (append) linked_q[tail_slot] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept_i) begin
      tail[id_i] <= slot_i;
      id_of[slot_i] <= id_i;
      if (append) next[tail_slot] <= slot_i;
    end
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
      if (answer_i && linked_q[answer_slot_o])
        una_b[answer_id_i] <= next[answer_slot_o] ^ una_a[answer_id_i];
    end

    `NS_ASSERT(answer_belongs,
               !answer_i || (listed_q[answer_slot_o] && id_of[answer_slot_o] == answer_id_i))
    `NS_ASSERT(answered_once, !answer_i || !answered_q[answer_slot_o])
  end else begin : gen_no_answers
    logic unused_answer;
    assign unused_answer = ^{answer_i, answer_id_i};
    assign answer_slot_o = '0;
  end

  `NS_ASSERT(done_is_head, !done_i || head_q[done_slot_i])
  `NS_ASSERT(slot_is_new, !accept_i || !listed_q[slot_i])

endmodule
