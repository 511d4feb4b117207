// SPDX-License-Identifier: Apache-2.0

// Format NVM (NVMe 1.4, 5.23): erases one namespace, or all, with zeros through the data path.
//
// There is one LBA format and no metadata, so a format changes no attribute of a namespace. Without
// a secure erase the data must be erased as well (5.23), so SES 0 and 1 do the same. No
// Cryptographic Erase (FNA bit 2 is 0). After the checks, the namespaces count as being formatted,
// and their commands in flight end first. Zeros are written by data commands of up to 65536 blocks,
// in the slot of the Format NVM command. When the controller is disabled or shut down, the data
// path ends the current data command early. The format then ends as interrupted (see nvme_pkg).
// Checks, in this order: namespace, LBAF, PI, SES. PIL and MSET are ignored, as there is no
// metadata.
`include "ns_assert.svh"

module nvme_format
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// See nvme_namespace.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t      NsBlocks      = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes    = 64'h1_0000_0000
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  /// Execute the command. Stays 1 until done.
  input  logic                     req_i,
  /// The command.
  input  admin_cmd_t               cmd_i,
  /// Commands are no longer fetched: end early.
  input  logic                     stop_i,
  /// The format waits for commands in flight or for the data path.
  output logic                     waiting_o,
  /// The host accepts Command Interrupted (ACRE).
  input  logic                     acre_i,
  /// Done.
  output logic                     done_o,
  /// Status, with done_o.
  output status_t                  status_o,

  /// Namespaces being formatted: they accept no new commands.
  output logic [MaxNamespaces-1:0] formatting_o,
  /// Namespaces with commands in flight, of the data path or of engines. New commands appear at
  /// most one cycle late.
  input  logic [MaxNamespaces-1:0] in_flight_i,

  /// Data command.
  output data_cmd_t                data_o,
  output logic                     data_valid_o,
  input  logic                     data_ready_i,
  /// A data command is in flight.
  output logic                     data_wait_o,
  /// It has ended.
  input  logic                     data_done_i,
  /// How.
  input  data_status_e             data_status_i
);

  localparam ns_blocks_t Sizes = ns_sizes(NumNamespaces, NsBlocks, MediaBytes);
  localparam ns_blocks_t Bases = ns_bases(Sizes);
  localparam int unsigned ChunkWidth = 17;
  localparam logic [LbaWidth-1:0] MostBlocks = LbaWidth'(65536);

  typedef enum logic [3:0] {
    StIdle,
    StCheck,   // error checks
    StSettle,  // commands that have just been decoded become visible
    StDrain,   // wait for those in flight
    StSelect,  // is this one to be erased?
    StChunk,   // some of its blocks
    StIssue,
    StWait,
    StDone
  } state_e;

  state_e state_q;
  status_t status, status_q;
  logic [MaxNamespaces-1:0] mask_q;
  logic [NsWidth-1:0] idx_q;
  logic [LbaWidth-1:0] lba_q, remaining_q;
  logic [ChunkWidth-1:0] chunk_q;
  logic more_q;  // blocks remain after this chunk
  logic all_namespaces, last_ns;
  namespace_t ns;

  nvme_namespace #(
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes)
  ) u_namespace (
    .nsid_i(cmd_i.nsid),
    .ns_o  (ns)
  );

  // Figure 328.
  localparam logic [2:0] SesUserData = 3'd1;
  logic [3:0] lbaf;
  logic [2:0] pi, ses;
  assign lbaf = cmd_i.cdw10[3:0];
  assign pi   = cmd_i.cdw10[7:5];
  assign ses  = cmd_i.cdw10[11:9];
  assign all_namespaces  = cmd_i.nsid == '1;

  always_comb begin
    status = generic_status(ScSuccess);
    if (!all_namespaces && !ns.valid) status = generic_status(ScInvalidNamespace);
    else if (!all_namespaces && !ns.active) status = generic_status(ScInvalidField);
    else if (lbaf != '0) status = command_status(ScInvalidFormat);
    else if (pi > 3'd3) status = generic_status(ScInvalidField);
    else if (pi != '0) status = command_status(ScInvalidFormat);
    else if (ses > SesUserData) status = generic_status(ScInvalidField);
  end

  assign last_ns = 32'(idx_q) == NumNamespaces - 1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      mask_q  <= '0;
    end else begin
      unique case (state_q)
        StIdle: if (req_i) state_q <= StCheck;
        StCheck: begin
          state_q <= (status_q.sc == ScSuccess) ? StSettle : StDone;
          if (status_q.sc == ScSuccess)
            mask_q <= all_namespaces ? ns_active(Sizes) : MaxNamespaces'(1) << ns.idx;
        end
        StSettle: state_q <= StDrain;
        StDrain: if ((in_flight_i & mask_q) == '0) state_q <= StSelect;
        StSelect: begin
          if (stop_i) state_q <= StDone;
          else if (mask_q[idx_q]) state_q <= StChunk;
          else if (last_ns) state_q <= StDone;
        end
        StChunk:   state_q <= StIssue;
        StIssue:   if (data_ready_i) state_q <= StWait;
        StWait:
        if (data_done_i) begin
          if (data_status_i != DataOk) state_q <= StDone;
          else if (more_q) state_q <= stop_i ? StDone : StChunk;
          else state_q <= last_ns ? StDone : StSelect;
        end
        default: begin
          state_q <= StIdle;
          mask_q  <= '0;
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      status_q <= status;
      idx_q <= '0;
    end
    if (state_q == StSelect) begin
      lba_q  <= Bases[idx_q][LbaWidth-1:0];
      remaining_q <= Sizes[idx_q][LbaWidth-1:0];
      if (stop_i) status_q <= interrupted_status(acre_i);
      if (!mask_q[idx_q]) idx_q <= idx_q + 1'b1;
    end
    if (state_q == StChunk) begin
      chunk_q <= (remaining_q > MostBlocks) ? MostBlocks[ChunkWidth-1:0] : remaining_q[ChunkWidth-1:0];
      more_q  <= remaining_q > MostBlocks;
    end
    if (state_q == StIssue && data_ready_i) begin
      lba_q  <= lba_q + LbaWidth'(chunk_q);
      remaining_q <= remaining_q - LbaWidth'(chunk_q);
    end
    if (state_q == StWait && data_done_i) begin
      if (data_status_i != DataOk) status_q <= data_status(data_status_i, acre_i);
      else if (more_q && stop_i) status_q <= interrupted_status(acre_i);
      idx_q <= idx_q + NsWidth'(!more_q);
    end
  end

  assign done_o = state_q == StDone;
  assign status_o = status_q;
  assign formatting_o = mask_q;
  assign data_valid_o = state_q == StIssue;
  assign data_wait_o = state_q == StWait;
  assign waiting_o = state_q == StWait || state_q == StDrain;
  assign data_o = '{
          slot: cmd_i.slot,
          op: OpZero,
          sgl: 1'b0,
          ns: idx_q,
          bytes: BytesWidth'({chunk_q, 9'd0}),
          mem_addr: {lba_q, 9'd0},
          prp1: '0,
          prp2: '0
      };

  logic unused;
  assign unused = ^{
    cmd_i.cid, cmd_i.opcode, cmd_i.bad_flags, cmd_i.cdw11, cmd_i.cdw12, cmd_i.cdw13, cmd_i.prp1, cmd_i.prp2, ns.base,
    ns.blocks, cmd_i.cdw10[31:12], cmd_i.cdw10[8], cmd_i.cdw10[4]
  };

  `NS_ASSERT(request_stays, state_q == StIdle || req_i)
  `NS_ASSERT(never_nothing, !data_valid_o || chunk_q != '0)

endmodule
