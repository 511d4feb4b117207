// SPDX-License-Identifier: Apache-2.0

// Command slots: which are free, and the owner of each.
//
// A slot is allocated when its submission queue entry is requested from the host. Its owner is
// written when that entry is decoded. It is released when the completion has been sent. Assumption:
// only allocated slots are released, once each.
`include "ns_assert.svh"

module nvme_slot_table
  import nvme_pkg::*;
#(
  /// Slots, 2 to 2**SlotWidth - 1.
  parameter int unsigned NumSlots = 128
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// A free slot.
  output logic [SlotWidth-1:0] free_o,
  /// There is one.
  output logic                 free_valid_o,
  /// There is another free slot. From a register.
  output logic                 spare_o,
  /// The slot is allocated. Only with free_valid_o.
  input  logic                 alloc_i,
  /// A slot is released.
  input  logic                 release_i,
  /// Which.
  input  logic [SlotWidth-1:0] release_slot_i,
  /// Number of allocated slots.
  output logic [SlotWidth-1:0] used_o,

  /// Write the owner of a slot.
  input  logic                 we_i,
  /// The slot.
  input  logic [SlotWidth-1:0] wslot_i,
  /// Its submission queue.
  input  logic [QidWidth-1:0]  wqid_i,
  /// Its command identifier.
  input  logic [15:0]          wcid_i,
  /// Slot to look up.
  input  logic [SlotWidth-1:0] rslot_i,
  /// Its submission queue, in the same cycle.
  output logic [QidWidth-1:0]  rqid_o,
  /// Its command identifier, in the same cycle.
  output logic [15:0]          rcid_o,
  /// Slot that nvme_abort looks up.
  input  logic [SlotWidth-1:0] abort_slot_i,
  /// Its submission queue, in the same cycle.
  output logic [QidWidth-1:0]  abort_qid_o,
  /// Its command identifier, in the same cycle.
  output logic [15:0]          abort_cid_o
);

  localparam int unsigned Bits = unsigned'($clog2(NumSlots));

  // Slots that have never been used are allocated by counting, so the list needs no initialisation.
  logic [SlotWidth-1:0] fresh_q, used_q, listed;
  logic fresh, listed_valid;

  assign fresh = fresh_q != SlotWidth'(NumSlots);
  assign free_o = fresh ? fresh_q : listed;
  assign free_valid_o = fresh || listed_valid;
  assign used_o = used_q;

  ns_fifo #(
    .Width(SlotWidth),
    .Depth(NumSlots),
    .Style("lutram")
  ) u_list (
    .clk_i,
    .rst_ni,
    .in_valid_i (release_i),
    .in_ready_o (),
    .in_data_i  (release_slot_i),
    .out_valid_o(listed_valid),
    .out_ready_i(alloc_i && !fresh),
    .out_data_o (listed),
    .count_o    ()
  );

  logic [SlotWidth-1:0] used_d;
  always_comb begin
    used_d = used_q;
    if (alloc_i && !release_i) used_d = used_q + 1'b1;
    if (release_i && !alloc_i) used_d = used_q - 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fresh_q <= '0;
      used_q <= '0;
      spare_o <= 1'b1;
    end else begin
      if (alloc_i && fresh) fresh_q <= fresh_q + 1'b1;
      used_q <= used_d;
      spare_o <= 32'(used_d) < NumSlots - 1;
    end
  end

  (* ram_style = "distributed" *) logic [QidWidth+15:0] owner_mem[NumSlots];

  always_ff @(posedge clk_i) if (we_i) owner_mem[wslot_i[Bits-1:0]] <= {wqid_i, wcid_i};
  assign {rqid_o, rcid_o} = owner_mem[rslot_i[Bits-1:0]];
  assign {abort_qid_o, abort_cid_o} = owner_mem[abort_slot_i[Bits-1:0]];

  if (NumSlots < 2 || NumSlots >= 2 ** SlotWidth) begin : gen_bad_slots
    $error("nvme_slot_table: NumSlots must be 2 to 2**SlotWidth - 1");
  end

  `NS_ASSERT(alloc_only_free, !alloc_i || free_valid_o)
  `NS_ASSERT(release_only_used, !release_i || used_q != '0)
  `NS_ASSERT(
      slots_in_range,
      (!release_i || 32'(release_slot_i) < NumSlots) && (!we_i || 32'(wslot_i) < NumSlots) && 32'(abort_slot_i) < NumSlots)

endmodule
