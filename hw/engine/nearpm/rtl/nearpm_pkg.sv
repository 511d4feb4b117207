// Types of the crash-consistency engine: README.md says what they mean.
package nearpm_pkg;

`ifdef NEARPM_SMALL
  // As few as a proof can have: formal.
  parameter int unsigned Commands = 4;
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
`else
  /// Commands under way: the lines of the command page. A command's number is its line there.
  parameter int unsigned Commands = 64;
  parameter int unsigned CommandBits = 6;
  /// Lines of the hook's queue in each channel.
  parameter int unsigned QueueLines = 64;
  /// Counts of things in the hook are taken modulo twice that.
  parameter int unsigned CountBits = 7;
  /// Pools, and threads of each; a log is 16 * pool + thread.
  parameter int unsigned Pools = 16;
  parameter int unsigned Threads = 16;
  parameter int unsigned ThreadBits = 4;
  parameter int unsigned LogBits = 8;
  /// Bits of an address of the media.
  parameter int unsigned MediaBits = 44;
  /// Devices that a transaction can span, and bits of its number then.
  parameter int unsigned Devices = 4;
  parameter int unsigned DeviceBits = 2;
  parameter int unsigned SequenceBits = 48;
`endif
  /// Most bytes of a copy.
  parameter int unsigned MaxBytes = 65536;
  /// Bits of the number of a 64-byte line of the media.
  parameter int unsigned LineBits = MediaBits - 6;
  /// Bytes at the end of the media that are the engine's alone.
  parameter int unsigned ReservedBytes = 128 * 1024;
  /// Where in a peer's registers it is told what has been completed here: 64 bits for each device.
  parameter logic [11:0] PeerCompletions = 12'h1C0;

  typedef logic [LineBits-1:0] line_t;
  typedef logic [Commands-1:0] commands_t;  // a set of commands
  typedef logic [CountBits-1:0] count_t;
  typedef logic [SequenceBits-1:0] sequence_t;

  /// Lines of the media, first to last.
  typedef struct packed {
    logic  valid;  // else there are none
    line_t first;
    line_t last;
  } range_t;

  /// What a command touches.
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

  /// A command on its way to a unit: everything is translated and checked, and does not depend on what the contexts become. Addresses are those of the media.
  typedef struct packed {
    op_e                  op;
    logic [LogBits-1:0]   log;          // 16 * pool + thread
    logic [MediaBits-1:0] source;       // of a copy or record; apply: the record's header
    logic [MediaBits-1:0] target;       // of a copy, apply, switch; undo, redo, checkpoint: the record's header
    logic [16:0]          bytes;        // commit: its participants
    logic [63:0]          object;       // of a record, apply: offset in the pool, as in the header; for all else of a log: bytes of the log
    logic [63:0]          value;        // switch: the value; else the generation of the log as the command finds it
    logic [63:0]          transaction;
    logic [31:0]          number;       // of the record; of records in the log for all that ends it; recover of a closed log: all ones
    logic [31:0]          previous;     // offset of the record before; for all that ends the log, of its last record; 0: none. Recover of a closed log: 1 if it is spoiled
    logic [MediaBits-1:0] base;         // of the log: its descriptor
    logic [MediaBits-1:0] pool;         // of the pool
    logic [MediaBits-1:0] pool_last;    // its last byte
  } job_t;

  /// It is a commit of several devices.
  // Not all of a job matters.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic has_peers(job_t job);
    // verilator lint_on UNUSEDSIGNAL
    return job.op == OpCommit && job.bytes[Devices-1:0] != '0;
  endfunction

  /// How a unit ended a command.
  typedef struct packed {
    logic        spoiled;  // what the log has to have could not be written into its descriptor
    result_t     result;
    logic [63:0] value;
  } unit_end_t;

  /// A pool.
  typedef struct packed {
    logic                 mapped;
    logic [15:0]          process;
    logic [63:0]          base;        // virtual address
    logic [MediaBits-1:0] media;
    logic [MediaBits-1:0] bytes;
    logic [MediaBits-1:0] logs;        // offset
    logic [MediaBits-1:0] log_bytes;   // of each thread
    logic [4:0]           threads;
  } pool_t;

  /// A log.
  typedef struct packed {
    logic               spoiled;       // closed, and its descriptor does not say what it has to have
    logic               closed;        // by an error: nothing that builds on it is done until it is opened again
    logic               open;
    logic               pending;       // a commit of several devices has been taken, and its records are not deleted
    logic [Devices-1:0] participants;  // of that
    sequence_t          number;        // its transaction
    logic               committed;     // commit_redo has been taken
    logic [63:0]        generation;
    logic [31:0]        next;          // offset of the next record
    logic [31:0]        last;          // of the last one; 0: none
    logic [31:0]        records;
  } log_t;

  /// What a device tells another one: it has completed this transaction of this log, and those before it.
  typedef struct packed {
    logic [LogBits-1:0] log;
    logic [63-LogBits-SequenceBits:0] zero;
    sequence_t          number;
  } completion_t;

  /// A log that is to be made empty: the transaction that all devices have completed.
  typedef struct packed {
    logic [LogBits-1:0]   log;
    logic [MediaBits-1:0] base;        // its descriptor
    logic [63:0]          generation;  // before
    sequence_t            number;
  } delete_t;

  /// What is known of a log's transactions of several devices.
  typedef struct packed {
    logic [Devices-1:0]      notify;  // peers that are to be told
    sequence_t               all_completed;   // the last one that all participants have completed
    sequence_t [Devices-1:0] completed;  // the last one that each device has
  } peers_row_t;

endpackage
