// SPDX-License-Identifier: Apache-2.0

// Commands that move no data between host and media, as ranges of the media for nvme_range_walk.
// Write Zeroes and Verify have one range. Dataset Management has a list of ranges in host memory
// (NVM Express 1.4, 6.7).
//
// One command at a time. A list is read completely, by lines of 64 bytes, and all of its ranges are
// checked before the first one is sent. An invalid list changes nothing. With PRPs it may begin at
// any dword, and so lie in two pages. With an SGL it arrives in the segments that an
// nvme_sgl_walker finds. Context attributes are ignored. Ranges of a list may overlap. A list
// beyond the limits recommended by Identify (DMRL, DMRSL, DMSL) is executed completely. With ONCS
// bit 2 set it must not be refused, and not all hosts read the limits.
//
// A list can cover 256 times the whole namespace, and several lists can wait: seconds or minutes of
// work. When the controller is being stopped, the current command therefore sends no further range,
// and waiting commands end without work. They end as interrupted (to be retried, see nvme_pkg),
// which a host sees after a shutdown that did not wait for its commands. No Abort named them (07h),
// and their queue is not being deleted (08h).
//
// A single command is ended in the same way, by an Abort or by the deletion of its queue. To find a
// waiting command, the queue is rotated once, which takes one cycle for each command. No command is
// accepted during the rotation.
`include "ns_assert.svh"

module nvme_ranges
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// Commands that wait.
  parameter int unsigned        NumSlots      = 64,
  /// See nvme_namespace.
  parameter int unsigned        NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t         NsBlocks      = '0,
  /// See nvme_namespace.
  parameter longint unsigned    MediaBytes    = 64'h1_0000_0000,
  /// ID of the list reads.
  parameter logic [IdWidth-1:0] Id            = '0
) (
  input  logic      clk_i,
  input  logic      rst_ni,
  /// From registers: there are commands inside.
  output logic      busy_o,
  /// Nothing changes until nvme_range_walk accepts the current range, if there is one. From
  /// registers, except for range_ready_i.
  output logic      waiting_o,
  /// End long operations. Stays until there are no commands inside.
  input  logic      stop_i,

  /// End this command, if it is inside. Stays until the answer, as do the following inputs.
  input  logic                 abort_valid_i,
  /// Its slot.
  input  logic [SlotWidth-1:0] abort_slot_i,
  /// The slot still belongs to that command.
  input  logic                 abort_current_i,
  /// Reason: the queue is being deleted; otherwise an Abort.
  input  logic                 abort_deleted_i,
  /// Answer.
  output logic                 abort_ready_o,
  /// With the answer: the command is inside, and ends soon.
  output logic                 abort_found_o,
  /// End the current range of nvme_range_walk, if it is of this slot.
  output logic                 cancel_o,
  output data_status_e         cancel_status_o,
  /// The range is of this slot.
  input  logic                 cancel_found_i,
  /// End of a waiting command.
  output transfer_event_t      event_o,
  output logic                 event_valid_o,
  input  logic                 event_ready_i,

  /// Command: OpZero, OpVerify or OpDeallocate.
  input  data_cmd_t cmd_i,
  input  logic      cmd_valid_i,
  output logic      cmd_ready_o,

  /// Range.
  output range_t    range_o,
  output logic      range_valid_o,
  input  logic      range_ready_i,

  /// The list of a Dataset Management with an SGL is to be found.
  output data_cmd_t       list_cmd_o,
  output logic            list_cmd_valid_o,
  input  logic            list_cmd_ready_i,
  /// Segment of the list: address and length are used.
  input  seg_t            list_seg_i,
  input  logic            list_seg_valid_i,
  output logic            list_seg_ready_o,
  /// End of the list's segments.
  input  transfer_event_t list_end_i,
  input  logic            list_end_valid_i,
  output logic            list_end_ready_o,

  /// List read address.
  output ax_t       ar_o,
  output logic      ar_valid_o,
  input  logic      ar_ready_i,
  /// List data; always accepted.
  input  r_t        r_i,
  input  logic      r_valid_i
);

  localparam int unsigned MaxRanges = 256;
  localparam int unsigned IdxBits = unsigned'($clog2(MaxRanges));
  localparam int unsigned CountBits = unsigned'($clog2(NumSlots + 2));

  typedef enum logic [3:0] {
    StIdle,
    StSingle,       // the range given by the command itself
    StStart,        // a list: check its PRPs
    StListSegment,  // the next segment of the list
    StReadLine,     // the next line
    StWaitLine,
    StDword,        // a dword a cycle
    StCheck,        // wait for the last check
    StFetch,        // read the next range from the buffer
    StRange,
    StDrain,        // discard the remaining segments
    StFail
  } state_e;

  state_e state_q;
  data_cmd_t cmd, queue_head;  // the current command; the next one
  logic queue_valid, cmd_start, in_ready;
  logic [CountBits-1:0] count;

  // Abort.
  typedef enum logic [2:0] {
    AbIdle,
    AbCurrent,  // check the current command
    AbQueue,    // check the waiting commands
    AbEvent,    // the command was waiting: it ends here
    AbAnswer
  } abort_e;

  abort_e abort_q;
  logic
      found_q,
      cancelled_q,
      queue_visit,
      queue_requeue,
      queue_match,
      current_match,
      range_fire,
      ending;
  logic [CountBits-1:0] round_q;
  data_status_e cancel_status;

  assign queue_visit = abort_q == AbQueue && round_q != '0 && queue_valid;
  assign queue_match = queue_head.slot == abort_slot_i;
  assign queue_requeue = queue_visit && !queue_match;

  // One place more than commands, for the rotation.
  ns_fifo #(
    .Width($bits(data_cmd_t)),
    .Depth(NumSlots + 1),
    .Style("lutram")
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i ((cmd_valid_i && cmd_ready_o) || queue_requeue),
    .in_ready_o (in_ready),
    .in_data_i  (queue_requeue ? queue_head : cmd_i),
    .out_valid_o(queue_valid),
    .out_ready_i(cmd_start || queue_visit),
    .out_data_o (queue_head),
    .count_o    (count)
  );

  assign cmd_ready_o = in_ready && abort_q != AbCurrent && abort_q != AbQueue;
  assign cmd_start = state_q == StIdle && queue_valid && abort_q != AbCurrent && abort_q != AbQueue;
  always_ff @(posedge clk_i) if (cmd_start) cmd <= queue_head;

  assign busy_o = count != '0 || state_q != StIdle || abort_q != AbIdle;
  assign waiting_o = abort_q == AbIdle && !abort_valid_i
      && ((range_valid_o && !range_ready_i && (!ending || state_q == StFail)) || (state_q == StIdle && count == '0));

  // A range that is being sent is considered a cycle later.
  assign range_fire = range_valid_o && range_ready_i;
  assign current_match = state_q != StIdle && cmd.slot == abort_slot_i;
  assign cancel_o = abort_q == AbCurrent && abort_current_i && !range_fire;
  assign cancel_status_o = cancel_status;
  assign abort_ready_o = abort_q == AbAnswer;
  assign abort_found_o = found_q;
  assign event_o = '{slot: abort_slot_i, walk: 1'b1, descs: '0, status: cancel_status};
  assign event_valid_o = abort_q == AbEvent;
  assign cancel_status = abort_deleted_i ? DataDeleted : DataAborted;
  assign ending = stop_i || cancelled_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      abort_q <= AbIdle;
      cancelled_q <= 1'b0;
      found_q <= 1'b0;
      round_q <= '0;
    end else begin
      unique case (abort_q)
        AbIdle: begin
          found_q <= 1'b0;
          if (abort_valid_i) abort_q <= AbCurrent;
        end
        AbCurrent: begin
          round_q <= count;
          if (!abort_current_i) abort_q <= AbAnswer;
          else if (!range_fire) begin
            found_q <= current_match || cancel_found_i;
            abort_q <= (current_match || cancel_found_i) ? AbAnswer : AbQueue;
          end
        end
        AbQueue: begin
          if (queue_visit) begin
            round_q <= round_q - 1'b1;
            if (queue_match) found_q <= 1'b1;
          end
          if (round_q == '0) abort_q <= found_q ? AbEvent : AbAnswer;
        end
        AbEvent:  if (event_ready_i) abort_q <= AbAnswer;
        default: abort_q <= AbIdle;
      endcase
      if (state_q == StIdle) cancelled_q <= 1'b0;
      else if (cancel_o && current_match) cancelled_q <= 1'b1;
    end
  end

  // The list, dword by dword.
  logic [63:2] addr_q;
  logic [10:0] dwords_q;  // left
  logic [10:0] seg_dwords_q;   // left of the segment
  logic [1:0] field_q;     // dword of the range
  logic [DataWidth-1:0] line_q;
  logic [31:0] dword, blocks_q;
  logic [63:0] lba_q;
  logic range_valid_q;          // lba_q and blocks_q hold a range
  // range_end_q holds the end of a range; a range was out of range
  logic range_end_valid_q, out_of_range_q;
  logic [64:0] range_end_q;
  logic [IdxBits-1:0] in_q, out_q, final_q;
  data_status_e status_q, cancel_status_q;
  logic crosses_page, prp_bad, dword_valid, last_dword, seg_last, line_last, list_end_fire;
  namespace_t ns, ns_q;  // namespace of the command

  assign crosses_page = 13'(cmd.prp1[11:0]) + cmd.bytes[12:0] > 13'd4096;
  assign prp_bad = cmd.prp1[1:0] != '0 || (crosses_page && cmd.prp2[11:0] != '0);
  assign dword_valid = state_q == StDword;
  assign dword = line_q[addr_q[5:2]*32+:32];
  assign last_dword = dwords_q == 11'd1;
  assign seg_last = seg_dwords_q == 11'd1;
  assign line_last = addr_q[5:2] == 4'd15;
  assign list_end_fire = list_end_valid_i && list_end_ready_o;

  nvme_namespace #(
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes)
  ) u_namespace (
    .nsid_i(32'(cmd.ns) + 32'd1),
    .ns_o  (ns)
  );

  logic [54:0] range_lba;
  logic [31:0] range_blocks;

  ns_ram_1r1w #(
    .Width(87),
    .Depth(MaxRanges)
  ) u_list (
    .clk_i,
    .we_i   (range_valid_q),
    .waddr_i(in_q),
    .wdata_i({lba_q[54:0] + ns_q.base, blocks_q}),
    .re_i   (state_q == StFetch),
    .raddr_i(out_q),
    .rdata_o({range_lba, range_blocks})
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      range_valid_q <= 1'b0;
      range_end_valid_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:  if (cmd_start) state_q <= stop_i ? StFail : (queue_head.op == OpDeallocate) ? StStart : StSingle;
        StSingle: begin
          if (range_ready_i && !cancelled_q) state_q <= StIdle;
          else if (ending) state_q <= StFail;
        end
        StStart: begin
          if (!cmd.sgl) state_q <= prp_bad ? StFail : StReadLine;
          else if (list_cmd_ready_i) state_q <= StListSegment;
        end
        StListSegment: begin
          if (!cmd.sgl || list_seg_valid_i) state_q <= (cmd.sgl && ending) ? StDrain : StReadLine;
          else if (list_end_fire) state_q <= StFail;
        end
        StReadLine:   if (ar_ready_i) state_q <= StWaitLine;
        StWaitLine:  if (r_valid_i) state_q <= !r_i.resp[1] ? StDword : cmd.sgl ? StDrain : StFail;
        StDword: begin
          if (ending) state_q <= cmd.sgl ? StDrain : StFail;
          else if (last_dword) state_q <= StCheck;
          else if (seg_last) state_q <= StListSegment;
          else if (line_last) state_q <= StReadLine;
        end
        StCheck: if (!range_valid_q && !range_end_valid_q && (!cmd.sgl || list_end_fire)) state_q <= out_of_range_q ? StFail : StFetch;
        StFetch: state_q <= ending ? StFail : StRange;
        StRange: begin
          if (range_ready_i && !cancelled_q) state_q <= range_o.last ? StIdle : StFetch;
          else if (ending) state_q <= StFail;
        end
        StDrain: if (list_end_fire) state_q <= StFail;
        default: if (range_ready_i) state_q <= StIdle;
      endcase
      range_valid_q <= dword_valid && field_q == 2'd3;
      range_end_valid_q <= range_valid_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StStart) begin
      ns_q <= ns;
      addr_q <= cmd.prp1[63:2];
      dwords_q <= cmd.bytes[12:2];
      seg_dwords_q <= crosses_page ? 11'd1024 - 11'(cmd.prp1[11:2]) : cmd.bytes[12:2];
      field_q <= '0;
      out_of_range_q <= 1'b0;
      in_q <= '0;
      out_q <= '0;
      final_q <= IdxBits'(cmd.bytes[12:4] - 9'd1);
      status_q <= DataBadPrp;
    end
    if (state_q == StListSegment) begin
      // With PRPs, the second page: a list has no third one.
      addr_q <= cmd.sgl ? list_seg_i.host[63:2] : {cmd.prp2[63:12], 10'd0};
      seg_dwords_q <= cmd.sgl ? list_seg_i.len[LenWidth-1:2] : dwords_q;
      if (list_end_valid_i) status_q <= list_end_i.status;
    end
    if (state_q == StWaitLine) begin
      if (r_valid_i) line_q <= r_i.data;
      status_q <= DataHostError;
    end
    if (dword_valid) begin
      addr_q[11:2] <= addr_q[11:2] + 10'd1;
      dwords_q <= dwords_q - 11'd1;
      seg_dwords_q <= seg_dwords_q - 11'd1;
      field_q <= field_q + 2'd1;
      unique case (field_q)
        2'd1: blocks_q <= dword;
        2'd2: lba_q[31:0] <= dword;
        2'd3: lba_q[63:32] <= dword;
        default: ;
      endcase
    end
    if (range_valid_q) begin
      in_q <= in_q + 1'b1;
      range_end_q <= {1'b0, lba_q} + 65'(blocks_q);
    end
    if (range_end_valid_q && range_end_q > 65'(ns_q.blocks)) out_of_range_q <= 1'b1;
    if (state_q == StCheck) status_q <= DataOutOfRange;
    if (state_q == StRange && range_ready_i) out_q <= out_q + 1'b1;
    if (ending && state_q inside {StIdle, StSingle, StListSegment, StDword, StFetch, StRange})
      status_q <= (cancelled_q && state_q != StIdle) ? cancel_status_q : DataInterrupted;
    if (cancel_o) cancel_status_q <= cancel_status;
  end

  always_comb begin
    range_o = '{
        slot: cmd.slot,
        kind: (cmd.op == OpVerify) ? KindDrop : KindZero,
        last: 1'b1,
        status: DataOk,
        lba: cmd.mem_addr[63:9],
        blocks: 32'(cmd.bytes[BytesWidth-1:9])
    };
    if (state_q == StRange) begin
      range_o.last = out_q == final_q;
      range_o.lba = range_lba;
      range_o.blocks = range_blocks;
    end
    if (state_q == StFail) begin
      range_o.status = status_q;
      range_o.blocks = '0;
    end
  end

  // A cancelled command sends no further range.
  assign range_valid_o = ((state_q == StSingle || state_q == StRange) && !cancelled_q) || state_q == StFail;

  assign list_cmd_o = cmd;
  assign list_cmd_valid_o = state_q == StStart && cmd.sgl;
  assign list_seg_ready_o = state_q == StListSegment || state_q == StDrain;
  assign list_end_ready_o = (state_q == StListSegment && !list_seg_valid_i) || state_q == StDrain
      || (state_q == StCheck && !range_valid_q && !range_end_valid_q);

  assign ar_o = '{id: Id, len: 8'd0, size: 3'd6, burst: BurstIncr, addr: {addr_q[63:6], 6'd0}};
  assign ar_valid_o = state_q == StReadLine;

  logic unused;
  assign unused = ^{ns_q.valid, ns_q.active, ns_q.idx, cmd.mem_addr[8:0], r_i.id, r_i.last, r_i.resp[0], list_seg_i.slot, list_seg_i.kind, list_seg_i.mem,
                    list_seg_i.host[1:0], list_seg_i.len[1:0], list_seg_i.more, list_seg_i.total, list_end_i.slot, list_end_i.walk, list_end_i.descs};

  `NS_ASSERT(has_no_transfer,
             !cmd_valid_i || cmd_i.op == OpZero || cmd_i.op == OpVerify || cmd_i.op == OpDeallocate)
  `NS_ASSERT(
      list_of_ranges,
      !(cmd_valid_i && cmd_i.op == OpDeallocate) || (cmd_i.bytes[3:0] == '0 && cmd_i.bytes != '0 && 32'(cmd_i.bytes) <= 16 * MaxRanges))
  `NS_ASSERT(pieces_in_list,
             !(state_q == StCheck && cmd.sgl && list_end_valid_i) || list_end_i.status == DataOk)
  `NS_ASSERT(room_to_rotate, !queue_requeue || in_ready)
  `NS_ASSERT(abort_stays, abort_q == AbIdle || abort_valid_i)
  `NS_ASSERT(line_expected, !r_valid_i || state_q == StWaitLine)

endmodule
