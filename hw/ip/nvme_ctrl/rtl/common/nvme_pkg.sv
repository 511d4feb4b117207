// SPDX-License-Identifier: Apache-2.0

// Types shared by the front end and the data path of nvme_ctrl, and the constants of NVM Express
// 1.4 that they use.
package nvme_pkg;

  /// Widest command slot number; a controller has `NumSlots` <= 2**SlotWidth of them.
  parameter int unsigned SlotWidth = 8;

  /// Bytes that one command moves between host and device: up to 1 MiB (MDTS 8 at 4 KiB pages).
  parameter int unsigned TransferWidth = 21;

  /// Bytes of any data command. Commands that move no data go up to 65536 blocks.
  parameter int unsigned BytesWidth = 26;

  /// Width of a namespace's index, NSID - 1.
  parameter int unsigned NsWidth = 4;

  /// What a data command does.
  typedef enum logic [2:0] {
    OpRead       = 3'd0,  // device -> host memory
    OpWrite      = 3'd1,  // host memory -> device
    OpCompare    = 3'd2,  // host memory against the media
    OpZero       = 3'd3,  // write zeros; no host memory
    OpVerify     = 3'd4,  // read and drop; no host memory
    OpDeallocate = 3'd5   // write zeros to the ranges of a list of `bytes` bytes in host memory
  } data_op_e;

  /// One command's data transfer, from the front end to the data path.
  typedef struct packed {
    logic [SlotWidth-1:0]  slot;      // returned in data_done_t
    data_op_e              op;
    logic                  sgl;       // prp2, prp1 are an SGL descriptor (NVMe 1.4, 4.4)
    logic [NsWidth-1:0]    ns;        // namespace, for the ranges of a list
    logic [BytesWidth-1:0] bytes;     // a multiple of 4, at least 4
    logic [63:0]           mem_addr;  // media address, a multiple of 4; bit 63: the admin buffer
    logic [63:0]           prp1;      // dword-aligned (NVMe 1.4, 4.3)
    logic [63:0]           prp2;
  } data_cmd_t;

  /// How a data transfer ended.
  typedef enum logic [3:0] {
    DataOk             = 4'd0,
    DataBadPrp         = 4'd1,   // PRP Offset Invalid (13h)
    DataHostError      = 4'd2,   // host answered with an error: Data Transfer Error (04h)
    DataReadError      = 4'd3,   // error of device memory: Unrecovered Read Error (2/81h)
    DataWriteFault     = 4'd4,   // error of device memory: Write Fault (2/80h)
    DataMismatch       = 4'd5,   // host memory and media differ: Compare Failure (2/85h)
    DataOutOfRange     = 4'd6,   // a range ends beyond the namespace: LBA Out of Range (80h)
    DataBadSegment     = 4'd7,   // Invalid SGL Segment Descriptor (0Dh)
    DataBadCount       = 4'd8,   // Invalid Number of SGL Descriptors (0Eh)
    DataBadLength      = 4'd9,   // Data SGL Length Invalid (0Fh)
    DataBadType        = 4'd10,  // SGL Descriptor Type Invalid (11h)
    DataBadGranularity = 4'd11,  // SGL Data Block Granularity Invalid (1Eh)
    // Ended early, as the controller is being stopped: see interrupted_status.
    DataInterrupted    = 4'd12,
    DataAborted        = 4'd13,  // by an Abort: Command Abort Requested (07h)
    // Its queue is being deleted: Command Aborted due to SQ Deletion (08h).
    DataDeleted        = 4'd14
  } data_status_e;

  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    data_status_e         status;
  } data_done_t;

  /// Width of queue identifiers inside: the admin pair and up to 127 I/O pairs.
  parameter int unsigned QidWidth = 7;

  /// Width of queue pointers and 0-based queue sizes.
  parameter int unsigned PtrWidth = 16;

  /// Command status as in CQE DW3[31:17].
  typedef struct packed {
    logic       dnr;  // Do Not Retry
    logic       more;
    logic [1:0] crd;
    logic [2:0] sct;
    logic [7:0] sc;
  } status_t;

  /// A command that has ended, from decode, data path or admin to nvme_completion.
  typedef struct packed {
    logic                 silent;  // only return the slot: there is no completion queue entry
    logic [SlotWidth-1:0] slot;
    status_t              status;
    logic [31:0]          dw0;
  } cpl_t;

  /// Width of the number of an engine that executes I/O commands.
  parameter int unsigned EngineWidth = 3;

  /// Width of the number of a command among those of its engine.
  parameter int unsigned EngineCommandWidth = 3;

  /// The engine that executes an I/O opcode.
  typedef struct packed {
    logic                          valid;
    logic                          changes;     // it may change the content of namespaces
    logic [EngineWidth-1:0]        engine;
    logic [EngineCommandWidth-1:0] command;     // number among those of its engine
    // Namespaces in which it may be used, namespace 1 in the lowest bit.
    logic [2**NsWidth-1:0]         namespaces;
  } engine_route_t;

  /// The vendor specific I/O opcodes, 80h to FFh; 80h in the lowest bits.
  typedef engine_route_t [127:0] engine_routes_t;

  /// Any route is valid.
  function automatic bit has_commands(engine_routes_t routes);
    has_commands = 1'b0;
    for (int unsigned n = 0; n < 128; n++) has_commands |= routes[n].valid;
  endfunction

  /// A command for an engine. Its namespace exists and may be accessed by the engine. The engine
  /// checks all other fields.
  typedef struct packed {
    logic [SlotWidth-1:0]          slot;       // returned in engine_done_t
    logic [EngineCommandWidth-1:0] command;    // number among those of the engine
    logic [63:0]                   ns_base;    // first block on the media, in blocks of 512 bytes
    logic [63:0]                   ns_blocks;  // and its number of blocks
    logic [511:0]                  sqe;        // submission queue entry
  } engine_cmd_t;

  /// How it ended.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    // Because of a stop request; the controller then chooses the status.
    logic                 stopped;
    status_t              status;
    logic [31:0]          dw0;      // of the completion queue entry
  } engine_done_t;

  /// QPRIO: priority of a submission queue with weighted round robin.
  typedef enum logic [1:0] {
    PrioUrgent = 2'd0,
    PrioHigh   = 2'd1,
    PrioMedium = 2'd2,
    PrioLow    = 2'd3
  } sq_prio_e;

  /// Settings in the controller's properties, from nvme_bar0.
  typedef struct packed {
    logic         en;         // CC.EN
    logic [ 1:0]  shn;        // CC.SHN
    logic         cc_ok;      // CC.CSS, CC.MPS and CC.AMS are supported
    logic         wrr;        // CC.AMS: weighted round robin with urgent priority class
    logic         iosqes_ok;  // CC.IOSQES is 6
    logic         iocqes_ok;  // CC.IOCQES is 4
    logic [11:0]  asqs;       // AQA.ASQS
    logic [11:0]  acqs;       // AQA.ACQS
    logic [63:12] asq;        // ASQ
    logic [63:12] acq;        // ACQ
  } setup_t;

  /// An Abort, from nvme_admin to nvme_abort. Stays until it is done.
  typedef struct packed {
    logic                valid;
    // Every command of the queue, until none is left; else the one with this identifier.
    logic                whole;
    logic [QidWidth-1:0] qid;    // submission queue, not the admin queue
    logic [15:0]         cid;
  } abort_t;

  /// From nvme_admin to nvme_keep_alive.
  typedef struct packed {
    logic        set;      // set the timeout; stays 1, with its value, until done
    logic        restart;  // the timer restarts
    logic [31:0] value;    // the timeout in ms
  } to_keep_alive_t;

  /// And back.
  typedef struct packed {
    logic        done;     // the timeout is set
    logic        refused;  // with done: the timeout is too long, nothing has changed
    logic [31:0] timeout;  // in ms
  } from_keep_alive_t;

  /// Creation or deletion of one queue, from nvme_admin.
  typedef struct packed {
    logic                cq;      // a completion queue
    logic                create;  // else delete
    logic [QidWidth-1:0] qid;
    logic [QidWidth-1:0] cqid;    // SQ only
    sq_prio_e            prio;    // SQ only
    logic                ien;     // CQ only: interrupts enabled
    logic [QidWidth-1:0] vector;  // CQ only
    logic [PtrWidth-1:0] size;    // 0-based
    logic [63:12]        base;
  } queue_cfg_t;

  /// A command from nvme_fetch.
  typedef struct packed {
    logic [QidWidth-1:0]  qid;    // its submission queue
    logic [SlotWidth-1:0] slot;
    logic                 error;  // the read failed: there is no entry
    logic                 more;   // when it was requested, another entry followed it
    logic [511:0]         sqe;    // submission queue entry
  } fetched_t;

  /// Owner of a slot.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [QidWidth-1:0]  qid;   // submission queue
    logic [15:0]          cid;
    logic [31:0]          nsid;
    logic [63:0]          lba;   // the first one; 0 if it has none
  } owner_t;

  /// The fields of a submission queue entry that admin commands use.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [15:0]          cid;
    logic [7:0]           opcode;
    logic                 bad_flags;  // fused, or data by SGL
    logic [31:0]          nsid;
    logic [31:0]          cdw10;
    logic [31:0]          cdw11;
    logic [31:0]          cdw12;
    logic [31:0]          cdw13;
    logic [63:0]          prp1;
    logic [63:0]          prp2;
  } admin_cmd_t;

  /// Content of the admin buffer.
  typedef enum logic [3:0] {
    PageNamespace   = 4'd0,  // Identify CNS 00h
    PageController  = 4'd1,  // Identify CNS 01h
    PageNsList      = 4'd2,  // Identify CNS 02h
    PageDescriptors = 4'd3,  // Identify CNS 03h
    PageErrorLog    = 4'd4,  // log 01h
    PageSmartLog    = 4'd5,  // log 02h
    PageFirmwareLog = 4'd6,  // log 03h
    PageChangedNs   = 4'd7,  // log 04h
    PageEffectsLog  = 4'd8,  // log 05h
    PageTimestamp   = 4'd9,  // feature 0Eh
    PageCommandSet  = 4'd10, // Identify CNS 06h
    PageIndependent = 4'd11, // Identify CNS 08h
    PageLogs        = 4'd12, // log 00h
    PageControllers = 4'd13, // Identify CNS 12h, 13h: this one
    PageBehavior    = 4'd14  // feature 16h
  } page_e;

  /// Log page identifiers (figure 191).
  parameter logic [7:0] LidSupported = 8'h00;
  parameter logic [7:0] LidError = 8'h01;
  parameter logic [7:0] LidSmart = 8'h02;
  parameter logic [7:0] LidFirmware = 8'h03;
  parameter logic [7:0] LidChangedNs = 8'h04;
  parameter logic [7:0] LidEffects = 8'h05;

  /// CNTLID.
  parameter logic [15:0] ControllerId = 16'd1;

  /// Firmware revision, in Identify Controller and in the Firmware Slot log; its first character on
  /// the left.
  parameter logic [63:0] FirmwareRevision = "1.0     ";

  /// A completion queue entry that is being posted.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [QidWidth-1:0]  sqid;
    logic [15:0]          cid;
    logic                 phase;
    status_t              status;
  } posted_t;

  /// A write of the front end to host memory: up to 16 bytes within one beat.
  typedef struct packed {
    logic [ns_axi_pkg::IdWidth-1:0] id;
    logic [63:2]                    addr;
    logic                           whole;  // 16 bytes, else 4
    logic [127:0]                   data;   // if 4 bytes, repeated in each 4
  } host_write_t;

  /// An asynchronous event (figures 145 to 149).
  typedef struct packed {
    logic [7:0] lid;
    logic [7:0] info;
    logic [2:0] kind;  // Asynchronous Event Type
  } aer_event_t;

  /// New value of a feature; features are numbered as nvme_admin stores them.
  typedef struct packed {
    logic [3:0]  idx;
    logic [31:0] value;
  } feature_write_t;

  parameter logic [3:0] FeatureArbitration = 4'h1;
  parameter logic [3:0] FeatureTemperatureOver = 4'h4;
  parameter logic [3:0] FeatureCoalescing = 4'h8;
  parameter logic [3:0] FeatureEvents = 4'hB;
  parameter logic [3:0] FeatureTemperatureUnder = 4'hC;

  /// WCTEMP, and the default of the over temperature threshold, in kelvins: the recommendation of
  /// NVMe 1.4 (figure 247).
  parameter logic [15:0] WarningTemperature = 16'h157;
  /// CCTEMP: 10 K more.
  parameter logic [15:0] CriticalTemperature = 16'h161;

  // Status codes (NVMe 1.4, figures 127 to 129).
  parameter logic [7:0] ScSuccess = 8'h00;
  parameter logic [7:0] ScInvalidOpcode = 8'h01;
  parameter logic [7:0] ScInvalidField = 8'h02;
  parameter logic [7:0] ScDataTransferError = 8'h04;
  parameter logic [7:0] ScInternalError = 8'h06;
  parameter logic [7:0] ScAbortRequested = 8'h07;
  parameter logic [7:0] ScSqDeletion = 8'h08;
  parameter logic [7:0] ScFailedFused = 8'h09;
  parameter logic [7:0] ScMissingFused = 8'h0A;
  parameter logic [7:0] ScInvalidNamespace = 8'h0B;
  parameter logic [7:0] ScCommandSequenceError = 8'h0C;
  parameter logic [7:0] ScSglSegmentInvalid = 8'h0D;
  parameter logic [7:0] ScSglCountInvalid = 8'h0E;
  parameter logic [7:0] ScSglLengthInvalid = 8'h0F;
  parameter logic [7:0] ScSglTypeInvalid = 8'h11;
  parameter logic [7:0] ScPrpOffsetInvalid = 8'h13;
  parameter logic [7:0] ScKeepAliveExpired = 8'h19;
  parameter logic [7:0] ScKeepAliveInvalid = 8'h1A;
  parameter logic [7:0] ScSglGranularityInvalid = 8'h1E;
  parameter logic [7:0] ScCommandInterrupted = 8'h21;
  parameter logic [7:0] ScLbaOutOfRange = 8'h80;
  parameter logic [7:0] ScFormatInProgress = 8'h84;
  // Media and data integrity.
  parameter logic [7:0] ScWriteFault = 8'h80;
  parameter logic [7:0] ScUnrecoveredReadError = 8'h81;
  parameter logic [7:0] ScCompareFailure = 8'h85;
  // Command specific.
  parameter logic [7:0] ScCompletionQueueInvalid = 8'h00;
  parameter logic [7:0] ScInvalidQueueId = 8'h01;
  parameter logic [7:0] ScInvalidQueueSize = 8'h02;
  parameter logic [7:0] ScAerLimitExceeded = 8'h05;
  parameter logic [7:0] ScInvalidVector = 8'h08;
  parameter logic [7:0] ScInvalidLogPage = 8'h09;
  parameter logic [7:0] ScInvalidFormat = 8'h0A;
  parameter logic [7:0] ScInvalidQueueDeletion = 8'h0C;
  parameter logic [7:0] ScFeatureNotSaveable = 8'h0D;
  parameter logic [7:0] ScFeatureNotNamespaceSpecific = 8'h0F;

  function automatic status_t generic_status(logic [7:0] sc);
    // Retry is useful only for Format In Progress (84h), which is temporary.
    return '{dnr: sc != 8'h00 && sc != 8'h84, more: 1'b0, crd: 2'b00, sct: 3'd0, sc: sc};
  endfunction
  /// Status of a command that the controller had to end and that may be retried: Command
  /// Interrupted, after the time CRDT1. Only hosts that have set ACRE know both (figures 126 and
  /// 127). Others get Internal Error, the only status that names no other cause.
  function automatic status_t interrupted_status(logic acre);
    return
    '{
        dnr: 1'b0,
        more: 1'b0,
        crd: {1'b0, acre},
        sct: 3'd0,
        sc: acre ? ScCommandInterrupted : ScInternalError
    }
    ;
  endfunction
  /// A generic status of a command that may be retried.
  function automatic status_t retry_status(logic [7:0] sc);
    return '{dnr: 1'b0, more: 1'b0, crd: 2'b00, sct: 3'd0, sc: sc};
  endfunction
  /// Command Abort Requested (07h).
  function automatic status_t abort_status();
    return retry_status(ScAbortRequested);
  endfunction
  function automatic status_t command_status(logic [7:0] sc);
    return '{dnr: 1'b1, more: 1'b0, crd: 2'b00, sct: 3'd1, sc: sc};
  endfunction

  /// Status of a command whose data transfer has ended, for a host that has set ACRE or not. Errors
  /// of bus and media may be temporary: they can be retried.
  function automatic status_t data_status(data_status_e status, logic acre);
    unique case (status)
      DataOk:        return generic_status(ScSuccess);
      DataBadPrp:    return generic_status(ScPrpOffsetInvalid);
      DataHostError: return retry_status(ScDataTransferError);
      DataReadError: return '{dnr: 1'b0, more: 1'b0, crd: 2'b00, sct: 3'd2, sc: ScUnrecoveredReadError};
      DataWriteFault: return '{dnr: 1'b0, more: 1'b0, crd: 2'b00, sct: 3'd2, sc: ScWriteFault};
      DataMismatch: return '{dnr: 1'b1, more: 1'b0, crd: 2'b00, sct: 3'd2, sc: ScCompareFailure};
      DataBadSegment: return generic_status(ScSglSegmentInvalid);
      DataBadCount: return generic_status(ScSglCountInvalid);
      DataBadLength: return generic_status(ScSglLengthInvalid);
      DataBadType: return generic_status(ScSglTypeInvalid);
      DataBadGranularity: return generic_status(ScSglGranularityInvalid);
      DataInterrupted: return interrupted_status(acre);
      DataAborted: return abort_status();
      DataDeleted: return retry_status(ScSqDeletion);
      default:       return generic_status(ScLbaOutOfRange);
    endcase
  endfunction

  // Opcodes: admin, then NVM command set.
  parameter logic [7:0] AdminDeleteSq = 8'h00;
  parameter logic [7:0] AdminCreateSq = 8'h01;
  parameter logic [7:0] AdminGetLogPage = 8'h02;
  parameter logic [7:0] AdminDeleteCq = 8'h04;
  parameter logic [7:0] AdminCreateCq = 8'h05;
  parameter logic [7:0] AdminIdentify = 8'h06;
  parameter logic [7:0] AdminAbort = 8'h08;
  parameter logic [7:0] AdminSetFeatures = 8'h09;
  parameter logic [7:0] AdminGetFeatures = 8'h0A;
  parameter logic [7:0] AdminAsyncEvent = 8'h0C;
  parameter logic [7:0] AdminKeepAlive = 8'h18;
  parameter logic [7:0] AdminDoorbellBufferConfig = 8'h7C;
  parameter logic [7:0] AdminFormat = 8'h80;
  parameter logic [7:0] IoFlush = 8'h00;
  parameter logic [7:0] IoWrite = 8'h01;
  parameter logic [7:0] IoRead = 8'h02;
  parameter logic [7:0] IoCompare = 8'h05;
  parameter logic [7:0] IoWriteZeroes = 8'h08;
  parameter logic [7:0] IoDatasetManagement = 8'h09;
  parameter logic [7:0] IoVerify = 8'h0C;

endpackage
