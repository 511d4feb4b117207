// SPDX-License-Identifier: Apache-2.0

// Fill: requests the memories to zero a range of the media, all channels at once.
//
// A range of the media is one contiguous range in each channel (docs/architecture.md). It must not
// cross a multiple of RegionBlocks. One range at a time; it ends when each channel that holds a
// part of it has answered. `stop_i` makes the memories end at a block's end: each block is then
// zero or unchanged. No read or write of the range's region is outstanding during the fill.
`include "ns_assert.svh"

module nvme_fill #(
  /// Memory channels, a power of two.
  parameter int unsigned  NumChannels  = 4,
  /// Bytes of consecutive media addresses in one channel, a power of two, at least 4096.
  parameter int unsigned  Granule      = 4096,
  localparam int unsigned GranuleBlocks = Granule / 512,
  // Blocks of a region in one channel.
  localparam int unsigned ChannelBlocks = (GranuleBlocks > 1024) ? GranuleBlocks : 1024,
  localparam int unsigned RegionBlocks  = NumChannels * ChannelBlocks,
  localparam int unsigned CountWidth   = unsigned'($clog2(RegionBlocks + 1))
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  /// From registers: a range is inside.
  output logic                  busy_o,
  /// From registers: nothing changes until a memory answers.
  output logic                  waiting_o,

  /// Range of the media: its first block.
  input  logic [54:0]           lba_i,
  /// Its number of blocks, at least one.
  input  logic [CountWidth-1:0] blocks_i,
  /// Valid; stays, with its range, until done.
  input  logic                  valid_i,
  /// It has ended.
  output logic                  done_o,
  /// With done_o: a memory has answered with an error.
  output logic                  error_o,
  /// End the range early.
  input  logic                  stop_i,

  /// No read or write of the media may begin.
  output logic                  drain_o,
  /// No read or write of the range's region may begin.
  output logic                  hold_o,
  /// From registers: no read or write of the media is outstanding.
  input  logic                  quiet_i,

  /// Requests to the memories: address in the channel, a multiple of 512.
  output logic [NumChannels-1:0][63:0] fill_addr_o,
  /// Blocks of 512 bytes.
  output logic [NumChannels-1:0][15:0] fill_blocks_o,
  output logic [NumChannels-1:0]       fill_valid_o,
  input  logic [NumChannels-1:0]       fill_ready_i,
  /// End the fills in flight at the end of a block.
  output logic                         fill_stop_o,
  /// It has ended.
  input  logic [NumChannels-1:0]       fill_done_i,
  /// With an error.
  input  logic [NumChannels-1:0]       fill_error_i
);

  localparam int unsigned GranuleBits = unsigned'($clog2(GranuleBlocks));
  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned RegionBits = unsigned'($clog2(RegionBlocks));
  localparam int unsigned LocalBits = unsigned'($clog2(ChannelBlocks));
  typedef logic [LocalBits:0] local_t;

  // The first block of channel `channel` that is not below block `at` of a region, counted in the
  // channel.
  function automatic local_t local_of(logic [RegionBits:0] at, logic [RegionBits:0] channel);
    logic [RegionBits:0] granule, row, place;
    granule = at >> GranuleBits;
    row = granule >> ChannelBits;
    place = granule & (RegionBits + 1)'(NumChannels - 1);
    local_of = local_t'(row << GranuleBits);
    if (place == channel) begin
      local_of |= local_t'(at & (RegionBits + 1)'(GranuleBlocks - 1));
    end else if (place > channel) begin
      local_of += local_t'(GranuleBlocks);
    end
  endfunction

  typedef enum logic [2:0] {
    StIdle,
    StSplit,  // parts of the channels
    StDrain,  // reads and writes in flight end
    StFill,
    StDone
  } state_e;

  state_e state_q;
  logic error_q, stop_q;
  logic [NumChannels-1:0] request_q, outstanding_q;  // to be requested; requested
  local_t [NumChannels-1:0] first_q, count_q;
  logic [RegionBits:0] start, stop;

  assign start = (RegionBits + 1)'(lba_i[RegionBits-1:0]);
  assign stop  = start + (RegionBits + 1)'(blocks_i);

  assign busy_o = state_q != StIdle;
  assign waiting_o = state_q == StFill && request_q == '0 && outstanding_q != '0 && stop_q == stop_i;
  assign done_o = state_q == StDone;
  assign error_o = error_q;
  assign fill_valid_o = (state_q == StFill) ? request_q : '0;
  assign fill_stop_o = stop_q;
  assign drain_o = state_q == StSplit || state_q == StDrain;
  assign hold_o = state_q == StFill;

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    assign fill_addr_o[c] = 64'({lba_i[54:RegionBits], first_q[c][LocalBits-1:0], 9'd0});
    assign fill_blocks_o[c] = 16'(count_q[c]);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      request_q <= '0;
      outstanding_q <= '0;
      stop_q <= 1'b0;
    end else begin
      stop_q <= stop_i && state_q != StIdle;
      unique case (state_q)
        StIdle: if (valid_i) state_q <= StSplit;
        StSplit: begin
          state_q <= StDrain;
          for (int unsigned c = 0; c < NumChannels; c++) request_q[c] <= local_of(stop, (RegionBits + 1)'(c)) != local_of(start, (RegionBits + 1)'(c));
        end
        StDrain: if (quiet_i) state_q <= StFill;
        StFill: begin
          request_q <= request_q & ~fill_ready_i;
          outstanding_q <= (outstanding_q | (request_q & fill_ready_i)) & ~fill_done_i;
          if (request_q == '0 && outstanding_q == '0) state_q <= StDone;
        end
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StSplit) begin
      error_q <= 1'b0;
      for (int unsigned c = 0; c < NumChannels; c++) begin
        first_q[c] <= local_of(start, (RegionBits + 1)'(c));
        count_q[c] <= local_of(stop, (RegionBits + 1)'(c)) - local_of(start, (RegionBits + 1)'(c));
      end
    end else if ((fill_done_i & fill_error_i) != '0) begin
      error_q <= 1'b1;
    end
  end

  if (ChannelBlocks > 32768) begin : gen_bad_granule
    $error("nvme_fill: Granule must be at most 16 MiB");
  end

  `NS_ASSERT(stays, state_q == StIdle || valid_i)
  `NS_ASSERT(within_a_region,
             !valid_i || (blocks_i != '0 && stop <= (RegionBits + 1)'(RegionBlocks)))
  `NS_ASSERT(answer_expected, (fill_done_i & ~outstanding_q) == '0)

endmodule
