// Generated from hw/engine/pipeline/engine.toml by tools/regs.py: `make regs`.
package pipeline_job_pkg;

  localparam int unsigned NumArgs = 5;
  localparam int unsigned NumOutputs = 1;
  localparam int unsigned NumResults = 6;
  localparam int unsigned StoppedBit = 1;
  localparam int unsigned NumWords = 32;
  localparam int unsigned ProgressWord = 0;
  localparam int unsigned ItemsLoWord = 1;
  localparam int unsigned ItemsHiWord = 2;
  localparam int unsigned CyclesWord = 16;

  /// Return value.
  typedef struct packed {
    logic bad_data;
    logic bad_entry;
    logic write_error;
    logic invalid;
    logic stopped;
    logic read_error;
  } result_t;

endpackage
