// SPDX-License-Identifier: Apache-2.0

// Aligner: converts the read beats of a descriptor into write beats, for any two dword offsets
// within a 64-byte beat.
//
// Beats are rotated by `(dst - src) mod 16` dwords on input (registered), then merged with the
// rotated beat before them. A descriptor takes as many cycles as the larger of its read and write
// beats. It takes one more if it ends with a beat of left-overs and the next descriptor's first
// beat yields an output. Assumptions: the output is always accepted, as the mover reserves the room
// before it reads; the attributes of a descriptor are valid before its first beat. There are no
// strobes: bytes outside the descriptor are arbitrary.
//
// With `Merge`, descriptors of a group continue each other at the target. A beat in which one ends
// is kept until the next ones have filled it. The bursts in which the group will be written are
// reported as they become complete.
`include "ns_assert.svh"

module nvme_aligner
  import ns_axi_pkg::*;
#(
  /// Descriptors of a group are merged.
  parameter bit          Merge      = 1'b0,
  /// With `Merge`: largest burst in bytes. Bursts end at multiples of it.
  parameter int unsigned BurstBytes = 1024
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  /// Attributes of the descriptor whose beats come next.
  input  logic                 desc_valid_i,
  /// Rotation in dwords.
  input  logic [3:0]           desc_rotate_i,
  /// The source's offset is the larger one: the first beat yields no output.
  input  logic                 desc_skip_i,
  /// A last output beat of left-overs follows the last input beat.
  input  logic                 desc_flush_i,
  /// Another descriptor of the group follows. Used with `Merge`, as are the following two.
  input  logic                 desc_more_i,
  /// Dword of the target at which the descriptor begins, within 4 KiB.
  input  logic [9:0]           desc_at_i,
  /// The descriptor ends within a beat of the target.
  input  logic                 desc_partial_end_i,
  /// Read beats, less 1. The last flag of the bus is not used: the read may have been ended early.
  input  logic [5:0]           desc_beats_i,
  /// The last beat of the descriptor is accepted.
  output logic                 desc_ready_o,

  /// Read beats.
  input  r_t                   r_i,
  input  logic                 r_valid_i,
  output logic                 r_ready_o,

  /// Write beat.
  output logic [DataWidth-1:0] out_data_o,
  /// A part of it had a read error.
  output logic                 out_error_o,
  /// Valid; must be accepted at once.
  output logic                 out_valid_o,
  /// With `Merge`: this is the last beat of its burst.
  output logic                 burst_valid_o,
  /// A part of the burst had a read error.
  output logic                 burst_error_o
);

  // Moves every dword up by n places, with wrap-around: two levels of four-way choices.
  function automatic logic [DataWidth-1:0] rotate(logic [DataWidth-1:0] x, logic [3:0] n);
    logic [DataWidth-1:0] y;
    unique case (n[3:2])
      2'd0: y = x;
      2'd1: y = {x[383:0], x[511:384]};
      2'd2: y = {x[255:0], x[511:256]};
      default: y = {x[127:0], x[511:128]};
    endcase
    unique case (n[1:0])
      2'd0: return y;
      2'd1: return {y[479:0], y[511:480]};
      2'd2: return {y[447:0], y[511:448]};
      default: return {y[415:0], y[511:416]};
    endcase
  endfunction

  // The newest beat and the one before it, both rotated.
  logic [DataWidth-1:0] new_q, old_q;
  logic new_error_q, old_error_q;
  logic valid_q;        // new_q holds a beat that has just arrived
  logic emit_q;         // it yields an output
  logic merge_q;        // an output needs the previous beat
  logic flush_next_q;   // it is the last one, and its left-overs make another output
  logic flush_q;        // now: out of old_q
  logic first_q;        // the next beat is the first of its descriptor
  logic [3:0] rotate_q; // of the beat in new_q
  logic [5:0] beats_q;  // beats of the descriptor that have arrived
  logic r_fire, r_last;

  assign r_last = beats_q == desc_beats_i;

  // The cycle after next is reserved for the left-overs: only a beat that yields no output may
  // arrive then.
  assign r_ready_o = desc_valid_i && (!flush_next_q || desc_skip_i);
  assign r_fire = r_valid_i && r_ready_o;
  assign desc_ready_o = r_fire && r_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      emit_q <= 1'b0;
      flush_next_q <= 1'b0;
      flush_q <= 1'b0;
      first_q <= 1'b1;
      beats_q <= '0;
    end else begin
      valid_q <= r_fire;
      emit_q <= r_fire && !(first_q && desc_skip_i);
      flush_next_q <= r_fire && r_last && desc_flush_i;
      flush_q <= flush_next_q;
      if (r_fire) begin
        first_q <= r_last;
        beats_q <= r_last ? '0 : beats_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (r_fire) begin
      new_q <= rotate(r_i.data, desc_rotate_i);
      new_error_q <= r_i.resp[1];
      merge_q <= !first_q && desc_rotate_i != '0;
      rotate_q <= desc_rotate_i;
    end
    if (valid_q) begin
      old_q <= new_q;
      old_error_q <= new_error_q;
    end
  end

  logic out_fire;
  logic [DataWidth-1:0] data;
  logic error;
  assign out_fire = emit_q || flush_q;

  always_comb begin
    data = new_q;
    error = new_error_q;
    if (flush_q) begin
      data = old_q;
      error = old_error_q;
    end else if (merge_q) begin
      for (int unsigned i = 0; i < 16; i++) begin
        if (i < 32'(rotate_q)) data[i*32+:32] = old_q[i*32+:32];
      end
      error = new_error_q || old_error_q;
    end
  end

  if (Merge) begin : gen_merge
    localparam int unsigned IdxBits = unsigned'($clog2(BurstBytes / 64));

    // For the beat in new_q, and for the one before it, whose left-overs may follow.
    typedef struct packed {
      logic       last;   // last output of the descriptor
      logic       more;
      logic       mid;
      logic [9:0] at;
    } attr_t;

    attr_t new_attr_q, old_attr_q, attr;
    logic desc_start_q;                // the next output is the first of its descriptor
    logic group_open_q;               // it continues a group
    logic [DataWidth-1:0] partial_q; // a beat that is not complete
    logic partial_error_q;
    logic [IdxBits-1:0] idx_q, idx;
    logic burst_poisoned_q, hold_partial, join_partial, burst_last;

    assign attr = flush_q ? old_attr_q : new_attr_q;
    assign join_partial = desc_start_q && group_open_q && attr.at[3:0] != '0;
    assign hold_partial = attr.last && attr.more && attr.mid;
    assign idx = (desc_start_q && !group_open_q) ? attr.at[4+:IdxBits] : idx_q;
    assign burst_last = idx == '1 || (attr.last && !attr.more);

    always_comb begin
      out_data_o = data;
      out_error_o = error || (join_partial && partial_error_q);
      for (int unsigned i = 0; i < 16; i++) begin
        if (join_partial && i < 32'(attr.at[3:0])) out_data_o[i*32+:32] = partial_q[i*32+:32];
      end
    end
    assign out_valid_o = out_fire && !hold_partial;
    assign burst_valid_o = out_valid_o && burst_last;
    assign burst_error_o = out_error_o || burst_poisoned_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        desc_start_q <= 1'b1;
        group_open_q <= 1'b0;
        burst_poisoned_q <= 1'b0;
      end else if (out_fire) begin
        desc_start_q <= attr.last;
        if (attr.last) group_open_q <= attr.more;
        if (!hold_partial) burst_poisoned_q <= burst_error_o && !burst_last;
      end
    end

    always_ff @(posedge clk_i) begin
      if (r_fire) begin
        new_attr_q <= '{
            last: r_last && !desc_flush_i,
            more: desc_more_i,
            mid: desc_partial_end_i,
            at: desc_at_i
        };
      end
      if (valid_q) begin
        old_attr_q <= new_attr_q;
        old_attr_q.last <= 1'b1;
      end
      if (out_fire) idx_q <= idx + IdxBits'(!hold_partial);
      if (out_fire && hold_partial) begin
        partial_q <= out_data_o;
        partial_error_q <= out_error_o;
      end
    end
  end else begin : gen_no_merge
    assign out_data_o = data;
    assign out_error_o = error;
    assign out_valid_o = out_fire;
    assign burst_valid_o = 1'b0;
    assign burst_error_o = 1'b0;
    logic unused;
    assign unused = ^{desc_more_i, desc_at_i, desc_partial_end_i};
  end

  `NS_ASSERT(one_output_at_a_time, !(emit_q && flush_q))
  `NS_ASSERT(beats_belong_to_a_desc, !r_valid_i || desc_valid_i)

endmodule
