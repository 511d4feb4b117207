// Types of command pages: see README.md of this block.
package command_page_pkg;

  /// Bytes of a page in BAR4.
  parameter int unsigned PageBytes = 4096;
  /// Lines of 64 bytes in it; a line holds a command.
  parameter int unsigned Lines = 64;
  parameter int unsigned LineWidth = 6;

  /// Cycles for which a command of an `Ordered` page is shown to its engine at most until it is taken.
  parameter int unsigned TakeCycles = 16;

  /// How a command ended.
  typedef struct packed {
    logic [LineWidth-1:0] line;
    logic [31:0]          result;  // return value; 0: all is well
    logic [63:0]          value;   // what else the engine tells
  } page_done_t;

  /// What a line reads as. The map is regs/command_page_map.rdl.
  typedef struct packed {
    logic [Lines-1:0] succeeded_lines;  // their last command has ended with result 0
    logic [Lines-1:0] busy_lines;
    logic [31:0] pad;
    logic [31:0] dropped;   // writes to lines that were busy, of all lines
    logic [31:0] ended;     // commands, of all lines
    logic [31:0] accepted;  // commands, of all lines
    logic [63:0] value;
    logic [31:0] result;
    logic [29:0] reserved;
    logic        done;      // its last command has ended
    logic        busy;      // it holds a command that has not
  } page_status_t;

endpackage
