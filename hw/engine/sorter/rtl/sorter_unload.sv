// SPDX-License-Identifier: Apache-2.0

// Packs rows into beats: records of key and index, or indexes only.
//
// A record has 8, 16 or 32 bytes: the key, the index in 4 bytes, zeros. Keys are mapped back (see
// sorter_load). Records past the requested beats are dropped: the unused end of the last row.
module sorter_unload
  import sorter_pkg::*;
#(
  /// Width of the longest key in bits: 32, 64 or 128.
  parameter int unsigned KeyBits = 64,
  localparam int unsigned Width = KeyBits + IndexBits
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                        flush_i,
  /// Kind of keys. `indexes_i`: write indexes only.
  input  kind_t                       kind_i,
  input  logic                        indexes_i,
  /// Rows. `last_i` marks the last row of the pass.
  input  logic [Lanes-1:0][Width-1:0] row_i,
  input  logic                        last_i,
  input  logic                        valid_i,
  output logic                        ready_o,
  /// Starts a pass of `beats_i` beats, followed by the beats.
  input  logic                        start_i,
  input  logic [37:0]                 beats_i,
  output logic [511:0]                data_o,
  output logic                        valid_o,
  input  logic                        ready_i
);

  logic [37:0] beats_left_q;
  logic [1:0] group_q, group_last;
  logic half_q, valid_q, in_fire, row_done, beat_done;
  logic [511:0] beat_q, beat;

  always_comb begin
    unique case (kind_i.width)
      Key32:   group_last = 2'd0;
      Key64:   group_last = indexes_i ? 2'd0 : 2'd1;
      default: group_last = indexes_i ? 2'd0 : 2'd3;
    endcase
  end

  logic [Lanes-1:0][127:0] key;
  logic [Lanes-1:0][IndexBits-1:0] index;
  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    assign key[i]   = to_key(128'(row_i[i][IndexBits+:KeyBits]), kind_i);
    assign index[i] = row_i[i][IndexBits-1:0];
  end

  always_comb begin
    beat = beat_q;
    for (int unsigned i = 0; i < Lanes; i++) begin
      if (indexes_i) beat[(half_q?256 : 0)+32*i+:32] = index[i];
      else begin
        unique case (kind_i.width)
          Key32: beat[64*i+:64] = {index[i], key[i][31:0]};
          Key64: if (i / 4 == 32'(group_q[0])) beat[128*(i%4)+:128] = {32'd0, index[i], key[i][63:0]};
          default: if (i / 2 == 32'(group_q)) beat[256*(i%2)+:256] = {96'd0, index[i], key[i]};
        endcase
      end
    end
  end

  assign in_fire = valid_i && (!valid_q || ready_i);
  assign row_done = indexes_i || group_q == group_last;
  assign beat_done = !indexes_i || half_q || last_i;
  assign ready_o = in_fire && row_done;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      group_q <= '0;
      half_q  <= 1'b0;
      valid_q <= 1'b0;
    end else if (flush_i) begin
      group_q <= '0;
      half_q  <= 1'b0;
      valid_q <= 1'b0;
    end else begin
      if (in_fire) begin
        group_q <= row_done ? '0 : group_q + 1'b1;
        half_q  <= indexes_i && !half_q && !last_i;
      end
      if (in_fire) valid_q <= beat_done && beats_left_q != '0;
      else if (ready_i) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) beats_left_q <= beats_i;
    else if (in_fire && beat_done && beats_left_q != '0) beats_left_q <= beats_left_q - 1'b1;
    if (in_fire) beat_q <= beat;
  end

  assign data_o = beat_q;
  assign valid_o = valid_q;

  logic unused;
  assign unused = ^key;

endmodule
