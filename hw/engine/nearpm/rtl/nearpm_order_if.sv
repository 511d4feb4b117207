// What a command has to know of a channel's hook when it is taken, so that it waits for the older stores there.
//
// Stores that have passed are counted modulo 2^CountBits as they come (`stores`) and as all up to them have been answered (`answered`), lines of the queue as they come
// (`queued`) and as all up to them are in the memory (`written`); each count goes up by as much as happens in a cycle, `answered` and `written` by one at most. All from registers.
// `overlaps` is the answer, in the same cycle, to whether a line of the queue is among `lines`, which come from registers. `quiet`: no store is at the engine's port, or between it and these counts.
interface nearpm_order_if;
  import nearpm_pkg::*;

  count_t stores, answered, queued, written;
  logic quiet;
  ranges_t lines;
  logic overlap;

  modport filter(output stores, answered, queued, written, quiet, overlap, input lines);
  modport table_(input stores, answered, queued, written, quiet, overlap, output lines);

endinterface
