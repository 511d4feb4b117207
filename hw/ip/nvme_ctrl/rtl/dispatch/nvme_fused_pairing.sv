// SPDX-License-Identifier: Apache-2.0

// Fused operations: Compare and Write (NVM Express 1.4, 4.12, FUSE in figure 105).
//
// Receives from nvme_decode, one at a time, every I/O command that is part of a fused operation;
// the decoder waits for a few cycles. The first command of a pair is kept, for each queue, until
// the next command of its queue arrives. Other queues continue. A valid pair goes to
// nvme_fused_arbiter, one command after the other, which makes it atomic. Commands without a
// partner end as Command Aborted due to Missing Fused Command (0Ah). Those with an invalid partner
// end as Command Aborted due to Failed Fused Command (09h).
//
// A first command without a partner ends at once if it was the last one in its queue, as the
// specification requires one doorbell for both. It also ends when its queue is deleted, and when
// commands are no longer fetched. After Cycles to 2 x Cycles it ends as interrupted (see nvme_pkg),
// because its partner may find no room in the completion queue. Commands of other queues do not
// delay that. An Abort ends it as well; the answer is no while a command waits for the data path.
// Accesses to the PM window are not ordered with respect to a pair.
`include "ns_assert.svh"

module nvme_fused_pairing
  import nvme_pkg::*;
#(
  /// Queues, the admin queue included.
  parameter int unsigned NumQueues = 17,
  /// Cycles that a first command waits for its partner; it may wait up to twice as long.
  parameter int unsigned Cycles    = 6_250_000
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Cycles since the last clock edge: 1, or more if a simulation has skipped cycles.
  input  logic [31:0]          elapsed_i,
  /// From registers: number of kept first commands, if no action was due for any of them a cycle
  /// ago; otherwise 0.
  output logic [SlotWidth-1:0] kept_count_o,
  /// With kept_count_o: cycles until the first timeout, up to three fewer.
  output logic [31:0]          remaining_o,
  /// Commands are fetched.
  input  logic                 enable_i,
  /// The host accepts Command Interrupted (ACRE).
  input  logic                 acre_i,
  /// Submission queues that exist.
  input  logic [NumQueues-1:0] sq_valid_i,
  /// Queues whose first command is kept: their next command has to come here.
  output logic [NumQueues-1:0] pending_o,

  /// Command: its queue.
  input  logic [QidWidth-1:0]  cmd_qid_i,
  /// FUSE.
  input  logic [1:0]           cmd_fuse_i,
  /// Another command followed it when it was fetched.
  input  logic                 cmd_more_i,
  /// Status code of the checks of nvme_decode.
  input  logic [7:0]           cmd_sc_i,
  /// It has work for the data path.
  input  logic                 cmd_data_op_i,
  /// It is one for an engine.
  input  logic                 cmd_engine_i,
  /// Data command, as for the data path.
  input  data_cmd_t            cmd_i,
  input  logic                 cmd_valid_i,
  output logic                 cmd_ready_o,

  /// Query: is the first command in this slot kept here, and can it end? Stays until the answer, as
  /// do the following inputs.
  input  logic                 abort_valid_i,
  /// Its queue.
  input  logic [QidWidth-1:0]  abort_qid_i,
  /// The slot.
  input  logic [SlotWidth-1:0] abort_slot_i,
  /// The slot still belongs to that command.
  input  logic                 abort_current_i,
  /// Answer.
  output logic                 abort_ready_o,
  /// With the answer: yes.
  output logic                 abort_found_o,

  /// The command goes on to its engine, and is accepted.
  output logic                 engine_valid_o,
  /// Data command.
  output data_cmd_t            data_o,
  /// It is the first one of a pair.
  output logic                 data_first_o,
  /// It is the second command of the pair whose first one was the previous data command.
  output logic                 data_second_o,
  output logic                 data_valid_o,
  input  logic                 data_ready_i,
  /// Command that has ended without the data path.
  output cpl_t                 cpl_o,
  output logic                 cpl_valid_o,
  input  logic                 cpl_ready_i
);

  localparam logic [1:0] FuseFirst = 2'b01;
  localparam logic [1:0] FuseSecond = 2'b10;
  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumQueues);
  localparam int unsigned TimerBits = unsigned'($clog2(Cycles + 1));
  typedef logic [Bits-1:0] idx_t;

  typedef struct packed {
    logic [7:0] sc;
    data_cmd_t  cmd;
  } first_t;

  typedef enum logic [3:0] {
    StIdle,
    StLookup,         // read the command and the kept first command of its queue
    StKeep,           // it is a first command
    StPair,           // both are here
    StFirst,          // both go to nvme_fused_arbiter
    StSecond,
    StCompleteFirst,  // the first command ends without execution
    StComplete,       // the command ends without execution
    StForward,        // it is not part of a pair
    StAbortLookup,    // read the kept command of a queue
    StAbort           // is this the command to abort?
  } state_e;

  state_e state_q;
  idx_t idx_q, scan_q;
  logic give_up_first_q;               // the first command of idx_q ends; there is no other command
  logic paired_q;                // the command ends after the first one
  logic [NumQueues-1:0] pending_q, aged_q, expired_q;
  logic [TimerBits-1:0] timer_q;
  status_t first_status_q, status_q;
  logic kept, same_range_q, timer_wrap;

  (* ram_style = "distributed" *) first_t first_mem[NumQueues];
  first_t first, first_q;

  assign pending_o = pending_q;
  assign kept = pending_q[idx_q];
  assign first = first_mem[idx_q];
  assign timer_wrap = timer_q >= TimerBits'(Cycles);

  // Priority: an Abort, then a timeout, unless the partner is here, then the command.
  logic abort_lookup, expiry_due;
  assign abort_lookup = abort_valid_i && pending_q[idx_t'(abort_qid_i)];
  assign expiry_due = pending_q[scan_q] && (!enable_i || !sq_valid_i[scan_q] || expired_q[scan_q])
      && !(cmd_valid_i && idx_t'(cmd_qid_i) == scan_q);

  // A command with an error ends with that error, and is not aborted.
  always_comb begin
    unique case (state_q)
      StIdle:  abort_ready_o = abort_valid_i && !abort_lookup;
      StFirst, StSecond, StForward, StAbort: abort_ready_o = abort_valid_i;
      default: abort_ready_o = 1'b0;
    endcase
  end
  assign abort_found_o = state_q == StAbort && abort_current_i && first_q.cmd.slot == abort_slot_i && first_q.sc == ScSuccess;

  // Error of the first command of a pair.
  logic [7:0] first_sc;
  assign first_sc = (first_q.sc == ScSuccess && first_q.cmd.op != OpCompare) ? ScInvalidField : first_q.sc;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      pending_q <= '0;
      aged_q <= '0;
      expired_q <= '0;
      timer_q <= '0;
      scan_q <= '0;
    end else begin
      unique case (state_q)
        StIdle: begin
          if (abort_lookup) state_q <= StAbortLookup;
          else if (expiry_due || cmd_valid_i) state_q <= StLookup;
          if (!abort_lookup && !expiry_due && pending_q != '0)
            scan_q <= (scan_q == idx_t'(NumQueues - 1)) ? '0 : scan_q + 1'b1;
        end
        StLookup: begin
          if (give_up_first_q || (kept && cmd_fuse_i != FuseSecond)) state_q <= StCompleteFirst;
          else if (kept) state_q <= StPair;
          else if (cmd_fuse_i == FuseFirst) state_q <= cmd_more_i ? StKeep : StComplete;
          else state_q <= (cmd_fuse_i == FuseSecond) ? StComplete : StForward;
        end
        StKeep: begin
          pending_q[idx_q] <= 1'b1;
          state_q <= StIdle;
        end
        StPair: begin
          pending_q[idx_q] <= 1'b0;
          state_q <= StFirst;
          if (first_sc != ScSuccess || cmd_sc_i != ScSuccess || cmd_i.op != OpWrite || !same_range_q)
            state_q <= StCompleteFirst;
        end
        StFirst: if (data_ready_i) state_q <= StSecond;
        StCompleteFirst: begin
          pending_q[idx_q] <= 1'b0;
          if (cpl_ready_i) state_q <= paired_q ? StComplete : StIdle;
        end
        StAbortLookup:  state_q <= StAbort;
        StAbort: state_q <= abort_found_o ? StCompleteFirst : StIdle;
        default: if (cmd_ready_o) state_q <= StIdle;
      endcase

      // A command that was kept at one timer wrap, and is still kept at the next, has timed out.
      if (pending_q != '0 || aged_q != '0) begin
        timer_q <= timer_wrap ? '0 : timer_q + TimerBits'(elapsed_i);
        aged_q <= (timer_wrap ? '1 : aged_q) & pending_q;
        expired_q <= (timer_wrap ? aged_q : expired_q) & pending_q;
      end
    end
  end

  // For a simulation: kept commands only wait for the time.
  logic only_waiting;
  logic [SlotWidth-1:0] kept_count_d;
  assign only_waiting = state_q == StIdle && enable_i && (expired_q | (pending_q & ~sq_valid_i)) == '0 && !timer_wrap;
  always_comb begin
    kept_count_d = '0;
    for (int unsigned i = 0; i < NumQueues; i++) kept_count_d += SlotWidth'(pending_q[i]);
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) kept_count_o <= '0;
    else kept_count_o <= only_waiting ? kept_count_d : '0;
  end
  always_ff @(posedge clk_i) remaining_o <= 32'(Cycles) - 32'(timer_q);

  // Status of both commands, if they end without the data path. A command's error has priority,
  // with or without a partner.
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StIdle: begin
        idx_q <= abort_lookup ? idx_t'(abort_qid_i) : expiry_due ? scan_q : idx_t'(cmd_qid_i);
        give_up_first_q <= abort_lookup || expiry_due;
        paired_q <= 1'b0;
      end
      StLookup: begin
        first_q <= first;
        same_range_q <= first.cmd.mem_addr == cmd_i.mem_addr && first.cmd.bytes == cmd_i.bytes;
        first_status_q <= generic_status(ScMissingFused);
        if (give_up_first_q && expired_q[idx_q]) first_status_q <= interrupted_status(acre_i);
        status_q <= generic_status(
            (cmd_sc_i != ScSuccess || cmd_fuse_i == '0) ? cmd_sc_i : ScMissingFused
        );
      end
      StAbortLookup: begin
        first_q <= first;
        first_status_q <= abort_status();
      end
      StPair: begin
        paired_q <= 1'b1;
        first_status_q <= generic_status(
            (first_sc != ScSuccess) ? first_sc :
            (cmd_sc_i != ScSuccess || cmd_i.op != OpWrite) ? ScFailedFused : ScInvalidField);
        status_q <= generic_status(
            (cmd_sc_i != ScSuccess) ? cmd_sc_i : (cmd_i.op != OpWrite) ? ScInvalidField :
            (first_sc == ScSuccess && !same_range_q) ? ScInvalidField : ScFailedFused);
      end
      default: ;
    endcase
    if (state_q == StKeep) first_mem[idx_q] <= '{sc: cmd_sc_i, cmd: cmd_i};
  end

  assign data_o = (state_q == StFirst) ? first_q.cmd : cmd_i;
  assign data_first_o = state_q == StFirst;
  assign data_second_o = state_q == StSecond;
  assign data_valid_o = state_q == StFirst || state_q == StSecond || (state_q == StForward && cmd_data_op_i);
  assign cpl_o = '{
      silent: 1'b0,
      slot: (state_q == StCompleteFirst) ? first_q.cmd.slot : cmd_i.slot,
      status: (state_q != StCompleteFirst) ? status_q :
          (first_q.sc != ScSuccess) ? generic_status(first_q.sc) : first_status_q,
      dw0: '0
  };
  assign cpl_valid_o = state_q == StCompleteFirst || state_q == StComplete || (state_q == StForward && !cmd_data_op_i && !cmd_engine_i);
  assign engine_valid_o = state_q == StForward && cmd_engine_i;

  always_comb begin
    unique case (state_q)
      StKeep:   cmd_ready_o = 1'b1;
      StSecond: cmd_ready_o = data_ready_i;
      StComplete:    cmd_ready_o = cpl_ready_i;
      StForward:   cmd_ready_o = cmd_engine_i ? 1'b1 : cmd_data_op_i ? data_ready_i : cpl_ready_i;
      default:  cmd_ready_o = 1'b0;
    endcase
  end

  logic unused;
  assign unused = ^{cmd_qid_i, abort_qid_i, elapsed_i};

  `NS_ASSERT(one_at_a_time, !(data_valid_o && cpl_valid_o))
  `NS_ASSERT(
      same_is_known,
      state_q != StPair || same_range_q == (first_q.cmd.mem_addr == cmd_i.mem_addr && first_q.cmd.bytes == cmd_i.bytes))
  `NS_ASSERT(for_one, !cmd_valid_i || !(cmd_data_op_i && cmd_engine_i))

endmodule
