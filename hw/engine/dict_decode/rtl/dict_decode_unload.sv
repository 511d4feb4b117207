// SPDX-License-Identifier: Apache-2.0

// Packs rows of 16 values into beats. Values past the requested beats are dropped: the unused end
// of the last row.
module dict_decode_unload
  import dict_decode_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                   flush_i,
  /// log2 of a value's bytes.
  input  logic [1:0]             size_i,
  /// Rows of values. `last_i` marks the last row of the job.
  input  logic [Lanes-1:0][63:0] row_i,
  input  logic                   last_i,
  input  logic                   valid_i,
  output logic                   ready_o,
  /// Starts a job of `beats_i` beats, followed by the beats.
  input  logic                   start_i,
  input  logic [28:0]            beats_i,
  output logic [511:0]           data_o,
  output logic                   valid_o,
  input  logic                   ready_i
);

  logic [28:0] beats_left_q;
  logic [1:0]
      part_q, last_part;  // index of the row in a beat, or of the beat in a row of two beats
  logic in_fire, part_last, row_done, beat_done;
  logic [511:0] beat;

  always_comb begin
    unique case (size_i)
      2'd0: last_part = 2'd3;
      2'd2: last_part = 2'd0;
      default: last_part = 2'd1;
    endcase
  end

  always_comb begin
    beat = data_o;
    for (int unsigned i = 0; i < Lanes; i++) begin
      unique case (size_i)
        2'd0: beat[{part_q, 7'(8*i)}+:8] = row_i[i][7:0];
        2'd1: beat[{part_q[0], 8'(16*i)}+:16] = row_i[i][15:0];
        2'd2: beat[32*i+:32] = row_i[i][31:0];
        default: if (i / 8 == 32'(part_q)) beat[64*(i%8)+:64] = row_i[i];
      endcase
    end
  end

  assign in_fire = valid_i && (!valid_o || ready_i);
  assign part_last = part_q == last_part;
  assign row_done = size_i != 2'd3 || part_last;
  assign beat_done = size_i == 2'd3 || part_last || last_i;
  assign ready_o = in_fire && row_done;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      part_q  <= '0;
      valid_o <= 1'b0;
    end else if (flush_i) begin
      part_q  <= '0;
      valid_o <= 1'b0;
    end else begin
      if (in_fire) part_q <= (part_last || (last_i && row_done)) ? '0 : part_q + 1'b1;
      if (in_fire) valid_o <= beat_done && beats_left_q != '0;
      else if (ready_i) valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) beats_left_q <= beats_i;
    else if (in_fire && beat_done && beats_left_q != '0) beats_left_q <= beats_left_q - 1'b1;
    if (in_fire) data_o <= beat;
  end

endmodule
