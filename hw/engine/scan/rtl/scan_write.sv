// Writes the bitmap's lines of all channels, each to the channel that it lies in.
`include "ns_assert.svh"

module scan_write
  import ns_axi_pkg::*;
  import scan_pkg::*;
#(
  /// Memory channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next one's turn, a power of two.
  parameter int unsigned Granule = 4096,
  /// Bytes of the media.
  parameter longint unsigned MediaBytes = 64'h4000_0000
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  /// From registers: lines are under way.
  output logic                           busy_o,
  /// One could not be written, since `clear_i`. From a register.
  output logic                           error_o,
  input  logic                           clear_i,

  /// Lines of each channel's values.
  input  bitmap_line_t [NumChannels-1:0] line_i,
  input  logic         [NumChannels-1:0] valid_i,
  output logic         [NumChannels-1:0] ready_o,

  /// Memory; only the write channels are used.
  ns_axi_if.write_master m_mem[NumChannels]
);

  localparam int unsigned IdBits = 4;
  localparam int unsigned OpenBits = IdBits + 1;

  logic [NumChannels-1:0] gnt;
  logic [idx_width(NumChannels)-1:0] idx;
  logic any, take, aw_done_q, w_done_q, full;
  logic [IdBits-1:0] id_q;
  logic [OpenBits-1:0] open_q;
  bitmap_line_t line_q;
  logic valid_q, sent, ended, error_q;

  ns_axi_if all ();
  ns_axi_if mem[NumChannels] ();

  ns_rr_arbiter #(
    .N(NumChannels)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (valid_i),
    .next_i (take),
    .gnt_o  (gnt),
    .idx_o  (idx),
    .valid_o(any)
  );

  assign take = any && (!valid_q || sent) && !full;
  assign ready_o = gnt & {NumChannels{take}};
  assign full = open_q[OpenBits-1];
  assign sent = (aw_done_q || all.aw_ready) && (w_done_q || all.w_ready);
  assign ended = all.b_valid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      aw_done_q <= 1'b0;
      w_done_q <= 1'b0;
      id_q <= '0;
      open_q <= '0;
      error_q <= 1'b0;
    end else begin
      if (take) valid_q <= 1'b1;
      else if (sent) valid_q <= 1'b0;
      aw_done_q <= valid_q && !sent && (aw_done_q || all.aw_ready);
      w_done_q <= valid_q && !sent && (w_done_q || all.w_ready);
      if (valid_q && sent) id_q <= id_q + 1'b1;
      open_q <= open_q + OpenBits'(take) - OpenBits'(ended);
      if (clear_i) error_q <= 1'b0;
      else if (ended && all.b.resp != RespOkay) error_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) if (take) line_q <= line_i[idx];

  assign all.aw = '{id: IdWidth'(id_q), len: '0, size: 3'd6, burst: BurstIncr, addr: line_q.addr};
  assign all.aw_valid = valid_q && !aw_done_q;
  assign all.w = '{last: 1'b1, strb: line_q.strb, data: line_q.data};
  assign all.w_valid = valid_q && !w_done_q;
  assign all.b_ready = 1'b1;
  assign all.ar = '0;
  assign all.ar_valid = 1'b0;
  assign all.r_ready = 1'b1;

  ns_axi_demux #(
    .M        (NumChannels),
    .Granule  (Granule),
    .Bytes    (MediaBytes),
    .OrderBits(IdBits)
  ) u_demux (
    .clk_i,
    .rst_ni,
    .s_axi(all),
    .m_axi(mem)
  );

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    assign m_mem[c].aw = mem[c].aw;
    assign m_mem[c].aw_valid = mem[c].aw_valid;
    assign mem[c].aw_ready = m_mem[c].aw_ready;
    assign m_mem[c].w = mem[c].w;
    assign m_mem[c].w_valid = mem[c].w_valid;
    assign mem[c].w_ready = m_mem[c].w_ready;
    assign mem[c].b = m_mem[c].b;
    assign mem[c].b_valid = m_mem[c].b_valid;
    assign m_mem[c].b_ready = mem[c].b_ready;
    assign mem[c].ar_ready = 1'b1;
    assign mem[c].r = '0;
    assign mem[c].r_valid = 1'b0;
  end

  assign busy_o = open_q != '0;
  assign error_o = error_q;

  logic unused;
  assign unused = ^{all.b.id, all.ar_ready, all.r, all.r_valid};

endmodule
