// SPDX-License-Identifier: Apache-2.0

// Checks and executes one sort job, and translates NVMe commands into job arguments.
//
// engine_job_mux starts the jobs, engine_memory connects the memories. sorter_core executes the
// jobs that pass the checks.
`include "ns_assert.svh"

module sorter_kernel
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import nvme_pkg::*;
  import sorter_job_pkg::*;
  import engine_pkg::*;
  import sorter_pkg::*;
#(
  /// Channels of the storage, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Granule of the channels in bytes, a power of two.
  parameter int unsigned Granule = 4096,
  /// ID bits of the master, 3 or 4.
  parameter int unsigned IdBits = 4,
  /// Width of the longest key in bits: 32, 64 or 128.
  parameter int unsigned KeyBits = 128,
  /// Runs merged at a time, a power of two.
  parameter int unsigned Leaves = 64,
  /// Rows in a run that the cascade builds, a power of two. A row is 8 records.
  parameter int unsigned RunRows = 256
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
  /// Arguments of the job, stable until it ends: src, dst, tmp, count, kind.
  input  logic [NumArgs-1:0][63:0] args_i,
  /// The job is malformed and ends as invalid.
  input  logic malformed_i,
  /// Ends the job early.
  input  logic stop_i,
  /// The job ends in this cycle. The outputs up to `status_o` are valid with it.
  output logic done_o,
  /// Return value.
  output result_t result_o,
  /// Number of passes.
  output logic [63:0] value_o,
  /// Status of an NVMe command that was not stopped.
  output status_t status_o,
  /// Progress of the job: records merged in all passes.
  output logic [35:0] progress_o,

  /// Memory port. Addresses are those of the PM window.
  ns_axi_if.master m_axi
);

  localparam logic [63:0] MaxKeys = 64'd1 << 31;

  typedef enum logic [2:0] {
    StIdle,
    StSize,   // registers the ends of the ranges
    StCheck,
    StBegin,
    StSort,
    StDone
  } state_e;

  state_e state_q;
  result_t result_q;
  logic [63:0] passes_q;
  logic stop, core_start, core_done, core_stopped, core_busy;
  dma_done_t core_errors;
  logic [3:0] core_passes;
  logic [35:0] core_progress;
  logic core_started_q;

  // ---------------------------------------------------------------- NVMe commands

  // CDW10, CDW11, CDW12: offsets of source, target and scratch in the namespace, in units of 8
  // blocks. CDW13: number of keys. CDW14: kind. CDW15: 0.
  localparam int unsigned UnitBits = 12;  // log2 of a unit's bytes
  logic [2:0][63:0] offsets;  // in the namespace
  logic [63:0] namespace_bytes, base;
  logic [2:0][64:0] cmd_sizes, cmd_ends_q;
  logic cmd_reserved;

  assign namespace_bytes = cmd_i.ns_blocks << 9;
  assign base = cmd_i.ns_base << 9;
  assign cmd_reserved = cmd_i.sqe[511:455] != '0;
  for (genvar n = 0; n < 3; n++) begin : gen_offset
    assign offsets[n] = 64'(cmd_i.sqe[320+32*n+:32]) << UnitBits;
  end
  assign cmd_sizes = sizes(
      64'(cmd_i.sqe[447:416]), width_e'(cmd_i.sqe[449:448]), cmd_i.sqe[453], cmd_i.sqe[454]
  );
  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < 3; n++) cmd_ends_q[n] <= 65'(offsets[n]) + cmd_sizes[n];
  end

  always_comb begin
    refused_o = generic_status(ScSuccess);
    for (int unsigned n = 0; n < 3; n++) begin
      if (cmd_sizes[n] != '0 && cmd_ends_q[n] > 65'(namespace_bytes))
        refused_o = generic_status(ScLbaOutOfRange);
    end
    if (cmd_reserved) refused_o = generic_status(ScInvalidField);
    status_o = generic_status(ScSuccess);
    if (result_q.invalid) status_o = generic_status(ScInvalidField);
    else if (result_q.write_error) status_o = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status_o = data_status(DataReadError, 1'b0);
  end

  assign cmd_args_o = {
    64'(cmd_i.sqe[454:448]),
    64'(cmd_i.sqe[447:416]),
    base + offsets[2],
    base + offsets[1],
    base + offsets[0]
  };

  // ---------------------------------------------------------------- job

  // Sizes of source, target and scratch in bytes. With three or more passes the target also holds
  // intermediate records. A single pass uses no scratch.
  function automatic logic [2:0][64:0] sizes(logic [63:0] count, width_e width, logic indexes,
                                             logic pairs);
    logic [64:0] records;
    logic one_pass, two_passes;
    records    = 65'(count) << (4'd3 + 4'(width));
    one_pass   = count <= 64'(8 * Leaves * RunRows);
    two_passes = count <= (pairs ? 64'(8 * 2 * Leaves * RunRows) : 64'(8 * Leaves * Leaves * RunRows));
    sizes[0]   = 65'(count) << (4'd2 + 4'(width));
    sizes[1]   = (indexes && two_passes) ? 65'(count) << 2 : records;
    sizes[2]   = one_pass ? '0 : records;
  endfunction

  logic [2:0][64:0] size, ends_q;
  logic scratch;
  logic unsupported_q, bad_ranges_q, invalid;
  kind_t kind;

  assign kind = '{descending: args_i[4][4], order: order_e'(args_i[4][3:2]), width: width_e'(args_i[4][1:0])};
  assign size = sizes(args_i[3], kind.width, args_i[4][5], args_i[4][6]);
  assign invalid = unsupported_q || bad_ranges_q;
  assign stop = stop_i && state_q != StIdle && state_q != StDone;
  assign scratch = size[2] != '0;

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < 3; n++) ends_q[n] <= 65'(args_i[n]) + size[n];
    unsupported_q <= malformed_i || args_i[3] == '0 || args_i[3] > MaxKeys || args_i[4][63:7] != '0 || args_i[4][3:2] == 2'd3 ||
        (32'd32 << args_i[4][1:0]) > KeyBits || args_i[0][5:0] != '0 || args_i[1][5:0] != '0 || (scratch && args_i[2][5:0] != '0);
    bad_ranges_q <= wraps(ends_q[0]) || wraps(ends_q[1]) || (scratch && wraps(ends_q[2])) ||
        overlap(args_i[0], ends_q[0], args_i[1], ends_q[1]) ||
        (scratch && (overlap(args_i[0], ends_q[0], args_i[2], ends_q[2]) || overlap(args_i[1], ends_q[1], args_i[2], ends_q[2])));
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StSize;
        StSize:  state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= core_start ? StSort : StDone;
        StSort:  if (core_done) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
    end
  end

  assign core_start = state_q == StBegin && !invalid && !result_q.stopped;
  assign done_o = state_q == StDone;
  assign busy_o = state_q != StIdle || core_busy;
  assign result_o = result_q;
  assign value_o = passes_q;
  assign progress_o = core_started_q ? core_progress : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q       <= '0;
      passes_q       <= '0;
      core_started_q <= 1'b0;
    end else if (start_i) begin
      result_q       <= '0;
      passes_q       <= '0;
      core_started_q <= 1'b0;
    end else begin
      if (core_start) core_started_q <= 1'b1;
      if (stop && (state_q == StSize || state_q == StCheck)) result_q.stopped <= 1'b1;
      if (state_q == StBegin && invalid) result_q <= '{invalid: 1'b1, default: 1'b0};
      if (core_done) begin
        result_q <= '{
            write_error: core_errors.write_error,
            invalid: 1'b0,
            stopped: core_stopped,
            read_error: core_errors.read_error
        };
        passes_q <= core_stopped ? '0 : 64'(core_passes);
      end
    end
  end

  sorter_core #(
    .IdBits     (IdBits),
    .KeyBits    (KeyBits),
    .Leaves     (Leaves),
    .RunRows    (RunRows),
    .NumChannels(NumChannels),
    .Granule    (Granule)
  ) u_core (
    .clk_i,
    .rst_ni,
    .busy_o   (core_busy),
    .start_i  (core_start),
    .src_i    (args_i[0]),
    .dst_i    (args_i[1]),
    .tmp_i    (args_i[2]),
    .count_i  (args_i[3][31:0]),
    .kind_i   (kind),
    .indexes_i(args_i[4][5]),
    .pairs_i  (args_i[4][6]),
    .stop_i   (stop && state_q == StSort),
    .done_o   (core_done),
    .stopped_o(core_stopped),
    .errors_o (core_errors),
    .passes_o (core_passes),
    .progress_o(core_progress),
    .m_axi
  );

  logic unused;
  assign unused = ^cmd_i;

  `NS_ASSERT(core_idle_outside_job,
             state_q == StSort || !core_busy || state_q == StDone || state_q == StIdle)

endmodule
