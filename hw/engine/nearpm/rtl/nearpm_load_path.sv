// SPDX-License-Identifier: Apache-2.0

// Loads of the PM window: up to 16 conflicting loads are parked; the others are forwarded.
//
// Loads of one ID stay in order: a load is parked if an older load of its ID is parked. When all
// places are occupied, a further conflicting load blocks all later ones.
`include "ns_assert.svh"

module nearpm_load_path
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         freeze_i,
  input  commands_t    retired_i,
  input  count_t       written_i,

  /// An address may be looked up.
  output logic         lookup_ready_o,
  /// An address is looked up; its conflicts are valid at the end of this cycle.
  input  logic         lookup_valid_i,
  input  ax_t          lookup_ax_i,
  input  conflict_set_t       lookup_conflicts_i,

  /// To the memory. From registers.
  output logic         ar_valid_o,
  output ax_t          ar_o,
  input  logic         ar_ready_i,
  /// Number of waiting loads. From registers.
  output logic   [4:0] waiting_o,
  /// A load is present. From registers.
  output logic         busy_o
);

  localparam int unsigned Bits = unsigned'($clog2(Loads));
  localparam int unsigned Depth = 4;
  localparam int unsigned RoomBits = unsigned'($clog2(Depth + 1));

  // The load looked up last.
  logic valid_q;
  ax_t ax_q;
  conflict_set_t conflicts_q;
  logic forward_push, park_push;

  // Parked loads.
  logic [Loads-1:0] parked_q, ready, ready_q, grant;
  logic [Loads-1:0][IdWidth-1:0] id_q;
  logic [Loads-1:0][Loads-1:0] older_same_id_q;  // older parked loads of the same ID
  conflict_set_t parked_conflicts_q[Loads];
  ax_t parked_ax[Loads];
  logic [Bits-1:0] free_place, pop_index;
  logic [4:0] count_q;
  logic [Loads-1:0] same_id;
  logic park_pop;

  // Forwarded loads.
  logic out_valid, ar_held_q;
  logic [RoomBits-1:0] out_count;
  logic [RoomBits:0] in_flight;

  assign in_flight = (RoomBits + 1)'(out_count) + (RoomBits + 1)'(lookup_valid_i) + (RoomBits + 1)'(valid_q);
  // A parked load that is ready takes precedence, so it is not starved.
  assign lookup_ready_o = !freeze_i && ready_q == '0 && in_flight < (RoomBits + 1)'(Depth) &&
      ((count_q + 5'(lookup_valid_i) + 5'(valid_q) < 5'(Loads)) || (!lookup_valid_i && !valid_q));

  always_comb begin
    free_place = '0;
    for (int i = Loads - 1; i >= 0; i--) if (!parked_q[i]) free_place = Bits'(i);
    for (int unsigned i = 0; i < Loads; i++) begin
      same_id[i] = parked_q[i] && id_q[i] == ax_q.id;
      ready[i] = parked_q[i] && no_conflict(parked_conflicts_q[i]) && older_same_id_q[i] == '0;
    end
  end

  assign forward_push = valid_q && no_conflict(conflicts_q) && same_id == '0;
  assign park_push = valid_q && !forward_push && count_q != 5'(Loads);
  assign park_pop = ready_q != '0 && !forward_push && in_flight < (RoomBits + 1)'(Depth);
  assign waiting_o = count_q + 5'(valid_q && !no_conflict(conflicts_q) && count_q == 5'(Loads));
  assign busy_o = valid_q || count_q != '0 || out_count != '0;

  ns_rr_arbiter #(
    .N(Loads)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (ready_q),
    .next_i (park_pop),
    .gnt_o  (grant),
    .idx_o  (pop_index),
    .valid_o()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      parked_q <= '0;
      ready_q  <= '0;
      count_q  <= '0;
    end else begin
      if (lookup_valid_i) valid_q <= 1'b1;
      else if (forward_push || park_push) valid_q <= 1'b0;
      if (park_push) parked_q[free_place] <= 1'b1;
      if (park_pop) parked_q[pop_index] <= 1'b0;
      ready_q <= ready & ~(park_pop ? grant : '0);
      count_q <= count_q + 5'(park_push) - 5'(park_pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (lookup_valid_i) begin
      ax_q <= lookup_ax_i;
      conflicts_q <= lookup_conflicts_i;
    end else begin
      conflicts_q <= remaining(conflicts_q, retired_i, written_i);
    end
    for (int unsigned i = 0; i < Loads; i++) begin
      if (parked_q[i])
        parked_conflicts_q[i] <= remaining(parked_conflicts_q[i], retired_i, written_i);
      if (park_pop) older_same_id_q[i] <= older_same_id_q[i] & ~grant;
    end
    if (park_push) begin
      parked_conflicts_q[free_place] <= remaining(conflicts_q, retired_i, written_i);
      id_q[free_place] <= ax_q.id;
      older_same_id_q[free_place] <= same_id & ~(park_pop ? grant : '0);
      parked_ax[free_place] <= ax_q;
    end
  end

  ns_fifo #(
    .Width($bits(ax_t)),
    .Depth(Depth),
    .Style("lutram")
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (forward_push || park_pop),
    .in_ready_o (),
    .in_data_i  (forward_push ? ax_q : parked_ax[pop_index]),
    .out_valid_o(out_valid),
    .out_ready_i(ar_valid_o && ar_ready_i),
    .out_data_o (ar_o),
    .count_o    (out_count)
  );

  assign ar_valid_o = out_valid && (!freeze_i || ar_held_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ar_held_q <= 1'b0;
    else ar_held_q <= ar_valid_o && !ar_ready_i;
  end

  `NS_ASSERT(room, !(forward_push || park_pop) || out_count != RoomBits'(Depth))
  `NS_ASSERT(lookup_has_a_place, !lookup_valid_i || !valid_q || forward_push || park_push)
  `NS_ASSERT(parked_in_order, !forward_push || same_id == '0)
  `NS_ASSERT(forwarded_without_conflict, !forward_push || no_conflict(conflicts_q))
  `NS_ASSERT(parked_in_free_place, !park_push || !parked_q[free_place])

endmodule
