// The slots of each ID as a list, oldest first.
//
// A slot is put at the end of its ID's list when its transaction starts, and taken from the front when it is released. The list
// is linked by `next`, and `tail` finds its end by the ID. A `tail` may be left from a list that has ended: it is valid only
// while its slot is in a list (`listed`) and has this ID, for whoever put it there last has set `tail` to it.
// `followed` says whether `next` of a slot is valid.
// Assumes that only the oldest slot of an ID is taken, that only a slot in no list is put into one, and that nothing is put
// in during set-up.
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

  /// A slot is put into a list.
  input  logic                 put_i,
  /// Which one.
  input  logic [SlotWidth-1:0] put_slot_i,
  /// Its ID.
  input  logic [IdWidth-1:0]   put_id_i,
  /// The list of this ID, whether or not the slot is put into it, has other slots.
  output logic                 put_behind_o,
  /// The last of them.
  output logic [SlotWidth-1:0] put_tail_o,

  /// A slot is taken from the front of its list.
  input  logic                 take_i,
  /// Which one; may be set without take_i.
  input  logic [SlotWidth-1:0] take_slot_i,
  /// Another one follows it.
  output logic                 take_followed_o,
  /// That one.
  output logic [SlotWidth-1:0] take_next_o,

  /// A slot to ask about.
  input  logic [SlotWidth-1:0] ask_slot_i,
  /// Another one follows it.
  output logic                 ask_followed_o,
  /// That one.
  output logic [SlotWidth-1:0] ask_next_o
);

  localparam int unsigned Ids = 2 ** IdWidth;

  (* ram_style = "distributed" *) logic [SlotWidth-1:0] tail[Ids];
  (* ram_style = "distributed" *) logic [SlotWidth-1:0] next[Slots];
  (* ram_style = "distributed" *) logic [IdWidth-1:0] id_of[Slots];
  logic tail_listed, take_listed, put_listed, link;

  assign put_tail_o = tail[put_id_i];
  assign put_behind_o = tail_listed && id_of[put_tail_o] == put_id_i && !(take_i && take_slot_i == put_tail_o);
  assign link = put_i && put_behind_o;
  assign take_next_o = next[take_slot_i];
  assign ask_next_o = next[ask_slot_i];

  always_ff @(posedge clk_i) begin
    if (put_i) begin
      tail[put_id_i] <= put_slot_i;
      id_of[put_slot_i] <= put_id_i;
    end
    if (link) next[put_tail_o] <= put_slot_i;
  end

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (3)
  ) u_listed (
    .clk_i,
    .rst_ni,
    .we_i   ({init_i || take_i, put_i}),
    .waddr_i({init_i ? init_slot_i : take_slot_i, put_slot_i}),
    .wdata_i({1'b0, 1'b1}),
    .raddr_i({put_tail_o, take_slot_i, put_slot_i}),
    .rdata_o({tail_listed, take_listed, put_listed})
  );

  ns_ram_multi #(
    .Width (1),
    .Depth (Slots),
    .Writes(2),
    .Reads (2)
  ) u_followed (
    .clk_i,
    .rst_ni,
    .we_i   ({link, put_i}),
    .waddr_i({put_tail_o, put_slot_i}),
    .wdata_i({1'b1, 1'b0}),
    .raddr_i({ask_slot_i, take_slot_i}),
    .rdata_o({ask_followed_o, take_followed_o})
  );

  `NS_ASSERT(taken_is_in_a_list, !take_i || take_listed)
  `NS_ASSERT(put_is_in_no_list, !put_i || !put_listed)

endmodule
