// SPDX-License-Identifier: Apache-2.0

// Pipeline engine: executes a list of commands for the kernels of dict_decode, sorter and
// row_shuffle, one after another and without the host.
//
// engine_job_mux arbitrates lists of registers, command page and NVMe I/O commands, one at a time.
// pipeline_list steps through the list. One kernel works at a time, so all kernels share the
// masters to the memories.

module pipeline
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import pipeline_job_pkg::*;
  import pipeline_pkg::*;
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
  /// Width of the longest key in bits: 32, 64 or 128.
  parameter int unsigned KeyBits = 128,
  /// Runs merged at a time, a power of two.
  parameter int unsigned Leaves = 64,
  /// Rows in a run that the cascade builds, a power of two. A row is 8 records.
  parameter int unsigned RunRows = 256,
  /// Size of the longest dictionary in bytes, a power of two from 1 KiB to 512 KiB.
  parameter int unsigned DictBytes = 512 * 1024,
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
  /// NVMe I/O commands. Command 0 executes a list.
  nvme_engine_if.engine s_nvme,
  /// Commands of the command page. Their arguments are those of the registers.
  command_page_if.engine s_page,
  /// Interrupt request. Rises when a job ends.
  output logic     irq_o
);

  // Two masters share the ID bits of an engine at each channel.
  localparam int unsigned IdBits = (NumChannels > 1) ? 4 : 3;

  logic [NumArgs-1:0][63:0] args, cmd_args;  // list, count, base, bytes, kind
  result_t result;
  logic [NumWords-1:0][31:0] words;
  logic [4:0] entries;
  logic front_busy, list_busy, start, malformed, stop, done;
  engine_cmd_t cmd;
  status_t refused, status;

  // ---------------------------------------------------------------- NVMe commands

  // CDW10: offset of the list in the namespace, in units of 8 blocks. CDW13: number of entries.
  // CDW14: kind. Entries can only access the namespace.
  logic [63:0] namespace_bytes, list_offset;
  logic [64:0] cmd_end_q;

  assign namespace_bytes = cmd.ns_blocks << 9;
  assign list_offset = 64'(cmd.sqe[351:320]) << 12;
  always_ff @(posedge clk_i)
    cmd_end_q <= 65'(list_offset) + ((65'(cmd.sqe[447:416]) << 6) << cmd.sqe[448]);

  always_comb begin
    refused = generic_status(ScSuccess);
    if (cmd_end_q > 65'(namespace_bytes)) refused = generic_status(ScLbaOutOfRange);
    if (cmd.sqe[415:352] != '0 || cmd.sqe[511:449] != '0) refused = generic_status(ScInvalidField);
  end

  assign cmd_args = {
    64'(cmd.sqe[448]),
    namespace_bytes,
    cmd.ns_base << 9,
    64'(cmd.sqe[447:416]),
    (cmd.ns_base << 9) + list_offset
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
    .words_i    (words),
    .irq_o,
    .s_nvme,
    .cmd_o     (cmd),
    .refused_i (refused),
    .cmd_args_i(cmd_args),
    .s_page,
    .job_start_o    (start),
    .job_args_o     (args),
    .job_malformed_o(malformed),
    .job_stop_o     (stop),
    .job_done_i     (done),
    .job_result_i   (result),
    .job_outputs_i  (64'(entries)),
    .job_status_i   (status)
  );

  // ---------------------------------------------------------------- list

  engine_cmd_t entry_cmd;
  logic [NumKernels-1:0] kernel_select, kernel_start, kernel_done, kernel_busy;
  logic kernel_stop, list_axi_active;
  status_t [NumKernels-1:0] kernel_refused;
  kernel_result_t [NumKernels-1:0] kernel_result;
  logic [NumKernels-1:0][35:0] kernel_progress;
  logic [35:0] items;
  logic [3:0] entry_index;
  logic [MaxEntries-1:0][31:0] cycles;

  // Users of the first master: dict_decode, sorter, the index list of row_shuffle, and
  // pipeline_list.
  ns_axi_if kernel_axi[NumKernels+1] ();
  ns_axi_if master[2] ();

  pipeline_list u_list (
    .clk_i,
    .rst_ni,
    .busy_o      (list_busy),
    .start_i     (start),
    .args_i      (args),
    .malformed_i (malformed),
    .stop_i      (stop),
    .done_o      (done),
    .result_o    (result),
    .entries_o   (entries),
    .status_o    (status),
    .entry_o     (entry_index),
    .cycles_o    (cycles),
    .cmd_o       (entry_cmd),
    .select_o    (kernel_select),
    .refused_i   (kernel_refused),
    .start_o     (kernel_start),
    .stop_o      (kernel_stop),
    .done_i      (kernel_done),
    .result_i    (kernel_result),
    .axi_active_o(list_axi_active),
    .m_axi       (kernel_axi[NumKernels])
  );

  pipeline_axi_mux #(
    .N(NumKernels + 1)
  ) u_mux (
    .select_i({list_axi_active, list_axi_active ? NumKernels'(0) : kernel_select}),
    .s_axi   (kernel_axi),
    .m_axi   (master[0])
  );

  always_comb begin
    items = '0;
    for (int unsigned k = 0; k < NumKernels; k++) if (kernel_select[k]) items |= kernel_progress[k];
    words = '0;
    words[ProgressWord] = {23'd0, list_busy, 4'd0, entry_index};
    {words[ItemsHiWord], words[ItemsLoWord]} = 64'(items);
    words[CyclesWord+:MaxEntries] = cycles;
  end

  // ---------------------------------------------------------------- kernels

  logic [dict_decode_job_pkg::NumArgs-1:0][63:0] dict_decode_args;
  dict_decode_job_pkg::result_t dict_decode_result;
  logic [63:0] dict_decode_value;
  status_t dict_decode_status;
  dict_decode_kernel #(
    .IdBits   (IdBits),
    .DictBytes(DictBytes)
  ) u_dict_decode (
    .clk_i,
    .rst_ni,
    .busy_o     (kernel_busy[Decode]),
    .cmd_i      (entry_cmd),
    .refused_o  (kernel_refused[Decode]),
    .cmd_args_o (dict_decode_args),
    .start_i    (kernel_start[Decode]),
    .args_i     (dict_decode_args),
    .malformed_i(1'b0),
    .stop_i     (kernel_stop && kernel_select[Decode]),
    .done_o     (kernel_done[Decode]),
    .result_o   (dict_decode_result),
    .value_o    (dict_decode_value),
    .status_o   (dict_decode_status),
    .progress_o (kernel_progress[Decode]),
    .m_axi      (kernel_axi[Decode])
  );
  assign kernel_result[Decode] = '{
          bad_data:
          dict_decode_result.bad_key
          ||
          dict_decode_result.truncated
          ||
          dict_decode_result.overrun,
          write_error: dict_decode_result.write_error,
          invalid: dict_decode_result.invalid,
          stopped: dict_decode_result.stopped,
          read_error: dict_decode_result.read_error,
          status: dict_decode_status,
          value: dict_decode_value[31:0]
      };

  logic [sorter_job_pkg::NumArgs-1:0][63:0] sorter_args;
  sorter_job_pkg::result_t sorter_result;
  logic [63:0] sorter_value;
  status_t sorter_status;
  sorter_kernel #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .IdBits     (IdBits),
    .KeyBits    (KeyBits),
    .Leaves     (Leaves),
    .RunRows    (RunRows)
  ) u_sorter (
    .clk_i,
    .rst_ni,
    .busy_o     (kernel_busy[Sort]),
    .cmd_i      (entry_cmd),
    .refused_o  (kernel_refused[Sort]),
    .cmd_args_o (sorter_args),
    .start_i    (kernel_start[Sort]),
    .args_i     (sorter_args),
    .malformed_i(1'b0),
    .stop_i     (kernel_stop && kernel_select[Sort]),
    .done_o     (kernel_done[Sort]),
    .result_o   (sorter_result),
    .value_o    (sorter_value),
    .status_o   (sorter_status),
    .progress_o (kernel_progress[Sort]),
    .m_axi      (kernel_axi[Sort])
  );
  assign kernel_result[Sort] = '{
          bad_data: 1'b0,
          write_error: sorter_result.write_error,
          invalid: sorter_result.invalid,
          stopped: sorter_result.stopped,
          read_error: sorter_result.read_error,
          status: sorter_status,
          value: sorter_value[31:0]
      };

  logic [row_shuffle_job_pkg::NumArgs-1:0][63:0] row_shuffle_args;
  row_shuffle_job_pkg::result_t row_shuffle_result;
  logic [63:0] row_shuffle_value;
  status_t row_shuffle_status;
  row_shuffle_kernel #(
    .IdBits(IdBits)
  ) u_row_shuffle (
    .clk_i,
    .rst_ni,
    .busy_o     (kernel_busy[Shuffle]),
    .cmd_i      (entry_cmd),
    .refused_o  (kernel_refused[Shuffle]),
    .cmd_args_o (row_shuffle_args),
    .start_i    (kernel_start[Shuffle]),
    .args_i     (row_shuffle_args),
    .malformed_i(1'b0),
    .stop_i     (kernel_stop && kernel_select[Shuffle]),
    .done_o     (kernel_done[Shuffle]),
    .result_o   (row_shuffle_result),
    .value_o    (row_shuffle_value),
    .status_o   (row_shuffle_status),
    .progress_o (kernel_progress[Shuffle]),
    .m_list     (kernel_axi[Shuffle]),
    .m_rows     (master[1])
  );
  assign kernel_result[Shuffle] = '{
          bad_data: row_shuffle_result.bad_index,
          write_error: row_shuffle_result.write_error,
          invalid: row_shuffle_result.invalid,
          stopped: row_shuffle_result.stopped,
          read_error: row_shuffle_result.read_error,
          status: row_shuffle_status,
          value: row_shuffle_value[31:0]
      };

  assign busy_o = front_busy || list_busy || kernel_busy != '0;

  engine_memory #(
    .NumMasters   (2),
    .IdBits       (IdBits),
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
    .s_axi(master),
    .m_mem,
    .m_local
  );

  logic unused;
  assign unused = ^{cmd, dict_decode_value[63:32], sorter_value[63:32], row_shuffle_value[63:32]};

endmodule
