// The device: NVMe controller, PM window, NVM timing emulator and memory channels behind the ports of a PCIe function.
//
// docs/architecture.md defines the ports, the BARs and how addresses are spread over channels. Every output comes from a
// register. Blocks that rest have their clocks stopped; `idle_o` says that all do and that nothing is on its way.
// Assumes that the PCIe bridge keeps posted writes in order and answers reads with one ID in order, and that memory
// controllers keep to AXI4. Holds no data itself, and has no PCI configuration space.
`include "ns_assert.svh"

module nearside_top
  import ns_axi_pkg::*;
  import nvme_ns_pkg::ns_blocks_t;
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
  /// Bits of an ID of the PM window, up to 7.
  parameter int unsigned PmIdWidth = 4,
  /// 1: zeros are written by an ns_axi_fill in each channel, and m_fill_* rest. 0: by what is behind m_fill_*.
  parameter bit FillInside = 1'b0
) (
  /// Clock.
  input  logic                             clk_i,
  /// Power-on reset: the memory controllers are reset with it.
  input  logic                             rst_ni,
  /// Reset of the function alone (function level reset, hot reset): 1 until `reset_done_o`. From then on the host port, the
  /// control bus and the PM window are as after reset.
  input  logic                             flr_i,
  /// The power fails: as flr_i, and the clock goes on until `reset_done_o`, or until the energy is spent.
  input  logic                             power_fail_i,
  /// What had begun has ended, and the function is in reset until neither input asks for it any more.
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

  /// AXI4 masters to the memory controllers, channel 0 in the low bits. Their signals are those of AXI4.
  output logic [NumChannels*IdWidth-1:0]   m_axi_ddr_awid,
  output logic [NumChannels*AddrWidth-1:0] m_axi_ddr_awaddr,
  output logic [NumChannels*8-1:0]         m_axi_ddr_awlen,
  output logic [NumChannels*3-1:0]         m_axi_ddr_awsize,
  output logic [NumChannels*2-1:0]         m_axi_ddr_awburst,
  output logic [NumChannels-1:0]           m_axi_ddr_awvalid,
  input  logic [NumChannels-1:0]           m_axi_ddr_awready,
  output logic [NumChannels*DataWidth-1:0] m_axi_ddr_wdata,
  output logic [NumChannels*StrbWidth-1:0] m_axi_ddr_wstrb,
  output logic [NumChannels-1:0]           m_axi_ddr_wlast,
  output logic [NumChannels-1:0]           m_axi_ddr_wvalid,
  input  logic [NumChannels-1:0]           m_axi_ddr_wready,
  input  logic [NumChannels*IdWidth-1:0]   m_axi_ddr_bid,
  input  logic [NumChannels*2-1:0]         m_axi_ddr_bresp,
  input  logic [NumChannels-1:0]           m_axi_ddr_bvalid,
  output logic [NumChannels-1:0]           m_axi_ddr_bready,
  output logic [NumChannels*IdWidth-1:0]   m_axi_ddr_arid,
  output logic [NumChannels*AddrWidth-1:0] m_axi_ddr_araddr,
  output logic [NumChannels*8-1:0]         m_axi_ddr_arlen,
  output logic [NumChannels*3-1:0]         m_axi_ddr_arsize,
  output logic [NumChannels*2-1:0]         m_axi_ddr_arburst,
  output logic [NumChannels-1:0]           m_axi_ddr_arvalid,
  input  logic [NumChannels-1:0]           m_axi_ddr_arready,
  input  logic [NumChannels*IdWidth-1:0]   m_axi_ddr_rid,
  input  logic [NumChannels*DataWidth-1:0] m_axi_ddr_rdata,
  input  logic [NumChannels*2-1:0]         m_axi_ddr_rresp,
  input  logic [NumChannels-1:0]           m_axi_ddr_rlast,
  input  logic [NumChannels-1:0]           m_axi_ddr_rvalid,
  output logic [NumChannels-1:0]           m_axi_ddr_rready,

  /// Serial number: 20 ASCII characters, the first one in the high bits, padded with spaces. Straps or fuses: sampled at the first
  /// clock edge after reset. All names of the device and its namespaces follow from this and `eui64_i`.
  input  logic [159:0]                     serial_i,
  /// EUI-64 of namespace 1; the low 4 bits count namespaces. Sampled like `serial_i`.
  input  logic [63:0]                      eui64_i,
  /// Requests to the memory controllers to zero blocks, one a channel, channel 0 in the low bits: see ns_axi_fill.
  output logic [NumChannels*AddrWidth-1:0] m_fill_addr,
  /// Blocks of 512 bytes.
  output logic [NumChannels*16-1:0]        m_fill_blocks,
  /// Valid.
  output logic [NumChannels-1:0]           m_fill_valid,
  /// Ready.
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
  /// See above.
  output logic [191:0]                     trace_sqe_o,
  /// See above.
  output logic [191:0]                     trace_cqe_o,
  /// See above.
  output logic [15:0]                      trace_irq_o,
  /// Trace of jobs, see nvme_trace_data.
  output logic [39:0]                      trace_job_o,
  /// See above.
  output logic [2*NumChannels:0]           trace_read_o,
  /// See above.
  output logic [2*NumChannels:0]           trace_data_o,
  /// See above.
  output logic [2*NumChannels:0]           trace_beat_o
);

  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));

  // ---------------------------------------------------------------- resets

  // rst_ni is that of power-on; all but what the memories' answers depend on is in the function's reset, too.
  logic rst_fn_n, stop, cut, reset_busy;
  logic [NumChannels-1:0] channel_begun, channel_open;
  logic [NumChannels-1:0] fill_open_q;  // a memory zeroes blocks

  nearside_reset #(
    .Timeout(ClockKhz < 8192 ? 8192 : ClockKhz)
  ) u_reset (
    .clk_i,
    .rst_ni,
    .request_i(flr_i || power_fail_i),
    .begun_i  (channel_begun != '0),
    .open_i   (channel_open != '0 || fill_open_q != '0),
    .stop_o   (stop),
    .reset_o  (cut),
    .done_o   (reset_done_o),
    .busy_o   (reset_busy)
  );

  assign rst_fn_n = rst_ni && !cut;

  // ---------------------------------------------------------------- control bus

  // BAR0, status, one nvm_delay a channel.
  localparam int unsigned NumLite = 2 + NumChannels;
  localparam int unsigned LiteNvme = 0;
  localparam int unsigned LiteStatus = 1;
  localparam int unsigned LiteDelay = 2;
  localparam logic [23:0] Bar4 = 24'h10_0000;
  localparam logic [31:0] DelayOffset = 32'h1_0000;  // in BAR4
  localparam logic [31:0] BlockSize = 32'h1000;

  function automatic logic [NumLite-1:0][23:0] lite_base();
    lite_base = '0;
    lite_base[LiteStatus] = Bar4;
    for (int unsigned c = 0; c < NumChannels; c++) begin
      lite_base[LiteDelay+c] = Bar4 + 24'(DelayOffset) + 24'(BlockSize) * 24'(c);
    end
  endfunction

  function automatic logic [NumLite-1:0][23:0] lite_mask();
    lite_mask = {NumLite{24'(BlockSize - 32'd1)}};
    lite_mask[LiteNvme] = 24'h00_FFFF;
  endfunction

  logic [23:0] lite_awaddr, lite_araddr;
  logic [31:0] lite_wdata;
  logic [3:0] lite_wstrb;
  logic [NumLite-1:0]
      lite_awvalid, lite_awready, lite_wvalid, lite_wready, lite_bvalid, lite_bready;
  logic [NumLite-1:0] lite_arvalid, lite_arready, lite_rvalid, lite_rready;
  logic [NumLite-1:0][1:0] lite_bresp, lite_rresp;
  logic [NumLite-1:0][31:0] lite_rdata;
  logic lite_busy;

  // The control bus and the PM window's entrance rest, too. While they do, they take nothing: an access waits for one cycle
  // until the clock runs.
  logic clk_lite, lite_awake_q, lite_input, s_lite_awready, s_lite_wready, s_lite_arready;

  // While the device is stopped, nobody is there either.
  logic lite_open, s_lite_bvalid, s_lite_rvalid;

  assign lite_open = lite_awake_q && !stop;
  assign lite_input = s_axil_awvalid || s_axil_wvalid || s_axil_arvalid;
  assign s_axil_awready = s_lite_awready && lite_open;
  assign s_axil_wready = s_lite_wready && lite_open;
  assign s_axil_arready = s_lite_arready && lite_open;
  assign s_axil_bvalid = s_lite_bvalid && !stop;
  assign s_axil_rvalid = s_lite_rvalid && !stop;

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
    .clk_i      (clk_lite),
    .rst_ni        (rst_fn_n),
    .s_awaddr_i (s_axil_awaddr),
    .s_awvalid_i(s_axil_awvalid && lite_open),
    .s_awready_o(s_lite_awready),
    .s_wdata_i  (s_axil_wdata),
    .s_wstrb_i  (s_axil_wstrb),
    .s_wvalid_i (s_axil_wvalid && lite_open),
    .s_wready_o (s_lite_wready),
    .s_bresp_o  (s_axil_bresp),
    .s_bvalid_o (s_lite_bvalid),
    .s_bready_i (s_axil_bready),
    .s_araddr_i (s_axil_araddr),
    .s_arvalid_i(s_axil_arvalid && lite_open),
    .s_arready_o(s_lite_arready),
    .s_rdata_o  (s_axil_rdata),
    .s_rresp_o  (s_axil_rresp),
    .s_rvalid_o (s_lite_rvalid),
    .s_rready_i (s_axil_rready),
    .m_awaddr_o (lite_awaddr),
    .m_awvalid_o(lite_awvalid),
    .m_awready_i(lite_awready),
    .m_wdata_o  (lite_wdata),
    .m_wstrb_o  (lite_wstrb),
    .m_wvalid_o (lite_wvalid),
    .m_wready_i (lite_wready),
    .m_bresp_i  (lite_bresp),
    .m_bvalid_i (lite_bvalid),
    .m_bready_o (lite_bready),
    .m_araddr_o (lite_araddr),
    .m_arvalid_o(lite_arvalid),
    .m_arready_i(lite_arready),
    .m_rdata_i  (lite_rdata),
    .m_rresp_i  (lite_rresp),
    .m_rvalid_i (lite_rvalid),
    .m_rready_o (lite_rready),
    .busy_o     (lite_busy)
  );

  logic unused_lite;
  assign unused_lite = ^{lite_awaddr[23:16], lite_araddr[23:16]};

  // ---------------------------------------------------------------- what the device is made of

  localparam int unsigned NumBlocks = 2 + NumChannels;
  localparam logic [31:0] BlockVersion = 32'h0001_0000;
  localparam logic [31:0] TypeNvmeCtrl = 32'd1;
  localparam logic [31:0] TypeNvmDelay = 32'd2;
  localparam logic [31:0] TypePmWindow = 32'd3;
  localparam logic [63:0] MediaSize = MediaBytes;

  function automatic logic [NumBlocks-1:0][7:0][31:0] blocks();
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
  endfunction

  status #(
    .ClockKhz   (ClockKhz),
    .MediaBytes (MediaBytes),
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .NumBlocks  (NumBlocks),
    .Blocks     (blocks())
  ) u_status (
    .clk_i         (clk_lite),
    .rst_ni        (rst_fn_n),
    .s_axil_awaddr (lite_awaddr[11:0]),
    .s_axil_awvalid(lite_awvalid[LiteStatus]),
    .s_axil_awready(lite_awready[LiteStatus]),
    .s_axil_wdata  (lite_wdata),
    .s_axil_wstrb  (lite_wstrb),
    .s_axil_wvalid (lite_wvalid[LiteStatus]),
    .s_axil_wready (lite_wready[LiteStatus]),
    .s_axil_bresp  (lite_bresp[LiteStatus]),
    .s_axil_bvalid (lite_bvalid[LiteStatus]),
    .s_axil_bready (lite_bready[LiteStatus]),
    .s_axil_araddr (lite_araddr[11:0]),
    .s_axil_arvalid(lite_arvalid[LiteStatus]),
    .s_axil_arready(lite_arready[LiteStatus]),
    .s_axil_rdata  (lite_rdata[LiteStatus]),
    .s_axil_rresp  (lite_rresp[LiteStatus]),
    .s_axil_rvalid (lite_rvalid[LiteStatus]),
    .s_axil_rready (lite_rready[LiteStatus])
  );

  // ---------------------------------------------------------------- NVMe controller

  logic [31:0] nvme_wait;
  logic nvme_alarm;
  logic [63:0] nvme_alarm_cycles;
  logic clk_nvme, nvme_busy, nvme_waits;
  logic msix_enable_q, msix_mask_q, msix_changed_q;
  ax_t host_aw, host_ar;
  w_t host_w;
  b_t host_b;
  r_t host_r;
  logic host_aw_valid, host_w_valid, host_b_ready, host_ar_valid, host_r_ready;
  ax_t [NumChannels-1:0] mem_aw, mem_ar;
  w_t [NumChannels-1:0] mem_w;
  b_t [NumChannels-1:0] mem_b;
  r_t [NumChannels-1:0] mem_r;
  logic [NumChannels-1:0]
      mem_aw_valid, mem_aw_ready, mem_w_valid, mem_w_ready, mem_b_valid, mem_b_ready;
  logic [NumChannels-1:0] mem_ar_valid, mem_ar_ready, mem_r_valid, mem_r_ready;

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

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) fill_open_q <= '0;
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

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
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
    .en_i(nvme_busy || msix_changed_q || lite_awvalid[LiteNvme] || lite_wvalid[LiteNvme] || lite_arvalid[LiteNvme]),
    .clk_o(clk_nvme)
  );

  nvme_ctrl #(
    .NumIoQueues (NumIoQueues),
    .QueueEntries(QueueEntries),
    .NumSlots    (NumSlots),
    .NumChannels (NumChannels),
    .Granule     (Granule),
    .NumWalkers  (NumWalkers),
    .NumNamespaces(NumNamespaces),
    .NsBlocks    (NsBlocks),
    .MediaBytes  (MediaBytes),
    .HostTimeout (25 * ClockKhz),
    .ClockKhz    (ClockKhz)
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
    .msix_enable_i    (msix_enable_q),
    .msix_mask_i      (msix_mask_q),
    .s_axil_awaddr    (lite_awaddr[15:0]),
    .s_axil_awprot    ('0),
    .s_axil_awvalid   (lite_awvalid[LiteNvme]),
    .s_axil_awready   (lite_awready[LiteNvme]),
    .s_axil_wdata     (lite_wdata),
    .s_axil_wstrb     (lite_wstrb),
    .s_axil_wvalid    (lite_wvalid[LiteNvme]),
    .s_axil_wready    (lite_wready[LiteNvme]),
    .s_axil_bresp     (lite_bresp[LiteNvme]),
    .s_axil_bvalid    (lite_bvalid[LiteNvme]),
    .s_axil_bready    (lite_bready[LiteNvme]),
    .s_axil_araddr    (lite_araddr[15:0]),
    .s_axil_arprot    ('0),
    .s_axil_arvalid   (lite_arvalid[LiteNvme]),
    .s_axil_arready   (lite_arready[LiteNvme]),
    .s_axil_rdata     (lite_rdata[LiteNvme]),
    .s_axil_rresp     (lite_rresp[LiteNvme]),
    .s_axil_rvalid    (lite_rvalid[LiteNvme]),
    .s_axil_rready    (lite_rready[LiteNvme]),
    .m_host_aw_o      (host_aw),
    .m_host_aw_valid_o(host_aw_valid),
    .m_host_aw_ready_i(m_axi_host_awready),
    .m_host_w_o       (host_w),
    .m_host_w_valid_o (host_w_valid),
    .m_host_w_ready_i (m_axi_host_wready),
    .m_host_b_i       (host_b),
    .m_host_b_valid_i (m_axi_host_bvalid && !stop),
    .m_host_b_ready_o (host_b_ready),
    .m_host_ar_o      (host_ar),
    .m_host_ar_valid_o(host_ar_valid),
    .m_host_ar_ready_i(m_axi_host_arready),
    .m_host_r_i       (host_r),
    .m_host_r_valid_i (m_axi_host_rvalid && !stop),
    .m_host_r_ready_o (host_r_ready),
    .m_mem_aw_o       (mem_aw),
    .m_mem_aw_valid_o (mem_aw_valid),
    .m_mem_aw_ready_i (mem_aw_ready),
    .m_mem_w_o        (mem_w),
    .m_mem_w_valid_o  (mem_w_valid),
    .m_mem_w_ready_i  (mem_w_ready),
    .m_mem_b_i        (mem_b),
    .m_mem_b_valid_i  (mem_b_valid),
    .m_mem_b_ready_o  (mem_b_ready),
    .m_mem_ar_o       (mem_ar),
    .m_mem_ar_valid_o (mem_ar_valid),
    .m_mem_ar_ready_i (mem_ar_ready),
    .m_mem_r_i        (mem_r),
    .m_mem_r_valid_i  (mem_r_valid),
    .m_mem_r_ready_o  (mem_r_ready),
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

  // The controller's host port ends in register slices of its own. While the device is stopped, it asks for nothing and
  // takes whatever still comes.
  assign m_axi_host_awvalid = host_aw_valid && !stop;
  assign m_axi_host_wvalid = host_w_valid && !stop;
  assign m_axi_host_arvalid = host_ar_valid && !stop;
  assign m_axi_host_bready = host_b_ready || stop;
  assign m_axi_host_rready = host_r_ready || stop;
  assign m_axi_host_awid = host_aw.id;
  assign m_axi_host_awaddr = host_aw.addr;
  assign m_axi_host_awlen = host_aw.len;
  assign m_axi_host_awsize = host_aw.size;
  assign m_axi_host_awburst = host_aw.burst;
  assign m_axi_host_wdata = host_w.data;
  assign m_axi_host_wstrb = host_w.strb;
  assign m_axi_host_wlast = host_w.last;
  assign host_b.id = m_axi_host_bid;
  assign host_b.resp = m_axi_host_bresp;
  assign m_axi_host_arid = host_ar.id;
  assign m_axi_host_araddr = host_ar.addr;
  assign m_axi_host_arlen = host_ar.len;
  assign m_axi_host_arsize = host_ar.size;
  assign m_axi_host_arburst = host_ar.burst;
  assign host_r.id = m_axi_host_rid;
  assign host_r.resp = m_axi_host_rresp;
  assign host_r.last = m_axi_host_rlast;
  assign host_r.data = m_axi_host_rdata;

  // ---------------------------------------------------------------- PM window

  ax_t [NumChannels-1:0] pm_aw, pm_ar;
  w_t [NumChannels-1:0] pm_w;
  b_t [NumChannels-1:0] pm_b;
  r_t [NumChannels-1:0] pm_r;
  logic [NumChannels-1:0] pm_aw_valid, pm_aw_ready, pm_w_valid, pm_w_ready, pm_b_valid, pm_b_ready;
  logic [NumChannels-1:0] pm_ar_valid, pm_ar_ready, pm_r_valid, pm_r_ready;
  ax_t s_pm_aw, s_pm_ar;
  w_t s_pm_w;
  b_t s_pm_b;
  r_t s_pm_r;

  assign s_pm_aw.id = IdWidth'(s_axi_pm_awid);
  assign s_pm_aw.addr = s_axi_pm_awaddr;
  assign s_pm_aw.len = s_axi_pm_awlen;
  assign s_pm_aw.size = s_axi_pm_awsize;
  assign s_pm_aw.burst = s_axi_pm_awburst;
  assign s_axi_pm_bid = s_pm_b.id[PmIdWidth-1:0];
  assign s_axi_pm_bresp = s_pm_b.resp;
  assign s_pm_ar.id = IdWidth'(s_axi_pm_arid);
  assign s_pm_ar.addr = s_axi_pm_araddr;
  assign s_pm_ar.len = s_axi_pm_arlen;
  assign s_pm_ar.size = s_axi_pm_arsize;
  assign s_pm_ar.burst = s_axi_pm_arburst;
  assign s_axi_pm_rid = s_pm_r.id[PmIdWidth-1:0];
  assign s_axi_pm_rdata = s_pm_r.data;
  assign s_axi_pm_rresp = s_pm_r.resp;
  assign s_axi_pm_rlast = s_pm_r.last;

  // A host that is dead leaves bursts without their data. They are completed with beats that write nothing, since data of
  // the NVMe controller may stand behind them.
  logic pm_aw_valid_in, pm_aw_ready_in, pm_w_valid_in, pm_w_ready_in, pm_w_fill, pm_w_last;
  logic pm_b_valid_in, pm_b_ready_in, pm_ar_valid_in, pm_ar_ready_in, pm_r_valid_in, pm_r_ready_in;

  ns_axi_drain #(
    .CountBits(12)
  ) u_pm_drain (
    .clk_i,
    .rst_ni      (rst_fn_n),
    .cut_i       (stop),
    .cut_o       (),
    .open_o      (),
    .s_aw_valid_i(s_axi_pm_awvalid),
    .s_aw_ready_o(s_axi_pm_awready),
    .s_aw_len_i  (s_axi_pm_awlen),
    .s_w_valid_i (s_axi_pm_wvalid),
    .s_w_ready_o (s_axi_pm_wready),
    .s_w_last_i  (s_axi_pm_wlast),
    .s_b_valid_o (s_axi_pm_bvalid),
    .s_b_ready_i (s_axi_pm_bready),
    .s_ar_valid_i(s_axi_pm_arvalid),
    .s_ar_ready_o(s_axi_pm_arready),
    .s_r_valid_o (s_axi_pm_rvalid),
    .s_r_ready_i (s_axi_pm_rready),
    .m_aw_valid_o(pm_aw_valid_in),
    .m_aw_ready_i(pm_aw_ready_in),
    .m_w_valid_o (pm_w_valid_in),
    .m_w_ready_i (pm_w_ready_in),
    .m_w_fill_o  (pm_w_fill),
    .m_w_last_o  (pm_w_last),
    .m_b_valid_i (pm_b_valid_in),
    .m_b_ready_o (pm_b_ready_in),
    .m_ar_valid_o(pm_ar_valid_in),
    .m_ar_ready_i(pm_ar_ready_in),
    .m_r_valid_i (pm_r_valid_in),
    .m_r_ready_o (pm_r_ready_in),
    .m_r_last_i  (s_pm_r.last)
  );

  assign s_pm_w.data = s_axi_pm_wdata;
  assign s_pm_w.strb = pm_w_fill ? '0 : s_axi_pm_wstrb;
  assign s_pm_w.last = pm_w_last;

  // Transactions of the PM window between address and last response.
  logic [15:0] pm_open_q;
  logic [1:0] pm_starts, pm_ends;
  logic pm_r_end;
  logic clk_pm, pm_awake_q, pm_input, s_pm_aw_ready, s_pm_w_ready, s_pm_ar_ready;

  assign pm_r_end = pm_r_valid_in && pm_r_ready_in && s_pm_r.last;
  assign pm_starts = 2'(pm_aw_valid_in && pm_aw_ready_in) + 2'(pm_ar_valid_in && pm_ar_ready_in);
  assign pm_ends = 2'(pm_b_valid_in && pm_b_ready_in) + 2'(pm_r_end);
  assign pm_input = s_axi_pm_awvalid || s_axi_pm_wvalid || s_axi_pm_arvalid;
  assign pm_aw_ready_in = s_pm_aw_ready && pm_awake_q;
  assign pm_w_ready_in = s_pm_w_ready && pm_awake_q;
  assign pm_ar_ready_in = s_pm_ar_ready && pm_awake_q;

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
    .M        (NumChannels),
    .Granule  (Granule),
    .Bytes    (MediaBytes),
    .OrderBits(PmIdWidth)
  ) u_pm_demux (
    .clk_i       (clk_pm),
    .rst_ni        (rst_fn_n),
    .s_aw_i      (s_pm_aw),
    .s_aw_valid_i(pm_aw_valid_in && pm_awake_q),
    .s_aw_ready_o(s_pm_aw_ready),
    .s_w_i       (s_pm_w),
    .s_w_valid_i (pm_w_valid_in && pm_awake_q),
    .s_w_ready_o (s_pm_w_ready),
    .s_b_o       (s_pm_b),
    .s_b_valid_o (pm_b_valid_in),
    .s_b_ready_i (pm_b_ready_in),
    .s_ar_i      (s_pm_ar),
    .s_ar_valid_i(pm_ar_valid_in && pm_awake_q),
    .s_ar_ready_o(s_pm_ar_ready),
    .s_r_o       (s_pm_r),
    .s_r_valid_o (pm_r_valid_in),
    .s_r_ready_i (pm_r_ready_in),
    .m_aw_o      (pm_aw),
    .m_aw_valid_o(pm_aw_valid),
    .m_aw_ready_i(pm_aw_ready),
    .m_w_o       (pm_w),
    .m_w_valid_o (pm_w_valid),
    .m_w_ready_i (pm_w_ready),
    .m_b_i       (pm_b),
    .m_b_valid_i (pm_b_valid),
    .m_b_ready_o (pm_b_ready),
    .m_ar_o      (pm_ar),
    .m_ar_valid_o(pm_ar_valid),
    .m_ar_ready_i(pm_ar_ready),
    .m_r_i       (pm_r),
    .m_r_valid_i (pm_r_valid),
    .m_r_ready_o (pm_r_ready)
  );

  // ---------------------------------------------------------------- channels

  logic [NumChannels-1:0] channel_busy;

  // Mover c of the controller touches channel c only, so its requests need no crossbar, just their local address.
  function automatic ax_t to_local(ax_t ax);
    logic [AddrWidth-1:0] granule;
    granule = ax.addr >> GranuleBits;
    to_local = ax;
    to_local.addr = ((granule >> ChannelBits) << GranuleBits) | (ax.addr & AddrWidth'(Granule - 1));
  endfunction

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    b_t [1:0] b;
    r_t [1:0] r;

    assign pm_b[c] = b[0];
    assign mem_b[c] = b[1];
    assign pm_r[c] = r[0];
    assign mem_r[c] = r[1];

    nearside_channel #(
      .ReadSlots  (DelayReadSlots),
      .WriteSlots (DelayWriteSlots),
      .BufferBeats(DelayBufferBeats),
      .FillInside (FillInside)
    ) u_channel (
      .clk_i,
      .rst_ni        (rst_fn_n),
      .por_ni        (rst_ni),
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
      .s_aw_i        ({to_local(mem_aw[c]), pm_aw[c]}),
      .s_aw_valid_i  ({mem_aw_valid[c], pm_aw_valid[c]}),
      .s_aw_ready_o  ({mem_aw_ready[c], pm_aw_ready[c]}),
      .s_w_i         ({mem_w[c], pm_w[c]}),
      .s_w_valid_i   ({mem_w_valid[c], pm_w_valid[c]}),
      .s_w_ready_o   ({mem_w_ready[c], pm_w_ready[c]}),
      .s_b_o         (b),
      .s_b_valid_o   ({mem_b_valid[c], pm_b_valid[c]}),
      .s_b_ready_i   ({mem_b_ready[c], pm_b_ready[c]}),
      .s_ar_i        ({to_local(mem_ar[c]), pm_ar[c]}),
      .s_ar_valid_i  ({mem_ar_valid[c], pm_ar_valid[c]}),
      .s_ar_ready_o  ({mem_ar_ready[c], pm_ar_ready[c]}),
      .s_r_o         (r),
      .s_r_valid_o   ({mem_r_valid[c], pm_r_valid[c]}),
      .s_r_ready_i   ({mem_r_ready[c], pm_r_ready[c]}),
      .s_axil_awaddr (lite_awaddr[11:0]),
      .s_axil_awvalid(lite_awvalid[LiteDelay+c]),
      .s_axil_awready(lite_awready[LiteDelay+c]),
      .s_axil_wdata  (lite_wdata),
      .s_axil_wstrb  (lite_wstrb),
      .s_axil_wvalid (lite_wvalid[LiteDelay+c]),
      .s_axil_wready (lite_wready[LiteDelay+c]),
      .s_axil_bresp  (lite_bresp[LiteDelay+c]),
      .s_axil_bvalid (lite_bvalid[LiteDelay+c]),
      .s_axil_bready (lite_bready[LiteDelay+c]),
      .s_axil_araddr (lite_araddr[11:0]),
      .s_axil_arvalid(lite_arvalid[LiteDelay+c]),
      .s_axil_arready(lite_arready[LiteDelay+c]),
      .s_axil_rdata  (lite_rdata[LiteDelay+c]),
      .s_axil_rresp  (lite_rresp[LiteDelay+c]),
      .s_axil_rvalid (lite_rvalid[LiteDelay+c]),
      .s_axil_rready (lite_rready[LiteDelay+c]),
      .m_axi_awid    (m_axi_ddr_awid[c*IdWidth+:IdWidth]),
      .m_axi_awaddr  (m_axi_ddr_awaddr[c*AddrWidth+:AddrWidth]),
      .m_axi_awlen   (m_axi_ddr_awlen[c*8+:8]),
      .m_axi_awsize  (m_axi_ddr_awsize[c*3+:3]),
      .m_axi_awburst (m_axi_ddr_awburst[c*2+:2]),
      .m_axi_awvalid (m_axi_ddr_awvalid[c]),
      .m_axi_awready (m_axi_ddr_awready[c]),
      .m_axi_wdata   (m_axi_ddr_wdata[c*DataWidth+:DataWidth]),
      .m_axi_wstrb   (m_axi_ddr_wstrb[c*StrbWidth+:StrbWidth]),
      .m_axi_wlast   (m_axi_ddr_wlast[c]),
      .m_axi_wvalid  (m_axi_ddr_wvalid[c]),
      .m_axi_wready  (m_axi_ddr_wready[c]),
      .m_axi_bid     (m_axi_ddr_bid[c*IdWidth+:IdWidth]),
      .m_axi_bresp   (m_axi_ddr_bresp[c*2+:2]),
      .m_axi_bvalid  (m_axi_ddr_bvalid[c]),
      .m_axi_bready  (m_axi_ddr_bready[c]),
      .m_axi_arid    (m_axi_ddr_arid[c*IdWidth+:IdWidth]),
      .m_axi_araddr  (m_axi_ddr_araddr[c*AddrWidth+:AddrWidth]),
      .m_axi_arlen   (m_axi_ddr_arlen[c*8+:8]),
      .m_axi_arsize  (m_axi_ddr_arsize[c*3+:3]),
      .m_axi_arburst (m_axi_ddr_arburst[c*2+:2]),
      .m_axi_arvalid (m_axi_ddr_arvalid[c]),
      .m_axi_arready (m_axi_ddr_arready[c]),
      .m_axi_rid     (m_axi_ddr_rid[c*IdWidth+:IdWidth]),
      .m_axi_rdata   (m_axi_ddr_rdata[c*DataWidth+:DataWidth]),
      .m_axi_rresp   (m_axi_ddr_rresp[c*2+:2]),
      .m_axi_rlast   (m_axi_ddr_rlast[c]),
      .m_axi_rvalid  (m_axi_ddr_rvalid[c]),
      .m_axi_rready  (m_axi_ddr_rready[c])
    );
  end

  // ---------------------------------------------------------------- idle

  // Transactions of the NVMe controller keep nvme_busy at 1, those of the PM window pm_awake_q.
  // While the memories zero what the controller waits for, nothing changes there either. Something may be on its way in it for
  // a few cycles without a sign of it, so that has to last.
  logic input_valid, idle_q;
  logic [4:0] waits_q;

  assign input_valid = lite_input || pm_input || m_axi_host_bvalid || m_axi_host_rvalid ||
      m_axi_ddr_bvalid != '0 || m_axi_ddr_rvalid != '0 || m_fill_done != '0 ||
      {msix_enable_i, msix_mask_i} != {msix_enable_q, msix_mask_q};
  assign idle_o = idle_q;

  // What is said of the time to come is some cycles old; after cycles were left out it must be worked out again.
  localparam logic [31:0] Old = 32'd8;
  logic rest;
  logic [31:0] wait_q;
  logic [2:0] stale_q;
  assign rest = !(channel_busy != '0 || lite_busy || lite_awake_q || msix_changed_q || pm_awake_q ||
                  pm_open_q != '0 || input_valid || reset_busy);
  assign wait_o = wait_q;

  // What has set its time was busy for some cycles more, so this one says so in time.
  logic [63:0] wake_q;
  assign wake_o = wake_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) wake_q <= '1;
    else if (!nvme_alarm) wake_q <= '1;
    else wake_q <= (nvme_alarm_cycles > cycles_d) ? nvme_alarm_cycles - cycles_d : '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idle_q  <= 1'b0;
      waits_q <= '0;
      wait_q  <= '0;
      stale_q <= '1;
    end else begin
      if (!nvme_waits || input_valid || reset_busy) waits_q <= '0;
      else if (waits_q != '1) waits_q <= waits_q + 1'b1;
      idle_q <= rest && (!nvme_busy || waits_q == '1);
      wait_q <= (rest && nvme_busy && nvme_wait > Old && stale_q == '0 && skipped_i == '0) ? nvme_wait - Old : '0;
      stale_q <= (skipped_i != '0) ? '1 : stale_q - 3'(stale_q != '0);
    end
  end

  if (NumChannels < 1 || NumChannels > 16 || (NumChannels & (NumChannels - 1)) != 0) begin : gen_bad_channels
    $error("nearside_top: NumChannels must be 1, 2, 4, 8 or 16");
  end
  if (PmIdWidth < 1 || PmIdWidth > IdWidth - 1) begin : gen_bad_pm_id_width
    $error("nearside_top: PmIdWidth must be 1 to 7");
  end

  `NS_ASSERT(pm_counted, pm_open_q < 16'h8000)
  `NS_ASSERT(pm_awake_for_responses, !((pm_b_valid | pm_r_valid) != '0) || pm_awake_q)
  `NS_ASSERT(nvme_awake_for_responses,
             !(m_axi_host_bvalid || m_axi_host_rvalid) || nvme_busy || stop)
  `NS_ASSERT(delays_awake_for_responses,
             ((m_axi_ddr_bvalid | m_axi_ddr_rvalid) & ~channel_busy & ~channel_open) == '0)
  for (genvar c = 0; c < NumChannels; c++) begin : gen_assert
    `NS_ASSERT(mover_keeps_to_its_channel_aw,
               !mem_aw_valid[c] || (mem_aw[c].addr >> GranuleBits & AddrWidth'(NumChannels - 1)) == AddrWidth'(c))
    `NS_ASSERT(mover_keeps_to_its_channel_ar,
               !mem_ar_valid[c] || (mem_ar[c].addr >> GranuleBits & AddrWidth'(NumChannels - 1)) == AddrWidth'(c))
  end

endmodule
