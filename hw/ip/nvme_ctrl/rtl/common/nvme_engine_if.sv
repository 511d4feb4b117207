// SPDX-License-Identifier: Apache-2.0

// NVMe I/O commands of an engine. The controller sends them, may ask to stop them, and waits for
// one answer to each.
//
// `cmd_ready` is 1 while the engine has room for a command, and stays 1 until it has accepted one.
// An engine may hold several commands and answers them in any order. `stop_valid` names, for one
// cycle, the slot of an accepted command. That command ends soon and is answered like any other. A
// slot that the engine no longer holds is ignored. Both sides drive all signals from registers.
interface nvme_engine_if;
  import nvme_pkg::*;

  engine_cmd_t cmd;
  logic cmd_valid, cmd_ready;
  logic [SlotWidth-1:0] stop_slot;
  logic stop_valid;
  engine_done_t done;
  logic done_valid, done_ready;

  modport controller(
      output cmd, cmd_valid, stop_slot, stop_valid, done_ready,
      input cmd_ready, done, done_valid
  );
  modport engine(
      input cmd, cmd_valid, stop_slot, stop_valid, done_ready,
      output cmd_ready, done, done_valid
  );

endinterface
