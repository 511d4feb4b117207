// Puts the bits of one channel's values at their places in the bitmap, and hands it on line by line.
//
// A beat of 64 bytes has 16 bits, or 8 of values of 64 bits. Beats come in the order of the channel's addresses; where a granule ends, the
// bits of the other channels' granules lie between.
`include "ns_assert.svh"

module scan_bitmap
  import scan_pkg::*;
#(
  /// Memory channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next one's turn, a power of two.
  parameter int unsigned Granule = 4096
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// Begin.
  input  logic         start_i,
  /// Place of the first beat's bits on the media, even unless `wide_i`.
  input  logic [63:0]  pos_i,
  /// Address of the first beat within its granule.
  input  logic [$clog2(Granule)-1:0] offset_i,
  /// Values have 64 bits.
  input  logic         wide_i,
  /// There are bits.
  input  logic         valid_i,
  /// They, from the first value on.
  input  logic [15:0]  bits_i,
  /// The last ones.
  input  logic         last_i,
  /// There is room for all that may come of beats already asked for.
  output logic         room_o,

  /// Lines wait. From registers.
  output logic         busy_o,
  output bitmap_line_t line_o,
  output logic         valid_o,
  input  logic         ready_i
);

  localparam int unsigned BeatBits = unsigned'($clog2(Granule / 64));
  localparam int unsigned Lines = 16;
  // A beat is looked at some cycles after it has been taken, and becomes a line at most.
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
  // The bits of a granule, and those of the granules between this one and the channel's next one.
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
