// SPDX-License-Identifier: Apache-2.0

// Types of the dictionary decoder.
package dict_decode_pkg;

  /// Keys in a row.
  localparam int unsigned Lanes = 16;
  /// Bits of a key that a dictionary can hold.
  localparam int unsigned KeyBits = 16;
  /// Bits of a source size in bytes.
  localparam int unsigned SizeBits = 41;

  /// Format of the source.
  typedef struct packed {
    logic       fixed;  // keys of 8, 16 or 32 bits, without runs
    logic       plain;  // plain values, no keys
    logic [1:0] size;   // log2 of a value's bytes
    logic [5:0] width;  // bits of a key
  } kind_t;

  /// How a stream of keys ends.
  typedef enum logic [2:0] {
    EndOk,
    EndReadError,
    EndTruncated,
    EndOverrun,
    EndBadKey
  } end_e;

endpackage
