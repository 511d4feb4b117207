// Dictionary decoder: decodes a dictionary-encoded column in the device's memories into plain values.
//
// One job at a time, of its registers, its command page or an NVMe I/O command in turn (engine_front). What is wrong with a job's
// arguments is found here; dict_decode_core does the rest.
`include "ns_assert.svh"
`include "ns_axil_regs.svh"

module dict_decode
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import nvme_pkg::*;
  import dict_decode_pkg::*;
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
  /// NVMe I/O commands: 0 decodes.
  nvme_engine_if.engine s_nvme,
  /// Commands of its page: the arguments of the registers.
  command_page_if.engine s_page,
  /// Interrupt request: rises when a job ends.
  output logic     irq_o
);

  localparam logic [63:0] MostValues = 64'd1 << 31;
  localparam logic [63:0] MostEntries = 64'd1 << KeyBits;
  localparam logic [63:0] MostBytes = 64'd1 << (SizeBits - 1);

  // Registers. What lies beyond them is a word without one.
  localparam int unsigned RegBits = dict_decode_regs_pkg::DICT_DECODE_REGS_MIN_ADDR_WIDTH;
  localparam logic [RegBits-1:0] Nowhere = '1 << 2;
  dict_decode_regs_pkg::dict_decode_regs__in_t hwif_in;
  dict_decode_regs_pkg::dict_decode_regs__out_t hwif_out;
  logic open;

  dict_decode_regs u_regs (
    .clk           (clk_i),
    .arst_n        (rst_ni),
    `NS_AXIL_REGS(s_axil, RegBits, 12, Nowhere),
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
    StSize,   // ends of the ranges come into registers
    StCheck,
    StBegin,
    StDecode,
    StDone
  } state_e;

  typedef struct packed {
    logic overrun;
    logic truncated;
    logic bad_key;
    logic write_error;
    logic invalid;
    logic stopped;
    logic read_error;
  } result_t;

  // Places of arguments; the first three of ranges are their numbers, too.
  localparam int unsigned Ranges = 3;
  localparam int unsigned Dict = 0;
  localparam int unsigned Source = 1;
  localparam int unsigned Target = 2;

  state_e state_q;
  result_t result_q;
  logic [6:0][63:0] args, cmd_args;  // dict, entries, src, bytes, dst, count, kind
  logic [6:0] reported;
  logic [63:0] reported_position, position;
  logic
      front_busy,
      start,
      malformed,
      front_stop,
      stop,
      done,
      core_start,
      core_done,
      core_stopped,
      core_write_error,
      core_busy;
  end_e core_end;
  logic [31:0] core_position;
  engine_cmd_t cmd;
  status_t refused, status;

  // ---------------------------------------------------------------- NVMe commands

  // CDW10, CDW11, CDW12: dictionary, source and target in the namespace, in units of 8 blocks; CDW13: values; CDW14: bytes of the source;
  // CDW15: 15:0 values of the dictionary, less one, 21:16 bits of a key, 25:24 log2 of a value's bytes, 26 plain, 27 packed.
  localparam int unsigned UnitBits = 12;  // bytes of a unit
  logic [Ranges-1:0][63:0] places;  // in the namespace
  logic [63:0] namespace_bytes, base;
  logic [Ranges-1:0][64:0] cmd_sizes, cmd_ends_q;
  logic [31:0] cdw15;
  logic cmd_reserved;

  assign namespace_bytes = cmd.ns_blocks << 9;
  assign base = cmd.ns_base << 9;
  assign cdw15 = cmd.sqe[511:480];
  assign cmd_reserved = cdw15[31:28] != '0 || cdw15[23:22] != '0;
  for (genvar n = 0; n < Ranges; n++) begin : gen_place
    assign places[n] = 64'(cmd.sqe[320+32*n+:32]) << UnitBits;
  end
  assign cmd_sizes = sizes(
      cmd_args[1], cmd_args[3], cmd_args[5], cmd_args[6][9:8], cmd_args[6][16]
  );
  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Ranges; n++) cmd_ends_q[n] <= 65'(places[n]) + cmd_sizes[n];
  end

  always_comb begin
    refused = generic_status(ScSuccess);
    for (int unsigned n = 0; n < Ranges; n++) begin
      if (cmd_sizes[n] != '0 && cmd_ends_q[n] > 65'(namespace_bytes))
        refused = generic_status(ScLbaOutOfRange);
    end
    if (cmd_reserved) refused = generic_status(ScInvalidField);
    status = generic_status(ScSuccess);
    if (result_q.invalid) status = generic_status(ScInvalidField);
    else if (result_q.write_error) status = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status = data_status(DataReadError, 1'b0);
    else if (result_q.bad_key || result_q.truncated || result_q.overrun)
      status = generic_status(ScInvalidField);
  end

  assign cmd_args = {
    {46'd0, cdw15[27], cdw15[26], 6'd0, cdw15[25:24], 2'd0, cdw15[21:16]},
    64'(cmd.sqe[447:416]),
    base + places[Target],
    64'(cmd.sqe[479:448]),
    base + places[Source],
    64'(cdw15[15:0]) + 64'd1,
    base + places[Dict]
  };

  engine_front #(
    .NumArgs   (7),
    .NumResults(7),
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
      hwif_out.kind_lo.reserved2.value,
      hwif_out.kind_lo.packed_keys.value,
      hwif_out.kind_lo.plain.value,
      hwif_out.kind_lo.reserved1.value,
      hwif_out.kind_lo.size.value,
      hwif_out.kind_lo.reserved0.value,
      hwif_out.kind_lo.width.value,
      hwif_out.count_hi.value.value,
      hwif_out.count_lo.value.value,
      hwif_out.dst_hi.value.value,
      hwif_out.dst_lo.value.value,
      hwif_out.bytes_hi.value.value,
      hwif_out.bytes_lo.value.value,
      hwif_out.src_hi.value.value,
      hwif_out.src_lo.value.value,
      hwif_out.entries_hi.value.value,
      hwif_out.entries_lo.value.value,
      hwif_out.dict_hi.value.value,
      hwif_out.dict_lo.value.value
    }),
    .irq_o,
    .idle_o         (hwif_in.control.idle.next),
    .ended_o        (hwif_in.status.done.hwset),
    .result_o       (reported),
    .outputs_o      (reported_position),
    .s_nvme,
    .cmd_o          (cmd),
    .refused_i      (refused),
    .cmd_args_i     (cmd_args),
    .s_page,
    .job_start_o    (start),
    .job_args_o     (args),
    .job_malformed_o(malformed),
    .job_stop_o     (front_stop),
    .job_done_i     (done),
    .job_result_i   (result_q),
    .job_outputs_i  (position),
    .job_status_i   (status)
  );

  assign hwif_in.result.read_error.next = reported[0];
  assign hwif_in.result.stopped.next = reported[1];
  assign hwif_in.result.invalid.next = reported[2];
  assign hwif_in.result.write_error.next = reported[3];
  assign hwif_in.result.bad_key.next = reported[4];
  assign hwif_in.result.truncated.next = reported[5];
  assign hwif_in.result.overrun.next = reported[6];
  assign hwif_in.position_lo.value.next = reported_position[31:0];
  assign hwif_in.position_hi.value.next = reported_position[63:32];

  // ---------------------------------------------------------------- a job

  // Bytes of dictionary, source and target; 0 for one that is not used.
  function automatic logic [Ranges-1:0][64:0] sizes(logic [63:0] entries, logic [63:0] bytes,
                                                    logic [63:0] count, logic [1:0] size_log,
                                                    logic plain);
    sizes[Dict]   = plain ? '0 : 65'(entries) << size_log;
    sizes[Source] = 65'(bytes);
    sizes[Target] = 65'(count) << size_log;
  endfunction

  function automatic logic overlap(logic [63:0] a, logic [64:0] a_end, logic [63:0] b,
                                   logic [64:0] b_end);
    return 65'(a) < b_end && 65'(b) < a_end;
  endfunction

  logic [Ranges-1:0][63:0] firsts;
  logic [Ranges-1:0][64:0] size, ends_q;
  logic unknown, crossed, unknown_q, crossed_q, invalid;
  kind_t kind;

  assign kind = '{fixed: args[6][17], plain: args[6][16], size: args[6][9:8], width: args[6][5:0]};
  assign size = sizes(args[1], args[3], args[5], kind.size, kind.plain);
  assign firsts = {args[4], args[2], args[0]};
  assign invalid = unknown_q || crossed_q;
  assign stop = front_stop && state_q != StIdle && state_q != StDone;

  always_comb begin
    unknown = malformed || args[3] > MostBytes || args[5] == '0 || args[5] > MostValues || args[6][63:18] != '0 ||
        args[6][15:10] != '0 || args[6][7:6] != '0 || kind.width > 6'd32 || (kind.fixed && kind.plain);
    if (kind.fixed && kind.width != 6'd8 && kind.width != 6'd16 && kind.width != 6'd32)
      unknown = 1'b1;
    if (!kind.plain && (args[1] == '0 || args[1] > MostEntries || size[Dict] > 65'(DictBytes)))
      unknown = 1'b1;
    crossed = 1'b0;
    for (int unsigned n = 0; n < Ranges; n++) begin
      if (size[n] != '0) begin
        if (firsts[n][5:0] != '0 || ends_q[n][64]) crossed = 1'b1;
        for (int unsigned m = 0; m < n; m++) begin
          if (size[m] != '0 && overlap(firsts[n], ends_q[n], firsts[m], ends_q[m])) crossed = 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Ranges; n++) ends_q[n] <= 65'(firsts[n]) + size[n];
    unknown_q <= unknown;
    crossed_q <= crossed;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start) state_q <= StSize;
        StSize:  state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= core_start ? StDecode : StDone;
        StDecode:  if (core_done) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
    end
  end

  assign core_start = state_q == StBegin && !invalid && !result_q.stopped;
  assign done = state_q == StDone;
  assign busy_o = open || state_q != StIdle || front_busy || core_busy;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      result_q <= '0;
      position <= '0;
    end else if (start) begin
      result_q <= '0;
      position <= '0;
    end else begin
      if (stop && (state_q == StSize || state_q == StCheck)) result_q.stopped <= 1'b1;
      if (state_q == StBegin && invalid) result_q <= '{invalid: 1'b1, default: 1'b0};
      if (core_done) begin
        result_q <= '{
            overrun: core_end == EndOverrun,
            truncated: core_end == EndTruncated,
            bad_key: core_end == EndBadKey,
            write_error: core_write_error,
            invalid: 1'b0,
            stopped: core_stopped,
            read_error: core_end == EndReadError
        };
        position <= 64'(core_position);
      end
    end
  end

  ns_axi_if master[1] ();

  dict_decode_core #(
    .DictBytes(DictBytes)
  ) u_core (
    .clk_i,
    .rst_ni,
    .busy_o       (core_busy),
    .start_i      (core_start),
    .dict_i       (args[0]),
    .entries_i    (args[1][KeyBits:0]),
    .src_i        (args[2]),
    .bytes_i      (args[3][SizeBits-1:0]),
    .dst_i        (args[4]),
    .count_i      (args[5][31:0]),
    .kind_i       (kind),
    .stop_i       (stop && state_q == StDecode),
    .done_o       (core_done),
    .end_o        (core_end),
    .stopped_o    (core_stopped),
    .write_error_o(core_write_error),
    .position_o   (core_position),
    .m_axi        (master[0])
  );

  engine_memory #(
    .NumMasters   (1),
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
    .s_axi(master),
    .m_mem,
    .m_local
  );

  logic unused;
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12], cmd};

  `NS_ASSERT(core_rests,
             state_q == StDecode || !core_busy || state_q == StDone || state_q == StIdle)

endmodule
