// SPDX-License-Identifier: Apache-2.0

// Merges the jobs of an engine's registers, NVMe I/O commands and command page, for an engine that
// performs one job at a time.
//
// A job is the list of arguments of `engine.toml`, 64 bits each, whatever its source. The engine
// decodes an NVMe command into arguments, and reports the result of each job. The registers report
// the jobs that they have started.
module engine_job_mux
  import nvme_pkg::*;
#(
  /// Arguments, 1 to 7.
  parameter int unsigned NumArgs    = 3,
  /// Outputs, at least 1; the page returns the first one, and a completion its lower half.
  parameter int unsigned NumOutputs = 1,
  /// Bits of the return value.
  parameter int unsigned NumResults = 4,
  /// The result bit for a stopped job.
  parameter int unsigned StoppedBit = 0,
  /// Read-only registers from 0x100.
  parameter int unsigned NumWords   = 0,
  localparam int unsigned WordPorts = (NumWords == 0) ? 1 : NumWords
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// A further clock edge could change the state without new input. Driven by registers.
  output logic                        busy_o,

  /// Register port, and the words from 0x100.
  ns_axil_if.slave                    s_axil,
  input  logic [WordPorts-1:0][31:0]  words_i,
  /// Interrupt request: rises when a job of the registers ends.
  output logic                        irq_o,

  /// NVMe I/O commands.
  nvme_engine_if.engine               s_nvme,
  /// The current command.
  output engine_cmd_t                 cmd_o,
  /// Its error status, within two cycles; ScSuccess: none.
  input  status_t                     refused_i,
  /// Its arguments, at the same time.
  input  logic [NumArgs-1:0][63:0]    cmd_args_i,

  /// The command page.
  command_page_if.engine              s_page,

  /// To the engine: a job starts, for one cycle.
  output logic                        job_start_o,
  /// Its arguments, until the next one starts.
  output logic [NumArgs-1:0][63:0]    job_args_o,
  /// It is malformed: to be ended as invalid.
  output logic                        job_malformed_o,
  /// It is to end early.
  output logic                        job_stop_o,
  /// The job ends in this cycle.
  input  logic                        job_done_i,
  /// With job_done_i: its return value and outputs,
  input  logic [NumResults-1:0]       job_result_i,
  input  logic [NumOutputs-1:0][63:0] job_outputs_i,
  /// and the status of an NVMe command that was not stopped.
  input  status_t                     job_status_i
);

  localparam int unsigned Registers = 0;
  localparam int unsigned Nvme = 1;
  localparam int unsigned Page = 2;
  localparam int unsigned Sources = 3;

  typedef struct packed {
    logic                     malformed;
    logic [NumArgs-1:0][63:0] args;
  } job_t;

  logic [Sources-1:0] requests, stop_requests, done, dropped;
  job_t [Sources-1:0] jobs;
  job_t job;
  logic launch_busy, registers_busy, nvme_busy, page_busy, malformed;
  logic [NumArgs-1:0][63:0] register_args, page_args;

  engine_registers #(
    .NumArgs   (NumArgs),
    .NumOutputs(NumOutputs),
    .NumResults(NumResults),
    .StoppedBit(StoppedBit),
    .NumWords  (NumWords)
  ) u_registers (
    .clk_i,
    .rst_ni,
    .busy_o   (registers_busy),
    .s_axil,
    .words_i,
    .irq_o,
    .request_o(requests[Registers]),
    .args_o   (register_args),
    .stop_o   (stop_requests[Registers]),
    .done_i   (done[Registers]),
    .dropped_i(dropped[Registers]),
    .result_i (job_result_i),
    .outputs_i(job_outputs_i)
  );

  engine_nvme u_nvme (
    .clk_i,
    .rst_ni,
    .busy_o   (nvme_busy),
    .s_nvme,
    .cmd_o,
    .refused_i,
    .request_o(requests[Nvme]),
    .stop_o   (stop_requests[Nvme]),
    .done_i   (done[Nvme]),
    .stopped_i(dropped[Nvme] || job_result_i[StoppedBit]),
    .status_i (job_status_i),
    .dw0_i    (job_outputs_i[0][31:0])
  );

  engine_page #(
    .NumArgs(NumArgs)
  ) u_page (
    .clk_i,
    .rst_ni,
    .busy_o     (page_busy),
    .s_page,
    .request_o  (requests[Page]),
    .args_o     (page_args),
    .malformed_o(malformed),
    .done_i     (done[Page]),
    .result_i   (32'(job_result_i)),
    .value_i    (job_outputs_i[0])
  );

  assign stop_requests[Page] = 1'b0;
  assign jobs[Registers] = '{malformed: 1'b0, args: register_args};
  assign jobs[Nvme] = '{malformed: 1'b0, args: cmd_args_i};
  assign jobs[Page] = '{malformed: malformed, args: page_args};

  engine_launch #(
    .N    (Sources),
    .Width($bits(job_t))
  ) u_launch (
    .clk_i,
    .rst_ni,
    .busy_o   (launch_busy),
    .request_i(requests),
    .args_i   (jobs),
    .stop_i   (stop_requests),
    .done_o   (done),
    .dropped_o(dropped),
    .start_o  (job_start_o),
    .args_o   (job),
    .stop_o   (job_stop_o),
    .done_i   (job_done_i)
  );

  assign job_args_o = job.args;
  assign job_malformed_o = job.malformed;
  assign busy_o = launch_busy || registers_busy || nvme_busy || page_busy;

endmodule
