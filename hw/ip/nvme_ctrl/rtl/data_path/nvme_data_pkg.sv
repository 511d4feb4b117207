// Types inside the data path of nvme_ctrl: between the PRP walkers, the splitter, the movers and the slot tracker.
package nvme_data_pkg;

  import nvme_pkg::SlotWidth;
  import nvme_pkg::data_status_e;

  /// Bytes of a segment or a job: 4 to 4096.
  parameter int unsigned LenWidth = 13;

  /// What is done to a segment or job.
  typedef enum logic [1:0] {
    KindCopy    = 2'd0,
    KindZero    = 2'd1,  // write zeros: there is no source
    KindDrop    = 2'd2,  // read and forget: there is no target
    KindCompare = 2'd3   // read both sides and compare: there is no target
  } transfer_kind_e;

  /// Part of a command within one host page. From a walker it may cross one 4 KiB boundary of the media, and `more` says that
  /// another segment of its command follows. From nvme_block_assembler on it is a piece of a group, which lies within 4 KiB of the
  /// media, and `more` says that another piece of the group follows, next. The host's address counts only for copies and
  /// comparisons.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e                kind;
    logic                 more;
    logic [LenWidth-1:0]  total;  // bytes of the group; counts for its first piece
    logic [LenWidth-1:0]  len;
    logic [63:0]          mem;
    logic [63:0]          host;
  } seg_t;

  /// Work within one 4 KiB page at both ends. Addresses and length are multiples of 4. Without a target, dst is the
  /// media address, to whose place within a beat the data is brought.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e                kind;
    logic                 more;   // of its group, another piece follows next
    logic [LenWidth-1:0]  total;  // bytes of the group; counts for its first piece
    logic [LenWidth-1:0]  len;
    logic [63:0]          src;
    logic [63:0]          dst;
  } desc_t;

  /// What a job's write side needs.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e                kind;
    logic [LenWidth-1:0]  len;
    logic [63:0]          dst;
  } write_desc_t;

  /// A range of the media for nvme_range_walk; a command has one or more, and ends with the one that is `last`.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e                kind;    // KindZero or KindDrop
    logic                 last;
    data_status_e         status;  // with last
    logic [54:0]          lba;
    logic [31:0]          blocks;  // may be 0
  } range_t;

  /// The slot tracker counts a command's jobs modulo 2**JobsWidth: more than there ever are in the movers at a time.
  parameter int unsigned DescsWidth = 13;

  /// News for the slot tracker. From a mover: one job has ended. From a walker: the command has `jobs` jobs in all.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic                 walk;    // from a walker
    logic [DescsWidth-1:0] descs;    // with walk
    data_status_e         status;
  } transfer_event_t;

  /// IDs of list reads: walkers of PRPs and SGLs in both directions, one for lists of ranges.
  function automatic int unsigned num_lists(int unsigned walkers, int unsigned sgl_walkers);
    return 2 * (walkers + sgl_walkers) + 1;
  endfunction

  /// Bits of an ID at the controller's host port: those of a list, and the number of a master.
  function automatic int unsigned host_id_bits(int unsigned channels, int unsigned walkers,
                                               int unsigned sgl_walkers);
    return unsigned'($clog2(num_lists(walkers, sgl_walkers) + 1)) + unsigned'($clog2(channels + 2));
  endfunction

endpackage
