// SPDX-License-Identifier: Apache-2.0

// Saves the persistence domain to the reserved range and restores it; docs/hardware/nearpm.md
// describes the lines.
//
// After a reset the range is read twice: once to check the CRC, once to restore. Then the range is
// marked as used, and `freeze_o` falls. A stop before that leaves the range unchanged. Any other
// stop writes all lines, 16 per burst, and the header last; the header's CRC covers all of them.
//
// While state exists that has to survive, the header says so. Such a header after the next reset
// proves that the state was not saved. If the state cannot be restored, the range is kept and the
// engine stays frozen until the host discards it.
//
// Bursts of one channel have one ID, and channels have different IDs. No burst waits for a
// response, and writes of the header keep their order.
`include "ns_assert.svh"

module nearpm_save
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_job_pkg::*;
  import nearpm_crc_pkg::*;
#(
  /// Channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next channel follows.
  parameter int unsigned Granule = 4096,
  /// Bytes of the media; the reserved range is the last ReservedBytes.
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  localparam int unsigned ChannelBits = idx_width(NumChannels)
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  /// The function stops; held until the reset.
  input  logic                         stop_i,
  /// The memory has answered all writes that were started. From a register.
  input  logic                         quiet_i,
  /// The state to save is in the memory.
  output logic                         saved_o,
  /// The engine is frozen. From a register.
  output logic                         freeze_o,
  /// Restoring or saving. From registers.
  output logic                         busy_o,
  /// A state was restored.
  output logic                         restored_o,
  /// The saved state could not be restored. From a register.
  output logic                         restore_failed_o,
  /// State exists that has to survive. From registers.
  input  logic                         live_i,
  /// The host discards a lost state, or one that cannot be restored.
  input  logic                         forget_i,
  /// The preceding run had state and was not saved. From a register.
  output logic                         lost_o,
  /// The header is not yet up to date. From registers.
  output logic                         unkept_o,

  /// Selects what to save: a command or its job, a line of the contexts, a line of each queue, a
  /// row of the peers. Data follow a cycle later.
  output logic [CommandBits-1:0]       number_o,
  output logic [7:0]                   context_o,
  output logic [6:0]                   entry_o,
  output logic [LogBits:0]             peers_o,
  input  job_t                         job_i,
  input  logic                         stale_i,
  input  logic                         command_valid_i,
  input  commands_t                    commands_i,
  input  logic [NumChannels-1:0][7:0]  lines_i,
  input  commands_t                    cancelled_i,
  input  commands_t                    dropped_i,
  input  logic [511:0]                 context_i,
  input  logic [NumChannels-1:0][511:0] entry_i,
  input  logic [511:0]                 peers_i,

  /// Closes a log of which a command was dropped.
  output logic                         close_valid_o,
  output logic [LogBits-1:0]           close_log_o,

  /// Restored state and its indices.
  output logic                         restore_command_o,
  output logic [CommandBits-1:0]       restore_number_o,
  output job_t                         restore_job_o,
  output logic                         restore_stale_o,
  output commands_t                    restore_commands_o,
  output logic [NumChannels-1:0][7:0]  restore_lines_o,
  output logic                         restore_cancelled_o,
  output commands_t                    restore_cancelled_commands_o,
  output logic                         restore_context_o,
  output logic [7:0]                   restore_context_index_o,
  output logic [NumChannels-1:0]       restore_entry_o,
  output logic [6:0]                   restore_entry_index_o,
  output logic                         restore_peers_o,
  output logic [LogBits:0]             restore_peers_index_o,
  output logic [511:0]                 restore_data_o,

  /// Memory; media addresses; IDs below NumChannels.
  ns_axi_if.master                     m_axi
);

  localparam logic [63:0] Magic = 64'h0145_5641_534D_504E;  // "NPMSAVE\1"
  localparam logic [63:0] LiveMagic = 64'h0145_5649_4C4D_504E;  // "NPMLIVE\1"
  localparam int unsigned FirstContext = 1 + 2 * Commands;
  localparam int unsigned FirstEntry = FirstContext + Pools + Pools * Threads / 2;
  localparam int unsigned Entries = QueueLines / 2 + QueueLines;  // lines of a channel's queue
  localparam int unsigned FirstPeers = FirstEntry + Entries * NumChannels;
  localparam int unsigned Lines = FirstPeers + Pools * Threads;  // after the header
  localparam int unsigned IndexBits = unsigned'($clog2(Lines + 2));
  localparam int unsigned RangeBits = $bits(object_range_t);
  localparam int unsigned MoreBase = 192;  // ranges after the second one, in a command's second line
  localparam int unsigned HighCommands = 496;  // in the same line: commands from 64 on that it waits for
  localparam int unsigned HighCancelled = 432;  // in the first pool's line: cancelled commands from 64 on
  localparam int unsigned BurstBits = 4;
  localparam int unsigned BurstLines = 1 << BurstBits;
  localparam int unsigned Depth = 2 * BurstLines;
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam logic [AddrWidth-1:0] Base = MediaBytes - AddrWidth'(ReservedBytes);

  typedef logic [IndexBits-1:0] index_t;
  typedef logic [BurstBits:0] beats_t;

  typedef enum logic [3:0] {
    StHeaderAddress,
    StHeaderData,
    StReadAddress,  // address of a burst to restore
    StReadData,
    StCrcCheck,  // latency of the CRC, after each pass
    StRestoreFailed,  // reading, checking, restoring or marking failed; the range is unchanged
    StMarkAddress,
    StMarkData,
    StMarkResponse,
    StRun,
    StStop,  // all parts freeze within a few cycles
    StGather,  // collects a burst
    StAddress,
    StData,
    StSeal,
    StDone
  } state_e;

  state_e state_q;
  logic [2:0] wait_q;
  logic freeze_q, pass_q, read_ok_q, abandon, header_ok, header_live, header_none, saving, header_q;
  logic forget_mark_q;  // the mark discards a state that cannot be restored
  logic forget_q, forget;  // requested before the header was known
  logic marked_live_q;  // the header announces state, or is about to
  logic unmarked_q;  // the mark could not be written
  logic lost_q, was_lost_q, live;
  logic [31:0] header_crc_q;
  crc_t crc;

  // ---------------------------------------------------------------- line sequence

  index_t index_q, burst_q;  // of the next line, and of the next burst
  logic [6:0] entry_q;
  logic [ChannelBits-1:0] channel_q;
  beats_t beats, beat_q;
  logic step, rewind, is_command, is_context, is_peers;
  logic [AddrWidth-1:0] burst_addr;

  // Kind of the line in progress.
  logic valid_q, command_q, second_q, context_q, peers_q;
  logic [CommandBits-1:0] number_q;
  logic [7:0] context_index_q;
  logic [6:0] entry_index_q;
  logic [LogBits:0] peers_index_q;
  logic [ChannelBits-1:0] entry_channel_q;
  logic [511:0] line_q, gather_data;

  assign is_command = index_q < index_t'(FirstContext);
  assign is_context = !is_command && index_q < index_t'(FirstEntry);
  assign is_peers = index_q >= index_t'(FirstPeers);
  assign number_o = is_command ? CommandBits'((index_q - 1'b1) >> 1) : '0;
  assign context_o = 8'(index_q - index_t'(FirstContext));
  assign entry_o = entry_q;
  assign peers_o = (LogBits + 1)'(index_q - index_t'(FirstPeers));

  always_ff @(posedge clk_i) begin
    if (rewind) begin
      index_q <= index_t'(1);
      entry_q <= '0;
      channel_q <= '0;
    end else if (step) begin
      index_q <= index_q + 1'b1;
      if (!is_command && !is_context && !is_peers) begin
        entry_q <= (entry_q == 7'(Entries - 1)) ? '0 : entry_q + 1'b1;
        if (entry_q == 7'(Entries - 1)) channel_q <= channel_q + 1'b1;
      end
    end
    command_q <= is_command;
    second_q <= !index_q[0];
    context_q <= is_context;
    peers_q <= is_peers;
    number_q <= number_o;
    context_index_q <= context_o;
    entry_index_q <= entry_o;
    peers_index_q <= peers_o;
    entry_channel_q <= channel_q;
    line_q <= m_axi.r.data;
  end

  // A burst ends at a multiple of 16 lines, or with the last line.
  assign beats = (index_t'(Lines + 1) - burst_q < index_t'(BurstLines)) ? beats_t'(index_t'(Lines + 1) - burst_q) :
      beats_t'(BurstLines) - beats_t'(burst_q[BurstBits-1:0]);
  assign burst_addr = Base + (header_q ? '0 : AddrWidth'({burst_q, 6'd0}));

  // ---------------------------------------------------------------- restore

  job_t job_q;
  logic restoring;

  assign restoring = valid_q && !saving && pass_q;
  assign restore_command_o = restoring && command_q && second_q && line_q[0];
  assign restore_number_o = number_q;
  // The second line has the ranges after the first one, around the other fields.
  always_comb begin
    restore_job_o = job_q;
    restore_job_o.more[0] = line_q[8+:RangeBits];
    for (int unsigned n = 1; n < Ranges - 1; n++)
    restore_job_o.more[n] = line_q[MoreBase+(n-1)*RangeBits+:RangeBits];
  end
  assign restore_stale_o = line_q[1];
  // Commands from 64 on are in other bytes of the line.
  assign restore_commands_o = commands_t'({line_q[HighCommands+:16], line_q[64+:64]});
  assign restore_lines_o = line_q[128+:8*NumChannels];
  assign restore_cancelled_o = restoring && context_q && context_index_q == '0;
  assign restore_cancelled_commands_o = commands_t'({line_q[HighCancelled+:16], line_q[448+:64]});
  assign restore_context_o = restoring && context_q;
  assign restore_context_index_o = context_index_q;
  assign restore_entry_o = (restoring && !command_q && !context_q && !peers_q) ? NumChannels'(1) << entry_channel_q : '0;
  assign restore_entry_index_o = entry_index_q;
  assign restore_peers_o = restoring && peers_q;
  assign restore_peers_index_o = peers_index_q;
  assign restore_data_o = line_q;

  always_ff @(posedge clk_i)
    if (valid_q && command_q && !second_q)
      job_q <= job_t'(line_q[JobLineBits-1:0]);

  // ---------------------------------------------------------------- save

  logic gather, fifo_valid, fifo_pop;
  logic [5:0] fifo_count;
  logic [511:0] fifo_data;

  logic entries_valid;
  logic [511:0] entry_data;

  assign entries_valid = valid_q && !command_q && !context_q && !peers_q &&
      entry_index_q < 7'(QueueLines / 2);

  nearpm_save_filter u_filter (
    .clk_i,
    .dropped_i,
    .entries_valid_i(entries_valid),
    .index_i        (entry_index_q),
    .data_i         (entry_i[entry_channel_q]),
    .data_o         (entry_data)
  );

  always_comb begin
    gather_data = entry_data;
    if (peers_q) gather_data = peers_i;
    if (command_q && !second_q) gather_data = 512'(job_i[JobLineBits-1:0]);
    if (command_q && second_q) begin
      gather_data = '0;
      gather_data[0] = command_valid_i;
      gather_data[1] = stale_i;
      gather_data[8+:RangeBits] = job_i.more[0];
      for (int unsigned n = 1; n < Ranges - 1; n++)
      gather_data[MoreBase+(n-1)*RangeBits+:RangeBits] = job_i.more[n];
      {gather_data[HighCommands+:16], gather_data[64+:64]} = 80'(commands_i);
      gather_data[128+:8*NumChannels] = lines_i;
    end
    if (context_q) begin
      gather_data = context_i;
      if (context_index_q == '0)
        {gather_data[HighCancelled+:16], gather_data[448+:64]} = 80'(cancelled_i);
    end
  end

  assign saving = state_q inside {StGather, StAddress, StData, StSeal};
  assign gather = saving && index_q != index_t'(Lines + 1) && fifo_count <= 6'(Depth - 2);

  ns_fifo #(
    .Width(512),
    .Depth(Depth),
    .Style("lutram")
  ) u_lines (
    .clk_i,
    .rst_ni,
    .in_valid_i (valid_q && saving),
    .in_ready_o (),
    .in_data_i  (gather_data),
    .out_valid_o(fifo_valid),
    .out_ready_i(fifo_pop),
    .out_data_o (fifo_data),
    .count_o    (fifo_count)
  );

  // Logs are saved after all commands.
  assign close_valid_o = valid_q && saving && command_q && second_q && dropped_i[number_q] && uses_log(job_i.op) && !stale_i;
  assign close_log_o = job_i.log;

  // ---------------------------------------------------------------- state machine

  logic ar_fire, r_fire, aw_fire, w_fire, last_beat, last_burst, data_fire;

  assign ar_fire = m_axi.ar_valid && m_axi.ar_ready;
  assign r_fire = m_axi.r_valid;
  assign aw_fire = m_axi.aw_valid && m_axi.aw_ready;
  assign w_fire = m_axi.w_valid && m_axi.w_ready;
  assign last_beat = beat_q + 1'b1 == beats;
  assign last_burst = burst_q + index_t'(beats) == index_t'(Lines + 1);
  assign header_ok = m_axi.r.data[63:0] == Magic && m_axi.r.data[95:64] == 32'(Lines) && m_axi.r.data[511:129] == '0;
  assign header_live = m_axi.r.data == 512'(LiveMagic);
  assign header_none = m_axi.r.data == '0;
  assign forget = forget_i || forget_q;
  // A loss is reported until the host acknowledges it.
  assign live = live_i || lost_q;
  // A stop that leaves the range unchanged.
  assign abandon = stop_i && state_q inside {StHeaderAddress, StHeaderData, StReadAddress, StReadData, StCrcCheck, StRestoreFailed};
  assign data_fire = r_fire && state_q == StReadData;
  assign step = gather || data_fire;
  assign rewind = (state_q == StHeaderData) || (state_q == StCrcCheck) || (state_q == StStop);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StHeaderAddress;
      freeze_q <= 1'b1;
      valid_q <= 1'b0;
      restored_o <= 1'b0;
      wait_q <= '0;
      forget_mark_q <= 1'b0;
      forget_q <= 1'b0;
      marked_live_q <= 1'b0;
      unmarked_q <= 1'b0;
      lost_q <= 1'b0;
    end else begin
      forget_q <= forget && !(state_q inside {StRun, StRestoreFailed});
      if (forget && state_q == StRun) lost_q <= 1'b0;
      if (stop_i && state_q inside {StMarkAddress, StMarkData}) freeze_q <= 1'b1;
      valid_q <= step;
      wait_q  <= (state_q == StCrcCheck || state_q == StStop || state_q == StSeal) ? wait_q + 1'b1 : '0;
      if (abandon) state_q <= StDone;
      else begin
        unique case (state_q)
          StHeaderAddress: if (ar_fire) state_q <= StHeaderData;
          StHeaderData:
          if (r_fire) begin
            if (m_axi.r.resp != RespOkay) state_q <= StRestoreFailed;
            else if (header_ok) state_q <= StReadAddress;
            else if (header_live || header_none) begin
              state_q  <= StRun;
              freeze_q <= 1'b0;
              lost_q   <= header_live;
              marked_live_q  <= header_live;
            end else state_q <= StRestoreFailed;
          end
          StReadAddress: if (ar_fire) state_q <= StReadData;
          StReadData: if (r_fire && last_beat) state_q <= last_burst ? StCrcCheck : StReadAddress;
          StCrcCheck:
          if (wait_q == '1) begin
            if (!read_ok_q || crc != header_crc_q) state_q <= StRestoreFailed;
            else begin
              state_q <= pass_q ? StMarkAddress : StReadAddress;
              marked_live_q <= pass_q && (live_i || was_lost_q);
              lost_q  <= pass_q && was_lost_q;
            end
          end
          StMarkAddress: if (aw_fire) state_q <= StMarkData;
          StMarkData: if (w_fire) state_q <= StMarkResponse;
          StMarkResponse:
          if (stop_i) begin
            state_q  <= forget_mark_q ? StDone : StStop;
            freeze_q <= 1'b1;
          end else if (m_axi.b_valid) begin
            unmarked_q <= m_axi.b.resp != RespOkay;
            if (forget_mark_q || (freeze_q && m_axi.b.resp != RespOkay)) state_q <= StRestoreFailed;
            else begin
              state_q <= StRun;
              freeze_q <= 1'b0;
              restored_o <= restored_o || freeze_q;
            end
          end
          StRestoreFailed:
          if (forget) begin
            state_q   <= StMarkAddress;
            forget_mark_q <= 1'b1;
            marked_live_q   <= 1'b0;
          end
          StRun:
          if (stop_i) begin
            state_q  <= StStop;
            freeze_q <= 1'b1;
          end else if (live != marked_live_q) begin
            state_q <= StMarkAddress;
            marked_live_q <= live;
          end
          StStop: if (wait_q == '1) state_q <= StGather;
          StGather: if (fifo_count >= 6'(beats)) state_q <= StAddress;
          StAddress: if (aw_fire) state_q <= StData;
          StData:
          if (w_fire && (header_q || last_beat))
            state_q <= header_q ? StDone : last_burst ? StSeal : StGather;
          StSeal: if (wait_q == '1) state_q <= StAddress;
          default: ;
        endcase
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pass_q   <= 1'b0;
      read_ok_q   <= 1'b1;
      header_q <= 1'b1;
      was_lost_q <= 1'b0;
    end else begin
      unique case (state_q)
        StHeaderData: begin
          header_q   <= 1'b0;
          was_lost_q <= m_axi.r.data[128];
        end
        StCrcCheck: begin
          if (wait_q == '1) begin
            pass_q   <= 1'b1;
            header_q <= pass_q;
          end
        end
        StRun, StRestoreFailed: header_q <= 1'b1;
        StStop: header_q <= 1'b0;
        StSeal: header_q <= 1'b1;
        default: ;
      endcase
      if (data_fire && m_axi.r.resp != RespOkay) read_ok_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rewind) burst_q <= index_t'(1);
    else if ((data_fire || (w_fire && state_q == StData)) && last_beat)
      burst_q <= burst_q + index_t'(beats);
    if (state_q == StHeaderData) header_crc_q <= m_axi.r.data[127:96];
    if (ar_fire || aw_fire) beat_q <= '0;
    else if (data_fire || w_fire) beat_q <= beat_q + 1'b1;
  end

  assign freeze_o = freeze_q;
  assign busy_o = !(state_q inside {StDone, StRestoreFailed}) && !(state_q == StRun && live == marked_live_q);
  assign restore_failed_o = state_q == StRestoreFailed || forget_mark_q;
  assign lost_o = lost_q;
  assign unkept_o = unmarked_q || (live != marked_live_q && state_q != StRestoreFailed) || state_q inside {StMarkAddress, StMarkData, StMarkResponse};
  assign saved_o = state_q == StDone && quiet_i;

  // ---------------------------------------------------------------- CRC of the lines

  logic feed_q, effect_valid_q;
  logic [511:0] feed_data_q;
  crc_t effect_q, crc_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      feed_q <= 1'b0;
      effect_valid_q <= 1'b0;
    end else begin
      feed_q <= valid_q;
      effect_valid_q <= feed_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_q) feed_data_q <= saving ? gather_data : line_q;
    if (feed_q) effect_q <= of_line(feed_data_q);
    if (state_q == StHeaderData || state_q == StStop || (state_q == StCrcCheck && wait_q == '1))
      crc_q <= '1;
    else if (effect_valid_q) crc_q <= past_line(crc_q) ^ effect_q;
  end
  assign crc = ~crc_q;

  // ---------------------------------------------------------------- memory port

  logic [IdWidth-1:0] id;
  ax_t ax;
  logic [511:0] header;

  if (NumChannels > 1) begin : gen_id
    assign id = IdWidth'(burst_addr[GranuleBits+:ChannelBits]);
  end else begin : gen_one_id
    assign id = '0;
  end

  assign ax = '{
          id: id,
          len: header_q ? 8'd0 : 8'(beats - 1'b1),
          size: 3'd6,
          burst: BurstIncr,
          addr: burst_addr
      };
  // The mark invalidates the saved state: it announces that state exists, or is a line of zeros.
  assign header = (state_q != StMarkData) ? {383'd0, lost_q, crc, 32'(Lines), Magic} : marked_live_q ? 512'(LiveMagic) : '0;

  assign m_axi.ar = ax;
  assign m_axi.ar_valid = state_q == StHeaderAddress || state_q == StReadAddress;
  assign m_axi.r_ready = 1'b1;
  assign m_axi.aw = ax;
  assign m_axi.aw_valid = state_q == StMarkAddress || state_q == StAddress;
  assign m_axi.w = '{last: header_q || last_beat, strb: '1, data: header_q ? header : fifo_data};
  assign m_axi.w_valid = state_q == StMarkData || state_q == StData;
  assign fifo_pop = w_fire && state_q == StData && !header_q;
  assign m_axi.b_ready = 1'b1;

  logic unused;
  assign unused = ^{m_axi.b.id, m_axi.r.id, m_axi.r.last};

  if (Lines >= ReservedBytes / 64) begin : gen_bad_channels
    $error("nearpm_save: the reserved range is too small for this number of channels");
  end

  `NS_ASSERT(burst_data_valid, state_q != StData || header_q || fifo_valid)
  `NS_ASSERT(frozen_while_active,
             freeze_q || state_q inside {StRun, StMarkAddress, StMarkData, StMarkResponse})

endmodule
