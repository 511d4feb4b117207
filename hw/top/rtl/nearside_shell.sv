// All of the device but its engines: NVMe controller, PM window, NVM timing emulators, memory channels, control bus, resets.
//
// The device top (nearside_top) puts it behind flat ports and plugs engines in; nothing about one engine stands here.
// docs/architecture.md defines the ports, the BARs and how addresses are spread over channels. Every output comes from a
// register. Blocks that rest have their clocks stopped; `idle_o` says that all do and that nothing is on its way.
// Assumes that the PCIe bridge keeps posted writes in order and answers reads with one ID in order, and that memory
// controllers keep to AXI4. Holds no data itself, and has no PCI configuration space.
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
  /// Bytes that go to one channel before the next one's turn, a power of two, at least 4096.
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
  /// PRP walkers per direction. Commands of at most two pages take one for a few cycles.
  parameter int unsigned NumWalkers = 2,
  /// Clock in kHz: the unit of what the host is told of time.
  parameter int unsigned ClockKhz = 250_000,
  /// Reads in flight in each channel's nvm_delay.
  parameter int unsigned DelayReadSlots = 64,
  /// Writes in flight in it.
  parameter int unsigned DelayWriteSlots = 64,
  /// Beats that its read buffer holds.
  parameter int unsigned DelayBufferBeats = 512,
  /// Bits of an ID of the PM window, up to 8.
  parameter int unsigned PmIdWidth = 6,
  /// 1: zeros are written by an ns_axi_fill in each channel, and m_fill_* rest. 0: by what is behind m_fill_*.
  parameter bit FillInside = 1'b0,
  /// Engines, 0 to MaxEngines.
  parameter int unsigned NumEngines = 0,
  // Ports come in arrays, which have an element at least. Without engines nobody may be at it.
  localparam int unsigned Slots = (NumEngines == 0) ? 1 : NumEngines,
  /// What they are.
  parameter engine_t [Slots-1:0] Engines = '0
) (
  input  logic                             clk_i,
  /// Power-on reset, asserted and released at any time: the memory controllers are reset with it.
  input  logic                             rst_ni,
  /// Reset of the function alone (function level reset, hot reset): 1 until `reset_done_o`. From then on the host port, the
  /// control bus and the PM window are as after reset.
  input  logic                             flr_i,
  /// The power fails: as flr_i, and the clock goes on until `reset_done_o`, or until the energy is spent.
  input  logic                             power_fail_i,
  /// What had begun has ended, and the function is in reset until neither input asks for it any more.
  output logic                             reset_done_o,

  /// BAR0 at 0, BAR4 at 1 MiB.
  ns_axil_if.slave s_axil,
  /// BAR2, the PM window, from 0 on; the command pages of BAR4 from `nearside_pkg::PageBase` on.
  ns_axi_if.slave s_pm,
  /// PCIe bridge.
  ns_axi_if.master m_host,
  /// Memory controllers.
  ns_axi_if.master m_ddr[NumChannels],

  /// Clock of each engine: runs while it is busy, or something is for it.
  output logic [Slots-1:0]                 engine_clk_o,
  /// Its reset: that of the function.
  output logic [Slots-1:0]                 engine_rst_no,
  /// From registers: a further clock edge could change its state without new input.
  input  logic [Slots-1:0]                 engine_busy_i,
  /// Its registers; addresses from their start on.
  ns_axil_if.master m_engine_axil[Slots],
  /// Its memory masters: engine e's of channel c is number e * NumChannels + c. Addresses are local to the channel.
  ns_axi_if.slave s_engine_mem[Slots*NumChannels],
  /// Its host master. Bursts of whole beats within 4 KiB.
  ns_axi_if.slave s_engine_host[Slots],
  /// Its NVMe I/O commands.
  nvme_engine_if.controller m_engine_nvme[Slots],
  /// Commands written into its command page.
  command_page_if.page m_engine_page[Slots],
  /// Access hook, if an engine has it: the PM window's bus of each channel on its way to the engine,
  ns_axi_if.master m_hook_pm[NumChannels],
  /// and from there on its way to the memory.
  ns_axi_if.slave s_hook_pm[NumChannels],
  /// The same of the NVMe controller.
  ns_axi_if.master m_hook_nvme[NumChannels],
  ns_axi_if.slave s_hook_nvme[NumChannels],
  /// Its interrupt requests: a rising edge asks for a message behind all writes that its host master has seen accepted. From registers.
  input  logic [Slots-1:0][MaxEngineVectors-1:0] engine_irq_i,

  /// Serial number: 20 ASCII characters, the first one in the high bits, padded with spaces. Straps or fuses: sampled at the first
  /// clock edge after reset. All names of the device and its namespaces follow from this and `eui64_i`.
  input  logic [159:0]                     serial_i,
  /// EUI-64 of namespace 1; the low 4 bits count namespaces. Sampled like `serial_i`.
  input  logic [63:0]                      eui64_i,
  /// Requests to the memory controllers to zero blocks, one a channel, channel 0 in the low bits: see ns_axi_fill.
  output logic [NumChannels*AddrWidth-1:0] m_fill_addr,
  /// Blocks of 512 bytes.
  output logic [NumChannels*16-1:0]        m_fill_blocks,
  output logic [NumChannels-1:0]           m_fill_valid,
  input  logic [NumChannels-1:0]           m_fill_ready,
  /// End what is under way at a block's end: a level, held until m_fill_done.
  output logic [NumChannels-1:0]           m_fill_stop,
  /// It has ended; for one cycle.
  input  logic [NumChannels-1:0]           m_fill_done,
  /// With m_fill_done: a block could not be written.
  input  logic [NumChannels-1:0]           m_fill_error,

  /// Cycles that were left out of the simulation before this edge, as nothing would have changed in them; 0 in hardware.
  input  logic [63:0]                      skipped_i,
  /// MSI-X Enable of the configuration space.
  input  logic                             msix_enable_i,
  /// MSI-X Function Mask of the configuration space.
  input  logic                             msix_mask_i,
  /// Nothing changes on further clocks without new input.
  output logic                             idle_o,
  /// Nothing but the time changes in so many cycles to come without new input, so that a simulation may leave them out
  /// (`skipped_i`); 0 if more does, and when `idle_o` is 1.
  output logic [31:0]                      wait_o,
  /// For a simulation: the device does nothing by itself before so many clock edges have passed, whatever idle_o and wait_o say; all
  /// ones if it never does.
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

  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned NumSglWalkers = 1;
  localparam int unsigned HostTimeout = 25 * ClockKhz;  // 25 ms
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));

  // As many as there can be, for the functions of the package.
  localparam engine_t [MaxEngines-1:0] AllEngines = (MaxEngines * $bits(engine_t))'(Engines);
  localparam int unsigned NumRaised = vectors_before(AllEngines, NumEngines);
  localparam int unsigned RaiseBits = (NumRaised == 0) ? 1 : NumRaised;
  localparam logic [MaxEngines-1:0] Pages = pages(AllEngines, NumEngines);
  localparam bit HasPages = Pages != '0;
  localparam bit HasHook = has_hook(AllEngines, NumEngines);

  // ---------------------------------------------------------------- resets

  // por_n is that of power-on; all but what the memories' answers depend on is in the function's reset, too. Both come from registers.
  logic por_n, rst_fn_n, stop, cut, reset_busy;
  logic [NumChannels-1:0] channel_begun, channel_open;
  logic [NumChannels-1:0] fill_open_q;  // a memory zeroes blocks

  ns_reset_sync u_por (
    .clk_i,
    .rst_ni,
    .rst_no(por_n)
  );

  nearside_reset #(
    .Timeout(ClockKhz < 8192 ? 8192 : ClockKhz)
  ) u_reset (
    .clk_i,
    .rst_ni   (por_n),
    .request_i(flr_i || power_fail_i),
    .begun_i  (channel_begun != '0),
    .open_i   (channel_open != '0 || fill_open_q != '0),
    .stop_o   (stop),
    .reset_o  (cut),
    .rst_no   (rst_fn_n),
    .done_o   (reset_done_o),
    .busy_o   (reset_busy)
  );

  // ---------------------------------------------------------------- control bus

  // BAR0, status, quality of service, one nvm_delay a channel, the engines.
  localparam int unsigned NumLite = 3 + NumChannels + NumEngines;
  localparam int unsigned LiteNvme = 0;
  localparam int unsigned LiteStatus = 1;
  localparam int unsigned LiteQos = 2;
  localparam int unsigned LiteDelay = 3;
  localparam int unsigned LiteEngine = 3 + NumChannels;
  localparam logic [23:0] Bar4 = 24'h10_0000;
  localparam logic [31:0] QosOffset = 32'h1000;  // in BAR4
  localparam logic [31:0] DelayOffset = 32'h1_0000;  // in BAR4
  localparam logic [31:0] PageOffset = 32'h4_0000;  // in BAR4
  localparam logic [31:0] BlockSize = 32'h1000;

  function automatic logic [NumLite-1:0][23:0] lite_base();
    lite_base = '0;
    lite_base[LiteStatus] = Bar4;
    lite_base[LiteQos] = Bar4 + 24'(QosOffset);
    for (int unsigned c = 0; c < NumChannels; c++) begin
      lite_base[LiteDelay+c] = Bar4 + 24'(DelayOffset) + 24'(BlockSize) * 24'(c);
    end
    for (int e = 0; e < int'(NumEngines); e++)
    lite_base[LiteEngine+e] = Bar4 + 24'(Engines[e].offset);
  endfunction

  function automatic logic [NumLite-1:0][23:0] lite_mask();
    lite_mask = {NumLite{24'(BlockSize - 32'd1)}};
    lite_mask[LiteNvme] = 24'h00_FFFF;
    for (int e = 0; e < int'(NumEngines); e++)
    lite_mask[LiteEngine+e] = 24'(Engines[e].size - 32'd1);
  endfunction

  ns_axil_if lite_in ();
  ns_axil_if lite[NumLite] ();
  logic lite_busy;

  // The control bus and the PM window's entrance rest, too. While they do, they take nothing: an access waits for one cycle
  // until the clock runs.
  logic clk_lite, lite_awake_q, lite_input;

  // While the device is stopped, nobody is there either.
  logic lite_open;

  assign lite_open = lite_awake_q && !stop;
  assign lite_input = s_axil.awvalid || s_axil.wvalid || s_axil.arvalid;
  assign lite_in.awaddr = s_axil.awaddr;
  assign lite_in.awvalid = s_axil.awvalid && lite_open;
  assign s_axil.awready = lite_in.awready && lite_open;
  assign lite_in.wdata = s_axil.wdata;
  assign lite_in.wstrb = s_axil.wstrb;
  assign lite_in.wvalid = s_axil.wvalid && lite_open;
  assign s_axil.wready = lite_in.wready && lite_open;
  assign s_axil.bresp = lite_in.bresp;
  assign s_axil.bvalid = lite_in.bvalid && !stop;
  assign lite_in.bready = s_axil.bready;
  assign lite_in.araddr = s_axil.araddr;
  assign lite_in.arvalid = s_axil.arvalid && lite_open;
  assign s_axil.arready = lite_in.arready && lite_open;
  assign s_axil.rdata = lite_in.rdata;
  assign s_axil.rresp = lite_in.rresp;
  assign s_axil.rvalid = lite_in.rvalid && !stop;
  assign lite_in.rready = s_axil.rready;

  always_ff @(posedge clk_i or negedge rst_fn_n) begin
    if (!rst_fn_n) lite_awake_q <= 1'b0;
    else lite_awake_q <= lite_input || lite_busy;
  end

  ns_clock_gate u_gate_lite (
    .clk_i,
    .en_i (lite_awake_q),
    .clk_o(clk_lite)
  );

  ns_axil_demux #(
    .N   (NumLite),
    .Base(lite_base()),
    .Mask(lite_mask())
  ) u_axil_demux (
    .clk_i (clk_lite),
    .rst_ni(rst_fn_n),
    .s_axil(lite_in),
    .m_axil(lite),
    .busy_o(lite_busy)
  );

  // ---------------------------------------------------------------- what the device is made of

  localparam int unsigned NumPages = unsigned'($countones(Pages));
  localparam int unsigned NumBlocks = 3 + NumChannels + NumEngines + NumPages;
  localparam logic [31:0] BlockVersion = 32'h0001_0000;
  localparam logic [31:0] TypeNvmeCtrl = 32'd1;
  localparam logic [31:0] TypeNvmDelay = 32'd2;
  localparam logic [31:0] TypePmWindow = 32'd3;
  localparam logic [31:0] TypeQos = 32'd4;
  localparam logic [31:0] TypeCommandPage = 32'd5;
  localparam logic [63:0] MediaSize = MediaBytes;

  function automatic logic [NumBlocks-1:0][7:0][31:0] blocks();
    int unsigned page;
    page = 0;
    // Words of a block from right to left: type, version, instance, BAR, offset, size, capabilities.
    blocks[0] = {32'(QueueEntries), 32'(NumIoQueues), 32'h1_0000, 32'd0, 32'd0, 32'd0, BlockVersion, TypeNvmeCtrl};
    blocks[1] = {MediaSize[63:32], MediaSize[31:0], 32'd0, 32'd0, 32'd2, 32'd0, BlockVersion, TypePmWindow};
    for (int unsigned c = 0; c < NumChannels; c++) begin
      blocks[2+c] = {
        32'(DelayBufferBeats),
        32'(c),
        BlockSize,
        DelayOffset + BlockSize * 32'(c),
        32'd4,
        32'(c),
        BlockVersion,
        TypeNvmDelay
      };
    end
    blocks[2+NumChannels] = {
      32'd0, 32'(2 + NumEngines), BlockSize, QosOffset, 32'd4, 32'd0, BlockVersion, TypeQos
    };
    for (int e = 0; e < int'(NumEngines); e++) begin
      blocks[3+NumChannels+e] = {
        Engines[e].cap1,
        Engines[e].cap0,
        Engines[e].size,
        Engines[e].offset,
        32'd4,
        Engines[e].instance_,
        Engines[e].version,
        Engines[e].kind
      };
      if (Engines[e].page) begin
        blocks[3+NumChannels+NumEngines+page] = {
          Engines[e].instance_,
          Engines[e].kind,
          BlockSize,
          PageOffset + BlockSize * 32'(e),
          32'd4,
          32'(page),
          BlockVersion,
          TypeCommandPage
        };
        page++;
      end
    end
  endfunction

  status #(
    .ClockKhz   (ClockKhz),
    .MediaBytes (MediaBytes),
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .NumBlocks  (NumBlocks),
    .Blocks     (blocks())
  ) u_status (
    .clk_i (clk_lite),
    .rst_ni(rst_fn_n),
    .s_axil(lite[LiteStatus])
  );

  qos_t [1+NumEngines:0] qos;

  qos #(
    .NumMasters(2 + NumEngines)
  ) u_qos (
    .clk_i (clk_lite),
    .rst_ni(rst_fn_n),
    .s_axil(lite[LiteQos]),
    .qos_o (qos)
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
  ns_axi_if mem[NumChannels] ();

  logic [NumChannels-1:0][AddrWidth-1:0] fill_addr;
  logic [NumChannels-1:0][15:0] fill_blocks;
  logic [NumChannels-1:0]
      fill_valid,
      fill_ready,
      fill_done,
      fill_error,
      fill_take,
      inside_ready,
      inside_done,
      inside_error;
  logic [NumChannels-1:0] fill_mine_q;  // fill_open_q is of this life of the function
  logic [NumChannels-1:0] fill_owed, fill_halt, fill_refuse, fill_refused_q, channel_lost;
  logic fill_stop;

  // A memory that is asked to zero answers once, whatever becomes of the function; the next life doesn't get that answer.
  // Until it comes, that memory is lost: it may still zero what this life would write. What is asked of a lost memory ends
  // as an error.
  assign fill_owed = fill_open_q & ~fill_mine_q;
  assign fill_take = fill_valid & ~fill_open_q & ~channel_lost & {NumChannels{!stop}};
  assign fill_refuse = fill_valid & channel_lost & {NumChannels{!stop}};
  assign fill_halt = {NumChannels{fill_stop || stop}} | fill_owed;
  assign m_fill_addr = fill_addr;
  assign m_fill_blocks = fill_blocks;
  assign m_fill_valid = FillInside ? '0 : fill_take;
  assign m_fill_stop = fill_halt;
  assign fill_ready = fill_take & (FillInside ? inside_ready : m_fill_ready);
  assign fill_done = FillInside ? inside_done : m_fill_done;
  assign fill_error = FillInside ? inside_error : m_fill_error;

  always_ff @(posedge clk_i or negedge por_n) begin
    if (!por_n) fill_open_q <= '0;
    else fill_open_q <= (fill_open_q | fill_ready) & ~fill_done;
  end

  always_ff @(posedge clk_i or negedge rst_fn_n) begin
    if (!rst_fn_n) begin
      fill_mine_q <= '0;
      fill_refused_q <= '0;
    end else begin
      fill_mine_q <= (fill_mine_q | fill_ready) & ~fill_done;
      fill_refused_q <= fill_refuse;
    end
  end

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

  // Time goes on while everything rests. There is no temperature sensor: the device is at room temperature.
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
    .en_i(nvme_busy || msix_changed_q || raise != '0 || lite[LiteNvme].awvalid || lite[LiteNvme].wvalid || lite[LiteNvme].arvalid),
    .clk_o(clk_nvme)
  );

  nvme_ctrl #(
    .NumIoQueues (NumIoQueues),
    .QueueEntries(QueueEntries),
    .NumSlots    (NumSlots),
    .NumChannels (NumChannels),
    .Granule     (Granule),
    .NumWalkers  (NumWalkers),
    .NumSglWalkers(NumSglWalkers),
    .NumNamespaces(NumNamespaces),
    .NsBlocks    (NsBlocks),
    .MediaBytes  (MediaBytes),
    .HostTimeout (HostTimeout),
    .ClockKhz    (ClockKhz),
    .NumEngines  (NumEngines),
    .Routes      (engine_routes(AllEngines, NumEngines))
  ) u_nvme_ctrl (
    .clk_i            (clk_nvme),
    .rst_ni        (rst_fn_n),
    .busy_o           (nvme_busy),
    .quiesce_i        (1'b0),
    .media_busy_o     (),
    .serial_i         (serial_q),
    .eui64_i          (eui64_q),
    .wait_o           (nvme_wait),
    .alarm_o          (nvme_alarm),
    .alarm_cycles_o   (nvme_alarm_cycles),
    .waits_o          (nvme_waits),
    .cycles_i         (cycles_q),
    .temperature_i    (Temperature),
    .ns_changed_i     ('0),
    .msix_o           (to_msix),
    .msix_i           (from_msix),
    .s_axil           (lite[LiteNvme]),
    .m_host           (host),
    .m_mem            (mem),
    .m_engine         (m_engine_nvme),
    .fill_addr_o      (fill_addr),
    .fill_blocks_o    (fill_blocks),
    .fill_valid_o     (fill_valid),
    .fill_ready_i     (fill_ready | fill_refuse),
    .fill_stop_o      (fill_stop),
    .fill_done_i      (fill_done & fill_mine_q | fill_refused_q),
    .fill_error_i     (fill_error | fill_refused_q),
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

  // The controller has the table in its BAR, and sends the messages; its vectors come first, then those of the engines.
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

  // ---------------------------------------------------------------- PM window

  ns_axi_if pm_drained ();
  ns_axi_if pm_in ();  // awake
  ns_axi_if pm[NumChannels+32'(HasPages)] ();
  localparam int unsigned PmOutstanding = 32;  // with an ID

  // A host that is dead leaves bursts without their data. They are completed with beats that write nothing, since data of
  // the NVMe controller may stand behind them.
  ns_axi_drain #(
    .CountBits(12)
  ) u_pm_drain (
    .clk_i,
    .rst_ni(rst_fn_n),
    .cut_i (stop),
    .cut_o (),
    .open_o(),
    .s_axi (s_pm),
    .m_axi (pm_drained)
  );

  // Transactions of the PM window between address and last response.
  logic [15:0] pm_open_q;
  logic [1:0] pm_starts, pm_ends;
  logic pm_r_end;
  logic clk_pm, pm_awake_q, pm_input;

  assign pm_r_end = pm_drained.r_valid && pm_drained.r_ready && pm_drained.r.last;
  assign pm_starts = 2'(pm_drained.aw_valid && pm_drained.aw_ready) + 2'(pm_drained.ar_valid && pm_drained.ar_ready);
  assign pm_ends = 2'(pm_drained.b_valid && pm_drained.b_ready) + 2'(pm_r_end);
  assign pm_input = s_pm.aw_valid || s_pm.w_valid || s_pm.ar_valid;
  assign pm_in.aw = pm_drained.aw;
  assign pm_in.aw_valid = pm_drained.aw_valid && pm_awake_q;
  assign pm_drained.aw_ready = pm_in.aw_ready && pm_awake_q;
  assign pm_in.w = pm_drained.w;
  assign pm_in.w_valid = pm_drained.w_valid && pm_awake_q;
  assign pm_drained.w_ready = pm_in.w_ready && pm_awake_q;
  assign pm_drained.b = pm_in.b;
  assign pm_drained.b_valid = pm_in.b_valid;
  assign pm_in.b_ready = pm_drained.b_ready;
  assign pm_in.ar = pm_drained.ar;
  assign pm_in.ar_valid = pm_drained.ar_valid && pm_awake_q;
  assign pm_drained.ar_ready = pm_in.ar_ready && pm_awake_q;
  assign pm_drained.r = pm_in.r;
  assign pm_drained.r_valid = pm_in.r_valid;
  assign pm_in.r_ready = pm_drained.r_ready;

  always_ff @(posedge clk_i or negedge rst_fn_n) begin
    if (!rst_fn_n) begin
      pm_open_q  <= '0;
      pm_awake_q <= 1'b0;
    end else begin
      pm_open_q  <= pm_open_q + 16'(pm_starts) - 16'(pm_ends);
      pm_awake_q <= pm_input || pm_open_q != '0;
    end
  end

  ns_clock_gate u_gate_pm (
    .clk_i,
    .en_i (pm_awake_q),
    .clk_o(clk_pm)
  );

  ns_axi_demux #(
    .M             (NumChannels),
    .Granule       (Granule),
    .Bytes         (MediaBytes),
    .MaxOutstanding(PmOutstanding),
    .OrderBits     (PmIdWidth),
    .Outside       (HasPages)
  ) u_pm_demux (
    .clk_i (clk_pm),
    .rst_ni(rst_fn_n),
    .s_axi (pm_in),
    .m_axi (pm)
  );

  // ---------------------------------------------------------------- command pages

  // Their commands are in one order with the stores of the PM window, and wait for those before them to be answered.
  logic pages_busy;

  if (HasPages) begin : gen_pages
    logic clk_pages, unsettled, epoch;
    logic [Slots-1:0] ends;
    for (genvar e = 0; e < NumEngines; e++) begin : gen_end
      assign ends[e] = Pages[e] && m_engine_page[e].done_valid;
    end

    ns_clock_gate u_gate (
      .clk_i,
      .en_i (pm_awake_q || pages_busy || ends != '0),
      .clk_o(clk_pages)
    );

    ns_axi_write_epochs #(
      .IdBits        (PmIdWidth),
      .MaxOutstanding(2 * PmOutstanding)  // some wait in the demultiplexer
    ) u_epochs (
      .clk_i     (clk_pages),
      .rst_ni    (rst_fn_n),
      .start_i   (pm_in.aw_valid && pm_in.aw_ready),
      .start_id_i(pm_in.aw.id[PmIdWidth-1:0]),
      .end_i     (pm_in.b_valid && pm_in.b_ready),
      .end_id_i  (pm_in.b.id[PmIdWidth-1:0]),
      .wait_i    (unsettled),
      .epoch_o   (epoch)
    );

    command_pages #(
      .N    (Slots),
      .There(Pages[Slots-1:0]),
      .Base (PageBase)
    ) u_pages (
      .clk_i      (clk_pages),
      .rst_ni     (rst_fn_n),
      .busy_o     (pages_busy),
      .s_axi      (pm[NumChannels]),
      .unsettled_o(unsettled),
      .epoch_i    (epoch),
      .m_page     (m_engine_page)
    );
  end else begin : gen_no_page
    assign pages_busy = 1'b0;
    for (genvar e = 0; e < Slots; e++) begin : gen_page
      assign m_engine_page[e].cmd = '0;
      assign m_engine_page[e].line = '0;
      assign m_engine_page[e].settled = 1'b0;
      assign m_engine_page[e].cmd_valid = 1'b0;
    end
  end

  // ---------------------------------------------------------------- engines

  localparam int unsigned EngineIdBits = engine_id_bits(NumChannels);
  localparam int unsigned IdBits = (NumEngines != 0 && EngineIdBits > PmIdWidth) ? EngineIdBits : PmIdWidth;

  // Transactions that an engine has under way in a channel with IDs that agree in their lowest bit.
  localparam int unsigned EngineOutstanding = 64;

  // Bytes of channel `c` below a media address.
  function automatic logic [63:0] below(logic [63:0] addr, int unsigned c);
    logic [63:0] whole, rest, start;
    whole = (addr >> (GranuleBits + ChannelBits)) << GranuleBits;
    rest  = addr & 64'(Granule * NumChannels - 1);
    start = 64'(c) << GranuleBits;
    below = whole + ((rest <= start) ? '0 : (rest - start > 64'(Granule)) ? 64'(Granule) : rest - start);
  endfunction

  logic engines_busy, clk_engines;
  logic [Slots-1:0] engine_awake;
  assign engines_busy = engine_awake != '0;

  for (genvar e = 0; e < NumEngines; e++) begin : gen_engine
    assign engine_awake[e] = engine_busy_i[e] || m_engine_axil[e].awvalid || m_engine_axil[e].wvalid || m_engine_axil[e].arvalid ||
        m_engine_nvme[e].cmd_valid || m_engine_nvme[e].stop_valid || m_engine_page[e].cmd_valid ||
        (Engines[e].hook && (pm_awake_q || (nvme_busy && !nvme_waits)));
    assign engine_rst_no[e] = rst_fn_n;

    ns_clock_gate u_gate (
      .clk_i,
      .en_i (engine_awake[e]),
      .clk_o(engine_clk_o[e])
    );

    ns_axil_link u_registers (
      .s_axil(lite[LiteEngine+e]),
      .m_axil(m_engine_axil[e])
    );

    if (Engines[e].size < BlockSize || (Engines[e].offset & (Engines[e].size - 32'd1)) != '0) begin : gen_bad_map
      $error(
          "nearside_shell: an engine's registers must be a power of two of at least 4096 bytes, aligned to that"
      );
    end
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
    assign unused = ^{clk_engines};
  end

  // ---------------------------------------------------------------- channels

  logic [NumChannels-1:0] channel_busy, ddr_answers;

  // Mover c of the controller touches channel c only, so its requests need no crossbar, just their local address.
  function automatic ax_t to_local(ax_t ax);
    logic [AddrWidth-1:0] granule;
    granule = ax.addr >> GranuleBits;
    to_local = ax;
    to_local.addr = ((granule >> ChannelBits) << GranuleBits) | (ax.addr & AddrWidth'(Granule - 1));
  endfunction

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    ns_axi_if bus[2+NumEngines] ();

    assign ddr_answers[c] = m_ddr[c].b_valid || m_ddr[c].r_valid;

    ns_axi_if nvme ();

    assign nvme.aw = to_local(mem[c].aw);
    assign nvme.aw_valid = mem[c].aw_valid;
    assign mem[c].aw_ready = nvme.aw_ready;
    assign nvme.w = mem[c].w;
    assign nvme.w_valid = mem[c].w_valid;
    assign mem[c].w_ready = nvme.w_ready;
    assign mem[c].b = nvme.b;
    assign mem[c].b_valid = nvme.b_valid;
    assign nvme.b_ready = mem[c].b_ready;
    assign nvme.ar = to_local(mem[c].ar);
    assign nvme.ar_valid = mem[c].ar_valid;
    assign mem[c].ar_ready = nvme.ar_ready;
    assign mem[c].r = nvme.r;
    assign mem[c].r_valid = nvme.r_valid;
    assign nvme.r_ready = mem[c].r_ready;

    if (HasHook) begin : gen_hook
      ns_axi_link u_pm_out (
        .s_axi(pm[c]),
        .m_axi(m_hook_pm[c])
      );
      ns_axi_link u_pm_in (
        .s_axi(s_hook_pm[c]),
        .m_axi(bus[0])
      );
      ns_axi_link u_nvme_out (
        .s_axi(nvme),
        .m_axi(m_hook_nvme[c])
      );
      ns_axi_link u_nvme_in (
        .s_axi(s_hook_nvme[c]),
        .m_axi(bus[1])
      );
    end else begin : gen_no_hook
      ns_axi_link u_pm (
        .s_axi(pm[c]),
        .m_axi(bus[0])
      );
      ns_axi_link u_nvme (
        .s_axi(nvme),
        .m_axi(bus[1])
      );
    end

    for (genvar e = 0; e < NumEngines; e++) begin : gen_engine
      if (Engines[e].memory) begin : gen_bounds
        // What lies outside of its bounds is answered DECERR. In one channel they are a range, too.
        ns_axi_demux #(
          .M             (1),
          .First         (below(Engines[e].first, c)),
          .Bytes         (below(Engines[e].limit, c)),
          .MaxOutstanding(EngineOutstanding),
          .OrderBits     (1)
        ) u_bounds (
          .clk_i (clk_engines),
          .rst_ni(rst_fn_n),
          .s_axi (s_engine_mem[e*NumChannels+c]),
          .m_axi (bus[2+e+:1])
        );
      end else begin : gen_none
        assign bus[2+e].aw_valid = 1'b0;
        assign bus[2+e].aw = '0;
        assign bus[2+e].w_valid = 1'b0;
        assign bus[2+e].w = '0;
        assign bus[2+e].b_ready = 1'b1;
        assign bus[2+e].ar_valid = 1'b0;
        assign bus[2+e].ar = '0;
        assign bus[2+e].r_ready = 1'b1;
      end
    end

    nearside_channel #(
      .NumMasters (2 + NumEngines),
      .IdBits     (IdBits),
      .ReadSlots  (DelayReadSlots),
      .WriteSlots (DelayWriteSlots),
      .BufferBeats(DelayBufferBeats),
      .FillInside (FillInside)
    ) u_channel (
      .clk_i,
      .rst_ni        (rst_fn_n),
      .por_ni        (por_n),
      .stop_i        (stop),
      .cut_i         (cut),
      .begun_o       (channel_begun[c]),
      .open_o        (channel_open[c]),
      .owed_i        (fill_owed[c]),
      .lost_o        (channel_lost[c]),
      .busy_o        (channel_busy[c]),
      .fill_addr_i   (fill_addr[c]),
      .fill_blocks_i (fill_blocks[c]),
      .fill_valid_i  (fill_take[c] && FillInside),
      .fill_ready_o  (inside_ready[c]),
      .fill_stop_i   (fill_halt[c]),
      .fill_done_o   (inside_done[c]),
      .fill_error_o  (inside_error[c]),
      .qos_i         (qos),
      .s_axi         (bus),
      .s_axil        (lite[LiteDelay+c]),
      .m_axi         (m_ddr[c])
    );
  end

  // ---------------------------------------------------------------- idle

  // Transactions of the NVMe controller keep nvme_busy at 1, those of the PM window pm_awake_q.
  // While the memories zero what the controller waits for, nothing changes there either. Something may be on its way in it for
  // a few cycles without a sign of it, so that has to last.
  logic input_valid, idle_q;
  logic [4:0] waits_q;

  assign input_valid = lite_input || pm_input || m_host.b_valid || m_host.r_valid ||
      ddr_answers != '0 || m_fill_done != '0 ||
      {msix_enable_i, msix_mask_i} != {msix_enable_q, msix_mask_q};
  assign idle_o = idle_q;

  // What is said of the time to come is some cycles old; after cycles were left out it must be worked out again.
  localparam logic [31:0] Old = 32'd8;
  logic rest;
  logic [31:0] wait_q;
  logic [2:0] stale_q;
  assign rest = !(engines_busy || pages_busy || host_busy || channel_busy != '0 || lite_busy || lite_awake_q || msix_changed_q || pm_awake_q ||
                  pm_open_q != '0 || input_valid || reset_busy);
  assign wait_o = wait_q;

  // What has set its time was busy for some cycles more, so this one says so in time.
  logic [63:0] wake_q;
  assign wake_o = wake_q;
  always_ff @(posedge clk_i or negedge por_n) begin
    if (!por_n) wake_q <= '1;
    else if (!nvme_alarm) wake_q <= '1;
    else wake_q <= (nvme_alarm_cycles > cycles_d) ? nvme_alarm_cycles - cycles_d : '0;
  end

  always_ff @(posedge clk_i or negedge por_n) begin
    if (!por_n) begin
      idle_q  <= 1'b0;
      waits_q <= '0;
      wait_q  <= '0;
      stale_q <= '1;
    end else begin
      if (!nvme_waits || input_valid || reset_busy) waits_q <= '0;
      else if (waits_q != '1) waits_q <= waits_q + 1'b1;
      // An engine's answer has left the engine and is in the controller now: waits_q says so a cycle later.
      idle_q <= rest && (!nvme_busy || (nvme_waits && waits_q == '1));
      wait_q <= (rest && nvme_busy && nvme_wait > Old && stale_q == '0 && skipped_i == '0) ? nvme_wait - Old : '0;
      stale_q <= (skipped_i != '0) ? '1 : stale_q - 3'(stale_q != '0);
    end
  end

  if (NumChannels < 1 || NumChannels > 16 || (NumChannels & (NumChannels - 1)) != 0) begin : gen_bad_channels
    $error("nearside_shell: NumChannels must be 1, 2, 4, 8 or 16");
  end
  if (PmIdWidth < 1 || PmIdWidth > 8) begin : gen_bad_pm_id_width
    $error("nearside_shell: PmIdWidth must be 1 to 8");
  end

  `NS_ASSERT(pm_counted, pm_open_q < 16'h8000)
  `NS_ASSERT(delays_awake_for_responses, (ddr_answers & ~channel_busy & ~channel_open) == '0)
  for (genvar c = 0; c < NumChannels; c++) begin : gen_assert
    `NS_ASSERT(pm_awake_for_responses, !(pm[c].b_valid || pm[c].r_valid) || pm_awake_q)
    `NS_ASSERT(mover_keeps_to_its_channel_aw,
               !mem[c].aw_valid || (mem[c].aw.addr >> GranuleBits & AddrWidth'(NumChannels - 1)) == AddrWidth'(c))
    `NS_ASSERT(mover_keeps_to_its_channel_ar,
               !mem[c].ar_valid || (mem[c].ar.addr >> GranuleBits & AddrWidth'(NumChannels - 1)) == AddrWidth'(c))
  end

endmodule
