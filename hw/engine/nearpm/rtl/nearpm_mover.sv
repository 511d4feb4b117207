// SPDX-License-Identifier: Apache-2.0

// Data path of a unit: one move at a time, and the CRC-32C of the moved data.
//
//   memory ─► ns_dma_read ─┬─► ns_dma_align ─► zeros after the end ──┬─► ns_dma_write ─► memory
//                          └──────────────► CRC-32C, a line ◄────────┘
//
// The payload of a small record waits in a buffer until its CRC is known. Then header and payload
// are written, in this order. The ranges of later records are read meanwhile.
//
// A move ends when the memory has answered all of its writes.
`include "ns_assert.svh"

module nearpm_mover
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import nearpm_pkg::*;
  import nearpm_unit_pkg::*;
  import nearpm_log_pkg::*;
  import nearpm_crc_pkg::*;
#(
  /// Bytes of a burst.
  parameter int unsigned BurstBytes = 1024,
  /// Bursts in flight per direction, a power of two; IDs are 0 to Bursts-1.
  parameter int unsigned Bursts = 4
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Held until the move ends.
  input  move_t        move_i,
  input  logic         valid_i,
  /// Records: next range to read; the last one; it was requested.
  input  logic [MediaBits-1:0] read_source_i,
  input  logic [16:0]  read_bytes_i,
  input  logic         read_last_i,
  output logic         read_next_o,
  /// Records: the present one is the last one; it was made.
  input  logic         record_last_i,
  output logic         record_made_o,
  /// The move has ended, for one cycle. The outputs below hold until the next move starts.
  output logic         move_done_o,
  /// A read or a write failed.
  output logic         read_error_o,
  output logic         write_error_o,
  /// Load: the line.
  output logic [511:0] line_o,
  /// Copy, sum: CRC of all lines. Load: CRC of the first 60 bytes of the line.
  output crc_t         crc_o,
  /// Seek: a matching header was found.
  output logic         header_found_o,
  /// Memory.
  ns_axi_if.master     m_axi
);

  typedef enum logic [3:0] {
    StIdle,
    StPayload,  // of a small record, into the buffer
    StPayloadCrc,
    StHeader,
    StHeaderCrc,
    StPutHeader,
    StPutPayload,
    StNextRecord,
    StCopy,  // all data of a copy, or of the records, are on their way
    StRead,
    StCrcWait,  // latency of the CRC
    StStore,
    StEnd
  } state_e;

  state_e state_q;
  logic
      start,
      record_start,
      is_copy,
      is_records,
      is_load,
      is_store,
      read_req_q,
      align_req_q,
      write_req_q,
      read_req_ready,
      align_req_ready,
      write_req_ready;
  logic [1:0] crc_wait_q;
  logic read_error_q, write_error_q;
  logic [511:0] line_q;

  // Source beats.
  logic [511:0] read_data;
  logic read_error, read_last, read_valid, read_ready, align_ready;
  // Target beats.
  logic [511:0] align_data, write_data;
  logic align_error, align_valid, write_valid, write_ready;
  // Payload of a small record.
  logic buffer_ready, buffer_valid, align_out_ready, record_error_q;
  logic [3:0] buffer_count;
  logic [511:0] buffer_data, padded_data;
  logic [10:0] beats_q;  // of a copy, still to come
  logic last_beat;
  dma_done_t done;
  logic done_valid;

  assign start = state_q == StIdle && valid_i;
  // The present record, whose source and header are new in this cycle.
  assign record_start = is_records && (start || state_q == StNextRecord);
  assign is_records = move_i.kind == MoveRecords;
  assign is_copy = move_i.kind == MoveCopy;
  assign is_load = move_i.kind == MoveLoad;
  assign is_store = move_i.kind == MoveStore;
  assign move_done_o = state_q == StEnd;
  assign read_error_o = read_error_q;
  assign write_error_o = write_error_q;
  assign line_o = line_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      read_req_q <= 1'b0;
      align_req_q <= 1'b0;
      write_req_q <= 1'b0;
    end else begin
      if (start) begin
        read_req_q  <= !is_store;
        align_req_q <= is_copy || is_records;
        write_req_q <= is_copy || is_records;
      end else begin
        if (read_req_ready && (!is_records || read_last_i)) read_req_q <= 1'b0;
        if (state_q == StNextRecord) align_req_q <= 1'b1;
        else if (align_req_ready) align_req_q <= 1'b0;
        if (state_q == StCrcWait && crc_wait_q == '0 && is_store) write_req_q <= 1'b1;
        else if (write_req_ready) write_req_q <= 1'b0;
      end
      unique case (state_q)
        StIdle:
        if (valid_i)
          unique case (move_i.kind)
            MoveRecords: state_q <= StPayload;
            MoveCopy:  state_q <= StCopy;
            MoveStore: state_q <= StCrcWait;
            default:   state_q <= StRead;
          endcase
        StPayload: if (align_valid && buffer_ready && last_beat) state_q <= StPayloadCrc;
        StPayloadCrc: if (crc_wait_q == '0) state_q <= StHeader;
        StHeader: state_q <= StHeaderCrc;
        StHeaderCrc: if (crc_wait_q == '0) state_q <= StPutHeader;
        StPutHeader: if (write_ready) state_q <= StPutPayload;
        StPutPayload: if (write_ready && buffer_count == 4'd1) state_q <= record_last_i ? StCopy : StNextRecord;
        StNextRecord: state_q <= StPayload;
        StCopy:  if (done_valid) state_q <= StEnd;
        StRead:  if (read_valid && read_last) state_q <= StCrcWait;
        StCrcWait:
        if (crc_wait_q == '0) state_q <= is_store ? StStore : StEnd;
        StStore: if (done_valid) state_q <= StEnd;
        default: state_q <= StIdle;
      endcase
    end
  end

  // Values that depend on the move alone.
  logic [16:0] padded, read_bytes;
  logic [18:0] write_bytes;
  logic [5:0] target_offset;
  logic [1:0] source_end;  // last source beat, counted from the first one, modulo 4
  logic [10:0] target_end;
  logic [1:0] beat_surplus;
  logic skip_q, flush_q, store_valid_q;
  logic [5:0] rotate_q;

  assign padded = (move_i.bytes + 17'd63) & ~17'd63;
  assign read_bytes = is_records ? read_bytes_i : is_copy ? move_i.bytes : is_load ? 17'd64 : padded;
  assign write_bytes = is_records ? move_i.length : (is_copy && move_i.pad) ? 19'(padded) : 19'(move_i.bytes);
  assign target_offset = is_records ? '0 : move_i.target[5:0];
  assign read_next_o = is_records && read_req_q && read_req_ready;
  assign record_made_o = state_q == StPutPayload && write_ready && buffer_count == 4'd1;
  assign source_end = 2'((18'(move_i.source[5:0]) + 18'(move_i.bytes) - 18'd1) >> 6);
  assign target_end = 11'((18'(target_offset) + 18'(move_i.bytes) - 18'd1) >> 6);
  assign beat_surplus = 2'(target_end) - source_end + 2'(target_offset < move_i.source[5:0]);

  always_ff @(posedge clk_i) begin
    if (start || record_start) begin
      rotate_q <= target_offset - move_i.source[5:0];
      skip_q <= target_offset < move_i.source[5:0];
      flush_q <= beat_surplus == 2'd1;
      beats_q <= target_end;
    end else if (align_valid && align_out_ready) beats_q <= beats_q - 1'b1;
    if (start) begin
      read_error_q <= 1'b0;
      write_error_q <= 1'b0;
      line_q <= move_i.line;
    end else begin
      if (state_q == StRead && read_valid) begin
        line_q <= read_data;
        read_error_q <= read_error_q || read_error;
      end
      if (state_q == StHeader) line_q <= move_i.line;
      if (crc_wait_q == '0 && ((state_q == StCrcWait && is_store && move_i.seal) || state_q == StHeaderCrc))
        line_q[511:480] <= crc_o;
      if (done_valid) begin
        read_error_q  <= read_error_q || done.read_error;
        write_error_q <= done.write_error;
      end
    end
    crc_wait_q <= (state_q inside {StCrcWait, StPayloadCrc, StHeaderCrc}) ? crc_wait_q - 1'b1 : 2'd2;
    // Of a record that could not be read, no byte is written.
    if (start) record_error_q <= 1'b0;
    else if (align_valid && align_out_ready && align_error) record_error_q <= 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) store_valid_q <= 1'b0;
    else
      store_valid_q <= (state_q == StCrcWait && crc_wait_q == '0 && is_store) || (store_valid_q && !write_ready && state_q == StStore);
  end

  // Read and write channels of the bus.
  ns_axi_if bus ();

  ns_axi_connect u_link (
    .s_axi(bus),
    .m_axi
  );

  assign read_ready = (!is_copy && !is_records) || align_ready;

  ns_dma_read #(
    .BurstBytes(BurstBytes),
    .Bursts    (Bursts)
  ) u_read (
    .clk_i,
    .rst_ni,
    .addr_i (64'(is_records ? read_source_i : move_i.source)),
    .bytes_i(32'(read_bytes)),
    .valid_i(read_req_q),
    .ready_o(read_req_ready),
    .data_o (read_data),
    .error_o(read_error),
    .last_o (read_last),
    .valid_o(read_valid),
    .ready_i(read_ready),
    .m_axi  (bus)
  );

  ns_dma_align u_align (
    .clk_i,
    .rst_ni,
    .rotate_i     (rotate_q),
    .skip_i       (skip_q),
    .flush_i      (flush_q),
    .range_valid_i(align_req_q),
    .range_ready_o(align_req_ready),
    .data_i       (read_data),
    .error_i      (read_error),
    .last_i       (read_last),
    .valid_i      (read_valid && (is_copy || is_records)),
    .ready_o      (align_ready),
    .data_o       (align_data),
    .error_o      (align_error),
    .valid_o      (align_valid),
    .ready_i      (align_out_ready)
  );

  // Payload of a small record.
  assign align_out_ready = is_records ? state_q == StPayload && buffer_ready : write_ready;

  ns_fifo #(
    .Width(512),
    .Depth(SmallBytes / 64 + 1),
    .Style("lutram")
  ) u_payload (
    .clk_i,
    .rst_ni,
    .in_valid_i (align_valid && is_records && state_q == StPayload),
    .in_ready_o (buffer_ready),
    .in_data_i  (padded_data),
    .out_valid_o(buffer_valid),
    .out_ready_i(state_q == StPutPayload && write_ready),
    .out_data_o (buffer_data),
    .count_o    (buffer_count)
  );

  // A padded target starts with a line. Bytes after its end are zeros.
  assign last_beat = beats_q == '0;
  always_comb begin
    padded_data = align_data;
    if (move_i.pad && last_beat && move_i.bytes[5:0] != '0)
      for (int unsigned i = 1; i < 64; i++)
      if (i >= 32'(move_i.bytes[5:0])) padded_data[i*8+:8] = '0;
    write_data = padded_data;
    if (is_store || state_q == StPutHeader) write_data = line_q;
    else if (is_records) write_data = buffer_data;
  end
  assign write_valid = is_records ? state_q == StPutHeader || (state_q == StPutPayload && buffer_valid) :
      is_store ? store_valid_q : align_valid;

  ns_dma_write #(
    .BurstBytes(BurstBytes),
    .Bursts    (Bursts),
    .Ranges    (2),
    .Depth     (2 * BurstBytes / 64)
  ) u_write (
    .clk_i,
    .rst_ni,
    .addr_i      (64'(move_i.target)),
    .bytes_i     (32'(write_bytes)),
    .valid_i     (write_req_q),
    .ready_o     (write_req_ready),
    .data_i      (write_data),
    .error_i     (is_records ? record_error_q : align_error && !is_store),
    .data_valid_i(write_valid),
    .data_ready_o(write_ready),
    .done_o      (done),
    .done_valid_o(done_valid),
    .done_ready_i(1'b1),
    .m_axi       (bus)
  );

  // CRC pipeline: line, its effect on a register of zeros, register.
  logic feed, feed_q, effect_valid_q;
  logic [511:0] feed_data, feed_q_data;
  crc_t effect_q, crc_q;

  always_comb begin
    unique case (move_i.kind)
      MoveCopy: begin
        feed = align_valid && write_ready;
        feed_data = padded_data;
      end
      MoveRecords: begin
        feed = state_q == StHeader || (align_valid && align_out_ready);
        feed_data = (state_q == StHeader) ? first_60(move_i.line[479:0]) : padded_data;
      end
      MoveSum: begin
        feed = read_valid && state_q == StRead;
        feed_data = read_data;
      end
      MoveLoad, MoveSeek: begin
        feed = read_valid && state_q == StRead;
        feed_data = first_60(read_data[479:0]);
      end
      default: begin
        feed = start;
        feed_data = first_60(move_i.line[479:0]);
      end
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      feed_q <= 1'b0;
      effect_valid_q <= 1'b0;
    end else begin
      feed_q <= feed;
      effect_valid_q <= feed_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (feed) feed_q_data <= feed_data;
    if (feed_q) effect_q <= of_line(feed_q_data);
    if (start || record_start) crc_q <= (is_copy || is_records || move_i.kind == MoveSum) ? '1 : '0;
    else if (state_q == StHeader) crc_q <= '0;
    else if (effect_valid_q) crc_q <= past_line(crc_q) ^ effect_q;
  end
  assign crc_o = ~crc_q;

  // Seek: each line separately.
  header_t beat_header, seek_header;
  logic header_match_q, header_match_delayed_q, header_found_q;
  crc_t header_crc_q, header_crc_delayed_q;

  assign beat_header = read_data;
  assign seek_header = move_i.line;
  assign header_found_o = header_found_q;

  always_ff @(posedge clk_i) begin
    header_match_q <= move_i.kind == MoveSeek && beat_header.magic == HeaderMagic && beat_header.pool == seek_header.pool &&
        beat_header.thread == seek_header.thread && beat_header.maker != MakerCpu && beat_header.generation == seek_header.generation &&
        beat_header.number >= seek_header.number;
    header_crc_q <= beat_header.crc;
    header_match_delayed_q <= header_match_q;
    header_crc_delayed_q <= header_crc_q;
    if (start) header_found_q <= 1'b0;
    else if (effect_valid_q && header_match_delayed_q && ~effect_q == header_crc_delayed_q)
      header_found_q <= 1'b1;
  end

  logic unused;
  assign unused = ^{beat_header, seek_header};

  `NS_ASSERT(length_is_nonzero, !start || is_load || move_i.bytes != '0)
  `NS_ASSERT(padded_target_is_aligned, !start || !move_i.pad || move_i.target[5:0] == '0)

endmodule
