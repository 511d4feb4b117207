// SPDX-License-Identifier: Apache-2.0

// Types of command pages: see docs/hardware/command_page.md.
package command_page_pkg;

  /// Bytes of a page in BAR4.
  parameter int unsigned PageBytes = 4096;
  /// Lines of 64 bytes in it; a line holds a command.
  parameter int unsigned Lines = 64;
  parameter int unsigned LineWidth = 6;

  /// Most cycles for which a command of an `Ordered` page is offered to its engine until it is
  /// accepted.
  parameter int unsigned TakeCycles = 16;

  /// Result of a command.
  typedef struct packed {
    logic [LineWidth-1:0] line;
    logic [31:0]          result;  // return value; 0: success
    logic [63:0]          value;   // output of the engine
  } page_done_t;

  /// Content of a line when read. The map is regs/command_page_map.rdl.
  typedef struct packed {
    logic [Lines-1:0] succeeded_lines;  // their last command ended with result 0
    logic [Lines-1:0] busy_lines;
    logic [31:0] pad;
    logic [31:0] dropped;   // writes to lines that were busy, of all lines
    logic [31:0] ended;     // commands, of all lines
    logic [31:0] accepted;  // commands, of all lines
    logic [63:0] value;
    logic [31:0] result;
    logic [29:0] reserved;
    logic        done;      // its last command has ended
    logic        busy;      // its command has not ended
  } page_status_t;

endpackage
