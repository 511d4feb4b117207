// SPDX-License-Identifier: Apache-2.0

// Types of the crash-consistency engine; docs/hardware/nearpm.md explains them.
package nearpm_pkg;

`ifdef NEARPM_SMALL
  // Smallest configuration, for the proofs.
  parameter int unsigned Commands = 4;
`ifdef NEARPM_INTERNAL
  parameter int unsigned HostCommands = 2;
`else
  parameter int unsigned HostCommands = 4;
`endif
  parameter int unsigned CommandBits = 2;
  parameter int unsigned QueueLines = 4;
  parameter int unsigned CountBits = 3;
  parameter int unsigned Pools = 2;
  parameter int unsigned Threads = 2;
  parameter int unsigned ThreadBits = 1;
  parameter int unsigned LogBits = 2;
  parameter int unsigned MediaBits = 32;
  parameter int unsigned Devices = 2;
  parameter int unsigned DeviceBits = 1;
  parameter int unsigned SequenceBits = 2;
  parameter int unsigned SetBits = 2;
  parameter int unsigned SetLines = 2;
  parameter int unsigned EpochBits = 2;
  parameter int unsigned PartLines = 1;
`else
  /// Commands in flight: the lines of the command page, whose numbers are the commands' numbers,
  /// then the internal records of tracked pools.
  parameter int unsigned Commands = 80;
  parameter int unsigned HostCommands = 64;
  parameter int unsigned CommandBits = 7;
  /// Lines of the conflict filter's queue in each channel.
  parameter int unsigned QueueLines = 64;
  /// Counters of the conflict filter are modulo 2^CountBits, twice the largest count.
  parameter int unsigned CountBits = 7;
  /// Pools, and threads of each pool; the number of a log is 16 * pool + thread.
  parameter int unsigned Pools = 16;
  parameter int unsigned Threads = 16;
  parameter int unsigned ThreadBits = 4;
  parameter int unsigned LogBits = 8;
  /// Bits of a media address.
  parameter int unsigned MediaBits = 44;
  /// Devices that a transaction can span, and the bits of its number.
  parameter int unsigned Devices = 4;
  parameter int unsigned DeviceBits = 2;
  parameter int unsigned SequenceBits = 48;
  /// Set of the recorded lines of a tracked pool: 2^SetBits places, at most SetLines lines an
  /// epoch, bits of an epoch's number.
  parameter int unsigned SetBits = 11;
  parameter int unsigned SetLines = 1024;
  parameter int unsigned EpochBits = 16;
  /// Least number of lines of the target for each part of a copy, a power of two.
  parameter int unsigned PartLines = 64;
`endif
  /// Ranges of a command with several.
  parameter int unsigned Ranges = 7;
  /// Largest length of a copy.
  parameter int unsigned MaxBytes = 65536;
  /// Most parts of a copy.
  parameter int unsigned MaxParts = 4;
  /// Bits of a line's number on the media; a line has 64 bytes.
  parameter int unsigned LineBits = MediaBits - 6;
  /// Bytes at the end of the media that are reserved for the engine.
  parameter int unsigned ReservedBytes = 128 * 1024;
  /// Offset in a peer's registers for completion notifications: 64 bits per device.
  parameter logic [11:0] PeerCompletions = 12'h1C0;

  typedef logic [LineBits-1:0] line_t;
  typedef logic [Commands-1:0] commands_t;  // a set of commands
  typedef logic [CountBits-1:0] count_t;
  typedef logic [SequenceBits-1:0] sequence_t;
  typedef logic [LogBits-ThreadBits-1:0] pool_number_t;

  /// Lines of the media, first to last.
  typedef struct packed {
    logic  valid;  // 0: no lines
    line_t first;
    line_t last;
  } range_t;

  /// Lines that a command reads and writes.
  typedef struct packed {
    range_t reads;
    range_t writes;
  } ranges_t;

  typedef enum logic [7:0] {
    OpPoolMap    = 8'h01,
    OpPoolUnmap  = 8'h02,
    OpLogOpen    = 8'h03,
    OpSync       = 8'h04,
    OpUndo       = 8'h10,
    OpRedo       = 8'h11,
    OpCheckpoint = 8'h12,
    OpUndoRanges = 8'h13,
    OpCheckpointRanges = 8'h14,
    OpCommit     = 8'h18,
    OpCommitRedo = 8'h19,
    OpApply      = 8'h1A,
    OpDelete     = 8'h1B,
    OpAbort      = 8'h1C,
    OpRecover    = 8'h1D,
    OpCopy       = 8'h20,
    OpSwitch     = 8'h21
  } op_e;

  /// Return value, from bit 0 on.
  typedef struct packed {
    logic busy;
    logic torn;
    logic log_full;
    logic out_of_pool;
    logic wrong_process;
    logic unmapped;
    logic invalid;
    logic write_error;
    logic read_error;
  } result_t;

  /// A range of a pool.
  typedef struct packed {
    logic [15:0] bytes;  // 0: none
    logic [39:0] offset;
  } object_range_t;

  /// A command as a unit receives it: translated, checked and independent of later changes of the
  /// contexts. Addresses are media addresses. With several ranges, `source` and `pool_last` are
  /// their first and last byte, `bytes` the lines of all records, and `object` the first range.
  typedef struct packed {
    object_range_t [Ranges-2:0] more;  // ranges after the first one
    op_e                  op;
    logic [LogBits-1:0]   log;  // 16 * pool + thread
    logic [MediaBits-1:0] source;  // of a copy or record; apply: the record's header
    logic [MediaBits-1:0] target;  // of a copy, apply, switch; a new record: its header
    logic [16:0]          bytes;  // commit: participants
    logic [63:0]          object;  // record, apply: offset in the pool; otherwise: bytes of the log
    logic [63:0]          value;  // switch: value; otherwise: generation of the log
    logic [63:0]          transaction;
    // record: its number; operation that ends the log: records in it; recover of a closed log: all
    // ones
    logic [31:0]          number;
    // record: offset of the preceding one; operation that ends the log: offset of its last record,
    // 0 for none; recover of a closed log: 1 if the log is spoiled
    logic [31:0]          previous;
    logic [MediaBits-1:0] base;  // descriptor of the log
    logic [MediaBits-1:0] pool;  // first byte of the pool
    logic [MediaBits-1:0] pool_last;  // last byte of the pool
  } job_t;

  /// Pool of a log. The thread is not used.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [LogBits-ThreadBits-1:0] pool_of(logic [LogBits-1:0] log);
    // verilator lint_on UNUSEDSIGNAL
    return log[LogBits-1:ThreadBits];
  endfunction

  /// Bits of a job without its `more`: the first line in which it is saved.
  parameter int unsigned JobLineBits = $bits(job_t) - (Ranges - 1) * $bits(object_range_t);

  /// A commit of several devices.
  // Only some members of the job are used.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic has_peers(job_t job);
    // verilator lint_on UNUSEDSIGNAL
    return job.op == OpCommit && job.bytes[Devices-1:0] != '0;
  endfunction

  /// Result of a command in a unit.
  typedef struct packed {
    logic        spoiled;  // the required number of records could not be written to the descriptor
    result_t     result;
    logic [63:0] value;
  } unit_end_t;

  /// Context of a pool.
  typedef struct packed {
    logic                 mapped;
    logic [15:0]          process;
    logic [63:0]          base;  // virtual address
    logic [MediaBits-1:0] media;
    logic [MediaBits-1:0] bytes;
    logic [MediaBits-1:0] logs;  // offset in the pool
    logic [MediaBits-1:0] log_bytes;  // per thread
    logic [4:0]           threads;
    // bit 0: tracked, the engine records lines before the first store to them; bit 1: its records
    // are checkpoints
    logic [1:0]           tracked;
  } pool_t;

  /// What the trackers of stores know of a pool.
  typedef struct packed {
    logic                  recorded;  // tracked, and its log takes records now
    logic [MediaBits-13:0] first_page;
    logic [MediaBits-13:0] last_page;
    line_t                 first_log_line;  // lines of its log are not recorded
    line_t                 last_log_line;
  } tracked_pool_t;

  /// Context of a log.
  typedef struct packed {
    logic               spoiled;  // closed, and the descriptor lacks the required number of records
    // closed by an error: dependent commands end until the log is opened again
    logic               closed;
    logic               open;
    // a commit of several devices was accepted; its records are not deleted
    logic               pending;
    logic [Devices-1:0] participants;  // of the pending commit
    sequence_t          number;  // transaction of the pending commit
    logic               committed;  // commit_redo was accepted
    logic [63:0]        generation;
    logic [31:0]        next;  // offset of the next record
    logic [31:0]        last;  // offset of the last record; 0: none
    logic [31:0]        records;
  } log_t;

  /// Notification to a peer: this device has completed this transaction of the log, and all before.
  typedef struct packed {
    logic [LogBits-1:0] log;
    logic [63-LogBits-SequenceBits:0] zero;
    sequence_t          number;
  } completion_t;

  /// A log to be emptied: all devices have completed the transaction.
  typedef struct packed {
    logic [LogBits-1:0]   log;
    logic [MediaBits-1:0] base;  // descriptor
    logic [63:0]          generation;  // old generation
    sequence_t            number;
  } delete_t;

  /// Progress of one log's transactions of several devices.
  typedef struct packed {
    logic [Devices-1:0]      notify;  // peers to be notified
    // last transaction that all participants have completed
    sequence_t               all_completed;
    sequence_t [Devices-1:0] completed;  // last transaction that each device has completed
  } peers_row_t;

endpackage
