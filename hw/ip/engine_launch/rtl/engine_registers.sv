// The registers of an engine as a source of jobs: what CONTROL, STATUS and the interrupt's registers of the HLS convention ask for.
//
// A job lasts from the start until the engine has ended it; further starts meanwhile change nothing.
`include "ns_assert.svh"

module engine_registers (
  input  logic clk_i,
  input  logic rst_ni,
  /// A further clock edge could change the state without new input.
  output logic busy_o,

  /// CONTROL: start and stop, for one cycle each.
  input  logic start_i,
  input  logic stop_i,
  /// The interrupt is enabled, for the end of a job, and STATUS tells of one.
  input  logic interrupt_i,
  /// Interrupt request: rises when that comes to be so.
  output logic irq_o,

  /// To engine_launch: there is a job.
  output logic want_o,
  /// It is to end early.
  output logic stop_o,
  /// It ends in this cycle.
  input  logic done_i
);

  logic want_q, stop_q, irq_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      want_q <= 1'b0;
      stop_q <= 1'b0;
      irq_q  <= 1'b0;
    end else begin
      irq_q <= interrupt_i;
      if (want_q) begin
        want_q <= !done_i;
        stop_q <= (stop_q || stop_i) && !done_i;
      end else begin
        want_q <= start_i;
        stop_q <= start_i && stop_i;
      end
    end
  end

  assign want_o = want_q;
  assign stop_o = stop_q;
  assign irq_o = irq_q;
  assign busy_o = want_q || start_i || irq_q != interrupt_i;

  `NS_ASSERT(done_while_it_works, !done_i || want_q)

endmodule
