// SPDX-License-Identifier: Apache-2.0

// Reads of the front end from host memory: data of admin commands, shadow doorbells, and submission
// queue entries share a port.
//
// Priority is in this order. An address that is valid stays. The first two accept their data at
// once. Entries wait here for the decoder, which may be busy with a fused operation: they must not
// block data in the host's answers. At most, nvme_fetch requests as many as there is room for.
`include "ns_assert.svh"

module nvme_host_reads
  import ns_axi_pkg::*;
#(
  /// Submission queue entries being read at a time.
  parameter int unsigned FetchDepth = 32,
  /// ID of the reads of entries.
  parameter logic [IdWidth-1:0] IdFetch = 12'd0,
  /// ID of the reads of an admin command's data.
  parameter logic [IdWidth-1:0] IdAdmin = 12'd1,
  /// ID of the reads of shadow doorbells.
  parameter logic [IdWidth-1:0] IdShadow = 12'd2
) (
  input  logic clk_i,
  input  logic rst_ni,

  /// Data of admin commands: addresses.
  input  ax_t  admin_ar_i,
  input  logic admin_ar_valid_i,
  output logic admin_ar_ready_o,
  /// `r_i` is theirs.
  output logic admin_r_valid_o,
  /// Shadow doorbells: addresses.
  input  ax_t  shadow_ar_i,
  input  logic shadow_ar_valid_i,
  output logic shadow_ar_ready_o,
  /// `r_i` is theirs.
  output logic shadow_r_valid_o,
  /// Submission queue entries: addresses.
  input  ax_t  fetch_ar_i,
  input  logic fetch_ar_valid_i,
  output logic fetch_ar_ready_o,
  /// The entries.
  output r_t   fetch_r_o,
  output logic fetch_r_valid_o,
  input  logic fetch_r_ready_i,

  /// To the host.
  output ax_t  ar_o,
  output logic ar_valid_o,
  input  logic ar_ready_i,
  /// From the host; always accepted.
  input  r_t   r_i,
  input  logic r_valid_i
);

  logic admin_first, shadow_first, fetch_shown_q, shadow_shown_q, entry_valid, entry_room;

  assign admin_first = admin_ar_valid_i && !fetch_shown_q && !shadow_shown_q;
  assign shadow_first = shadow_ar_valid_i && !fetch_shown_q && !admin_first;
  assign ar_o = admin_first ? admin_ar_i : shadow_first ? shadow_ar_i : fetch_ar_i;
  assign ar_valid_o = admin_ar_valid_i || shadow_ar_valid_i || fetch_ar_valid_i;
  assign admin_ar_ready_o = admin_first && ar_ready_i;
  assign shadow_ar_ready_o = shadow_first && ar_ready_i;
  assign fetch_ar_ready_o = !admin_first && !shadow_first && ar_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fetch_shown_q <= 1'b0;
      shadow_shown_q <= 1'b0;
    end else begin
      fetch_shown_q <= fetch_ar_valid_i && !admin_first && !shadow_first && !ar_ready_i;
      shadow_shown_q <= shadow_first && !ar_ready_i;
    end
  end

  assign admin_r_valid_o = r_valid_i && r_i.id == IdAdmin;
  assign shadow_r_valid_o = r_valid_i && r_i.id == IdShadow;
  assign entry_valid = r_valid_i && r_i.id == IdFetch;

  ns_fifo #(
    .Width($bits(r_t)),
    .Depth(FetchDepth),
    .Style("lutram")
  ) u_entries (
    .clk_i,
    .rst_ni,
    .in_valid_i (entry_valid),
    .in_ready_o (entry_room),
    .in_data_i  (r_i),
    .out_valid_o(fetch_r_valid_o),
    .out_ready_i(fetch_r_ready_i),
    .out_data_o (fetch_r_o),
    .count_o    ()
  );

  `NS_ASSERT(room_for_entries, !entry_valid || entry_room)

endmodule
