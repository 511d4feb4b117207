// Finds the runs of keys in what was read, and cuts them into rows of up to 16 keys.
//
//   beats ─► two of them, and a place in the first ─► a header, or 16 packed keys in up to 64 bytes: a cycle each
//
// RLE and bit-packed runs as in Apache Parquet; or one run of packed keys without a header; or, of no bits, one of zeros without any
// source. The end is an item by itself, behind all keys, and says what was wrong: so an error is told at its place among the keys.
`include "ns_assert.svh"

module dict_decode_runs
  import dict_decode_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,
  /// Begin. What follows stays until the end.
  input  logic                start_i,
  /// Bits of a key; no headers.
  input  logic [5:0]          width_i,
  input  logic                fixed_i,
  /// Keys; the source does not have all that are wanted (without headers only).
  input  logic [31:0]         count_i,
  input  logic                short_i,
  /// Bytes of the source.
  input  logic [SizeBits-1:0] bytes_i,
  /// Rows may leave.
  input  logic                enable_i,
  /// Beats of the source.
  input  logic [511:0]        data_i,
  input  logic                error_i,
  input  logic                valid_i,
  output logic                ready_o,
  /// Row: its keys, packed, or the same one for all.
  output logic [511:0]        packed_o,
  output logic [31:0]         rle_key_o,
  output logic                rle_o,
  /// How many: 1 to 16; 0: the end, and how it ended.
  output logic [4:0]          number_o,
  output end_e                end_o,
  output logic                valid_o,
  input  logic                ready_i
);

  // Longest header and the key behind it.
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
  logic [SizeBits-1:0] bytes_q;  // of the source, not used yet
  logic [31:0] keys_left_q, run_q;  // keys: of all, of this run
  logic [32:0] keys_left_padded_q;  // left_q + 7
  logic final_run_q;  // this is the last run
  logic rle_q;
  logic [31:0] rle_key_q;

  // Less than 256 bytes, and less than 64 keys, are known exactly, so that rows take no long comparison: `many` is of the cycle before, which
  // took no more than 64 and 16.
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
  logic [6:0] step, next_place;  // bytes that are used up
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
  assign bit_packed = varint[0];  // bit-packed
  assign length = varint[34:1];
  assign header_bytes = 4'(varint_bytes) + (bit_packed ? 4'd0 : 4'(key_bytes));

  always_comb begin
    header_key = 32'(header_q >> {varint_bytes, 3'd0});
    for (int unsigned i = 0; i < 4; i++) if (i >= 32'(key_bytes)) header_key[8*i+:8] = '0;
  end

  always_comb begin
    header_end = EndOk;
    // What could not be read may be anything: it matters if the source has it and the header needs it.
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

  // A group of 8 keys has as many bytes as a key has bits; two groups are a row. The last group of keys without headers may have less.
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

  // The next header: where the window begins, or behind a row. It may lack bytes that are beyond the source's end.
  logic [6:0] header_step, header_place;
  logic [7:0] header_end_place;
  logic [7:0] header_left;
  logic [8*HeaderBytes-1:0] header;
  logic [3:0] header_readable;
  logic header_available;

  // Only the last row of a run counts: it has all its bytes.
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

  // A bad header is used up, too: nothing is taken behind it.
  assign consume = row_fire || state_q == StParse;
  assign step = (state_q == StParse) ? 7'(header_bytes) : row_step;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
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
