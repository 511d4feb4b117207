// SPDX-License-Identifier: Apache-2.0

// I/O commands executed by engines: holds them until their engine accepts them, and converts the
// engine's answers into completions.
//
// Commands are stored by slot, so there is always room, and no command waits for another. One slot
// is processed in a cycle. A command may have to end because of an Abort, the deletion of its
// queue, or a stop of the controller. It ends at once if its engine has not accepted it. Otherwise
// the engine is asked once to stop it, and the command ends with the engine's answer, however long
// that takes. An answer for a slot that the engine does not hold is dropped.
`include "ns_assert.svh"

module nvme_engines
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// Command slots.
  parameter int unsigned     NumSlots      = 128,
  /// See nvme_namespace.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t      NsBlocks      = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes    = 64'h1_0000_0000,
  /// Engines, 1 to 2**EngineWidth.
  parameter int unsigned     NumEngines    = 1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  /// From registers: a command or its end is being processed here. Commands that an engine executes
  /// do not count.
  output logic                     busy_o,

  /// Command: its submission queue entry.
  input  logic [511:0]             cmd_sqe_i,
  /// Its slot.
  input  logic [SlotWidth-1:0]     cmd_slot_i,
  /// Its route.
  input  engine_route_t            cmd_route_i,
  /// Its namespace's index.
  input  logic [NsWidth-1:0]       cmd_ns_i,
  /// Valid, and always accepted.
  input  logic                     cmd_valid_i,

  /// All commands have to end: the controller is being stopped.
  input  logic                     stop_i,
  /// The host accepts Command Interrupted (ACRE).
  input  logic                     acre_i,
  /// Query: is the command in this slot here? If so, it has to end.
  input  logic                     abort_valid_i,
  /// The slot.
  input  logic [SlotWidth-1:0]     abort_slot_i,
  /// The slot still belongs to that command.
  input  logic                     abort_current_i,
  /// Its queue is being deleted; otherwise an Abort.
  input  logic                     abort_deleted_i,
  /// The command is here; in the same cycle.
  output logic                     abort_found_o,

  /// Command that has ended.
  output cpl_t                     cpl_o,
  output logic                     cpl_valid_o,
  input  logic                     cpl_ready_i,
  /// Namespaces that have commands here.
  output logic [MaxNamespaces-1:0] in_flight_o,

  /// The engines.
  nvme_engine_if.controller m_engine[NumEngines]
);

  localparam int unsigned SlotBits = idx_width(NumSlots);
  // Index of answers for commands that no engine has accepted.
  localparam int unsigned Dropped = NumEngines;
  localparam int unsigned SourceBits = idx_width(NumEngines + 1);
  typedef logic [SlotBits-1:0] slot_t;
  typedef logic [NumSlots-1:0] slots_t;

  // A stored command.
  typedef struct packed {
    logic [EngineWidth-1:0]        engine;
    logic [EngineCommandWidth-1:0] command;
    logic [511:0]                  sqe;
  } queued_cmd_t;

  // State by slot: at most one of the first two is 1.
  slots_t waiting_q;    // no engine has accepted it
  slots_t running_q;     // an engine has accepted it
  slots_t ending_q;     // it has to end
  slots_t deleted_q;  // because its queue is being deleted
  slots_t stop_sent_q;    // its engine has been asked to stop it

  (* ram_style = "distributed" *) queued_cmd_t queued_cmd_mem[NumSlots];
  // A copy of the engine number, for the answers.
  (* ram_style = "distributed" *) logic [EngineWidth-1:0] engine_mem[NumSlots];

  // ---------------------------------------------------------------- one slot a cycle

  slot_t cmd_slot, abort_slot, scan_q, stop_slot_q, drop_done_slot_q;
  logic [NumEngines-1:0] valid_q, ready, engine_stop_q;
  logic [2**EngineWidth-1:0] engine_room;
  queued_cmd_t queued_cmd;
  namespace_t ns;
  engine_cmd_t cmd_q;
  logic
      ending, cmd_shown, issue_valid, drop_valid, stop_request, drop_done_valid_q, drop_done_ready;

  nvme_namespace #(
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes)
  ) u_namespace (
    .nsid_i(queued_cmd.sqe[63:32]),
    .ns_o  (ns)
  );

  assign cmd_slot = slot_t'(cmd_slot_i);
  assign abort_slot = slot_t'(abort_slot_i);
  assign abort_found_o = abort_valid_i && abort_current_i && (waiting_q[abort_slot] || running_q[abort_slot]);

  assign engine_room = (2 ** EngineWidth)'(ready);
  assign queued_cmd = queued_cmd_mem[scan_q];
  assign ending = ending_q[scan_q] || stop_i;
  // A valid command is accepted in the next cycle, as its engine has signalled that there is room.
  assign cmd_shown = valid_q != '0;
  assign issue_valid = waiting_q[scan_q] && !ending && !cmd_shown && engine_room[queued_cmd.engine];
  assign drop_valid = waiting_q[scan_q] && ending && !drop_done_valid_q;
  assign stop_request = running_q[scan_q] && ending && !stop_sent_q[scan_q] && !cmd_shown;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      scan_q <= '0;
      valid_q <= '0;
      engine_stop_q <= '0;
      drop_done_valid_q <= 1'b0;
    end else begin
      if (cmd_valid_i && !busy_o) scan_q <= cmd_slot;
      else if (busy_o) scan_q <= (scan_q == slot_t'(NumSlots - 1)) ? '0 : scan_q + 1'b1;
      valid_q <= issue_valid ? NumEngines'(1) << queued_cmd.engine : valid_q & ~ready;
      engine_stop_q <= stop_request ? NumEngines'(1) << queued_cmd.engine : '0;
      drop_done_valid_q <= drop_valid || (drop_done_valid_q && !drop_done_ready);
    end
  end

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i) begin
      queued_cmd_mem[cmd_slot] <= '{
          engine: cmd_route_i.engine,
          command: cmd_route_i.command,
          sqe: cmd_sqe_i
      };
      engine_mem[cmd_slot] <= cmd_route_i.engine;
    end
    if (issue_valid)
      cmd_q <= '{
          slot: SlotWidth'(scan_q),
          command: queued_cmd.command,
          ns_base: 64'(ns.base),
          ns_blocks: 64'(ns.blocks),
          sqe: queued_cmd.sqe
      };
    if (stop_request) stop_slot_q <= scan_q;
    if (drop_valid) drop_done_slot_q <= scan_q;
  end

  // ---------------------------------------------------------------- answers

  engine_done_t [NumEngines:0] done;
  logic [NumEngines:0] done_valid, done_gnt;
  logic [SourceBits-1:0] done_idx;
  logic done_any, done_fire;

  for (genvar e = 0; e < NumEngines; e++) begin : gen_engine
    assign m_engine[e].cmd_valid = valid_q[e];
    assign m_engine[e].cmd = cmd_q;
    assign ready[e] = m_engine[e].cmd_ready;
    assign m_engine[e].stop_valid = engine_stop_q[e];
    assign m_engine[e].stop_slot = SlotWidth'(stop_slot_q);
    assign done[e] = m_engine[e].done;
    assign done_valid[e] = m_engine[e].done_valid;
    assign m_engine[e].done_ready = done_gnt[e] && done_fire;
  end

  assign done[Dropped] = '{slot: SlotWidth'(drop_done_slot_q), stopped: 1'b1, status: '0, dw0: '0};
  assign done_valid[Dropped] = drop_done_valid_q;
  assign drop_done_ready = done_gnt[Dropped] && done_fire;

  ns_rr_arbiter #(
    .N(NumEngines + 1)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (done_valid),
    .next_i (done_fire),
    .gnt_o  (done_gnt),
    .idx_o  (done_idx),
    .valid_o(done_any)
  );

  // One at a time: is it the answer to a command?
  engine_done_t answer_q;
  logic [SourceBits-1:0] source_q;
  logic answer_valid_q, from_drop, answer_known, answer_fire, cpl_ready;
  slot_t answer_slot;
  status_t status;

  assign done_fire = !answer_valid_q;
  assign answer_slot = slot_t'(answer_q.slot);
  assign from_drop = source_q == SourceBits'(Dropped);
  assign answer_known = from_drop || (32'(answer_q.slot) < NumSlots && running_q[answer_slot] && 32'(engine_mem[answer_slot]) == 32'(source_q));
  assign answer_fire = answer_valid_q && answer_known && cpl_ready;

  always_comb begin
    status = answer_q.status;
    if (answer_q.stopped) begin
      if (ending_q[answer_slot] && deleted_q[answer_slot]) status = retry_status(ScSqDeletion);
      else if (ending_q[answer_slot]) status = abort_status();
      else if (stop_i) status = interrupted_status(acre_i);
      else status = retry_status(ScInternalError);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) answer_valid_q <= 1'b0;
    else answer_valid_q <= done_fire ? done_any : !cpl_ready && answer_known;
  end

  always_ff @(posedge clk_i) begin
    if (done_fire) begin
      answer_q <= done[done_idx];
      source_q <= done_idx;
    end
  end

  ns_skid #(
    .Width($bits(cpl_t))
  ) u_cpl (
    .clk_i,
    .rst_ni,
    .in_valid_i (answer_valid_q && answer_known),
    .in_ready_o (cpl_ready),
    .in_data_i  ({1'b0, answer_q.slot, status, answer_q.dw0}),
    .out_valid_o(cpl_valid_o),
    .out_ready_i(cpl_ready_i),
    .out_data_o (cpl_o)
  );

  // ---------------------------------------------------------------- slots

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waiting_q <= '0;
      running_q <= '0;
      ending_q <= '0;
      deleted_q <= '0;
      stop_sent_q <= '0;
    end else begin
      if (issue_valid || drop_valid) waiting_q[scan_q] <= 1'b0;
      if (issue_valid) running_q[scan_q] <= 1'b1;
      if (stop_request) stop_sent_q[scan_q] <= 1'b1;
      if (abort_found_o) begin
        ending_q[abort_slot] <= 1'b1;
        deleted_q[abort_slot] <= abort_deleted_i;
      end
      if (answer_fire) running_q[answer_slot] <= 1'b0;
      if (cmd_valid_i) begin
        waiting_q[cmd_slot] <= 1'b1;
        ending_q[cmd_slot] <= 1'b0;
        deleted_q[cmd_slot] <= 1'b0;
        stop_sent_q[cmd_slot] <= 1'b0;
      end
    end
  end

  logic in_flight_busy;
  nvme_ns_in_flight #(
    .NumSlots     (NumSlots),
    .NumNamespaces(NumNamespaces)
  ) u_ns_in_flight (
    .clk_i,
    .rst_ni,
    .busy_o      (in_flight_busy),
    .start_i     (cmd_valid_i),
    .start_slot_i(cmd_slot_i),
    .start_ns_i  (cmd_ns_i),
    .end_i       (answer_fire),
    .end_slot_i  (answer_q.slot),
    .in_flight_o
  );

  assign busy_o = waiting_q != '0 || (running_q & ~stop_sent_q & (ending_q | {NumSlots{stop_i}})) != '0 || cmd_shown || drop_done_valid_q ||
      answer_valid_q || cpl_valid_o || in_flight_busy;

  logic unused;
  assign unused = ^{cmd_route_i, ns, cmd_slot_i, abort_slot_i};

  if (NumEngines < 1 || NumEngines > 2 ** EngineWidth) begin : gen_bad_engines
    $error("nvme_engines: NumEngines must be 1 to 8");
  end

  `NS_ASSERT(slot_is_free, !cmd_valid_i || !(waiting_q[cmd_slot] || running_q[cmd_slot]))
  `NS_ASSERT(one_place, (waiting_q & running_q) == '0)
  `NS_ASSERT(no_other_engine, !cmd_valid_i || 32'(cmd_route_i.engine) < NumEngines)
  `NS_ASSERT(engine_has_room, (valid_q & ~ready) == '0)
  `NS_ASSERT(answers_a_command, !answer_valid_q || answer_known)
  `NS_ASSERT(stopped_on_request,
             !answer_valid_q || from_drop || !answer_q.stopped || stop_sent_q[answer_slot])

endmodule
