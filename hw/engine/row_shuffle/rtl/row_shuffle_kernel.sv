// SPDX-License-Identifier: Apache-2.0

// Checks and executes one gather job, and translates NVMe commands into job arguments.
//
// engine_job_mux starts the jobs, engine_memory connects the memories. row_shuffle_core executes
// the jobs that pass the checks.
`include "ns_assert.svh"

module row_shuffle_kernel
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import nvme_pkg::*;
  import row_shuffle_job_pkg::*;
  import engine_pkg::*;
#(
  /// ID bits of the masters, 3 or 4.
  parameter int unsigned IdBits = 4
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
  /// Arguments of the job, stable until it ends: index, src, dst, count, row_bytes, rows, kind.
  input  logic [NumArgs-1:0][63:0] args_i,
  /// The job is malformed and ends as invalid.
  input  logic malformed_i,
  /// Ends the job early.
  input  logic stop_i,
  /// The job ends in this cycle. The outputs up to `status_o` are valid with it.
  output logic done_o,
  /// Return value.
  output result_t result_o,
  /// Number of rows whose copy has begun.
  output logic [63:0] value_o,
  /// Status of an NVMe command that was not stopped.
  output status_t status_o,
  /// Progress of the job: number of rows whose copy has begun.
  output logic [35:0] progress_o,

  /// Memory ports for the list and for the rows. Addresses are those of the PM window.
  ns_axi_if.master m_list,
  ns_axi_if.master m_rows
);

  localparam logic [63:0] MaxIndexes = 64'd1 << 31;
  localparam logic [63:0] MaxRowBytes = 64'd65536;

  typedef enum logic [2:0] {
    StIdle,
    StSize,   // registers the sizes of the ranges
    StEnds,   // registers the ends of the ranges
    StCheck,  // registers the checks
    StBegin,
    StRun,
    StDone
  } state_e;

  state_e state_q;
  result_t result_q;
  logic [63:0] position;
  logic stop, core_start, core_done, core_stopped, core_bad_index, core_busy;
  dma_done_t core_errors;
  logic [31:0] core_position;
  logic core_started_q;

  // ---------------------------------------------------------------- NVMe commands

  // CDW10, CDW11, CDW12: offsets of list, table and target in the namespace, in units of 8 blocks.
  // CDW13: number of indexes. CDW14: rows of the table. CDW15: bytes of a row; from bit 24, the
  // kind.
  localparam int unsigned UnitBits = 12;  // log2 of a unit's bytes
  logic [2:0][63:0] offsets;  // in the namespace
  logic [63:0] namespace_bytes, base;
  logic [2:0][49:0] cmd_sizes_q;
  logic [31:0] cmd_count, cmd_rows;
  logic [16:0] cmd_row_bytes;
  logic [1:0] cmd_records;
  logic cmd_reserved;

  assign namespace_bytes = cmd_i.ns_blocks << 9;
  assign base = cmd_i.ns_base << 9;
  assign cmd_count = cmd_i.sqe[447:416];
  assign cmd_rows = cmd_i.sqe[479:448];
  assign cmd_row_bytes = cmd_i.sqe[496:480];
  assign cmd_records = cmd_i.sqe[505:504];
  assign cmd_reserved = cmd_i.sqe[503:497] != '0 || cmd_i.sqe[511:506] != '0;
  for (genvar n = 0; n < 3; n++) begin : gen_offset
    assign offsets[n] = 64'(cmd_i.sqe[320+32*n+:32]) << UnitBits;
  end
  always_ff @(posedge clk_i) cmd_sizes_q <= sizes(cmd_count, cmd_rows, cmd_row_bytes, cmd_records);

  always_comb begin
    refused_o = generic_status(ScSuccess);
    for (int unsigned n = 0; n < 3; n++) begin
      if (offsets[n] + 64'(cmd_sizes_q[n]) > namespace_bytes)
        refused_o = generic_status(ScLbaOutOfRange);
    end
    if (cmd_reserved) refused_o = generic_status(ScInvalidField);
    status_o = generic_status(ScSuccess);
    if (result_q.invalid || result_q.bad_index) status_o = generic_status(ScInvalidField);
    else if (result_q.write_error) status_o = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status_o = data_status(DataReadError, 1'b0);
  end

  assign cmd_args_o = {
    64'(cmd_records),
    64'(cmd_rows),
    64'(cmd_row_bytes),
    64'(cmd_count),
    base + offsets[2],
    base + offsets[1],
    base + offsets[0]
  };

  // ---------------------------------------------------------------- job

  // Sizes of list, table and target in bytes.
  function automatic logic [2:0][49:0] sizes(logic [31:0] count, logic [31:0] rows,
                                             logic [16:0] row_bytes, logic [1:0] records);
    sizes[0] = (50'(count) << 2) << records;
    sizes[1] = 50'(rows) * 50'(row_bytes);
    sizes[2] = 50'(count) * 50'(row_bytes);
  endfunction

  logic [2:0][49:0] size_q;
  logic [2:0][64:0] ends_q;
  logic unsupported_q, bad_ranges_q, invalid;

  assign invalid = unsupported_q || bad_ranges_q;
  assign stop = stop_i && state_q != StIdle && state_q != StDone;

  always_ff @(posedge clk_i) begin
    size_q <= sizes(args_i[3][31:0], args_i[5][31:0], args_i[4][16:0], args_i[6][1:0]);
    for (int unsigned n = 0; n < 3; n++) ends_q[n] <= 65'(args_i[n]) + 65'(size_q[n]);
    unsupported_q <= malformed_i || args_i[0][5:0] != '0 || args_i[3] == '0 || args_i[3] > MaxIndexes || args_i[4] == '0 ||
        args_i[4] > MaxRowBytes || args_i[5] == '0 || args_i[5][63:32] != '0 || args_i[6][63:2] != '0;
    // List and table are only read, so they can overlap.
    bad_ranges_q <= wraps(ends_q[0]) || wraps(ends_q[1]) || wraps(ends_q[2]) ||
        overlap(args_i[0], ends_q[0], args_i[2], ends_q[2]) || overlap(args_i[1], ends_q[1], args_i[2], ends_q[2]);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StSize;
        StSize:  state_q <= StEnds;
        StEnds:  state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= core_start ? StRun : StDone;
        StRun:  if (core_done) state_q <= StDone;
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
      if (stop && (state_q == StSize || state_q == StEnds || state_q == StCheck))
        result_q.stopped <= 1'b1;
      if (state_q == StBegin && invalid) result_q <= '{invalid: 1'b1, default: 1'b0};
      if (core_done) begin
        result_q <= '{
            bad_index: core_bad_index,
            write_error: core_errors.write_error,
            invalid: 1'b0,
            stopped: core_stopped,
            read_error: core_errors.read_error
        };
        position <= 64'(core_position);
      end
    end
  end

  row_shuffle_core #(
    .IdBits(IdBits)
  ) u_core (
    .clk_i,
    .rst_ni,
    .busy_o     (core_busy),
    .start_i    (core_start),
    .index_i    (args_i[0]),
    .src_i      (args_i[1]),
    .dst_i      (args_i[2]),
    .count_i    (args_i[3][31:0]),
    .row_bytes_i(args_i[4][16:0]),
    .rows_i     (args_i[5][31:0]),
    .records_i  (args_i[6][1:0]),
    .stop_i     (stop && state_q == StRun),
    .done_o     (core_done),
    .stopped_o  (core_stopped),
    .bad_index_o(core_bad_index),
    .errors_o   (core_errors),
    .position_o (core_position),
    .m_list     (m_list),
    .m_rows     (m_rows)
  );

  logic unused;
  assign unused = ^cmd_i;

  `NS_ASSERT(core_idle_outside_job,
             state_q == StRun || !core_busy || state_q == StDone || state_q == StIdle)

endmodule
