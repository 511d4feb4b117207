// SPDX-License-Identifier: Apache-2.0

// Shifts the bytes of a range from their offsets in source beats to their offsets in target beats.
//
// Source beats are rotated by the difference of the two addresses. A target beat combines two
// consecutive rotated beats. A beat a cycle, and one cycle more for a range whose last target beat
// needs no further source beat.
`include "ns_assert.svh"

module ns_dma_align (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Range: rotation in bytes, (target - source) % 64.
  input  logic [5:0]   rotate_i,
  /// Its first source beat alone completes no target beat.
  input  logic         skip_i,
  /// Its last target beat needs no further source beat.
  input  logic         flush_i,
  /// Valid; held until its last source beat is accepted.
  input  logic         range_valid_i,
  output logic         range_ready_o,
  /// Source beat.
  input  logic [511:0] data_i,
  /// It could not be read.
  input  logic         error_i,
  /// The last one of its range.
  input  logic         last_i,
  input  logic         valid_i,
  output logic         ready_o,
  /// Target beat. Bytes outside of the range have any value.
  output logic [511:0] data_o,
  /// Bytes of it could not be read.
  output logic         error_o,
  output logic         valid_o,
  input  logic         ready_i
);

  // The rotated beat.
  logic valid_q, error_q, skip_q, flush_q, first_q;
  logic [5:0] rotate_q;
  logic [511:0] data_q;
  logic [1023:0] twice;
  logic in_fire;

  // The rotated beat before it, and whether its rest forms the last target beat.
  logic flushing_q, previous_error_q;
  logic [5:0] previous_rotate_q;
  logic [511:0] previous_q;
  logic advance;

  assign twice = {data_i, data_i};
  assign in_fire = valid_i && range_valid_i && ready_o;
  assign ready_o = range_valid_i && (!valid_q || advance);
  assign range_ready_o = in_fire && last_i;

  // A rotated beat moves on when its target beat is accepted.
  assign valid_o = flushing_q || (valid_q && !skip_q);
  assign advance = !flushing_q && (skip_q || ready_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      first_q <= 1'b1;
      flushing_q <= 1'b0;
    end else begin
      if (in_fire) first_q <= last_i;
      if (in_fire) valid_q <= 1'b1;
      else if (advance) valid_q <= 1'b0;
      if (valid_q && advance) flushing_q <= flush_q;
      else if (ready_i) flushing_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (in_fire) begin
      data_q <= twice[10'd512-{1'b0, rotate_i, 3'd0}+:512];
      rotate_q <= rotate_i;
      error_q <= error_i;
      skip_q <= first_q && skip_i;
      flush_q <= last_i && flush_i;
    end
    if (valid_q && advance) begin
      previous_q <= data_q;
      previous_error_q <= error_q;
      previous_rotate_q <= rotate_q;
    end
  end

  // Bytes below the rotation come from the beat before.
  logic range_start_q;  // first beat of its range
  logic [5:0] rotate;
  always_ff @(posedge clk_i) if (in_fire) range_start_q <= first_q;
  assign rotate = flushing_q ? previous_rotate_q : rotate_q;

  always_comb begin
    for (int unsigned i = 0; i < 64; i++) begin
      data_o[i*8+:8] = (flushing_q || i < 32'(rotate)) ? previous_q[i*8+:8] : data_q[i*8+:8];
    end
  end
  assign error_o = flushing_q ? previous_error_q : error_q || (previous_error_q && !range_start_q && rotate_q != '0);

  `NS_ASSERT(something_to_flush, !flushing_q || previous_rotate_q != '0)

endmodule
