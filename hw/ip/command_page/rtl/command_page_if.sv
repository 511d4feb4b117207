// Commands that a host has written into an engine's command page: the page gives them, the engine answers each once, in any order.
//
// `settled` is 1 once all writes of the PM window that were accepted before the command have been answered, so that the engine reads
// what they wrote; it stays 1 until the command is taken. `done` is always taken. Both sides drive all of this from registers.
interface command_page_if;
  import command_page_pkg::*;

  logic [511:0] cmd;  // byte 0 lowest
  logic [LineWidth-1:0] line;
  logic settled;
  logic cmd_valid, cmd_ready;
  page_done_t done;
  logic done_valid;

  modport page(output cmd, line, settled, cmd_valid, input cmd_ready, done, done_valid);
  modport engine(input cmd, line, settled, cmd_valid, output cmd_ready, done, done_valid);

endinterface
