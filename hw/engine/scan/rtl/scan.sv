// Scan engine: counts the values of 32 or 64 bits in a range of the media that lie between two bounds, both included.
//
// The part of a range that lies in one channel is a range of that channel's own addresses, so each channel is scanned by itself, all at
// the same time; in the end their counts are added.
`include "ns_assert.svh"

module scan
  import ns_axi_pkg::*;
#(
  /// Memory channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next one's turn, a power of two.
  parameter int unsigned Granule = 4096,
  /// Bytes of the media; what lies beyond, the device answers with errors.
  parameter longint unsigned MediaBytes = 64'h4000_0000
) (
  /// Clock.
  input  logic     clk_i,
  /// Reset.
  input  logic     rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic     busy_o,
  /// Registers.
  ns_axil_if.slave s_axil,
  /// Memory, one master a channel; addresses are local to the channel.
  ns_axi_if.master m_mem[NumChannels],
  /// Interrupt request: rises when a scan ends.
  output logic     irq_o
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = idx_width(NumChannels);
  localparam int unsigned RowBits = GranuleBits + unsigned'($clog2(NumChannels));

  // Registers. What lies beyond them is a word without one.
  localparam int unsigned RegBits = scan_regs_pkg::SCAN_REGS_MIN_ADDR_WIDTH;
  localparam logic [RegBits-1:0] Nowhere = '1 << 2;
  scan_regs_pkg::scan_regs__in_t hwif_in;
  scan_regs_pkg::scan_regs__out_t hwif_out;
  logic open;

  function automatic logic [RegBits-1:0] word(logic [11:0] addr);
    word = (addr[11:RegBits] == '0) ? addr[RegBits-1:0] : Nowhere;
  endfunction

  scan_regs u_regs (
    .clk           (clk_i),
    .arst_n        (rst_ni),
    .s_axil_awready(s_axil.awready),
    .s_axil_awvalid(s_axil.awvalid),
    .s_axil_awaddr (word(s_axil.awaddr[11:0])),
    .s_axil_awprot ('0),
    .s_axil_wready (s_axil.wready),
    .s_axil_wvalid (s_axil.wvalid),
    .s_axil_wdata  (s_axil.wdata),
    .s_axil_wstrb  (s_axil.wstrb),
    .s_axil_bready (s_axil.bready),
    .s_axil_bvalid (s_axil.bvalid),
    .s_axil_bresp  (s_axil.bresp),
    .s_axil_arready(s_axil.arready),
    .s_axil_arvalid(s_axil.arvalid),
    .s_axil_araddr (word(s_axil.araddr[11:0])),
    .s_axil_arprot ('0),
    .s_axil_rready (s_axil.rready),
    .s_axil_rvalid (s_axil.rvalid),
    .s_axil_rdata  (s_axil.rdata),
    .s_axil_rresp  (s_axil.rresp),
    .hwif_in,
    .hwif_out
  );

  ns_axil_open u_open (
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

  typedef enum logic [2:0] {
    StIdle,
    StCheck,
    StBegin,
    StScan,
    StAdd
  } state_e;

  state_e state_q;
  logic [63:0] src_q, bytes_q, low_q, high_q, count_q;
  logic [64:0] end_q;
  logic wide_q, signed_q, unknown_q;
  logic read_error_q, stopped_q, invalid_q;
  logic irq_d, irq_q;
  logic start, stop, invalid, begin_scan, finish;
  logic [2:0] odd;
  logic [ChannelBits-1:0] turn_q;
  logic [NumChannels-1:0] busy, error;
  logic [NumChannels-1:0][63:0] count;

  assign start = hwif_out.control.start.value && state_q == StIdle;
  assign stop = hwif_out.control.stop.value && state_q != StIdle && state_q != StAdd;
  assign odd = src_q[2:0] | bytes_q[2:0];
  assign invalid = bytes_q == '0 || end_q > {1'b1, 64'd0} || odd[1:0] != '0 || (wide_q && odd[2]) || unknown_q;
  assign begin_scan = state_q == StBegin && !invalid && !stopped_q;
  assign finish = (state_q == StAdd && turn_q == ChannelBits'(NumChannels - 1)) || (state_q == StBegin && !begin_scan);
  assign busy_o = open || state_q != StIdle || hwif_out.control.start.value || irq_d != irq_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start) state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= begin_scan ? StScan : StIdle;
        StScan:  if (busy == '0) state_q <= StAdd;
        default: if (finish) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      src_q <= {hwif_out.src_hi.value.value, hwif_out.src_lo.value.value};
      bytes_q <= {hwif_out.bytes_hi.value.value, hwif_out.bytes_lo.value.value};
      low_q <= {hwif_out.low_hi.value.value, hwif_out.low_lo.value.value};
      high_q <= {hwif_out.high_hi.value.value, hwif_out.high_lo.value.value};
      wide_q <= hwif_out.kind_lo.wide.value;
      signed_q <= hwif_out.kind_lo.is_signed.value;
      unknown_q <= hwif_out.kind_lo.reserved.value != '0 || hwif_out.kind_hi.value.value != '0;
    end
    end_q <= 65'(src_q) + 65'(bytes_q);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_error_q <= 1'b0;
      stopped_q <= 1'b0;
      invalid_q <= 1'b0;
      count_q <= '0;
      turn_q <= '0;
    end else if (start) begin
      read_error_q <= 1'b0;
      stopped_q <= 1'b0;
      invalid_q <= 1'b0;
      count_q <= '0;
      turn_q <= '0;
    end else begin
      if (state_q == StBegin) invalid_q <= invalid;
      if (stop && !(state_q == StBegin && invalid) && !(state_q == StScan && busy == '0))
        stopped_q <= 1'b1;
      if (state_q == StAdd) begin
        count_q <= count_q + count[turn_q];
        turn_q <= turn_q + 1'b1;
        read_error_q <= error != '0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) irq_q <= 1'b0;
    else irq_q <= irq_d;
  end
  assign irq_d = hwif_out.interrupt.enable.value && hwif_out.sources.done.value && hwif_out.status.done.value;
  assign irq_o = irq_q;

  assign hwif_in.control.idle.next = state_q == StIdle;
  assign hwif_in.status.done.hwset = finish;
  assign hwif_in.result.read_error.next = read_error_q;
  assign hwif_in.result.stopped.next = stopped_q;
  assign hwif_in.result.invalid.next = invalid_q;
  assign hwif_in.count_lo.value.next = count_q[31:0];
  assign hwif_in.count_hi.value.next = count_q[63:32];

  // Bytes of a channel below an address of the media.
  function automatic logic [64:0] below(logic [64:0] addr, int unsigned channel);
    logic [64:0] granule;
    granule = (addr & 65'(2 ** RowBits - 1)) >> GranuleBits;
    below = (addr >> RowBits) << GranuleBits;
    if (granule > 65'(channel)) below += 65'(Granule);
    else if (granule == 65'(channel)) below += addr & 65'(Granule - 1);
  endfunction

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    logic [64:0] first, limit;
    assign first = below(65'(src_q), c);
    assign limit = below(end_q, c);

    ns_axi_if bus ();
    assign bus.aw_valid = 1'b0;
    assign bus.aw = '0;
    assign bus.w_valid = 1'b0;
    assign bus.w = '0;
    assign bus.b_ready = 1'b1;

    ns_axi_link u_link (
      .s_axi(bus),
      .m_axi(m_mem[c])
    );

    scan_channel u_channel (
      .clk_i,
      .rst_ni,
      .start_i (begin_scan),
      .addr_i  (first[63:0]),
      .bytes_i (64'(limit - first)),
      .wide_i  (wide_q),
      .signed_i(signed_q),
      .low_i   (low_q),
      .high_i  (high_q),
      .stop_i  (stop),
      .busy_o  (busy[c]),
      .count_o (count[c]),
      .error_o (error[c]),
      .m_axi   (bus)
    );
  end

  logic unused;
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12], MediaBytes};

  `NS_ASSERT(channels_rest, state_q == StScan || busy == '0)

endmodule
