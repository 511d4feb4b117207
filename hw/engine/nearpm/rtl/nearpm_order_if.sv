// SPDX-License-Identifier: Apache-2.0

// State of a channel's conflict filter that a new command needs, so that it waits for older stores.
//
// - `stores`: stores that have arrived; `answered`: stores up to which all are answered.
// - `queued`: lines that entered the queue; `written`: lines up to which all are in the memory.
// - `overlap`: a line of the queue lies in `lines`, in the same cycle.
// - `quiet`: no store is at the port of the engine or on its way to these counters.
//
// Counters are modulo 2^CountBits. `answered` and `written` rise by at most one per cycle. All
// outputs but `overlap` come from registers, as does `lines`.
interface nearpm_order_if;
  import nearpm_pkg::*;

  count_t stores, answered, queued, written;
  logic quiet;
  ranges_t lines;
  logic overlap;

  modport filter(output stores, answered, queued, written, quiet, overlap, input lines);
  modport table_(input stores, answered, queued, written, quiet, overlap, output lines);

endinterface
