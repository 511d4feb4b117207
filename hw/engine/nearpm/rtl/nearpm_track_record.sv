// SPDX-License-Identifier: Apache-2.0

// Records lines of tracked pools: inserts an undo command of one line, an internal record, into the
// table before the first store to the line in an epoch.
//
//   tracker of a channel ─► search in the set ─┬─► found: done
//                                              └─► missing: record ─► table ─► added, done
//
// One line at a time, in turns. The search and the log of the pool are read together. An epoch of a
// pool is a generation of its log; it begins with the acceptance of a command.
//
// If the set or the log is full, a record without bytes is inserted. It ends with `log_full`, which
// closes the log. Until the next epoch no line of the pool is recorded.
//
// Assumes that `commands_free_i` stays 1 while a line is requested, unless it is 0 at that time.
`include "ns_assert.svh"

module nearpm_track_record
  import nearpm_pkg::*;
  import nearpm_job_pkg::*;
#(
  /// Channels, a power of two.
  parameter int unsigned NumChannels = 2
) (
  input  logic                               clk_i,
  input  logic                               rst_ni,
  /// Nothing is inserted. From a register.
  input  logic                               freeze_i,
  /// From registers.
  output logic                               busy_o,

  /// Tracked pools as the contexts know them, and as the trackers see them. From registers.
  input  tracked_pool_t [Pools-1:0]          pools_i,
  output tracked_pool_t [Pools-1:0]          pools_o,
  /// Lines to be recorded; see nearpm_track.
  input  logic         [NumChannels-1:0]     line_valid_i,
  input  pool_number_t [NumChannels-1:0]     line_pool_i,
  input  line_t        [NumChannels-1:0]     line_i,
  output logic         [NumChannels-1:0]     done_o,

  /// No command of the host is being decoded.
  input  logic                               commands_free_i,
  /// A pool is mapped or restored as a tracked one; a log enters a new generation.
  input  logic         [Pools-1:0]           map_i,
  input  logic                               generation_valid_i,
  input  logic         [LogBits-1:0]         generation_log_i,

  /// Contexts belong to this module while `contexts_o` is 1, from a register. A log follows its
  /// read by a cycle; its pool is valid at once.
  output logic                               contexts_o,
  output logic                               read_o,
  output logic         [LogBits-1:0]         log_o,
  input  pool_t                              pool_i,
  input  log_t                               log_i,
  output logic                               log_write_o,
  output log_t                               new_log_o,

  /// Table.
  input  commands_t                          present_i,
  output logic                               insert_valid_o,
  output logic         [CommandBits-1:0]     insert_number_o,
  output job_t                               insert_job_o,
  output ranges_t                            insert_ranges_o,
  input  logic                               inserted_i
);

  localparam int unsigned ChannelBits = unsigned'(NumChannels > 1 ? $clog2(NumChannels) : 1);
  localparam int unsigned RecordBytes = 128;  // header and line

  typedef enum logic [1:0] {
    StIdle,
    StSearch,
    StRecord,  // the log is known
    StInsert
  } state_e;

  state_e state_q;
  logic [NumChannels-1:0] grant, grant_q, request;
  logic [ChannelBits-1:0] channel;
  logic start, done, in_log, in_log_q, number_free, overflow, overflow_q;
  pool_number_t pool_number, pool_number_q;
  line_t line, line_q;
  logic [CommandBits-1:0] number, number_q;
  logic [Pools-1:0] overflows_q;  // the epoch has had one
  logic [Pools-1:0] epoch, ready, full;
  logic found, missing, set_busy, recordable, add;
  job_t job, job_q;
  ranges_t ranges_q;
  // Some members are not used.
  // verilator lint_off UNUSEDSIGNAL
  pool_t pool_q;
  // verilator lint_on UNUSEDSIGNAL
  logic [MediaBits-1:0] base_q;  // of the log

  always_comb begin
    pools_o = pools_i;
    for (int unsigned p = 0; p < Pools; p++) if (overflows_q[p]) pools_o[p].recorded = 1'b0;
  end

  // ---------------------------------------------------------------- requests

  // Lines of a pool whose part of the set is being cleared wait.
  for (genvar c = 0; c < NumChannels; c++) begin : gen_request
    assign request[c] = line_valid_i[c] && ready[line_pool_i[c]];
  end

  ns_rr_arbiter #(
    .N(NumChannels)
  ) u_channel (
    .clk_i,
    .rst_ni,
    .req_i  (request),
    .next_i (state_q == StIdle && start),
    .gnt_o  (grant),
    .idx_o  (channel),
    .valid_o()
  );

  assign start = request != '0 && commands_free_i && !freeze_i;
  assign pool_number = line_pool_i[channel];
  assign line = line_i[channel];
  assign in_log = line >= pools_i[pool_number].first_log_line &&
      line <= pools_i[pool_number].last_log_line;

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      grant_q <= grant;
      pool_number_q <= pool_number;
      line_q <= line;
      in_log_q <= in_log;
    end
  end

  // ---------------------------------------------------------------- set

  for (genvar p = 0; p < Pools; p++) begin : gen_epoch
    assign epoch[p] = generation_valid_i && generation_log_i == LogBits'(p * Threads);
  end

  nearpm_track_set u_set (
    .clk_i,
    .rst_ni,
    .busy_o   (set_busy),
    .clear_i  (map_i),
    .epoch_i  (epoch),
    .ready_o  (ready),
    .full_o   (full),
    .search_i (state_q == StIdle && start),
    .pool_i   (pool_number),
    .line_i   (line),
    .found_o  (found),
    .missing_o(missing),
    .add_i    (add)
  );

  // ---------------------------------------------------------------- record

  // The lowest free number.
  always_comb begin
    number = '0;
    number_free = 1'b0;
    for (int n = Commands - 1; n >= int'(HostCommands); n--) begin
      if (!present_i[n]) begin
        number = CommandBits'(n);
        number_free = 1'b1;
      end
    end
  end

  // Since the store arrived an error may have closed the log, or the epoch has had an overflow.
  assign recordable = log_i.open && !log_i.committed && !log_i.pending && !overflows_q[pool_number_q];
  assign overflow = full[pool_number_q] || 33'(log_i.next) + 33'(RecordBytes) > 33'(pool_q.log_bytes);

  always_comb begin
    job = '{
        more: '0,
        op: pool_q.tracked[1] ? OpCheckpoint : OpUndo,
        log: log_o,
        source: {line_q, 6'd0},
        target: base_q + MediaBits'(log_i.next),
        bytes: 17'd64,
        object: 64'({line_q, 6'd0} - pool_q.media),
        value: log_i.generation,
        transaction: '0,
        number: log_i.records,
        previous: log_i.last,
        base: base_q,
        pool: pool_q.media,
        pool_last: pool_q.media + pool_q.bytes - 1'b1
    };
    if (overflow) begin
      job.target = base_q;
      job.bytes  = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StSearch) begin
      pool_q <= pool_i;
      base_q <= pool_i.media + pool_i.logs;
    end
    if (state_q == StRecord) begin
      number_q <= number;
      job_q <= job;
      ranges_q <= ranges_of(job);
      overflow_q <= overflow;
    end
  end

  assign insert_valid_o = state_q == StInsert;
  assign insert_number_o = number_q;
  assign insert_job_o = job_q;
  assign insert_ranges_o = ranges_q;
  assign contexts_o = state_q != StIdle;
  assign read_o = state_q == StSearch;
  assign log_o = {pool_number_q, ThreadBits'(0)};
  assign add = inserted_i && !overflow_q;
  assign log_write_o = inserted_i && !overflow_q && log_i.open;

  always_comb begin
    new_log_o = log_i;
    new_log_o.next = log_i.next + 32'(RecordBytes);
    new_log_o.last = log_i.next;
    new_log_o.records = log_i.records + 1'b1;
  end

  // ---------------------------------------------------------------- state machine

  always_comb begin
    unique case (state_q)
      StSearch: done = found || (missing && in_log_q);
      StRecord: done = !recordable;
      StInsert: done = inserted_i;
      default:  done = 1'b0;
    endcase
  end
  assign done_o = grant_q & {NumChannels{done}};

  // Without a free number the search is repeated; lines of other channels may be found meanwhile.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else if (done) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:   if (start) state_q <= StSearch;
        StSearch: if (missing) state_q <= number_free ? StRecord : StIdle;
        StRecord: state_q <= StInsert;
        default:  ;
      endcase
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) overflows_q <= '0;
    else begin
      for (int unsigned p = 0; p < Pools; p++) begin
        if (inserted_i && overflow_q && pool_number_q == pool_number_t'(p)) overflows_q[p] <= 1'b1;
        if (epoch[p] || map_i[p]) overflows_q[p] <= 1'b0;
      end
    end
  end

  assign busy_o = state_q != StIdle || set_busy;

  `NS_ASSERT(inserted_on_request, !inserted_i || insert_valid_o)
  `NS_ASSERT(no_command_decoded, state_q == StIdle || commands_free_i)

endmodule
