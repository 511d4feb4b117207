// SPDX-License-Identifier: Apache-2.0

// The slots of each ID as a list, oldest first.
//
// A slot is appended to the list of its ID when its transaction starts, and removed from the front
// when it is released. The list is linked by `next`, and `tail` holds its last slot by ID. An entry
// of `tail` may be stale. It is valid only while its slot is in a list (`listed`) and has this ID,
// since each append updates `tail`. `followed` marks slots whose `next` is valid.
//
// Assumes that only the oldest slot of an ID is removed, that only a slot in no list is appended,
// and that no slot is appended during set-up.
`include "ns_assert.svh"

module nvm_delay_id_lists #(
  /// Slots: a power of two.
  parameter int unsigned Slots = 64,
  /// Bits of an ID.
  parameter int unsigned IdWidth = 8,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots))
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Slot `init_slot_i` is set up: it is in no list.
  input  logic                 init_i,
  /// See init_i.
  input  logic [SlotWidth-1:0] init_slot_i,

  /// A slot is appended to a list.
  input  logic                 push_i,
  /// The slot.
  input  logic [SlotWidth-1:0] push_slot_i,
  /// Its ID.
  input  logic [IdWidth-1:0]   push_id_i,
  /// The list of this ID already has slots, whether or not a slot is appended.
  output logic                 push_nonempty_o,
  /// Its last slot.
  output logic [SlotWidth-1:0] push_tail_o,

  /// A slot is removed from the front of its list.
  input  logic                 pop_i,
  /// The slot; may be set without pop_i.
  input  logic [SlotWidth-1:0] pop_slot_i,
  /// The slot has a successor.
  output logic                 pop_followed_o,
  /// The successor.
  output logic [SlotWidth-1:0] pop_next_o,

  /// A slot whose successor is looked up.
  input  logic [SlotWidth-1:0] query_slot_i,
  /// The slot has a successor.
  output logic                 query_followed_o,
  /// The successor.
  output logic [SlotWidth-1:0] query_next_o
);

  localparam int unsigned Ids = 2 ** IdWidth;

  (* ram_style = "distributed" *) logic [SlotWidth-1:0] tail[Ids];
  (* ram_style = "distributed" *) logic [SlotWidth-1:0] next[Slots];
  (* ram_style = "distributed" *) logic [IdWidth-1:0] id_of[Slots];
  logic tail_listed, pop_listed, push_listed, link;

  assign push_tail_o = tail[push_id_i];
  assign push_nonempty_o = tail_listed && id_of[push_tail_o] == push_id_i && !(pop_i && pop_slot_i == push_tail_o);
  assign link = push_i && push_nonempty_o;
  assign pop_next_o = next[pop_slot_i];
  assign query_next_o = next[query_slot_i];

  always_ff @(posedge clk_i) begin
    if (push_i) begin
      tail[push_id_i] <= push_slot_i;
      id_of[push_slot_i] <= push_id_i;
    end
    if (link) next[push_tail_o] <= push_slot_i;
  end

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (3)
  ) u_listed (
    .clk_i,
    .rst_ni,
    .we_i   ({init_i || pop_i, push_i}),
    .waddr_i({init_i ? init_slot_i : pop_slot_i, push_slot_i}),
    .wdata_i({1'b0, 1'b1}),
    .raddr_i({push_tail_o, pop_slot_i, push_slot_i}),
    .rdata_o({tail_listed, pop_listed, push_listed})
  );

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (2)
  ) u_followed (
    .clk_i,
    .rst_ni,
    .we_i   ({link, push_i}),
    .waddr_i({push_tail_o, push_slot_i}),
    .wdata_i({1'b1, 1'b0}),
    .raddr_i({query_slot_i, pop_slot_i}),
    .rdata_o({query_followed_o, pop_followed_o})
  );

  `NS_ASSERT(pop_is_listed, !pop_i || pop_listed)
  `NS_ASSERT(push_is_not_listed, !push_i || !push_listed)

endmodule
