// SPDX-License-Identifier: Apache-2.0

// The device: NVMe controller, PM window, NVM timing emulators and memory channels, with the ports
// of a PCIe function.
//
// It contains the shell and the engines of the design, which `nearside build` adds to this file.
// docs/architecture.md defines the ports, the BARs and the interleaving of addresses over channels.
// Every output comes from a register. Idle blocks have their clocks stopped; `idle_o` reports that
// all are idle and nothing is in flight.
//
// Assumes that the PCIe bridge keeps posted writes in order and answers reads with one ID in order,
// and that memory controllers follow AXI4. Holds no media data, and has no PCI configuration space.
`include "ns_axi_flat.svh"

module nearside_top
  import ns_axi_pkg::*;
  import nearside_pkg::*;
  import nvme_ns_pkg::ns_blocks_t;
#(
  /// Memory channels, a power of two up to 16.
  parameter int unsigned NumChannels = 2,
  /// Bytes of a granule, a power of two, at least 4096.
  parameter int unsigned Granule = 4096,
  /// Bytes of the media, a multiple of NumChannels * Granule.
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  /// Namespaces, 1 to 16.
  parameter int unsigned NumNamespaces = 1,
  /// Their sizes in blocks, 64 bits each: see nvme_ctrl.
  parameter ns_blocks_t NsBlocks = '0,
  /// I/O queue pairs.
  parameter int unsigned NumIoQueues = 16,
  /// Entries of the longest I/O queue.
  parameter int unsigned QueueEntries = 1024,
  /// NVMe commands in flight.
  parameter int unsigned NumSlots = 64,
  /// The controller offers Doorbell Buffer Config: see nvme_ctrl.
  parameter bit DoorbellBuffer = 1'b1,
  /// PRP walkers per direction. Commands of at most two pages use one for a few cycles.
  parameter int unsigned NumWalkers = 2,
  /// Clock in kHz: the unit of times reported to the host.
  parameter int unsigned ClockKhz = 250_000,
  /// 64-byte beats of media reads that the controller buffers or has in flight in each channel: see
  /// nvme_data.
  parameter int unsigned MediaReadBeats = 512,
  /// Media reads in flight in each channel.
  parameter int unsigned MediaReads = 32,
  /// Bytes of a write burst to the media.
  parameter int unsigned MediaWriteBytes = 1024,
  /// Write bursts in flight in each channel.
  parameter int unsigned MediaWrites = 32,
  /// Reads in flight in each channel's nvm_delay.
  parameter int unsigned DelayReadSlots = 64,
  /// Writes in flight in it.
  parameter int unsigned DelayWriteSlots = 64,
  /// Beats of its read buffer.
  parameter int unsigned DelayBufferBeats = 512,
  /// Channels of the local memory, a power of two up to 16; 0: there is none.
  parameter int unsigned LocalChannels = 0,
  localparam int unsigned Channels = NumChannels + LocalChannels,
  /// Bytes of its granules, a power of two, at least 4096.
  parameter int unsigned LocalGranule = 4096,
  /// Its bytes: a power of two, at least LocalChannels * LocalGranule.
  parameter longint unsigned LocalBytes = 0,
  /// Sizes of its channels' nvm_delay, as above.
  parameter int unsigned LocalReadSlots = 64,
  parameter int unsigned LocalWriteSlots = 64,
  parameter int unsigned LocalBufferBeats = 512,
  /// Bits of an ID of the PM window, up to 8.
  parameter int unsigned PmIdWidth = 6,
  /// 1: an ns_axi_fill in each channel writes zeros, and m_fill_* is idle. 0: the block at m_fill_*
  /// does.
  parameter bit FillInside = 1'b0
) (
  input  logic                             clk_i,
  /// Power-on reset: the memory controllers are reset with it.
  input  logic                             rst_ni,
  /// Reset of the function only (function level reset, hot reset): 1 until `reset_done_o`. From
  /// then on the host port, the control bus and the PM window are in their reset state.
  input  logic                             flr_i,
  /// The power fails: as flr_i, and the clock runs until `reset_done_o`, or until the energy is
  /// spent.
  input  logic                             power_fail_i,
  /// Started transactions have ended, and the function stays in reset until both inputs are 0.
  output logic                             reset_done_o,

  /// AXI4-Lite slave: BAR0 at 0, BAR4 at 1 MiB. Its signals are those of AXI4-Lite.
  input  logic [23:0]                      s_axil_awaddr,
  input  logic                             s_axil_awvalid,
  output logic                             s_axil_awready,
  input  logic [31:0]                      s_axil_wdata,
  input  logic [3:0]                       s_axil_wstrb,
  input  logic                             s_axil_wvalid,
  output logic                             s_axil_wready,
  output logic [1:0]                       s_axil_bresp,
  output logic                             s_axil_bvalid,
  input  logic                             s_axil_bready,
  input  logic [23:0]                      s_axil_araddr,
  input  logic                             s_axil_arvalid,
  output logic                             s_axil_arready,
  output logic [31:0]                      s_axil_rdata,
  output logic [1:0]                       s_axil_rresp,
  output logic                             s_axil_rvalid,
  input  logic                             s_axil_rready,

  /// AXI4 slave: BAR2, the PM window. Its signals are those of AXI4.
  input  logic [PmIdWidth-1:0]             s_axi_pm_awid,
  input  logic [AddrWidth-1:0]             s_axi_pm_awaddr,
  input  logic [7:0]                       s_axi_pm_awlen,
  input  logic [2:0]                       s_axi_pm_awsize,
  input  logic [1:0]                       s_axi_pm_awburst,
  input  logic                             s_axi_pm_awvalid,
  output logic                             s_axi_pm_awready,
  input  logic [DataWidth-1:0]             s_axi_pm_wdata,
  input  logic [StrbWidth-1:0]             s_axi_pm_wstrb,
  input  logic                             s_axi_pm_wlast,
  input  logic                             s_axi_pm_wvalid,
  output logic                             s_axi_pm_wready,
  output logic [PmIdWidth-1:0]             s_axi_pm_bid,
  output logic [1:0]                       s_axi_pm_bresp,
  output logic                             s_axi_pm_bvalid,
  input  logic                             s_axi_pm_bready,
  input  logic [PmIdWidth-1:0]             s_axi_pm_arid,
  input  logic [AddrWidth-1:0]             s_axi_pm_araddr,
  input  logic [7:0]                       s_axi_pm_arlen,
  input  logic [2:0]                       s_axi_pm_arsize,
  input  logic [1:0]                       s_axi_pm_arburst,
  input  logic                             s_axi_pm_arvalid,
  output logic                             s_axi_pm_arready,
  output logic [PmIdWidth-1:0]             s_axi_pm_rid,
  output logic [DataWidth-1:0]             s_axi_pm_rdata,
  output logic [1:0]                       s_axi_pm_rresp,
  output logic                             s_axi_pm_rlast,
  output logic                             s_axi_pm_rvalid,
  input  logic                             s_axi_pm_rready,

  /// AXI4 master to the PCIe bridge. Its signals are those of AXI4.
  output logic [IdWidth-1:0]               m_axi_host_awid,
  output logic [AddrWidth-1:0]             m_axi_host_awaddr,
  output logic [7:0]                       m_axi_host_awlen,
  output logic [2:0]                       m_axi_host_awsize,
  output logic [1:0]                       m_axi_host_awburst,
  output logic                             m_axi_host_awvalid,
  input  logic                             m_axi_host_awready,
  output logic [DataWidth-1:0]             m_axi_host_wdata,
  output logic [StrbWidth-1:0]             m_axi_host_wstrb,
  output logic                             m_axi_host_wlast,
  output logic                             m_axi_host_wvalid,
  input  logic                             m_axi_host_wready,
  input  logic [IdWidth-1:0]               m_axi_host_bid,
  input  logic [1:0]                       m_axi_host_bresp,
  input  logic                             m_axi_host_bvalid,
  output logic                             m_axi_host_bready,
  output logic [IdWidth-1:0]               m_axi_host_arid,
  output logic [AddrWidth-1:0]             m_axi_host_araddr,
  output logic [7:0]                       m_axi_host_arlen,
  output logic [2:0]                       m_axi_host_arsize,
  output logic [1:0]                       m_axi_host_arburst,
  output logic                             m_axi_host_arvalid,
  input  logic                             m_axi_host_arready,
  input  logic [IdWidth-1:0]               m_axi_host_rid,
  input  logic [DataWidth-1:0]             m_axi_host_rdata,
  input  logic [1:0]                       m_axi_host_rresp,
  input  logic                             m_axi_host_rlast,
  input  logic                             m_axi_host_rvalid,
  output logic                             m_axi_host_rready,

  /// AXI4 masters to the memory controllers, channel 0 of the storage in the low bits, the local
  /// memory's above. Their signals are those of AXI4.
  output logic [Channels*IdWidth-1:0]   m_axi_ddr_awid,
  output logic [Channels*AddrWidth-1:0] m_axi_ddr_awaddr,
  output logic [Channels*8-1:0]         m_axi_ddr_awlen,
  output logic [Channels*3-1:0]         m_axi_ddr_awsize,
  output logic [Channels*2-1:0]         m_axi_ddr_awburst,
  output logic [Channels-1:0]           m_axi_ddr_awvalid,
  input  logic [Channels-1:0]           m_axi_ddr_awready,
  output logic [Channels*DataWidth-1:0] m_axi_ddr_wdata,
  output logic [Channels*StrbWidth-1:0] m_axi_ddr_wstrb,
  output logic [Channels-1:0]           m_axi_ddr_wlast,
  output logic [Channels-1:0]           m_axi_ddr_wvalid,
  input  logic [Channels-1:0]           m_axi_ddr_wready,
  input  logic [Channels*IdWidth-1:0]   m_axi_ddr_bid,
  input  logic [Channels*2-1:0]         m_axi_ddr_bresp,
  input  logic [Channels-1:0]           m_axi_ddr_bvalid,
  output logic [Channels-1:0]           m_axi_ddr_bready,
  output logic [Channels*IdWidth-1:0]   m_axi_ddr_arid,
  output logic [Channels*AddrWidth-1:0] m_axi_ddr_araddr,
  output logic [Channels*8-1:0]         m_axi_ddr_arlen,
  output logic [Channels*3-1:0]         m_axi_ddr_arsize,
  output logic [Channels*2-1:0]         m_axi_ddr_arburst,
  output logic [Channels-1:0]           m_axi_ddr_arvalid,
  input  logic [Channels-1:0]           m_axi_ddr_arready,
  input  logic [Channels*IdWidth-1:0]   m_axi_ddr_rid,
  input  logic [Channels*DataWidth-1:0] m_axi_ddr_rdata,
  input  logic [Channels*2-1:0]         m_axi_ddr_rresp,
  input  logic [Channels-1:0]           m_axi_ddr_rlast,
  input  logic [Channels-1:0]           m_axi_ddr_rvalid,
  output logic [Channels-1:0]           m_axi_ddr_rready,

  /// Serial number: 20 ASCII characters, the first one in the high bits, padded with spaces. Straps
  /// or fuses: sampled at the first clock edge after reset. All names of the device and its
  /// namespaces derive from this and `eui64_i`.
  input  logic [159:0]                     serial_i,
  /// EUI-64 of namespace 1; the low 4 bits count namespaces. Sampled like `serial_i`.
  input  logic [63:0]                      eui64_i,
  /// Requests to the memory controllers to zero blocks, one per channel, channel 0 in the low bits:
  /// see ns_axi_fill.
  output logic [NumChannels*AddrWidth-1:0] m_fill_addr,
  /// Blocks of 512 bytes.
  output logic [NumChannels*16-1:0]        m_fill_blocks,
  output logic [NumChannels-1:0]           m_fill_valid,
  input  logic [NumChannels-1:0]           m_fill_ready,
  /// Ends the active request at the end of a block: a level, held until m_fill_done.
  output logic [NumChannels-1:0]           m_fill_stop,
  /// The request has ended; for one cycle.
  input  logic [NumChannels-1:0]           m_fill_done,
  /// With m_fill_done: a block could not be written.
  input  logic [NumChannels-1:0]           m_fill_error,

  /// Cycles that the simulation has skipped before this edge, as nothing would have changed in
  /// them; 0 in hardware.
  input  logic [63:0]                      skipped_i,
  /// MSI-X Enable of the configuration space.
  input  logic                             msix_enable_i,
  /// MSI-X Function Mask of the configuration space.
  input  logic                             msix_mask_i,
  /// Nothing changes on further clocks without new input.
  output logic                             idle_o,
  /// Number of cycles to come in which only the time changes without new input, so that a
  /// simulation may skip them (`skipped_i`). 0 if more changes, and when `idle_o` is 1.
  output logic [31:0]                      wait_o,
  /// For a simulation: clock edges before which the device does nothing without input, whatever
  /// idle_o and wait_o say; all ones if it never does.
  output logic [63:0]                      wake_o,

  /// Trace of commands, see nvme_trace. In hardware it may stay unconnected.
  output logic [63:0]                      trace_event_o,
  output logic [191:0]                     trace_sqe_o,
  output logic [191:0]                     trace_cqe_o,
  output logic [15:0]                      trace_irq_o,
  /// Trace of jobs, see nvme_trace_data.
  output logic [39:0]                      trace_job_o,
  output logic [2*NumChannels:0]           trace_read_o,
  output logic [2*NumChannels:0]           trace_data_o,
  output logic [2*NumChannels:0]           trace_beat_o
);

  // Engines, written by `nearside build` from the design; none here.
  localparam int unsigned NumEngines = 0;
  localparam int unsigned Slots = 1;
  localparam engine_t [Slots-1:0] Engines = '0;
  localparam int unsigned LocalPorts = (LocalChannels == 0) ? 1 : LocalChannels;

  ns_axil_if s_axil ();
  ns_axi_if s_pm ();
  ns_axi_if m_host ();
  ns_axi_if m_ddr[Channels] ();
  logic engine_stop;
  logic [Slots-1:0] engine_clk, engine_rst_n, engine_busy, engine_saved, engine_open;
  ns_axil_if engine_axil[Slots] ();
  ns_axi_if engine_mem[Slots*NumChannels] ();
  ns_axi_if engine_local[Slots*LocalPorts] ();
  ns_axi_if engine_host[Slots] ();
  nvme_engine_if engine_nvme[Slots] ();
  command_page_if engine_page[Slots] ();
  ns_axi_if filter_pm[NumChannels] ();
  ns_axi_if filtered_pm[NumChannels] ();
  ns_axi_if filter_nvme[NumChannels] ();
  ns_axi_if filtered_nvme[NumChannels] ();
  logic [Slots-1:0][MaxEngineVectors-1:0] engine_irq;

  `NS_AXIL_FROM_FLAT(s_axil, s_axil)
  `NS_AXI_FROM_FLAT(s_axi_pm, s_pm)
  `NS_AXI_TO_FLAT(m_axi_host, m_host)
  for (genvar c = 0; c < Channels; c++) begin : gen_ddr
    `NS_AXI_TO_FLAT_AT(m_axi_ddr, c, m_ddr[c])
  end

  nearside_shell #(
    .NumChannels(NumChannels),
    .Granule(Granule),
    .MediaBytes(MediaBytes),
    .NumNamespaces(NumNamespaces),
    .NsBlocks(NsBlocks),
    .NumIoQueues(NumIoQueues),
    .QueueEntries(QueueEntries),
    .NumSlots(NumSlots),
    .DoorbellBuffer(DoorbellBuffer),
    .NumWalkers(NumWalkers),
    .ClockKhz(ClockKhz),
    .MediaReadBeats(MediaReadBeats),
    .MediaReads(MediaReads),
    .MediaWriteBytes(MediaWriteBytes),
    .MediaWrites(MediaWrites),
    .DelayReadSlots(DelayReadSlots),
    .DelayWriteSlots(DelayWriteSlots),
    .DelayBufferBeats(DelayBufferBeats),
    .LocalChannels(LocalChannels),
    .LocalGranule(LocalGranule),
    .LocalBytes(LocalBytes),
    .LocalReadSlots(LocalReadSlots),
    .LocalWriteSlots(LocalWriteSlots),
    .LocalBufferBeats(LocalBufferBeats),
    .PmIdWidth(PmIdWidth),
    .FillInside(FillInside),
    .NumEngines(NumEngines),
    .Engines(Engines)
  ) u_shell (
    .clk_i,
    .rst_ni,
    .flr_i,
    .power_fail_i,
    .reset_done_o,
    .serial_i,
    .eui64_i,
    .m_fill_addr,
    .m_fill_blocks,
    .m_fill_valid,
    .m_fill_ready,
    .m_fill_stop,
    .m_fill_done,
    .m_fill_error,
    .skipped_i,
    .msix_enable_i,
    .msix_mask_i,
    .idle_o,
    .wait_o,
    .wake_o,
    .trace_event_o,
    .trace_sqe_o,
    .trace_cqe_o,
    .trace_irq_o,
    .trace_job_o,
    .trace_read_o,
    .trace_data_o,
    .trace_beat_o,
    .s_axil,
    .s_pm,
    .m_host,
    .m_ddr,
    .engine_stop_o (engine_stop),
    .engine_saved_i(engine_saved),
    .engine_open_i (engine_open),
    .engine_clk_o  (engine_clk),
    .engine_rst_no (engine_rst_n),
    .engine_busy_i (engine_busy),
    .m_engine_axil (engine_axil),
    .s_engine_mem  (engine_mem),
    .s_engine_local(engine_local),
    .s_engine_host (engine_host),
    .m_engine_nvme (engine_nvme),
    .m_engine_page (engine_page),
    .m_filter_pm   (filter_pm),
    .s_filter_pm   (filtered_pm),
    .m_filter_nvme (filter_nvme),
    .s_filter_nvme (filtered_nvme),
    .engine_irq_i  (engine_irq)
  );

  // begin engines
  assign engine_busy = '0;
  assign engine_saved = '1;
  assign engine_open = '1;
  assign engine_irq = '0;
  assign engine_nvme[0].cmd_ready = 1'b0;
  assign engine_nvme[0].done = '0;
  assign engine_nvme[0].done_valid = 1'b0;
  assign engine_page[0].cmd_ready = 1'b0;
  assign engine_page[0].done = '0;
  assign engine_page[0].done_valid = 1'b0;
  logic unused;
  assign unused = ^{engine_stop, engine_clk, engine_rst_n};
  // end engines

endmodule
