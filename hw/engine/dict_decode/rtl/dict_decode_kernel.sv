// SPDX-License-Identifier: Apache-2.0

// Checks and executes one decode job, and translates NVMe commands into job arguments.
//
// engine_job_mux starts the jobs, engine_memory connects the memories. dict_decode_core decodes the
// jobs that pass the checks.
`include "ns_assert.svh"

module dict_decode_kernel
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import nvme_pkg::*;
  import dict_decode_job_pkg::*;
  import engine_pkg::*;
  import dict_decode_pkg::*;
#(
  /// ID bits of the master, 3 or 4.
  parameter int unsigned IdBits = 4,
  /// Size of the longest dictionary in bytes, a power of two from 1 KiB to 512 KiB.
  parameter int unsigned DictBytes = 512 * 1024
) (
  input  logic clk_i,
  input  logic rst_ni,
  /// The block is not idle. Driven by registers.
  output logic busy_o,

  /// NVMe command. Stable until it has been completed.
  input  engine_cmd_t cmd_i,
  /// Status of the command's checks, ScSuccess if it is valid. Settled after two cycles.
  output status_t refused_o,
  /// Job arguments of the command. Settled after two cycles.
  output logic [NumArgs-1:0][63:0] cmd_args_o,

  /// Starts a job, for one cycle.
  input  logic start_i,
  /// Arguments of the job, stable until it ends: dict, entries, src, bytes, dst, count, kind.
  input  logic [NumArgs-1:0][63:0] args_i,
  /// The job is malformed and ends as invalid.
  input  logic malformed_i,
  /// Ends the job early.
  input  logic stop_i,
  /// The job ends in this cycle. The outputs up to `status_o` are valid with it.
  output logic done_o,
  /// Return value.
  output result_t result_o,
  /// Number of decoded values.
  output logic [63:0] value_o,
  /// Status of an NVMe command that was not stopped.
  output status_t status_o,
  /// Progress of the job: number of decoded values.
  output logic [35:0] progress_o,

  /// Memory port. Addresses are those of the PM window.
  ns_axi_if.master m_axi
);

  localparam logic [63:0] MaxValues = 64'd1 << 31;
  localparam logic [63:0] MaxEntries = 64'd1 << KeyBits;
  localparam logic [63:0] MaxBytes = 64'd1 << (SizeBits - 1);

  typedef enum logic [2:0] {
    StIdle,
    StSize,   // registers the ends of the ranges
    StCheck,
    StBegin,
    StDecode,
    StDone
  } state_e;

  // Indexes of the three memory ranges.
  localparam int unsigned Ranges = 3;
  localparam int unsigned Dict = 0;
  localparam int unsigned Source = 1;
  localparam int unsigned Target = 2;

  state_e state_q;
  result_t result_q;
  logic [63:0] position;
  logic stop, core_start, core_done, core_stopped, core_write_error, core_busy;
  end_e core_end;
  logic [31:0] core_position;
  logic core_started_q;

  // ---------------------------------------------------------------- NVMe commands

  // CDW10, CDW11, CDW12: offsets of dictionary, source and target in the namespace, in units of 8
  // blocks. CDW13: number of values. CDW14: source bytes. CDW15: 15:0 dictionary values less one,
  // 21:16 bits of a key, 25:24 log2 of a value's bytes, 26 plain, 27 packed.
  localparam int unsigned UnitBits = 12;  // log2 of a unit's bytes
  logic [Ranges-1:0][63:0] offsets;  // in the namespace
  logic [63:0] namespace_bytes, base;
  logic [Ranges-1:0][64:0] cmd_sizes, cmd_ends_q;
  logic [31:0] cdw15;
  logic cmd_reserved;

  assign namespace_bytes = cmd_i.ns_blocks << 9;
  assign base = cmd_i.ns_base << 9;
  assign cdw15 = cmd_i.sqe[511:480];
  assign cmd_reserved = cdw15[31:28] != '0 || cdw15[23:22] != '0;
  for (genvar n = 0; n < Ranges; n++) begin : gen_offset
    assign offsets[n] = 64'(cmd_i.sqe[320+32*n+:32]) << UnitBits;
  end
  assign cmd_sizes = sizes(
      cmd_args_o[1], cmd_args_o[3], cmd_args_o[5], cmd_args_o[6][9:8], cmd_args_o[6][16]
  );
  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Ranges; n++) cmd_ends_q[n] <= 65'(offsets[n]) + cmd_sizes[n];
  end

  always_comb begin
    refused_o = generic_status(ScSuccess);
    for (int unsigned n = 0; n < Ranges; n++) begin
      if (cmd_sizes[n] != '0 && cmd_ends_q[n] > 65'(namespace_bytes))
        refused_o = generic_status(ScLbaOutOfRange);
    end
    if (cmd_reserved) refused_o = generic_status(ScInvalidField);
    status_o = generic_status(ScSuccess);
    if (result_q.invalid) status_o = generic_status(ScInvalidField);
    else if (result_q.write_error) status_o = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status_o = data_status(DataReadError, 1'b0);
    else if (result_q.bad_key || result_q.truncated || result_q.overrun)
      status_o = generic_status(ScInvalidField);
  end

  assign cmd_args_o = {
    {46'd0, cdw15[27], cdw15[26], 6'd0, cdw15[25:24], 2'd0, cdw15[21:16]},
    64'(cmd_i.sqe[447:416]),
    base + offsets[Target],
    64'(cmd_i.sqe[479:448]),
    base + offsets[Source],
    64'(cdw15[15:0]) + 64'd1,
    base + offsets[Dict]
  };

  // ---------------------------------------------------------------- job

  // Sizes of dictionary, source and target in bytes; 0 for an unused range.
  function automatic logic [Ranges-1:0][64:0] sizes(logic [63:0] entries, logic [63:0] bytes,
                                                    logic [63:0] count, logic [1:0] size_log,
                                                    logic plain);
    sizes[Dict]   = plain ? '0 : 65'(entries) << size_log;
    sizes[Source] = 65'(bytes);
    sizes[Target] = 65'(count) << size_log;
  endfunction

  logic [Ranges-1:0][63:0] firsts;
  logic [Ranges-1:0][64:0] size, ends_q;
  logic unsupported, bad_ranges, unsupported_q, bad_ranges_q, invalid;
  kind_t kind;

  assign kind = '{fixed: args_i[6][17], plain: args_i[6][16], size: args_i[6][9:8], width: args_i[6][5:0]};
  assign size = sizes(args_i[1], args_i[3], args_i[5], kind.size, kind.plain);
  assign firsts = {args_i[4], args_i[2], args_i[0]};
  assign invalid = unsupported_q || bad_ranges_q;
  assign stop = stop_i && state_q != StIdle && state_q != StDone;

  always_comb begin
    unsupported = malformed_i || args_i[3] > MaxBytes || args_i[5] == '0 || args_i[5] > MaxValues || args_i[6][63:18] != '0 ||
        args_i[6][15:10] != '0 || args_i[6][7:6] != '0 || kind.width > 6'd32 || (kind.fixed && kind.plain);
    if (kind.fixed && kind.width != 6'd8 && kind.width != 6'd16 && kind.width != 6'd32)
      unsupported = 1'b1;
    if (!kind.plain && (args_i[1] == '0 || args_i[1] > MaxEntries || size[Dict] > 65'(DictBytes)))
      unsupported = 1'b1;
    bad_ranges = 1'b0;
    for (int unsigned n = 0; n < Ranges; n++) begin
      if (size[n] != '0) begin
        if (firsts[n][5:0] != '0 || wraps(ends_q[n])) bad_ranges = 1'b1;
        for (int unsigned m = 0; m < n; m++) begin
          if (size[m] != '0 && overlap(firsts[n], ends_q[n], firsts[m], ends_q[m]))
            bad_ranges = 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Ranges; n++) ends_q[n] <= 65'(firsts[n]) + size[n];
    unsupported_q <= unsupported;
    bad_ranges_q <= bad_ranges;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StSize;
        StSize:  state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= core_start ? StDecode : StDone;
        StDecode:  if (core_done) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
    end
  end

  assign core_start = state_q == StBegin && !invalid && !result_q.stopped;
  assign done_o = state_q == StDone;
  assign busy_o = state_q != StIdle || core_busy;
  assign result_o = result_q;
  assign value_o = position;
  assign progress_o = core_started_q ? 36'(core_position) : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q       <= '0;
      position       <= '0;
      core_started_q <= 1'b0;
    end else if (start_i) begin
      result_q       <= '0;
      position       <= '0;
      core_started_q <= 1'b0;
    end else begin
      if (core_start) core_started_q <= 1'b1;
      if (stop && (state_q == StSize || state_q == StCheck)) result_q.stopped <= 1'b1;
      if (state_q == StBegin && invalid) result_q <= '{invalid: 1'b1, default: 1'b0};
      if (core_done) begin
        result_q <= '{
            overrun: core_end == EndOverrun,
            truncated: core_end == EndTruncated,
            bad_key: core_end == EndBadKey,
            write_error: core_write_error,
            invalid: 1'b0,
            stopped: core_stopped,
            read_error: core_end == EndReadError
        };
        position <= 64'(core_position);
      end
    end
  end

  dict_decode_core #(
    .IdBits   (IdBits),
    .DictBytes(DictBytes)
  ) u_core (
    .clk_i,
    .rst_ni,
    .busy_o       (core_busy),
    .start_i      (core_start),
    .dict_i       (args_i[0]),
    .entries_i    (args_i[1][KeyBits:0]),
    .src_i        (args_i[2]),
    .bytes_i      (args_i[3][SizeBits-1:0]),
    .dst_i        (args_i[4]),
    .count_i      (args_i[5][31:0]),
    .kind_i       (kind),
    .stop_i       (stop && state_q == StDecode),
    .done_o       (core_done),
    .end_o        (core_end),
    .stopped_o    (core_stopped),
    .write_error_o(core_write_error),
    .position_o   (core_position),
    .m_axi
  );

  logic unused;
  assign unused = ^cmd_i;

  `NS_ASSERT(core_idle_outside_job,
             state_q == StDecode || !core_busy || state_q == StDone || state_q == StIdle)

endmodule
