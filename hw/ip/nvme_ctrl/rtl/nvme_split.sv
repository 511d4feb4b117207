// Splitter: cuts segments where they cross a 4 KiB boundary of the media and hands each job to the mover of its channel.
//
// A job is thereby within one page on the host and within one granule on the media, so neither side's burst
// is ever split. Jobs leave in order; a full mover holds up those behind.
// Leaves out what happens at the end of the media: the front end checks ranges.
`include "ns_assert.svh"

module nvme_split
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Memory channels, a power of two.
  parameter int unsigned  NumChannels = 4,
  /// Bytes of consecutive media addresses in one channel, a power of two, at least 4096.
  parameter int unsigned  Granule     = 4096,
  /// 1: host to media. 0: media to host.
  parameter bit           Write       = 1'b0,
  /// There is one more mover, for media addresses with bit 63 set.
  parameter bit           Admin       = 1'b0,
  localparam int unsigned NumMovers   = NumChannels + 32'(Admin)
) (
  /// Clock.
  input logic clk_i,
  /// Reset.
  input logic rst_ni,

  /// Segment.
  input  seg_t seg_i,
  /// Valid.
  input  logic seg_valid_i,
  /// Ready.
  output logic seg_ready_o,

  /// Job, for all movers.
  output job_t                 job_o,
  /// Valid, for one mover.
  output logic [NumMovers-1:0] job_valid_o,
  /// Ready.
  input  logic [NumMovers-1:0] job_ready_i
);

  localparam int unsigned ChannelBits = ns_axi_pkg::idx_width(NumMovers);

  // The piece offered by seg_i: the first part, or the rest after rest_q.
  logic rest_q;
  logic [LenWidth-1:0] room, len;
  logic [63:0] mem, host;
  logic crosses, ready, fire;
  logic [NumMovers-1:0] target;

  assign room = 13'd4096 - 13'(seg_i.mem[11:0]);
  assign crosses = seg_i.len > room;
  assign ready = (job_valid_o & ~job_ready_i) == '0;
  assign fire = seg_valid_i && ready;
  assign seg_ready_o = ready && (rest_q || !crosses);

  always_comb begin
    len = seg_i.len;
    mem = seg_i.mem;
    host = seg_i.host;
    if (rest_q) begin
      len = seg_i.len - room;
      mem = {seg_i.mem[63:12] + 52'd1, 12'd0};
      // A segment ends within its host page: no carry beyond.
      host[11:0] = seg_i.host[11:0] + 12'(room);
    end else if (crosses) begin
      len = room;
    end
  end

  always_comb begin
    target = '0;
    if (Admin && mem[63]) target[NumMovers-1] = 1'b1;
    else target[ChannelBits'((mem[62:0]/63'(Granule))%63'(NumChannels))] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rest_q <= 1'b0;
      job_valid_o <= '0;
    end else begin
      if (fire) rest_q <= !rest_q && crosses;
      if (ready) job_valid_o <= seg_valid_i ? target : '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fire) begin
      job_o.slot <= seg_i.slot;
      job_o.kind <= seg_i.kind;
      job_o.len <= len;
      job_o.src <= Write ? host : {1'b0, mem[62:0]};
      job_o.dst <= (Write || seg_i.kind != KindCopy) ? {1'b0, mem[62:0]} : host;
    end
  end

  if (NumChannels < 1 || (NumChannels & (NumChannels - 1)) != 0) begin : gen_bad_channels
    $error("nvme_split: NumChannels must be a power of two");
  end
  if (Granule < 4096 || (Granule & (Granule - 1)) != 0) begin : gen_bad_granule
    $error("nvme_split: Granule must be a power of two of at least 4096");
  end

  `NS_ASSERT(one_mover, (job_valid_o & (job_valid_o - 1'b1)) == '0)
  `NS_ASSERT(segment_in_page, !seg_valid_i || 32'(seg_i.host[11:0]) + 32'(seg_i.len) <= 4096)
  `NS_ASSERT(kind_has_direction, !seg_valid_i || seg_i.kind != (Write ? KindDrop : KindZero))

endmodule
