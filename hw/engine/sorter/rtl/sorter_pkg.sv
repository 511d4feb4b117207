// Constants and types of the sorter.
package sorter_pkg;

  /// Records of a row: what all its networks move in a cycle.
  parameter int unsigned Lanes = 8;
  localparam int unsigned LaneBits = unsigned'($clog2(Lanes));
  /// Bits of an index.
  parameter int unsigned IndexBits = 32;

  /// Bytes of a key, as a power of two above 4.
  typedef enum logic [1:0] {
    Key32  = 2'd0,
    Key64  = 2'd1,
    Key128 = 2'd2
  } width_e;

  /// Which of two keys comes first.
  typedef enum logic [1:0] {
    Unsigned   = 2'd0,
    Complement = 2'd1,  // two's complement
    TotalOrder = 2'd2   // IEEE 754, totalOrder
  } order_e;

  /// How keys are taken.
  typedef struct packed {
    logic   descending;
    order_e order;
    width_e width;
  } kind_t;

endpackage
