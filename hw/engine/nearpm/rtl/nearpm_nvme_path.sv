// SPDX-License-Identifier: Apache-2.0

// One address channel of the NVMe controller: a conflicting address waits and blocks later ones.
`include "ns_assert.svh"

module nearpm_nvme_path
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
(
  input  logic      clk_i,
  input  logic      rst_ni,
  input  logic      freeze_i,
  input  commands_t retired_i,
  input  count_t    written_i,

  /// An address may be looked up.
  output logic      lookup_ready_o,
  /// An address is looked up; its conflicts are valid at the end of this cycle.
  input  logic      lookup_valid_i,
  input  ax_t       lookup_ax_i,
  input  conflict_set_t    lookup_conflicts_i,

  /// Forwarded address. From registers.
  output logic      ax_valid_o,
  output ax_t       ax_o,
  input  logic      ax_ready_i,
  /// An address is present. From a register.
  output logic      busy_o
);

  logic valid_q, ax_held_q;
  ax_t ax_q;
  conflict_set_t conflicts_q;

  assign lookup_ready_o = !freeze_i && !lookup_valid_i && !valid_q;
  assign ax_valid_o = valid_q && no_conflict(conflicts_q) && (!freeze_i || ax_held_q);
  assign ax_o = ax_q;
  assign busy_o = valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      ax_held_q <= 1'b0;
    end else begin
      ax_held_q <= ax_valid_o && !ax_ready_i;
      if (lookup_valid_i) valid_q <= 1'b1;
      else if (ax_valid_o && ax_ready_i) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (lookup_valid_i) begin
      ax_q <= lookup_ax_i;
      conflicts_q <= lookup_conflicts_i;
    end else begin
      conflicts_q <= remaining(conflicts_q, retired_i, written_i);
    end
  end

  `NS_ASSERT(one_at_a_time, !lookup_valid_i || !valid_q)
  `NS_ASSERT(forwarded_without_conflict, !(ax_valid_o && !ax_held_q) || no_conflict(conflicts_q))

endmodule
