// NVMe I/O commands of an engine: the controller gives them, may ask for their end, and waits for one answer to each.
//
// `ready` is 1 while the engine has room for a command, and stays 1 until it has taken one. It may take several, and answers them in any
// order. `stop` names the slot of one that it has taken, for one cycle: it ends soon, and is answered as any other; a slot that the engine
// no longer has means nothing. Both sides drive all of this from registers.
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
