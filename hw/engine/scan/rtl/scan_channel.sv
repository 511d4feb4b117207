// SPDX-License-Identifier: Apache-2.0

// Scans a range of one channel: reads it in bursts of 256 bytes and counts the values between the
// bounds.
//
// After a read error or `stop_i` it issues no further read and waits for those in flight.
`include "ns_assert.svh"

module scan_channel
  import ns_axi_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  /// Starts a scan, only while `busy_o` is 0.
  input  logic          start_i,
  /// First byte of the range, local to the channel, a multiple of 4.
  input  logic [63:0]   addr_i,
  /// Length of the range in bytes, a multiple of 4; can be 0.
  input  logic [63:0]   bytes_i,
  /// See scan_count.
  input  logic          wide_i,
  /// See scan_count.
  input  logic          signed_i,
  /// See scan_count.
  input  logic [63:0]   low_i,
  /// See scan_count.
  input  logic [63:0]   high_i,
  /// The next beat can be accepted.
  input  logic          ready_i,
  /// End the job early.
  input  logic          stop_i,
  /// The block is not idle. Driven by registers.
  output logic          busy_o,
  /// Values counted since `start_i`. Driven by registers.
  output logic [63:0]   count_o,
  /// A beat since `start_i` could not be read. Driven by a register.
  output logic          error_o,
  /// Which values of a compared beat lie between the bounds (see scan_count).
  output logic [15:0]   bits_o,
  /// `bits_o` belongs to the last beat of the range.
  output logic          bits_last_o,
  output logic          bits_valid_o,
  /// Memory port.
  ns_axi_if.read_master m_axi
);

  // A range is read in requests of at most 4 KiB, so that a stop takes effect soon.
  localparam int unsigned RequestBits = 12;

  logic [63:0] addr_q, bytes_left_q, count_q;
  logic [3:0] start_word_q, end_word_q;
  logic [2:0] in_flight_q;  // requests in flight
  logic halt_q, error_q, first_q;
  logic
      request_valid,
      request_ready,
      request_fire,
      request_last,
      beat_valid,
      beat_fire,
      beat_last,
      beat_error,
      final_beat;
  logic [RequestBits:0] page_left, bytes;
  logic [511:0] beat;
  logic [15:0] words;
  logic count_busy, count_valid;
  logic [4:0] count;

  assign page_left = (RequestBits + 1)'(2 ** RequestBits) - (RequestBits + 1)'(addr_q[RequestBits-1:0]);
  assign request_last = bytes_left_q <= 64'(page_left);
  assign bytes = request_last ? bytes_left_q[RequestBits:0] : page_left;
  assign request_valid = bytes_left_q != '0 && !halt_q && in_flight_q != '1;
  assign request_fire = request_valid && request_ready;

  ns_dma_read #(
    .BurstBytes(256),
    .Bursts    (16)
  ) u_read (
    .clk_i,
    .rst_ni,
    .addr_i (addr_q),
    .bytes_i(32'(bytes)),
    .valid_i(request_valid),
    .ready_o(request_ready),
    .data_o (beat),
    .error_o(beat_error),
    .last_o (beat_last),
    .valid_o(beat_valid),
    .ready_i(ready_i),
    .m_axi
  );

  // Only the first and last beats of the range can be partial.
  assign beat_fire = beat_valid && ready_i;
  assign final_beat = beat_last && bytes_left_q == '0 && in_flight_q == 3'd1;
  always_comb begin
    for (int unsigned i = 0; i < 16; i++)
    words[i] = (!first_q || i >= 32'(start_word_q)) && (!final_beat || i <= 32'(end_word_q));
  end

  scan_count u_count (
    .clk_i,
    .rst_ni,
    .wide_i,
    .signed_i,
    .low_i,
    .high_i,
    .data_i (beat),
    .words_i(words),
    .last_i (final_beat),
    .valid_i(beat_fire),
    .count_o(count),
    .bits_o,
    .last_o (bits_last_o),
    .valid_o(count_valid),
    .busy_o (count_busy)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bytes_left_q <= '0;
      in_flight_q  <= '0;
      halt_q       <= 1'b0;
      error_q      <= 1'b0;
      first_q      <= 1'b0;
    end else begin
      if (start_i) bytes_left_q <= bytes_i;
      else if (request_fire) bytes_left_q <= bytes_left_q - 64'(bytes);
      in_flight_q <= in_flight_q + 3'(request_fire) - 3'(beat_fire && beat_last);
      if (start_i) begin
        halt_q  <= 1'b0;
        error_q <= 1'b0;
        first_q <= 1'b1;
      end else begin
        if (stop_i || (beat_fire && beat_error)) halt_q <= 1'b1;
        if (beat_fire && beat_error) error_q <= 1'b1;
        if (beat_fire) first_q <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      addr_q <= addr_i;
      start_word_q <= addr_i[5:2];
      end_word_q <= 4'((addr_i[5:0] + bytes_i[5:0] - 6'd1) >> 2);
      count_q <= '0;
    end else begin
      if (request_fire) addr_q <= addr_q + 64'(bytes);
      if (count_valid) count_q <= count_q + 64'(count);
    end
  end

  assign busy_o  = (bytes_left_q != '0 && !halt_q) || in_flight_q != '0 || count_busy;
  assign bits_valid_o = count_valid;
  assign count_o = count_q;
  assign error_o = error_q;

  `NS_ASSERT(start_when_idle, !start_i || !busy_o)
  `NS_ASSERT(beat_is_expected, !(beat_valid && in_flight_q == '0))

endmodule
