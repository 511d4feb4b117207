// Admin commands (NVMe 1.4, chapter 5), one at a time, by a state machine.
//
// Identify (CNS 00h to 03h), Create and Delete I/O Submission and Completion Queue, Set and Get Features (01h, 02h, 04h,
// 05h, 07h to 0Bh), Abort (never aborts), Asynchronous Event Request (parked; nothing completes them yet). Anything else
// gets its error status. Features are stored and reported; the device's behaviour doesn't depend on them.
// Pages travel to the host through the data path, which reads them from nvme_admin_buf.
//
// Assumes that the next command arrives no earlier than `done_o`, and that the data path answers every command.
`include "ns_assert.svh"

module nvme_admin
  import nvme_pkg::*;
#(
  /// I/O queue pairs; there is one more interrupt vector than that.
  parameter int unsigned NumIoQueues  = 16,
  /// Largest I/O queue in entries.
  parameter int unsigned QueueEntries = 1024,
  /// Asynchronous Event Requests that can be parked (AERL + 1).
  parameter int unsigned NumEvents    = 4
) (
  /// Clock.
  input  logic                 clk_i,
  /// Reset, active low.
  input  logic                 rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic                 busy_o,

  /// Create the admin queues.
  input  logic                 init_i,
  /// Done.
  output logic                 init_done_o,
  /// Drop parked commands and set features back to their defaults.
  input  logic                 flush_i,
  /// Done, and no slot is in use.
  output logic                 flush_done_o,
  /// Slots in use.
  input  logic [SlotWidth-1:0] used_i,
  /// Parked commands; each holds a slot.
  output logic [SlotWidth-1:0] parked_o,

  /// AQA.ASQS.
  input  logic [11:0]          asqs_i,
  /// AQA.ACQS.
  input  logic [11:0]          acqs_i,
  /// ASQ.
  input  logic [63:12]         asq_i,
  /// ACQ.
  input  logic [63:12]         acq_i,
  /// CC.IOSQES and CC.IOCQES are right.
  input  logic                 iosqes_ok_i,
  /// See above.
  input  logic                 iocqes_ok_i,

  /// Command.
  input  admin_cmd_t           cmd_i,
  /// Valid.
  input  logic                 cmd_valid_i,
  /// Ready.
  output logic                 cmd_ready_o,
  /// The command is over: the next one may be fetched.
  output logic                 done_o,

  /// Queue to create or delete.
  output queue_cfg_t           cfg_o,
  /// Valid.
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
  /// The present command will not be completed for now: give back its completion queue entry.
  output logic                 unreserve_valid_o,
  /// Done.
  input  logic                 unreserve_ready_i,

  /// Page that the admin buffer shows.
  output page_e                page_o,
  /// For PageNsList: the list is empty.
  output logic                 page_empty_o,
  /// Data command that brings it to the host.
  output data_cmd_t            data_o,
  /// Valid.
  output logic                 data_valid_o,
  /// Ready.
  input  logic                 data_ready_i,
  /// Ended data command.
  input  data_done_t           data_done_i,
  /// Valid; taken at once if its slot is the present command's.
  input  logic                 data_done_valid_i,
  /// The slot that data_done_i is compared with, and whether it is.
  output logic [SlotWidth-1:0] data_slot_o,
  /// See above.
  output logic                 data_wait_o,

  /// Completion.
  output cpl_t                 cpl_o,
  /// Valid.
  output logic                 cpl_valid_o,
  /// Ready.
  input  logic                 cpl_ready_i
);

  localparam int unsigned NumQueues = NumIoQueues + 1;
  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumQueues);
  localparam int unsigned ParkBits = unsigned'($clog2(NumEvents + 1));
  localparam int unsigned ParkIdx = ns_axi_pkg::idx_width(NumEvents);

  typedef enum logic [3:0] {
    StInitCq,
    StInitSq,
    StInitDone,
    StDefaults,   // set features back
    StIdle,
    StExecute,    // check, and choose what to do
    StFeature,    // Set or Get Features
    StConfigure,  // create or delete a queue
    StQuiet,      // wait for the commands of a deleted submission queue
    StSearch,     // does a submission queue use this completion queue?
    StData,       // send a page
    StDataWait,
    StPark,
    StComplete,
    StRelease,    // give back the slot of a parked command
    StFlushDone
  } state_e;

  state_e state_q, state_d;
  admin_cmd_t cmd_q;
  status_t status_q, status_d;
  logic [31:0] dw0_q, dw0_d;
  page_e page_q, page_d;
  logic page_empty_q, page_empty_d;
  logic [QidWidth-1:0] count_q, count_d;
  logic [ParkBits-1:0] parked_q, parked_d;
  logic [SlotWidth-1:0] parked_slot_q[NumEvents];

  // Fields of the command.
  logic [15:0] low, high;  // of CDW10
  logic [7:0] fid, cns;
  logic qid_exists_range, sq_exists, cq_exists, cqid_range, cqid_exists;
  logic [Bits-1:0] qidx, cqidx;

  assign low = cmd_q.cdw10[15:0];
  assign high = cmd_q.cdw10[31:16];
  assign fid = cmd_q.cdw10[7:0];
  assign cns = cmd_q.cdw10[7:0];
  assign qidx = low[Bits-1:0];
  assign cqidx = cmd_q.cdw11[16+:Bits];
  assign qid_exists_range = low != '0 && 32'(low) <= NumIoQueues;
  assign sq_exists = qid_exists_range && sq_valid_i[qidx];
  assign cq_exists = qid_exists_range && cq_valid_i[qidx];
  assign cqid_range = cmd_q.cdw11[31:16] != '0 && 32'(cmd_q.cdw11[31:16]) <= NumIoQueues;
  assign cqid_exists = cq_valid_i[cqidx];

  // What stands against each command; ScSuccess of the generic type if nothing.
  localparam status_t Fine = '{dnr: 1'b0, more: 1'b0, crd: 2'b0, sct: 3'd0, sc: ScSuccess};
  status_t create_sq_status, create_cq_status, identify_status, feature_status;
  status_t feature_status_q;  // valid in StFeature
  logic bad_size;

  assign bad_size = high == '0 || 32'(high) >= QueueEntries;

  always_comb begin
    create_sq_status = Fine;
    if (!qid_exists_range || sq_exists) create_sq_status = command_status(ScInvalidQueueId);
    else if (!cqid_range) create_sq_status = command_status(ScInvalidQueueId);
    else if (!cqid_exists) create_sq_status = command_status(ScCompletionQueueInvalid);
    else if (bad_size || !iosqes_ok_i) create_sq_status = command_status(ScInvalidQueueSize);
    else if (!cmd_q.cdw11[0]) create_sq_status = generic_status(ScInvalidField);
    else if (cmd_q.prp1[11:0] != '0) create_sq_status = generic_status(ScPrpOffsetInvalid);

    create_cq_status = Fine;
    if (!qid_exists_range || cq_exists) create_cq_status = command_status(ScInvalidQueueId);
    else if (bad_size || !iocqes_ok_i) create_cq_status = command_status(ScInvalidQueueSize);
    else if (32'(cmd_q.cdw11[31:16]) > NumIoQueues)
      create_cq_status = command_status(ScInvalidVector);
    else if (!cmd_q.cdw11[0]) create_cq_status = generic_status(ScInvalidField);
    else if (cmd_q.prp1[11:0] != '0) create_cq_status = generic_status(ScPrpOffsetInvalid);

    identify_status = Fine;
    unique case (cns)
      8'h00, 8'h03: if (cmd_q.nsid != 32'd1) identify_status = generic_status(ScInvalidNamespace);
      8'h01: ;
      8'h02: if (cmd_q.nsid >= 32'hFFFF_FFFE) identify_status = generic_status(ScInvalidNamespace);
      default: identify_status = generic_status(ScInvalidField);
    endcase
  end

  // Features: one word each, by the lower bits of the feature identifier; the under temperature threshold takes 0Ch.
  localparam logic [7:0] FidArbitration = 8'h01;
  localparam logic [7:0] FidPower = 8'h02;
  localparam logic [7:0] FidTemperature = 8'h04;
  localparam logic [7:0] FidErrorRecovery = 8'h05;
  localparam logic [7:0] FidNumQueues = 8'h07;
  localparam logic [7:0] FidCoalescing = 8'h08;
  localparam logic [7:0] FidVector = 8'h09;
  localparam logic [7:0] FidAtomicity = 8'h0A;
  localparam logic [7:0] FidEvents = 8'h0B;
  localparam logic [3:0] UnderThreshold = 4'hC;

  (* ram_style = "distributed" *) logic [31:0] feature_mem[16];
  logic [NumQueues-1:0] uncoalesced_q;  // Interrupt Vector Configuration, CD
  logic set, feature_we, vector_we;
  logic [3:0] feature_idx;
  logic [31:0] feature_mask, feature_default;
  logic [Bits-1:0] vector;

  assign set = cmd_q.opcode == AdminSetFeatures;
  assign vector = cmd_q.cdw11[Bits-1:0];
  assign feature_idx = (state_q == StDefaults) ? count_q[3:0]
                     : (fid == FidTemperature && cmd_q.cdw11[20]) ? UnderThreshold : fid[3:0];

  always_comb begin
    unique case (count_q[3:0])
      FidArbitration[3:0]: feature_default = 32'h7;  // no limit on the burst
      FidTemperature[3:0]: feature_default = 32'h157;  // 343 K
      default: feature_default = '0;
    endcase

    feature_status = Fine;
    feature_mask = '0;
    unique case (fid)
      FidArbitration: feature_mask = 32'hFFFF_FF07;
      FidPower: begin
        feature_mask = 32'h0000_00E0;
        if (set && cmd_q.cdw11[4:0] != '0) feature_status = generic_status(ScInvalidField);
      end
      FidTemperature: begin
        feature_mask = 32'h0000_FFFF;
        // The composite temperature is the only one; Fh sets all.
        if (cmd_q.cdw11[19:16] != 4'h0 && !(set && cmd_q.cdw11[19:16] == 4'hF)) feature_status = generic_status(ScInvalidField);
        if (cmd_q.cdw11[21]) feature_status = generic_status(ScInvalidField);
      end
      FidErrorRecovery: begin
        feature_mask = 32'h0000_FFFF;
        if (set && cmd_q.cdw11[16]) feature_status = generic_status(ScInvalidField);  // DULBE
      end
      FidNumQueues: begin
        if (set && (cmd_q.cdw11[15:0] == 16'hFFFF || cmd_q.cdw11[31:16] == 16'hFFFF)) begin
          feature_status = generic_status(ScInvalidField);
        end else if (set && (sq_valid_i[NumIoQueues:1] != '0 || cq_valid_i[NumIoQueues:1] != '0)) begin
          feature_status = generic_status(ScCommandSequenceError);
        end
      end
      FidCoalescing: feature_mask = 32'h0000_FFFF;
      FidVector: if (32'(cmd_q.cdw11[15:0]) > NumIoQueues) feature_status = generic_status(ScInvalidField);
      FidAtomicity: feature_mask = 32'h0000_0001;
      FidEvents: feature_mask = 32'h0000_00FF;  // SMART warnings; no notices (OAES)
      default: feature_status = generic_status(ScInvalidField);
    endcase

    // Namespaces: only Error Recovery is a namespace's.
    if (feature_status.sc == ScSuccess) begin
      if (cmd_q.nsid > 32'd1 && cmd_q.nsid != '1)
        feature_status = generic_status(ScInvalidNamespace);
      else if (fid == FidErrorRecovery && cmd_q.nsid == '0)
        feature_status = generic_status(ScInvalidNamespace);
      else if (set && fid != FidErrorRecovery && cmd_q.nsid == 32'd1) begin
        feature_status = command_status(ScFeatureNotNamespaceSpecific);
      end
    end
    // Nothing can be saved (ONCS).
    if (set && cmd_q.cdw10[31]) feature_status = command_status(ScFeatureNotSaveable);
  end

  assign feature_we = state_q == StDefaults
                    || (state_q == StFeature && set && feature_status_q.sc == ScSuccess && feature_mask != '0);
  assign vector_we = state_q == StFeature && set && feature_status_q.sc == ScSuccess && fid == FidVector;

  always_ff @(posedge clk_i) begin
    feature_status_q <= feature_status;
    if (feature_we) begin
      feature_mem[feature_idx] <= (state_q == StDefaults) ? feature_default : cmd_q.cdw11 & feature_mask;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) uncoalesced_q <= '0;
    else if (state_q == StDefaults) uncoalesced_q <= '0;
    else if (vector_we) uncoalesced_q[vector] <= cmd_q.cdw11[16];
  end

  // The state machine.
  always_comb begin
    state_d = state_q;
    status_d = status_q;
    dw0_d = dw0_q;
    page_d = page_q;
    page_empty_d = page_empty_q;
    count_d = count_q;
    parked_d = parked_q;

    unique case (state_q)
      StDefaults: begin
        count_d = count_q + 1'b1;
        if (count_q[3:0] == 4'hF) begin
          count_d = '0;
          state_d = flush_i ? StFlushDone : StIdle;
        end
      end

      StIdle: begin
        count_d = QidWidth'(1);
        status_d = Fine;
        dw0_d = '0;
        if (init_i) state_d = StInitCq;
        else if (flush_i && parked_q != '0) state_d = StRelease;
        else if (flush_i && used_i == '0) begin
          count_d = '0;
          state_d = StDefaults;
        end else if (cmd_valid_i) state_d = StExecute;
      end

      StInitCq:   if (cfg_fire_i) state_d = StInitSq;
      StInitSq:   if (cfg_fire_i) state_d = StInitDone;
      StInitDone: state_d = StIdle;

      StExecute: begin
        state_d = StComplete;
        if (cmd_q.bad_flags) status_d = generic_status(ScInvalidField);
        else
          unique case (cmd_q.opcode)
            AdminIdentify: begin
              status_d = identify_status;
              unique case (cns)
                8'h00: page_d = PageNamespace;
                8'h01: page_d = PageController;
                8'h02: page_d = PageNsList;
                default: page_d = PageDescriptors;
              endcase
              page_empty_d = cmd_q.nsid != '0;
              if (identify_status.sc == ScSuccess) state_d = StData;
            end
            AdminCreateSq: begin
              status_d = create_sq_status;
              if (create_sq_status == Fine) state_d = StConfigure;
            end
            AdminCreateCq: begin
              status_d = create_cq_status;
              if (create_cq_status == Fine) state_d = StConfigure;
            end
            AdminDeleteSq: begin
              if (sq_exists) state_d = StConfigure;
              else status_d = command_status(ScInvalidQueueId);
            end
            AdminDeleteCq: begin
              if (cq_exists) state_d = StSearch;
              else status_d = command_status(ScInvalidQueueId);
            end
            AdminSetFeatures, AdminGetFeatures: state_d = StFeature;
            AdminGetLogPage: status_d = command_status(ScInvalidLogPage);
            AdminAbort: dw0_d = 32'd1;  // not aborted
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
          if (fid == FidNumQueues) dw0_d = {16'(NumIoQueues - 1), 16'(NumIoQueues - 1)};
          else if (fid == FidVector && !set)
            dw0_d = {15'b0, uncoalesced_q[vector], cmd_q.cdw11[15:0]};
          else if (!set) dw0_d = feature_mem[feature_idx];
        end
      end

      StConfigure:
      if (cfg_fire_i) state_d = (cmd_q.opcode == AdminDeleteSq) ? StQuiet : StComplete;

      StQuiet: if (sq_idle_i) state_d = StComplete;

      StSearch: begin
        count_d = count_q + 1'b1;
        if (sq_valid_i[count_q[Bits-1:0]] && sq_cqid_i == QidWidth'(qidx)) begin
          status_d = command_status(ScInvalidQueueDeletion);
          state_d = StComplete;
        end else if (32'(count_q) == NumIoQueues) begin
          state_d = StConfigure;
        end
      end

      StData: if (data_ready_i) state_d = StDataWait;

      StDataWait:
      if (data_done_valid_i && data_done_i.slot == cmd_q.slot) begin
        status_d = data_status(data_done_i.status);
        state_d = StComplete;
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
      state_q <= StDefaults;
      parked_q <= '0;
      count_q <= '0;
    end else begin
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
    page_empty_q <= page_empty_d;
    if (state_q == StPark) parked_slot_q[parked_q[ParkIdx-1:0]] <= cmd_q.slot;
  end

  assign cmd_ready_o = state_q == StIdle && !init_i && !flush_i;
  assign done_o = (state_q == StComplete && cpl_ready_i) || (state_q == StPark && unreserve_ready_i);
  assign init_done_o = state_q == StInitDone;
  assign flush_done_o = state_q == StFlushDone;
  assign parked_o = SlotWidth'(parked_q);
  assign busy_o = state_q != StIdle;

  // Queues.
  assign cfg_valid_o = state_q == StInitCq || state_q == StInitSq || state_q == StConfigure;

  always_comb begin
    cfg_o = '{
        cq: cmd_q.opcode == AdminCreateCq || cmd_q.opcode == AdminDeleteCq,
        create: cmd_q.opcode == AdminCreateCq || cmd_q.opcode == AdminCreateSq,
        qid: QidWidth'(qidx),
        cqid: QidWidth'(cqidx),
        ien: cmd_q.cdw11[1],
        vector: QidWidth'(cqidx),  // the same bits as CQID
        size: high,
        base: cmd_q.prp1[63:12]
    };
    if (state_q == StInitCq || state_q == StInitSq) begin
      cfg_o = '{
          cq: state_q == StInitCq,
          create: 1'b1,
          qid: '0,
          cqid: '0,
          ien: 1'b1,
          vector: '0,
          size: PtrWidth'((state_q == StInitCq) ? acqs_i : asqs_i),
          base: (state_q == StInitCq) ? acq_i : asq_i
      };
    end
  end

  assign sq_qid_o = (state_q == StSearch) ? count_q : QidWidth'(qidx);
  assign unreserve_valid_o = state_q == StPark;

  // Pages.
  assign page_o = page_q;
  assign page_empty_o = page_empty_q;
  assign data_valid_o = state_q == StData;
  assign data_o = '{
      slot: cmd_q.slot,
      op: OpRead,
      bytes: BytesWidth'(4096),
      mem_addr: 64'h8000_0000_0000_0000,
      prp1: cmd_q.prp1,
      prp2: cmd_q.prp2
  };
  assign data_slot_o = cmd_q.slot;
  assign data_wait_o = state_q == StDataWait;

  // Completions.
  assign cpl_valid_o = state_q == StComplete || state_q == StRelease;
  assign cpl_o = '{
      silent: state_q == StRelease,
      slot: (state_q == StRelease) ? parked_slot_q[ParkIdx'(parked_q - 1'b1)] : cmd_q.slot,
      status: status_q,
      dw0: dw0_q
  };

  `NS_ASSERT(one_command_at_a_time, !cmd_valid_i || state_q == StIdle)
  `NS_ASSERT(parked_in_range, 32'(parked_q) <= NumEvents)

endmodule
