// SPDX-License-Identifier: Apache-2.0

// Control bus of the device: connects BAR0 and BAR4 to the registers of the blocks. It contains the
// status block and the quality-of-service registers. docs/architecture.md, "BARs", has the map.
//
// While it is idle, it accepts nothing: an access waits for one cycle until the clock runs.
module nearside_control
  import nearside_pkg::*;
  import qos_pkg::*;
#(
  /// See nearside_shell, from here on.
  parameter int unsigned     ClockKhz      = 250_000,
  parameter int unsigned     NumIoQueues   = 16,
  parameter int unsigned     QueueEntries  = 1024,
  parameter int unsigned     NumChannels   = 2,
  parameter int unsigned     Granule       = 4096,
  parameter longint unsigned MediaBytes    = 64'h4000_0000,
  parameter int unsigned     BufferBeats   = 512,
  parameter int unsigned     LocalChannels = 0,
  parameter int unsigned     LocalGranule  = 4096,
  parameter longint unsigned LocalBytes    = 0,
  parameter int unsigned     LocalBufferBeats = 512,
  parameter int unsigned     NumEngines    = 0,
  localparam int unsigned    Slots         = (NumEngines == 0) ? 1 : NumEngines,
  parameter engine_t [Slots-1:0] Engines   = '0,
  localparam int unsigned    Channels      = NumChannels + LocalChannels
) (
  input  logic clk_i,
  /// Reset of the function.
  input  logic rst_ni,
  /// The host is gone. From a register.
  input  logic stop_i,
  /// An access arrives.
  output logic input_o,
  /// A further clock edge could change the state without new input.
  output logic busy_o,

  /// BAR0 at 0, BAR4 at 1 MiB.
  ns_axil_if.slave s_axil,
  /// Registers of the NVMe controller.
  ns_axil_if.master m_nvme,
  /// The nvm_delay of each channel: the storage's, then the local memory's.
  ns_axil_if.master m_delay[Channels],
  /// The engines.
  ns_axil_if.master m_engine[Slots],

  /// Credits and weights of PM window, NVMe controller and engines. From registers.
  output qos_t [1+NumEngines:0] qos_o
);

  localparam int unsigned NumLite = 3 + Channels + NumEngines;
  localparam int unsigned LiteNvme = 0;
  localparam int unsigned LiteStatus = 1;
  localparam int unsigned LiteQos = 2;
  localparam int unsigned LiteDelay = 3;
  localparam int unsigned LiteEngine = 3 + Channels;
  localparam logic [23:0] Bar4 = 24'h10_0000;
  localparam logic [31:0] QosOffset = 32'h1000;  // in BAR4
  localparam logic [31:0] DelayOffset = 32'h1_0000;  // in BAR4
  localparam logic [31:0] PageOffset = 32'h4_0000;  // in BAR4
  localparam logic [31:0] BlockSize = 32'h1000;

  function automatic logic [NumLite-1:0][23:0] lite_base();
    lite_base = '0;
    lite_base[LiteStatus] = Bar4;
    lite_base[LiteQos] = Bar4 + 24'(QosOffset);
    for (int unsigned c = 0; c < Channels; c++) begin
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

  // ---------------------------------------------------------------- bus

  ns_axil_if awake_bus ();
  ns_axil_if lite[NumLite] ();
  logic clk, awake_q, accepting, demux_busy;

  assign accepting = awake_q && !stop_i;
  assign input_o = s_axil.awvalid || s_axil.wvalid || s_axil.arvalid;
  assign busy_o = demux_busy || awake_q;
  assign awake_bus.awaddr = s_axil.awaddr;
  assign awake_bus.awvalid = s_axil.awvalid && accepting;
  assign s_axil.awready = awake_bus.awready && accepting;
  assign awake_bus.wdata = s_axil.wdata;
  assign awake_bus.wstrb = s_axil.wstrb;
  assign awake_bus.wvalid = s_axil.wvalid && accepting;
  assign s_axil.wready = awake_bus.wready && accepting;
  assign s_axil.bresp = awake_bus.bresp;
  assign s_axil.bvalid = awake_bus.bvalid && !stop_i;
  assign awake_bus.bready = s_axil.bready;
  assign awake_bus.araddr = s_axil.araddr;
  assign awake_bus.arvalid = s_axil.arvalid && accepting;
  assign s_axil.arready = awake_bus.arready && accepting;
  assign s_axil.rdata = awake_bus.rdata;
  assign s_axil.rresp = awake_bus.rresp;
  assign s_axil.rvalid = awake_bus.rvalid && !stop_i;
  assign awake_bus.rready = s_axil.rready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) awake_q <= 1'b0;
    else awake_q <= input_o || demux_busy;
  end

  ns_clock_gate u_gate (
    .clk_i,
    .en_i (awake_q),
    .clk_o(clk)
  );

  ns_axil_demux #(
    .N   (NumLite),
    .Base(lite_base()),
    .Mask(lite_mask())
  ) u_demux (
    .clk_i (clk),
    .rst_ni,
    .s_axil(awake_bus),
    .m_axil(lite),
    .busy_o(demux_busy)
  );

  ns_axil_connect u_nvme (
    .s_axil(lite[LiteNvme]),
    .m_axil(m_nvme)
  );
  for (genvar c = 0; c < Channels; c++) begin : gen_delay
    ns_axil_connect u_connect (
      .s_axil(lite[LiteDelay+c]),
      .m_axil(m_delay[c])
    );
  end
  for (genvar e = 0; e < NumEngines; e++) begin : gen_engine
    ns_axil_connect u_connect (
      .s_axil(lite[LiteEngine+e]),
      .m_axil(m_engine[e])
    );

    if (Engines[e].size < BlockSize || (Engines[e].offset & (Engines[e].size - 32'd1)) != '0) begin : gen_bad_map
      $error(
          "nearside_control: an engine's registers must be a power of two of at least 4096 bytes, aligned to that"
      );
    end
  end

  // ---------------------------------------------------------------- status block

  localparam int unsigned NumMemories = (LocalChannels == 0) ? 1 : 2;
  localparam int unsigned NumPages = unsigned'($countones(
      pages((MaxEngines * $bits(engine_t))'(Engines), NumEngines)
  ));
  localparam int unsigned NumBlocks = 3 + NumMemories + Channels + NumEngines + NumPages;
  localparam logic [31:0] BlockVersion = 32'h0001_0000;
  localparam logic [31:0] TypeNvmeCtrl = 32'd1;
  localparam logic [31:0] TypeNvmDelay = 32'd2;
  localparam logic [31:0] TypePmWindow = 32'd3;
  localparam logic [31:0] TypeQos = 32'd4;
  localparam logic [31:0] TypeCommandPage = 32'd5;
  localparam logic [31:0] TypeMemory = 32'd6;
  localparam logic [63:0] WindowSize = window_bytes(MediaBytes, LocalBytes);

  // Words of a block from right to left: type, version, instance, BAR, offset, size, capabilities.
  // A memory's address in the PM window is in units of 4 KiB.
  function automatic logic [7:0][31:0] memory(logic [31:0] number, longint unsigned base,
                                              longint unsigned bytes, logic [15:0] first,
                                              logic [15:0] channels, logic [31:0] granule);
    memory = {
      granule,
      channels,
      first,
      32'(bytes >> 12),
      32'(base >> 12),
      32'd2,
      number,
      BlockVersion,
      TypeMemory
    };
  endfunction

  function automatic logic [NumBlocks-1:0][7:0][31:0] blocks();
    int unsigned next;
    blocks[0] = {32'(QueueEntries), 32'(NumIoQueues), 32'h1_0000, 32'd0, 32'd0, 32'd0, BlockVersion, TypeNvmeCtrl};
    blocks[1] = {WindowSize[63:32], WindowSize[31:0], 32'd0, 32'd0, 32'd2, 32'd0, BlockVersion, TypePmWindow};
    for (int unsigned c = 0; c < Channels; c++) begin
      blocks[2+c] = {
        32'((c < NumChannels) ? BufferBeats : LocalBufferBeats),
        32'(c),
        BlockSize,
        DelayOffset + BlockSize * 32'(c),
        32'd4,
        32'(c),
        BlockVersion,
        TypeNvmDelay
      };
    end
    next = 2 + Channels;
    blocks[next] = {
      32'd0, 32'(2 + NumEngines), BlockSize, QosOffset, 32'd4, 32'd0, BlockVersion, TypeQos
    };
    next++;
    for (int e = 0; e < int'(NumEngines); e++) begin
      blocks[next+unsigned'(e)] = {
        Engines[e].cap1,
        Engines[e].cap0,
        Engines[e].size,
        Engines[e].offset,
        32'd4,
        Engines[e].instance_,
        Engines[e].version,
        Engines[e].kind
      };
    end
    next += NumEngines;
    for (int e = 0; e < int'(NumEngines); e++) begin
      if (Engines[e].page) begin
        blocks[next] = {
          Engines[e].instance_,
          Engines[e].kind,
          BlockSize,
          PageOffset + BlockSize * 32'(e),
          32'd4,
          32'(next - 3 - Channels - NumEngines),
          BlockVersion,
          TypeCommandPage
        };
        next++;
      end
    end
    blocks[next] = memory(32'd0, 64'd0, MediaBytes, 16'd0, 16'(NumChannels), Granule);
    if (LocalChannels != 0)
      blocks[NumBlocks-1] = memory(
          32'd1,
          local_base(
              MediaBytes, LocalBytes
          ),
          LocalBytes,
          16'(NumChannels),
          16'(LocalChannels),
          LocalGranule
      );
  endfunction

  status #(
    .ClockKhz   (ClockKhz),
    .MediaBytes (MediaBytes),
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .NumBlocks  (NumBlocks),
    .Blocks     (blocks())
  ) u_status (
    .clk_i (clk),
    .rst_ni,
    .s_axil(lite[LiteStatus])
  );

  qos #(
    .NumMasters(2 + NumEngines)
  ) u_qos (
    .clk_i (clk),
    .rst_ni,
    .s_axil(lite[LiteQos]),
    .qos_o
  );

endmodule
