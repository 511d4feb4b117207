// Types that the front end and the data path of nvme_ctrl share, and the constants of NVM Express 1.4 that they use.
package nvme_pkg;

  /// Widest command slot number; a controller has `NumSlots` <= 2**SlotWidth of them.
  parameter int unsigned SlotWidth = 8;

  /// Bytes of one data command: 512 B to 1 MiB (MDTS 8 at 4 KiB pages).
  parameter int unsigned BytesWidth = 21;

  /// One command's data transfer, from the front end to the data path.
  typedef struct packed {
    logic [SlotWidth-1:0]  slot;      // returned in data_done_t
    logic                  write;     // 1: host memory -> device, 0: device -> host memory
    logic [BytesWidth-1:0] bytes;     // a multiple of 4, at least 4
    logic [63:0]           mem_addr;  // media byte address, a multiple of 4; bit 63: the admin buffer
    logic [63:0]           prp1;      // dword-aligned (NVMe 1.4, 4.3)
    logic [63:0]           prp2;
  } data_cmd_t;

  /// How a data transfer ended.
  typedef enum logic [1:0] {
    DataOk        = 2'd0,
    DataBadPrp    = 2'd1,  // PRP Offset Invalid (13h)
    DataHostError = 2'd2,  // host answered with an error: Data Transfer Error (04h)
    DataMemError  = 2'd3   // device memory answered with an error: Internal Error (06h)
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

  /// A command that is over, from decode, data path or admin to nvme_completion.
  typedef struct packed {
    logic                 silent;  // only give the slot back: there is no CQE
    logic [SlotWidth-1:0] slot;
    status_t              status;
    logic [31:0]          dw0;
  } cpl_t;

  /// Creation or deletion of one queue, from nvme_admin.
  typedef struct packed {
    logic                cq;      // a completion queue
    logic                create;  // else delete
    logic [QidWidth-1:0] qid;
    logic [QidWidth-1:0] cqid;    // SQ only
    logic                ien;     // CQ only: interrupts enabled
    logic [QidWidth-1:0] vector;  // CQ only
    logic [PtrWidth-1:0] size;    // 0-based
    logic [63:12]        base;
  } queue_cfg_t;

  /// The parts of a submission queue entry that admin commands use.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [7:0]           opcode;
    logic                 bad_flags;  // fused, or data by SGL
    logic [31:0]          nsid;
    logic [31:0]          cdw10;
    logic [31:0]          cdw11;
    logic [63:0]          prp1;
    logic [63:0]          prp2;
  } admin_cmd_t;

  /// What the admin buffer shows.
  typedef enum logic [1:0] {
    PageNamespace   = 2'd0,  // Identify CNS 00h
    PageController  = 2'd1,  // Identify CNS 01h
    PageNsList      = 2'd2,  // Identify CNS 02h
    PageDescriptors = 2'd3   // Identify CNS 03h
  } page_e;

  // Status codes (NVMe 1.4, figures 127 to 129).
  function automatic status_t generic_status(logic [7:0] sc);
    return '{dnr: sc != 8'h00, more: 1'b0, crd: 2'b00, sct: 3'd0, sc: sc};
  endfunction
  function automatic status_t command_status(logic [7:0] sc);
    return '{dnr: 1'b1, more: 1'b0, crd: 2'b00, sct: 3'd1, sc: sc};
  endfunction

  parameter logic [7:0] ScSuccess = 8'h00;
  parameter logic [7:0] ScInvalidOpcode = 8'h01;
  parameter logic [7:0] ScInvalidField = 8'h02;
  parameter logic [7:0] ScDataTransferError = 8'h04;
  parameter logic [7:0] ScInternalError = 8'h06;
  parameter logic [7:0] ScInvalidNamespace = 8'h0B;
  parameter logic [7:0] ScCommandSequenceError = 8'h0C;
  parameter logic [7:0] ScPrpOffsetInvalid = 8'h13;
  parameter logic [7:0] ScLbaOutOfRange = 8'h80;
  // Command specific.
  parameter logic [7:0] ScCompletionQueueInvalid = 8'h00;
  parameter logic [7:0] ScInvalidQueueId = 8'h01;
  parameter logic [7:0] ScInvalidQueueSize = 8'h02;
  parameter logic [7:0] ScAerLimitExceeded = 8'h05;
  parameter logic [7:0] ScInvalidVector = 8'h08;
  parameter logic [7:0] ScInvalidLogPage = 8'h09;
  parameter logic [7:0] ScInvalidQueueDeletion = 8'h0C;
  parameter logic [7:0] ScFeatureNotSaveable = 8'h0D;
  parameter logic [7:0] ScFeatureNotNamespaceSpecific = 8'h0F;

  /// The status of a command whose data transfer ended so. Errors of the bus may go away: they can be retried.
  function automatic status_t data_status(data_status_e status);
    unique case (status)
      DataOk:        return generic_status(ScSuccess);
      DataBadPrp:    return generic_status(ScPrpOffsetInvalid);
      DataHostError: return '{dnr: 1'b0, more: 1'b0, crd: 2'b00, sct: 3'd0, sc: ScDataTransferError};
      default:       return '{dnr: 1'b0, more: 1'b0, crd: 2'b00, sct: 3'd0, sc: ScInternalError};
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
  parameter logic [7:0] IoFlush = 8'h00;
  parameter logic [7:0] IoWrite = 8'h01;
  parameter logic [7:0] IoRead = 8'h02;

endpackage
