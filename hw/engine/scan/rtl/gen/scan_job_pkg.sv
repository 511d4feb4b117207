// Generated from hw/engine/scan/engine.toml by tools/regs.py: `make regs`.
package scan_job_pkg;

  localparam int unsigned NumArgs = 6;
  localparam int unsigned NumOutputs = 1;
  localparam int unsigned NumResults = 4;
  localparam int unsigned StoppedBit = 1;
  localparam int unsigned NumWords = 0;

  /// Return value.
  typedef struct packed {
    logic write_error;
    logic invalid;
    logic stopped;
    logic read_error;
  } result_t;

endpackage
