// SPDX-License-Identifier: Apache-2.0

// Copy engine: copies a range of the device's memories to another range, of any alignment and
// length.
//
// Addresses are those of the PM window: the media, followed by the local memory if the device has
// one. The source and target must not overlap, because the order of the segments is not defined.
//
// The copy is cut into transfer segments at the target's granules. Each segment goes to the mover
// (ns_dma) of the channel that holds its target, so all channels work in parallel. The movers reach
// every channel through a crossbar.
`include "ns_assert.svh"

module copy
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import nvme_pkg::*;
  import copy_job_pkg::*;
#(
  /// Channels of the storage, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Granule of the channels in bytes, a power of two.
  parameter int unsigned Granule = 4096,
  /// Size of the media in bytes.
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  /// Channels of the local memory, a power of two; 0 without a local memory.
  parameter int unsigned LocalChannels = 0,
  /// Granule of its channels in bytes, a power of two.
  parameter int unsigned LocalGranule = 4096,
  /// First address of the local memory in the PM window, and its size in bytes.
  parameter longint unsigned LocalBase = 0,
  parameter longint unsigned LocalBytes = 0,
  localparam int unsigned LocalPorts = (LocalChannels == 0) ? 1 : LocalChannels
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// The engine is not idle. Driven by registers.
  output logic     busy_o,
  /// Register port.
  ns_axil_if.slave s_axil,
  /// Storage: one master per channel. Addresses are local to the channel.
  ns_axi_if.master m_mem[NumChannels],
  /// Local memory: one master per channel. Addresses are local to the channel.
  ns_axi_if.master m_local[LocalPorts],
  /// NVMe I/O commands. Command 0 copies blocks.
  nvme_engine_if.engine s_nvme,
  /// Commands of the command page. Their arguments are those of the registers.
  command_page_if.engine s_page,
  /// Interrupt request. Rises when a copy ends.
  output logic     irq_o
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = idx_width(NumChannels);
  localparam int unsigned Commands = 8;  // segments queued in a mover
  // Size of the whole PM window. A longer copy would only produce errors, and a copy of the command
  // page cannot be stopped.
  localparam logic [63:0] Longest = (LocalChannels == 0) ? MediaBytes : LocalBase + LocalBytes;
  localparam int unsigned CountBits = unsigned'($clog2(NumChannels * Commands + 1));

  // State of a copy: its remaining range and its segments in flight.
  typedef enum logic [1:0] {
    StIdle,
    StCheck,
    StIssue,
    StDrain
  } state_e;

  state_e state_q;
  logic [NumArgs-1:0][63:0] args, cmd_args;  // src, dst, bytes
  result_t result_q;
  logic [63:0] src_q, dst_q, bytes_left_q;
  logic [CountBits-1:0] in_flight_q;
  logic
      start,
      stop,
      front_stop,
      front_busy,
      malformed,
      invalid,
      segment_valid,
      segment_fire,
      segment_last,
      copy_done;
  logic [GranuleBits:0] granule_left, bytes;
  logic [NumChannels-1:0] target_channel, cmd_ready, done_valid;
  logic [NumChannels-1:0][1:0] done;

  // CDW10, CDW11: first source block. CDW12: number of blocks less one, up to 2**24. CDW14, CDW15:
  // first target block.
  engine_cmd_t cmd;
  status_t refused, status;
  logic [63:0] slba, dlba, distance_q;
  logic [23:0] nlb;
  logic [64:0] last_source_q, last_target_q;  // last blocks
  logic reserved_set;

  assign slba = cmd.sqe[383:320];
  assign dlba = {cmd.sqe[511:480], cmd.sqe[479:448]};
  assign nlb = cmd.sqe[407:384];
  assign reserved_set = cmd.sqe[415:408] != '0 || cmd.sqe[447:416] != '0;
  always_ff @(posedge clk_i) begin
    last_source_q <= 65'(slba) + 65'(nlb);
    last_target_q <= 65'(dlba) + 65'(nlb);
    distance_q <= (slba > dlba) ? slba - dlba : dlba - slba;
  end

  always_comb begin
    refused = generic_status(ScSuccess);
    if (reserved_set) refused = generic_status(ScInvalidField);
    else if (last_source_q >= 65'(cmd.ns_blocks) || last_target_q >= 65'(cmd.ns_blocks))
      refused = generic_status(ScLbaOutOfRange);
    else if (distance_q <= 64'(nlb)) refused = generic_status(ScInvalidField);
    status = generic_status(ScSuccess);
    if (result_q.write_error) status = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status = data_status(DataReadError, 1'b0);
  end

  assign cmd_args = {(64'(nlb) + 64'd1) << 9, (cmd.ns_base + dlba) << 9, (cmd.ns_base + slba) << 9};

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
    .job_done_i     (copy_done),
    .job_result_i   (result_q),
    .job_outputs_i  ('0),
    .job_status_i   (status)
  );

  // ---------------------------------------------------------------- copy

  assign stop = front_stop && (state_q == StIssue || state_q == StCheck);
  assign invalid = malformed || bytes_left_q == '0 || bytes_left_q > Longest || src_q + bytes_left_q - 64'd1 < src_q ||
      dst_q + bytes_left_q - 64'd1 < dst_q;

  // A segment ends with the target's granule.
  assign granule_left = (GranuleBits + 1)'(Granule) - (GranuleBits + 1)'(dst_q[GranuleBits-1:0]);
  assign segment_last = bytes_left_q <= 64'(granule_left);
  assign bytes = segment_last ? bytes_left_q[GranuleBits:0] : granule_left;
  assign segment_valid = state_q == StIssue;
  assign target_channel = NumChannels'(1) << ((NumChannels > 1) ? dst_q[GranuleBits+:ChannelBits] : '0);
  assign segment_fire = segment_valid && (target_channel & cmd_ready) != '0;
  assign copy_done = state_q == StDrain && in_flight_q == '0;
  assign busy_o = state_q != StIdle || front_busy;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      in_flight_q <= '0;
    end else begin
      in_flight_q <= in_flight_q + CountBits'(segment_fire) - CountBits'(done_valid != '0);
      unique case (state_q)
        StIdle:  if (start) state_q <= StCheck;
        StCheck: state_q <= (invalid || stop) ? StDrain : StIssue;
        StIssue:   if ((segment_fire && segment_last) || stop) state_q <= StDrain;
        default: if (copy_done) state_q <= StIdle;
      endcase
    end
  end

  // Accept the end of one segment per cycle.
  logic [NumChannels-1:0] done_grant;
  logic [1:0] done_errors;
  assign done_grant = done_valid & (~done_valid + 1'b1);
  always_comb begin
    done_errors = '0;
    for (int unsigned c = 0; c < NumChannels; c++) if (done_grant[c]) done_errors |= done[c];
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      src_q        <= args[0];
      dst_q        <= args[1];
      bytes_left_q <= args[2];
    end else if (segment_fire) begin
      src_q        <= src_q + 64'(bytes);
      dst_q        <= dst_q + 64'(bytes);
      bytes_left_q <= bytes_left_q - 64'(bytes);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q <= '0;
    end else if (start) begin
      result_q <= '0;
    end else begin
      if (done_errors[0]) result_q.read_error <= 1'b1;
      if (done_errors[1]) result_q.write_error <= 1'b1;
      if (stop && !(segment_fire && segment_last) && !(state_q == StCheck && invalid))
        result_q.stopped <= 1'b1;
      if (state_q == StCheck) result_q.invalid <= invalid;
    end
  end

  // One mover per channel, and their crossbar to all channels.
  ns_axi_if mover[NumChannels] ();

  for (genvar c = 0; c < NumChannels; c++) begin : gen_mover
    ns_dma #(
      .BurstBytes(256),
      .Commands  (Commands)
    ) u_dma (
      .clk_i,
      .rst_ni,
      .busy_o      (),
      .cmd_i       ('{bytes: 32'(bytes), dst: dst_q, src: src_q}),
      .cmd_valid_i (segment_valid && target_channel[c]),
      .cmd_ready_o (cmd_ready[c]),
      .done_o      (done[c]),
      .done_valid_o(done_valid[c]),
      .done_ready_i(done_grant[c]),
      .m_axi       (mover[c])
    );
  end

  engine_memory #(
    .NumMasters   (NumChannels),
    .IdBits       (4),
    .NumChannels  (NumChannels),
    .Granule      (Granule),
    .MediaBytes   (MediaBytes),
    .LocalChannels(LocalChannels),
    .LocalGranule (LocalGranule),
    .LocalBase    (LocalBase),
    .LocalBytes   (LocalBytes)
  ) u_memory (
    .clk_i,
    .rst_ni,
    .s_axi(mover),
    .m_mem,
    .m_local
  );

  logic unused;
  assign unused = ^cmd;

  `NS_ASSERT(done_is_expected, !(done_valid != '0 && in_flight_q == '0))

endmodule
