// NVMe 1.4 controller without firmware: registers, doorbells, MSI-X, command fetch, decode, admin commands, data path
// and completions, all in hardware.
//
// It assumes that the host port ends every access (ns_axi_timeout), keeps posted writes in order and answers reads with one ID in order, that `m_mem_*`
// serve addresses from 0 to MediaBytes-1, and that its clock runs while `busy_o` is 1 or an AXI4-Lite channel has
// something for it (see `busy_o`). It has no PCI configuration space: MSI-X enable and mask come from outside.
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
  /// 64-byte beats of media reads that the controller holds or has under way in each channel: see nvme_data.
  parameter int unsigned MediaReadBeats = 512,
  /// Reads of the media under way in each channel.
  parameter int unsigned MediaReads = 32,
  /// Bytes of a write burst to the media.
  parameter int unsigned MediaWriteBytes = 1024,
  /// Write bursts under way in each channel.
  parameter int unsigned MediaWrites = 32,
  /// Cycles after which a host access without progress is given up (ns_axi_timeout behind `m_host`), and that the first command of a
  /// fused operation waits for its partner. 25 ms at 250 MHz.
  parameter int unsigned HostTimeout = 6_250_000,
  /// Namespaces, 1 to 16: one after the other on the media, each from a multiple of 4 KiB on.
  parameter int unsigned NumNamespaces = 1,
  /// Their sizes in blocks of 512 bytes, 64 bits each, that of namespace 1 in the low bits; 0 is an inactive namespace.
  /// One namespace without a size takes the whole media.
  parameter ns_blocks_t NsBlocks = '0,
  /// Bytes of the media, a multiple of 512.
  parameter longint unsigned MediaBytes = 64'h1_0000_0000,
  /// Blocks that a Dataset Management command should deallocate at most (DMSL, DMRSL), in at most 255 ranges (DMRL); 0:
  /// nothing is recommended. The memories zero 512 KiB a channel at a time; this is what a host may have to wait for. More
  /// takes longer.
  parameter int unsigned MaxDeallocate = 131_072,
  /// 0: all zeros go through the movers, and `fill_*` rest.
  parameter bit Fills = 1'b1,
  /// PCI vendor and subsystem vendor ID as in the function's configuration space.
  parameter logic [15:0] VendorId = 16'h4E53,
  /// Clock in kHz: the unit of what the host is told of time.
  parameter int unsigned ClockKhz = 250_000,
  /// Engines beside it, 0 to 8.
  parameter int unsigned NumEngines = 0,
  /// Their I/O commands.
  parameter engine_routes_t Routes = '0,
  // Ports come in arrays, which have an element at least.
  localparam int unsigned EnginePorts = (NumEngines == 0) ? 1 : NumEngines
) (
  input logic clk_i,
  input logic rst_ni,
  /// 1 while a further clock edge could change the state without new input. From registers only. The clock may be
  /// gated with `busy_o || s_axil_awvalid || s_axil_wvalid || s_axil_arvalid`; responses keep `busy_o` at 1.
  output logic busy_o,
  /// Nothing but the time changes in so many cycles to come, up to six fewer, without new input; 0 if more does. For a simulation,
  /// which then may leave them out of `clk_i`; not in the five cycles after it has done so. From registers only.
  output logic [31:0] wait_o,
  /// From a register: busy_o becomes 1 by itself.
  output logic        alarm_o,
  /// From a register: when cycles_i is this.
  output logic [63:0] alarm_cycles_o,
  /// Nothing changes before a memory has zeroed what it was asked to, an engine has ended its command, or something comes from outside; true soon after that is
  /// so, or during a few cycles in which something is on its way from one part to the next.
  output logic waiting_o,

  /// Begin no further burst on the memory side, because reset follows, or power is failing. What has begun there ends without
  /// the host.
  input  logic quiesce_i,
  /// From registers: a burst on the memory side has begun, or is to begin in the next cycle, and has not ended. Its clock has to
  /// run.
  output logic media_busy_o,

  /// Serial number, 20 characters, the first one in the high bits, padded with spaces. From a register that changes only in reset.
  input logic [159:0] serial_i,
  /// EUI-64 of namespace 1; its low 4 bits are 0. From a register that changes only in reset.
  input logic [63:0] eui64_i,
  /// Cycles since power-on. From a register on the ungated clock.
  input logic [63:0] cycles_i,
  /// Composite temperature in kelvins. From a register on the ungated clock.
  input logic [15:0] temperature_i,
  /// Each changes when Identify Namespace of its namespace has changed from outside, namespace 1 first. From registers on
  /// the ungated clock.
  input logic [NumNamespaces-1:0] ns_changed_i,
  /// MSI-X of the device: the table is in BAR0, and messages leave behind completion queue entries.
  output to_msix_t msix_o,
  /// From there.
  input from_msix_t msix_i,

  /// BAR0.
  ns_axil_if.slave s_axil,


  /// Host master. A write's response says that the link has accepted it.
  ns_axi_if.master m_host,


  /// Memory masters, one a channel, ID 0, media addresses (not local to the channel).
  ns_axi_if.master m_mem[NumChannels],


  /// I/O commands of the engines.
  nvme_engine_if.controller m_engine[EnginePorts],

  /// Requests to the memories to zero blocks, one a channel: address in the channel, a multiple of 512.
  output logic [NumChannels-1:0][63:0] fill_addr_o,
  /// Blocks of 512 bytes.
  output logic [NumChannels-1:0][15:0] fill_blocks_o,
  output logic [NumChannels-1:0] fill_valid_o,
  input logic [NumChannels-1:0] fill_ready_i,
  /// End what is under way at a block's end.
  output logic fill_stop_o,
  /// It has ended; for one cycle.
  input logic [NumChannels-1:0] fill_done_i,
  /// With fill_done_i: not all could be written.
  input logic [NumChannels-1:0] fill_error_i,

  /// Trace of commands, see nvme_trace. From registers; may stay unconnected.
  output logic [63:0] trace_event_o,
  output logic [191:0] trace_sqe_o,
  output logic [191:0] trace_cqe_o,
  output logic [15:0] trace_irq_o,
  /// Trace of jobs, see nvme_trace_data.
  output logic [39:0] trace_job_o,
  output logic [2*NumChannels:0] trace_read_o,
  output logic [2*NumChannels:0] trace_data_o,
  output logic [2*NumChannels:0] trace_beat_o
);

  localparam int unsigned NumHost = NumChannels + 2;  // movers, lists and admin buffer; the last is the front end's
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
    .NumIoQueues (NumIoQueues),
    .QueueEntries(QueueEntries),
    .NumSlots    (NumSlots),
    .FetchDepth  (FetchDepth),
    .NumNamespaces(NumNamespaces),
    .NsBlocks    (NsBlocks),
    .MediaBytes  (MediaBytes),
    .MaxDeallocate(MaxDeallocate),
    .VendorId    (VendorId),
    .HostTimeout (HostTimeout),
    .ClockKhz    (ClockKhz),
    .NumEngines  (NumEngines),
    .Routes      (Routes)
  ) u_front (
    .clk_i,
    .rst_ni,
    .busy_o           (front_busy),
    .serial_i,
    .eui64_i,
    .wait_o           (front_wait),
    .alarm_o,
    .alarm_cycles_o,
    .waiting_o          (front_waiting),
    .cycles_i,
    .temperature_i,
    .ns_changed_i,
    .msix_o,
    .msix_i,
    .s_axil,
    .m_host           (host[Front]),
    .data_stop_o      (data_stop),
    .data_abort_valid_o  (abort_valid),
    .data_abort_slot_o(abort_slot),
    .data_abort_current_o   (abort_current),
    .data_abort_deleted_o(abort_deleted),
    .data_abort_ready_i  (abort_ready),
    .data_abort_found_i  (abort_found),
    .data_cmd_o       (data_cmd),
    .data_cmd_valid_o (data_cmd_valid),
    .data_cmd_ready_i (data_cmd_ready),
    .data_done_i      (data_done),
    .data_done_valid_i(data_done_valid),
    .data_done_ready_o(data_done_ready),
    .s_adm            (adm),
    .m_engine,
    .trace_event_o,
    .trace_sqe_o,
    .trace_cqe_o,
    .trace_irq_o
  );

  nvme_data #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .NumSlots   (NumSlots),
    .NumWalkers (NumWalkers),
    .NumSglWalkers(NumSglWalkers),
    .MediaReadBeats(MediaReadBeats),
    .MediaReads (MediaReads),
    .MediaWriteBytes(MediaWriteBytes),
    .MediaWrites(MediaWrites),
    .NumNamespaces(NumNamespaces),
    .NsBlocks   (NsBlocks),
    .MediaBytes (MediaBytes),
    .Fills      (Fills)
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
