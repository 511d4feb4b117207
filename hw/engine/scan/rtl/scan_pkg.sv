// SPDX-License-Identifier: Apache-2.0

// Types of the scan engine.
package scan_pkg;

  /// Line of the bitmap, or part of one.
  typedef struct packed {
    logic [63:0]  strb;
    logic [63:0]  addr;  // on the media, a multiple of 64
    logic [511:0] data;
  } bitmap_line_t;

endpackage
