// Abort of I/O commands (NVM Express 1.4, 5.1), and the deletion of a submission queue whose commands take long (5.6).
//
// Looks through the owners of all slots, one in two cycles. A command that is named is offered to the data path
// (nvme_ranges) and to nvme_fused_pairing; what neither of them holds ends by itself within microseconds, unless the host is silent.
// After an Abort it waits for the entry of the command that it has found: that one is posted first, and its status says
// whether it was aborted, or had come to its end. All of this is bounded: the scan by the slots, each answer by the commands that
// wait in nvme_ranges, and the wait by the jobs and host accesses that the command has under way.
//
// The owner of a free slot stays until its next command is decoded. So `ask_same_o` follows the owner cycle by cycle: before
// a command reaches the data path or nvme_fused_pairing, its slot no longer looks like that of the one before.
`include "ns_assert.svh"

module nvme_abort
  import nvme_pkg::*;
#(
  /// Slots 0 to NumSlots-1.
  parameter int unsigned NumSlots = 128
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// What to abort.
  input  abort_t               abort_i,
  /// Done.
  output logic                 done_o,
  /// With done_o: the command has ended with Command Abort Requested.
  output logic                 aborted_o,

  /// The slot that is looked at; with ask_valid_o and fused_valid_o, the one that is asked for.
  output logic [SlotWidth-1:0] slot_o,
  /// Its submission queue, in the same cycle.
  input  logic [QidWidth-1:0]  slot_qid_i,
  /// Its command identifier, in the same cycle.
  input  logic [15:0]          slot_cid_i,

  /// The data path is asked: has it got the command in this slot, and ends it?
  output logic                 ask_valid_o,
  /// It is still the one that is looked for; else the answer must be no.
  output logic                 ask_same_o,
  /// Answer.
  input  logic                 ask_ready_i,
  /// With the answer: yes. Its entry is posted two cycles later or more.
  input  logic                 ask_found_i,
  /// nvme_fused_pairing is asked the same.
  output logic                 fused_valid_o,
  input  logic                 fused_ready_i,
  input  logic                 fused_found_i,

  /// Completion queue entry being posted.
  input  posted_t              posted_i,
  input  logic                 posted_valid_i
);

  localparam int unsigned Bits = unsigned'($clog2(NumSlots));

  typedef enum logic [2:0] {
    StIdle,
    StRead,   // whose slot is it?
    StMatch,
    StAsk,    // the data path
    StFused,  // nvme_fused_pairing
    StWait,   // for its completion
    StDone
  } state_e;

  state_e state_q;
  logic [Bits-1:0] slot_q;
  logic match_q, aborted_q, ended_q, last, step;

  assign last = slot_q == Bits'(NumSlots - 1);

  always_ff @(posedge clk_i) begin
    match_q <= slot_qid_i == abort_i.qid && (abort_i.whole || slot_cid_i == abort_i.cid);
    ended_q <= posted_valid_i && posted_i.slot == slot_o;
    aborted_q <= posted_i.status.sct == '0 && posted_i.status.sc == ScAbortRequested;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      slot_q  <= '0;
    end else begin
      unique case (state_q)
        StIdle:
        if (abort_i.valid) begin
          state_q <= StRead;
          slot_q  <= '0;
        end
        StRead: state_q <= StMatch;
        StMatch: begin
          if (match_q) state_q <= StAsk;
          else state_q <= last ? StDone : StRead;
        end
        // A deleted queue's first command of a pair is given up by nvme_fused_pairing itself.
        StAsk:
        if (ask_ready_i) begin
          if (!abort_i.whole) state_q <= ask_found_i ? StWait : StFused;
          else state_q <= last ? StDone : StRead;
        end
        StFused:
        if (fused_ready_i) begin
          if (fused_found_i) state_q <= StWait;
          else state_q <= last ? StDone : StRead;
        end
        StWait:  if (ended_q) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
      if (step) slot_q <= last ? '0 : slot_q + 1'b1;
    end
  end

  logic waited_q, result_q;
  always_ff @(posedge clk_i) begin
    waited_q <= state_q == StWait && ended_q;
    result_q <= aborted_q;
  end

  // To the next slot.
  assign step = (state_q == StMatch && !match_q) || (state_q == StAsk && ask_ready_i && abort_i.whole)
      || (state_q == StFused && fused_ready_i && !fused_found_i);
  assign ask_valid_o = state_q == StAsk;
  assign ask_same_o = match_q;
  assign fused_valid_o = state_q == StFused;
  assign slot_o = SlotWidth'(slot_q);
  assign done_o = state_q == StDone;
  assign aborted_o = waited_q && result_q;

  logic unused;
  assign unused = ^{posted_i.sqid, posted_i.cid, posted_i.phase, posted_i.status.dnr, posted_i.status.more, posted_i.status.crd};

  `NS_ASSERT(no_admin_queue, !abort_i.valid || abort_i.qid != '0)
  `NS_ASSERT(
      right_command,
      !(state_q == StWait && posted_valid_i && posted_i.slot == slot_o) || (posted_i.sqid == abort_i.qid && posted_i.cid == abort_i.cid))

endmodule
