// SPDX-License-Identifier: Apache-2.0

// Types within a unit.
package nearpm_unit_pkg;
  import nearpm_pkg::*;

  /// Largest payload of a small record: with its header it is a burst.
  parameter int unsigned SmallBytes = 448;

  typedef enum logic [2:0] {
    // makes consecutive small records, each of the header `line`, still without CRCs, and the range
    // from source; after each record these are those of the next one
    MoveRecords,
    MoveCopy,  // `bytes` from source to target, of any alignment
    MoveSum,  // CRC of whole lines that hold `bytes` bytes
    // searches lines for a later header: log and generation of `line`, at least its number, and
    // written after all preceding records were persistent
    MoveSeek,
    MoveLoad,  // reads a line
    MoveStore  // writes `bytes` of a line, from the target's offset in it on
  } move_e;

  typedef struct packed {
    move_e                kind;
    logic                 pad;  // copy to the start of a line: fill the last line with zeros
    logic                 seal;  // store: the last 4 bytes of the line are its CRC
    logic [MediaBits-1:0] source;
    logic [MediaBits-1:0] target;
    logic [16:0]          bytes;
    logic [18:0]          length;  // of all records together
    logic [511:0]         line;  // store, seek
  } move_t;

endpackage
