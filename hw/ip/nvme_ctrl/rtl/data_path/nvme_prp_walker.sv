// SPDX-License-Identifier: Apache-2.0

// PRP walker: converts one command at a time into PRP segments, one a host page.
//
// Follows NVM Express 1.4, 4.3, with 4 KiB pages. PRP1 may start at any dword. PRP2 is the second
// page, or points to a list at any qword. The last entry of a list page points to the next list
// page if more than that entry remain. All other entries must have offset zero. List lines of 64
// bytes are read ahead into a shared RAM (see nvme_walkers): only those needed, up to two in a
// burst. The walk ends with an event that holds the error that stopped it, or none. No list read is
// outstanding then.
`include "ns_assert.svh"

module nvme_prp_walker
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Lines of the list buffer, a power of two, at least 2.
  parameter int unsigned  Lines    = 4,
  localparam int unsigned LineBits = unsigned'($clog2(Lines))
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  /// Command.
  input  data_cmd_t           cmd_i,
  input  logic                cmd_valid_i,
  /// The walker is free.
  output logic                cmd_ready_o,

  /// Segment.
  output seg_t                seg_o,
  output logic                seg_valid_o,
  input  logic                seg_ready_i,

  /// Address of the list lines to read, a multiple of 64.
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

  /// Requests an entry from the buffer.
  output logic                entry_req_o,
  /// The request is granted.
  input  logic                entry_gnt_i,
  /// Line of the entry.
  output logic [LineBits-1:0] entry_line_o,
  /// Entry within the line.
  output logic [2:0]          entry_idx_o,
  /// The requested entry.
  input  logic [63:0]         entry_i,
  /// The entry is valid: some cycles after the grant.
  input  logic                entry_valid_i,

  /// End of the walk.
  output transfer_event_t event_o,
  output logic            event_valid_o,
  input  logic            event_ready_i
);

  typedef enum logic [2:0] {
    StIdle,
    StEmit,      // a segment is offered
    StAdvance,   // after a segment: choose the next step
    StListPage,  // a list page begins
    StWaitLine,  // wait for an entry to arrive in the buffer
    StEntry,     // an entry is read from the buffer
    StEnd        // wait for outstanding list reads, then for the event to be accepted
  } state_e;

  localparam int unsigned CountBits = LineBits + 1;

  state_e state_q;
  logic [SlotWidth-1:0] slot_q;
  data_status_e status_q;
  logic compare_q;
  logic first_q;                    // PRP2 has not been used for a segment
  logic [TransferWidth-1:0] remaining_q;    // bytes for which no segment was accepted
  logic [63:0] host_q, mem_q;  // next segment
  logic [LenWidth-1:0] len_q;
  logic [63:0] next_q;              // PRP2, then the list pointer

  logic [9:0] entries_q;            // left to consume in this list page
  logic chained_q;                  // the last of them points to the next page
  logic [2:0] idx_q;                // next entry within its line
  logic [51:0] fetch_page_q;
  logic [5:0] fetch_line_q;
  logic [6:0] fetch_left_q;         // lines of this page still to be requested
  logic [LineBits-1:0] write_q, read_q;
  logic [CountBits-1:0] free_q;     // lines of the buffer neither requested nor full
  logic [CountBits-1:0] full_q;     // lines of the buffer that have arrived
  logic error_q;                    // a line had an error
  logic line_request_q;                      // for lines

  // Bytes from the start of a transfer to the end of its page, or to its end.
  function automatic logic [LenWidth-1:0] to_page_end(logic [11:0] offset,
                                                      logic [TransferWidth-1:0] left);
    logic [LenWidth-1:0] room;
    room = 13'd4096 - 13'(offset);
    return (left < TransferWidth'(room)) ? LenWidth'(left) : room;
  endfunction

  // Pages that the rest of the transfer needs, and entries that the list page can hold.
  logic [TransferWidth-12:0] pages;
  logic [9:0] room;
  logic more_than_page;
  logic [9:0] entries;
  assign pages = (TransferWidth - 11)'((32'(remaining_q) + 32'd4095) >> 12);
  assign room = 10'd512 - 10'(next_q[11:3]);
  assign more_than_page = pages > (TransferWidth - 11)'(room);
  assign entries = more_than_page ? room : 10'(pages);

  logic last_entry, line_done, two_lines, list_fire;
  assign last_entry = entries_q == 10'd1;
  assign line_done = entry_valid_i && (last_entry || idx_q == 3'd7);
  assign two_lines = fetch_left_q > 7'd1;
  assign list_addr_o = {fetch_page_q, fetch_line_q, 6'd0};
  assign list_two_o = two_lines;
  // Two lines at once, even if one could be read earlier: this halves the requests on the link.
  assign list_valid_o = line_request_q;
  assign list_fire = line_request_q && list_ready_i;

  assign cmd_ready_o = state_q == StIdle;
  assign seg_o = '{slot: slot_q, kind: compare_q ? KindCompare : KindCopy, more: remaining_q != TransferWidth'(len_q), total: len_q, len: len_q, mem: mem_q, host: host_q};
  assign seg_valid_o = state_q == StEmit;
  assign line_write_o = write_q;
  assign entry_req_o = state_q == StWaitLine && full_q != '0 && !error_q;
  assign entry_line_o = read_q;
  assign entry_idx_o = idx_q;
  assign event_o = '{slot: slot_q, walk: 1'b1, descs: '0, status: status_q};
  assign event_valid_o = state_q == StEnd && fetch_left_q == '0 && 32'(free_q) + 32'(full_q) == Lines;

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
          // Lines that are left in the buffer after an error are dropped.
          read_q <= write_q;
          free_q <= CountBits'(Lines);
          full_q <= '0;
          error_q <= 1'b0;
          if (cmd_valid_i) state_q <= (cmd_i.prp1[1:0] != '0) ? StEnd : StEmit;
        end
        StEmit:  if (seg_ready_i) state_q <= StAdvance;
        StAdvance: begin
          if (remaining_q == '0) state_q <= StEnd;
          else if (!first_q) state_q <= StWaitLine;
          else if (remaining_q <= TransferWidth'(4096)) state_q <= (next_q[11:0] != '0) ? StEnd : StEmit;
          else state_q <= (next_q[2:0] != '0) ? StEnd : StListPage;
        end
        StListPage:  state_q <= StWaitLine;
        StWaitLine: begin
          if (error_q) state_q <= StEnd;
          else if (entry_gnt_i) state_q <= StEntry;
        end
        StEntry: begin
          if (entry_valid_i) begin
            if (entry_i[11:0] != '0) state_q <= StEnd;
            else state_q <= (last_entry && chained_q) ? StListPage : StEmit;
          end
        end
        StEnd:   if (event_valid_o && event_ready_i) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase

      if (state_q == StListPage) fetch_left_q <= 7'((32'(next_q[5:3]) + 32'(entries) + 32'd7) >> 3);
      else if (state_q == StEnd) fetch_left_q <= '0;
      else if (list_fire) fetch_left_q <= fetch_left_q - (two_lines ? 7'd2 : 7'd1);

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
          status_q <= (cmd_i.prp1[1:0] != '0) ? DataBadPrp : DataOk;
          first_q <= 1'b1;
          remaining_q <= TransferWidth'(cmd_i.bytes);
          host_q <= cmd_i.prp1;
          mem_q <= cmd_i.mem_addr;
          len_q <= to_page_end(cmd_i.prp1[11:0], TransferWidth'(cmd_i.bytes));
          next_q <= cmd_i.prp2;
        end
      end
      StEmit: begin
        if (seg_ready_i) begin
          remaining_q <= remaining_q - TransferWidth'(len_q);
          mem_q <= mem_q + 64'(len_q);
        end
      end
      StAdvance: begin
        if (first_q && remaining_q != '0) begin
          first_q <= 1'b0;
          host_q <= next_q;
          len_q <= LenWidth'(remaining_q);
          if (remaining_q <= TransferWidth'(4096) ? next_q[11:0] != '0 : next_q[2:0] != '0)
            status_q <= DataBadPrp;
        end
      end
      StListPage: begin
        entries_q <= entries;
        chained_q <= more_than_page;
        idx_q <= next_q[5:3];
        fetch_page_q <= next_q[63:12];
        fetch_line_q <= next_q[11:6];
      end
      StWaitLine: if (error_q) status_q <= DataHostError;
      StEntry: begin
        if (entry_valid_i) begin
          entries_q <= entries_q - 10'd1;
          idx_q <= idx_q + 3'd1;
          host_q <= entry_i;
          next_q <= entry_i;
          len_q <= to_page_end('0, remaining_q);
          if (entry_i[11:0] != '0) status_q <= DataBadPrp;
        end
      end
      default: ;
    endcase
    if (list_fire) fetch_line_q <= fetch_line_q + (two_lines ? 6'd2 : 6'd1);
  end

  if (Lines < 2 || (Lines & (Lines - 1)) != 0) begin : gen_bad_lines
    $error("nvme_prp_walker: Lines must be a power of two of at least 2");
  end

  `NS_ASSERT(bytes_given,
             !(cmd_valid_i && cmd_ready_o) || (cmd_i.bytes != '0 && cmd_i.bytes[1:0] == '0))
  `NS_ASSERT(requested_lines_have_room,
             !line_request_q || (fetch_left_q != '0 && free_q > CountBits'(two_lines)))
  `NS_ASSERT(lines_in_range, 32'(free_q) + 32'(full_q) <= Lines)
  `NS_ASSERT(lines_expected, !line_arrived_i || 32'(free_q) + 32'(full_q) < Lines)

endmodule
