// Generated from hw/engine/dict_decode/engine.toml by tools/regs.py: `make regs`.
package dict_decode_job_pkg;

  localparam int unsigned NumArgs = 7;
  localparam int unsigned NumOutputs = 1;
  localparam int unsigned NumResults = 7;
  localparam int unsigned StoppedBit = 1;
  localparam int unsigned NumWords = 0;

  /// Return value.
  typedef struct packed {
    logic overrun;
    logic truncated;
    logic bad_key;
    logic write_error;
    logic invalid;
    logic stopped;
    logic read_error;
  } result_t;

endpackage
