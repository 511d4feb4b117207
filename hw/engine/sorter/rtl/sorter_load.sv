// SPDX-License-Identifier: Apache-2.0

// Builds rows of records from read data: either keys, whose index is their position, or records
// that the sorter has written.
//
// Beats arrive in ranges, and each range makes whole rows. The last row is padded with records that
// sort after all others. Keys are mapped to unsigned numbers of the same order; sorter_unload maps
// them back.
`include "ns_assert.svh"

module sorter_load
  import sorter_pkg::*;
#(
  /// Width of the longest key in bits: 32, 64 or 128.
  parameter int unsigned KeyBits  = 64,
  /// Bits of a range tag.
  parameter int unsigned TagBits  = 6,
  /// Bits of a range's record count.
  parameter int unsigned SizeBits = 11,
  localparam int unsigned Width = KeyBits + IndexBits
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                        flush_i,
  /// Kind of keys. `keys_i`: the data are keys, else records.
  input  kind_t                       kind_i,
  input  logic                        keys_i,
  /// Range: its number of records, at least 1, and its tag.
  input  logic [SizeBits-1:0]         size_i,
  input  logic [TagBits-1:0]          tag_i,
  input  logic                        range_valid_i,
  output logic                        range_ready_o,
  /// Beats of the range.
  input  logic [511:0]                data_i,
  input  logic                        valid_i,
  output logic                        ready_o,
  /// Rows. `last_o` marks the last row of a range.
  output logic [Lanes-1:0][Width-1:0] row_o,
  output logic [TagBits-1:0]          tag_o,
  output logic                        last_o,
  output logic                        valid_o,
  input  logic                        ready_i
);

  // A row is 64 << shift bytes of records, or half of that as keys. A beat holds two rows of the
  // shortest keys.
  logic two_rows;  // a beat holds two rows
  logic [1:0] group_last;  // beats of a row, less one
  assign two_rows = keys_i && kind_i.width == Key32;
  always_comb begin
    unique case (kind_i.width)
      Key32:   group_last = 2'd0;
      Key64:   group_last = keys_i ? 2'd0 : 2'd1;
      default: group_last = keys_i ? 2'd1 : 2'd3;
    endcase
  end

  logic half_q;
  logic [1:0] group_q;
  logic [SizeBits-1:0] records_left_q, records_left;
  logic range_active_q;
  logic [IndexBits-1:0] index_q;
  logic [Lanes-1:0][Width-1:0] row_q, row;
  logic valid_q, last_q, beat_fire, row_complete, range_last, beat_done;
  logic [TagBits-1:0] tag_q;

  assign records_left = range_active_q ? records_left_q : size_i;
  // The range's last beat can end within a row, or hold one row only.
  assign range_last = records_left <= SizeBits'(Lanes);
  assign beat_fire = valid_i && range_valid_i && (!valid_q || ready_i);

  // Records of the row in this beat, and their first lane.
  logic [3:0] first, lanes;
  always_comb begin
    unique case (group_last)
      2'd0: {first, lanes} = {4'd0, 4'd8};
      2'd1: {first, lanes} = {1'b0, group_q[0], 2'd0, 4'd4};
      default: {first, lanes} = {1'b0, group_q, 1'b0, 4'd2};
    endcase
  end

  logic [Lanes-1:0][127:0] key;
  logic [Lanes-1:0][IndexBits-1:0] index;
  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    localparam int unsigned Half = i % 4;
    localparam int unsigned Quarter = i % 2;
    logic in_beat;
    always_comb begin
      key[i] = '0;
      index[i] = index_q + IndexBits'(i);
      unique case (kind_i.width)
        Key32: begin
          if (keys_i) key[i] = 128'(data_i[(half_q?256 : 0)+32*i+:32]);
          else {index[i], key[i][31:0]} = data_i[64*i+:64];
        end
        Key64: begin
          if (keys_i) key[i] = 128'(data_i[64*i+:64]);
          else {index[i], key[i][63:0]} = data_i[128*Half+:96];
        end
        default: begin
          if (keys_i) key[i] = data_i[128*Half+:128];
          else {index[i], key[i]} = data_i[256*Quarter+:160];
        end
      endcase
    end
    assign in_beat = 4'(i) >= first && 4'(i) < first + lanes;
    // Lanes past the end get the padding record.
    always_comb begin
      row[i] = row_q[i];
      if (in_beat) row[i] = {KeyBits'(to_number(key[i], kind_i)), index[i]};
      if (SizeBits'(i) >= records_left) row[i] = '1;
    end
  end

  // The last row of a range is complete with its last record.
  logic [SizeBits-1:0] row_records;  // up to the end of this beat
  assign row_records = SizeBits'(first + lanes);
  assign row_complete = group_q == group_last || records_left <= row_records;
  assign beat_done = !two_rows || half_q || range_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      half_q         <= 1'b0;
      group_q        <= '0;
      range_active_q <= 1'b0;
      valid_q        <= 1'b0;
      index_q        <= '0;
    end else if (flush_i) begin
      half_q         <= 1'b0;
      group_q        <= '0;
      range_active_q <= 1'b0;
      valid_q        <= 1'b0;
      index_q        <= '0;
    end else begin
      if (beat_fire) begin
        half_q <= two_rows && !half_q && !range_last;
        group_q <= row_complete ? '0 : group_q + 1'b1;
        range_active_q <= !(row_complete && range_last);
        if (row_complete) index_q <= index_q + IndexBits'(Lanes);
      end
      if (beat_fire) valid_q <= row_complete;
      else if (ready_i) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat_fire) begin
      row_q <= row;
      last_q <= range_last;
      tag_q <= tag_i;
      records_left_q <= row_complete ? records_left - SizeBits'(Lanes) : records_left;
    end
  end

  assign range_ready_o = beat_fire && row_complete && range_last;
  assign ready_o = beat_fire && beat_done;
  assign row_o = row_q;
  assign tag_o = tag_q;
  assign last_o = last_q;
  assign valid_o = valid_q;

  if (KeyBits != 32 && KeyBits != 64 && KeyBits != 128) begin : gen_bad_key
    $error("sorter_load: KeyBits must be 32, 64 or 128");
  end

  `NS_ASSERT(range_is_not_empty, !range_valid_i || size_i != '0)

endmodule
