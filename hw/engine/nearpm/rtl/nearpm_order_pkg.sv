// SPDX-License-Identifier: Apache-2.0

// Order events for simulation (`NS_ORDER`, checked builds of crates/rtl).
//
// Without the macro this file and the recorders are empty.
`ifdef NS_ORDER
package nearpm_order_pkg;
  import nearpm_pkg::*;

  // The numbers match crates/rtl/src/order.rs.
  parameter int OrderStore = 0;  // small: channel; a, b: lines
  parameter int OrderStoreResolved = 1;  // channel; a: place; b: 1 if queued
  parameter int OrderStoreIssued = 2;  // channel; a: place
  parameter int OrderStoreAnswered = 3;  // channel; a: place
  parameter int OrderLineIssued = 4;  // channel
  parameter int OrderLineWritten = 5;  // channel
  parameter int OrderLoad = 6;  // channel; a, b: lines; c: id
  parameter int OrderLoadIssued = 7;  // channel; a: id
  parameter int OrderLoadDone = 8;  // channel; a: id
  parameter int OrderCommand = 9;  // number, op, log, participants; a: transaction; b to e: lines
  parameter int OrderCommandAnswered = 10;  // number
  parameter int OrderCommandIssued = 11;  // number
  parameter int OrderCommandRetired = 12;  // number; a: without an error
  parameter int OrderLogVoid = 13;  // log; a: transaction
  parameter int OrderCommandRestored = 14;  // as OrderCommand
  parameter int OrderLineRestored = 15;  // channel; a: line
  parameter int OrderWindowOpen = 16;

  import "DPI-C" function void ns_order(
    input int kind,
    input int small_,
    input longint a,
    input longint b,
    input longint c,
    input longint d,
    input longint e
  );

  /// An absent range is encoded with its first line above its last line.
  // Only some members of the job are used.
  // verilator lint_off UNUSEDSIGNAL
  function automatic void report_command(int kind, logic [CommandBits-1:0] number, job_t job,
                                         ranges_t ranges);
    // verilator lint_on UNUSEDSIGNAL
    logic [7:0] participants;
    participants = (job.op == OpCommit) ? 8'(job.bytes[Devices-1:0]) : '0;
    ns_order(kind, {participants, 8'(job.log), job.op, 8'(number)}, job.transaction,
             ranges.reads.valid ? 64'(ranges.reads.first) : 64'd1,
             ranges.reads.valid ? 64'(ranges.reads.last) : 64'd0,
             ranges.writes.valid ? 64'(ranges.writes.first) : 64'd1,
             ranges.writes.valid ? 64'(ranges.writes.last) : 64'd0);
  endfunction

endpackage
`endif
