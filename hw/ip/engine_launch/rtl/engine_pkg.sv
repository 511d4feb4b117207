// SPDX-License-Identifier: Apache-2.0

// Checks of the address ranges in arguments of engines.
package engine_pkg;

  /// A range exceeds 2^64, given the address after its last byte. A range that ends at 2^64 does
  /// not.
  function automatic logic wraps(logic [64:0] range_end);
    return range_end > {1'b1, 64'd0};
  endfunction

  /// Two ranges share a byte, or an empty one starts within the other.
  function automatic logic overlap(logic [63:0] a, logic [64:0] a_end, logic [63:0] b,
                                   logic [64:0] b_end);
    return 65'(a) < b_end && 65'(b) < a_end;
  endfunction

endpackage
