// SPDX-License-Identifier: Apache-2.0

// Glitch-free clock gate: `clk_o` has a pulse for each high phase of `clk_i` before which `en_i`
// was 1.
//
// Assumes that `en_i` comes from registers on the rising edge of `clk_i` (or of a clock gated from
// it). Define NS_CLOCK_GATE_BYPASS to leave every clock running. That is the default for FPGAs: a
// gate made of LUTs skews clocks, and there are fewer clock buffers than gated blocks. So no block
// may rely on a stopped clock. Define NS_CLOCK_GATE_BUFGCE to use the cell of AMD FPGAs; an ASIC
// flow replaces the module with its cell.
module ns_clock_gate (
  /// Free-running clock.
  input  logic clk_i,
  /// Let the next pulse through.
  input  logic en_i,
  /// Gated clock.
  output logic clk_o
);

`ifdef NS_CLOCK_GATE_BYPASS
  logic unused;
  assign unused = en_i;
  assign clk_o = clk_i;
`elsif NS_CLOCK_GATE_BUFGCE
  BUFGCE u_bufgce (
    .I (clk_i),
    .CE(en_i),
    .O (clk_o)
  );
`else
  logic en;  // follows en_i while the clock is low only

  always_latch if (!clk_i) en = en_i;
  assign clk_o = clk_i && en;
`endif

endmodule
