// SPDX-License-Identifier: Apache-2.0

// The device without its engines: NVMe controller, PM window, NVM timing emulators, memory
// channels, control bus, resets.
//
// The device top (nearside_top) connects it to flat ports and adds the engines; the shell does not
// depend on any engine. Ports, BARs and the interleaving of addresses over channels are defined in
// docs/architecture.md. Every output comes from a register. Idle blocks have their clocks
// stopped; `idle_o` reports that all are idle and nothing is in flight.
//
// Assumes that the PCIe bridge keeps posted writes in order and answers reads with one ID in order,
// and that memory controllers follow AXI4. Holds no media data, and has no PCI configuration space.
`include "ns_assert.svh"

module nearside_shell
  import ns_axi_pkg::*;
  import msix_pkg::*;
  import nearside_pkg::*;
  import nvme_ns_pkg::ns_blocks_t;
  import qos_pkg::*;
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
  parameter bit FillInside = 1'b0,
  /// Number of engines, 0 to MaxEngines.
  parameter int unsigned NumEngines = 0,
  // Port arrays have at least one element. Without engines it stays unused.
  localparam int unsigned Slots = (NumEngines == 0) ? 1 : NumEngines,
  localparam int unsigned LocalPorts = (LocalChannels == 0) ? 1 : LocalChannels,
  localparam int unsigned Channels = NumChannels + LocalChannels,
  /// The engines.
  parameter engine_t [Slots-1:0] Engines = '0
) (
  input  logic                             clk_i,
  /// Power-on reset, asserted and released at any time: the memory controllers are reset with it.
  input  logic                             rst_ni,
  /// Reset of the function only (function level reset, hot reset): 1 until `reset_done_o`. From
  /// then on the host port, the control bus and the PM window are in their reset state.
  input  logic                             flr_i,
  /// The power fails: as flr_i, and the clock runs until `reset_done_o`, or until the energy is
  /// spent.
  input  logic                             power_fail_i,
  /// Started transactions have ended, and the function stays in reset until both inputs are 0.
  output logic                             reset_done_o,

  /// BAR0 at 0, BAR4 at 1 MiB.
  ns_axil_if.slave s_axil,
  /// BAR2, the PM window, from 0 on; the command pages of BAR4 from `nearside_pkg::PageBase` on.
  ns_axi_if.slave s_pm,
  /// PCIe bridge.
  ns_axi_if.master m_host,
  /// Memory controllers: the storage's, then the local memory's.
  ns_axi_if.master m_ddr[Channels],

  /// The function is being reset, or the power fails: an engine with a reserved range saves its
  /// state there. From a register.
  output logic                             engine_stop_o,
  /// The memory has accepted all of the engine's state. 1 for the other engines. From registers.
  input  logic [Slots-1:0]                 engine_saved_i,
  /// The engine has restored its state, and the PM window and command pages may pass. 1 for the
  /// other engines. From registers.
  input  logic [Slots-1:0]                 engine_open_i,
  /// Clock of each engine: runs while it is busy, or an access arrives for it.
  output logic [Slots-1:0]                 engine_clk_o,
  /// Its reset: that of the function.
  output logic [Slots-1:0]                 engine_rst_no,
  /// From registers: a further clock edge could change its state without new input.
  input  logic [Slots-1:0]                 engine_busy_i,
  /// Its registers; addresses relative to their start.
  ns_axil_if.master m_engine_axil[Slots],
  /// Its memory masters: that of engine e in channel c is number e * NumChannels + c. Addresses are
  /// local to the channel.
  ns_axi_if.slave s_engine_mem[Slots*NumChannels],
  /// The same of the local memory.
  ns_axi_if.slave s_engine_local[Slots*LocalPorts],
  /// Its host master. Bursts of whole beats within 4 KiB.
  ns_axi_if.slave s_engine_host[Slots],
  /// Its NVMe I/O commands.
  nvme_engine_if.controller m_engine_nvme[Slots],
  /// Commands written into its command page.
  command_page_if.page m_engine_page[Slots],
  /// Conflict filter, if an engine has one: the PM window's bus of each channel to the engine,
  ns_axi_if.master m_filter_pm[NumChannels],
  /// and from the engine to the memory.
  ns_axi_if.slave s_filter_pm[NumChannels],
  /// The same of the NVMe controller.
  ns_axi_if.master m_filter_nvme[NumChannels],
  ns_axi_if.slave s_filter_nvme[NumChannels],
  /// Its interrupt requests: a rising edge requests a message after all writes accepted from its
  /// host master. From registers.
  input  logic [Slots-1:0][MaxEngineVectors-1:0] engine_irq_i,

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

  localparam int unsigned NumSglWalkers = 1;
  localparam int unsigned HostTimeout = 25 * ClockKhz;  // 25 ms

  // Extended to the largest number, for the functions of the package.
  localparam engine_t [MaxEngines-1:0] AllEngines = (MaxEngines * $bits(engine_t))'(Engines);
  localparam int unsigned NumRaised = vectors_before(AllEngines, NumEngines);
  localparam int unsigned RaiseBits = (NumRaised == 0) ? 1 : NumRaised;

  // ---------------------------------------------------------------- resets

  // por_n is the power-on reset. All blocks but those that track the memories' responses are also
  // in the function's reset. Both come from registers.
  logic por_n, rst_fn_n, stop, cut, reset_busy;
  logic [Channels-1:0] channel_started, channel_open, channel_busy;
  logic [NumChannels-1:0] fill_open, storage_lost;

  ns_reset_sync u_por (
    .clk_i,
    .rst_ni,
    .rst_no(por_n)
  );

  // Engines that save their state run until it is saved.
  logic save_pending;
  logic [Slots-1:0] engine_save_pending, engine_stop;
  for (genvar e = 0; e < Slots; e++) begin : gen_saves
    assign engine_save_pending[e] = NumEngines != 0 && Engines[e].reserved != '0 && !engine_saved_i[e];
  end
  assign save_pending = engine_save_pending != '0;
  assign engine_stop = {Slots{stop}} & ~engine_save_pending;
  assign engine_stop_o = stop;

  nearside_reset #(
    .Timeout(ClockKhz < 8192 ? 8192 : ClockKhz)
  ) u_reset (
    .clk_i,
    .rst_ni   (por_n),
    .request_i(flr_i || power_fail_i),
    .started_i(channel_started != '0 || save_pending),
    .open_i   (channel_open != '0 || fill_open != '0),
    .stop_o   (stop),
    .reset_o  (cut),
    .rst_no   (rst_fn_n),
    .done_o   (reset_done_o),
    .busy_o   (reset_busy)
  );

  // ---------------------------------------------------------------- control bus

  ns_axil_if nvme_axil ();
  ns_axil_if delay_axil[Channels] ();
  ns_axil_if registers[Slots] ();
  logic control_input, control_busy;
  qos_t [1+NumEngines:0] qos;

  nearside_control #(
    .ClockKhz     (ClockKhz),
    .NumIoQueues  (NumIoQueues),
    .QueueEntries (QueueEntries),
    .NumChannels  (NumChannels),
    .Granule      (Granule),
    .MediaBytes   (MediaBytes),
    .BufferBeats  (DelayBufferBeats),
    .LocalChannels(LocalChannels),
    .LocalGranule (LocalGranule),
    .LocalBytes   (LocalBytes),
    .LocalBufferBeats(LocalBufferBeats),
    .NumEngines   (NumEngines),
    .Engines      (Engines)
  ) u_control (
    .clk_i,
    .rst_ni  (rst_fn_n),
    .stop_i  (stop),
    .input_o (control_input),
    .busy_o  (control_busy),
    .s_axil,
    .m_nvme  (nvme_axil),
    .m_delay (delay_axil),
    .m_engine(registers),
    .qos_o   (qos)
  );

  // ---------------------------------------------------------------- NVMe controller

  logic [31:0] nvme_wait;
  logic nvme_alarm;
  logic [63:0] nvme_alarm_cycles;
  logic clk_nvme, nvme_busy, nvme_waits;
  logic msix_enable_q, msix_mask_q, msix_changed_q;
  logic [RaiseBits-1:0] raise;  // interrupt requests of engines
  logic host_busy;
  to_msix_t to_msix;
  from_msix_t from_msix;
  ns_axi_if host ();
  ns_axi_if nvme_mem[NumChannels] ();

  logic [NumChannels-1:0][AddrWidth-1:0] fill_addr;
  logic [NumChannels-1:0][15:0] fill_blocks;
  logic [NumChannels-1:0]
      fill_valid,
      fill_ready,
      fill_done,
      fill_error,
      fill_owed,
      fill_issue,
      fill_abort,
      inside_ready,
      inside_done,
      inside_error;
  logic fill_stop;

  nearside_fills #(
    .NumChannels(NumChannels)
  ) u_fills (
    .clk_i,
    .rst_ni   (rst_fn_n),
    .por_ni   (por_n),
    .stop_i   (stop),
    .lost_i   (storage_lost),
    .open_o   (fill_open),
    .owed_o   (fill_owed),
    .s_valid_i(fill_valid),
    .s_ready_o(fill_ready),
    .s_stop_i (fill_stop),
    .s_done_o (fill_done),
    .s_error_o(fill_error),
    .m_valid_o(fill_issue),
    .m_ready_i(FillInside ? inside_ready : m_fill_ready),
    .m_stop_o (fill_abort),
    .m_done_i (FillInside ? inside_done : m_fill_done),
    .m_error_i(FillInside ? inside_error : m_fill_error)
  );

  assign m_fill_addr = fill_addr;
  assign m_fill_blocks = fill_blocks;
  assign m_fill_valid = FillInside ? '0 : fill_issue;
  assign m_fill_stop = fill_abort;

  always_ff @(posedge clk_i or negedge rst_fn_n) begin
    if (!rst_fn_n) begin
      msix_enable_q  <= 1'b0;
      msix_mask_q    <= 1'b0;
      msix_changed_q <= 1'b0;
    end else begin
      msix_enable_q  <= msix_enable_i;
      msix_mask_q    <= msix_mask_i;
      msix_changed_q <= {msix_enable_i, msix_mask_i} != {msix_enable_q, msix_mask_q};
    end
  end

  // The time advances while everything is idle. There is no temperature sensor: the device is at
  // room temperature.
  localparam logic [15:0] Temperature = 16'd298;
  logic [63:0] cycles_q, cycles_d;
  assign cycles_d = cycles_q + 64'd1 + skipped_i;

  always_ff @(posedge clk_i or negedge rst_fn_n) begin
    if (!rst_fn_n) cycles_q <= '0;
    else cycles_q <= cycles_d;
  end

  logic identified_q;
  logic [159:0] serial_q;
  logic [63:0] eui64_q;

  always_ff @(posedge clk_i or negedge por_n) begin
    if (!por_n) begin
      identified_q <= 1'b0;
      serial_q     <= '0;
      eui64_q      <= '0;
    end else if (!identified_q) begin
      identified_q <= 1'b1;
      serial_q     <= serial_i;
      eui64_q      <= eui64_i;
    end
  end

  ns_clock_gate u_gate_nvme (
    .clk_i,
    .en_i(nvme_busy || msix_changed_q || raise != '0 || nvme_axil.awvalid || nvme_axil.wvalid || nvme_axil.arvalid),
    .clk_o(clk_nvme)
  );

  nvme_ctrl #(
    .NumIoQueues    (NumIoQueues),
    .QueueEntries   (QueueEntries),
    .NumSlots       (NumSlots),
    .DoorbellBuffer (DoorbellBuffer),
    .NumChannels    (NumChannels),
    .Granule        (Granule),
    .NumWalkers     (NumWalkers),
    .NumSglWalkers  (NumSglWalkers),
    .MediaReadBeats (MediaReadBeats),
    .MediaReads     (MediaReads),
    .MediaWriteBytes(MediaWriteBytes),
    .MediaWrites    (MediaWrites),
    .NumNamespaces  (NumNamespaces),
    .NsBlocks       (NsBlocks),
    .MediaBytes     (MediaBytes),
    .Fills          (filters(AllEngines, NumEngines) == '0),  // they would bypass the conflict filter
    .HostTimeout    (HostTimeout),
    .ClockKhz       (ClockKhz),
    .NumEngines     (NumEngines),
    .Routes         (engine_routes(AllEngines, NumEngines))
  ) u_nvme_ctrl (
    .clk_i         (clk_nvme),
    .rst_ni        (rst_fn_n),
    .busy_o        (nvme_busy),
    .quiesce_i     (1'b0),
    .media_busy_o  (),
    .serial_i      (serial_q),
    .eui64_i       (eui64_q),
    .wait_o        (nvme_wait),
    .alarm_o       (nvme_alarm),
    .alarm_cycles_o(nvme_alarm_cycles),
    .waiting_o     (nvme_waits),
    .cycles_i      (cycles_q),
    .temperature_i (Temperature),
    .ns_changed_i  ('0),
    .msix_o        (to_msix),
    .msix_i        (from_msix),
    .s_axil        (nvme_axil),
    .m_host        (host),
    .m_mem         (nvme_mem),
    .m_engine      (m_engine_nvme),
    .fill_addr_o   (fill_addr),
    .fill_blocks_o (fill_blocks),
    .fill_valid_o  (fill_valid),
    .fill_ready_i  (fill_ready),
    .fill_stop_o   (fill_stop),
    .fill_done_i   (fill_done),
    .fill_error_i  (fill_error),
    .trace_event_o,
    .trace_sqe_o,
    .trace_cqe_o,
    .trace_irq_o,
    .trace_job_o,
    .trace_read_o,
    .trace_data_o,
    .trace_beat_o
  );

  // ---------------------------------------------------------------- interrupts

  // The controller has the table in its BAR, and sends the messages; its vectors come first, then
  // those of the engines.
  msix #(
    .NumOwn   (NumIoQueues + 1),
    .NumRaised(NumRaised)
  ) u_msix (
    .clk_i   (clk_nvme),
    .rst_ni  (rst_fn_n),
    .enable_i(msix_enable_q),
    .mask_i  (msix_mask_q),
    .sender_i(to_msix),
    .sender_o(from_msix),
    .raise_i (raise)
  );

  nearside_host #(
    .NvmeIdBits(nvme_data_pkg::host_id_bits(NumChannels, NumWalkers, NumSglWalkers)),
    .Timeout   (HostTimeout),
    .NumEngines(NumEngines),
    .Engines   (Engines)
  ) u_host (
    .clk_i,
    .rst_ni       (rst_fn_n),
    .stop_i       (stop),
    .nvme_busy_i  (nvme_busy),
    .engine_busy_i,
    .busy_o       (host_busy),
    .s_nvme       (host),
    .s_engine     (s_engine_host),
    .m_host,
    .irq_i        (engine_irq_i),
    .raise_o      (raise)
  );

  // ---------------------------------------------------------------- PM window and command pages

  ns_axi_if pm[Channels] ();
  logic window_input, window_awake, window_busy, window_hold, window_stall;

  nearside_window #(
    .NumChannels  (NumChannels),
    .Granule      (Granule),
    .MediaBytes   (MediaBytes),
    .LocalChannels(LocalChannels),
    .LocalGranule (LocalGranule),
    .LocalBytes   (LocalBytes),
    .IdBits       (PmIdWidth),
    .NumEngines   (NumEngines),
    .Engines      (Engines)
  ) u_window (
    .clk_i,
    .rst_ni (rst_fn_n),
    .stop_i (stop),
    .closed_i(engine_open_i != '1),
    .stall_i(window_stall || stop),
    .input_o(window_input),
    .awake_o(window_awake),
    .busy_o (window_busy),
    .hold_o (window_hold),
    .s_axi  (s_pm),
    .m_axi  (pm),
    .m_page (m_engine_page)
  );

  // ---------------------------------------------------------------- engines

  logic engines_busy, clk_engines;
  logic [Slots-1:0] engine_awake;
  assign engines_busy = engine_awake != '0;

  for (genvar e = 0; e < NumEngines; e++) begin : gen_engine
    assign engine_awake[e] = engine_busy_i[e] || m_engine_axil[e].awvalid || m_engine_axil[e].wvalid || m_engine_axil[e].arvalid ||
        m_engine_nvme[e].cmd_valid || m_engine_nvme[e].stop_valid || m_engine_page[e].cmd_valid ||
        (Engines[e].filter && (window_awake || (nvme_busy && !nvme_waits))) || (Engines[e].reserved != '0 && stop);
    assign engine_rst_no[e] = rst_fn_n;

    ns_clock_gate u_gate (
      .clk_i,
      .en_i (engine_awake[e]),
      .clk_o(engine_clk_o[e])
    );

    ns_axil_connect u_registers (
      .s_axil(registers[e]),
      .m_axil(m_engine_axil[e])
    );
  end

  if (NumEngines != 0) begin : gen_bounds_clock
    ns_clock_gate u_gate (
      .clk_i,
      .en_i (engines_busy),
      .clk_o(clk_engines)
    );
  end

  if (NumEngines == 0) begin : gen_no_engine
    assign engine_awake = '0;
    assign engine_clk_o = '0;
    assign engine_rst_no = '0;
    assign clk_engines = 1'b0;
    logic unused;
    assign unused = ^{clk_engines, window_awake};
  end

  // ---------------------------------------------------------------- memories

  localparam int unsigned EngineIdBits = engine_id_bits(NumChannels);
  localparam int unsigned IdBits = (NumEngines != 0 && EngineIdBits > PmIdWidth) ? EngineIdBits : PmIdWidth;

  function automatic logic [Slots-1:0] engines_in(bit local_memory);
    for (int e = 0; e < int'(Slots); e++)
    engines_in[e] = Engines[e].memory && (!local_memory || Engines[e].local_);
  endfunction

  function automatic logic [Slots-1:0][63:0] bounds(bit limit);
    for (int e = 0; e < int'(Slots); e++) bounds[e] = limit ? Engines[e].limit : Engines[e].first;
  endfunction

  // All of the local memory, or an empty range at its end.
  function automatic logic [Slots-1:0][63:0] local_first();
    for (int e = 0; e < int'(Slots); e++) local_first[e] = Engines[e].local_open ? '0 : LocalBytes;
  endfunction

  // An engine that saves its state has no limit.
  qos_t [1+NumEngines:0] limits;
  assign limits[1:0] = qos[1:0];
  for (genvar e = 0; e < NumEngines; e++) begin : gen_limits
    always_comb begin
      limits[2+e] = qos[2+e];
      if (Engines[e].reserved != '0 && stop) begin
        limits[2+e].reads  = '0;
        limits[2+e].writes = '0;
        limits[2+e].beside = '0;
      end
    end
  end

  ns_axi_if storage_pm[NumChannels] ();
  ns_axi_if storage_nvme[NumChannels] ();
  logic storage_response_valid, local_response_valid;

  nearside_filter #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .HasFilter  (filters(AllEngines, NumEngines) != '0)
  ) u_filter (
    .clk_i,
    .rst_ni (rst_fn_n),
    .hold_i (window_hold),
    .stall_o(window_stall),
    .s_pm   (pm[0:NumChannels-1]),
    .s_nvme (nvme_mem),
    .m_filter_pm,
    .s_filter_pm,
    .m_filter_nvme,
    .s_filter_nvme,
    .m_pm   (storage_pm),
    .m_nvme (storage_nvme)
  );

  nearside_memory #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .IdBits     (IdBits),
    .ReadSlots  (DelayReadSlots),
    .WriteSlots (DelayWriteSlots),
    .BufferBeats(DelayBufferBeats),
    .FillInside (FillInside),
    .NumEngines (NumEngines),
    .Present    (engines_in(1'b0)),
    .First      (bounds(1'b0)),
    .Limit      (bounds(1'b1))
  ) u_storage (
    .clk_i,
    .engine_clk_i    (clk_engines),
    .rst_ni          (rst_fn_n),
    .por_ni          (por_n),
    .stop_i          (stop),
    .engine_stop_i   (engine_stop),
    .cut_i           (cut),
    .started_o       (channel_started[NumChannels-1:0]),
    .open_o          (channel_open[NumChannels-1:0]),
    .owed_i          (fill_owed),
    .lost_o          (storage_lost),
    .busy_o          (channel_busy[NumChannels-1:0]),
    .response_valid_o(storage_response_valid),
    .qos_i           (limits),
    .fill_addr_i     (fill_addr),
    .fill_blocks_i   (fill_blocks),
    .fill_valid_i    (fill_issue & {NumChannels{FillInside}}),
    .fill_ready_o    (inside_ready),
    .fill_stop_i     (fill_abort),
    .fill_done_o     (inside_done),
    .fill_error_o    (inside_error),
    .s_pm            (storage_pm),
    .s_nvme          (storage_nvme),
    .s_engine        (s_engine_mem),
    .s_axil          (delay_axil[0:NumChannels-1]),
    .m_axi           (m_ddr[0:NumChannels-1])
  );

  if (LocalChannels != 0) begin : gen_local
    ns_axi_if nvme[LocalChannels] ();
    for (genvar c = 0; c < LocalChannels; c++) begin : gen_nvme
      ns_axi_tie_off u_tie_off (.m_axi(nvme[c]));
    end

    nearside_memory #(
      .NumChannels(LocalChannels),
      .Granule    (LocalGranule),
      .IdBits     (IdBits),
      .ReadSlots  (LocalReadSlots),
      .WriteSlots (LocalWriteSlots),
      .BufferBeats(LocalBufferBeats),
      // Engines stream through it; their bursts stay whole, and the next address reaches the memory
      // before a burst ends.
      .PieceBeats (64),
      .MaxBeats   (128),
      .NumEngines (NumEngines),
      .Present    (engines_in(1'b1)),
      .First      (local_first()),
      .Limit      ({Slots{64'(LocalBytes)}})
    ) u_local (
      .clk_i,
      .engine_clk_i    (clk_engines),
      .rst_ni          (rst_fn_n),
      .por_ni          (por_n),
      .stop_i          (stop),
      .engine_stop_i   (engine_stop),
      .cut_i           (cut),
      .started_o       (channel_started[NumChannels+:LocalChannels]),
      .open_o          (channel_open[NumChannels+:LocalChannels]),
      .owed_i          ('0),
      .lost_o          (),
      .busy_o          (channel_busy[NumChannels+:LocalChannels]),
      .response_valid_o(local_response_valid),
      .qos_i           (qos),
      .fill_addr_i     ('0),
      .fill_blocks_i   ('0),
      .fill_valid_i    ('0),
      .fill_ready_o    (),
      .fill_stop_i     ('0),
      .fill_done_o     (),
      .fill_error_o    (),
      .s_pm            (pm[NumChannels:Channels-1]),
      .s_nvme          (nvme),
      .s_engine        (s_engine_local),
      .s_axil          (delay_axil[NumChannels:Channels-1]),
      .m_axi           (m_ddr[NumChannels:Channels-1])
    );
  end else begin : gen_no_local
    assign local_response_valid = 1'b0;
  end

  // ---------------------------------------------------------------- idle

  // Transactions of the NVMe controller keep nvme_busy at 1, those of the PM window window_busy.
  nearside_idle u_idle (
    .clk_i,
    .rst_ni (por_n),
    .input_i(control_input || window_input || m_host.b_valid || m_host.r_valid || storage_response_valid || local_response_valid ||
                         m_fill_done != '0 || {msix_enable_i, msix_mask_i} != {msix_enable_q, msix_mask_q}),
    .busy_i             (engines_busy || control_busy || window_busy || host_busy || channel_busy != '0 || msix_changed_q || reset_busy),
    .nvme_busy_i        (nvme_busy),
    .nvme_waits_i       (nvme_waits),
    .nvme_wait_i        (nvme_wait),
    .nvme_alarm_i       (nvme_alarm),
    .nvme_alarm_cycles_i(nvme_alarm_cycles),
    .cycles_i           (cycles_d),
    .skipped_i,
    .idle_o,
    .wait_o,
    .wake_o
  );

  if ((LocalBytes & (LocalBytes - 1)) != 0 || (LocalChannels == 0) != (LocalBytes == 0)) begin : gen_bad_local
    $error("nearside_shell: LocalBytes must be a power of two, and 0 without channels");
  end

endmodule
