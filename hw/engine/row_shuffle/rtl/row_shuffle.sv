// Gatherer of rows: copies rows of a table in the order that a list of indexes says.
//
// One job at a time, of its registers, its command page or an NVMe I/O command in turn (engine_front). What is wrong with a job's
// arguments is found here; row_shuffle_core does the rest.
`include "ns_assert.svh"
`include "ns_axil_regs.svh"

module row_shuffle
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
  /// NVMe I/O commands: 0 gathers.
  nvme_engine_if.engine s_nvme,
  /// Commands of its page: the arguments of the registers.
  command_page_if.engine s_page,
  /// Interrupt request: rises when a job ends.
  output logic     irq_o
);

  localparam logic [63:0] MostIndexes = 64'd1 << 31;
  localparam logic [63:0] MostRowBytes = 64'd65536;
  // Two masters to each channel, in the bits of an ID that an engine has.
  localparam int unsigned IdBits = (NumChannels > 1) ? 4 : 3;

  // Registers. What lies beyond them is a word without one.
  localparam int unsigned RegBits = row_shuffle_regs_pkg::ROW_SHUFFLE_REGS_MIN_ADDR_WIDTH;
  localparam logic [RegBits-1:0] Nowhere = '1 << 2;
  row_shuffle_regs_pkg::row_shuffle_regs__in_t hwif_in;
  row_shuffle_regs_pkg::row_shuffle_regs__out_t hwif_out;
  logic open;

  row_shuffle_regs u_regs (
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
    StSize,   // sizes of the ranges come into registers,
    StEnds,   // their ends,
    StCheck,  // what is wrong
    StBegin,
    StWork,
    StDone
  } state_e;

  typedef struct packed {
    logic bad_index;
    logic write_error;
    logic invalid;
    logic stopped;
    logic read_error;
  } result_t;

  state_e state_q;
  result_t result_q;
  logic [6:0][63:0] args, cmd_args;  // index, src, dst, count, row_bytes, rows, kind
  logic [4:0] reported;
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
      core_bad,
      core_busy;
  dma_done_t core_errors;
  logic [31:0] core_position;
  engine_cmd_t cmd;
  status_t refused, status;

  // ---------------------------------------------------------------- NVMe commands

  // CDW10, CDW11, CDW12: indexes, source and target in the namespace, in units of 8 blocks; CDW13: indexes; CDW14: rows;
  // CDW15: bytes of a row, from bit 24 on the kind.
  localparam int unsigned UnitBits = 12;  // bytes of a unit
  logic [2:0][63:0] places;  // in the namespace
  logic [63:0] namespace_bytes, base;
  logic [2:0][49:0] cmd_sizes_q;
  logic [31:0] cmd_count, cmd_rows;
  logic [16:0] cmd_row_bytes;
  logic [1:0] cmd_records;
  logic cmd_reserved;

  assign namespace_bytes = cmd.ns_blocks << 9;
  assign base = cmd.ns_base << 9;
  assign cmd_count = cmd.sqe[447:416];
  assign cmd_rows = cmd.sqe[479:448];
  assign cmd_row_bytes = cmd.sqe[496:480];
  assign cmd_records = cmd.sqe[505:504];
  assign cmd_reserved = cmd.sqe[503:497] != '0 || cmd.sqe[511:506] != '0;
  for (genvar n = 0; n < 3; n++) begin : gen_place
    assign places[n] = 64'(cmd.sqe[320+32*n+:32]) << UnitBits;
  end
  always_ff @(posedge clk_i) cmd_sizes_q <= sizes(cmd_count, cmd_rows, cmd_row_bytes, cmd_records);

  always_comb begin
    refused = generic_status(ScSuccess);
    for (int unsigned n = 0; n < 3; n++) begin
      if (places[n] + 64'(cmd_sizes_q[n]) > namespace_bytes)
        refused = generic_status(ScLbaOutOfRange);
    end
    if (cmd_reserved) refused = generic_status(ScInvalidField);
    status = generic_status(ScSuccess);
    if (result_q.invalid || result_q.bad_index) status = generic_status(ScInvalidField);
    else if (result_q.write_error) status = data_status(DataWriteFault, 1'b0);
    else if (result_q.read_error) status = data_status(DataReadError, 1'b0);
  end

  assign cmd_args = {
    64'(cmd_records),
    64'(cmd_rows),
    64'(cmd_row_bytes),
    64'(cmd_count),
    base + places[2],
    base + places[1],
    base + places[0]
  };

  engine_front #(
    .NumArgs   (7),
    .NumResults(5),
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
      hwif_out.kind_lo.records.value,
      hwif_out.rows_hi.value.value,
      hwif_out.rows_lo.value.value,
      hwif_out.row_bytes_hi.value.value,
      hwif_out.row_bytes_lo.value.value,
      hwif_out.count_hi.value.value,
      hwif_out.count_lo.value.value,
      hwif_out.dst_hi.value.value,
      hwif_out.dst_lo.value.value,
      hwif_out.src_hi.value.value,
      hwif_out.src_lo.value.value,
      hwif_out.index_hi.value.value,
      hwif_out.index_lo.value.value
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
  assign hwif_in.result.bad_index.next = reported[4];
  assign hwif_in.position_lo.value.next = reported_position[31:0];
  assign hwif_in.position_hi.value.next = reported_position[63:32];

  // ---------------------------------------------------------------- a job

  // Bytes of list, table and target.
  function automatic logic [2:0][49:0] sizes(logic [31:0] count, logic [31:0] rows,
                                             logic [16:0] row_bytes, logic [1:0] records);
    sizes[0] = (50'(count) << 2) << records;
    sizes[1] = 50'(rows) * 50'(row_bytes);
    sizes[2] = 50'(count) * 50'(row_bytes);
  endfunction

  function automatic logic overlap(logic [63:0] a, logic [64:0] a_end, logic [63:0] b,
                                   logic [64:0] b_end);
    return 65'(a) < b_end && 65'(b) < a_end;
  endfunction

  logic [2:0][49:0] size_q;
  logic [2:0][64:0] ends_q;
  logic unknown_q, crossed_q, invalid;

  assign invalid = unknown_q || crossed_q;
  assign stop = front_stop && state_q != StIdle && state_q != StDone;

  always_ff @(posedge clk_i) begin
    size_q <= sizes(args[3][31:0], args[5][31:0], args[4][16:0], args[6][1:0]);
    for (int unsigned n = 0; n < 3; n++) ends_q[n] <= 65'(args[n]) + 65'(size_q[n]);
    unknown_q <= malformed || args[0][5:0] != '0 || args[3] == '0 || args[3] > MostIndexes || args[4] == '0 ||
        args[4] > MostRowBytes || args[5] == '0 || args[5][63:32] != '0 || args[6][63:2] != '0;
    // What is only read may overlap.
    crossed_q <= ends_q[0] > {1'b1, 64'd0} || ends_q[1] > {1'b1, 64'd0} || ends_q[2] > {1'b1, 64'd0} ||
        overlap(args[0], ends_q[0], args[2], ends_q[2]) || overlap(args[1], ends_q[1], args[2], ends_q[2]);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:  if (start) state_q <= StSize;
        StSize:  state_q <= StEnds;
        StEnds:  state_q <= StCheck;
        StCheck: state_q <= StBegin;
        StBegin: state_q <= core_start ? StWork : StDone;
        StWork:  if (core_done) state_q <= StDone;
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
      if (stop && (state_q == StSize || state_q == StEnds || state_q == StCheck))
        result_q.stopped <= 1'b1;
      if (state_q == StBegin && invalid) result_q <= '{invalid: 1'b1, default: 1'b0};
      if (core_done) begin
        result_q <= '{
            bad_index: core_bad,
            write_error: core_errors.write_error,
            invalid: 1'b0,
            stopped: core_stopped,
            read_error: core_errors.read_error
        };
        position <= 64'(core_position);
      end
    end
  end

  ns_axi_if master[2] ();

  row_shuffle_core #(
    .IdBits(IdBits)
  ) u_core (
    .clk_i,
    .rst_ni,
    .busy_o     (core_busy),
    .start_i    (core_start),
    .index_i    (args[0]),
    .src_i      (args[1]),
    .dst_i      (args[2]),
    .count_i    (args[3][31:0]),
    .row_bytes_i(args[4][16:0]),
    .rows_i     (args[5][31:0]),
    .records_i  (args[6][1:0]),
    .stop_i     (stop && state_q == StWork),
    .done_o     (core_done),
    .stopped_o  (core_stopped),
    .bad_index_o(core_bad),
    .errors_o   (core_errors),
    .position_o (core_position),
    .m_list     (master[0]),
    .m_rows     (master[1])
  );

  engine_memory #(
    .NumMasters   (2),
    .IdBits       (IdBits),
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

  `NS_ASSERT(core_rests, state_q == StWork || !core_busy || state_q == StDone || state_q == StIdle)

endmodule
