// Scan engine: counts the values of 32 or 64 bits in a range of the media that lie between two bounds, both included, and may write a
// bitmap of them: bit n, from the lowest bit of its first byte on, is 1 if value n lies there.
//
// It does one scan at a time, of its registers, its command page or an NVMe I/O command in turn (engine_launch).
// The part of a range that lies in one channel is a range of that channel's own addresses, so each channel is scanned by itself, all at
// the same time; in the end their counts are added. A bitmap lies in any channel, so its lines of all channels are written in one row.
`include "ns_assert.svh"
`include "ns_axil_regs.svh"

module scan
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import scan_pkg::*;
#(
  /// Memory channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next one's turn, a power of two.
  parameter int unsigned Granule = 4096,
  /// Bytes of the media; what lies beyond is answered with errors.
  parameter longint unsigned MediaBytes = 64'h4000_0000
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic     busy_o,
  /// Registers.
  ns_axil_if.slave s_axil,
  /// Memory, one master a channel; addresses are local to the channel.
  ns_axi_if.master m_mem[NumChannels],
  /// NVMe I/O commands: 0 counts, 1 writes a bitmap, too.
  nvme_engine_if.engine s_nvme,
  /// Commands of its page: the arguments of the registers.
  command_page_if.engine s_page,
  /// Interrupt request: rises when a scan ends.
  output logic     irq_o
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = idx_width(NumChannels);
  localparam int unsigned RowBits = GranuleBits + unsigned'($clog2(NumChannels));

  // Registers. What lies beyond them is a word without one.
  scan_regs_pkg::scan_regs__in_t hwif_in;
  scan_regs_pkg::scan_regs__out_t hwif_out;
  logic open;

  scan_regs u_regs (
    .clk           (clk_i),
    .arst_n        (rst_ni),
    `NS_AXIL_REGS(s_axil, 12),
    .hwif_in,
    .hwif_out
  );

  ns_axil_outstanding u_open (
    .clk_i,
    .rst_ni,
    .open_o   (open),
    .awvalid_i(s_axil.awvalid),
    .awready_i(s_axil.awready),
    .wvalid_i (s_axil.wvalid),
    .wready_i (s_axil.wready),
    .bvalid_i (s_axil.bvalid),
    .bready_i (s_axil.bready),
    .arvalid_i(s_axil.arvalid),
    .arready_i(s_axil.arready),
    .rvalid_i (s_axil.rvalid),
    .rready_i (s_axil.rready)
  );

  typedef enum logic [2:0] {
    StIdle,
    StCheck,
    StBegin,
    StScan,
    StAdd,
    StDone
  } state_e;

  state_e state_q;
  typedef struct packed {
    logic        unknown;  // a kind that there is not
    logic        filter;
    logic        is_signed;
    logic        wide;
    logic [63:0] dst;
    logic [63:0] high;
    logic [63:0] low;
    logic [63:0] bytes;
    logic [63:0] src;
  } job_t;

  typedef struct packed {
    logic        write_error;
    logic        invalid;
    logic        stopped;
    logic        read_error;
    logic [63:0] count;
  } result_t;

  job_t job;
  result_t result_q;
  logic [5:0][63:0] args, cmd_args;
  logic [3:0] reported;
  logic [63:0] counted;
  logic [64:0] end_q;
  logic start, stop, front_stop, invalid, begin_scan, finish, done, front_busy, malformed;

  // CDW10, CDW11: first block; CDW12: blocks, less one, up to 2**24, so that the count fits into dword 0; CDW13: kind of values, and
  // from bit 2 on the bitmap's place in units of 4 KiB.
  engine_cmd_t cmd;
  status_t refused, status;
  logic [63:0] slba;
  logic [64:0] last_q;  // last block
  logic [63:0] map_first, map_last_q;  // blocks of the bitmap
  logic reserved, filters;

  assign slba = cmd.sqe[383:320];
  assign filters = cmd.command == EngineCommandWidth'(1);
  assign map_first = 64'(cmd.sqe[447:418]) << 3;
  assign reserved = cmd.sqe[415:408] != '0 || (!filters && map_first != '0);
  always_ff @(posedge clk_i) begin
    last_q <= 65'(slba) + 65'(cmd.sqe[407:384]);
    map_last_q <= map_first + (64'(cmd.sqe[407:384]) >> (cmd.sqe[416] ? 6 : 5));
  end

  always_comb begin
    refused = generic_status(ScSuccess);
    if (reserved) refused = generic_status(ScInvalidField);
    else if (last_q >= 65'(cmd.ns_blocks) || (filters && map_last_q >= cmd.ns_blocks))
      refused = generic_status(ScLbaOutOfRange);
    else if (filters && map_first <= last_q[63:0] && slba <= map_last_q)
      refused = generic_status(ScInvalidField);
    status = generic_status(ScSuccess);
    if (result_q.write_error) status = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status = data_status(DataReadError, 1'b0);
  end

  assign cmd_args = {
    (cmd.ns_base + map_first) << 9,
    {61'd0, filters, cmd.sqe[417:416]},
    {cmd.sqe[511:480], cmd.sqe[479:448]},
    {cmd.sqe[127:96], cmd.sqe[95:64]},
    (64'(cmd.sqe[407:384]) + 64'd1) << 9,
    (cmd.ns_base + slba) << 9
  };

  engine_job_mux #(
    .NumArgs   (6),
    .StoppedBit(1)
  ) u_front (
    .clk_i,
    .rst_ni,
    .busy_o         (front_busy),
    .start_i        (hwif_out.control.start.value),
    .stop_i         (hwif_out.control.stop.value),
    .interrupt_i    (hwif_out.interrupt.enable.value && hwif_out.sources.done.value && hwif_out.status.done.value),
    .args_i         ({
      hwif_out.dst_hi.value.value,
      hwif_out.dst_lo.value.value,
      hwif_out.kind_hi.value.value,
      hwif_out.kind_lo.reserved.value,
      hwif_out.kind_lo.filter.value,
      hwif_out.kind_lo.is_signed.value,
      hwif_out.kind_lo.wide.value,
      hwif_out.high_hi.value.value,
      hwif_out.high_lo.value.value,
      hwif_out.low_hi.value.value,
      hwif_out.low_lo.value.value,
      hwif_out.bytes_hi.value.value,
      hwif_out.bytes_lo.value.value,
      hwif_out.src_hi.value.value,
      hwif_out.src_lo.value.value
    }),
    .irq_o,
    .idle_o         (hwif_in.control.idle.next),
    .ended_o        (hwif_in.status.done.hwset),
    .result_o       (reported),
    .outputs_o      (counted),
    .s_nvme,
    .cmd_o          (cmd),
    .refused_i      (refused),
    .cmd_args_i     (cmd_args),
    .s_page,
    .job_start_o    (start),
    .job_args_o     (args),
    .job_malformed_o(malformed),
    .job_stop_o     (front_stop),
    .job_done_i     (done),
    .job_result_i   ({result_q.write_error, result_q.invalid, result_q.stopped, result_q.read_error}),
    .job_outputs_i  (result_q.count),
    .job_status_i   (status)
  );

  assign job = '{
          unknown: malformed || args[4][63:3] != '0,
          filter: args[4][2],
          is_signed: args[4][1],
          wide: args[4][0],
          dst: args[5],
          high: args[3],
          low: args[2],
          bytes: args[1],
          src: args[0]
      };
  assign hwif_in.result.read_error.next = reported[0];
  assign hwif_in.result.stopped.next = reported[1];
  assign hwif_in.result.invalid.next = reported[2];
  assign hwif_in.result.write_error.next = reported[3];
  assign hwif_in.count_lo.value.next = counted[31:0];
  assign hwif_in.count_hi.value.next = counted[63:32];

  // ---------------------------------------------------------------- a scan

  logic [2:0] odd;
  logic map_invalid, map_busy, map_error, bits_busy;
  logic [64:0] map_end_q;
  logic [NumChannels-1:0] lines_busy, line_valid, line_ready;
  bitmap_line_t [NumChannels-1:0] lines;
  logic [ChannelBits-1:0] turn_q;
  logic [NumChannels-1:0] busy, error;
  logic [NumChannels-1:0][63:0] count;

  assign stop = front_stop && state_q != StIdle && state_q != StAdd && state_q != StDone;
  assign odd = job.src[2:0] | job.bytes[2:0];
  assign invalid = job.bytes == '0 || end_q > {1'b1, 64'd0} || odd[1:0] != '0 || (job.wide && odd[2]) || job.unknown || map_invalid;
  // Bits of a beat are whole bytes, so their places are, too.
  assign map_invalid = job.filter && (job.src[5:0] != '0 || (!job.wide && job.dst[0]) || map_end_q > {1'b1, 64'd0});
  assign bits_busy = lines_busy != '0 || map_busy;
  assign begin_scan = state_q == StBegin && !invalid && !result_q.stopped;
  assign finish = (state_q == StAdd && turn_q == ChannelBits'(NumChannels - 1)) || (state_q == StBegin && !begin_scan);
  assign done = state_q == StDone;
  assign busy_o = open || state_q != StIdle || front_busy;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start) state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= begin_scan ? StScan : StDone;
        StScan:  if (busy == '0 && !bits_busy) state_q <= StAdd;
        StAdd:   if (finish) state_q <= StDone;
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
      result_q <= '0;
      turn_q   <= '0;
    end else if (start) begin
      result_q <= '0;
      turn_q   <= '0;
    end else begin
      if (state_q == StBegin) result_q.invalid <= invalid;
      if (stop && !(state_q == StBegin && invalid) && !(state_q == StScan && busy == '0 && !bits_busy))
        result_q.stopped <= 1'b1;
      if (state_q == StAdd) begin
        result_q.count <= result_q.count + count[turn_q];
        turn_q <= turn_q + 1'b1;
        result_q.read_error <= error != '0;
        result_q.write_error <= map_error;
      end
    end
  end

  // Bytes of a channel below an address of the media.
  function automatic logic [64:0] below(logic [64:0] addr, int unsigned channel);
    logic [64:0] granule;
    granule = (addr & 65'(2 ** RowBits - 1)) >> GranuleBits;
    below = (addr >> RowBits) << GranuleBits;
    if (granule > 65'(channel)) below += 65'(Granule);
    else if (granule == 65'(channel)) below += addr & 65'(Granule - 1);
  endfunction

  ns_axi_if reads[NumChannels] ();
  ns_axi_if writes[NumChannels] ();

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    logic [64:0] first, limit;
    assign first = below(65'(job.src), c);
    assign limit = below(end_q, c);

    // Its first granule: the range begins in it, or so many granules later.
    logic [ChannelBits-1:0] later;
    logic [RowBits-1:0] distance;  // from the range's first byte
    logic [63:0] pos_q;
    logic [15:0] bits;
    logic room, bits_last, bits_valid;
    if (NumChannels > 1) begin : gen_later
      assign later = ChannelBits'(c) - job.src[GranuleBits+:ChannelBits];
    end else begin : gen_now
      assign later = '0;
    end
    assign distance = (later == '0) ? '0 : RowBits'({later, GranuleBits'(0)}) - RowBits'(job.src[GranuleBits-1:0]);
    always_ff @(posedge clk_i) pos_q <= job.dst + (64'(distance) >> (job.wide ? 6 : 5));

    scan_bitmap #(
      .NumChannels(NumChannels),
      .Granule    (Granule)
    ) u_bitmap (
      .clk_i,
      .rst_ni,
      .start_i (begin_scan),
      .pos_i   (pos_q),
      .offset_i((later == '0) ? job.src[GranuleBits-1:0] : '0),
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
      .start_i (begin_scan),
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
    .clear_i(begin_scan),
    .line_i (lines),
    .valid_i(line_valid),
    .ready_o(line_ready),
    .m_mem  (writes)
  );

  logic unused;
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12], cmd};

  `NS_ASSERT(channels_rest, state_q == StScan || busy == '0)

endmodule
