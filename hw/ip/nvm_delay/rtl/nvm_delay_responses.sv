// The slot that an answer belongs to: the oldest one of its ID that has none yet, since answers of one ID come in order.
//
// `oldest` holds it for each ID that waits for answers. An answer moves it on to the next slot of the ID's list; a slot that
// starts while none of its ID waits becomes it.
// Assumes that an answer comes only for an ID that waits for one.
`include "ns_assert.svh"

module nvm_delay_responses #(
  /// Slots: a power of two.
  parameter int unsigned Slots = 64,
  /// Bits of an ID.
  parameter int unsigned IdWidth = 8,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// A slot is put into a list, see nvm_delay_id_lists.
  input  logic                 put_i,
  /// Which one.
  input  logic [SlotWidth-1:0] put_slot_i,
  /// Its ID.
  input  logic [IdWidth-1:0]   put_id_i,
  /// The list has other slots.
  input  logic                 put_behind_i,
  /// The last of them.
  input  logic [SlotWidth-1:0] put_tail_i,

  /// Memory has answered.
  input  logic                 answer_i,
  /// With this ID.
  input  logic [IdWidth-1:0]   answer_id_i,
  /// The slot that the answer belongs to.
  output logic [SlotWidth-1:0] answer_slot_o,
  /// Another one follows this slot in its list.
  input  logic                 followed_i,
  /// That one.
  input  logic [SlotWidth-1:0] next_i
);

  logic tail_answered, slot_answered, none_waits;

  // The list is empty, or its last slot has its answer, or gets it now.
  assign none_waits = !put_behind_i || tail_answered || (answer_i && answer_slot_o == put_tail_i);

  ns_ram_multi #(
    .Width (SlotWidth),
    .Depth (2 ** IdWidth),
    .Writes(2),
    .Reads (1)
  ) u_oldest (
    .clk_i,
    .rst_ni,
    .we_i   ({answer_i && followed_i, put_i && none_waits}),
    .waddr_i({answer_id_i, put_id_i}),
    .wdata_i({next_i, put_slot_i}),
    .raddr_i(answer_id_i),
    .rdata_o(answer_slot_o)
  );

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (2)
  ) u_answered (
    .clk_i,
    .rst_ni,
    .we_i   ({answer_i, put_i}),
    .waddr_i({answer_slot_o, put_slot_i}),
    .wdata_i({1'b1, 1'b0}),
    .raddr_i({put_tail_i, answer_slot_o}),
    .rdata_o({tail_answered, slot_answered})
  );

  `NS_ASSERT(answered_once, !answer_i || !slot_answered)

endmodule
