// SPDX-License-Identifier: Apache-2.0

// Scan engine: counts the values of 32 or 64 bits in a range of the media that lie between two
// bounds, bounds included. It can also write a bitmap: bit n, counted from the lowest bit of the
// first byte, is 1 if value n lies between the bounds.
//
// engine_job_mux arbitrates scans of registers, command page and NVMe I/O commands, one at a time.
// The part of a range in one channel is a contiguous range of that channel's addresses. So each
// channel is scanned separately and in parallel, and the counts are added at the end. A line of the
// bitmap can lie in any channel, so scan_write serialises the lines of all channels.
`include "ns_assert.svh"

module scan
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import scan_job_pkg::*;
  import scan_pkg::*;
#(
  /// Channels of the storage, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Granule of the channels in bytes, a power of two.
  parameter int unsigned Granule = 4096,
  /// Size of the media in bytes. Accesses past it are answered with errors.
  parameter longint unsigned MediaBytes = 64'h4000_0000
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// The engine is not idle. Driven by registers.
  output logic     busy_o,
  /// Register port.
  ns_axil_if.slave s_axil,
  /// Storage: one master per channel. Addresses are local to the channel.
  ns_axi_if.master m_mem[NumChannels],
  /// NVMe I/O commands. Command 0 counts values; command 1 also writes a bitmap.
  nvme_engine_if.engine s_nvme,
  /// Commands of the command page. Their arguments are those of the registers.
  command_page_if.engine s_page,
  /// Interrupt request. Rises when a scan ends.
  output logic     irq_o
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = idx_width(NumChannels);
  localparam int unsigned RowBits = GranuleBits + unsigned'($clog2(NumChannels));

  typedef enum logic [2:0] {
    StIdle,
    StCheck,
    StBegin,
    StScan,
    StSum,
    StDone
  } state_e;

  state_e state_q;
  typedef struct packed {
    logic        unsupported;  // kind that does not exist
    logic        filter;
    logic        is_signed;
    logic        wide;
    logic [63:0] dst;
    logic [63:0] high;
    logic [63:0] low;
    logic [63:0] bytes;
    logic [63:0] src;
  } job_t;

  job_t job;
  result_t result_q;
  logic [63:0] count_q;
  logic [NumArgs-1:0][63:0] args, cmd_args;
  logic [64:0] end_q;
  logic start, stop, front_stop, invalid, scan_start, sum_done, done, front_busy, malformed;

  // CDW10, CDW11: first block. CDW12: number of blocks less one, up to 2**24, so the count fits in
  // dword 0. CDW13: kind of values; from bit 2, offset of the bitmap in units of 4 KiB.
  engine_cmd_t cmd;
  status_t refused, status;
  logic [63:0] slba;
  logic [64:0] last_q;  // last block
  logic [63:0] map_first, map_last_q;  // blocks of the bitmap
  logic reserved_set, is_filter;

  assign slba = cmd.sqe[383:320];
  assign is_filter = cmd.command == EngineCommandWidth'(1);
  assign map_first = 64'(cmd.sqe[447:418]) << 3;
  assign reserved_set = cmd.sqe[415:408] != '0 || (!is_filter && map_first != '0);
  always_ff @(posedge clk_i) begin
    last_q <= 65'(slba) + 65'(cmd.sqe[407:384]);
    map_last_q <= map_first + (64'(cmd.sqe[407:384]) >> (cmd.sqe[416] ? 6 : 5));
  end

  always_comb begin
    refused = generic_status(ScSuccess);
    if (reserved_set) refused = generic_status(ScInvalidField);
    else if (last_q >= 65'(cmd.ns_blocks) || (is_filter && map_last_q >= cmd.ns_blocks))
      refused = generic_status(ScLbaOutOfRange);
    else if (is_filter && map_first <= last_q[63:0] && slba <= map_last_q)
      refused = generic_status(ScInvalidField);
    status = generic_status(ScSuccess);
    if (result_q.write_error) status = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status = data_status(DataReadError, 1'b0);
  end

  assign cmd_args = {
    (cmd.ns_base + map_first) << 9,
    {61'd0, is_filter, cmd.sqe[417:416]},
    {cmd.sqe[511:480], cmd.sqe[479:448]},
    {cmd.sqe[127:96], cmd.sqe[95:64]},
    (64'(cmd.sqe[407:384]) + 64'd1) << 9,
    (cmd.ns_base + slba) << 9
  };

  engine_job_mux #(
    .NumArgs   (NumArgs),
    .NumOutputs(NumOutputs),
    .NumResults(NumResults),
    .StoppedBit(StoppedBit),
    .NumWords  (NumWords)
  ) u_front (
    .clk_i,
    .rst_ni,
    .busy_o     (front_busy),
    .s_axil,
    .words_i    ('0),
    .irq_o,
    .s_nvme,
    .cmd_o     (cmd),
    .refused_i (refused),
    .cmd_args_i(cmd_args),
    .s_page,
    .job_start_o    (start),
    .job_args_o     (args),
    .job_malformed_o(malformed),
    .job_stop_o     (front_stop),
    .job_done_i     (done),
    .job_result_i   (result_q),
    .job_outputs_i  (count_q),
    .job_status_i   (status)
  );

  assign job = '{
          unsupported: malformed || args[4][63:3] != '0,
          filter: args[4][2],
          is_signed: args[4][1],
          wide: args[4][0],
          dst: args[5],
          high: args[3],
          low: args[2],
          bytes: args[1],
          src: args[0]
      };

  // ---------------------------------------------------------------- scan

  logic [2:0] low_bits;
  logic map_invalid, map_busy, map_error, bits_busy;
  logic [64:0] map_end_q;
  logic [NumChannels-1:0] lines_busy, line_valid, line_ready;
  bitmap_line_t [NumChannels-1:0] lines;
  logic [ChannelBits-1:0] channel_q;
  logic [NumChannels-1:0] busy, error;
  logic [NumChannels-1:0][63:0] count;

  assign stop = front_stop && state_q != StIdle && state_q != StSum && state_q != StDone;
  assign low_bits = job.src[2:0] | job.bytes[2:0];
  assign invalid = job.bytes == '0 || end_q > {1'b1, 64'd0} || low_bits[1:0] != '0 || (job.wide && low_bits[2]) || job.unsupported || map_invalid;
  // A beat yields whole bytes of bitmap bits, so the bitmap's alignment is in bytes too.
  assign map_invalid = job.filter && (job.src[5:0] != '0 || (!job.wide && job.dst[0]) || map_end_q > {1'b1, 64'd0});
  assign bits_busy = lines_busy != '0 || map_busy;
  assign scan_start = state_q == StBegin && !invalid && !result_q.stopped;
  assign sum_done = (state_q == StSum && channel_q == ChannelBits'(NumChannels - 1)) || (state_q == StBegin && !scan_start);
  assign done = state_q == StDone;
  assign busy_o = state_q != StIdle || front_busy;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start) state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= scan_start ? StScan : StDone;
        StScan:  if (busy == '0 && !bits_busy) state_q <= StSum;
        StSum:   if (sum_done) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    end_q <= 65'(job.src) + 65'(job.bytes);
    map_end_q <= 65'(job.dst) + (job.wide ? (65'(job.bytes) + 65'd63) >> 6 : (65'(job.bytes) + 65'd31) >> 5);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q  <= '0;
      count_q   <= '0;
      channel_q <= '0;
    end else if (start) begin
      result_q  <= '0;
      count_q   <= '0;
      channel_q <= '0;
    end else begin
      if (state_q == StBegin) result_q.invalid <= invalid;
      if (stop && !(state_q == StBegin && invalid) && !(state_q == StScan && busy == '0 && !bits_busy))
        result_q.stopped <= 1'b1;
      if (state_q == StSum) begin
        count_q <= count_q + count[channel_q];
        channel_q <= channel_q + 1'b1;
        result_q.read_error <= error != '0;
        result_q.write_error <= map_error;
      end
    end
  end

  // Number of a channel's bytes below a media address.
  function automatic logic [64:0] channel_bytes(logic [64:0] addr, int unsigned channel);
    logic [64:0] granule;
    granule = (addr & 65'(2 ** RowBits - 1)) >> GranuleBits;
    channel_bytes = (addr >> RowBits) << GranuleBits;
    if (granule > 65'(channel)) channel_bytes += 65'(Granule);
    else if (granule == 65'(channel)) channel_bytes += addr & 65'(Granule - 1);
  endfunction

  ns_axi_if reads[NumChannels] ();
  ns_axi_if writes[NumChannels] ();

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    logic [64:0] first, limit;
    assign first = channel_bytes(65'(job.src), c);
    assign limit = channel_bytes(end_q, c);

    // Distance in granules from the range's first granule to this channel's first granule.
    logic [ChannelBits-1:0] granules_after;
    logic [RowBits-1:0] distance;  // in bytes, from the range's first byte
    logic [63:0] pos_q;
    logic [15:0] bits;
    logic room, bits_last, bits_valid;
    if (NumChannels > 1) begin : gen_later
      assign granules_after = ChannelBits'(c) - job.src[GranuleBits+:ChannelBits];
    end else begin : gen_now
      assign granules_after = '0;
    end
    assign distance = (granules_after == '0) ? '0 : RowBits'({granules_after, GranuleBits'(0)}) - RowBits'(job.src[GranuleBits-1:0]);
    always_ff @(posedge clk_i) pos_q <= job.dst + (64'(distance) >> (job.wide ? 6 : 5));

    scan_bitmap #(
      .NumChannels(NumChannels),
      .Granule    (Granule)
    ) u_bitmap (
      .clk_i,
      .rst_ni,
      .start_i (scan_start),
      .pos_i   (pos_q),
      .offset_i((granules_after == '0) ? job.src[GranuleBits-1:0] : '0),
      .wide_i  (job.wide),
      .valid_i (bits_valid && job.filter),
      .bits_i  (bits),
      .last_i  (bits_last),
      .room_o  (room),
      .busy_o  (lines_busy[c]),
      .line_o  (lines[c]),
      .valid_o (line_valid[c]),
      .ready_i (line_ready[c])
    );

    scan_channel u_channel (
      .clk_i,
      .rst_ni,
      .start_i (scan_start),
      .addr_i  (first[63:0]),
      .bytes_i (64'(limit - first)),
      .wide_i  (job.wide),
      .signed_i(job.is_signed),
      .low_i   (job.low),
      .high_i  (job.high),
      .ready_i (room),
      .stop_i  (stop),
      .busy_o  (busy[c]),
      .count_o (count[c]),
      .error_o (error[c]),
      .bits_o  (bits),
      .bits_last_o (bits_last),
      .bits_valid_o(bits_valid),
      .m_axi   (reads[c])
    );

    ns_axi_rw_join u_join (
      .s_read (reads[c]),
      .s_write(writes[c]),
      .m_axi  (m_mem[c])
    );
  end

  scan_write #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .MediaBytes (MediaBytes)
  ) u_write (
    .clk_i,
    .rst_ni,
    .busy_o (map_busy),
    .error_o(map_error),
    .clear_i(scan_start),
    .line_i (lines),
    .valid_i(line_valid),
    .ready_o(line_ready),
    .m_mem  (writes)
  );

  logic unused;
  assign unused = ^cmd;

  `NS_ASSERT(channels_idle_outside_scan, state_q == StScan || busy == '0)

endmodule
