// SPDX-License-Identifier: Apache-2.0

// Gather engine: copies rows of a table in the order of an index list.
//
// engine_job_mux arbitrates jobs of registers, command page and NVMe I/O commands, one at a time.
// row_shuffle_kernel executes them.

module row_shuffle
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import row_shuffle_job_pkg::*;
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
  /// NVMe I/O commands. Command 0 gathers rows.
  nvme_engine_if.engine s_nvme,
  /// Commands of the command page. Their arguments are those of the registers.
  command_page_if.engine s_page,
  /// Interrupt request. Rises when a job ends.
  output logic     irq_o
);

  // Two masters share the ID bits of an engine at each channel.
  localparam int unsigned IdBits = (NumChannels > 1) ? 4 : 3;

  logic [NumArgs-1:0][63:0] args, cmd_args;  // index, src, dst, count, row_bytes, rows, kind
  result_t result;
  logic [63:0] value;
  logic front_busy, kernel_busy, start, malformed, stop, done;
  engine_cmd_t cmd;
  status_t refused, status;

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
    .job_stop_o     (stop),
    .job_done_i     (done),
    .job_result_i   (result),
    .job_outputs_i  (value),
    .job_status_i   (status)
  );

  ns_axi_if master[2] ();

  row_shuffle_kernel #(
    .IdBits(IdBits)
  ) u_kernel (
    .clk_i,
    .rst_ni,
    .busy_o     (kernel_busy),
    .cmd_i      (cmd),
    .refused_o  (refused),
    .cmd_args_o (cmd_args),
    .start_i    (start),
    .args_i     (args),
    .malformed_i(malformed),
    .stop_i     (stop),
    .done_o     (done),
    .result_o   (result),
    .value_o    (value),
    .status_o   (status),
    .progress_o (),
    .m_list(master[0]),
    .m_rows(master[1])
  );

  assign busy_o = front_busy || kernel_busy;

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

endmodule
