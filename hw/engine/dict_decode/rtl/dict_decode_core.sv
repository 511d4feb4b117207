// SPDX-License-Identifier: Apache-2.0

// Decodes one column in memory. The dictionary is read first, then the keys.
//
//   dictionary ─► dict_decode_table
//                      │
//   source ─► runs ─► keys ─► lookups ─► dict_decode_unload ─► target
//   source ──────────────────────────────────────────────────► target   (plain values)
//
// An error in the source is detected at its position in the stream, after all values that precede
// it. After an error or a stop, writes whose addresses are issued get beats without strobes, and
// read data are discarded.
`include "ns_assert.svh"

module dict_decode_core
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import dict_decode_pkg::*;
#(
  /// Size of the longest dictionary in bytes, a power of two from 1 KiB to 512 KiB.
  parameter int unsigned DictBytes  = 512 * 1024,
  /// Size of a burst in bytes, and ID bits of the master, at most 4.
  parameter int unsigned BurstBytes = 4096,
  parameter int unsigned IdBits     = 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  /// The block is not idle. Driven by registers.
  output logic                busy_o,
  /// Starts a job, only while idle. The arguments that follow are valid and stable until it ends.
  input  logic                start_i,
  input  logic [63:0]         dict_i,
  /// Number of dictionary values, 1 to 2**16. Unused for plain values.
  input  logic [KeyBits:0]    entries_i,
  input  logic [63:0]         src_i,
  input  logic [SizeBits-1:0] bytes_i,
  input  logic [63:0]         dst_i,
  /// Number of values, 1 to 2**31.
  input  logic [31:0]         count_i,
  input  kind_t               kind_i,
  /// End the job early.
  input  logic                stop_i,
  /// The job ends, for one cycle, with these results.
  output logic                done_o,
  output end_e                end_o,
  output logic                stopped_o,
  output logic                write_error_o,
  /// Number of values before the end or the error.
  output logic [31:0]         position_o,
  /// Memory port. Addresses are those of the PM window.
  ns_axi_if.master            m_axi
);

  // Sizes of a read and of a write range. Ranges end at multiples of them.
  localparam int unsigned ReadBytes = 4096;
  localparam int unsigned WriteBytes = 16384;
  typedef logic [34:0] byte_count_t;  // size of all values

  typedef enum logic [2:0] {
    StIdle,
    StSize,   // registers the sizes of the job
    StBegin,
    StRun,
    StDrain,  // waits for accesses in flight
    StFlush   // discards what an error or a stop has left in the pipeline
  } state_e;

  state_e state_q;
  logic flush, drain, job_begin, job_complete, writes_done, reads_idle, writes_idle;
  logic stop_q;
  end_e end_q;
  logic [31:0] position_q;

  assign flush = state_q == StFlush;
  assign drain = state_q == StDrain;
  assign job_begin = state_q == StBegin;
  assign busy_o = state_q != StIdle;
  assign done_o = flush;
  assign end_o = end_q;
  assign stopped_o = stop_q && end_q == EndOk;
  assign position_o = position_q;

  // ---------------------------------------------------------------- sizes

  logic [1:0] key_size;  // log2 of the bytes of a key without runs
  byte_count_t value_bytes, value_bytes_q;
  logic [SizeBits-1:0] source_values;  // plain values, or keys without runs, in the source
  logic [SizeBits-1:0] source_q;  // source bytes to be read
  logic [31:0] key_count_q;
  logic [19:0] dict_bytes_q;
  logic source_short, source_short_q;

  assign key_size = kind_i.plain ? kind_i.size : kind_i.width[5:4];
  assign value_bytes = byte_count_t'(count_i) << kind_i.size;
  assign source_values = bytes_i >> key_size;
  assign source_short = (kind_i.plain || kind_i.fixed) && source_values < SizeBits'(count_i);

  always_ff @(posedge clk_i) begin
    value_bytes_q  <= value_bytes;
    source_short_q <= source_short;
    key_count_q    <= source_short ? source_values[31:0] : count_i;
    dict_bytes_q   <= kind_i.plain ? '0 : 20'(entries_i) << kind_i.size;
    if (kind_i.plain) source_q <= SizeBits'(value_bytes);
    else if (kind_i.fixed)
      source_q <= SizeBits'(source_short ? source_values[31:0] : count_i) << key_size;
    else source_q <= (kind_i.width == '0) ? '0 : bytes_i;
  end

  // ---------------------------------------------------------------- job

  typedef struct packed {
    logic [Lanes-1:0][KeyBits-1:0] keys;
    logic [4:0]                    number;
    logic                          last;
    end_e                          end_status;
  } row_t;

  row_t row;
  logic row_valid, row_ready, row_fire, row_error, table_ready;
  logic keys_done_q;  // all keys are found and valid
  logic read_valid, read_error, read_ready, read_last, dict_phase, plain_short, plain_beat;

  assign row_error = row.end_status != EndOk;
  assign row_ready = row_error || table_ready;
  assign row_fire = row_valid && row_ready;
  assign plain_short = kind_i.plain && source_short_q;
  assign job_complete = keys_done_q && writes_done;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      stop_q      <= 1'b0;
      end_q       <= EndOk;
      keys_done_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StSize;
        StSize:  state_q <= StBegin;
        StBegin: state_q <= plain_short ? StDrain : StRun;
        StRun:  if (end_q != EndOk || job_complete || stop_q) state_q <= StDrain;
        StDrain: if (reads_idle && writes_idle) state_q <= StFlush;
        default: state_q <= StIdle;
      endcase
      if (start_i) begin
        stop_q      <= 1'b0;
        end_q       <= EndOk;
        keys_done_q <= 1'b0;
      end else if (job_begin) begin
        if (plain_short) end_q <= EndTruncated;
        keys_done_q <= kind_i.plain;
      end else if (state_q == StRun && end_q == EndOk && !stop_q && !job_complete) begin
        if (row_fire) end_q <= row.end_status;
        if (row_fire && row.last && !row_error) keys_done_q <= 1'b1;
        if (read_valid && read_error && (dict_phase || kind_i.plain)) end_q <= EndReadError;
      end
      // Only the first of an error, the end and a stop is reported.
      if (state_q == StRun && job_complete) stop_q <= 1'b0;
      else if (stop_i && (state_q == StSize || job_begin || state_q == StRun)) stop_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) position_q <= '0;
    else if (job_begin) position_q <= plain_short ? key_count_q : '0;
    else if (state_q == StRun && job_complete) position_q <= count_i;
    else if (state_q == StRun && end_q == EndOk && !stop_q) begin
      if (plain_beat) position_q <= position_q + (32'd64 >> kind_i.size);
      else if (row_fire) position_q <= position_q + 32'(row.number);
    end
  end

  // ---------------------------------------------------------------- reads

  logic [63:0] range_addr_q;
  logic [SizeBits-1:0] range_left_q;
  logic range_dict_q;  // the range belongs to the dictionary
  logic [31:0] range_max, range_bytes;
  logic range_valid, range_ready, range_fire;
  logic [511:0] read_data;
  logic [6:0] reads_in_flight_q;  // in ranges
  logic [13:0] dict_left_q;  // dictionary beats that have not arrived
  logic dict_ready, runs_ready, plain_ready;

  assign range_max = 32'(ReadBytes) - 32'(range_addr_q[11:0]);
  assign range_bytes = (range_left_q > SizeBits'(range_max)) ? range_max : range_left_q[31:0];
  assign range_valid = state_q == StRun && range_left_q != '0;
  assign range_fire = range_valid && range_ready;

  always_ff @(posedge clk_i) begin
    if (job_begin) begin
      range_dict_q <= !kind_i.plain;
      range_addr_q <= kind_i.plain ? src_i : dict_i;
      range_left_q <= kind_i.plain ? source_q : SizeBits'(dict_bytes_q);
    end else if (state_q == StRun && range_dict_q && range_left_q == '0) begin
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
    if (job_begin) dict_left_q <= 14'((dict_bytes_q + 20'd63) >> 6);
    else if (dict_phase && read_valid && read_ready) dict_left_q <= dict_left_q - 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reads_in_flight_q <= '0;
    else
      reads_in_flight_q <= reads_in_flight_q + 7'(range_fire) - 7'(read_valid && read_ready && read_last);
  end
  assign reads_idle = reads_in_flight_q == '0;

  always_comb begin
    if (drain) read_ready = 1'b1;
    else if (state_q != StRun) read_ready = 1'b0;
    else if (dict_phase) read_ready = dict_ready;
    else if (kind_i.plain) read_ready = plain_ready;
    else read_ready = runs_ready;
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
    .ready_i(read_ready),
    .m_axi  (bus)
  );

  // ---------------------------------------------------------------- keys

  logic [511:0] packed_keys;
  logic [31:0] rle_key;
  logic rle, keys_valid, keys_ready;
  logic [4:0] keys_number;
  end_e keys_end;
  row_t built;
  logic built_valid, built_ready;

  dict_decode_runs u_runs (
    .clk_i,
    .rst_ni,
    .flush_i  (flush),
    .start_i  (job_begin && !kind_i.plain),
    .width_i  (kind_i.width),
    .fixed_i  (kind_i.fixed),
    .count_i  (key_count_q),
    .short_i  (source_short_q),
    .bytes_i  (source_q),
    .enable_i (state_q == StRun && !range_dict_q && !dict_phase),
    .data_i   (read_data),
    .error_i  (read_error),
    .valid_i  (read_valid && state_q == StRun && !dict_phase && !kind_i.plain),
    .ready_o  (runs_ready),
    .packed_o (packed_keys),
    .rle_key_o(rle_key),
    .rle_o    (rle),
    .number_o (keys_number),
    .end_o    (keys_end),
    .valid_o  (keys_valid),
    .ready_i  (keys_ready)
  );

  dict_decode_keys u_keys (
    .clk_i,
    .rst_ni,
    .flush_i (flush),
    .width_i(kind_i.width),
    .entries_i,
    .packed_i (packed_keys),
    .rle_key_i(rle_key),
    .rle_i    (rle),
    .number_i (keys_number),
    .end_i    (keys_end),
    .valid_i  (keys_valid),
    .ready_o  (keys_ready),
    .keys_o   (built.keys),
    .number_o (built.number),
    .last_o   (built.last),
    .end_o    (built.end_status),
    .valid_o  (built_valid),
    .ready_i  (built_ready)
  );

  ns_skid #(
    .Width($bits(row_t))
  ) u_rows (
    .clk_i,
    .rst_ni,
    .flush_i    (flush),
    .in_valid_i (built_valid),
    .in_ready_o (built_ready),
    .in_data_i  (built),
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
    .rst_ni,
    .flush_i     (flush),
    .start_i     (job_begin),
    .bytes_i     (dict_bytes_q),
    .size_i      (kind_i.size),
    .data_i      (read_data),
    .data_valid_i(read_valid && state_q == StRun && dict_phase),
    .data_ready_o(dict_ready),
    .keys_i      (row.keys),
    .number_i    (row.number),
    .last_i      (row.last),
    .valid_i     (row_valid && !row_error),
    .ready_o     (table_ready),
    .values_o    (values),
    .last_o      (values_last),
    .valid_o     (values_valid),
    .ready_i     (values_ready)
  );

  dict_decode_unload u_unload (
    .clk_i,
    .rst_ni,
    .flush_i (flush),
    .size_i (kind_i.size),
    .row_i  (values),
    .last_i (values_last),
    .valid_i(values_valid),
    .ready_o(values_ready),
    .start_i(job_begin),
    .beats_i(29'((value_bytes_q + 35'd63) >> 6)),
    .data_o (write_data),
    .valid_o(unloaded_valid),
    .ready_i(write_fire)
  );

  // ---------------------------------------------------------------- writes

  byte_count_t bytes_left_q;
  logic [28:0] beats_due_q;  // beats that the issued write ranges still need
  logic [63:0] write_addr_q;
  logic [31:0] write_max, write_bytes;
  logic write_range_ready, write_range_fire;
  dma_done_t write_done;
  logic write_done_valid, write_error_q;
  logic [3:0] writes_in_flight_q;
  logic data_valid;

  assign write_max = 32'(WriteBytes) - 32'(write_addr_q[13:0]);
  assign write_bytes = (bytes_left_q > byte_count_t'(write_max)) ? write_max : bytes_left_q[31:0];
  assign write_range_fire = state_q == StRun && bytes_left_q != '0 && write_range_ready && writes_in_flight_q < 4'd8;

  // After an error or a stop the remaining beats carry no data.
  assign data_valid = kind_i.plain ? state_q == StRun && read_valid && !read_error : unloaded_valid;
  assign write_valid = beats_due_q != '0 && (data_valid || drain);
  assign write_fire = write_valid && write_ready;
  assign plain_ready = beats_due_q != '0 && write_ready;
  assign plain_beat = kind_i.plain && write_fire && !drain;
  assign writes_done = bytes_left_q == '0 && beats_due_q == '0;
  assign writes_idle = writes_in_flight_q == '0 && beats_due_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bytes_left_q       <= '0;
      beats_due_q        <= '0;
      writes_in_flight_q <= '0;
      write_error_q      <= 1'b0;
    end else begin
      if (job_begin && !plain_short) bytes_left_q <= value_bytes_q;
      else if (write_range_fire) bytes_left_q <= bytes_left_q - byte_count_t'(write_bytes);
      else if (drain) bytes_left_q <= '0;
      beats_due_q <= beats_due_q + (write_range_fire ? 29'((write_bytes + 32'd63) >> 6) : '0) - 29'(write_fire);
      writes_in_flight_q <= writes_in_flight_q + 4'(write_range_fire) - 4'(write_done_valid);
      if (start_i) write_error_q <= 1'b0;
      else if (write_done_valid && write_done.write_error) write_error_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (job_begin) write_addr_q <= dst_i;
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

  `NS_ASSERT(start_when_idle, !start_i || state_q == StIdle)
  `NS_ASSERT(short_row_is_last, !row_valid || row_error || row.number == 5'(Lanes) || row.last)

endmodule
