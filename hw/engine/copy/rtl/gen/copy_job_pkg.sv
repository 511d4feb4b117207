// Generated from hw/engine/copy/engine.toml by tools/regs.py: `make regs`.
package copy_job_pkg;

  localparam int unsigned NumArgs = 3;
  localparam int unsigned NumOutputs = 1;
  localparam int unsigned NumResults = 4;
  localparam int unsigned StoppedBit = 2;
  localparam int unsigned NumWords = 0;

  /// Return value.
  typedef struct packed {
    logic invalid;
    logic stopped;
    logic write_error;
    logic read_error;
  } result_t;

endpackage
