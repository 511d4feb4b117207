// SPDX-License-Identifier: Apache-2.0

// Writes the bitmap lines of all channels to the channels that hold them.
`include "ns_assert.svh"

module scan_write
  import ns_axi_pkg::*;
  import scan_pkg::*;
#(
  /// Channels of the storage, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Granule of the channels in bytes, a power of two.
  parameter int unsigned Granule = 4096,
  /// Size of the media in bytes.
  parameter longint unsigned MediaBytes = 64'h4000_0000
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  /// Lines are in flight. Driven by registers.
  output logic                           busy_o,
  /// A line could not be written since `clear_i`. Driven by a register.
  output logic                           error_o,
  input  logic                           clear_i,

  /// Bitmap lines of each channel's values.
  input  bitmap_line_t [NumChannels-1:0] line_i,
  input  logic         [NumChannels-1:0] valid_i,
  output logic         [NumChannels-1:0] ready_o,

  /// Memory ports. Only the write channels are used.
  ns_axi_if.write_master m_mem[NumChannels]
);

  localparam int unsigned IdBits = 4;
  localparam int unsigned CountBits = IdBits + 1;

  logic [NumChannels-1:0] gnt;
  logic [idx_width(NumChannels)-1:0] idx;
  logic gnt_valid, line_fire, aw_done_q, w_done_q, in_flight_full;
  logic [IdBits-1:0] id_q;
  logic [CountBits-1:0] in_flight_q;
  bitmap_line_t line_q;
  logic valid_q, line_sent, b_fire, error_q;

  ns_axi_if merged_axi ();
  ns_axi_if channel_axi[NumChannels] ();

  ns_rr_arbiter #(
    .N(NumChannels)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (valid_i),
    .next_i (line_fire),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(gnt_valid)
  );

  assign line_fire = gnt_valid && (!valid_q || line_sent) && !in_flight_full;
  assign ready_o = gnt & {NumChannels{line_fire}};
  assign in_flight_full = in_flight_q[CountBits-1];
  assign line_sent = (aw_done_q || merged_axi.aw_ready) && (w_done_q || merged_axi.w_ready);
  assign b_fire = merged_axi.b_valid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      aw_done_q <= 1'b0;
      w_done_q <= 1'b0;
      id_q <= '0;
      in_flight_q <= '0;
      error_q <= 1'b0;
    end else begin
      if (line_fire) valid_q <= 1'b1;
      else if (line_sent) valid_q <= 1'b0;
      aw_done_q <= valid_q && !line_sent && (aw_done_q || merged_axi.aw_ready);
      w_done_q <= valid_q && !line_sent && (w_done_q || merged_axi.w_ready);
      if (valid_q && line_sent) id_q <= id_q + 1'b1;
      in_flight_q <= in_flight_q + CountBits'(line_fire) - CountBits'(b_fire);
      if (clear_i) error_q <= 1'b0;
      else if (b_fire && merged_axi.b.resp != RespOkay) error_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) if (line_fire) line_q <= line_i[idx];

  assign merged_axi.aw = '{id: IdWidth'(id_q), len: '0, size: 3'd6, burst: BurstIncr, addr: line_q.addr};
  assign merged_axi.aw_valid = valid_q && !aw_done_q;
  assign merged_axi.w = '{last: 1'b1, strb: line_q.strb, data: line_q.data};
  assign merged_axi.w_valid = valid_q && !w_done_q;
  assign merged_axi.b_ready = 1'b1;
  assign merged_axi.ar = '0;
  assign merged_axi.ar_valid = 1'b0;
  assign merged_axi.r_ready = 1'b1;

  ns_axi_demux #(
    .M        (NumChannels),
    .Granule  (Granule),
    .Bytes    (MediaBytes),
    .OrderBits(IdBits)
  ) u_demux (
    .clk_i,
    .rst_ni,
    .s_axi(merged_axi),
    .m_axi(channel_axi)
  );

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    assign m_mem[c].aw = channel_axi[c].aw;
    assign m_mem[c].aw_valid = channel_axi[c].aw_valid;
    assign channel_axi[c].aw_ready = m_mem[c].aw_ready;
    assign m_mem[c].w = channel_axi[c].w;
    assign m_mem[c].w_valid = channel_axi[c].w_valid;
    assign channel_axi[c].w_ready = m_mem[c].w_ready;
    assign channel_axi[c].b = m_mem[c].b;
    assign channel_axi[c].b_valid = m_mem[c].b_valid;
    assign m_mem[c].b_ready = channel_axi[c].b_ready;
    assign channel_axi[c].ar_ready = 1'b1;
    assign channel_axi[c].r = '0;
    assign channel_axi[c].r_valid = 1'b0;
  end

  assign busy_o = in_flight_q != '0;
  assign error_o = error_q;

  logic unused;
  assign unused = ^{merged_axi.b.id, merged_axi.ar_ready, merged_axi.r, merged_axi.r_valid};

endmodule
