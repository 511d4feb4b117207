// Decodes one column in memory: its dictionary is read first, then its keys.
//
//   dictionary ─► dict_decode_table
//                      │
//   source ─► runs ─► keys ─► lookups ─► dict_decode_unload ─► target
//   source ──────────────────────────────────────────────────► target   (plain values)
//
// What is wrong is found at its place among the values, behind all that came before. Then, or after a stop, writes that have been promised
// to the bus get beats without data, and reads are thrown away.
`include "ns_assert.svh"

module dict_decode_core
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import dict_decode_pkg::*;
#(
  /// Bytes of the longest dictionary, a power of two, 1 KiB to 512 KiB.
  parameter int unsigned DictBytes  = 512 * 1024,
  /// Bytes of a burst; bits of the IDs of its master, at most 4.
  parameter int unsigned BurstBytes = 4096,
  parameter int unsigned IdBits     = 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  /// From registers: it works.
  output logic                busy_o,
  /// Begin; at rest. What follows stays until the end, and is valid.
  input  logic                start_i,
  input  logic [63:0]         dict_i,
  /// Values of the dictionary, 1 to 2**16; not used for plain values.
  input  logic [KeyBits:0]    entries_i,
  input  logic [63:0]         src_i,
  input  logic [SizeBits-1:0] bytes_i,
  input  logic [63:0]         dst_i,
  /// Values, 1 to 2**31.
  input  logic [31:0]         count_i,
  input  kind_t               kind_i,
  /// End early.
  input  logic                stop_i,
  /// It has ended, for one cycle, and how.
  output logic                done_o,
  output end_e                end_o,
  output logic                stopped_o,
  output logic                write_error_o,
  /// Values that came before that.
  output logic [31:0]         position_o,
  /// Memory, addresses of the PM window.
  ns_axi_if.master            m_axi
);

  // What is read, and written, at a time: ends at multiples of that.
  localparam int unsigned ReadBytes = 4096;
  localparam int unsigned WriteBytes = 16384;
  typedef logic [34:0] room_t;  // bytes of all values

  typedef enum logic [2:0] {
    StIdle,
    StSize,   // what there is to do comes into registers
    StBegin,
    StWork,
    StDrain,  // what is under way ends
    StReset   // what is inside is forgotten
  } state_e;

  state_e state_q;
  logic rest_n_q, inner_n, drain, begins, over, all_written, reads_rest, writes_rest;
  logic stop_q;
  end_e end_q;
  logic [31:0] position_q;

  // Of what is forgotten after a job. Both, so that nothing is checked before the reset at power-up.
  assign inner_n = rst_ni && rest_n_q;
  assign drain = state_q == StDrain;
  assign begins = state_q == StBegin;
  assign busy_o = state_q != StIdle;
  assign done_o = state_q == StReset;
  assign end_o = end_q;
  assign stopped_o = stop_q && end_q == EndOk;
  assign position_o = position_q;

  // ---------------------------------------------------------------- sizes

  logic [1:0] key_size;  // of keys without runs, log2 of their bytes
  room_t room, room_q;
  logic [SizeBits-1:0] here;  // keys without runs, or plain values, that the source has
  logic [SizeBits-1:0] source_q;  // its bytes that are to be read
  logic [31:0] keys_q;
  logic [19:0] dict_bytes_q;
  logic cut, cut_q;

  assign key_size = kind_i.plain ? kind_i.size : kind_i.width[5:4];
  assign room = room_t'(count_i) << kind_i.size;
  assign here = bytes_i >> key_size;
  assign cut = (kind_i.plain || kind_i.fixed) && here < SizeBits'(count_i);

  always_ff @(posedge clk_i) begin
    room_q       <= room;
    cut_q        <= cut;
    keys_q       <= cut ? here[31:0] : count_i;
    dict_bytes_q <= kind_i.plain ? '0 : 20'(entries_i) << kind_i.size;
    if (kind_i.plain) source_q <= SizeBits'(room);
    else if (kind_i.fixed) source_q <= SizeBits'(cut ? here[31:0] : count_i) << key_size;
    else source_q <= (kind_i.width == '0) ? '0 : bytes_i;
  end

  // ---------------------------------------------------------------- a job

  typedef struct packed {
    logic [Lanes-1:0][KeyBits-1:0] keys;
    logic [4:0]                    number;
    logic                          last;
    end_e                          how;
  } row_t;

  row_t row;
  logic row_valid, row_ready, row_taken, row_bad, table_ready;
  logic ok_q;  // all keys have been found, and are good
  logic read_valid, read_error, read_taken, read_last, dict_phase, plain_cut, plain_beat;

  assign row_bad = row.how != EndOk;
  assign row_ready = row_bad || table_ready;
  assign row_taken = row_valid && row_ready;
  assign plain_cut = kind_i.plain && cut_q;
  assign over = ok_q && all_written;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      rest_n_q <= 1'b0;
      stop_q   <= 1'b0;
      end_q    <= EndOk;
      ok_q     <= 1'b0;
    end else begin
      rest_n_q <= state_q != StReset;
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StSize;
        StSize:  state_q <= StBegin;
        StBegin: state_q <= plain_cut ? StDrain : StWork;
        StWork:  if (end_q != EndOk || over || stop_q) state_q <= StDrain;
        StDrain: if (reads_rest && writes_rest) state_q <= StReset;
        default: state_q <= StIdle;
      endcase
      if (start_i) begin
        stop_q <= 1'b0;
        end_q  <= EndOk;
        ok_q   <= 1'b0;
      end else if (begins) begin
        if (plain_cut) end_q <= EndTruncated;
        ok_q <= kind_i.plain;
      end else if (state_q == StWork && end_q == EndOk && !stop_q && !over) begin
        if (row_taken) end_q <= row.how;
        if (row_taken && row.last && !row_bad) ok_q <= 1'b1;
        if (read_valid && read_error && (dict_phase || kind_i.plain)) end_q <= EndReadError;
      end
      // The first of an error, the end and a stop is told.
      if (state_q == StWork && over) stop_q <= 1'b0;
      else if (stop_i && (state_q == StSize || begins || state_q == StWork)) stop_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) position_q <= '0;
    else if (begins) position_q <= plain_cut ? keys_q : '0;
    else if (state_q == StWork && over) position_q <= count_i;
    else if (state_q == StWork && end_q == EndOk && !stop_q) begin
      if (plain_beat) position_q <= position_q + (32'd64 >> kind_i.size);
      else if (row_taken) position_q <= position_q + 32'(row.number);
    end
  end

  // ---------------------------------------------------------------- reads

  logic [63:0] range_addr_q;
  logic [SizeBits-1:0] range_left_q;
  logic range_dict_q;  // of the dictionary
  logic [31:0] range_room, range_bytes;
  logic range_valid, range_ready, range_fire;
  logic [511:0] read_data;
  logic [6:0] open_q;  // ranges
  logic [13:0] dict_left_q;  // beats of the dictionary, to come
  logic dict_ready, runs_ready, plain_ready;

  assign range_room = 32'(ReadBytes) - 32'(range_addr_q[11:0]);
  assign range_bytes = (range_left_q > SizeBits'(range_room)) ? range_room : range_left_q[31:0];
  assign range_valid = state_q == StWork && range_left_q != '0;
  assign range_fire = range_valid && range_ready;

  always_ff @(posedge clk_i) begin
    if (begins) begin
      range_dict_q <= !kind_i.plain;
      range_addr_q <= kind_i.plain ? src_i : dict_i;
      range_left_q <= kind_i.plain ? source_q : SizeBits'(dict_bytes_q);
    end else if (state_q == StWork && range_dict_q && range_left_q == '0) begin
      range_dict_q <= 1'b0;
      range_addr_q <= src_i;
      range_left_q <= source_q;
    end else if (range_fire) begin
      range_addr_q <= range_addr_q + 64'(range_bytes);
      range_left_q <= range_left_q - SizeBits'(range_bytes);
    end
  end

  assign dict_phase = dict_left_q != '0;
  always_ff @(posedge clk_i) begin
    if (begins) dict_left_q <= 14'((dict_bytes_q + 20'd63) >> 6);
    else if (dict_phase && read_valid && read_taken) dict_left_q <= dict_left_q - 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= '0;
    else open_q <= open_q + 7'(range_fire) - 7'(read_valid && read_taken && read_last);
  end
  assign reads_rest = open_q == '0;

  always_comb begin
    if (drain) read_taken = 1'b1;
    else if (state_q != StWork) read_taken = 1'b0;
    else if (dict_phase) read_taken = dict_ready;
    else if (kind_i.plain) read_taken = plain_ready;
    else read_taken = runs_ready;
  end

  ns_axi_if bus ();

  ns_dma_read #(
    .BurstBytes(BurstBytes),
    .Bursts    (1 << IdBits)
  ) u_read (
    .clk_i,
    .rst_ni,
    .addr_i (range_addr_q),
    .bytes_i(range_bytes),
    .valid_i(range_valid),
    .ready_o(range_ready),
    .data_o (read_data),
    .error_o(read_error),
    .last_o (read_last),
    .valid_o(read_valid),
    .ready_i(read_taken),
    .m_axi  (bus)
  );

  // ---------------------------------------------------------------- keys

  logic [511:0] packed_keys;
  logic [31:0] same_key;
  logic same, keys_valid, keys_ready;
  logic [4:0] keys_number;
  end_e keys_end;
  row_t made;
  logic made_valid, made_ready;

  dict_decode_runs u_runs (
    .clk_i,
    .rst_ni  (inner_n),
    .begin_i (begins && !kind_i.plain),
    .width_i (kind_i.width),
    .fixed_i (kind_i.fixed),
    .count_i (keys_q),
    .cut_i   (cut_q),
    .bytes_i (source_q),
    .open_i  (state_q == StWork && !range_dict_q && !dict_phase),
    .data_i  (read_data),
    .error_i (read_error),
    .valid_i (read_valid && state_q == StWork && !dict_phase && !kind_i.plain),
    .ready_o (runs_ready),
    .packed_o(packed_keys),
    .key_o   (same_key),
    .same_o  (same),
    .number_o(keys_number),
    .end_o   (keys_end),
    .valid_o (keys_valid),
    .ready_i (keys_ready)
  );

  dict_decode_keys u_keys (
    .clk_i,
    .rst_ni   (inner_n),
    .width_i  (kind_i.width),
    .entries_i,
    .packed_i (packed_keys),
    .key_i    (same_key),
    .same_i   (same),
    .number_i (keys_number),
    .end_i    (keys_end),
    .valid_i  (keys_valid),
    .ready_o  (keys_ready),
    .keys_o   (made.keys),
    .number_o (made.number),
    .last_o   (made.last),
    .end_o    (made.how),
    .valid_o  (made_valid),
    .ready_i  (made_ready)
  );

  ns_skid #(
    .Width($bits(row_t))
  ) u_rows (
    .clk_i,
    .rst_ni     (inner_n),
    .in_valid_i (made_valid),
    .in_ready_o (made_ready),
    .in_data_i  (made),
    .out_valid_o(row_valid),
    .out_ready_i(row_ready),
    .out_data_o (row)
  );

  // ---------------------------------------------------------------- values

  logic [Lanes-1:0][63:0] values;
  logic values_last, values_valid, values_ready;
  logic [511:0] write_data;
  logic unloaded_valid, write_valid, write_ready, write_fire;

  dict_decode_table #(
    .DictBytes(DictBytes)
  ) u_table (
    .clk_i,
    .rst_ni      (inner_n),
    .begin_i     (begins),
    .bytes_i     (dict_bytes_q),
    .size_i      (kind_i.size),
    .data_i      (read_data),
    .data_valid_i(read_valid && state_q == StWork && dict_phase),
    .data_ready_o(dict_ready),
    .keys_i      (row.keys),
    .number_i    (row.number),
    .last_i      (row.last),
    .valid_i     (row_valid && !row_bad),
    .ready_o     (table_ready),
    .values_o    (values),
    .last_o      (values_last),
    .valid_o     (values_valid),
    .ready_i     (values_ready)
  );

  dict_decode_unload u_unload (
    .clk_i,
    .rst_ni (inner_n),
    .size_i (kind_i.size),
    .row_i  (values),
    .last_i (values_last),
    .valid_i(values_valid),
    .ready_o(values_ready),
    .start_i(begins),
    .beats_i(29'((room_q + 35'd63) >> 6)),
    .data_o (write_data),
    .valid_o(unloaded_valid),
    .ready_i(write_fire)
  );

  // ---------------------------------------------------------------- writes

  room_t bytes_left_q;
  logic [28:0] feed_q;  // beats that the ranges handed over still lack
  logic [63:0] write_addr_q;
  logic [31:0] write_room, write_bytes;
  logic write_range_ready, write_range_fire;
  dma_done_t write_done;
  logic write_done_valid, write_error_q;
  logic [3:0] write_open_q;
  logic data_here;

  assign write_room = 32'(WriteBytes) - 32'(write_addr_q[13:0]);
  assign write_bytes = (bytes_left_q > room_t'(write_room)) ? write_room : bytes_left_q[31:0];
  assign write_range_fire = state_q == StWork && bytes_left_q != '0 && write_range_ready && write_open_q < 4'd8;

  // After an error or a stop beats come without data.
  assign data_here = kind_i.plain ? state_q == StWork && read_valid && !read_error : unloaded_valid;
  assign write_valid = feed_q != '0 && (data_here || drain);
  assign write_fire = write_valid && write_ready;
  assign plain_ready = feed_q != '0 && write_ready;
  assign plain_beat = kind_i.plain && write_fire && !drain;
  assign all_written = bytes_left_q == '0 && feed_q == '0;
  assign writes_rest = write_open_q == '0 && feed_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bytes_left_q  <= '0;
      feed_q        <= '0;
      write_open_q  <= '0;
      write_error_q <= 1'b0;
    end else begin
      if (begins && !plain_cut) bytes_left_q <= room_q;
      else if (write_range_fire) bytes_left_q <= bytes_left_q - room_t'(write_bytes);
      else if (drain) bytes_left_q <= '0;
      feed_q <= feed_q + (write_range_fire ? 29'((write_bytes + 32'd63) >> 6) : '0) - 29'(write_fire);
      write_open_q <= write_open_q + 4'(write_range_fire) - 4'(write_done_valid);
      if (start_i) write_error_q <= 1'b0;
      else if (write_done_valid && write_done.write_error) write_error_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (begins) write_addr_q <= dst_i;
    else if (write_range_fire) write_addr_q <= write_addr_q + 64'(write_bytes);
  end
  assign write_error_o = write_error_q;

  ns_dma_write #(
    .BurstBytes(BurstBytes),
    .Bursts    (1 << IdBits),
    .Ranges    (8),
    .Depth     (4 * BurstBytes / 64)
  ) u_write (
    .clk_i,
    .rst_ni,
    .addr_i      (write_addr_q),
    .bytes_i     (write_bytes),
    .valid_i     (write_range_fire),
    .ready_o     (write_range_ready),
    .data_i      (kind_i.plain ? read_data : write_data),
    .error_i     (drain),
    .data_valid_i(write_valid),
    .data_ready_o(write_ready),
    .done_o      (write_done),
    .done_valid_o(write_done_valid),
    .done_ready_i(1'b1),
    .m_axi       (bus)
  );

  ns_axi_connect u_link (
    .s_axi(bus),
    .m_axi
  );

  logic unused;
  assign unused = write_done.read_error;

  `NS_ASSERT(starts_at_rest, !start_i || state_q == StIdle)
  `NS_ASSERT(errors_are_not_looked_up, !row_valid || row_bad || row.number == 5'(Lanes) || row.last)

endmodule
