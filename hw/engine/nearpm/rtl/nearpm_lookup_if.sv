// SPDX-License-Identifier: Apache-2.0

// Lookup of a channel's conflict filter in the table: the commands in flight that an access
// overlaps.
//
// `valid`, `lines` and `write` come from registers of the filter. `commands` is valid in the same
// cycle: it holds those that are present and do not retire in this cycle. From the next cycle on,
// the filter removes retired commands itself (`retired_o` of the table).
interface nearpm_lookup_if;
  import nearpm_pkg::*;

  logic valid;
  logic write;  // lines that a command reads count too
  range_t lines;
  commands_t commands;

  modport filter(output valid, write, lines, input commands);
  modport table_(input valid, write, lines, output commands);

endinterface
