// Types inside the data path of nvme_ctrl: between the PRP walkers, the splitter, the movers and the slot tracker.
package nvme_data_pkg;

  import nvme_pkg::SlotWidth;
  import nvme_pkg::data_status_e;

  /// Bytes of a segment or a job: 4 to 4096.
  parameter int unsigned LenWidth = 13;

  /// Part of a command within one host page; on the media it may cross one granule boundary.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [LenWidth-1:0]  len;
    logic [63:0]          mem;
    logic [63:0]          host;
  } seg_t;

  /// A copy within one 4 KiB page at both ends. Addresses and length are multiples of 4.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [LenWidth-1:0]  len;
    logic [63:0]          src;
    logic [63:0]          dst;
  } job_t;

  /// What a job's write side needs.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [LenWidth-1:0]  len;
    logic [63:0]          dst;
  } target_t;

  /// Jobs of one command: up to two for each page of 2 MiB, modulo which the slot tracker counts.
  parameter int unsigned JobsWidth = 11;

  /// News for the slot tracker. From a mover: one job has ended. From a walker: the command has `jobs` jobs in all.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic                 walk;    // from a walker
    logic [JobsWidth-1:0] jobs;    // with walk
    data_status_e         status;
  } event_t;

endpackage
