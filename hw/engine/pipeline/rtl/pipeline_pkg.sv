// SPDX-License-Identifier: Apache-2.0

// Types of the pipeline.
package pipeline_pkg;

  /// Most entries of a list.
  localparam int unsigned MaxEntries = 16;
  /// Number of kernels that an entry can name.
  localparam int unsigned NumKernels = 3;
  localparam int unsigned Decode = 0;
  localparam int unsigned Sort = 1;
  localparam int unsigned Shuffle = 2;

  /// Opcodes of entries: the default opcodes of the three engines.
  localparam logic [NumKernels-1:0][7:0] Opcodes = {8'hD8, 8'hD0, 8'hD4};

  /// Result of a kernel's job.
  typedef struct packed {
    logic               bad_data;     // any bit of the return value from bit 4
    logic               write_error;
    logic               invalid;
    logic               stopped;
    logic               read_error;
    nvme_pkg::status_t  status;
    logic [31:0]        value;
  } kernel_result_t;

endpackage
