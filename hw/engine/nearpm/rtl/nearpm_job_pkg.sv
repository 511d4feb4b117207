// SPDX-License-Identifier: Apache-2.0

// Properties of a command that follow from its job alone.
package nearpm_job_pkg;
  import nearpm_pkg::*;

  /// Has several ranges.
  function automatic logic has_ranges(op_e op);
    return op inside {OpUndoRanges, OpCheckpointRanges};
  endfunction

  /// Makes records.
  function automatic logic makes_record(op_e op);
    return op inside {OpUndo, OpRedo, OpCheckpoint} || has_ranges(op);
  endfunction

  /// Leaves an empty log of the next generation; a commit of several devices does so later.
  function automatic logic ends_log(op_e op);
    return op inside {OpCommit, OpDelete, OpAbort, OpRecover};
  endfunction

  /// Its end completes its transaction, for the progress word of its log.
  function automatic logic completes_transaction(op_e op);
    return op inside {OpCommit, OpCommitRedo, OpDelete, OpAbort, OpSwitch};
  endfunction

  /// Belongs to a thread's log.
  function automatic logic uses_log(op_e op);
    return makes_record(op) || ends_log(op) || op inside {OpLogOpen, OpCommitRedo, OpApply};
  endfunction

  /// Closes the log of its thread when it fails.
  function automatic logic closes_log(op_e op);
    return uses_log(op) || op inside {OpCopy, OpSwitch};
  endfunction

  /// Is not assigned to a unit if the log of its thread was closed after the command was accepted.
  function automatic logic builds_on_log(op_e op);
    return needs_log(op) || op inside {OpLogOpen, OpSwitch};
  endfunction

  /// Requires an open log.
  function automatic logic needs_log(op_e op);
    return uses_log(op) && op != OpLogOpen && op != OpRecover;
  endfunction

  function automatic range_t lines_of(logic [MediaBits-1:0] first, logic [MediaBits-1:0] last);
    return '{valid: 1'b1, first: line_t'(first >> 6), last: line_t'(last >> 6)};
  endfunction

  function automatic range_t bytes_of(logic [MediaBits-1:0] first, logic [16:0] bytes);
    return lines_of(first, first + MediaBits'(bytes) - 1'b1);
  endfunction

  /// Header and payload.
  function automatic range_t record_of(logic [MediaBits-1:0] header, logic [16:0] bytes);
    return lines_of(header, header + MediaBits'(bytes) + MediaBits'(63));
  endfunction

  /// Lines that a copy writes.
  // Only some members of the job are used.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [10:0] target_lines(job_t job);
    // verilator lint_on UNUSEDSIGNAL
    return 11'((18'(job.target[5:0]) + 18'(job.bytes) + 18'd63) >> 6);
  endfunction

  /// Lines that the command reads and writes.
  // Only some members of the job are used.
  // verilator lint_off UNUSEDSIGNAL
  function automatic ranges_t ranges_of(job_t job);
    // verilator lint_on UNUSEDSIGNAL
    ranges_of = '0;
    unique case (job.op)
      OpUndo, OpRedo, OpCheckpoint: begin
        // A record that cannot be made has no bytes; its object is a line.
        ranges_of.reads  = bytes_of(job.source, (job.bytes == '0) ? 17'd64 : job.bytes);
        ranges_of.writes = record_of(job.target, job.bytes);
      end
      OpUndoRanges, OpCheckpointRanges: begin
        ranges_of.reads  = lines_of(job.source, job.pool_last);
        ranges_of.writes = lines_of(job.target, job.target + MediaBits'({job.bytes, 6'd0}) - 1'b1);
      end
      OpApply: begin
        ranges_of.reads  = record_of(job.source, job.bytes);
        ranges_of.writes = bytes_of(job.target, job.bytes);
      end
      OpCopy: begin
        ranges_of.reads  = bytes_of(job.source, job.bytes);
        ranges_of.writes = bytes_of(job.target, job.bytes);
      end
      OpSwitch: ranges_of.writes = lines_of(job.target, job.target);
      OpPoolUnmap, OpAbort, OpRecover: ranges_of.writes = lines_of(job.pool, job.pool_last);
      default:
      ranges_of.writes = lines_of(job.base, job.base + job.object[MediaBits-1:0] - 1'b1);
    endcase
  endfunction

endpackage
