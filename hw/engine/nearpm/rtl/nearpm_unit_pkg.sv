// What goes on inside of a unit.
package nearpm_unit_pkg;
  import nearpm_pkg::*;

  typedef enum logic [2:0] {
    MoveCopy,  // `bytes` from source to target, of any alignment
    MoveSum,   // reads whole lines with `bytes` bytes
    MoveSeek,  // reads them, and tells whether one is a header of the same log and generation as `line`, of no lower number, before which all others were persistent
    MoveLoad,  // reads a line
    MoveStore  // writes `bytes` of a line, those at the target's offset in it on
  } move_e;

  typedef struct packed {
    move_e                kind;
    logic                 pad;     // copy: the target, from a line's start on, ends with a whole line, filled with zeros
    logic                 seal;    // store: the line's last 4 bytes are its CRC
    logic [MediaBits-1:0] source;
    logic [MediaBits-1:0] target;
    logic [16:0]          bytes;
    logic [511:0]         line;    // store, seek
  } move_t;

endpackage
