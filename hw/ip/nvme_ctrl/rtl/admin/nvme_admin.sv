// SPDX-License-Identifier: Apache-2.0

// Admin commands (NVMe 1.4, chapter 5), one at a time, by a state machine.
//
// Identify (CNS 00h to 03h, 06h, 08h, 12h, 13h); Create and Delete I/O Submission and Completion
// Queue; Get Log Page (00h to 05h). Set and Get Features (01h, 02h, 04h, 05h, 07h to 0Bh, 0Eh, 0Fh,
// 16h); Keep Alive; Doorbell Buffer Config. Abort: parked commands here, I/O commands by
// nvme_abort. Asynchronous Event Request: parked until nvme_events has an event to report. Format
// NVM: by nvme_format. Every other command ends with its error status. Pages travel to the host
// through the data path, which reads them from nvme_admin_buffer. Data that Set Features brings
// along is read by nvme_admin_data_in.
//
// A parked command has returned its completion queue entry and needs another one to complete. If
// the queue is full, an event waits until a head moves, and an Abort reports that it has not
// aborted. The state machine therefore never waits for the host.
//
// Assumptions: the next command arrives no earlier than `done_o`; the data path answers every
// command.
`include "ns_assert.svh"

module nvme_admin
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// I/O queue pairs; there is one more interrupt vector than that.
  parameter int unsigned     NumIoQueues   = 16,
  /// Largest I/O queue in entries.
  parameter int unsigned     QueueEntries  = 1024,
  /// Asynchronous Event Requests that can be parked (AERL + 1).
  parameter int unsigned     NumEvents     = 4,
  /// See nvme_namespace.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t      NsBlocks      = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes    = 64'h1_0000_0000,
  /// See nvme_ctrl.
  parameter bit              DoorbellBuffer = 1'b1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic                 busy_o,
  /// The current operation waits for the data path, or for commands of engines.
  output logic                 waiting_o,

  /// Create the admin queues.
  input  logic                 init_i,
  /// Done.
  output logic                 init_done_o,
  /// Drop parked commands and reset features to their defaults.
  input  logic                 flush_i,
  /// Done, and no slot is in use.
  output logic                 flush_done_o,
  /// Slots in use.
  input  logic [SlotWidth-1:0] used_i,
  /// Parked commands; each holds a slot.
  output logic [SlotWidth-1:0] parked_o,

  /// What the host has set up.
  input  setup_t               setup_i,

  /// Command.
  input  admin_cmd_t           cmd_i,
  input  logic                 cmd_valid_i,
  output logic                 cmd_ready_o,
  /// The command has ended: the next one may be fetched.
  output logic                 done_o,

  /// Queue to create or delete.
  output queue_cfg_t           cfg_o,
  output logic                 cfg_valid_o,
  /// Done in this cycle.
  input  logic                 cfg_fire_i,
  /// Submission queues that exist.
  input  logic [NumIoQueues:0] sq_valid_i,
  /// Completion queues that exist.
  input  logic [NumIoQueues:0] cq_valid_i,
  /// Submission queue to look up.
  output logic [QidWidth-1:0]  sq_qid_o,
  /// Its completion queue.
  input  logic [QidWidth-1:0]  sq_cqid_i,
  /// It has no command in flight.
  input  logic                 sq_idle_i,
  /// The current command is not completed for now: return its completion queue entry.
  output logic                 unreserve_valid_o,
  /// Done.
  input  logic                 unreserve_ready_i,

  /// Reserve an entry of the admin completion queue for a parked command.
  output logic                 reserve_valid_o,
  /// Answer.
  input  logic                 reserve_done_i,
  /// With reserve_done_i: the entry is reserved; otherwise the queue is full.
  input  logic                 reserve_ok_i,
  /// The head of a completion queue moves at the end of this cycle.
  input  logic                 cq_moved_i,

  /// Event to report.
  input  aer_event_t           event_i,
  input  logic                 event_valid_i,
  /// It is reported.
  output logic                 event_report_o,
  /// A feature changes.
  output feature_write_t       feature_o,
  output logic                 feature_valid_o,
  /// Coalescing Disable of each vector.
  output logic [NumIoQueues:0] uncoalesced_o,
  /// A log is about to be sent.
  output logic                 log_start_o,
  /// The host has received the log of page_o and clears its event.
  output logic                 log_clear_o,

  /// Work out the time.
  output logic                 time_valid_o,
  /// Power On Hours, else the Timestamp.
  output logic                 time_hours_o,
  /// Done.
  input  logic                 time_done_i,
  /// Read the data of a command from the host, from prp1 and prp2 of data_o.
  output logic                 data_in_valid_o,
  /// Done.
  input  logic                 data_in_done_i,
  /// Status, with data_in_done_i.
  input  data_status_e         data_in_status_i,
  /// They are 512 bytes, else eight.
  output logic                 data_in_long_o,
  /// The first of them.
  input  logic [7:0]           data_in_byte_i,
  /// The data read become the Timestamp.
  output logic                 timestamp_set_o,
  /// The host accepts Command Interrupted (Host Behavior Support, ACRE).
  output logic                 acre_o,
  /// Keep Alive: what the host wants.
  output to_keep_alive_t       keep_alive_o,
  /// What became of it.
  input  from_keep_alive_t     keep_alive_i,
  /// Doorbell Buffer Config, with the pages prp1 and prp2 of data_o.
  output logic                 shadow_set_o,

  /// Find the command of an Abort (CDW10), or all commands of a deleted submission queue.
  output abort_t               abort_o,
  /// Done.
  input  logic                 abort_done_i,
  /// It has been aborted.
  input  logic                 aborted_i,

  /// Commands are no longer fetched: end long operations.
  input  logic                     stop_i,
  /// Namespaces with data commands in flight.
  input  logic [MaxNamespaces-1:0] in_flight_i,
  /// Namespaces that are being formatted.
  output logic [MaxNamespaces-1:0] formatting_o,

  /// Page that the admin buffer shows.
  output page_e                page_o,
  /// NSID that it is about.
  output logic [31:0]          page_nsid_o,
  /// Data command that sends the page to the host.
  output data_cmd_t            data_o,
  output logic                 data_valid_o,
  input  logic                 data_ready_i,
  /// That data command has ended.
  input  logic                 data_done_i,
  /// How.
  input  data_status_e         data_status_i,
  /// Slot of the data command, and whether the command is in flight.
  output logic [SlotWidth-1:0] data_slot_o,
  output logic                 data_wait_o,

  /// Completion.
  output cpl_t                 cpl_o,
  output logic                 cpl_valid_o,
  input  logic                 cpl_ready_i
);

  localparam int unsigned NumQueues = NumIoQueues + 1;
  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumQueues);
  localparam int unsigned ParkBits = unsigned'($clog2(NumEvents + 1));
  localparam int unsigned ParkIdx = ns_axi_pkg::idx_width(NumEvents);

  typedef enum logic [4:0] {
    StInitCq,
    StInitSq,
    StInitDone,
    StResetFeatures,  // set features back
    StIdle,
    StLookup,         // its namespace and its queues
    StCheck,          // error checks
    StExecute,        // choose what to do
    StFeature,        // Set or Get Features
    StLog,            // Get Log Page
    StTime,           // work out the time
    StDataIn,         // get data from the host
    StKeepAlive,      // round the Keep Alive Timeout
    StAbortParked,    // is it a parked command?
    StAbortIo,        // is it a command of an I/O queue?
    StReserve,        // reserve an entry for the completion of a parked command
    StUnpark,         // complete it
    StConfigure,      // create or delete a queue
    StDrainSq,        // wait for the commands of a deleted submission queue
    StAbortSq,        // abort its long commands
    StSearchSqs,      // does a submission queue use this completion queue?
    StData,           // send a page
    StDataWait,
    StFormat,         // Format NVM
    StPark,
    StComplete,
    StRelease,        // return the slot of a parked command
    StFlushDone
  } state_e;

  state_e state_q, state_d;
  admin_cmd_t cmd_q;
  status_t status_q, status_d;
  logic [31:0] dw0_q, dw0_d;
  page_e page_q, page_d;
  logic [QidWidth-1:0] count_q, count_d;
  logic [ParkBits-1:0] parked_q, parked_d;
  logic [SlotWidth-1:0] parked_slot_q[NumEvents];
  logic [15:0] parked_cid_q[NumEvents];
  logic [ParkIdx-1:0] chosen_q, chosen_d;  // parked command to complete
  logic [BytesWidth-1:0] bytes_q, bytes_d;
  logic [12:0] offset_q, offset_d;
  logic abort_active_q, cq_full_q, cq_moved_q, event_wanted;
  logic
      in_use_q,
      // The completion queue to delete is used by a submission queue; all have been checked.
      searched_q;

  // Fields of the command.
  logic [15:0] cdw10_low, cdw10_high;  // of CDW10
  logic [7:0] fid, cns;
  logic pages_ok, qid_exists_range, sq_exists, cq_exists, cqid_range, cqid_exists;
  logic [Bits-1:0] qidx, cqidx;

  assign cdw10_low = cmd_q.cdw10[15:0];
  assign cdw10_high = cmd_q.cdw10[31:16];
  assign fid = cmd_q.cdw10[7:0];
  assign cns = cmd_q.cdw10[7:0];
  assign pages_ok = cmd_q.prp1[11:0] == '0 && cmd_q.prp2[11:0] == '0;
  assign qidx = cdw10_low[Bits-1:0];
  assign cqidx = cmd_q.cdw11[16+:Bits];
  assign qid_exists_range = cdw10_low != '0 && 32'(cdw10_low) <= NumIoQueues;
  assign sq_exists = qid_exists_range && sq_valid_i[qidx];
  assign cq_exists = qid_exists_range && cq_valid_i[qidx];
  assign cqid_range = cmd_q.cdw11[31:16] != '0 && 32'(cmd_q.cdw11[31:16]) <= NumIoQueues;
  assign cqid_exists = cq_valid_i[cqidx];

  // Valid from StCheck on.
  namespace_t ns, ns_q;
  logic configures_cq_q, creates_q;  // Create or Delete I/O Completion Queue; Create of either kind
  logic pages_ok_q, qid_exists_range_q, sq_exists_q, cq_exists_q, cqid_range_q, cqid_exists_q;

  nvme_namespace #(
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes)
  ) u_namespace (
    .nsid_i(cmd_q.nsid),
    .ns_o  (ns)
  );

  always_ff @(posedge clk_i) begin
    ns_q <= ns;
    configures_cq_q <= cmd_q.opcode == AdminCreateCq || cmd_q.opcode == AdminDeleteCq;
    creates_q <= cmd_q.opcode == AdminCreateCq || cmd_q.opcode == AdminCreateSq;
    pages_ok_q <= pages_ok;
    qid_exists_range_q <= qid_exists_range;
    sq_exists_q <= sq_exists;
    cq_exists_q <= cq_exists;
    cqid_range_q <= cqid_range;
    cqid_exists_q <= cqid_exists;
  end

  logic unused;
  assign unused = ^{ns_q.base, ns_q.blocks, setup_i.en, setup_i.shn, setup_i.cc_ok, setup_i.wrr};

  // Error of each command; ScSuccess of the generic type if there is none.
  localparam status_t NoError = '{dnr: 1'b0, more: 1'b0, crd: 2'b0, sct: 3'd0, sc: ScSuccess};
  status_t create_sq_status, create_cq_status, identify_status, value_status, feature_status;
  status_t
      value_status_q,  // of a feature, valid from StExecute on
      create_sq_status_q,
      create_cq_status_q,
      identify_status_q,
      feature_status_q;  // valid from StFeature on; the others from StExecute on
  logic bad_size;

  assign bad_size = cdw10_high == '0 || 32'(cdw10_high) >= QueueEntries;

  always_comb begin
    create_sq_status = NoError;
    if (!qid_exists_range_q || sq_exists_q) create_sq_status = command_status(ScInvalidQueueId);
    else if (!cqid_range_q) create_sq_status = command_status(ScInvalidQueueId);
    else if (!cqid_exists_q) create_sq_status = command_status(ScCompletionQueueInvalid);
    else if (bad_size || !setup_i.iosqes_ok) create_sq_status = command_status(ScInvalidQueueSize);
    else if (!cmd_q.cdw11[0]) create_sq_status = generic_status(ScInvalidField);
    else if (cmd_q.prp1[11:0] != '0) create_sq_status = generic_status(ScPrpOffsetInvalid);

    create_cq_status = NoError;
    if (!qid_exists_range_q || cq_exists_q) create_cq_status = command_status(ScInvalidQueueId);
    else if (bad_size || !setup_i.iocqes_ok) create_cq_status = command_status(ScInvalidQueueSize);
    else if (32'(cmd_q.cdw11[31:16]) > NumIoQueues)
      create_cq_status = command_status(ScInvalidVector);
    else if (!cmd_q.cdw11[0]) create_cq_status = generic_status(ScInvalidField);
    else if (cmd_q.prp1[11:0] != '0) create_cq_status = generic_status(ScPrpOffsetInvalid);

    // An inactive namespace has no descriptors; its other pages are zeros (figure 244).
    identify_status = NoError;
    unique case (cns)
      8'h00, 8'h08: if (!ns_q.valid) identify_status = generic_status(ScInvalidNamespace);
      8'h03: begin
        if (!ns_q.valid) identify_status = generic_status(ScInvalidNamespace);
        else if (!ns_q.active) identify_status = generic_status(ScInvalidField);
      end
      // Controllers that are attached to a namespace, in the subsystem (figure 244).
      8'h12: begin
        if (cmd_q.nsid == '1) identify_status = generic_status(ScInvalidField);
        else if (!ns_q.valid) identify_status = generic_status(ScInvalidNamespace);
      end
      8'h01, 8'h13: ;
      8'h06: if (cmd_q.cdw11[31:24] != '0) identify_status = generic_status(ScInvalidField);  // CSI
      8'h02: if (cmd_q.nsid >= 32'hFFFF_FFFE) identify_status = generic_status(ScInvalidNamespace);
      default: identify_status = generic_status(ScInvalidField);
    endcase
  end

  // Features: one word each, indexed by the lower bits of the feature identifier. The under
  // temperature threshold is stored at 0Ch.
  localparam logic [7:0] FidArbitration = 8'h01;
  localparam logic [7:0] FidPower = 8'h02;
  localparam logic [7:0] FidTemperature = 8'h04;
  localparam logic [7:0] FidErrorRecovery = 8'h05;
  localparam logic [7:0] FidNumQueues = 8'h07;
  localparam logic [7:0] FidCoalescing = 8'h08;
  localparam logic [7:0] FidVector = 8'h09;
  localparam logic [7:0] FidAtomicity = 8'h0A;
  localparam logic [7:0] FidEvents = 8'h0B;
  localparam logic [7:0] FidTimestamp = 8'h0E;
  localparam logic [7:0] FidKeepAlive = 8'h0F;
  localparam logic [7:0] FidBehavior = 8'h16;

  (* ram_style = "distributed" *) logic [31:0] feature_mem[16];
  logic [NumQueues-1:0] uncoalesced_q;  // Interrupt Vector Configuration, CD
  logic set, set_now, feature_we, vector_we;
  logic [2:0]
      sel_q, sel_now;  // Select of Get Features (figure 187): current, default, saved, capabilities
  logic [3:0] feature_idx, feature_idx_q;
  logic [31:0] feature_mask, feature_default;
  logic [Bits-1:0] vector;

  localparam logic [2:0] SelCurrent = 3'd0;
  localparam logic [2:0] SelCapabilities = 3'd3;

  // Decoded feature, for long combinational paths. Valid from StCheck on.
  typedef struct packed {
    logic vector;
    logic queues;
    logic recovery;
    logic timestamp;
    logic keep_alive;
    logic behavior;
    logic current;  // Select; of Set Features, too
    logic set;      // Set Features
  } feature_t;
  feature_t feature_q;
  logic any_queue_q;  // there is an I/O queue

  assign set = feature_q.set;

  always_ff @(posedge clk_i) begin
    sel_q <= sel_now;
    any_queue_q <= sq_valid_i[NumIoQueues:1] != '0 || cq_valid_i[NumIoQueues:1] != '0;
    feature_idx_q <= (fid == FidTemperature && cmd_q.cdw11[20]) ? FeatureTemperatureUnder : fid[3:0];
    feature_q <= '{
        vector: fid == FidVector,
        queues: fid == FidNumQueues,
        recovery: fid == FidErrorRecovery,
        timestamp: fid == FidTimestamp,
        keep_alive: fid == FidKeepAlive,
        behavior: fid == FidBehavior,
        current: sel_now == SelCurrent,
        set: set_now
    };
  end


  assign set_now = cmd_q.opcode == AdminSetFeatures;
  assign sel_now = set_now ? 3'd0 : cmd_q.cdw10[10:8];
  assign vector = cmd_q.cdw11[Bits-1:0];
  assign feature_idx = (state_q == StResetFeatures) ? count_q[3:0] : feature_idx_q;

  always_comb begin
    unique case (feature_idx)
      FidArbitration[3:0]: feature_default = 32'h7;  // no limit on the burst
      FidTemperature[3:0]: feature_default = 32'(WarningTemperature);
      default: feature_default = '0;
    endcase

    value_status = NoError;
    feature_mask = '0;
    unique case (fid)
      FidArbitration: feature_mask = 32'hFFFF_FF07;
      FidPower: begin
        feature_mask = 32'h0000_00E0;
        if (set && cmd_q.cdw11[4:0] != '0) value_status = generic_status(ScInvalidField);
      end
      FidTemperature: begin
        feature_mask = 32'h0000_FFFF;
        // There is one temperature, the composite one; Fh sets all.
        if (cmd_q.cdw11[19:16] != 4'h0 && !(set && cmd_q.cdw11[19:16] == 4'hF)) value_status = generic_status(ScInvalidField);
        if (cmd_q.cdw11[21]) value_status = generic_status(ScInvalidField);
      end
      FidErrorRecovery: begin
        feature_mask = 32'h0000_FFFF;
        if (set && cmd_q.cdw11[16]) value_status = generic_status(ScInvalidField);  // DULBE
      end
      FidNumQueues: begin
        if (set && (cmd_q.cdw11[15:0] == 16'hFFFF || cmd_q.cdw11[31:16] == 16'hFFFF)) begin
          value_status = generic_status(ScInvalidField);
        end else if (set && any_queue_q) begin
          value_status = generic_status(ScCommandSequenceError);
        end
      end
      FidCoalescing: feature_mask = 32'h0000_FFFF;
      FidVector: if (32'(cmd_q.cdw11[15:0]) > NumIoQueues) value_status = generic_status(ScInvalidField);
      FidAtomicity: feature_mask = 32'h0000_0001;
      FidEvents: feature_mask = 32'h0000_01FF;  // SMART warnings, namespace attribute notices
      FidTimestamp, FidKeepAlive, FidBehavior: ;
      default: value_status = generic_status(ScInvalidField);
    endcase

    // The error of the feature and its value is known a cycle earlier.
    feature_status = value_status_q;
    if (feature_status.sc == ScSuccess && sel_q > SelCapabilities)
      feature_status = generic_status(ScInvalidField);

    // No value can be saved, so the saved values are the defaults.
    if (feature_status.sc == ScSuccess && set && cmd_q.cdw10[31])
      feature_status = command_status(ScFeatureNotSaveable);

    // Namespaces: only Error Recovery belongs to a namespace. All namespaces can be set together,
    // but not read together.
    if (feature_status.sc == ScSuccess) begin
      if (!ns_q.valid && cmd_q.nsid != '0 && cmd_q.nsid != '1)
        feature_status = generic_status(ScInvalidNamespace);
      else if (fid == FidErrorRecovery && (cmd_q.nsid == '0 || (!set && cmd_q.nsid == '1)))
        feature_status = generic_status(ScInvalidNamespace);
      else if (ns_q.valid && !ns_q.active) feature_status = generic_status(ScInvalidField);
      else if (set && fid != FidErrorRecovery && ns_q.valid) begin
        feature_status = command_status(ScFeatureNotNamespaceSpecific);
      end
    end
  end

  assign feature_we = state_q == StResetFeatures
                    || (state_q == StFeature && set && feature_status_q.sc == ScSuccess && feature_mask != '0);
  assign vector_we = state_q == StFeature && set && feature_status_q.sc == ScSuccess && feature_q.vector;

  assign feature_valid_o = feature_we;
  assign feature_o = '{
      idx: feature_idx,
      value: (state_q == StResetFeatures) ? feature_default : cmd_q.cdw11 & feature_mask
  };

  always_ff @(posedge clk_i) begin
    create_sq_status_q <= create_sq_status;
    create_cq_status_q <= create_cq_status;
    identify_status_q <= identify_status;
    value_status_q <= value_status;
    feature_status_q <= feature_status;
    if (feature_we) feature_mem[feature_idx] <= feature_o.value;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) uncoalesced_q <= '0;
    else if (state_q == StResetFeatures) uncoalesced_q <= '0;
    else if (vector_we) uncoalesced_q[vector] <= cmd_q.cdw11[16];
  end

  assign uncoalesced_o = uncoalesced_q;

  // Host Behavior Support: ACRE. Other bytes are reserved, or belong to later revisions.
  logic acre_q, is_behavior, data_in_ok;
  assign is_behavior = feature_q.behavior;
  assign data_in_ok     = state_q == StDataIn && data_in_done_i && data_in_status_i == DataOk;
  assign acre_o   = acre_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) acre_q <= 1'b0;
    else if (state_q == StResetFeatures) acre_q <= 1'b0;
    else if (data_in_ok && is_behavior && data_in_byte_i <= 8'd1) acre_q <= data_in_byte_i[0];
  end

  // Error Recovery, of each namespace.
  logic [NumNamespaces-1:0][15:0] recovery_q;
  logic recovery_we;
  assign recovery_we = feature_we && state_q == StFeature && feature_q.recovery;

  for (genvar n = 0; n < NumNamespaces; n++) begin : gen_recovery
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) recovery_q[n] <= '0;
      else if (state_q == StResetFeatures) recovery_q[n] <= '0;
      else if (recovery_we && (cmd_q.nsid == '1 || cmd_q.nsid == 32'(n + 1)))
        recovery_q[n] <= cmd_q.cdw11[15:0];
    end
  end

  // Format NVM.
  status_t format_status;
  data_cmd_t format_data;
  logic format_done, format_data_valid, format_data_wait, format_waiting;

  nvme_format #(
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes)
  ) u_format (
    .clk_i,
    .rst_ni,
    .req_i       (state_q == StFormat),
    .cmd_i       (cmd_q),
    .stop_i,
    .acre_i      (acre_q),
    .done_o      (format_done),
    .status_o    (format_status),
    .formatting_o,
    .in_flight_i,
    .data_o      (format_data),
    .data_valid_o(format_data_valid),
    .data_ready_i,
    .data_wait_o (format_data_wait),
    .waiting_o   (format_waiting),
    .data_done_i,
    .data_status_i
  );

  // Logs.
  status_t log_status;
  page_e log_page;
  logic [BytesWidth-1:0] log_bytes;
  logic [12:0] log_offset;

  nvme_get_log u_get_log (
    .clk_i,
    .cmd_i   (cmd_q),
    .status_o(log_status),  // valid from StLog on
    .page_o  (log_page),
    .bytes_o (log_bytes),
    .offset_o(log_offset)
  );

  // Abort: SQID and CID are compared with the parked commands, all of which are of the admin queue.
  logic abort_match_q;  // valid in StAbort
  logic [ParkIdx-1:0] abort_idx_q;

  always_ff @(posedge clk_i) begin
    abort_match_q <= 1'b0;
    for (int unsigned i = 0; i < NumEvents; i++) begin
      if (i < 32'(parked_q) && cdw10_low == '0 && parked_cid_q[i] == cdw10_high) begin
        abort_match_q <= 1'b1;
        abort_idx_q   <= ParkIdx'(i);
      end
    end
  end

  assign event_wanted = event_valid_i && parked_q != '0 && !cq_full_q;

  // The state machine.
  always_comb begin
    state_d = state_q;
    status_d = status_q;
    dw0_d = dw0_q;
    page_d = page_q;
    count_d = count_q;
    parked_d = parked_q;
    chosen_d = chosen_q;
    bytes_d = bytes_q;
    offset_d = offset_q;

    unique case (state_q)
      StResetFeatures: begin
        count_d = count_q + 1'b1;
        if (count_q[3:0] == 4'hF) begin
          count_d = '0;
          state_d = flush_i ? StFlushDone : StIdle;
        end
      end

      StIdle: begin
        count_d = QidWidth'(1);
        status_d = NoError;
        dw0_d = '0;
        bytes_d = BytesWidth'(4096);
        offset_d = '0;
        chosen_d = ParkIdx'(parked_q - 1'b1);
        if (init_i) state_d = StInitCq;
        else if (flush_i && parked_q != '0) state_d = StRelease;
        else if (flush_i && used_i == '0) begin
          count_d = '0;
          state_d = StResetFeatures;
        end else if (event_wanted) state_d = StReserve;
        else if (cmd_valid_i) state_d = StLookup;
      end

      StInitCq:   if (cfg_fire_i) state_d = StInitSq;
      StInitSq:   if (cfg_fire_i) state_d = StInitDone;
      StInitDone: state_d = StIdle;

      StLookup: state_d = StCheck;
      StCheck:  state_d = StExecute;

      StExecute: begin
        state_d = StComplete;
        if (cmd_q.bad_flags) status_d = generic_status(ScInvalidField);
        else
          unique case (cmd_q.opcode)
            AdminIdentify: begin
              status_d = identify_status_q;
              unique case (cns)
                8'h00: page_d = PageNamespace;
                8'h01: page_d = PageController;
                8'h02: page_d = PageNsList;
                8'h06: page_d = PageCommandSet;
                8'h08: page_d = PageIndependent;
                8'h12, 8'h13: begin
                  page_d = PageControllers;
                  // From CNTID on; an inactive namespace is attached to no controller. Beyond the
                  // page are zeros: no identifier.
                  if (cdw10_high > ControllerId || (cns == 8'h12 && !ns_q.active)) offset_d = 13'h1000;
                end
                default: page_d = PageDescriptors;
              endcase
              if (identify_status_q.sc == ScSuccess) state_d = StData;
            end
            AdminCreateSq: begin
              status_d = create_sq_status_q;
              if (create_sq_status_q == NoError) state_d = StConfigure;
            end
            AdminCreateCq: begin
              status_d = create_cq_status_q;
              if (create_cq_status_q == NoError) state_d = StConfigure;
            end
            AdminDeleteSq: begin
              if (sq_exists_q) state_d = StConfigure;
              else status_d = command_status(ScInvalidQueueId);
            end
            AdminDeleteCq: begin
              if (cq_exists_q) state_d = StSearchSqs;
              else status_d = command_status(ScInvalidQueueId);
            end
            AdminSetFeatures, AdminGetFeatures: state_d = StFeature;
            AdminGetLogPage: state_d = StLog;
            AdminAbort: state_d = StAbortParked;
            AdminKeepAlive: ;
            AdminDoorbellBufferConfig: begin
              if (!DoorbellBuffer) status_d = generic_status(ScInvalidOpcode);
              else if (!pages_ok_q) status_d = generic_status(ScInvalidField);
            end
            AdminFormat: state_d = StFormat;
            AdminAsyncEvent: begin
              if (parked_q == ParkBits'(NumEvents)) begin
                status_d = command_status(ScAerLimitExceeded);
                status_d.dnr = 1'b0;
              end else begin
                state_d = StPark;
              end
            end
            default: status_d = generic_status(ScInvalidOpcode);
          endcase
      end

      StFeature: begin
        status_d = feature_status_q;
        state_d = StComplete;
        if (feature_status_q.sc == ScSuccess) begin
          // Changeable; Error Recovery per namespace; none saveable.
          if (sel_q == SelCapabilities) dw0_d = (feature_q.recovery) ? 32'h6 : 32'h4;
          else if (feature_q.queues) dw0_d = {16'(NumIoQueues - 1), 16'(NumIoQueues - 1)};
          else if (feature_q.vector && !set)
            dw0_d = {15'b0, uncoalesced_q[vector] && feature_q.current, cmd_q.cdw11[15:0]};
          else if (feature_q.timestamp || is_behavior) begin
            page_d  = is_behavior ? PageBehavior : PageTimestamp;
            bytes_d = is_behavior ? BytesWidth'(512) : BytesWidth'(8);
            state_d = set ? StDataIn : is_behavior ? StData : StTime;
            if (!feature_q.current) offset_d = 13'h1000;  // beyond the page: zeros
          end else if (feature_q.keep_alive) begin
            if (set) state_d = StKeepAlive;
            else dw0_d = (feature_q.current) ? keep_alive_i.timeout : '0;
          end else if (!set && feature_q.current && feature_q.recovery)
            dw0_d = 32'(recovery_q[ns_q.idx]);
          else if (!set) dw0_d = (feature_q.current) ? feature_mem[feature_idx] : feature_default;
        end
      end

      StLog: begin
        status_d = log_status;
        page_d = log_page;
        bytes_d = log_bytes;
        offset_d = log_offset;
        if (log_status.sc != ScSuccess) state_d = StComplete;
        else state_d = (log_page == PageSmartLog) ? StTime : StData;
      end

      StTime: if (time_done_i) state_d = StData;

      StDataIn:
      if (data_in_done_i) begin
        status_d = data_status(data_in_status_i, acre_q);
        if (data_in_status_i == DataOk && is_behavior && data_in_byte_i > 8'd1)
          status_d = generic_status(ScInvalidField);
        state_d = StComplete;
      end

      StKeepAlive:
      if (keep_alive_i.done) begin
        if (keep_alive_i.refused) status_d = generic_status(ScKeepAliveInvalid);
        state_d = StComplete;
      end

      StAbortParked: begin
        dw0_d = 32'd1;  // not aborted
        chosen_d = abort_idx_q;
        state_d = abort_match_q ? StReserve : sq_exists_q ? StAbortIo : StComplete;
      end

      StAbortIo:
      if (abort_done_i) begin
        dw0_d   = 32'(!aborted_i);
        state_d = StComplete;
      end

      StReserve:
      if (reserve_done_i) begin
        if (reserve_ok_i) state_d = StUnpark;
        else state_d = abort_active_q ? StComplete : StIdle;
      end

      StUnpark:
      if (cpl_ready_i) begin
        parked_d = parked_q - 1'b1;
        dw0_d = '0;
        state_d = abort_active_q ? StComplete : StIdle;
      end

      StConfigure:
      if (cfg_fire_i) state_d = (!configures_cq_q && !creates_q) ? StDrainSq : StComplete;

      // Commands that are fetched and not yet decoded appear later, so the check is repeated.
      StDrainSq: state_d = sq_idle_i ? StComplete : StAbortSq;
      StAbortSq: if (abort_done_i) state_d = StDrainSq;

      StSearchSqs: begin
        count_d = count_q + 1'b1;
        if (in_use_q) begin
          status_d = command_status(ScInvalidQueueDeletion);
          state_d  = StComplete;
        end else if (searched_q) begin
          state_d = StConfigure;
        end
      end

      StData: if (data_ready_i) state_d = StDataWait;

      StDataWait:
      if (data_done_i) begin
        status_d = data_status(data_status_i, acre_q);
        state_d = StComplete;
      end

      StFormat:
      if (format_done) begin
        status_d = format_status;
        state_d  = StComplete;
      end

      StPark:
      if (unreserve_ready_i) begin
        parked_d = parked_q + 1'b1;
        state_d = StIdle;
      end

      StComplete: if (cpl_ready_i) state_d = StIdle;

      StRelease:
      if (cpl_ready_i) begin
        parked_d = parked_q - 1'b1;
        state_d = StIdle;
      end

      default: state_d = StIdle;  // StFlushDone
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StResetFeatures;
      parked_q <= '0;
      count_q <= '0;
      abort_active_q <= 1'b0;
      cq_full_q <= 1'b0;
      cq_moved_q <= 1'b0;
    end else begin
      if (state_q == StIdle) abort_active_q <= 1'b0;
      if (state_q == StAbortParked) abort_active_q <= 1'b1;
      // A head that has just moved may have been missed: try again.
      cq_moved_q <= cq_moved_i;
      if (cq_moved_i || cq_moved_q || init_i) cq_full_q <= 1'b0;
      else if (state_q == StReserve && reserve_done_i && !reserve_ok_i) cq_full_q <= 1'b1;
      state_q <= state_d;
      parked_q <= parked_d;
      count_q <= count_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && cmd_ready_o) cmd_q <= cmd_i;
    status_q <= status_d;
    dw0_q <= dw0_d;
    page_q <= page_d;
    chosen_q <= chosen_d;
    bytes_q <= bytes_d;
    offset_q <= offset_d;
    if (state_q == StPark) begin
      parked_slot_q[parked_q[ParkIdx-1:0]] <= cmd_q.slot;
      parked_cid_q[parked_q[ParkIdx-1:0]] <= cmd_q.cid;
    end
    // The last parked command moves into the place of the one that leaves.
    if (state_q == StUnpark && cpl_ready_i) begin
      parked_slot_q[chosen_q] <= parked_slot_q[ParkIdx'(parked_q-1'b1)];
      parked_cid_q[chosen_q] <= parked_cid_q[ParkIdx'(parked_q-1'b1)];
    end
  end

  assign cmd_ready_o = state_q == StIdle && !init_i && !flush_i && !event_wanted;
  assign done_o = (state_q == StComplete && cpl_ready_i) || (state_q == StPark && unreserve_ready_i);
  assign init_done_o = state_q == StInitDone;
  assign flush_done_o = state_q == StFlushDone;
  assign parked_o = SlotWidth'(parked_q);
  assign busy_o = state_q != StIdle || event_wanted;
  assign waiting_o = state_q == StFormat && format_waiting && !data_done_i && !event_wanted;

  // Queues.
  assign cfg_valid_o = state_q == StInitCq || state_q == StInitSq || state_q == StConfigure;

  always_comb begin
    cfg_o = '{
        cq: configures_cq_q,
        create: creates_q,
        qid: QidWidth'(qidx),
        cqid: QidWidth'(cqidx),
        prio: sq_prio_e'(cmd_q.cdw11[2:1]),
        ien: cmd_q.cdw11[1],
        vector: QidWidth'(cqidx),  // the same bits as CQID
        size: cdw10_high,
        base: cmd_q.prp1[63:12]
    };
    if (state_q == StInitCq || state_q == StInitSq) begin
      cfg_o = '{
          cq: state_q == StInitCq,
          create: 1'b1,
          qid: '0,
          cqid: '0,
          prio: PrioUrgent,
          ien: 1'b1,
          vector: '0,
          size: PtrWidth'((state_q == StInitCq) ? setup_i.acqs : setup_i.asqs),
          base: (state_q == StInitCq) ? setup_i.acq : setup_i.asq
      };
    end
  end

  // StSearchSqs reads a submission queue in one cycle and compares it in the next.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_use_q   <= 1'b0;
      searched_q <= 1'b0;
    end else begin
      in_use_q <= state_q == StSearchSqs && sq_valid_i[count_q[Bits-1:0]] && sq_cqid_i == QidWidth'(qidx);
      searched_q <= state_q == StSearchSqs && 32'(count_q) == NumIoQueues;
    end
  end

  assign sq_qid_o = (state_q == StSearchSqs) ? count_q : QidWidth'(qidx);
  assign unreserve_valid_o = state_q == StPark;
  assign abort_o = '{
          valid: state_q == StAbortIo || state_q == StAbortSq,
          whole: state_q == StAbortSq,
          qid: QidWidth'(qidx),
          cid: cdw10_high
      };

  // Parked commands.
  assign reserve_valid_o = state_q == StReserve;
  assign event_report_o = state_q == StUnpark && cpl_ready_i && !abort_active_q;

  // Pages.
  logic log_clear_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) log_clear_q <= 1'b0;
    else
      log_clear_q <= state_q == StDataWait && state_d == StComplete && data_status_i == DataOk
                     && cmd_q.opcode == AdminGetLogPage && !cmd_q.cdw10[15];
  end

  assign log_start_o = state_q == StLog;
  assign log_clear_o = log_clear_q;
  assign time_valid_o = state_q == StTime;
  assign time_hours_o = page_q == PageSmartLog;
  assign data_in_valid_o = state_q == StDataIn;
  assign keep_alive_o = '{
          set: state_q == StKeepAlive,
          restart: state_q == StComplete && cpl_ready_i && status_q == NoError &&
          (cmd_q.opcode == AdminKeepAlive || (set && feature_q.keep_alive)),
          value: cmd_q.cdw11
      };
  assign data_in_long_o = is_behavior;
  assign timestamp_set_o = data_in_ok && !is_behavior;
  assign shadow_set_o = DoorbellBuffer && state_q == StExecute && cmd_q.opcode == AdminDoorbellBufferConfig && pages_ok_q && !cmd_q.bad_flags;
  assign page_o = page_q;
  assign page_nsid_o = cmd_q.nsid;
  assign data_valid_o = state_q == StData || format_data_valid;
  assign data_o = (state_q == StFormat) ? format_data : '{
      slot: cmd_q.slot,
      op: OpRead,
      sgl: 1'b0,
      ns: '0,
      bytes: bytes_q,
      mem_addr: {1'b1, 50'b0, offset_q},
      prp1: cmd_q.prp1,
      prp2: cmd_q.prp2
  };
  assign data_slot_o = cmd_q.slot;
  assign data_wait_o = state_q == StDataWait || format_data_wait;

  // Completions.
  logic unpark;
  assign unpark = state_q == StUnpark;
  assign cpl_valid_o = state_q == StComplete || state_q == StRelease || unpark;
  assign cpl_o = '{
      silent: state_q == StRelease,
      slot: (state_q == StRelease || unpark) ? parked_slot_q[chosen_q] : cmd_q.slot,
      status: unpark ? (abort_active_q ? abort_status() : NoError) : status_q,
      dw0: unpark ? (abort_active_q ? '0 : {8'b0, event_i.lid, event_i.info, 5'b0, event_i.kind}) : dw0_q
  };

  `NS_ASSERT(one_command_at_a_time, !cmd_valid_i || state_q inside {StIdle, StReserve, StUnpark})
  `NS_ASSERT(no_event_without_cause, !event_report_o || event_valid_i)
  `NS_ASSERT(parked_in_range, 32'(parked_q) <= NumEvents)

endmodule
