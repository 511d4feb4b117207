// SPDX-License-Identifier: Apache-2.0

// Range walk: converts ranges of the media into segments that need no host memory, to be zeroed, or
// read and discarded.
//
// One segment a cycle, each within 4 KiB of the media. Ranges of FillBlocks or more that are to be
// zeroed go to the memories instead (nvme_fill), in parts that end at multiples of RegionBlocks. A
// small rest after the last part is again cut into segments. A command's ranges follow each other.
// After the last one, the transfer tracker is notified of the number of descriptors. Assumption:
// ranges lie within the namespace. When the controller is being stopped, or a command is aborted, a
// range ends after the current segment, or within the current fill. Then nvme_ranges sends no
// other range of this command than the last one, which carries the status.
`include "ns_assert.svh"

module nvme_range_walk
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// 0: the memories never zero blocks.
  parameter bit           Fills        = 1'b1,
  /// Smallest fill in blocks: at least 8, a power of two.
  parameter int unsigned  FillBlocks   = 128,
  /// See nvme_fill.
  parameter int unsigned  RegionBlocks = 4096,
  localparam int unsigned RegionBits   = unsigned'($clog2(RegionBlocks)),
  localparam int unsigned CountWidth   = unsigned'($clog2(RegionBlocks + 1))
) (
  input  logic   clk_i,
  input  logic   rst_ni,
  /// From registers: a range is inside.
  output logic   busy_o,
  /// End long operations.
  input  logic   stop_i,

  /// End the current range, if it is of this slot.
  input  logic                 cancel_i,
  /// The slot.
  input  logic [SlotWidth-1:0] cancel_slot_i,
  /// Status of its command.
  input  data_status_e         cancel_status_i,
  /// A range of this slot is inside.
  output logic                 cancel_found_o,

  /// Range.
  input  range_t range_i,
  input  logic   range_valid_i,
  output logic   range_ready_o,

  /// Segment.
  output seg_t   seg_o,
  output logic   seg_valid_o,
  input  logic   seg_ready_i,

  /// Blocks for nvme_fill: the first.
  output logic [54:0]           fill_lba_o,
  /// Their number.
  output logic [CountWidth-1:0] fill_blocks_o,
  /// Valid, until it has ended.
  output logic                  fill_valid_o,
  /// It has ended.
  input  logic                  fill_done_i,
  /// A block could not be written.
  input  logic                  fill_error_i,
  /// End the range early.
  output logic                  fill_stop_o,

  /// End of a command's ranges.
  output transfer_event_t event_o,
  output logic            event_valid_o,
  input  logic            event_ready_i
);

  typedef enum logic [1:0] {
    StIdle,
    StSegment,  // a segment is valid, unless the range is for nvme_fill
    StFill,     // nvme_fill is active
    StEvent     // the end is reported
  } state_e;

  state_e state_q;
  logic [SlotWidth-1:0] slot_q;
  transfer_kind_e kind_q;
  logic last_q;
  data_status_e status_q, cancel_status_q;
  logic cancelled_q, fill_fault_q;
  logic [54:0] lba_q;
  logic [31:0] remaining_q;
  logic [DescsWidth-1:0] descs_q;

  // Blocks to the next multiple of 4 KiB, or to the end.
  logic [3:0] page_room, seg_blocks;
  logic seg_last;
  assign page_room = 4'd8 - 4'(lba_q[2:0]);
  assign seg_last = remaining_q <= 32'(page_room);
  assign seg_blocks = seg_last ? remaining_q[3:0] : page_room;

  // Blocks to the next multiple of RegionBlocks, or to the end.
  logic fill_wanted;
  logic [CountWidth-1:0] fill_room, fill_count;
  logic fill_last;
  assign fill_wanted = Fills && kind_q == KindZero && remaining_q >= 32'(FillBlocks);
  assign fill_room = CountWidth'(RegionBlocks) - CountWidth'(lba_q[RegionBits-1:0]);
  assign fill_last = remaining_q <= 32'(fill_room);
  assign fill_count = fill_last ? remaining_q[CountWidth-1:0] : fill_room;

  assign busy_o = state_q != StIdle;
  assign cancel_found_o = (state_q == StSegment || state_q == StFill) && slot_q == cancel_slot_i;
  assign range_ready_o = state_q == StIdle;
  assign seg_o = '{slot: slot_q, kind: kind_q, more: 1'b0, total: {seg_blocks, 9'd0}, len: {seg_blocks, 9'd0}, mem: {lba_q, 9'd0}, host: '0};
  assign seg_valid_o = state_q == StSegment && !fill_wanted;
  assign fill_valid_o = state_q == StFill;
  assign fill_lba_o = lba_q;
  assign fill_blocks_o = fill_count;
  assign fill_stop_o = stop_i || cancelled_q;
  assign event_valid_o = state_q == StEvent;
  assign event_o = '{slot: slot_q, walk: 1'b1, descs: descs_q, status: fill_fault_q ? DataWriteFault : status_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      descs_q <= '0;
      cancelled_q <= 1'b0;
      fill_fault_q <= 1'b0;
    end else begin
      if (state_q == StIdle) cancelled_q <= 1'b0;
      else if (cancel_i && cancel_found_o) cancelled_q <= 1'b1;
      unique case (state_q)
        StIdle: begin
          if (range_valid_i && range_i.blocks != '0) state_q <= StSegment;
          else if (range_valid_i && range_i.last) state_q <= StEvent;
        end
        StSegment: begin
          if (fill_wanted) begin
            state_q <= StFill;
          end else if (seg_ready_i) begin
            descs_q <= descs_q + 1'b1;
            if (seg_last || stop_i || cancelled_q) state_q <= last_q ? StEvent : StIdle;
          end
        end
        StFill: begin
          if (fill_done_i) begin
            if (fill_error_i) fill_fault_q <= 1'b1;
            if (fill_last || stop_i || cancelled_q) state_q <= last_q ? StEvent : StIdle;
            else state_q <= StSegment;
          end
        end
        default: begin
          if (event_ready_i) begin
            state_q <= StIdle;
            descs_q <= '0;
            fill_fault_q <= 1'b0;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (cancel_i) cancel_status_q <= cancel_status_i;
    if (state_q == StIdle) begin
      if (range_valid_i) begin
        slot_q <= range_i.slot;
        kind_q <= range_i.kind;
        last_q <= range_i.last;
        status_q <= range_i.status;
        lba_q <= range_i.lba;
        remaining_q <= range_i.blocks;
      end
    end else if (seg_valid_o && seg_ready_i) begin
      lba_q <= lba_q + 55'(seg_blocks);
      remaining_q <= remaining_q - 32'(seg_blocks);
      if ((stop_i || cancelled_q) && !seg_last)
        status_q <= cancelled_q ? cancel_status_q : DataInterrupted;
    end else if (state_q == StFill && fill_done_i) begin
      lba_q <= lba_q + 55'(fill_count);
      remaining_q <= remaining_q - 32'(fill_count);
      // A fill that was stopped early may be incomplete.
      if (stop_i || cancelled_q) status_q <= cancelled_q ? cancel_status_q : DataInterrupted;
    end
  end

  `NS_ASSERT(segment_has_blocks, !seg_valid_o || (seg_blocks != '0 && seg_blocks <= 4'd8))
  `NS_ASSERT(no_status_before_the_end, !range_valid_i || range_i.last || range_i.status == DataOk)

endmodule
