// Scans a range of one memory channel: reads it in bursts of 256 bytes and counts its values between the bounds.
//
// After a read error or `stop_i` it reads no further; what was asked for is still awaited.
`include "ns_assert.svh"

module scan_channel
  import ns_axi_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  /// Begin; only while `busy_o` is 0.
  input  logic          start_i,
  /// Its first byte, local to the channel, a multiple of 4.
  input  logic [63:0]   addr_i,
  /// Its length, a multiple of 4; may be 0.
  input  logic [63:0]   bytes_i,
  /// See scan_count.
  input  logic          wide_i,
  /// See scan_count.
  input  logic          signed_i,
  /// See scan_count.
  input  logic [63:0]   low_i,
  /// See scan_count.
  input  logic [63:0]   high_i,
  /// The next beat may be taken.
  input  logic          ready_i,
  /// End early.
  input  logic          stop_i,
  /// From registers: it works.
  output logic          busy_o,
  /// Values counted since `start_i`. From registers.
  output logic [63:0]   count_o,
  /// A beat since then could not be read. From a register.
  output logic          error_o,
  /// Of a beat that has been looked at: which of its values are within the bounds (see scan_count).
  output logic [15:0]   bits_o,
  /// It is the last one.
  output logic          bits_last_o,
  output logic          bits_valid_o,
  /// Memory.
  ns_axi_if.read_master m_axi
);

  // A range is read in pieces, so that an end is never far.
  localparam int unsigned RequestBits = 12;

  logic [63:0] addr_q, bytes_left_q, count_q;
  logic [3:0] start_word_q, end_word_q;
  logic [2:0] in_flight_q;  // pieces under way
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

  // Only the range's ends stand within beats.
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
