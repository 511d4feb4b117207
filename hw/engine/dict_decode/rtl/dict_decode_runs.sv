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
  input  logic                begin_i,
  /// Bits of a key; no headers.
  input  logic [5:0]          width_i,
  input  logic                fixed_i,
  /// Keys; the source does not have all that are wanted (without headers only).
  input  logic [31:0]         count_i,
  input  logic                cut_i,
  /// Bytes of the source.
  input  logic [SizeBits-1:0] bytes_i,
  /// Rows may leave.
  input  logic                open_i,
  /// Beats of the source.
  input  logic [511:0]        data_i,
  input  logic                error_i,
  input  logic                valid_i,
  output logic                ready_o,
  /// Row: its keys, packed, or the same one for all.
  output logic [511:0]        packed_o,
  output logic [31:0]         key_o,
  output logic                same_o,
  /// How many: 1 to 16; 0: the end, and how it ended.
  output logic [4:0]          number_o,
  output end_e                end_o,
  output logic                valid_o,
  input  logic                ready_i
);

  // Longest header and the key behind it.
  localparam int unsigned HeadBytes = 9;
  localparam int unsigned VarintBytes = 5;

  typedef enum logic [2:0] {
    StIdle,
    StHead,   // waits for the bytes of a header
    StParse,
    StRun,
    StEnd
  } state_e;

  state_e state_q;
  end_e end_q;
  logic [SizeBits-1:0] bytes_q;  // of the source, not used yet
  logic [31:0] left_q, run_q;  // keys: of all, of this run
  logic [32:0] filled_q;  // left_q + 7
  logic final_q;  // this is the last run
  logic same_q;
  logic [31:0] key_q;

  // Less than 256 bytes, and less than 64 keys, are known exactly, so that rows take no long comparison: `many` is of the cycle before, which
  // took no more than 64 and 16.
  logic bytes_many_q, run_many_q;
  logic [7:0] bytes_near;
  logic [5:0] run_near;
  assign bytes_near = bytes_q[7:0] | {8{bytes_many_q}};
  assign run_near = run_q[5:0] | {6{run_many_q}};

  // ---------------------------------------------------------------- window

  logic [511:0] first_q, second_q;
  logic first_error_q, second_error_q, first_here_q, second_here_q;
  logic [5:0] place_q;
  logic [511:0] window;
  logic [6:0] step, next_place;  // bytes that are used up
  logic use_bytes, advance, take;

  assign window = 512'({second_q, first_q} >> {place_q, 3'd0});
  assign next_place = 7'(place_q) + step;
  assign advance = use_bytes && next_place[6];
  assign ready_o = state_q != StIdle && (!second_here_q || advance);
  assign take = valid_i && ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_here_q  <= 1'b0;
      second_here_q <= 1'b0;
      place_q       <= '0;
    end else begin
      first_here_q  <= (advance ? second_here_q : first_here_q) || take;
      second_here_q <= advance ? second_here_q && take : second_here_q || (first_here_q && take);
      if (use_bytes) place_q <= next_place[5:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance || !first_here_q) begin
      first_q       <= second_here_q ? second_q : data_i;
      first_error_q <= second_here_q ? second_error_q : error_i;
    end
    if (take) begin
      second_q       <= data_i;
      second_error_q <= error_i;
    end
  end

  // ---------------------------------------------------------------- headers

  logic [8*HeadBytes-1:0] head_q;
  logic [3:0] head_fine_q;  // bytes of it that could be read
  logic [2:0] varint_bytes, key_bytes;
  logic [34:0] varint;
  logic [33:0] length;
  logic overlong, literal;
  logic [3:0] head_bytes;
  logic [31:0] head_key;
  logic [28:0] groups_left;
  end_e head_end;

  assign key_bytes = 3'((width_i + 6'd7) >> 3);
  assign groups_left = 29'(filled_q >> 3);

  always_comb begin
    overlong     = 1'b1;
    varint_bytes = 3'(VarintBytes);
    varint       = '0;
    for (int unsigned i = 0; i < VarintBytes; i++) begin
      if (overlong) varint[7*i+:7] = head_q[8*i+:7];
      if (overlong && !head_q[8*i+7]) begin
        overlong     = 1'b0;
        varint_bytes = 3'(i + 1);
      end
    end
  end
  assign literal = varint[0];  // bit-packed
  assign length = varint[34:1];
  assign head_bytes = 4'(varint_bytes) + (literal ? 4'd0 : 4'(key_bytes));

  always_comb begin
    head_key = 32'(head_q >> {varint_bytes, 3'd0});
    for (int unsigned i = 0; i < 4; i++) if (i >= 32'(key_bytes)) head_key[8*i+:8] = '0;
  end

  always_comb begin
    head_end = EndOk;
    // What could not be read may be anything: it matters if the source has it and the header needs it.
    if (4'(varint_bytes) > head_fine_q)
      head_end = (bytes_near > 8'(head_fine_q)) ? EndReadError : EndTruncated;
    else if (overlong || 8'(varint_bytes) > bytes_near || length == '0) head_end = EndTruncated;
    else if (literal ? length > 34'(groups_left) : length > 34'(left_q)) head_end = EndOverrun;
    else if (8'(head_bytes) > bytes_near) head_end = EndTruncated;
    else if (head_bytes > head_fine_q) head_end = EndReadError;
  end

  // ---------------------------------------------------------------- rows

  logic two, short_of, row_here, row_error, room, row_fire, run_ends;
  logic [6:0] group_bytes, row_step, row_end;
  logic [4:0] number;

  // A group of 8 keys has as many bytes as a key has bits; two groups are a row. The last group of keys without headers may have less.
  assign group_bytes = 7'(width_i);
  assign two = run_near > 6'd8 && (fixed_i || bytes_near >= 8'(group_bytes << 1));
  assign short_of = !same_q && !fixed_i && bytes_near < 8'(group_bytes);
  always_comb begin
    row_step = two ? group_bytes << 1 : group_bytes;
    if (fixed_i && bytes_near < 8'(row_step)) row_step = 7'(bytes_near);
    if (same_q) row_step = '0;
  end
  assign row_end = 7'(place_q) + row_step;
  assign row_here = same_q || (first_here_q && (row_end <= 7'd64 || second_here_q));
  assign row_error = !same_q && (first_error_q || (row_end > 7'd64 && second_error_q));
  always_comb begin
    number = (same_q || two) ? 5'(Lanes) : 5'd8;
    if (run_near < 6'(number)) number = run_near[4:0];
  end

  // The next header: where the window begins, or behind a row. It may lack bytes that are beyond the source's end.
  logic [6:0] head_step, head_place;
  logic [7:0] head_end_place;
  logic [7:0] head_left;
  logic [8*HeadBytes-1:0] head;
  logic [3:0] head_fine;
  logic head_here;

  // Only the last row of a run counts: it has all its bytes.
  assign head_step = (state_q == StHead || same_q) ? '0 : (run_near > 6'd8) ? group_bytes << 1 : group_bytes;
  assign head_place = 7'(place_q) + head_step;
  assign head_left = bytes_near - 8'(head_step);
  assign head = (8 * HeadBytes)'({second_q, first_q} >> {head_place, 3'd0});
  assign head_end_place = 8'(head_place) + ((head_left < 8'(HeadBytes)) ? head_left : 8'(HeadBytes));
  assign head_here = first_here_q && head_left != '0 && head_end_place <= (second_here_q ? 8'd128 : 8'd64);
  always_comb begin
    head_fine = 4'(HeadBytes);
    if (second_error_q && 8'(head_place) + 8'(HeadBytes) > 8'd64)
      head_fine = head_place[6] ? '0 : 4'(7'd64 - head_place);
    if (first_error_q && !head_place[6]) head_fine = '0;
  end

  assign room = !valid_o || ready_i;
  assign row_fire = state_q == StRun && open_i && room && !short_of && row_here && !row_error;
  assign run_ends = run_near == 6'(number);

  // A bad header is used up, too: nothing is taken behind it.
  assign use_bytes = row_fire || state_q == StParse;
  assign step = (state_q == StParse) ? 7'(head_bytes) : row_step;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      end_q   <= EndOk;
    end else begin
      unique case (state_q)
        StIdle: begin
          if (begin_i) begin
            end_q <= cut_i ? EndTruncated : EndOk;
            if (count_i == '0) state_q <= StEnd;
            else state_q <= (fixed_i || width_i == '0) ? StRun : StHead;
          end
        end
        StHead: begin
          if (bytes_near == '0) begin
            state_q <= StEnd;
            end_q   <= EndTruncated;
          end else if (head_here) state_q <= StParse;
        end
        StParse: begin
          state_q <= (head_end == EndOk) ? StRun : StEnd;
          if (head_end != EndOk) end_q <= head_end;
        end
        StRun: begin
          if (short_of) begin
            state_q <= StEnd;
            end_q   <= EndTruncated;
          end else if (row_here && row_error) begin
            state_q <= StEnd;
            end_q   <= EndReadError;
          end else if (row_fire && run_ends)
            state_q <= final_q ? StEnd : head_here ? StParse : StHead;
        end
        default: if (room) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StHead || row_fire) begin
      head_q      <= head;
      head_fine_q <= head_fine;
    end
    if (state_q == StIdle) begin
      bytes_q      <= bytes_i;
      bytes_many_q <= bytes_i[SizeBits-1:8] != '0;
      left_q       <= count_i;
      filled_q     <= 33'(count_i) + 33'd7;
      run_q        <= count_i;
      run_many_q   <= count_i[31:6] != '0;
      final_q      <= 1'b1;
      same_q       <= width_i == '0;
      key_q        <= '0;
    end else begin
      bytes_many_q <= bytes_q[SizeBits-1:8] != '0;
      run_many_q   <= run_q[31:6] != '0;
      if (use_bytes) bytes_q <= bytes_q - SizeBits'(step);
      if (state_q == StParse) begin
        same_q <= !literal;
        key_q <= head_key;
        final_q <= literal ? length == 34'(groups_left) : length == 34'(left_q);
        run_q <= !literal ? length[31:0] : (length == 34'(groups_left)) ? left_q : {length[28:0], 3'd0};
        run_many_q <= literal ? length[33:3] != '0 && left_q[31:6] != '0 : length[33:6] != '0;
      end
      if (row_fire) begin
        run_q    <= run_q - 32'(number);
        left_q   <= left_q - 32'(number);
        filled_q <= filled_q - 33'(number);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (room) valid_o <= row_fire || state_q == StEnd;
  end
  always_ff @(posedge clk_i) begin
    if (room) begin
      packed_o <= window;
      key_o    <= key_q;
      same_o   <= same_q;
      number_o <= (state_q == StEnd) ? '0 : number;
      end_o    <= end_q;
    end
  end

  `NS_ASSERT(begins_at_rest, !begin_i || state_q == StIdle)
  `NS_ASSERT(stays_within,
             !use_bytes || SizeBits'(step) <= bytes_q || (state_q == StParse && head_end != EndOk))
  `NS_ASSERT(
      uses_what_is_here,
      !use_bytes || step == '0 || (state_q == StParse && head_end != EndOk) || (first_here_q && (next_place <= 7'd64 || second_here_q)))
  `NS_ASSERT(
      bytes_are_exact,
      state_q == StIdle || state_q == StEnd || bytes_q == SizeBits'(bytes_near) || (bytes_many_q && bytes_q >= SizeBits'(64)))
  `NS_ASSERT(keys_are_exact,
             state_q != StRun || run_q == 32'(run_near) || (run_many_q && run_q >= 32'(Lanes)))

endmodule
