// SPDX-License-Identifier: Apache-2.0

// Dictionary decoder: decodes a dictionary-encoded column in the device's memories into plain
// values.
//
// engine_job_mux arbitrates jobs of registers, command page and NVMe I/O commands, one at a time.
// dict_decode_kernel executes them.
`include "ns_axil_regs.svh"

module dict_decode
  import ns_axi_pkg::*;
  import nvme_pkg::*;
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
  /// NVMe I/O commands. Command 0 decodes a column.
  nvme_engine_if.engine s_nvme,
  /// Commands of the command page. Their arguments are those of the registers.
  command_page_if.engine s_page,
  /// Interrupt request. Rises when a job ends.
  output logic     irq_o
);

  // Registers. An address past the last one behaves as a word without a register.
  dict_decode_regs_pkg::dict_decode_regs__in_t hwif_in;
  dict_decode_regs_pkg::dict_decode_regs__out_t hwif_out;
  logic axil_busy;

  dict_decode_regs u_regs (
    .clk   (clk_i),
    .arst_n(rst_ni),
    `NS_AXIL_REGS(s_axil, 12),
    .hwif_in,
    .hwif_out
  );

  ns_axil_outstanding u_open (
    .clk_i,
    .rst_ni,
    .open_o   (axil_busy),
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

  logic [6:0][63:0] args, cmd_args;  // dict, entries, src, bytes, dst, count, kind
  logic [6:0] result, reported;
  logic [63:0] value, reported_value;
  logic front_busy, kernel_busy, start, malformed, stop, done;
  engine_cmd_t cmd;
  status_t refused, status;

  engine_job_mux #(
    .NumArgs   (7),
    .NumResults(7),
    .StoppedBit(1)
  ) u_front (
    .clk_i,
    .rst_ni,
    .busy_o     (front_busy),
    .start_i    (hwif_out.control.start.value),
    .stop_i     (hwif_out.control.stop.value),
    .interrupt_i(hwif_out.interrupt.enable.value && hwif_out.sources.done.value && hwif_out.status.done.value),
    .args_i     ({
      hwif_out.kind_hi.value.value,
      hwif_out.kind_lo.reserved2.value,
      hwif_out.kind_lo.packed_keys.value,
      hwif_out.kind_lo.plain.value,
      hwif_out.kind_lo.reserved1.value,
      hwif_out.kind_lo.size.value,
      hwif_out.kind_lo.reserved0.value,
      hwif_out.kind_lo.width.value,
      hwif_out.count_hi.value.value,
      hwif_out.count_lo.value.value,
      hwif_out.dst_hi.value.value,
      hwif_out.dst_lo.value.value,
      hwif_out.bytes_hi.value.value,
      hwif_out.bytes_lo.value.value,
      hwif_out.src_hi.value.value,
      hwif_out.src_lo.value.value,
      hwif_out.entries_hi.value.value,
      hwif_out.entries_lo.value.value,
      hwif_out.dict_hi.value.value,
      hwif_out.dict_lo.value.value
    }),
    .irq_o,
    .idle_o   (hwif_in.control.idle.next),
    .ended_o  (hwif_in.status.done.hwset),
    .result_o (reported),
    .outputs_o(reported_value),
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

  assign hwif_in.result.read_error.next = reported[0];
  assign hwif_in.result.stopped.next = reported[1];
  assign hwif_in.result.invalid.next = reported[2];
  assign hwif_in.result.write_error.next = reported[3];
  assign hwif_in.result.bad_key.next = reported[4];
  assign hwif_in.result.truncated.next = reported[5];
  assign hwif_in.result.overrun.next = reported[6];
  assign hwif_in.position_lo.value.next = reported_value[31:0];
  assign hwif_in.position_hi.value.next = reported_value[63:32];

  ns_axi_if master[1] ();

  dict_decode_kernel #(
    .DictBytes(DictBytes)
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
    .m_axi(master[0])
  );

  assign busy_o = axil_busy || front_busy || kernel_busy;

  engine_memory #(
    .NumMasters   (1),
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
    .s_axi(master),
    .m_mem,
    .m_local
  );

  logic unused;
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12]};

endmodule
