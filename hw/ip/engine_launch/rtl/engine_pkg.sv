// What engines ask of the ranges in their arguments.
package engine_pkg;

  /// A range, by the place behind its last byte, goes beyond 2^64. One that ends there does not.
  function automatic logic wraps(logic [64:0] range_end);
    return range_end > {1'b1, 64'd0};
  endfunction

  /// Two ranges share a byte, or an empty one begins within another.
  function automatic logic overlap(logic [63:0] a, logic [64:0] a_end, logic [63:0] b,
                                   logic [64:0] b_end);
    return 65'(a) < b_end && 65'(b) < a_end;
  endfunction

endpackage
