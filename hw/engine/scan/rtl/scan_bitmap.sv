// SPDX-License-Identifier: Apache-2.0

// Assembles the result bits of one channel's values into lines of the bitmap.
//
// A beat of 64 bytes yields 16 bits, or 8 bits for 64-bit values. Beats arrive in the order of the
// channel's addresses. Between two granules of a channel lie the bits of the other channels'
// granules.
`include "ns_assert.svh"

module scan_bitmap
  import scan_pkg::*;
#(
  /// Channels of the storage, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Granule of the channels in bytes, a power of two.
  parameter int unsigned Granule = 4096
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Starts a scan.
  input  logic         start_i,
  /// Byte position on the media of the first beat's bits; even unless `wide_i`.
  input  logic [63:0]  pos_i,
  /// Address of the first beat within its granule.
  input  logic [$clog2(Granule)-1:0] offset_i,
  /// Values have 64 bits.
  input  logic         wide_i,
  /// `bits_i` and `last_i` are valid.
  input  logic         valid_i,
  /// Result bits of a beat, first value first.
  input  logic [15:0]  bits_i,
  /// These are the last bits of the range.
  input  logic         last_i,
  /// The line queue has room for the bits of all beats in flight.
  output logic         room_o,

  /// Lines are queued. Driven by registers.
  output logic         busy_o,
  output bitmap_line_t line_o,
  output logic         valid_o,
  input  logic         ready_i
);

  localparam int unsigned BeatBits = unsigned'($clog2(Granule / 64));
  localparam int unsigned Lines = 16;
  // Upper bound of the beats in flight between this module's input and scan_channel's beat port.
  // Each becomes at most one line.
  localparam int unsigned BeatsInFlight = 8;

  logic [63:0] pos_q;
  logic [BeatBits-1:0] beat_q;  // within the granule
  bitmap_line_t line_q;
  logic [63:0] partial_strb_q;
  logic [511:0] partial_data_q;
  logic line_valid_q, granule_last, line_complete;
  logic [63:0] strb;
  logic [511:0] data;
  logic [63:0] step, jump;
  logic [$clog2(Lines+1)-1:0] count;

  assign granule_last = beat_q == '1;
  // Bitmap bytes of a beat, and of the granules between this one and the channel's next one.
  assign step = wide_i ? 64'd1 : 64'd2;
  assign jump = (64'(NumChannels - 1) * 64'(Granule / 64)) << (wide_i ? 0 : 1);
  assign line_complete = last_i || granule_last || (wide_i ? pos_q[5:0] == 6'd63 : pos_q[5:1] == 5'd31);

  always_comb begin
    strb = partial_strb_q;
    data = partial_data_q;
    for (int unsigned b = 0; b < 64; b++) begin
      if (wide_i ? pos_q[5:0] == 6'(b) : pos_q[5:1] == 5'(b / 2)) begin
        strb[b] = 1'b1;
        data[8*b+:8] = (!wide_i && b % 2 == 1) ? bits_i[15:8] : bits_i[7:0];
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      partial_strb_q <= '0;
      line_valid_q <= 1'b0;
      beat_q <= '0;
    end else begin
      line_valid_q <= valid_i && line_complete;
      if (start_i) begin
        partial_strb_q <= '0;
        beat_q <= offset_i[6+:BeatBits];
      end else if (valid_i) begin
        partial_strb_q <= line_complete ? '0 : strb;
        beat_q <= beat_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) pos_q <= pos_i;
    else if (valid_i) pos_q <= pos_q + step + (granule_last ? jump : '0);
    if (valid_i) begin
      partial_data_q <= data;
      line_q <= '{strb: strb, addr: {pos_q[63:6], 6'd0}, data: data};
    end
  end

  ns_fifo #(
    .Width($bits(bitmap_line_t)),
    .Depth(Lines)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .in_valid_i (line_valid_q),
    .in_ready_o (),
    .in_data_i  (line_q),
    .out_valid_o(valid_o),
    .out_ready_i(ready_i),
    .out_data_o (line_o),
    .count_o    (count)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) room_o <= 1'b0;
    else room_o <= 32'(count) <= Lines - BeatsInFlight;
  end

  assign busy_o = line_valid_q || valid_o;

  logic unused;
  assign unused = ^{offset_i[5:0]};

  `NS_ASSERT(line_has_room, !line_valid_q || 32'(count) < Lines)

endmodule
