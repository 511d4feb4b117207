// SPDX-License-Identifier: Apache-2.0

// Makes fused pairs atomic. It sits between the decoders and the data path.
//
// Without a pair, data commands pass straight through. A pair is two consecutive commands, a
// Compare and a Write. It waits until each data command in flight that overlaps it has ended. Then
// its Compare goes to the data path and, if it succeeds, its Write. From then until the pair's end,
// other commands that overlap it are held. All others pass, a few cycles later than usual. Only
// overlapping commands wait for a pair, and a pair waits only for overlapping commands.
//
// Held commands and further pairs continue in the order of arrival when the pair has ended. A
// Dataset Management with ranges to deallocate, which are not known here, overlaps its whole
// namespace. A pair whose Compare has failed ends with Command Aborted due to Failed Fused Command
// (09h) for its Write.
//
// A pair may wait for minutes. When a queue is deleted, its commands that wait for such a pair, or
// form that pair, therefore end (`abort_waiting_i`). For this, all waiting commands are rotated
// once, in order, and the aborted ones are removed. No command enters during the rotation; commands
// that do not overlap the pair pass. A Write is removed with its Compare. If the oldest pair is not
// blocked, no waiting command waits for long, and nothing is removed.
//
// Assumptions: a command stays until it is accepted; a pair's Write directly follows its Compare,
// with the same namespace and range. A command ends only after it has begun; slots of commands
// inside are not reused.
`include "ns_assert.svh"

module nvme_fused_arbiter
  import nvme_pkg::*;
#(
  /// Command slots.
  parameter int unsigned     NumSlots   = 128,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes = 64'h1_0000_0000
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// From registers: there is a pair, or a held command.
  output logic                 busy_o,

  /// Data command of an I/O queue.
  input  data_cmd_t            cmd_i,
  /// It is the Compare of a pair.
  input  logic                 cmd_first_i,
  /// It is the Write of the pair whose Compare was the previous command.
  input  logic                 cmd_second_i,
  input  logic                 cmd_valid_i,
  output logic                 cmd_ready_o,

  /// Data command. Once shown, it stays.
  output data_cmd_t            data_o,
  output logic                 data_valid_o,
  input  logic                 data_ready_i,
  /// A data command has ended.
  input  logic                 end_i,
  /// Its slot.
  input  logic [SlotWidth-1:0] end_slot_i,
  /// It has failed.
  input  logic                 end_error_i,

  /// End the command in this slot if it waits inside for long: its queue is being deleted. A pair's
  /// Write ends with its Compare.
  input  logic                 abort_waiting_i,
  /// The slot.
  input  logic [SlotWidth-1:0] abort_waiting_slot_i,

  /// Write of a pair whose Compare has failed, or a command of a queue that is being deleted.
  output cpl_t                 cpl_o,
  output logic                 cpl_valid_o,
  input  logic                 cpl_ready_i,
  /// A cycle without end_i in which that command counts as ended.
  output logic                 drop_valid_o,
  /// Its slot.
  output logic [SlotWidth-1:0] drop_slot_o
);

  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumSlots);
  localparam int unsigned AddrBits = unsigned'($clog2(
      MediaBytes
  )) - 9 + 1;  // a block's number, or one more
  localparam int unsigned LenBits = BytesWidth - 9;
  typedef logic [AddrBits-1:0] addr_t;
  typedef logic [Bits-1:0] idx_t;

  /// The range of a command.
  typedef struct packed {
    logic               all;    // of the namespace
    logic [NsWidth-1:0] ns;
    addr_t              first;
    logic [LenBits-1:0] blocks;
  } span_t;

  typedef struct packed {
    logic      first;
    logic      second;
    data_cmd_t cmd;
  } held_t;

  // Incoming command.
  typedef enum logic [1:0] {
    InIdle,
    InCompare,  // does it overlap the pair?
    InShow,     // no
    InQueue
  } in_e;

  // Oldest command inside.
  typedef enum logic [4:0] {
    StIdle,
    StRelease,       // not a pair: forward it
    StLoad,          // a pair
    StScan,          // is this slot's command in flight?
    StReadSpan,      // read its range
    StCheckOverlap,  // does it overlap the pair?
    StBlocked,       // yes: wait until it has ended
    StCompare,       // the Compare goes to the data path
    StWait,          // until it has ended
    StWrite,         // the Write goes to the data path
    StWaitWrite,
    StAbortWrite,    // the Write ends without execution
    StDrop,
    StRoundStart,    // the pair waits and a queue is being deleted: count the commands inside
    StRoundLookup,   // is the oldest one to end?
    StRoundDecide,   // decide, with its partner
    StRoundRequeue,  // no: it moves to the end of the queue
    StRoundAbort,    // yes
    StRoundNext      // slot of the next one
  } state_e;

  typedef enum logic [1:0] {
    ShowNone,
    ShowIn,  // the incoming command
    ShowHeld
  } show_e;

  logic engaged_q;  // there are commands inside
  logic active_q;   // a pair is active, from its scan to its end; with pair_q and pair_end_q
  in_e in_q;
  state_e state_q;
  show_e show_q;
  span_t pair_q;
  addr_t pair_end_q;
  logic [SlotWidth-1:0] slot_q;  // of the pair's command in flight, or of the one that fails
  idx_t scan_q;
  logic last_slot;

  // Commands inside, in order.
  held_t held;
  logic held_valid, held_pop, push, push_ready, empty;
  logic [$clog2(NumSlots+1)-1:0] count;
  logic round_visit, round_remove, round_requeue;

  ns_fifo #(
    .Width($bits(held_t)),
    // The command that blocks a pair is not inside, so the rotation has a free place.
    .Depth(NumSlots),
    .Style("lutram")
  ) u_held (
    .clk_i,
    .rst_ni,
    .in_valid_i (push || round_requeue),
    .in_ready_o (push_ready),
    .in_data_i  (round_requeue ? held : {cmd_first_i, cmd_second_i, cmd_i}),
    .out_valid_o(held_valid),
    .out_ready_i(held_pop),
    .out_data_o (held),
    .count_o    (count)
  );

  // Commands in flight, by slot.
  logic [NumSlots-1:0] in_flight_q;
  logic [SlotWidth-1:0] in_flight_count_q;
  (* ram_style = "distributed" *) span_t span_mem[NumSlots];
  span_t span_q, start_span, in_span, held_span;
  logic start;
  assign start = data_valid_o && data_ready_i;
  assign start_span = '{all: data_o.op == OpDeallocate, ns: data_o.ns, first: data_o.mem_addr[9+:AddrBits], blocks: data_o.bytes[BytesWidth-1:9]};
  assign in_span = '{all: cmd_i.op == OpDeallocate, ns: cmd_i.ns, first: cmd_i.mem_addr[9+:AddrBits], blocks: cmd_i.bytes[BytesWidth-1:9]};
  assign held_span = '{all: held.cmd.op == OpDeallocate, ns: held.cmd.ns, first: held.cmd.mem_addr[9+:AddrBits], blocks: held.cmd.bytes[BytesWidth-1:9]};

  always_ff @(posedge clk_i) begin
    if (start) span_mem[idx_t'(data_o.slot)] <= start_span;
    if (state_q == StScan) span_q <= span_mem[scan_q];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_flight_q <= '0;
      in_flight_count_q <= '0;
    end else begin
      if (end_i) in_flight_q[idx_t'(end_slot_i)] <= 1'b0;
      if (start) in_flight_q[idx_t'(data_o.slot)] <= 1'b1;
      if (start && !end_i) in_flight_count_q <= in_flight_count_q + 1'b1;
      if (end_i && !start) in_flight_count_q <= in_flight_count_q - 1'b1;
    end
  end

  // Commands inside except the Writes of pairs, by slot, and which of them have to end.
  logic [NumSlots-1:0] waiting_q, to_abort_q;
  logic half_pair_q;  // the last command that entered was a Compare, whose Write follows
  logic any_to_abort_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waiting_q <= '0;
      to_abort_q <= '0;
      half_pair_q <= 1'b0;
      any_to_abort_q <= 1'b0;
    end else begin
      // Slot by slot, which is a shorter path than to select one of them first.
      to_abort_q <= to_abort_q | (waiting_q & (NumSlots'(abort_waiting_i) << idx_t'(abort_waiting_slot_i)));
      if (held_pop && !round_requeue) begin
        waiting_q[idx_t'(held.cmd.slot)] <= 1'b0;
        to_abort_q[idx_t'(held.cmd.slot)] <= 1'b0;
      end
      if (push) begin
        waiting_q[idx_t'(cmd_i.slot)] <= !cmd_second_i;
        half_pair_q <= cmd_first_i;
      end
      any_to_abort_q <= to_abort_q != '0;
    end
  end

  // Rotation.
  logic [$clog2(NumSlots+1)-1:0] round_q;  // commands not yet processed
  logic round_active_q;
  logic round_oldest_q;                          // the next one is the oldest one
  logic oldest_removed_q;                            // the oldest one has been removed
  // The previous one was removed, and was a Compare.
  logic partner_removed_q;
  idx_t head_slot_q;                     // of the next one, a cycle later
  logic abort_oldest_q;                           // it has to end

  // In two steps: compute the ends, then compare. The incoming command is stable meanwhile.
  addr_t in_end_q, span_end_q;
  logic in_disjoint, disjoint;

  function automatic logic overlaps(addr_t a, addr_t a_end, addr_t b, addr_t b_end);
    return a < b_end && b < a_end;
  endfunction

  assign in_disjoint = in_span.ns != pair_q.ns || !(in_span.all || overlaps(in_span.first, in_end_q, pair_q.first, pair_end_q));
  assign disjoint = span_q.ns != pair_q.ns || !(span_q.all || overlaps(span_q.first, span_end_q, pair_q.first, pair_end_q));

  always_ff @(posedge clk_i) begin
    in_end_q   <= in_span.first + AddrBits'(in_span.blocks);
    span_end_q <= span_q.first + AddrBits'(span_q.blocks);
    if (state_q == StIdle) pair_q <= held_span;
    pair_end_q <= pair_q.first + AddrBits'(pair_q.blocks);
  end

  logic unpaired, disengage, overlap_check;
  assign unpaired = !cmd_first_i && !cmd_second_i;
  assign empty = count == '0;
  assign disengage = empty && state_q == StIdle && in_q == InIdle && (unpaired || !cmd_valid_i);
  assign overlap_check = unpaired && active_q;

  // Until a pair has begun its scan, incoming commands queue after those inside. Commands found not
  // to overlap a pair pass before the next pair begins its scan.
  logic in_show_request, held_show_request, in_stable;
  assign in_show_request = in_q == InShow && show_q != ShowIn;
  assign held_show_request = (state_q == StRelease || state_q == StCompare || state_q == StWrite && held_valid) && show_q != ShowHeld;
  assign in_stable = in_q == InIdle || in_q == InQueue;
  assign last_slot = scan_q == idx_t'(NumSlots - 1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      engaged_q <= 1'b0;
      active_q <= 1'b0;
      in_q <= InIdle;
      state_q <= StIdle;
      show_q <= ShowNone;
      scan_q <= '0;
    end else begin
      if (!engaged_q) engaged_q <= cmd_valid_i && !unpaired;
      else engaged_q <= !disengage;

      unique case (in_q)
        InIdle:    if (engaged_q && !disengage && cmd_valid_i) in_q <= overlap_check ? InCompare : InQueue;
        InCompare: in_q <= in_disjoint ? InShow : InQueue;
        InShow:    if (show_q == ShowIn && data_ready_i) in_q <= InIdle;
        default:   if (push) in_q <= InIdle;
      endcase

      unique case (show_q)
        ShowNone: if (held_show_request) show_q <= ShowHeld; else if (in_show_request) show_q <= ShowIn;
        default:  if (data_ready_i) show_q <= ShowNone;
      endcase

      unique case (state_q)
        StIdle:
        if (held_valid && in_stable) begin
          state_q <= held.first ? StLoad : StRelease;
        end
        StRelease: if (show_q == ShowHeld && data_ready_i) state_q <= StIdle;
        StLoad: begin
          state_q <= StScan;
          active_q <= 1'b1;
          scan_q <= '0;
        end
        StScan: begin
          if (in_flight_count_q == '0) state_q <= StCompare;
          else if (in_flight_q[scan_q]) state_q <= StReadSpan;
          else if (last_slot) state_q <= StCompare;
          else scan_q <= scan_q + 1'b1;
        end
        StReadSpan: state_q <= StCheckOverlap;
        StCheckOverlap: begin
          if (!disjoint) state_q <= StBlocked;
          else if (last_slot) state_q <= StCompare;
          else begin
            state_q <= StScan;
            scan_q  <= scan_q + 1'b1;
          end
        end
        StBlocked: begin
          if (!in_flight_q[scan_q]) state_q <= StScan;
          else if (any_to_abort_q) state_q <= StRoundStart;
        end
        StRoundStart: state_q <= half_pair_q ? StBlocked : StRoundLookup;
        StRoundLookup: state_q <= StRoundDecide;
        StRoundDecide: begin
          if (round_visit) state_q <= round_remove ? StRoundAbort : StRoundRequeue;
          else if (round_q == '0) begin
            // The blocking command may have ended meanwhile, and its slot may be in use again.
            state_q  <= oldest_removed_q ? StIdle : StScan;
            active_q <= !oldest_removed_q;
          end
        end
        StRoundRequeue: state_q <= StRoundNext;
        StRoundNext: state_q <= StRoundLookup;
        StRoundAbort: if (cpl_ready_i) state_q <= StDrop;
        StCompare: if (show_q == ShowHeld && data_ready_i) state_q <= StWait;
        StWait:
        if (end_i && end_slot_i == slot_q) state_q <= end_error_i ? StAbortWrite : StWrite;
        StWrite: if (show_q == ShowHeld && data_ready_i) state_q <= StWaitWrite;
        StWaitWrite:
        if (end_i && end_slot_i == slot_q) begin
          state_q  <= StIdle;
          active_q <= 1'b0;
        end
        StAbortWrite: if (held_valid && cpl_ready_i) state_q <= StDrop;
        default:
        if (!end_i) begin
          state_q  <= round_active_q ? StRoundLookup : StIdle;
          active_q <= round_active_q;
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) if (held_pop) slot_q <= held.cmd.slot;

  // Rotation. A Write is removed if its Compare was; it directly follows it.
  assign round_visit = state_q == StRoundDecide && round_q != '0 && held_valid;
  assign round_remove = round_visit && (held.second ? partner_removed_q : abort_oldest_q);
  assign round_requeue = state_q == StRoundRequeue;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) round_active_q <= 1'b0;
    else if (state_q == StRoundStart) round_active_q <= !half_pair_q;
    else if (state_q == StRoundDecide && round_q == '0) round_active_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    head_slot_q <= idx_t'(held.cmd.slot);
    if (state_q == StRoundLookup) abort_oldest_q <= to_abort_q[head_slot_q];
    if (state_q == StRoundStart) begin
      round_q <= count;
      round_oldest_q <= 1'b1;
      oldest_removed_q <= 1'b0;
    end else if (round_visit) begin
      round_q <= round_q - 1'b1;
      round_oldest_q <= 1'b0;
      partner_removed_q <= round_remove && held.first;
      if (round_remove && round_oldest_q) oldest_removed_q <= 1'b1;
    end
  end

  assign push = in_q == InQueue && !round_active_q && state_q != StRoundStart;
  assign held_pop = (show_q == ShowHeld && data_ready_i) || ((state_q == StAbortWrite || state_q == StRoundAbort) && cpl_ready_i) || round_requeue;

  assign data_o = (show_q == ShowHeld) ? held.cmd : cmd_i;
  assign data_valid_o = engaged_q ? show_q != ShowNone : cmd_valid_i && unpaired;
  assign cmd_ready_o = engaged_q ? push || (show_q == ShowIn && data_ready_i) : unpaired && data_ready_i;
  assign busy_o = engaged_q;

  assign cpl_o = '{
          silent: 1'b0,
          slot: held.cmd.slot,
          status: (state_q == StRoundAbort) ? data_status(DataDeleted, 1'b0) : generic_status(ScFailedFused),
          dw0: '0
      };
  assign cpl_valid_o = (state_q == StAbortWrite && held_valid) || state_q == StRoundAbort;
  assign drop_valid_o = state_q == StDrop && !end_i;
  assign drop_slot_o = slot_q;

  logic unused;
  assign unused = ^{held.second, pair_q.all, abort_waiting_slot_i};

  `NS_ASSERT(has_room, !(push || round_requeue) || (push_ready && (round_requeue || cmd_valid_i)))
  `NS_ASSERT(second_after_first,
             !(state_q inside {StWrite, StAbortWrite} && held_valid) || held.second)
  `NS_ASSERT(first_or_plain, !(state_q == StIdle && held_valid) || !held.second)
  `NS_ASSERT(nothing_ends_that_has_not_begun, !end_i || in_flight_count_q != '0)
  `NS_ASSERT(inside_is_engaged,
             engaged_q || (empty && state_q == StIdle && in_q == InIdle && show_q == ShowNone))

endmodule
