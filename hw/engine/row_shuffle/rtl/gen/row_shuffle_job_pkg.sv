// Generated from hw/engine/row_shuffle/engine.toml by tools/regs.py: `make regs`.
package row_shuffle_job_pkg;

  localparam int unsigned NumArgs = 7;
  localparam int unsigned NumOutputs = 1;
  localparam int unsigned NumResults = 5;
  localparam int unsigned StoppedBit = 1;
  localparam int unsigned NumWords = 0;

  /// Return value.
  typedef struct packed {
    logic bad_index;
    logic write_error;
    logic invalid;
    logic stopped;
    logic read_error;
  } result_t;

endpackage
