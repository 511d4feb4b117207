// SPDX-License-Identifier: Apache-2.0

// Registers of an engine as a source of jobs: CONTROL, STATUS and interrupt registers of the HLS
// convention.
//
// A job lasts from the start until the engine has ended it; further starts during a job have no
// effect.
`include "ns_assert.svh"

module engine_registers (
  input  logic clk_i,
  input  logic rst_ni,
  /// A further clock edge could change the state without new input.
  output logic busy_o,

  /// CONTROL: start and stop, for one cycle each.
  input  logic start_i,
  input  logic stop_i,
  /// The interrupt is enabled for the end of a job, and STATUS has one pending.
  input  logic interrupt_i,
  /// Interrupt request: rises when `interrupt_i` does.
  output logic irq_o,

  /// To engine_launch: the registers' job.
  output logic request_o,
  /// It is to end early.
  output logic stop_o,
  /// The job ends in this cycle.
  input  logic done_i
);

  logic request_q, stop_q, irq_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      request_q <= 1'b0;
      stop_q <= 1'b0;
      irq_q  <= 1'b0;
    end else begin
      irq_q <= interrupt_i;
      if (request_q) begin
        request_q <= !done_i;
        stop_q <= (stop_q || stop_i) && !done_i;
      end else begin
        request_q <= start_i;
        stop_q <= start_i && stop_i;
      end
    end
  end

  assign request_o = request_q;
  assign stop_o = stop_q;
  assign irq_o = irq_q;
  assign busy_o = request_q || start_i || irq_q != interrupt_i;

  `NS_ASSERT(done_while_running, !done_i || request_q)

endmodule
