// SPDX-License-Identifier: Apache-2.0

// NVMe 1.4 controller without firmware: registers, doorbells, MSI-X, command fetch, decode, admin
// commands, data path and completions, all in hardware.
//
// Assumptions: the host port ends every access (ns_axi_timeout), keeps posted writes in order and
// answers reads with one ID in order. `m_mem` serves addresses from 0 to MediaBytes-1. The clock
// runs while `busy_o` is 1 or an AXI4-Lite channel is valid (see `busy_o`). There is no PCI
// configuration space: MSI-X enable and mask come from outside.
module nvme_ctrl
  import ns_axi_pkg::*;
  import msix_pkg::*;
  import nvme_pkg::*;
  import nvme_ns_pkg::ns_blocks_t;
#(
  /// I/O queue pairs, 1 to 127. There are as many MSI-X vectors, plus one.
  parameter int unsigned NumIoQueues = 16,
  /// Largest I/O queue in entries (CAP.MQES + 1), a power of two, 16 to 65536.
  parameter int unsigned QueueEntries = 1024,
  /// Commands in flight, 8 to 128.
  parameter int unsigned NumSlots = 128,
  /// Submission queue entries being read from the host at a time, 1 to 64.
  parameter int unsigned FetchDepth = 32,
  /// Memory channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes of consecutive media addresses in one channel, a power of two, at least 4096.
  parameter int unsigned Granule = 4096,
  /// PRP walkers per direction.
  parameter int unsigned NumWalkers = 4,
  /// SGL walkers per direction.
  parameter int unsigned NumSglWalkers = 1,
  /// 64-byte beats of media reads that the controller holds or has in flight in each channel: see
  /// nvme_data.
  parameter int unsigned MediaReadBeats = 512,
  /// Reads of the media in flight in each channel.
  parameter int unsigned MediaReads = 32,
  /// Bytes of a write burst to the media.
  parameter int unsigned MediaWriteBytes = 1024,
  /// Write bursts in flight in each channel.
  parameter int unsigned MediaWrites = 32,
  /// Cycles after which a host access without progress ends as an error (ns_axi_timeout at
  /// `m_host`). The first command of a fused pair waits as long for its partner. 25 ms at 250 MHz.
  parameter int unsigned HostTimeout = 6_250_000,
  /// Namespaces, 1 to 16: one after the other on the media, each from a multiple of 4 KiB on.
  parameter int unsigned NumNamespaces = 1,
  /// Sizes of namespaces in blocks of 512 bytes, 64 bits each, that of namespace 1 in the low bits;
  /// 0 is an inactive namespace. A single namespace of size 0 takes the whole media.
  parameter ns_blocks_t NsBlocks = '0,
  /// Bytes of the media, a multiple of 512.
  parameter longint unsigned MediaBytes = 64'h1_0000_0000,
  /// Recommended limit of blocks for a Dataset Management command (DMSL, DMRSL), in at most 255
  /// ranges (DMRL); 0: no recommendation. The memories zero 512 KiB a channel at a time, which is
  /// the time that another access may have to wait. A larger value takes longer.
  parameter int unsigned MaxDeallocate = 131_072,
  /// 1: the controller offers Doorbell Buffer Config (shadow doorbells). 0: the command is unknown,
  /// and doorbells are registers only, without nvme_shadow.
  parameter bit DoorbellBuffer = 1'b1,
  /// 0: all zeros go through the movers, and `fill_*` stay idle.
  parameter bit Fills = 1'b1,
  /// PCI vendor and subsystem vendor ID as in the function's configuration space.
  parameter logic [15:0] VendorId = 16'h4E53,
  /// Clock in kHz: the unit of times that are reported to the host.
  parameter int unsigned ClockKhz = 250_000,
  /// Engines of the device, 0 to 8.
  parameter int unsigned NumEngines = 0,
  /// Their I/O commands.
  parameter engine_routes_t Routes = '0,
  // Port arrays have at least one element.
  localparam int unsigned EnginePorts = (NumEngines == 0) ? 1 : NumEngines
) (
  input logic clk_i,
  input logic rst_ni,
  /// 1 while a further clock edge could change the state without new input. From registers only.
  /// The clock may be gated with
  /// `busy_o || s_axil_awvalid || s_axil_wvalid || s_axil_arvalid`; a pending response keeps
  /// `busy_o` at 1.
  output logic busy_o,
  /// For a simulation: at least this number of cycles, up to six fewer, passes in which only the
  /// time changes, without new input. 0 if anything else changes. The simulation may skip these
  /// cycles of `clk_i`, but not in the five cycles after it has done so. From registers only.
  output logic [31:0] wait_o,
  /// From a register: busy_o becomes 1 by itself.
  output logic        alarm_o,
  /// From a register: at this value of cycles_i.
  output logic [63:0] alarm_cycles_o,
  /// Nothing changes before a memory has ended a fill, an engine has ended its command, or an input
  /// changes. Rises within a few cycles of this condition. It may also be 1 for a few cycles in
  /// which data are on the way between two blocks.
  output logic waiting_o,

  /// Begin no further burst on the memory side, because reset follows or power is failing. Bursts
  /// in flight end without the host.
  input  logic quiesce_i,
  /// From registers: a burst on the memory side has begun, or begins in the next cycle, and has not
  /// ended. The clock has to run.
  output logic media_busy_o,

  /// Serial number, 20 characters, the first one in the high bits, padded with spaces. From a
  /// register that changes only in reset.
  input logic [159:0] serial_i,
  /// EUI-64 of namespace 1; its low 4 bits are 0. From a register that changes only in reset.
  input logic [63:0] eui64_i,
  /// Cycles since power-on. From a register on the ungated clock.
  input logic [63:0] cycles_i,
  /// Composite temperature in kelvins. From a register on the ungated clock.
  input logic [15:0] temperature_i,
  /// Each toggles when Identify Namespace of its namespace has changed from outside, namespace 1
  /// first. From registers on the ungated clock.
  input logic [NumNamespaces-1:0] ns_changed_i,
  /// MSI-X of the device: the table is in BAR0, and messages follow completion queue entries.
  output to_msix_t msix_o,
  /// From there.
  input from_msix_t msix_i,

  /// BAR0.
  ns_axil_if.slave s_axil,


  /// Host master. A write's response means that the link has accepted it.
  ns_axi_if.master m_host,


  /// Memory masters, one a channel, ID 0, media addresses (not local to the channel).
  ns_axi_if.master m_mem[NumChannels],


  /// I/O commands of the engines.
  nvme_engine_if.controller m_engine[EnginePorts],

  /// Requests to the memories to zero blocks, one a channel: address in the channel, a multiple of
  /// 512.
  output logic [NumChannels-1:0][63:0] fill_addr_o,
  /// Blocks of 512 bytes.
  output logic [NumChannels-1:0][15:0] fill_blocks_o,
  output logic [NumChannels-1:0] fill_valid_o,
  input logic [NumChannels-1:0] fill_ready_i,
  /// End the fills in flight at the end of a block.
  output logic fill_stop_o,
  /// The fill has ended; for one cycle.
  input logic [NumChannels-1:0] fill_done_i,
  /// With fill_done_i: blocks could not be written.
  input logic [NumChannels-1:0] fill_error_i,

  /// Trace of commands, see nvme_trace. From registers; may be left unconnected.
  output logic [63:0] trace_event_o,
  output logic [191:0] trace_sqe_o,
  output logic [191:0] trace_cqe_o,
  output logic [15:0] trace_irq_o,
  /// Trace of descriptors, see nvme_trace_data.
  output logic [39:0] trace_job_o,
  output logic [2*NumChannels:0] trace_read_o,
  output logic [2*NumChannels:0] trace_data_o,
  output logic [2*NumChannels:0] trace_beat_o
);

  // Movers, lists and admin buffer; the last one is the front end.
  localparam int unsigned NumHost = NumChannels + 2;
  localparam int unsigned Front = NumHost - 1;

  localparam int unsigned ListBits = unsigned'($clog2(
      nvme_data_pkg::num_lists(NumWalkers, NumSglWalkers) + 1
  ));

  ns_axi_if host[NumHost] ();
  ns_axi_if adm ();

  // Between front end and data path.
  data_cmd_t data_cmd;
  data_done_t data_done;
  logic data_stop, abort_valid, abort_current, abort_deleted, abort_ready, abort_found;
  logic [SlotWidth-1:0] abort_slot;
  logic data_cmd_valid, data_cmd_ready, data_done_valid, data_done_ready;
  logic front_busy, front_waiting, data_busy, data_waiting;
  logic [31:0] front_wait;

  nvme_front #(
    .NumIoQueues  (NumIoQueues),
    .QueueEntries (QueueEntries),
    .NumSlots     (NumSlots),
    .FetchDepth   (FetchDepth),
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes),
    .MaxDeallocate(MaxDeallocate),
    .DoorbellBuffer(DoorbellBuffer),
    .VendorId     (VendorId),
    .HostTimeout  (HostTimeout),
    .ClockKhz     (ClockKhz),
    .NumEngines   (NumEngines),
    .Routes       (Routes)
  ) u_front (
    .clk_i,
    .rst_ni,
    .busy_o              (front_busy),
    .serial_i,
    .eui64_i,
    .wait_o              (front_wait),
    .alarm_o,
    .alarm_cycles_o,
    .waiting_o           (front_waiting),
    .cycles_i,
    .temperature_i,
    .ns_changed_i,
    .msix_o,
    .msix_i,
    .s_axil,
    .m_host              (host[Front]),
    .data_stop_o         (data_stop),
    .data_abort_valid_o  (abort_valid),
    .data_abort_slot_o   (abort_slot),
    .data_abort_current_o(abort_current),
    .data_abort_deleted_o(abort_deleted),
    .data_abort_ready_i  (abort_ready),
    .data_abort_found_i  (abort_found),
    .data_cmd_o          (data_cmd),
    .data_cmd_valid_o    (data_cmd_valid),
    .data_cmd_ready_i    (data_cmd_ready),
    .data_done_i         (data_done),
    .data_done_valid_i   (data_done_valid),
    .data_done_ready_o   (data_done_ready),
    .s_adm               (adm),
    .m_engine,
    .trace_event_o,
    .trace_sqe_o,
    .trace_cqe_o,
    .trace_irq_o
  );

  nvme_data #(
    .NumChannels    (NumChannels),
    .Granule        (Granule),
    .NumSlots       (NumSlots),
    .NumWalkers     (NumWalkers),
    .NumSglWalkers  (NumSglWalkers),
    .MediaReadBeats (MediaReadBeats),
    .MediaReads     (MediaReads),
    .MediaWriteBytes(MediaWriteBytes),
    .MediaWrites    (MediaWrites),
    .NumNamespaces  (NumNamespaces),
    .NsBlocks       (NsBlocks),
    .MediaBytes     (MediaBytes),
    .Fills          (Fills)
  ) u_data (
    .clk_i,
    .rst_ni,
    .busy_o         (data_busy),
    .quiesce_i,
    .media_busy_o,
    .waiting_o      (data_waiting),
    .stop_i         (data_stop),
    .abort_valid_i  (abort_valid),
    .abort_slot_i   (abort_slot),
    .abort_current_i(abort_current),
    .abort_deleted_i(abort_deleted),
    .abort_ready_o  (abort_ready),
    .abort_found_o  (abort_found),
    .cmd_i          (data_cmd),
    .cmd_valid_i    (data_cmd_valid),
    .cmd_ready_o    (data_cmd_ready),
    .done_o         (data_done),
    .done_valid_o   (data_done_valid),
    .done_ready_i   (data_done_ready),
    .m_host         (host[0+:Front]),
    .m_mem,
    .fill_addr_o,
    .fill_blocks_o,
    .fill_valid_o,
    .fill_ready_i,
    .fill_stop_o,
    .fill_done_i,
    .fill_error_i,
    .m_adm          (adm),
    .trace_job_o,
    .trace_read_o,
    .trace_data_o,
    .trace_beat_o
  );

  ns_axi_mux #(
    .N     (NumHost),
    .IdBits(ListBits)
  ) u_host_mux (
    .clk_i,
    .rst_ni,
    .s_axi(host),
    .m_axi(m_host)
  );

  assign busy_o = front_busy || data_busy;
  assign wait_o = data_busy ? '0 : front_wait;
  assign waiting_o = front_waiting && (data_waiting || !data_busy) && !data_done_valid;

  if (NumChannels > 64) begin : gen_bad_channels
    $error("nvme_ctrl: NumChannels must be at most 64");
  end
  if (nvme_data_pkg::host_id_bits(
          NumChannels, NumWalkers, NumSglWalkers
      ) > IdWidth) begin : gen_bad_walkers
    $error(
        "nvme_ctrl: the bits to number NumChannels + 2 masters and the walkers must be 12 at most together"
    );
  end

endmodule
