// SPDX-License-Identifier: Apache-2.0

// Commands written by a host into an engine's command page: the page offers them, the engine
// answers each once, in any order.
//
// `settled` becomes 1 once all writes of the PM window accepted before the command have been
// answered, so the engine reads their data. It stays 1 until the command is accepted. `done` is
// always accepted. Both sides drive all signals from registers.
interface command_page_if;
  import command_page_pkg::*;

  logic [511:0] cmd;  // byte 0 in the low bits
  logic [LineWidth-1:0] line;
  logic settled;
  logic cmd_valid, cmd_ready;
  page_done_t done;
  logic done_valid;

  modport page(output cmd, line, settled, cmd_valid, input cmd_ready, done, done_valid);
  modport engine(input cmd, line, settled, cmd_valid, output cmd_ready, done, done_valid);

endinterface
