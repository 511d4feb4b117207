// SPDX-License-Identifier: Apache-2.0

// Data path of a unit: one move at a time, and the CRC-32C of the moved data.
//
//   memory ─► ns_dma_read ─┬─► ns_dma_align ─► zeros after the end ──┬─► ns_dma_write ─► memory
//                          └──────────────► CRC-32C, a line ◄────────┘
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

  typedef enum logic [2:0] {
    StIdle,
    StCopy,
    StRead,
    StCrcWait,  // latency of the CRC
    StStore,
    StEnd
  } state_e;

  state_e state_q;
  logic
      start,
      is_copy,
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
  logic [10:0] beats_q;  // of a copy, still to come
  logic last_beat;
  dma_done_t done;
  logic done_valid;

  assign start = state_q == StIdle && valid_i;
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
        align_req_q <= is_copy;
        write_req_q <= is_copy;
      end else begin
        if (read_req_ready) read_req_q <= 1'b0;
        if (align_req_ready) align_req_q <= 1'b0;
        if (state_q == StCrcWait && crc_wait_q == '0 && is_store) write_req_q <= 1'b1;
        else if (write_req_ready) write_req_q <= 1'b0;
      end
      unique case (state_q)
        StIdle:
        if (valid_i)
          unique case (move_i.kind)
            MoveCopy:  state_q <= StCopy;
            MoveStore: state_q <= StCrcWait;
            default:   state_q <= StRead;
          endcase
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
  logic [16:0] padded, read_bytes, write_bytes;
  logic [1:0] source_end;  // last source beat, counted from the first one, modulo 4
  logic [10:0] target_end;
  logic [1:0] beat_surplus;
  logic skip_q, flush_q, store_valid_q;
  logic [5:0] rotate_q;

  assign padded = (move_i.bytes + 17'd63) & ~17'd63;
  assign read_bytes = is_copy ? move_i.bytes : is_load ? 17'd64 : padded;
  assign write_bytes = (is_copy && move_i.pad) ? padded : move_i.bytes;
  assign source_end = 2'((18'(move_i.source[5:0]) + 18'(move_i.bytes) - 18'd1) >> 6);
  assign target_end = 11'((18'(move_i.target[5:0]) + 18'(move_i.bytes) - 18'd1) >> 6);
  assign beat_surplus = 2'(target_end) - source_end + 2'(move_i.target[5:0] < move_i.source[5:0]);

  always_ff @(posedge clk_i) begin
    if (start) begin
      rotate_q <= move_i.target[5:0] - move_i.source[5:0];
      skip_q <= move_i.target[5:0] < move_i.source[5:0];
      flush_q <= beat_surplus == 2'd1;
      beats_q <= target_end;
      read_error_q <= 1'b0;
      write_error_q <= 1'b0;
      line_q <= move_i.line;
    end else begin
      if (align_valid && write_ready) beats_q <= beats_q - 1'b1;
      if (state_q == StRead && read_valid) begin
        line_q <= read_data;
        read_error_q <= read_error_q || read_error;
      end
      if (state_q == StCrcWait && crc_wait_q == '0 && is_store && move_i.seal)
        line_q[511:480] <= crc_o;
      if (done_valid) begin
        read_error_q  <= read_error_q || done.read_error;
        write_error_q <= done.write_error;
      end
    end
    crc_wait_q <= (state_q == StCrcWait) ? crc_wait_q - 1'b1 : 2'd2;
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

  assign read_ready = !is_copy || align_ready;

  ns_dma_read #(
    .BurstBytes(BurstBytes),
    .Bursts    (Bursts)
  ) u_read (
    .clk_i,
    .rst_ni,
    .addr_i (64'(move_i.source)),
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
    .valid_i      (read_valid && is_copy),
    .ready_o      (align_ready),
    .data_o       (align_data),
    .error_o      (align_error),
    .valid_o      (align_valid),
    .ready_i      (write_ready)
  );

  // A padded target starts with a line. Bytes after its end are zeros.
  assign last_beat = beats_q == '0;
  always_comb begin
    write_data = align_data;
    if (is_store) write_data = line_q;
    else if (move_i.pad && last_beat && move_i.bytes[5:0] != '0)
      for (int unsigned i = 1; i < 64; i++)
      if (i >= 32'(move_i.bytes[5:0])) write_data[i*8+:8] = '0;
  end
  assign write_valid = is_store ? store_valid_q : align_valid;

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
    .error_i     (align_error && !is_store),
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
        feed_data = write_data;
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
    if (start) crc_q <= (is_copy || move_i.kind == MoveSum) ? '1 : '0;
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
