// SPDX-License-Identifier: Apache-2.0

// Splitter: sends each transfer segment as a descriptor to the mover of its channel.
//
// A descriptor lies within one page of the host and within 4 KiB of the media, so it is never split
// again on either side. Descriptors leave in order, so those of a group stay together; a full mover
// blocks those that follow. The end of the media is not checked here: the front end checks ranges.
`include "ns_assert.svh"

module nvme_splitter
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Memory channels, a power of two.
  parameter int unsigned  NumChannels = 4,
  /// Bytes of consecutive media addresses in one channel, a power of two, at least 4096.
  parameter int unsigned  Granule     = 4096,
  /// 1: host to media. 0: media to host.
  parameter bit           Write       = 1'b0,
  /// There is an additional mover, for media addresses with bit 63 set.
  parameter bit           Admin       = 1'b0,
  localparam int unsigned NumMovers   = NumChannels + 32'(Admin)
) (
  input logic clk_i,
  input logic rst_ni,

  /// Segment.
  input  seg_t seg_i,
  input  logic seg_valid_i,
  output logic seg_ready_o,

  /// Descriptor, for all movers.
  output desc_t                desc_o,
  /// Valid, for one mover.
  output logic [NumMovers-1:0] desc_valid_o,
  input  logic [NumMovers-1:0] desc_ready_i
);

  localparam int unsigned ChannelBits = ns_axi_pkg::idx_width(NumMovers);

  logic ready;
  logic [NumMovers-1:0] target;

  assign ready = (desc_valid_o & ~desc_ready_i) == '0;
  assign seg_ready_o = ready;

  always_comb begin
    target = '0;
    if (Admin && seg_i.mem[63]) target[NumMovers-1] = 1'b1;
    else target[ChannelBits'((seg_i.mem[62:0]/63'(Granule))%63'(NumChannels))] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) desc_valid_o <= '0;
    else if (ready) desc_valid_o <= seg_valid_i ? target : '0;
  end

  always_ff @(posedge clk_i) begin
    if (ready && seg_valid_i) begin
      desc_o.slot <= seg_i.slot;
      desc_o.kind <= seg_i.kind;
      desc_o.more <= seg_i.more;
      desc_o.total <= seg_i.total;
      desc_o.len <= seg_i.len;
      desc_o.src <= Write ? seg_i.host : {1'b0, seg_i.mem[62:0]};
      desc_o.dst <= (Write || seg_i.kind != KindCopy) ? {1'b0, seg_i.mem[62:0]} : seg_i.host;
    end
  end

  if (NumChannels < 1 || (NumChannels & (NumChannels - 1)) != 0) begin : gen_bad_channels
    $error("nvme_splitter: NumChannels must be a power of two");
  end
  if (Granule < 4096 || (Granule & (Granule - 1)) != 0) begin : gen_bad_granule
    $error("nvme_splitter: Granule must be a power of two of at least 4096");
  end

  `NS_ASSERT(one_mover, (desc_valid_o & (desc_valid_o - 1'b1)) == '0)
  `NS_ASSERT(segment_in_page, !seg_valid_i || 32'(seg_i.host[11:0]) + 32'(seg_i.len) <= 4096)
  `NS_ASSERT(segment_in_granule, !seg_valid_i || 32'(seg_i.mem[11:0]) + 32'(seg_i.len) <= 4096)
  `NS_ASSERT(kind_has_direction, !seg_valid_i || seg_i.kind != (Write ? KindDrop : KindZero))

endmodule
