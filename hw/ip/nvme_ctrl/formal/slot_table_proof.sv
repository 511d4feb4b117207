// SPDX-License-Identifier: Apache-2.0

// nvme_slot_table: a slot is never allocated to two commands at a time, and none is lost; the count
// is right.
`include "ns_assert.svh"

module slot_table_proof
  import nvme_pkg::*;
#(
  /// Slots.
  parameter int unsigned NumSlots = 4
) (
  input logic                 clk_i,
  input logic                 rst_ni,
  input logic                 alloc_i,
  input logic                 release_i,
  input logic [SlotWidth-1:0] release_slot_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  logic [SlotWidth-1:0] free, used;
  logic free_valid;

  nvme_slot_table #(
    .NumSlots(NumSlots)
  ) u_slot_table (
    .clk_i,
    .rst_ni,
    .free_o      (free),
    .free_valid_o(free_valid),
    .alloc_i,
    .release_i,
    .release_slot_i,
    .used_o      (used),
    .we_i        (1'b0),
    .wslot_i     ('0),
    .wqid_i      ('0),
    .wcid_i      ('0),
    .rslot_i     ('0),
    .rqid_o      (),
    .rcid_o      (),
    .abort_slot_i('0),
    .abort_qid_o (),
    .abort_cid_o ()
  );

  logic [NumSlots-1:0] allocated_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      allocated_q <= '0;
    end else begin
      if (alloc_i) allocated_q[free] <= 1'b1;
      if (release_i) allocated_q[release_slot_i] <= 1'b0;
    end
  end

  logic [SlotWidth-1:0] count;
  always_comb begin
    count = '0;
    for (int i = 0; i < NumSlots; i++) count += SlotWidth'(allocated_q[i]);
  end

  `NS_ASSUME(alloc_of_free, !alloc_i || free_valid)
  `NS_ASSUME(release_of_allocated,
             !release_i || (32'(release_slot_i) < NumSlots && allocated_q[release_slot_i]))

  `NS_ASSERT(in_range, !free_valid || 32'(free) < NumSlots)
  `NS_ASSERT(not_allocated_twice, !free_valid || !allocated_q[free])
  `NS_ASSERT(count_is_right, used == count)
  `NS_ASSERT(none_lost, free_valid || count == SlotWidth'(NumSlots))

  `NS_COVER(second_use, alloc_i && count == SlotWidth'(NumSlots - 1) && release_slot_i == '0)

endmodule
