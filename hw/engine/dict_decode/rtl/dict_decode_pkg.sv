// Types of the dictionary decoder.
package dict_decode_pkg;

  /// Keys of a row.
  localparam int unsigned Lanes = 16;
  /// Bits of a key that may be in a dictionary.
  localparam int unsigned KeyBits = 16;
  /// Bits of a number of source bytes.
  localparam int unsigned SizeBits = 41;

  /// What the source holds.
  typedef struct packed {
    logic       fixed;  // keys of 8, 16 or 32 bits, without runs
    logic       plain;  // values
    logic [1:0] size;   // of a value, log2 of its bytes
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
