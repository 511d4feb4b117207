// SPDX-License-Identifier: Apache-2.0

// Finds the runs of keys in the source, and cuts them into rows of up to 16 keys.
//
//   beats ─► window of two beats ─► per cycle: a run header, or up to 16 packed keys in 64 bytes
//
// The source holds RLE and bit-packed runs of Apache Parquet, or one run of packed keys without a
// header. Keys of 0 bits need no source: they are one run of zeros. The end is a separate item
// after all keys. It carries the error, so an error is reported at its position among the keys.
`include "ns_assert.svh"

module dict_decode_runs
  import dict_decode_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                flush_i,
  /// Starts a stream. The inputs that follow are stable until its end.
  input  logic                start_i,
  /// Bits of a key. `fixed_i`: the source has no run headers.
  input  logic [5:0]          width_i,
  input  logic                fixed_i,
  /// Number of keys. `short_i`: the source has fewer than requested (only without headers).
  input  logic [31:0]         count_i,
  input  logic                short_i,
  /// Size of the source in bytes.
  input  logic [SizeBits-1:0] bytes_i,
  /// Rows can be sent.
  input  logic                enable_i,
  /// Beats of the source.
  input  logic [511:0]        data_i,
  input  logic                error_i,
  input  logic                valid_i,
  output logic                ready_o,
  /// Row: packed keys, or one RLE key for all lanes.
  output logic [511:0]        packed_o,
  output logic [31:0]         rle_key_o,
  output logic                rle_o,
  /// Keys in the row, 1 to 16. 0 marks the end, with its reason in `end_o`.
  output logic [4:0]          number_o,
  output end_e                end_o,
  output logic                valid_o,
  input  logic                ready_i
);

  // Longest header with its RLE key.
  localparam int unsigned HeaderBytes = 9;
  localparam int unsigned VarintBytes = 5;

  typedef enum logic [2:0] {
    StIdle,
    StHeader,   // waits for the bytes of a header
    StParse,
    StRun,
    StEnd
  } state_e;

  state_e state_q;
  end_e end_q;
  logic [SizeBits-1:0] bytes_q;  // source bytes not consumed yet
  logic [31:0] keys_left_q, run_q;  // keys left in total, in this run
  logic [32:0] keys_left_padded_q;  // keys_left_q + 7
  logic final_run_q;  // this is the last run
  logic rle_q;
  logic [31:0] rle_key_q;

  // The low bits are exact below 256 bytes and below 64 keys, which keeps long comparators out of
  // the row path. `*_large_q` reflects the previous cycle, in which at most 64 bytes and 16 keys
  // were consumed.
  logic bytes_large_q, run_large_q;
  logic [7:0] bytes_low;
  logic [5:0] run_low;
  assign bytes_low = bytes_q[7:0] | {8{bytes_large_q}};
  assign run_low = run_q[5:0] | {6{run_large_q}};

  // ---------------------------------------------------------------- window

  logic [511:0] first_q, second_q;
  logic first_error_q, second_error_q, first_valid_q, second_valid_q;
  logic [5:0] place_q;
  logic [511:0] window;
  logic [6:0] step, next_place;  // consumed bytes
  logic consume, advance, in_fire;

  assign window = 512'({second_q, first_q} >> {place_q, 3'd0});
  assign next_place = 7'(place_q) + step;
  assign advance = consume && next_place[6];
  assign ready_o = state_q != StIdle && (!second_valid_q || advance);
  assign in_fire = valid_i && ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_valid_q  <= 1'b0;
      second_valid_q <= 1'b0;
      place_q        <= '0;
    end else if (flush_i) begin
      first_valid_q  <= 1'b0;
      second_valid_q <= 1'b0;
      place_q        <= '0;
    end else begin
      first_valid_q  <= (advance ? second_valid_q : first_valid_q) || in_fire;
      second_valid_q <= advance ? second_valid_q && in_fire : second_valid_q || (first_valid_q && in_fire);
      if (consume) place_q <= next_place[5:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance || !first_valid_q) begin
      first_q       <= second_valid_q ? second_q : data_i;
      first_error_q <= second_valid_q ? second_error_q : error_i;
    end
    if (in_fire) begin
      second_q       <= data_i;
      second_error_q <= error_i;
    end
  end

  // ---------------------------------------------------------------- headers

  logic [8*HeaderBytes-1:0] header_q;
  logic [3:0] header_readable_q;  // bytes of it that could be read
  logic [2:0] varint_bytes, key_bytes;
  logic [34:0] varint;
  logic [33:0] length;
  logic overlong, bit_packed;
  logic [3:0] header_bytes;
  logic [31:0] header_key;
  logic [28:0] groups_left;
  end_e header_end;

  assign key_bytes = 3'((width_i + 6'd7) >> 3);
  assign groups_left = 29'(keys_left_padded_q >> 3);

  always_comb begin
    overlong     = 1'b1;
    varint_bytes = 3'(VarintBytes);
    varint       = '0;
    for (int unsigned i = 0; i < VarintBytes; i++) begin
      if (overlong) varint[7*i+:7] = header_q[8*i+:7];
      if (overlong && !header_q[8*i+7]) begin
        overlong     = 1'b0;
        varint_bytes = 3'(i + 1);
      end
    end
  end
  assign bit_packed = varint[0];
  assign length = varint[34:1];
  assign header_bytes = 4'(varint_bytes) + (bit_packed ? 4'd0 : 4'(key_bytes));

  always_comb begin
    header_key = 32'(header_q >> {varint_bytes, 3'd0});
    for (int unsigned i = 0; i < 4; i++) if (i >= 32'(key_bytes)) header_key[8*i+:8] = '0;
  end

  always_comb begin
    header_end = EndOk;
    // Unreadable bytes are undefined. They are an error only if the source contains them and the
    // header needs them.
    if (4'(varint_bytes) > header_readable_q)
      header_end = (bytes_low > 8'(header_readable_q)) ? EndReadError : EndTruncated;
    else if (overlong || 8'(varint_bytes) > bytes_low || length == '0) header_end = EndTruncated;
    else if (bit_packed ? length > 34'(groups_left) : length > 34'(keys_left_q))
      header_end = EndOverrun;
    else if (8'(header_bytes) > bytes_low) header_end = EndTruncated;
    else if (header_bytes > header_readable_q) header_end = EndReadError;
  end

  // ---------------------------------------------------------------- rows

  logic two_groups, group_short, row_available, row_error, out_ready, row_fire, run_done;
  logic [6:0] group_bytes, row_step, row_end;
  logic [4:0] number;

  // A group of 8 keys has as many bytes as a key has bits, and a row has two groups. The last group
  // of keys without headers can be shorter.
  assign group_bytes = 7'(width_i);
  assign two_groups = run_low > 6'd8 && (fixed_i || bytes_low >= 8'(group_bytes << 1));
  assign group_short = !rle_q && !fixed_i && bytes_low < 8'(group_bytes);
  always_comb begin
    row_step = two_groups ? group_bytes << 1 : group_bytes;
    if (fixed_i && bytes_low < 8'(row_step)) row_step = 7'(bytes_low);
    if (rle_q) row_step = '0;
  end
  assign row_end = 7'(place_q) + row_step;
  assign row_available = rle_q || (first_valid_q && (row_end <= 7'd64 || second_valid_q));
  assign row_error = !rle_q && (first_error_q || (row_end > 7'd64 && second_error_q));
  always_comb begin
    number = (rle_q || two_groups) ? 5'(Lanes) : 5'd8;
    if (run_low < 6'(number)) number = run_low[4:0];
  end

  // The next header begins at the window's start or after a row. Bytes past the end of the source
  // are missing from it.
  logic [6:0] header_step, header_place;
  logic [7:0] header_end_place;
  logic [7:0] header_left;
  logic [8*HeaderBytes-1:0] header;
  logic [3:0] header_readable;
  logic header_available;

  // Only the last row of a run matters here, and its bytes are all available.
  assign header_step = (state_q == StHeader || rle_q) ? '0 : (run_low > 6'd8) ? group_bytes << 1 : group_bytes;
  assign header_place = 7'(place_q) + header_step;
  assign header_left = bytes_low - 8'(header_step);
  assign header = (8 * HeaderBytes)'({second_q, first_q} >> {header_place, 3'd0});
  assign header_end_place = 8'(header_place) + ((header_left < 8'(HeaderBytes)) ? header_left : 8'(HeaderBytes));
  assign header_available = first_valid_q && header_left != '0 && header_end_place <= (second_valid_q ? 8'd128 : 8'd64);
  always_comb begin
    header_readable = 4'(HeaderBytes);
    if (second_error_q && 8'(header_place) + 8'(HeaderBytes) > 8'd64)
      header_readable = header_place[6] ? '0 : 4'(7'd64 - header_place);
    if (first_error_q && !header_place[6]) header_readable = '0;
  end

  assign out_ready = !valid_o || ready_i;
  assign row_fire = state_q == StRun && enable_i && out_ready && !group_short && row_available && !row_error;
  assign run_done = run_low == 6'(number);

  // A bad header is consumed as well, because nothing after it is decoded.
  assign consume = row_fire || state_q == StParse;
  assign step = (state_q == StParse) ? 7'(header_bytes) : row_step;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      end_q   <= EndOk;
    end else if (flush_i) begin
      state_q <= StIdle;
      end_q   <= EndOk;
    end else begin
      unique case (state_q)
        StIdle: begin
          if (start_i) begin
            end_q <= short_i ? EndTruncated : EndOk;
            if (count_i == '0) state_q <= StEnd;
            else state_q <= (fixed_i || width_i == '0) ? StRun : StHeader;
          end
        end
        StHeader: begin
          if (bytes_low == '0) begin
            state_q <= StEnd;
            end_q   <= EndTruncated;
          end else if (header_available) state_q <= StParse;
        end
        StParse: begin
          state_q <= (header_end == EndOk) ? StRun : StEnd;
          if (header_end != EndOk) end_q <= header_end;
        end
        StRun: begin
          if (group_short) begin
            state_q <= StEnd;
            end_q   <= EndTruncated;
          end else if (row_available && row_error) begin
            state_q <= StEnd;
            end_q   <= EndReadError;
          end else if (row_fire && run_done)
            state_q <= final_run_q ? StEnd : header_available ? StParse : StHeader;
        end
        default: if (out_ready) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StHeader || row_fire) begin
      header_q          <= header;
      header_readable_q <= header_readable;
    end
    if (state_q == StIdle) begin
      bytes_q            <= bytes_i;
      bytes_large_q      <= bytes_i[SizeBits-1:8] != '0;
      keys_left_q        <= count_i;
      keys_left_padded_q <= 33'(count_i) + 33'd7;
      run_q              <= count_i;
      run_large_q        <= count_i[31:6] != '0;
      final_run_q        <= 1'b1;
      rle_q              <= width_i == '0;
      rle_key_q          <= '0;
    end else begin
      bytes_large_q <= bytes_q[SizeBits-1:8] != '0;
      run_large_q   <= run_q[31:6] != '0;
      if (consume) bytes_q <= bytes_q - SizeBits'(step);
      if (state_q == StParse) begin
        rle_q <= !bit_packed;
        rle_key_q <= header_key;
        final_run_q <= bit_packed ? length == 34'(groups_left) : length == 34'(keys_left_q);
        run_q <= !bit_packed ? length[31:0] : (length == 34'(groups_left)) ? keys_left_q : {length[28:0], 3'd0};
        run_large_q <= bit_packed ? length[33:3] != '0 && keys_left_q[31:6] != '0 : length[33:6] != '0;
      end
      if (row_fire) begin
        run_q              <= run_q - 32'(number);
        keys_left_q        <= keys_left_q - 32'(number);
        keys_left_padded_q <= keys_left_padded_q - 33'(number);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (flush_i) valid_o <= 1'b0;
    else if (out_ready) valid_o <= row_fire || state_q == StEnd;
  end
  always_ff @(posedge clk_i) begin
    if (out_ready) begin
      packed_o  <= window;
      rle_key_o <= rle_key_q;
      rle_o     <= rle_q;
      number_o  <= (state_q == StEnd) ? '0 : number;
      end_o     <= end_q;
    end
  end

  `NS_ASSERT(start_when_idle, !start_i || state_q == StIdle)
  `NS_ASSERT(step_within_source,
             !consume || SizeBits'(step) <= bytes_q || (state_q == StParse && header_end != EndOk))
  `NS_ASSERT(
      step_within_window,
      !consume || step == '0 || (state_q == StParse && header_end != EndOk) || (first_valid_q && (next_place <= 7'd64 || second_valid_q)))
  `NS_ASSERT(
      bytes_low_is_exact,
      state_q == StIdle || state_q == StEnd || bytes_q == SizeBits'(bytes_low) || (bytes_large_q && bytes_q >= SizeBits'(64)))
  `NS_ASSERT(run_low_is_exact,
             state_q != StRun || run_q == 32'(run_low) || (run_large_q && run_q >= 32'(Lanes)))

endmodule
