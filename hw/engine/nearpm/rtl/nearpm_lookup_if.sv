// A question of a channel's hook to the table of commands: which of those under way does an access overlap?
//
// `valid`, `lines` and `write` come from registers of the hook. `commands` is the answer in the same cycle: those that the table holds in this cycle and that do not
// end in it. From the next cycle on the hook takes away by itself those that end (`ended` of the table).
interface nearpm_lookup_if;
  import nearpm_pkg::*;

  logic valid;
  logic write;  // it overlaps what a command reads, too; else only what it writes
  range_t lines;
  commands_t commands;

  modport filter(output valid, write, lines, input commands);
  modport table_(input valid, write, lines, output commands);

endinterface
