// Sweep: turns ranges of the media into segments that need no host memory, to be zeroed or read and dropped.
//
// One segment a cycle, each within 4 KiB of the media. A command's ranges come one after the other; with the last one the
// slot tracker is told how many jobs there were. Assumes that ranges lie within the namespace.
// When the controller is being stopped, or a command aborted, a range ends after the present segment; nvme_ranges then gives
// no other one of this command but the last, which says so.
`include "ns_assert.svh"

module nvme_sweep
  import nvme_pkg::*;
  import nvme_data_pkg::*;
(
  /// Clock.
  input  logic   clk_i,
  /// Reset.
  input  logic   rst_ni,
  /// From registers: a range is inside.
  output logic   busy_o,
  /// End what takes long.
  input  logic   stop_i,

  /// End the present range, if it is of this slot.
  input  logic                 cut_i,
  /// The slot.
  input  logic [SlotWidth-1:0] cut_slot_i,
  /// Status of its command.
  input  data_status_e         cut_status_i,
  /// There is one.
  output logic                 cut_found_o,

  /// Range.
  input  range_t range_i,
  /// Valid.
  input  logic   range_valid_i,
  /// Ready.
  output logic   range_ready_o,

  /// Segment.
  output seg_t   seg_o,
  /// Valid.
  output logic   seg_valid_o,
  /// Ready.
  input  logic   seg_ready_i,

  /// End of a command's ranges.
  output event_t event_o,
  /// Valid.
  output logic   event_valid_o,
  /// Ready.
  input  logic   event_ready_i
);

  typedef enum logic [1:0] {
    StIdle,
    StSegment,  // a segment is offered
    StEvent     // the end is told
  } state_e;

  state_e state_q;
  logic [SlotWidth-1:0] slot_q;
  kind_e kind_q;
  logic last_q;
  data_status_e status_q, cut_status_q;
  logic cut_q;
  logic [54:0] lba_q;
  logic [31:0] left_q;
  logic [JobsWidth-1:0] jobs_q;

  // Blocks to the next multiple of 4 KiB, or to the end.
  logic [3:0] room, cut;
  logic ends;
  assign room = 4'd8 - 4'(lba_q[2:0]);
  assign ends = left_q <= 32'(room);
  assign cut = ends ? left_q[3:0] : room;

  assign busy_o = state_q != StIdle;
  assign cut_found_o = state_q == StSegment && slot_q == cut_slot_i;
  assign range_ready_o = state_q == StIdle;
  assign seg_valid_o = state_q == StSegment;
  assign seg_o = '{slot: slot_q, kind: kind_q, len: {cut, 9'd0}, mem: {lba_q, 9'd0}, host: '0};
  assign event_valid_o = state_q == StEvent;
  assign event_o = '{slot: slot_q, walk: 1'b1, jobs: jobs_q, status: status_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      jobs_q <= '0;
      cut_q <= 1'b0;
    end else begin
      if (state_q == StIdle) cut_q <= 1'b0;
      else if (cut_i && cut_found_o) cut_q <= 1'b1;
      unique case (state_q)
        StIdle: begin
          if (range_valid_i && range_i.blocks != '0) state_q <= StSegment;
          else if (range_valid_i && range_i.last) state_q <= StEvent;
        end
        StSegment: begin
          if (seg_ready_i) begin
            jobs_q <= jobs_q + 1'b1;
            if (ends || stop_i || cut_q) state_q <= last_q ? StEvent : StIdle;
          end
        end
        default: begin
          if (event_ready_i) begin
            state_q <= StIdle;
            jobs_q <= '0;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (cut_i) cut_status_q <= cut_status_i;
    if (state_q == StIdle) begin
      if (range_valid_i) begin
        slot_q <= range_i.slot;
        kind_q <= range_i.kind;
        last_q <= range_i.last;
        status_q <= range_i.status;
        lba_q <= range_i.lba;
        left_q <= range_i.blocks;
      end
    end else if (seg_valid_o && seg_ready_i) begin
      lba_q <= lba_q + 55'(cut);
      left_q <= left_q - 32'(cut);
      if ((stop_i || cut_q) && !ends) status_q <= cut_q ? cut_status_q : DataInterrupted;
    end
  end

  `NS_ASSERT(segment_has_blocks, !seg_valid_o || (cut != '0 && cut <= 4'd8))
  `NS_ASSERT(no_status_before_the_end, !range_valid_i || range_i.last || range_i.status == DataOk)

endmodule
