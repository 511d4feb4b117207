// One address channel of the NVMe controller: an address that conflicts waits here, and those behind it.
`include "ns_assert.svh"

module nearpm_gate
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_hook_pkg::*;
(
  input  logic      clk_i,
  input  logic      rst_ni,
  input  logic      freeze_i,
  input  commands_t ended_i,
  input  count_t    written_i,

  /// An address may be looked up.
  output logic      open_o,
  /// One is being looked up; what it waits for is there at the end of this cycle.
  input  logic      look_i,
  input  ax_t       look_ax_i,
  input  waits_t    look_waits_i,

  /// It passes. From registers.
  output logic      ax_valid_o,
  output ax_t       ax_o,
  input  logic      ax_ready_i,
  /// There is one. From a register.
  output logic      busy_o
);

  logic valid_q, shown_q;
  ax_t ax_q;
  waits_t waits_q;

  assign open_o = !freeze_i && !look_i && !valid_q;
  assign ax_valid_o = valid_q && none(waits_q) && (!freeze_i || shown_q);
  assign ax_o = ax_q;
  assign busy_o = valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      shown_q <= 1'b0;
    end else begin
      shown_q <= ax_valid_o && !ax_ready_i;
      if (look_i) valid_q <= 1'b1;
      else if (ax_valid_o && ax_ready_i) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (look_i) begin
      ax_q <= look_ax_i;
      waits_q <= look_waits_i;
    end else begin
      waits_q <= left(waits_q, ended_i, written_i);
    end
  end

  `NS_ASSERT(one_at_a_time, !look_i || !valid_q)
  `NS_ASSERT(passes_nobody, !(ax_valid_o && !shown_q) || none(waits_q))

endmodule
