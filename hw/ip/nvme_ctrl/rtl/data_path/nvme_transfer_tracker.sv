// SPDX-License-Identifier: Apache-2.0

// Transfer tracker: detects the end of a command's transfer.
//
// Movers report each descriptor, walkers the number of descriptors at the end of a walk, in any
// order. A transfer ends after its walk and as many descriptors as the walk made. The first error
// reported becomes the command's status. Every event is accepted soon, independently of `done_*`,
// because the queue of ended commands has a place for each slot.
`include "ns_assert.svh"

module nvme_transfer_tracker
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Sources of events.
  parameter int unsigned NumSources = 10,
  /// Slots 0 to NumSlots-1.
  parameter int unsigned NumSlots   = 64
) (
  input logic clk_i,
  input logic rst_ni,
  /// From registers: an event or the end of a command is inside.
  output logic busy_o,

  /// Events.
  input  transfer_event_t [NumSources-1:0] event_i,
  input  logic   [NumSources-1:0] event_valid_i,
  output logic   [NumSources-1:0] event_ready_o,

  /// End of a command.
  output data_done_t done_o,
  output logic       done_valid_o,
  input  logic       done_ready_i
);

  localparam int unsigned SlotBits = ns_axi_pkg::idx_width(NumSlots);

  typedef struct packed {
    logic                  walked;
    data_status_e          status;
    logic [DescsWidth-1:0] descs;    // made and not ended; negative before the walk has ended
  } transfer_t;

  // First step: choose an event, at most every other cycle, so that its slot is updated before the
  // next lookup. It is accepted in the following cycle.
  logic [ns_axi_pkg::idx_width(NumSources)-1:0] idx;
  logic [NumSources-1:0] gnt;
  logic [NumSources-1:0] event_fire_q;  // one-hot
  logic [ns_axi_pkg::idx_width(NumSources)-1:0] idx_q;
  logic any_event, event_fire, lookup_q, update_q;
  transfer_event_t event_q;

  assign event_fire = event_fire_q != '0;
  assign event_ready_o = event_fire_q;

  ns_rr_arbiter #(
    .N(NumSources)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (event_valid_i),
    .next_i (!event_fire),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(any_event)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      event_fire_q <= '0;
      lookup_q <= 1'b0;
      update_q <= 1'b0;
    end else begin
      event_fire_q <= event_fire ? '0 : gnt;
      lookup_q <= event_fire;
      update_q <= lookup_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (any_event && !event_fire) idx_q <= idx;
    if (event_fire) event_q <= event_i[idx_q];
  end

  // Second step: read the slot's state.
  (* ram_style = "distributed" *) transfer_t transfers_q[NumSlots];
  logic [NumSlots-1:0] open_q;  // its entry in transfers_q is valid
  transfer_t transfer_q, transfer_d;
  logic [SlotBits-1:0] slot;
  logic done, done_ready;

  assign busy_o = event_fire || lookup_q || update_q || done_valid_o;
  assign slot = event_q.slot[SlotBits-1:0];

  always_ff @(posedge clk_i) begin
    if (lookup_q) begin
      transfer_q <= open_q[slot] ? transfers_q[slot] : '{
          walked: 1'b0,
          status: DataOk,
          descs: '0
      };
    end
  end

  // Third step: update it.
  assign done = update_q && transfer_d.walked && transfer_d.descs == '0;

  always_comb begin
    transfer_d = transfer_q;
    if (transfer_d.status == DataOk) transfer_d.status = event_q.status;
    if (event_q.walk) begin
      transfer_d.walked = 1'b1;
      transfer_d.descs += event_q.descs;
    end else begin
      transfer_d.descs -= 1'b1;
    end
  end

  always_ff @(posedge clk_i) if (update_q) transfers_q[slot] <= transfer_d;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= '0;
    else if (update_q) open_q[slot] <= !done;
  end

  ns_fifo #(
    .Width($bits(data_done_t)),
    .Depth(NumSlots)
  ) u_done (
    .clk_i,
    .rst_ni,
    .in_valid_i (done),
    .in_ready_o (done_ready),
    .in_data_i  ({event_q.slot, transfer_d.status}),
    .out_valid_o(done_valid_o),
    .out_ready_i(done_ready_i),
    .out_data_o (done_o),
    .count_o    ()
  );

  if (NumSlots < 1 || NumSlots > 2 ** SlotWidth) begin : gen_bad_slots
    $error("nvme_transfer_tracker: NumSlots must be 1 to 256");
  end

  `NS_ASSERT(event_stays, (event_fire_q & ~event_valid_i) == '0)
  `NS_ASSERT(done_has_room, !done || done_ready)
  `NS_ASSERT(slot_in_range, !lookup_q || 32'(event_q.slot) < NumSlots)

endmodule
