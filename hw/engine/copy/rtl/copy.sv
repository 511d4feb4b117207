// Copy engine: copies a range of the device's memories to another one, of any alignment and length.
//
// Addresses are those of the PM window: the media, and behind it the local memory if there is one. The range is cut at granules of
// the media; each piece goes to the mover (ns_dma) of the channel that the target lies in, so all channels work at the same time.
// The movers reach every channel through a crossbar. The two ranges must not overlap: the order of
// the pieces is not promised.
`include "ns_assert.svh"
`include "ns_axil_regs.svh"

module copy
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import nvme_pkg::*;
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
  /// NVMe I/O commands: 0 copies.
  nvme_engine_if.engine s_nvme,
  /// Commands of its page: the arguments of the registers.
  command_page_if.engine s_page,
  /// Interrupt request: rises when a copy ends.
  output logic     irq_o
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = idx_width(NumChannels);
  localparam int unsigned Commands = 8;  // of a mover
  // All of the PM window: a longer copy would be errors only, and one of a command page nothing could end.
  localparam logic [63:0] Longest = (LocalChannels == 0) ? MediaBytes : LocalBase + LocalBytes;
  localparam int unsigned OpenBits = unsigned'($clog2(NumChannels * Commands + 1));

  // Registers. What lies beyond them is a word without one.
  copy_regs_pkg::copy_regs__in_t hwif_in;
  copy_regs_pkg::copy_regs__out_t hwif_out;
  logic open;

  copy_regs u_regs (
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

  // A copy: what is left of it, and pieces under way.
  typedef enum logic [1:0] {
    StIdle,
    StCheck,
    StCut,
    StWait
  } state_e;

  state_e state_q;
  typedef struct packed {
    logic invalid;
    logic stopped;
    logic write_error;
    logic read_error;
  } result_t;

  logic [2:0][63:0] args, cmd_args;  // src, dst, bytes
  result_t result_q;
  logic [3:0] reported;
  logic [63:0] src_q, dst_q, left_q;
  logic [OpenBits-1:0] open_q;
  logic
      start,
      stop,
      front_stop,
      front_busy,
      malformed,
      invalid,
      piece_valid,
      piece_fire,
      piece_last,
      finish;
  logic [GranuleBits:0] room, bytes;
  logic [NumChannels-1:0] to, cmd_ready, done_valid;
  logic [NumChannels-1:0][1:0] done;

  // CDW10, CDW11: first block of the source; CDW12: blocks, less one, up to 2**24; CDW14, CDW15: first block of the target.
  engine_cmd_t cmd;
  status_t refused, status;
  logic [63:0] slba, dlba, apart_q;
  logic [23:0] nlb;
  logic [64:0] last_source_q, last_target_q;  // last blocks
  logic reserved;

  assign slba = cmd.sqe[383:320];
  assign dlba = {cmd.sqe[511:480], cmd.sqe[479:448]};
  assign nlb = cmd.sqe[407:384];
  assign reserved = cmd.sqe[415:408] != '0 || cmd.sqe[447:416] != '0;
  always_ff @(posedge clk_i) begin
    last_source_q <= 65'(slba) + 65'(nlb);
    last_target_q <= 65'(dlba) + 65'(nlb);
    apart_q <= (slba > dlba) ? slba - dlba : dlba - slba;
  end

  always_comb begin
    refused = generic_status(ScSuccess);
    if (reserved) refused = generic_status(ScInvalidField);
    else if (last_source_q >= 65'(cmd.ns_blocks) || last_target_q >= 65'(cmd.ns_blocks))
      refused = generic_status(ScLbaOutOfRange);
    else if (apart_q <= 64'(nlb)) refused = generic_status(ScInvalidField);
    status = generic_status(ScSuccess);
    if (result_q.write_error) status = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status = data_status(DataReadError, 1'b0);
  end

  assign cmd_args = {(64'(nlb) + 64'd1) << 9, (cmd.ns_base + dlba) << 9, (cmd.ns_base + slba) << 9};

  engine_job_mux #(
    .NumArgs   (3),
    .StoppedBit(2)
  ) u_front (
    .clk_i,
    .rst_ni,
    .busy_o         (front_busy),
    .start_i        (hwif_out.control.start.value),
    .stop_i         (hwif_out.control.stop.value),
    .interrupt_i    (hwif_out.interrupt.enable.value && hwif_out.sources.done.value && hwif_out.status.done.value),
    .args_i         ({
      hwif_out.bytes_hi.value.value,
      hwif_out.bytes_lo.value.value,
      hwif_out.dst_hi.value.value,
      hwif_out.dst_lo.value.value,
      hwif_out.src_hi.value.value,
      hwif_out.src_lo.value.value
    }),
    .irq_o,
    .idle_o         (hwif_in.control.idle.next),
    .ended_o        (hwif_in.status.done.hwset),
    .result_o       (reported),
    .outputs_o      (),
    .s_nvme,
    .cmd_o          (cmd),
    .refused_i      (refused),
    .cmd_args_i     (cmd_args),
    .s_page,
    .job_start_o    (start),
    .job_args_o     (args),
    .job_malformed_o(malformed),
    .job_stop_o     (front_stop),
    .job_done_i     (finish),
    .job_result_i   (result_q),
    .job_outputs_i  ('0),
    .job_status_i   (status)
  );

  assign hwif_in.result.read_error.next = reported[0];
  assign hwif_in.result.write_error.next = reported[1];
  assign hwif_in.result.stopped.next = reported[2];
  assign hwif_in.result.invalid.next = reported[3];

  // ---------------------------------------------------------------- a copy

  assign stop = front_stop && (state_q == StCut || state_q == StCheck);
  assign invalid = malformed || left_q == '0 || left_q > Longest || src_q + left_q - 64'd1 < src_q ||
      dst_q + left_q - 64'd1 < dst_q;

  // The next piece ends with the target's granule.
  assign room = (GranuleBits + 1)'(Granule) - (GranuleBits + 1)'(dst_q[GranuleBits-1:0]);
  assign piece_last = left_q <= 64'(room);
  assign bytes = piece_last ? left_q[GranuleBits:0] : room;
  assign piece_valid = state_q == StCut;
  assign to = NumChannels'(1) << ((NumChannels > 1) ? dst_q[GranuleBits+:ChannelBits] : '0);
  assign piece_fire = piece_valid && (to & cmd_ready) != '0;
  assign finish = state_q == StWait && open_q == '0;
  assign busy_o = open || state_q != StIdle || front_busy;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      open_q  <= '0;
    end else begin
      open_q <= open_q + OpenBits'(piece_fire) - OpenBits'(done_valid != '0);
      unique case (state_q)
        StIdle:  if (start) state_q <= StCheck;
        StCheck: state_q <= (invalid || stop) ? StWait : StCut;
        StCut:   if ((piece_fire && piece_last) || stop) state_q <= StWait;
        default: if (finish) state_q <= StIdle;
      endcase
    end
  end

  // One mover's end a cycle.
  logic [NumChannels-1:0] done_take;
  logic [1:0] ended;
  assign done_take = done_valid & (~done_valid + 1'b1);
  always_comb begin
    ended = '0;
    for (int unsigned c = 0; c < NumChannels; c++) if (done_take[c]) ended |= done[c];
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      src_q  <= args[0];
      dst_q  <= args[1];
      left_q <= args[2];
    end else if (piece_fire) begin
      src_q  <= src_q + 64'(bytes);
      dst_q  <= dst_q + 64'(bytes);
      left_q <= left_q - 64'(bytes);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q <= '0;
    end else if (start) begin
      result_q <= '0;
    end else begin
      if (ended[0]) result_q.read_error <= 1'b1;
      if (ended[1]) result_q.write_error <= 1'b1;
      if (stop && !(piece_fire && piece_last) && !(state_q == StCheck && invalid))
        result_q.stopped <= 1'b1;
      if (state_q == StCheck) result_q.invalid <= invalid;
    end
  end

  // Movers, one a channel, and the way to all of them.
  ns_axi_if mover[NumChannels] ();

  for (genvar c = 0; c < NumChannels; c++) begin : gen_mover
    ns_dma #(
      .BurstBytes(256),
      .Commands  (Commands)
    ) u_dma (
      .clk_i,
      .rst_ni,
      .busy_o      (),
      .cmd_i       ('{bytes: 32'(bytes), dst: dst_q, src: src_q}),
      .cmd_valid_i (piece_valid && to[c]),
      .cmd_ready_o (cmd_ready[c]),
      .done_o      (done[c]),
      .done_valid_o(done_valid[c]),
      .done_ready_i(done_take[c]),
      .m_axi       (mover[c])
    );
  end

  engine_memory #(
    .NumMasters   (NumChannels),
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
    .s_axi(mover),
    .m_mem,
    .m_local
  );

  logic unused;
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12], cmd};

  `NS_ASSERT(pieces_are_counted, !(done_valid != '0 && open_q == '0))

endmodule
