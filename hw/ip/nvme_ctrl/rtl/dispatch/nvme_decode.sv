// SPDX-License-Identifier: Apache-2.0

// Decodes submission queue entries. I/O commands become data commands or, without data to move or
// with an error, completions. Admin commands go to nvme_admin.
//
// Two stages. Checks, in this order: opcode, flags (FUSE 11b, PSDT 11b), namespace, format in
// progress, size, LBA range. The namespace is looked up on the way into the first stage. Commands
// with FUSE, and those that follow them in their queue, go to nvme_fused_pairing with the result.
// PSDT 01b and 10b are equivalent, as there is no metadata; without data they are ignored. Commands
// of engines are passed on unchanged, once their namespace is valid.
//
// MDTS limits commands that move data. Write Zeroes and Verify go up to the 65536 blocks of NLB.
// Ranges of Dataset Management are checked by the data path; without AD the command is a hint, and
// ends here. Fields without effect are not decoded (NVM Express 1.4, 6.6 to 6.16). FUA: completed
// data are always on the media. LR and DSM are hints. DEAC: deallocated blocks read as zeros.
// PRINFO and tags: no namespace has protection information. DTYPE: there are no directives.
// Assumption: nvme_admin accepts its command at once, as only one at a time is fetched. PRPs and
// SGLs are not checked here.
`include "ns_assert.svh"

module nvme_decode
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// See nvme_namespace.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t      NsBlocks      = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes    = 64'h1_0000_0000,
  /// I/O commands of engines.
  parameter engine_routes_t  Routes        = '0,
  /// Queues, the admin queue included.
  parameter int unsigned     NumQueues     = 17
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// Fetched command.
  input  fetched_t             cmd_i,
  input  logic                 cmd_valid_i,
  output logic                 cmd_ready_o,

  /// The owner of its slot, to be written.
  output owner_t               owner_o,
  output logic                 owner_valid_o,

  /// Namespaces that are being formatted.
  input  logic [MaxNamespaces-1:0] formatting_i,
  /// Data command.
  output data_cmd_t                data_o,
  output logic                     data_valid_o,
  input  logic                     data_ready_i,

  /// Queues whose next command goes to nvme_fused_pairing.
  input  logic [NumQueues-1:0] fused_pending_i,
  /// Queue of a command for nvme_fused_pairing, which is valid with data_o, whatever its status.
  output logic [QidWidth-1:0]  fused_qid_o,
  /// FUSE.
  output logic [1:0]           fused_fuse_o,
  /// Another command followed it.
  output logic                 fused_more_o,
  /// Status code of the checks.
  output logic [7:0]           fused_sc_o,
  /// The command has work for the data path.
  output logic                 fused_data_op_o,
  /// The command is one for an engine: with engine_*_o, if no check failed.
  output logic                 fused_engine_o,
  output logic                 fused_valid_o,
  input  logic                 fused_ready_i,

  /// Command of an engine: submission queue entry. Also with fused_valid_o.
  output logic [511:0]         engine_sqe_o,
  /// Its slot.
  output logic [SlotWidth-1:0] engine_slot_o,
  /// Route of the command.
  output engine_route_t        engine_route_o,
  /// Its namespace's index.
  output logic [NsWidth-1:0]   engine_ns_o,
  /// Valid, and always accepted.
  output logic                 engine_valid_o,

  /// Command that has ended already.
  output cpl_t                 cpl_o,
  output logic                 cpl_valid_o,
  input  logic                 cpl_ready_i,

  /// Admin command.
  output admin_cmd_t           admin_o,
  output logic                 admin_valid_o,
  input  logic                 admin_ready_i
);

  localparam int unsigned QueueBits = ns_axi_pkg::idx_width(NumQueues);
  localparam int unsigned MaxBlocks = 1 << (TransferWidth - 1 - 9);  // MDTS

  typedef enum logic [2:0] {
    ToData,
    ToCompletion,
    ToAdmin,
    ToFused,
    ToEngine
  } dest_e;

  // Fields that only engines use.
  typedef struct packed {
    logic [31:0] cdw15;
    logic [31:0] cdw14;
    logic [63:0] mptr;
    logic [31:0] cdw3;
    logic [31:0] cdw2;
    logic [7:0]  flags;  // PSDT, reserved, FUSE
  } engine_fields_t;

  // First stage: the entry's fields.
  logic valid1_q, error_q;
  logic [QidWidth-1:0] qid_q;
  logic [15:0] nlb_q;  // blocks - 1
  logic [63:0] slba_q;
  logic [64:0] last_lba_q;
  logic more_q;
  logic [1:0] fuse_q, psdt_q;
  admin_cmd_t fields_q;
  namespace_t ns, ns_q;
  engine_route_t route_q;
  engine_fields_t engine_fields_q;

  // Second stage: what it means.
  logic valid2_q;
  dest_e dest_q;
  logic silent_q;
  data_op_e op_q;
  logic sgl_q, data_op2_q, more2_q, engine2_q;
  engine_route_t route2_q;
  engine_fields_t engine_fields2_q;
  logic [1:0] fuse2_q;
  logic [QidWidth-1:0] qid2_q;
  logic [SlotWidth-1:0] slot_q;
  logic [NsWidth-1:0] ns_idx_q;
  logic [7:0] sc_q;
  logic [BytesWidth-1:0] bytes_q;
  admin_cmd_t admin_q;
  logic [63:0] mem_addr_q;
  logic ready1, ready2;

  assign ready1 = !valid1_q || ready2;
  assign cmd_ready_o = ready1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
    end else begin
      if (ready1) valid1_q <= cmd_valid_i;
      if (ready2) valid2_q <= valid1_q;
    end
  end

  nvme_namespace #(
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes)
  ) u_namespace (
    .nsid_i(cmd_i.sqe[63:32]),
    .ns_o  (ns)
  );

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i && ready1) begin
      error_q <= cmd_i.error;
      ns_q <= ns;
      qid_q <= cmd_i.qid;
      slba_q <= cmd_i.sqe[383:320];
      last_lba_q <= 65'(cmd_i.sqe[383:320]) + 65'(cmd_i.sqe[399:384]);
      nlb_q <= cmd_i.sqe[399:384];
      fuse_q <= cmd_i.sqe[9:8];
      more_q <= cmd_i.more;
      psdt_q <= cmd_i.sqe[15:14];
      route_q <= cmd_i.sqe[7] ? Routes[cmd_i.sqe[6:0]] : '0;
      engine_fields_q <= '{
          cdw15: cmd_i.sqe[511:480],
          cdw14: cmd_i.sqe[479:448],
          mptr: cmd_i.sqe[191:128],
          cdw3: cmd_i.sqe[127:96],
          cdw2: cmd_i.sqe[95:64],
          flags: cmd_i.sqe[15:8]
      };
      fields_q <= '{
          slot: cmd_i.slot,
          cid: cmd_i.sqe[31:16],
          opcode: cmd_i.sqe[7:0],
          bad_flags: cmd_i.sqe[9:8] != 2'b00 || cmd_i.sqe[15:14] != 2'b00,
          nsid: cmd_i.sqe[63:32],
          prp1: cmd_i.sqe[255:192],
          prp2: cmd_i.sqe[319:256],
          cdw10: cmd_i.sqe[351:320],
          cdw11: cmd_i.sqe[383:352],
          cdw12: cmd_i.sqe[415:384],
          cdw13: cmd_i.sqe[447:416]
      };
    end
  end

  // Checks.
  logic is_admin, is_flush, is_dsm, has_lba, has_transfer, too_large, beyond_end;
  data_op_e op;
  logic [7:0] sc;

  assign is_admin = qid_q == '0;
  assign is_flush = fields_q.opcode == IoFlush;
  assign is_dsm = fields_q.opcode == IoDatasetManagement;
  assign has_transfer = op == OpRead || op == OpWrite || op == OpCompare;

  always_comb begin
    has_lba = 1'b1;
    op = OpRead;
    unique case (fields_q.opcode)
      IoRead:        op = OpRead;
      IoWrite:       op = OpWrite;
      IoCompare:     op = OpCompare;
      IoWriteZeroes: op = OpZero;
      IoVerify:      op = OpVerify;
      default: begin
        has_lba = 1'b0;
        op = OpDeallocate;
      end
    endcase
  end
  assign too_large = 32'(nlb_q) >= MaxBlocks;
  assign beyond_end = last_lba_q >= 65'(ns_q.blocks);

  // The previous command in the second stage may be about to become a first command that waits for
  // this one.
  logic for_fused, for_data, for_engine;
  assign for_fused = fuse_q != 2'b00 || fused_pending_i[QueueBits'(qid_q)]
      || (fused_valid_o && qid2_q == qid_q);
  assign for_engine = sc == ScSuccess && route_q.valid;
  assign for_data = sc == ScSuccess && (has_lba || (is_dsm && fields_q.cdw11[2]));

  always_comb begin
    sc = ScSuccess;
    if (!is_flush && !is_dsm && !has_lba && !route_q.valid) sc = ScInvalidOpcode;
    else if (fuse_q == 2'b11 || psdt_q == 2'b11) sc = ScInvalidField;
    else if (is_flush && fields_q.nsid == '1) sc = ScSuccess;
    else if (!ns_q.valid) sc = ScInvalidNamespace;
    else if (!ns_q.active) sc = ScInvalidField;
    else if (route_q.valid && !route_q.namespaces[ns_q.idx]) sc = ScInvalidNamespace;
    else if (formatting_i[ns_q.idx]) sc = ScFormatInProgress;
    else if (has_lba && has_transfer && too_large) sc = ScInvalidField;
    else if (has_lba && beyond_end) sc = ScLbaOutOfRange;
  end

  always_ff @(posedge clk_i) begin
    if (valid1_q && ready2) begin
      admin_q <= fields_q;
      slot_q <= fields_q.slot;
      silent_q <= error_q;
      sc_q <= sc;
      op_q <= op;
      sgl_q <= psdt_q != 2'b00;
      if (is_dsm) bytes_q <= (BytesWidth'(fields_q.cdw10[7:0]) + 1'b1) << 4;
      else bytes_q <= (BytesWidth'(nlb_q) + 1'b1) << 9;
      // Commands without LBA use CDW10 and CDW11 for other fields, or not at all: their address is
      // that of the namespace.
      mem_addr_q <= {(has_lba ? slba_q[LbaWidth-1:0] : '0) + ns_q.base, 9'd0};
      ns_idx_q <= ns_q.idx;
      if (error_q) dest_q <= ToCompletion;
      else if (is_admin) dest_q <= ToAdmin;
      else if (for_fused) dest_q <= ToFused;
      else dest_q <= for_data ? ToData : for_engine ? ToEngine : ToCompletion;
      data_op2_q <= for_data;
      engine2_q <= for_engine;
      route2_q <= route_q;
      engine_fields2_q <= engine_fields_q;
      fuse2_q <= fuse_q;
      more2_q <= more_q;
      qid2_q <= qid_q;
    end
  end

  assign owner_valid_o = valid1_q && ready2;
  assign owner_o = '{
          slot: fields_q.slot,
          qid: qid_q,
          cid: fields_q.cid,
          nsid: fields_q.nsid,
          lba: (!is_admin && has_lba) ? slba_q : '0
      };

  assign data_valid_o = valid2_q && dest_q == ToData;
  assign admin_valid_o = valid2_q && dest_q == ToAdmin;
  assign fused_valid_o = valid2_q && dest_q == ToFused;
  assign fused_qid_o = qid2_q;
  assign fused_fuse_o = fuse2_q;
  assign fused_more_o = more2_q;
  assign fused_sc_o = sc_q;
  assign fused_data_op_o = data_op2_q;
  assign fused_engine_o = engine2_q;

  assign engine_valid_o = valid2_q && dest_q == ToEngine;
  assign engine_slot_o = slot_q;
  assign engine_ns_o = ns_idx_q;
  assign engine_route_o = route2_q;
  assign engine_sqe_o = {
    engine_fields2_q.cdw15,
    engine_fields2_q.cdw14,
    admin_q.cdw13,
    admin_q.cdw12,
    admin_q.cdw11,
    admin_q.cdw10,
    admin_q.prp2,
    admin_q.prp1,
    engine_fields2_q.mptr,
    engine_fields2_q.cdw3,
    engine_fields2_q.cdw2,
    admin_q.nsid,
    admin_q.cid,
    engine_fields2_q.flags,
    admin_q.opcode
  };

  always_comb begin
    unique case (dest_q)
      ToData:  ready2 = data_ready_i;
      ToAdmin: ready2 = admin_ready_i;
      ToFused: ready2 = fused_ready_i;
      ToEngine: ready2 = 1'b1;
      default: ready2 = cpl_ready_i;
    endcase
    ready2 = ready2 || !valid2_q;
  end

  assign data_o = '{
          slot: slot_q,
          op: op_q,
          sgl: sgl_q,
          ns: ns_idx_q,
          bytes: bytes_q,
          mem_addr: mem_addr_q,
          prp1: admin_q.prp1,
          prp2: admin_q.prp2
      };

  assign cpl_valid_o = valid2_q && dest_q == ToCompletion;
  assign cpl_o = '{silent: silent_q, slot: slot_q, status: generic_status(sc_q), dw0: '0};
  assign admin_o = admin_q;

  `NS_ASSERT(
      data_on_media,
      !data_valid_o || mem_addr_q + 64'(op_q == OpDeallocate ? '0 : bytes_q) <= 64'(MediaBytes))
  `NS_ASSERT(data_within_mdts,
             !data_valid_o || op_q == OpZero || op_q == OpVerify || 32'(bytes_q) <= MaxBlocks * 512)

endmodule
