// SPDX-License-Identifier: Apache-2.0

// Builds full rows of keys: unpacks the keys, closes the gaps between runs, and checks the keys
// against the size of the dictionary.
`include "ns_assert.svh"

module dict_decode_keys
  import dict_decode_pkg::*;
(
  input  logic                          clk_i,
  input  logic                          rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                          flush_i,
  /// Bits of a key.
  input  logic [5:0]                    width_i,
  /// Number of dictionary values, 1 to 2**16.
  input  logic [KeyBits:0]              entries_i,
  /// Rows of dict_decode_runs.
  input  logic [511:0]                  packed_i,
  input  logic [31:0]                   rle_key_i,
  input  logic                          rle_i,
  input  logic [4:0]                    number_i,
  input  end_e                          end_i,
  input  logic                          valid_i,
  output logic                          ready_o,
  /// Full rows of keys. The last row has 0 to 15 keys.
  output logic [Lanes-1:0][KeyBits-1:0] keys_o,
  output logic [4:0]                    number_o,
  output logic                          last_o,
  /// How the stream ends, if the row is the last one or has a bad key. `number_o` keys precede the
  /// end.
  output end_e                          end_o,
  output logic                          valid_o,
  input  logic                          ready_i
);

  // Keys are narrowed to one bit more than the longest dictionary needs. A key with that bit set is
  // in no dictionary.
  typedef logic [KeyBits:0] key_t;
  typedef key_t [Lanes-1:0] row_t;

  function automatic key_t narrow(logic [31:0] key);
    return {key[31:KeyBits] != '0, key[KeyBits-1:0]};
  endfunction

  // Unpack the keys.
  row_t unpacked, keys_q;
  logic [4:0] keys_number_q;
  end_e keys_end_q;
  logic keys_valid_q, keys_ready;

  // One unpacked key per key width. Index 0 is width 32.
  for (genvar i = 0; i < Lanes; i++) begin : gen_unpack
    logic [31:0][31:0] of_width;
    always_comb begin
      of_width[0] = packed_i[32*i+:32];
      for (int unsigned w = 1; w < 32; w++)
      of_width[w] = packed_i[i*w+:32] & (32'hFFFF_FFFF >> (32 - w));
    end
    assign unpacked[i] = narrow(rle_i ? rle_key_i : of_width[width_i[4:0]]);
  end

  logic unused;
  assign unused = width_i[5];

  assign ready_o = !keys_valid_q || keys_ready;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) keys_valid_q <= 1'b0;
    else if (flush_i) keys_valid_q <= 1'b0;
    else if (ready_o) keys_valid_q <= valid_i;
  end
  always_ff @(posedge clk_i) begin
    if (ready_o) begin
      keys_q        <= unpacked;
      keys_number_q <= number_i;
      keys_end_q    <= end_i;
    end
  end

  // Close the gaps. Keys that exceed a row begin the next one.
  row_t partial_q, rotated, merged, row_q;
  logic [3:0] fill_q;
  logic [Lanes-1:0] lane_filled;
  logic [4:0] fill, row_number_q;
  logic is_end, row_full, keys_fire, row_valid_q, row_last_q, row_ready;
  end_e row_end_q;

  assign lane_filled = ~(Lanes'('1) << fill_q);
  for (genvar i = 0; i < Lanes; i++) begin : gen_rotate
    logic [3:0] source_lane;
    assign source_lane = 4'(i) - fill_q;
    assign rotated[i] = keys_q[source_lane];
    assign merged[i] = lane_filled[i] ? partial_q[i] : rotated[i];
  end
  assign fill = 5'(fill_q) + keys_number_q;
  assign is_end = keys_number_q == '0;
  assign row_full = fill[4];
  assign keys_ready = !row_valid_q || row_ready || !(is_end || row_full);
  assign keys_fire = keys_valid_q && keys_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fill_q      <= '0;
      row_valid_q <= 1'b0;
    end else if (flush_i) begin
      fill_q      <= '0;
      row_valid_q <= 1'b0;
    end else begin
      if (keys_fire) fill_q <= is_end ? '0 : fill[3:0];
      if (!row_valid_q || row_ready) row_valid_q <= keys_valid_q && (is_end || row_full);
    end
  end
  always_ff @(posedge clk_i) begin
    if (keys_fire) partial_q <= row_full ? rotated : merged;
    if (!row_valid_q || row_ready) begin
      row_q        <= merged;
      row_number_q <= is_end ? 5'(fill_q) : 5'(Lanes);
      row_last_q   <= is_end;
      row_end_q    <= keys_end_q;
    end
  end

  // Check the keys.
  logic [Lanes-1:0] bad_key;
  logic [4:0] good_keys;  // keys before the first bad one
  always_comb begin
    good_keys = row_number_q;
    for (int i = Lanes - 1; i >= 0; i--) begin
      bad_key[i] = 5'(i) < row_number_q && row_q[i] >= entries_i;
      if (bad_key[i]) good_keys = 5'(i);
    end
  end

  assign row_ready = !valid_o || ready_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (flush_i) valid_o <= 1'b0;
    else if (row_ready) valid_o <= row_valid_q;
  end
  always_ff @(posedge clk_i) begin
    if (row_ready) begin
      for (int unsigned i = 0; i < Lanes; i++) keys_o[i] <= row_q[i][KeyBits-1:0];
      number_o <= good_keys;
      last_o   <= row_last_q;
      end_o    <= (bad_key != '0) ? EndBadKey : row_last_q ? row_end_q : EndOk;
    end
  end

  `NS_ASSERT(number_fits_row, !valid_i || number_i <= 5'(Lanes))

endmodule
