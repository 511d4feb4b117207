// SPDX-License-Identifier: Apache-2.0

// Abort of I/O commands (NVM Express 1.4, 5.1), and deletion of a submission queue with long
// commands (5.6).
//
// Compares the owners of all slots, one in two cycles. A matching command is looked up in the data
// path (nvme_ranges) and in nvme_fused_pairing. A command in neither of them ends by itself within
// microseconds, unless the host is silent. After an Abort, the block waits for the entry of the
// command that it has found. That entry is posted first, and its status tells whether the command
// was aborted or had completed. All steps are bounded: the scan by the slots, each answer by the
// commands that wait in nvme_ranges. The wait is bounded by the descriptors and host accesses that
// the command has in flight.
//
// The owner of a free slot stays until its next command is decoded. `query_current_o` therefore
// follows the owner cycle by cycle. Before a command reaches the data path or nvme_fused_pairing,
// its slot no longer matches the previous command.
`include "ns_assert.svh"

module nvme_abort
  import nvme_pkg::*;
#(
  /// Slots 0 to NumSlots-1.
  parameter int unsigned NumSlots = 128
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// The command to abort.
  input  abort_t               abort_i,
  /// Done.
  output logic                 done_o,
  /// With done_o: the command has ended with Command Abort Requested.
  output logic                 aborted_o,

  /// The slot being compared; with query_valid_o and fused_query_valid_o, the slot of the query.
  output logic [SlotWidth-1:0] slot_o,
  /// Its submission queue, in the same cycle.
  input  logic [QidWidth-1:0]  slot_qid_i,
  /// Its command identifier, in the same cycle.
  input  logic [15:0]          slot_cid_i,

  /// Query to the data path: does it hold the command in this slot, and can it end it?
  output logic                 query_valid_o,
  /// The slot still belongs to the command; otherwise the answer must be no.
  output logic                 query_current_o,
  /// Answer.
  input  logic                 query_ready_i,
  /// With the answer: yes. The entry is posted two or more cycles later.
  input  logic                 query_found_i,
  /// The same query to nvme_fused_pairing.
  output logic                 fused_query_valid_o,
  input  logic                 fused_query_ready_i,
  input  logic                 fused_query_found_i,

  /// Completion queue entry being posted.
  input  posted_t              posted_i,
  input  logic                 posted_valid_i
);

  localparam int unsigned Bits = unsigned'($clog2(NumSlots));

  typedef enum logic [2:0] {
    StIdle,
    StReadOwner,   // read the owner of the slot
    StMatchOwner,
    StQueryData,   // the data path
    StQueryFused,  // nvme_fused_pairing
    StWaitPosted,  // for its completion
    StDone
  } state_e;

  state_e state_q;
  logic [Bits-1:0] slot_q;
  logic owner_match_q, posted_aborted_q, posted_match_q, last_slot, slot_advance;

  assign last_slot = slot_q == Bits'(NumSlots - 1);

  always_ff @(posedge clk_i) begin
    owner_match_q <= slot_qid_i == abort_i.qid && (abort_i.whole || slot_cid_i == abort_i.cid);
    posted_match_q <= posted_valid_i && posted_i.slot == slot_o;
    posted_aborted_q <= posted_i.status.sct == '0 && posted_i.status.sc == ScAbortRequested;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      slot_q  <= '0;
    end else begin
      unique case (state_q)
        StIdle:
        if (abort_i.valid) begin
          state_q <= StReadOwner;
          slot_q  <= '0;
        end
        StReadOwner: state_q <= StMatchOwner;
        StMatchOwner: begin
          if (owner_match_q) state_q <= StQueryData;
          else state_q <= last_slot ? StDone : StReadOwner;
        end
        // The first command of a fused pair of a deleted queue is ended by nvme_fused_pairing.
        StQueryData:
        if (query_ready_i) begin
          if (!abort_i.whole) state_q <= query_found_i ? StWaitPosted : StQueryFused;
          else state_q <= last_slot ? StDone : StReadOwner;
        end
        StQueryFused:
        if (fused_query_ready_i) begin
          if (fused_query_found_i) state_q <= StWaitPosted;
          else state_q <= last_slot ? StDone : StReadOwner;
        end
        StWaitPosted:  if (posted_match_q) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
      if (slot_advance) slot_q <= last_slot ? '0 : slot_q + 1'b1;
    end
  end

  logic result_valid_q, result_aborted_q;
  always_ff @(posedge clk_i) begin
    result_valid_q <= state_q == StWaitPosted && posted_match_q;
    result_aborted_q <= posted_aborted_q;
  end

  // To the next slot.
  assign slot_advance = (state_q == StMatchOwner && !owner_match_q) || (state_q == StQueryData && query_ready_i && abort_i.whole)
      || (state_q == StQueryFused && fused_query_ready_i && !fused_query_found_i);
  assign query_valid_o = state_q == StQueryData;
  assign query_current_o = owner_match_q;
  assign fused_query_valid_o = state_q == StQueryFused;
  assign slot_o = SlotWidth'(slot_q);
  assign done_o = state_q == StDone;
  assign aborted_o = result_valid_q && result_aborted_q;

  logic unused;
  assign unused = ^{posted_i.sqid, posted_i.cid, posted_i.phase, posted_i.status.dnr, posted_i.status.more, posted_i.status.crd};

  `NS_ASSERT(no_admin_queue, !abort_i.valid || abort_i.qid != '0)
  `NS_ASSERT(
      right_command,
      !(state_q == StWaitPosted && posted_valid_i && posted_i.slot == slot_o) || (posted_i.sqid == abort_i.qid && posted_i.cid == abort_i.cid))

endmodule
