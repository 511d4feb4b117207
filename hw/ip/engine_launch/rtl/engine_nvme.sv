// NVMe I/O commands of an engine that carries out one at a time: keeps the command, and answers it.
//
// The engine looks at the kept command and says what is wrong with it; if nothing is, the command is a job for engine_launch.
`include "ns_assert.svh"

module engine_nvme
  import nvme_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  /// From registers: there is a command.
  output logic busy_o,

  /// The controller.
  nvme_engine_if.engine s_nvme,

  /// The command, until it has been answered.
  output engine_cmd_t cmd_o,
  /// What is wrong with it, two cycles later or sooner; ScSuccess: nothing.
  input  status_t     refused_i,

  /// To engine_launch: it is to be carried out.
  output logic        want_o,
  /// It is to end early.
  output logic        stop_o,
  /// It ends in this cycle.
  input  logic        done_i,
  /// Then: since it was asked to.
  input  logic        stopped_i,
  /// Then, if not so: how.
  input  status_t     status_i,
  /// Then: dword 0 of its completion queue entry.
  input  logic [31:0] dw0_i
);

  typedef enum logic [2:0] {
    StIdle,
    StLook,     // the engine looks at it
    StVerdict,  // what it says comes into a register
    StChoose,
    StWork,
    StAnswer
  } state_e;

  state_e state_q;
  engine_cmd_t cmd_q;
  logic stop_q, stopped_q;
  status_t status_q;
  logic [31:0] dw0_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      stop_q  <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle: if (s_nvme.cmd_valid) state_q <= StLook;
        StLook: state_q <= StVerdict;
        StVerdict: state_q <= StChoose;
        StChoose: state_q <= (status_q.sct == '0 && status_q.sc == ScSuccess) ? StWork : StAnswer;
        StWork: if (done_i) state_q <= StAnswer;
        default: if (s_nvme.done_ready) state_q <= StIdle;
      endcase
      if (state_q == StIdle) stop_q <= 1'b0;
      else if (s_nvme.stop_valid && s_nvme.stop_slot == cmd_q.slot) stop_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) cmd_q <= s_nvme.cmd;
    if (state_q == StVerdict) begin
      stopped_q <= 1'b0;
      status_q <= refused_i;
      dw0_q <= '0;
    end else if (done_i) begin
      stopped_q <= stopped_i;
      status_q <= status_i;
      dw0_q <= dw0_i;
    end
  end

  assign cmd_o = cmd_q;
  assign want_o = state_q == StWork;
  assign stop_o = stop_q;
  assign busy_o = state_q != StIdle;
  assign s_nvme.cmd_ready = state_q == StIdle;
  assign s_nvme.done_valid = state_q == StAnswer;
  assign s_nvme.done = '{
          slot: cmd_q.slot,
          stopped: stopped_q && stop_q,
          status: status_q,
          dw0: stopped_q ? '0 : dw0_q
      };

  `NS_ASSERT(done_while_it_works, !done_i || state_q == StWork)
  `NS_ASSERT(stopped_if_asked, !done_i || !stopped_i || stop_q)

endmodule
