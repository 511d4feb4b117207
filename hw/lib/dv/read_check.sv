// SPDX-License-Identifier: Apache-2.0

// Checks the reads of a master: each burst of an ID has all requested beats, in the order of the
// addresses.
//
// Bursts of several IDs may interleave, unless `Whole` states that no downstream block interleaves.
`include "ns_assert.svh"

module read_check
  import ns_axi_pkg::*;
#(
  /// Bits of the IDs.
  parameter int unsigned IdBits = 6,
  /// Bursts are not interleaved.
  parameter bit Whole = 1'b0
) (
  input logic clk_i,
  input logic rst_ni,
  ns_axi_if   s_axi
);

  localparam int unsigned Ids = 2 ** IdBits;
  localparam int unsigned Depth = 256;  // bursts in flight of an ID

  logic [7:0] len_q[Ids][Depth];
  logic [7:0] asked_q[Ids], ended_q[Ids], beat_q[Ids];
  logic inside_q;
  logic [IdBits-1:0] inside_id_q, ar_id, r_id;

  assign ar_id = s_axi.ar.id[IdBits-1:0];
  assign r_id = s_axi.r.id[IdBits-1:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
      inside_id_q <= '0;
      for (int unsigned id = 0; id < Ids; id++) begin
        asked_q[id] <= '0;
        ended_q[id] <= '0;
        beat_q[id] <= '0;
      end
    end else begin
      if (s_axi.ar_valid && s_axi.ar_ready) begin
        len_q[ar_id][asked_q[ar_id]] <= s_axi.ar.len;
        asked_q[ar_id] <= asked_q[ar_id] + 1'b1;
      end
      if (s_axi.r_valid && s_axi.r_ready) begin
        beat_q[r_id] <= s_axi.r.last ? '0 : beat_q[r_id] + 1'b1;
        if (s_axi.r.last) ended_q[r_id] <= ended_q[r_id] + 1'b1;
        inside_q <= !s_axi.r.last;
        inside_id_q <= r_id;
      end
    end
  end

  `NS_ASSERT(read_asked_for, !s_axi.r_valid || asked_q[r_id] != ended_q[r_id])
  `NS_ASSERT(read_beats_as_asked,
             !s_axi.r_valid || s_axi.r.last == (beat_q[r_id] == len_q[r_id][ended_q[r_id]]))
  `NS_ASSERT(read_bursts_whole, !Whole || !s_axi.r_valid || !inside_q || r_id == inside_id_q)

endmodule
