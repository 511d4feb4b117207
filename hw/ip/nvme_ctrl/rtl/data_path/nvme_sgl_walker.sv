// SPDX-License-Identifier: Apache-2.0

// SGL walker: converts one command at a time into segments, each within a host page.
//
// Follows NVM Express 1.4, 4.4, with dword granularity (SGLS bits 1:0 are 10b). Supported are Data
// Blocks, and Segments and Last Segments at any qword, of any length and number. Bit Buckets
// discard data on the way to the host and are ignored on the way to the media. The descriptor in
// the command is processed like a segment of one descriptor. An SGL may describe more than the
// command's data (SGLS bit 18): what follows is not read. Segments are read like PRP lists: lines
// of 64 bytes ahead into a shared RAM (see nvme_walkers), none beyond the segment, up to two in a
// burst. The walk ends with an event that holds the error that stopped it, or none. No list read is
// outstanding then.
//
// A walk is bounded: SGL descriptors that move no data (segments, empty blocks) are counted. More
// than MaxEmpty of them in a command are an error, so that segments that form a ring come to an
// end.
`include "ns_assert.svh"

module nvme_sgl_walker
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Lines of the list buffer, a power of two, at least 2.
  parameter int unsigned  Lines    = 4,
  /// SGL descriptors of a command that move no data, at most.
  parameter int unsigned  MaxEmpty = 4096,
  localparam int unsigned LineBits = unsigned'($clog2(Lines))
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  /// From registers: there is a command inside.
  output logic                busy_o,

  /// Command.
  input  data_cmd_t           cmd_i,
  input  logic                cmd_valid_i,
  /// The walker is free.
  output logic                cmd_ready_o,

  /// Segment.
  output seg_t                seg_o,
  output logic                seg_valid_o,
  input  logic                seg_ready_i,

  /// Address of the lines to read, a multiple of 64.
  output logic [63:0]         list_addr_o,
  /// Two lines instead of one.
  output logic                list_two_o,
  output logic                list_valid_o,
  input  logic                list_ready_i,

  /// A line arrives; it is stored at line_write_o of the buffer.
  input  logic                line_arrived_i,
  /// With an error.
  input  logic                line_error_i,
  /// Where the line is stored.
  output logic [LineBits-1:0] line_write_o,

  /// Requests a qword from the buffer.
  output logic                entry_req_o,
  /// The request is granted.
  input  logic                entry_gnt_i,
  /// Line of the qword.
  output logic [LineBits-1:0] entry_line_o,
  /// Qword within the line.
  output logic [2:0]          entry_idx_o,
  /// The requested qword.
  input  logic [63:0]         entry_i,
  /// The entry is valid: some cycles after the grant.
  input  logic                entry_valid_i,

  /// End of the walk.
  output transfer_event_t event_o,
  output logic            event_valid_o,
  input  logic            event_ready_i
);

  typedef enum logic [3:0] {
    StIdle,
    StClassify,   // at the descriptor
    StValidate,   // is it right?
    StFetch,      // a segment begins
    StBitBucket,  // discard the data of a bit bucket
    StClip,       // cut at the end of the page
    StEmit,       // a segment of data is offered
    StAdvance,    // choose the next step
    StWaitLine,   // wait for a qword to arrive in the buffer
    StEntry,      // a qword is read from the buffer
    StEnd         // wait for outstanding list reads, then for the event to be accepted
  } state_e;

  // SGL descriptor types (figure 117) with sub type 0, an address.
  localparam logic [7:0] TypeDataBlock = 8'h00;
  localparam logic [7:0] TypeBitBucket = 8'h10;
  localparam logic [7:0] TypeSegment = 8'h20;
  localparam logic [7:0] TypeLastSegment = 8'h30;

  localparam int unsigned CountBits = LineBits + 1;
  localparam int unsigned EmptyBits = unsigned'($clog2(MaxEmpty + 1));

  state_e state_q;
  logic [SlotWidth-1:0] slot_q;
  data_status_e status_q;
  logic compare_q, to_host_q;
  logic [TransferWidth-1:0] remaining_q;  // bytes for which no segment was accepted
  logic [63:0] mem_q;                // of the next segment
  logic [LenWidth-1:0] len_q;

  // The SGL descriptor. The rest of its block is block_q, at most remaining_q.
  logic [63:0] addr_q;
  logic [31:0] length_q;
  logic [7:0] type_q;
  logic [TransferWidth-1:0] block_q;

  logic last_q;                 // in a last segment
  logic [28:0] qwords_q;        // qwords of the segment still to be processed
  logic [2:0] idx_q;            // next one within its line
  logic [EmptyBits-1:0] empty_q;

  logic [57:0] fetch_line_q;
  logic [26:0] fetch_left_q;    // lines of this segment still to be requested
  logic [LineBits-1:0] write_q, read_q;
  logic [CountBits-1:0] free_q; // lines of the buffer neither requested nor full
  logic [CountBits-1:0] full_q; // lines of the buffer that have arrived
  logic error_q;                // a line had an error
  logic line_request_q;                      // for lines

  // Type of the SGL descriptor, and its error (figures 126 and 116 to 121).
  logic is_data, is_bucket, is_segment, is_last, dwords, segment_ok, moves_nothing;
  data_status_e validity;
  // Valid in StValidate.
  data_status_e validity_q;
  logic is_data_q, is_segment_q, moves_nothing_q;

  assign is_data = type_q == TypeDataBlock;
  assign is_bucket = type_q == TypeBitBucket;
  assign is_last = type_q == TypeLastSegment;
  assign is_segment = type_q == TypeSegment || is_last;
  assign dwords = length_q[1:0] == '0 && (is_bucket || addr_q[1:0] == '0);
  assign segment_ok = length_q[3:0] == '0 && length_q != '0 && addr_q[2:0] == '0;
  assign moves_nothing = is_segment || length_q == '0 || (is_bucket && !to_host_q);

  always_comb begin
    validity = DataOk;
    if (is_data || is_bucket) begin
      if (!dwords) validity = DataBadGranularity;
    end else if (!is_segment) validity = DataBadType;
    else if (last_q || !segment_ok) validity = DataBadSegment;
    else if (qwords_q != '0) validity = DataBadCount;
    if (validity == DataOk && moves_nothing && empty_q == EmptyBits'(MaxEmpty))
      validity = DataBadCount;
  end

  logic last_qword, line_done, two_lines, list_fire;
  assign last_qword = qwords_q == 29'd1;
  assign line_done = entry_valid_i && (last_qword || idx_q == 3'd7);
  // Two lines at once, even if one could be read earlier: this halves the requests on the link.
  // Never across a page.
  assign two_lines = fetch_left_q > 27'd1 && fetch_line_q[5:0] != '1;
  assign list_addr_o = {fetch_line_q, 6'd0};
  assign list_two_o = two_lines;
  assign list_valid_o = line_request_q;
  assign list_fire = line_request_q && list_ready_i;

  assign busy_o = state_q != StIdle;
  assign cmd_ready_o = state_q == StIdle;
  assign seg_o = '{
      slot: slot_q,
      kind: compare_q ? KindCompare : KindCopy,
      more: remaining_q != TransferWidth'(len_q),
      total: len_q,
      len: len_q,
      mem: mem_q,
      host: addr_q
  };
  assign seg_valid_o = state_q == StEmit;
  assign line_write_o = write_q;
  assign entry_req_o = state_q == StWaitLine && full_q != '0 && !error_q;
  assign entry_line_o = read_q;
  assign entry_idx_o = idx_q;
  assign event_o = '{slot: slot_q, walk: 1'b1, descs: '0, status: status_q};
  assign event_valid_o = state_q == StEnd && fetch_left_q == '0 && 32'(free_q) + 32'(full_q) == Lines;

  logic high_q;  // the upper qword of the SGL descriptor is next
  logic [LenWidth-1:0] room;
  logic block_last;
  assign room = 13'd4096 - 13'(addr_q[11:0]);
  assign block_last = block_q == TransferWidth'(len_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      write_q <= '0;
      read_q <= '0;
      free_q <= CountBits'(Lines);
      full_q <= '0;
      fetch_left_q <= '0;
      error_q <= 1'b0;
      line_request_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle: begin
          // Lines that the previous command has left in the buffer are dropped.
          read_q <= write_q;
          free_q <= CountBits'(Lines);
          full_q <= '0;
          error_q <= 1'b0;
          if (cmd_valid_i) state_q <= StClassify;
        end
        StClassify:  state_q <= StValidate;
        StValidate: begin
          if (validity_q != DataOk) state_q <= StEnd;
          else if (is_segment_q) state_q <= StFetch;
          else if (moves_nothing_q) state_q <= StAdvance;
          else state_q <= is_data_q ? StClip : StBitBucket;
        end
        StFetch: state_q <= StWaitLine;
        StBitBucket:  state_q <= StAdvance;
        StClip:   state_q <= StEmit;
        StEmit:  if (seg_ready_i) state_q <= block_last ? StAdvance : StClip;
        StAdvance:  state_q <= (remaining_q == '0 || qwords_q == '0) ? StEnd : StWaitLine;
        StWaitLine: begin
          if (error_q) state_q <= StEnd;
          else if (entry_gnt_i) state_q <= StEntry;
        end
        StEntry: if (entry_valid_i) state_q <= high_q ? StClassify : StWaitLine;
        StEnd:   if (event_valid_o && event_ready_i) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase

      if (state_q == StFetch)
        fetch_left_q <= 27'((33'(length_q) + 33'({addr_q[5:3], 3'd0}) + 33'd63) >> 6);
      else if (state_q == StEnd) fetch_left_q <= '0;
      else if (list_fire) fetch_left_q <= fetch_left_q - (two_lines ? 27'd2 : 27'd1);

      // Registered, because the arbiter among the walkers follows.
      line_request_q <= state_q != StEnd && !list_fire && fetch_left_q != '0 && free_q > CountBits'(two_lines);

      if (line_arrived_i) begin
        write_q <= write_q + 1'b1;
        if (line_error_i) error_q <= 1'b1;
      end
      if (line_done) read_q <= read_q + 1'b1;
      if (line_arrived_i || line_done)
        full_q <= full_q + CountBits'(line_arrived_i) - CountBits'(line_done);
      if (list_fire || line_done) begin
        free_q <= free_q + CountBits'(line_done) - (list_fire ? (two_lines ? CountBits'(2) : CountBits'(1)) : '0);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StIdle: begin
        if (cmd_valid_i) begin
          slot_q <= cmd_i.slot;
          compare_q <= cmd_i.op == OpCompare;
          to_host_q <= cmd_i.op == OpRead;
          status_q <= DataOk;
          remaining_q <= TransferWidth'(cmd_i.bytes);
          mem_q <= cmd_i.mem_addr;
          addr_q <= cmd_i.prp1;
          length_q <= cmd_i.prp2[31:0];
          type_q <= cmd_i.prp2[63:56];
          last_q <= 1'b0;
          qwords_q <= '0;
          empty_q <= '0;
        end
      end
      StClassify: begin
        validity_q <= validity;
        is_data_q <= is_data;
        is_segment_q <= is_segment;
        moves_nothing_q <= moves_nothing;
        if (moves_nothing) empty_q <= empty_q + 1'b1;
        block_q <= (length_q < 32'(remaining_q)) ? TransferWidth'(length_q) : remaining_q;
        high_q <= 1'b0;
      end
      StValidate: status_q <= validity_q;
      StFetch: begin
        last_q <= is_last;
        qwords_q <= length_q[31:3];
        idx_q <= addr_q[5:3];
        fetch_line_q <= addr_q[63:6];
      end
      StBitBucket: begin
        remaining_q <= remaining_q - block_q;
        mem_q <= mem_q + 64'(block_q);
      end
      StClip: len_q <= (block_q < TransferWidth'(room)) ? LenWidth'(block_q) : room;
      StEmit: begin
        if (seg_ready_i) begin
          remaining_q <= remaining_q - TransferWidth'(len_q);
          block_q <= block_q - TransferWidth'(len_q);
          addr_q <= addr_q + 64'(len_q);
          mem_q <= mem_q + 64'(len_q);
        end
      end
      StAdvance: if (remaining_q != '0 && qwords_q == '0) status_q <= DataBadLength;
      StWaitLine: if (error_q) status_q <= DataHostError;
      StEntry: begin
        if (entry_valid_i) begin
          qwords_q <= qwords_q - 29'd1;
          idx_q <= idx_q + 3'd1;
          high_q <= !high_q;
          if (high_q) begin
            length_q <= entry_i[31:0];
            type_q <= entry_i[63:56];
          end else begin
            addr_q <= entry_i;
          end
        end
      end
      default: ;
    endcase
    if (list_fire) fetch_line_q <= fetch_line_q + (two_lines ? 58'd2 : 58'd1);
  end

  if (Lines < 2 || (Lines & (Lines - 1)) != 0) begin : gen_bad_lines
    $error("nvme_sgl_walker: Lines must be a power of two of at least 2");
  end

  logic unused;
  assign unused = ^cmd_i.ns;

  `NS_ASSERT(
      bytes_given,
      !(cmd_valid_i && cmd_ready_o) || (cmd_i.bytes != '0 && cmd_i.bytes[1:0] == '0 && cmd_i.sgl))
  `NS_ASSERT(requested_lines_have_room,
             !line_request_q || (fetch_left_q != '0 && free_q > CountBits'(two_lines)))
  `NS_ASSERT(lines_in_range, 32'(free_q) + 32'(full_q) <= Lines)
  `NS_ASSERT(lines_expected, !line_arrived_i || 32'(free_q) + 32'(full_q) < Lines)
  `NS_ASSERT(segment_has_bytes,
             !seg_valid_o || (len_q != '0 && TransferWidth'(len_q) <= remaining_q))

endmodule
