// SPDX-License-Identifier: Apache-2.0

// The slot of a response: the oldest slot of its ID without one, since responses of one ID arrive
// in order.
//
// `oldest` holds that slot for each ID that waits for responses. A response advances it to the next
// slot of the ID's list. A slot that starts while none of its ID waits becomes the oldest. Assumes
// that a response arrives only for an ID that waits for one.
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

  /// A slot is appended to a list, see nvm_delay_id_lists.
  input  logic                 push_i,
  /// The slot.
  input  logic [SlotWidth-1:0] push_slot_i,
  /// Its ID.
  input  logic [IdWidth-1:0]   push_id_i,
  /// The list already has slots.
  input  logic                 push_nonempty_i,
  /// Its last slot.
  input  logic [SlotWidth-1:0] push_tail_i,

  /// A response arrives.
  input  logic                 response_i,
  /// Its ID.
  input  logic [IdWidth-1:0]   response_id_i,
  /// The slot of the response.
  output logic [SlotWidth-1:0] response_slot_o,
  /// That slot has a successor in its list.
  input  logic                 followed_i,
  /// The successor.
  input  logic [SlotWidth-1:0] next_i
);

  logic tail_answered, slot_answered, none_waiting;

  // The list is empty, or its last slot has its response, or gets it now.
  assign none_waiting = !push_nonempty_i || tail_answered || (response_i && response_slot_o == push_tail_i);

  ns_ram_multi #(
    .Width (SlotWidth),
    .Depth (2 ** IdWidth),
    .Writes(2),
    .Reads (1)
  ) u_oldest (
    .clk_i,
    .rst_ni,
    .we_i   ({response_i && followed_i, push_i && none_waiting}),
    .waddr_i({response_id_i, push_id_i}),
    .wdata_i({next_i, push_slot_i}),
    .raddr_i(response_id_i),
    .rdata_o(response_slot_o)
  );

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (2)
  ) u_answered (
    .clk_i,
    .rst_ni,
    .we_i   ({response_i, push_i}),
    .waddr_i({response_slot_o, push_slot_i}),
    .wdata_i({1'b1, 1'b0}),
    .raddr_i({push_tail_i, response_slot_o}),
    .rdata_o({tail_answered, slot_answered})
  );

  `NS_ASSERT(answered_once, !response_i || !slot_answered)

endmodule
