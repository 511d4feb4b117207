// Moves the bytes of a range from their places in the source's beats to those in the target's.
//
// Source beats are rotated by the difference of the two addresses; a target beat is made of what two rotated beats in a row have on
// either side of it. A beat a cycle, and one cycle more for a range whose last target beat takes no further source beat.
`include "ns_assert.svh"

module ns_dma_align (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Range: by how many bytes to rotate, (target - source) % 64.
  input  logic [5:0]   rotate_i,
  /// Its first source beat alone makes no target beat.
  input  logic         skip_i,
  /// Its last target beat takes no further source beat.
  input  logic         flush_i,
  /// Valid; stays until its last source beat is taken.
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
  /// Target beat. Its bytes outside of the range are of any value.
  output logic [511:0] data_o,
  /// Bytes of it could not be read.
  output logic         error_o,
  output logic         valid_o,
  input  logic         ready_i
);

  // Rotated.
  logic valid_q, error_q, skip_q, flush_q, first_q;
  logic [5:0] rotate_q;
  logic [511:0] data_q;
  logic [1023:0] twice;
  logic take;

  // The one before it, and whether what is left of it is to be handed on by itself.
  logic flushing_q, before_error_q;
  logic [5:0] before_rotate_q;
  logic [511:0] before_q;
  logic step;

  assign twice = {data_i, data_i};
  assign take = valid_i && range_valid_i && ready_o;
  assign ready_o = range_valid_i && (!valid_q || step);
  assign range_ready_o = take && last_i;

  // A rotated beat goes on when what it makes is taken.
  assign valid_o = flushing_q || (valid_q && !skip_q);
  assign step = !flushing_q && (skip_q || ready_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      first_q <= 1'b1;
      flushing_q <= 1'b0;
    end else begin
      if (take) first_q <= last_i;
      if (take) valid_q <= 1'b1;
      else if (step) valid_q <= 1'b0;
      if (valid_q && step) flushing_q <= flush_q;
      else if (ready_i) flushing_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      data_q <= twice[10'd512-{1'b0, rotate_i, 3'd0}+:512];
      rotate_q <= rotate_i;
      error_q <= error_i;
      skip_q <= first_q && skip_i;
      flush_q <= last_i && flush_i;
    end
    if (valid_q && step) begin
      before_q <= data_q;
      before_error_q <= error_q;
      before_rotate_q <= rotate_q;
    end
  end

  // Bytes below the rotation come from the beat before.
  logic fresh_q;  // there is no beat before in this range
  logic [5:0] rotate;
  always_ff @(posedge clk_i) if (take) fresh_q <= first_q;
  assign rotate = flushing_q ? before_rotate_q : rotate_q;

  always_comb begin
    for (int unsigned i = 0; i < 64; i++) begin
      data_o[i*8+:8] = (flushing_q || i < 32'(rotate)) ? before_q[i*8+:8] : data_q[i*8+:8];
    end
  end
  assign error_o = flushing_q ? before_error_q : error_q || (before_error_q && !fresh_q && rotate_q != '0);

  `NS_ASSERT(something_to_flush, !flushing_q || before_rotate_q != '0)

endmodule
