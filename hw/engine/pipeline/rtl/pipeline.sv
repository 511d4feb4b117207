// Pipeline: runs the kernels of dict_decode, sorter and row_shuffle one after another, as a list of commands in the device's memories says,
// without the host between them.
//
// One list at a time, of its registers, its command page or an NVMe I/O command in turn (engine_job_mux). pipeline_list goes through the list;
// one kernel works at a time, so all of them share the masters to the memories.
`include "ns_axil_regs.svh"

module pipeline
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import pipeline_pkg::*;
#(
  /// Memory channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next one's turn, a power of two.
  parameter int unsigned Granule = 4096,
  /// Bytes of the media.
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  /// Channels of the local memory, a power of two; 0: there is none.
  parameter int unsigned LocalChannels = 0,
  /// Bytes that go to one of them before the next one's turn, a power of two.
  parameter int unsigned LocalGranule = 4096,
  /// Its first address, and its bytes.
  parameter longint unsigned LocalBase = 0,
  parameter longint unsigned LocalBytes = 0,
  /// Bits of the longest key: 32, 64 or 128.
  parameter int unsigned KeyBits = 128,
  /// Runs that are merged at a time, a power of two.
  parameter int unsigned Leaves = 64,
  /// Rows of 8 records in a run that the cascade makes, a power of two.
  parameter int unsigned RunRows = 256,
  /// Bytes of the longest dictionary, a power of two, 1 KiB to 512 KiB.
  parameter int unsigned DictBytes = 512 * 1024,
  localparam int unsigned LocalPorts = (LocalChannels == 0) ? 1 : LocalChannels
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic     busy_o,
  /// Registers.
  ns_axil_if.slave s_axil,
  /// Memory, one master a channel; addresses are local to the channel.
  ns_axi_if.master m_mem[NumChannels],
  /// The same of the local memory.
  ns_axi_if.master m_local[LocalPorts],
  /// NVMe I/O commands: 0 runs a list.
  nvme_engine_if.engine s_nvme,
  /// Commands of its page: the arguments of the registers.
  command_page_if.engine s_page,
  /// Interrupt request: rises when a job ends.
  output logic     irq_o
);

  // Registers. What lies beyond them is a word without one.
  pipeline_regs_pkg::pipeline_regs__in_t hwif_in;
  pipeline_regs_pkg::pipeline_regs__out_t hwif_out;
  logic open;

  pipeline_regs u_regs (
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

  // Two masters to each channel, in the bits of an ID that an engine has.
  localparam int unsigned IdBits = (NumChannels > 1) ? 4 : 3;

  logic [4:0][63:0] args, cmd_args;  // list, count, base, bytes, kind
  result_t result;
  logic [5:0] reported;
  logic [63:0] reported_done;
  logic [4:0] entries;
  logic front_busy, list_busy, start, malformed, stop, done;
  engine_cmd_t cmd;
  status_t refused, status;

  // ---------------------------------------------------------------- NVMe commands

  // CDW10: the list in the namespace, in units of 8 blocks; CDW13: entries; CDW14: kind. Entries stay in the namespace.
  logic [63:0] namespace_bytes, place;
  logic [64:0] cmd_end_q;

  assign namespace_bytes = cmd.ns_blocks << 9;
  assign place = 64'(cmd.sqe[351:320]) << 12;
  always_ff @(posedge clk_i)
    cmd_end_q <= 65'(place) + ((65'(cmd.sqe[447:416]) << 6) << cmd.sqe[448]);

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
    (cmd.ns_base << 9) + place
  };

  engine_job_mux #(
    .NumArgs   (5),
    .NumResults(6),
    .StoppedBit(1)
  ) u_front (
    .clk_i,
    .rst_ni,
    .busy_o         (front_busy),
    .start_i        (hwif_out.control.start.value),
    .stop_i         (hwif_out.control.stop.value),
    .interrupt_i    (hwif_out.interrupt.enable.value && hwif_out.sources.done.value && hwif_out.status.done.value),
    .args_i         ({
      hwif_out.kind_hi.value.value,
      hwif_out.kind_lo.reserved.value,
      hwif_out.kind_lo.report.value,
      hwif_out.bytes_hi.value.value,
      hwif_out.bytes_lo.value.value,
      hwif_out.base_hi.value.value,
      hwif_out.base_lo.value.value,
      hwif_out.count_hi.value.value,
      hwif_out.count_lo.value.value,
      hwif_out.list_hi.value.value,
      hwif_out.list_lo.value.value
    }),
    .irq_o,
    .idle_o         (hwif_in.control.idle.next),
    .ended_o        (hwif_in.status.done.hwset),
    .result_o       (reported),
    .outputs_o      (reported_done),
    .s_nvme,
    .cmd_o          (cmd),
    .refused_i      (refused),
    .cmd_args_i     (cmd_args),
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

  assign hwif_in.result.read_error.next = reported[0];
  assign hwif_in.result.stopped.next = reported[1];
  assign hwif_in.result.invalid.next = reported[2];
  assign hwif_in.result.write_error.next = reported[3];
  assign hwif_in.result.bad_entry.next = reported[4];
  assign hwif_in.result.bad_data.next = reported[5];
  assign hwif_in.done_lo.value.next = reported_done[31:0];
  assign hwif_in.done_hi.value.next = reported_done[63:32];

  // ---------------------------------------------------------------- the list

  engine_cmd_t entry;
  logic [Kernels-1:0] turn, kernel_start, kernel_done, kernel_busy;
  logic kernel_stop, list_memory;
  status_t [Kernels-1:0] kernel_refused;
  kernel_end_t [Kernels-1:0] kernel_end;
  logic [Kernels-1:0][35:0] kernel_progress;
  logic [35:0] items;
  logic [3:0] present;
  logic [MostEntries-1:0][31:0] cycles;

  // Of the list, decoder, sorter, and of row_shuffle its own list.
  ns_axi_if shared[Kernels+1] ();
  ns_axi_if master[2] ();

  pipeline_list u_list (
    .clk_i,
    .rst_ni,
    .busy_o     (list_busy),
    .start_i    (start),
    .args_i     (args),
    .malformed_i(malformed),
    .stop_i     (stop),
    .done_o     (done),
    .result_o   (result),
    .entries_o  (entries),
    .status_o   (status),
    .entry_o    (present),
    .cycles_o   (cycles),
    .cmd_o      (entry),
    .turn_o     (turn),
    .refused_i  (kernel_refused),
    .start_o    (kernel_start),
    .stop_o     (kernel_stop),
    .done_i     (kernel_done),
    .end_i      (kernel_end),
    .memory_o   (list_memory),
    .m_axi      (shared[Kernels])
  );

  pipeline_turn #(
    .N(Kernels + 1)
  ) u_turn (
    .turn_i({list_memory, list_memory ? Kernels'(0) : turn}),
    .s_axi (shared),
    .m_axi (master[0])
  );

  always_comb begin
    items = '0;
    for (int unsigned k = 0; k < Kernels; k++) if (turn[k]) items |= kernel_progress[k];
  end
  assign hwif_in.progress.entry.next = present;
  assign hwif_in.progress.running.next = list_busy;
  assign hwif_in.items_lo.value.next = items[31:0];
  assign hwif_in.items_hi.value.next = 32'(items[35:32]);
  for (genvar n = 0; n < MostEntries; n++) begin : gen_cycles
    assign hwif_in.cycles[n].value.next = cycles[n];
  end

  // ---------------------------------------------------------------- kernels

  logic [6:0][63:0] dict_decode_args;
  logic [6:0] dict_decode_result;
  logic [63:0] dict_decode_value;
  status_t dict_decode_status;
  dict_decode_kernel #(
    .IdBits   (IdBits),
    .DictBytes(DictBytes)
  ) u_dict_decode (
    .clk_i,
    .rst_ni,
    .busy_o     (kernel_busy[Decode]),
    .cmd_i      (entry),
    .refused_o  (kernel_refused[Decode]),
    .cmd_args_o (dict_decode_args),
    .start_i    (kernel_start[Decode]),
    .args_i     (dict_decode_args),
    .malformed_i(1'b0),
    .stop_i     (kernel_stop && turn[Decode]),
    .done_o     (kernel_done[Decode]),
    .result_o   (dict_decode_result),
    .value_o    (dict_decode_value),
    .status_o   (dict_decode_status),
    .progress_o (kernel_progress[Decode]),
    .m_axi      (shared[Decode])
  );
  assign kernel_end[Decode] = '{
          bad_data: dict_decode_result[6:4] != '0,
          write_error: dict_decode_result[3],
          invalid: dict_decode_result[2],
          stopped: dict_decode_result[1],
          read_error: dict_decode_result[0],
          status: dict_decode_status,
          value: dict_decode_value[31:0]
      };

  logic [4:0][63:0] sorter_args;
  logic [3:0] sorter_result;
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
    .cmd_i      (entry),
    .refused_o  (kernel_refused[Sort]),
    .cmd_args_o (sorter_args),
    .start_i    (kernel_start[Sort]),
    .args_i     (sorter_args),
    .malformed_i(1'b0),
    .stop_i     (kernel_stop && turn[Sort]),
    .done_o     (kernel_done[Sort]),
    .result_o   (sorter_result),
    .value_o    (sorter_value),
    .status_o   (sorter_status),
    .progress_o (kernel_progress[Sort]),
    .m_axi      (shared[Sort])
  );
  assign kernel_end[Sort] = '{
          bad_data: 1'b0,
          write_error: sorter_result[3],
          invalid: sorter_result[2],
          stopped: sorter_result[1],
          read_error: sorter_result[0],
          status: sorter_status,
          value: sorter_value[31:0]
      };

  logic [6:0][63:0] row_shuffle_args;
  logic [4:0] row_shuffle_result;
  logic [63:0] row_shuffle_value;
  status_t row_shuffle_status;
  row_shuffle_kernel #(
    .IdBits(IdBits)
  ) u_row_shuffle (
    .clk_i,
    .rst_ni,
    .busy_o     (kernel_busy[Shuffle]),
    .cmd_i      (entry),
    .refused_o  (kernel_refused[Shuffle]),
    .cmd_args_o (row_shuffle_args),
    .start_i    (kernel_start[Shuffle]),
    .args_i     (row_shuffle_args),
    .malformed_i(1'b0),
    .stop_i     (kernel_stop && turn[Shuffle]),
    .done_o     (kernel_done[Shuffle]),
    .result_o   (row_shuffle_result),
    .value_o    (row_shuffle_value),
    .status_o   (row_shuffle_status),
    .progress_o (kernel_progress[Shuffle]),
    .m_list     (shared[Shuffle]),
    .m_rows     (master[1])
  );
  assign kernel_end[Shuffle] = '{
          bad_data: row_shuffle_result[4:4] != '0,
          write_error: row_shuffle_result[3],
          invalid: row_shuffle_result[2],
          stopped: row_shuffle_result[1],
          read_error: row_shuffle_result[0],
          status: row_shuffle_status,
          value: row_shuffle_value[31:0]
      };

  assign busy_o = open || front_busy || list_busy || kernel_busy != '0;

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
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12], cmd, dict_decode_value[63:32], sorter_value[63:32], row_shuffle_value[63:32]};

endmodule
