// SPDX-License-Identifier: Apache-2.0

// Constants and types of the sorter.
package sorter_pkg;

  /// Records in a row, which is what every network moves per cycle.
  parameter int unsigned Lanes = 8;
  localparam int unsigned LaneBits = unsigned'($clog2(Lanes));
  /// Bits of an index.
  parameter int unsigned IndexBits = 32;

  /// Size of a key: 4 bytes shifted left by this value.
  typedef enum logic [1:0] {
    Key32  = 2'd0,
    Key64  = 2'd1,
    Key128 = 2'd2
  } width_e;

  /// Order of keys.
  typedef enum logic [1:0] {
    Unsigned   = 2'd0,
    Complement = 2'd1,  // two's complement
    TotalOrder = 2'd2   // IEEE 754, totalOrder
  } order_e;

  /// Kind of keys.
  typedef struct packed {
    logic   descending;
    order_e order;
    width_e width;
  } kind_t;

  /// Highest bit of a key, and all of its bits.
  function automatic logic [127:0] key_top(width_e width);
    return 128'd1 << ((32'd32 << width) - 32'd1);
  endfunction

  function automatic logic [127:0] key_mask(width_e width);
    return key_top(width) | (key_top(width) - 128'd1);
  endfunction

  /// Map a key to the unsigned number of the same order, and back.
  function automatic logic [127:0] to_number(logic [127:0] key, kind_t kind);
    logic [127:0] top, mask;
    top = key_top(kind.width);
    mask = key_mask(kind.width);
    to_number = key;
    if (kind.order == Complement) to_number ^= top;
    if (kind.order == TotalOrder) to_number ^= ((key & top) != '0) ? mask : top;
    if (kind.descending) to_number ^= mask;
  endfunction

  function automatic logic [127:0] to_key(logic [127:0] number, kind_t kind);
    logic [127:0] top, mask;
    top = key_top(kind.width);
    mask = key_mask(kind.width);
    to_key = number;
    if (kind.descending) to_key ^= mask;
    if (kind.order == TotalOrder) to_key ^= ((to_key & top) != '0) ? top : mask;
    if (kind.order == Complement) to_key ^= top;
  endfunction

endpackage
