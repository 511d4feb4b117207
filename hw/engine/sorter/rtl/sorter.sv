// Sorter: sorts a column of keys in the device's memories, and tells where each of them stood.
//
// One job at a time, of its registers, its command page or an NVMe I/O command in turn (engine_front). What is wrong with a job's
// arguments is found here; sorter_core does the rest.
`include "ns_assert.svh"
`include "ns_axil_regs.svh"

module sorter
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import nvme_pkg::*;
  import sorter_pkg::*;
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
  /// Bits of the longest key: 32, 64 or 128.
  parameter int unsigned KeyBits = 128,
  /// Runs that are merged at a time, a power of two.
  parameter int unsigned Leaves = 64,
  /// Rows of 8 records in a run that the cascade makes, a power of two.
  parameter int unsigned RunRows = 256,
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
  /// NVMe I/O commands: 0 sorts.
  nvme_engine_if.engine s_nvme,
  /// Commands of its page: the arguments of the registers.
  command_page_if.engine s_page,
  /// Interrupt request: rises when a job ends.
  output logic     irq_o
);

  localparam logic [63:0] MostKeys = 64'd1 << 31;

  // Registers. What lies beyond them is a word without one.
  localparam int unsigned RegBits = sorter_regs_pkg::SORTER_REGS_MIN_ADDR_WIDTH;
  localparam logic [RegBits-1:0] Nowhere = '1 << 2;
  sorter_regs_pkg::sorter_regs__in_t hwif_in;
  sorter_regs_pkg::sorter_regs__out_t hwif_out;
  logic open;

  sorter_regs u_regs (
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
    StSort,
    StDone
  } state_e;

  typedef struct packed {
    logic write_error;
    logic invalid;
    logic stopped;
    logic read_error;
  } result_t;

  state_e state_q;
  result_t result_q;
  logic [4:0][63:0] args, cmd_args;  // src, dst, tmp, count, kind
  logic [3:0] reported;
  logic [63:0] reported_passes, passes;
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
      core_busy;
  dma_done_t core_errors;
  logic [3:0] core_passes;
  engine_cmd_t cmd;
  status_t refused, status;

  // ---------------------------------------------------------------- NVMe commands

  // CDW10, CDW11, CDW12: source, target and scratch in the namespace, in units of 8 blocks; CDW13: keys; CDW14: kind.
  localparam int unsigned UnitBits = 12;  // bytes of a unit
  logic [2:0][63:0] places;  // in the namespace
  logic [63:0] namespace_bytes, base;
  logic [2:0][64:0] cmd_sizes, cmd_ends_q;
  logic cmd_reserved;

  assign namespace_bytes = cmd.ns_blocks << 9;
  assign base = cmd.ns_base << 9;
  assign cmd_reserved = cmd.sqe[479:454] != '0;
  for (genvar n = 0; n < 3; n++) begin : gen_place
    assign places[n] = 64'(cmd.sqe[320+32*n+:32]) << UnitBits;
  end
  assign cmd_sizes = sizes(64'(cmd.sqe[447:416]), width_e'(cmd.sqe[449:448]), cmd.sqe[453]);
  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < 3; n++) cmd_ends_q[n] <= 65'(places[n]) + cmd_sizes[n];
  end

  always_comb begin
    refused = generic_status(ScSuccess);
    for (int unsigned n = 0; n < 3; n++) begin
      if (cmd_sizes[n] != '0 && cmd_ends_q[n] > 65'(namespace_bytes))
        refused = generic_status(ScLbaOutOfRange);
    end
    if (cmd_reserved) refused = generic_status(ScInvalidField);
    status = generic_status(ScSuccess);
    if (result_q.invalid) status = generic_status(ScInvalidField);
    else if (result_q.write_error) status = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status = data_status(DataReadError, 1'b0);
  end

  assign cmd_args = {
    64'(cmd.sqe[453:448]),
    64'(cmd.sqe[447:416]),
    base + places[2],
    base + places[1],
    base + places[0]
  };

  engine_front #(
    .NumArgs   (5),
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
      hwif_out.kind_lo.reserved.value,
      hwif_out.kind_lo.indexes.value,
      hwif_out.kind_lo.descending.value,
      hwif_out.kind_lo.order.value,
      hwif_out.kind_lo.width.value,
      hwif_out.count_hi.value.value,
      hwif_out.count_lo.value.value,
      hwif_out.tmp_hi.value.value,
      hwif_out.tmp_lo.value.value,
      hwif_out.dst_hi.value.value,
      hwif_out.dst_lo.value.value,
      hwif_out.src_hi.value.value,
      hwif_out.src_lo.value.value
    }),
    .irq_o,
    .idle_o         (hwif_in.control.idle.next),
    .ended_o        (hwif_in.status.done.hwset),
    .result_o       (reported),
    .outputs_o      (reported_passes),
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
    .job_outputs_i  (passes),
    .job_status_i   (status)
  );

  assign hwif_in.result.read_error.next = reported[0];
  assign hwif_in.result.stopped.next = reported[1];
  assign hwif_in.result.invalid.next = reported[2];
  assign hwif_in.result.write_error.next = reported[3];
  assign hwif_in.passes_lo.value.next = reported_passes[31:0];
  assign hwif_in.passes_hi.value.next = reported_passes[63:32];

  // ---------------------------------------------------------------- a job

  // Bytes of source, target and scratch. With three passes or more the target holds records in between, and with one there is no scratch.
  function automatic logic [2:0][64:0] sizes(logic [63:0] count, width_e width, logic indexes);
    logic [64:0] records;
    logic single, twice;
    records  = 65'(count) << (4'd3 + 4'(width));
    single   = count <= 64'(8 * Leaves * RunRows);
    twice    = count <= 64'(8 * Leaves * Leaves * RunRows);
    sizes[0] = 65'(count) << (4'd2 + 4'(width));
    sizes[1] = (indexes && twice) ? 65'(count) << 2 : records;
    sizes[2] = single ? '0 : records;
  endfunction

  function automatic logic overlap(logic [63:0] a, logic [64:0] a_end, logic [63:0] b,
                                   logic [64:0] b_end);
    return 65'(a) < b_end && 65'(b) < a_end;
  endfunction

  logic [2:0][64:0] size, ends_q;
  logic scratch;
  logic unknown_q, crossed_q, invalid;
  kind_t kind;

  assign kind = '{descending: args[4][4], order: order_e'(args[4][3:2]), width: width_e'(args[4][1:0])};
  assign size = sizes(args[3], kind.width, args[4][5]);
  assign invalid = unknown_q || crossed_q;
  assign stop = front_stop && state_q != StIdle && state_q != StDone;
  assign scratch = size[2] != '0;

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < 3; n++) ends_q[n] <= 65'(args[n]) + size[n];
    unknown_q <= malformed || args[3] == '0 || args[3] > MostKeys || args[4][63:6] != '0 || args[4][3:2] == 2'd3 ||
        (32'd32 << args[4][1:0]) > KeyBits || args[0][5:0] != '0 || args[1][5:0] != '0 || (scratch && args[2][5:0] != '0);
    crossed_q <= ends_q[0][64] || ends_q[1][64] || (scratch && ends_q[2][64]) ||
        overlap(args[0], ends_q[0], args[1], ends_q[1]) ||
        (scratch && (overlap(args[0], ends_q[0], args[2], ends_q[2]) || overlap(args[1], ends_q[1], args[2], ends_q[2])));
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start) state_q <= StSize;
        StSize:  state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= core_start ? StSort : StDone;
        StSort:  if (core_done) state_q <= StDone;
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
      passes   <= '0;
    end else if (start) begin
      result_q <= '0;
      passes   <= '0;
    end else begin
      if (stop && (state_q == StSize || state_q == StCheck)) result_q.stopped <= 1'b1;
      if (state_q == StBegin && invalid) result_q <= '{invalid: 1'b1, default: 1'b0};
      if (core_done) begin
        result_q <= '{
            write_error: core_errors.write_error,
            invalid: 1'b0,
            stopped: core_stopped,
            read_error: core_errors.read_error
        };
        passes <= core_stopped ? '0 : 64'(core_passes);
      end
    end
  end

  ns_axi_if master[1] ();

  sorter_core #(
    .KeyBits    (KeyBits),
    .Leaves     (Leaves),
    .RunRows    (RunRows),
    .NumChannels(NumChannels),
    .Granule    (Granule)
  ) u_core (
    .clk_i,
    .rst_ni,
    .busy_o   (core_busy),
    .start_i  (core_start),
    .src_i    (args[0]),
    .dst_i    (args[1]),
    .tmp_i    (args[2]),
    .count_i  (args[3][31:0]),
    .kind_i   (kind),
    .indexes_i(args[4][5]),
    .stop_i   (stop && state_q == StSort),
    .done_o   (core_done),
    .stopped_o(core_stopped),
    .errors_o (core_errors),
    .passes_o (core_passes),
    .m_axi    (master[0])
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

  `NS_ASSERT(core_rests, state_q == StSort || !core_busy || state_q == StDone || state_q == StIdle)

endmodule
