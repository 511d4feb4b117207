// SPDX-License-Identifier: Apache-2.0

// Registers of an engine, as a source of jobs.
//
// The layout is the HLS convention: control, interrupt, status, return value, arguments and
// outputs. Read-only words of the engine follow from 0x100 on. `engine_map.rdl` is the map that all
// engines share; `engine.toml` names the values of an engine. Words without a register read 0.
//
// A job lasts from the start until the engine has ended it; further starts during a job have no
// effect.
`include "ns_assert.svh"

module engine_registers #(
  /// Arguments, and outputs in the registers after them.
  parameter int unsigned NumArgs    = 3,
  parameter int unsigned NumOutputs = 1,
  /// Bits of the return value.
  parameter int unsigned NumResults = 4,
  /// The result bit for a stopped job.
  parameter int unsigned StoppedBit = 0,
  /// Words from 0x100.
  parameter int unsigned NumWords   = 0,
  localparam int unsigned WordPorts = (NumWords == 0) ? 1 : NumWords
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// A further clock edge could change the state without new input. Driven by registers, but for
  /// the interrupt.
  output logic                        busy_o,
  /// Register port.
  ns_axil_if.slave                    s_axil,
  /// The words from 0x100.
  input  logic [WordPorts-1:0][31:0]  words_i,
  /// Interrupt request: rises a cycle after the interrupt is enabled and pending.
  output logic                        irq_o,

  /// To engine_launch: the registers' job, with its arguments.
  output logic                        request_o,
  output logic [NumArgs-1:0][63:0]    args_o,
  /// It is to end early.
  output logic                        stop_o,
  /// The job ends in this cycle; dropped_i: it has not started.
  input  logic                        done_i,
  input  logic                        dropped_i,
  /// With done_i, unless dropped_i: its return value and outputs.
  input  logic [NumResults-1:0]       result_i,
  input  logic [NumOutputs-1:0][63:0] outputs_i
);

  // Numbers of words.
  localparam logic [9:0] Control = 10'h000;
  localparam logic [9:0] Interrupt = 10'h001;
  localparam logic [9:0] Sources = 10'h002;
  localparam logic [9:0] Status = 10'h003;
  localparam logic [9:0] Result = 10'h004;
  localparam int unsigned FirstValue = 8;  // two words of each four are a value
  localparam int unsigned FirstWord = 64;

  logic axil_busy, write;
  logic [9:0] word;
  logic [31:0] wdata, wmask, rdata;

  engine_axil u_axil (
    .clk_i,
    .rst_ni,
    .busy_o (axil_busy),
    .s_axil,
    .write_o(write),
    .word_o (word),
    .wdata_o(wdata),
    .wmask_o(wmask),
    .rdata_i(rdata)
  );

  function automatic logic [31:0] merge(logic [31:0] old, logic [31:0] data, logic [31:0] mask);
    return (old & ~mask) | (data & mask);
  endfunction

  // Arguments.
  logic [NumArgs-1:0][1:0][31:0] args_q;

  for (genvar n = 0; n < NumArgs; n++) begin : gen_arg
    for (genvar h = 0; h < 2; h++) begin : gen_half
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) args_q[n][h] <= '0;
        else if (write && word == 10'(FirstValue + 4 * n + h))
          args_q[n][h] <= merge(args_q[n][h], wdata, wmask);
      end
    end
  end
  assign args_o = args_q;

  // Control, interrupt, status.
  logic start_q, stop_q, enable_q, source_q, done_q, interrupt, irq_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      start_q  <= 1'b0;
      stop_q   <= 1'b0;
      enable_q <= 1'b0;
      source_q <= 1'b0;
      done_q   <= 1'b0;
      irq_q    <= 1'b0;
    end else begin
      // For one cycle.
      {stop_q, start_q} <= (write && word == Control) ? 2'(merge(
          32'({stop_q, start_q}), wdata, wmask
      )) : '0;
      if (write && word == Interrupt) enable_q <= 1'(merge(32'(enable_q), wdata, wmask));
      if (write && word == Sources) source_q <= 1'(merge(32'(source_q), wdata, wmask));
      // The end of a job has priority over the host's clearing of an earlier one.
      done_q <= done_i || (done_q && !(write && word == Status && wdata[0] && wmask[0]));
      irq_q <= interrupt;
    end
  end

  assign interrupt = enable_q && source_q && done_q;
  assign irq_o = irq_q;

  // The job.
  logic request_q, job_stop_q;
  logic [NumResults-1:0] result_q;
  logic [NumOutputs-1:0][63:0] outputs_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      request_q  <= 1'b0;
      job_stop_q <= 1'b0;
      result_q   <= '0;
      outputs_q  <= '0;
    end else begin
      if (request_q) begin
        request_q  <= !done_i;
        job_stop_q <= (job_stop_q || stop_q) && !done_i;
      end else begin
        request_q  <= start_q;
        job_stop_q <= start_q && stop_q;
      end
      if (done_i) begin
        result_q  <= dropped_i ? NumResults'(1) << StoppedBit : result_i;
        outputs_q <= dropped_i ? '0 : outputs_i;
      end
    end
  end

  assign request_o = request_q;
  assign stop_o = job_stop_q;
  assign busy_o = axil_busy || request_q || start_q || irq_q != interrupt;

  // Read data.
  localparam int unsigned NumValues = NumArgs + NumOutputs;
  logic [NumValues-1:0][1:0][31:0] values;
  logic [31:0] engine_word;

  assign values = {outputs_q, args_q};

  if (NumWords == 0) begin : gen_no_words
    assign engine_word = '0;
    logic unused;
    assign unused = ^words_i;
  end else begin : gen_words
    always_comb begin
      engine_word = '0;
      for (int unsigned n = 0; n < NumWords; n++)
      if (word == 10'(FirstWord + n)) engine_word |= words_i[n];
    end
  end

  always_comb begin
    rdata = engine_word;
    for (int unsigned n = 0; n < NumValues; n++)
    for (int unsigned h = 0; h < 2; h++)
    if (word == 10'(FirstValue + 4 * n + h)) rdata |= values[n][h];
    unique0 case (word)
      Control:   rdata = {29'd0, !request_q, stop_q, start_q};
      Interrupt: rdata = 32'(enable_q);
      Sources:   rdata = 32'(source_q);
      Status:    rdata = 32'(done_q);
      Result:    rdata = 32'(result_q);
      default:   ;
    endcase
  end

  `NS_ASSERT(done_while_running, !done_i || request_q)
  `NS_ASSERT(done_is_kept, !$past(rst_ni) || !$past(done_i) || done_q)

endmodule
