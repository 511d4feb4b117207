// SPDX-License-Identifier: Apache-2.0

// Types of ns_dma.
package ns_dma_pkg;

  /// A copy: any addresses, any length from 1 byte on; the two ranges do not overlap.
  typedef struct packed {
    logic [31:0] bytes;
    logic [63:0] dst;
    logic [63:0] src;
  } dma_cmd_t;

  /// Result of a copy: the errors. Without either, all data is written and answered.
  typedef struct packed {
    logic write_error;
    logic read_error;
  } dma_done_t;

endpackage
