// SPDX-License-Identifier: Apache-2.0

// Routes segments from their sources to the splitters of the two directions.
//
// Copies go to the splitter of their direction, zeros to the one that writes the media, discarded
// reads to the one that reads it. A comparison goes to both. Both splitters receive comparisons in
// the same order, so movers that wait for each other's beats never deadlock. Sources take turns
// group by group: the segments of a group stay together. The media's side of a compared group is a
// single segment.
`include "ns_assert.svh"

module nvme_segment_router
  import nvme_data_pkg::*;
(
  input  logic       clk_i,
  input  logic       rst_ni,
  /// From registers: a segment is inside.
  output logic       busy_o,

  /// Segments of the walkers: 0 device to host, 1 host to device or comparison.
  input  seg_t [1:0] prp_i,
  input  logic [1:0] prp_valid_i,
  output logic [1:0] prp_ready_o,
  /// Segment to be zeroed or discarded.
  input  seg_t       walk_i,
  input  logic       walk_valid_i,
  output logic       walk_ready_o,

  /// Segments for the splitters: 0 media to host, 1 host to media.
  output seg_t [1:0] seg_o,
  output logic [1:0] seg_valid_o,
  input  logic [1:0] seg_ready_i
);

  // Towards the media: the walkers and zeros.
  seg_t to_media;
  logic [1:0] media_gnt;
  logic media_any, media_ready, media_valid, media_fire, media_idx;
  logic walk_zeroes;
  logic [1:0] group_open_q;  // a group of the walkers, of each direction, has more segments

  assign walk_zeroes = walk_i.kind == KindZero;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      group_open_q <= '0;
    end else begin
      for (int unsigned d = 0; d < 2; d++)
      if (prp_valid_i[d] && prp_ready_o[d]) group_open_q[d] <= prp_i[d].more;
    end
  end

  ns_rr_arbiter #(
    .N(2)
  ) u_media (
    .clk_i,
    .rst_ni,
    .req_i  ({walk_valid_i && walk_zeroes && !group_open_q[1], prp_valid_i[1]}),
    .next_i (media_ready),
    .gnt_o  (media_gnt),
    .idx_o  (media_idx),
    .valid_o(media_any)
  );

  ns_skid #(
    .Width($bits(seg_t))
  ) u_to_media (
    .clk_i,
    .rst_ni,
    .in_valid_i (media_any),
    .in_ready_o (media_ready),
    .in_data_i  (media_idx ? walk_i : prp_i[1]),
    .out_valid_o(media_valid),
    .out_ready_i(media_fire),
    .out_data_o (to_media)
  );

  // A comparison leaves when both splitters have accepted it.
  logic compare, first_q, sent_q, media_side_sent_q, media_side_fire;
  seg_t media_side;
  assign compare = to_media.kind == KindCompare && first_q;

  always_comb begin
    media_side = to_media;
    media_side.more = 1'b0;
    media_side.len = to_media.total;
    media_side.host = '0;
  end
  assign seg_o[1] = to_media;
  assign seg_valid_o[1] = media_valid && !sent_q;
  assign media_fire = (sent_q || seg_ready_i[1]) && (!compare || media_side_sent_q || media_side_fire);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      sent_q <= 1'b0;
      media_side_sent_q <= 1'b0;
    end else if (media_valid) begin
      if (media_fire) first_q <= !to_media.more;
      sent_q <= !media_fire && (sent_q || seg_ready_i[1]);
      media_side_sent_q <= !media_fire && (media_side_sent_q || media_side_fire);
    end
  end

  // Towards the host: the walkers, discarded reads, and the media's side of comparisons.
  logic [2:0] host_gnt;
  logic [1:0] host_idx;
  logic host_any, host_ready;

  ns_rr_arbiter #(
    .N(3)
  ) u_host (
    .clk_i,
    .rst_ni,
    .req_i  ({
      media_valid && compare && !media_side_sent_q && !group_open_q[0], walk_valid_i && !walk_zeroes && !group_open_q[0], prp_valid_i[0]
    }),
    .next_i (host_ready),
    .gnt_o  (host_gnt),
    .idx_o  (host_idx),
    .valid_o(host_any)
  );

  ns_skid #(
    .Width($bits(seg_t))
  ) u_to_host (
    .clk_i,
    .rst_ni,
    .in_valid_i (host_any),
    .in_ready_o (host_ready),
    .in_data_i  (host_idx[1] ? media_side : host_idx[0] ? walk_i : prp_i[0]),
    .out_valid_o(seg_valid_o[0]),
    .out_ready_i(seg_ready_i[0]),
    .out_data_o (seg_o[0])
  );

  assign media_side_fire = host_gnt[2] && host_ready;
  assign prp_ready_o = {media_gnt[0] && media_ready, host_gnt[0] && host_ready};
  assign walk_ready_o = (media_gnt[1] && media_ready) || (host_gnt[1] && host_ready);
  assign busy_o = media_valid || seg_valid_o[0];

  `NS_ASSERT(copies_to_the_host, !prp_valid_i[0] || prp_i[0].kind == KindCopy)
  `NS_ASSERT(sweeps_without_host,
             !walk_valid_i || walk_i.kind == KindZero || walk_i.kind == KindDrop)

endmodule
