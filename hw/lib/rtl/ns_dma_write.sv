// SPDX-License-Identifier: Apache-2.0

// Write side of ns_dma: writes ranges in bursts, from beats that arrive in order.
//
// A burst starts only when all of its beats are present. So it never waits for data on the bus, and
// an event at its source never tears a logical block. Bursts have separate IDs, and may be answered
// in any order. Bytes that could not be read are not written.
`include "ns_assert.svh"

module ns_dma_write
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
#(
  /// Bytes of a burst.
  parameter int unsigned BurstBytes = 1024,
  /// Bursts whose response is outstanding, a power of two; IDs 0 to Bursts-1.
  parameter int unsigned Bursts = 16,
  /// Ranges in flight, a power of two.
  parameter int unsigned Ranges = 8,
  /// Beats buffered, at least two bursts.
  parameter int unsigned Depth = 64
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  /// Range: its first byte.
  input  logic [63:0]    addr_i,
  /// Its length, at least 1.
  input  logic [31:0]    bytes_i,
  input  logic           valid_i,
  output logic           ready_o,
  /// Beat: the bytes of a range at their offsets.
  input  logic [511:0]   data_i,
  /// It could not be read.
  input  logic           error_i,
  input  logic           data_valid_i,
  output logic           data_ready_o,
  /// The oldest range has been written and answered.
  output dma_done_t      done_o,
  output logic           done_valid_o,
  input  logic           done_ready_i,
  /// Memory.
  ns_axi_if.write_master m_axi
);

  localparam int unsigned Beats = BurstBytes / 64;
  localparam int unsigned BeatBits = unsigned'($clog2(Beats)) + 1;
  localparam int unsigned IdBits = unsigned'($clog2(Bursts));
  localparam int unsigned RangeBits = unsigned'($clog2(Ranges));
  localparam int unsigned AvailBits = unsigned'($clog2(Depth + 1));
  typedef logic [BeatBits-1:0] beats_t;
  typedef logic [IdBits-1:0] id_t;
  typedef logic [RangeBits-1:0] range_t;

  // A burst whose address has been sent.
  typedef struct packed {
    range_t     range;
    beats_t     beats;
    logic       first;  // of its range
    logic [5:0] start;
    logic       last;
    logic [5:0] stop;
  } burst_t;

  burst_t issued, burst;
  logic [63:0] addr;
  logic split_ready, burst_ready, burst_valid, aw_fire, w_fire, w_last, b_fire;
  logic split_valid;

  ns_dma_split #(
    .BurstBytes(BurstBytes)
  ) u_split (
    .clk_i,
    .rst_ni,
    .addr_i,
    .bytes_i,
    .valid_i,
    .ready_o,
    .addr_o (addr),
    .beats_o(issued.beats),
    .end_o  (issued.stop),
    .first_o(issued.first),
    .last_o (issued.last),
    .valid_o(split_valid),
    .ready_i(split_ready)
  );

  // Beats.
  logic [512:0] word;
  logic word_valid;
  logic [AvailBits-1:0] avail_q;  // not yet assigned to a burst

  ns_fifo #(
    .Width(513),
    .Depth(Depth),
    .Style("lutram")
  ) u_beats (
    .clk_i,
    .rst_ni,
    .in_valid_i (data_valid_i),
    .in_ready_o (data_ready_o),
    .in_data_i  ({error_i, data_i}),
    .out_valid_o(word_valid),
    .out_ready_i(w_fire),
    .out_data_o (word),
    .count_o    ()
  );

  // Addresses. A range has to end before its number is used again.
  range_t newest_q, oldest_q;
  id_t id_q;
  logic [Bursts-1:0] open_q;  // IDs without response
  logic [Ranges-1:0] started_q, issued_q, read_error_q, write_error_q;
  logic [IdBits:0] count_q[Ranges];
  range_t range_of[Bursts];
  logic done_fire, issue_ok;

  assign issued.range = newest_q;
  assign issued.start = addr[5:0];
  assign issue_ok = avail_q >= AvailBits'(issued.beats) && !open_q[id_q] && burst_ready && !issued_q[newest_q];
  assign m_axi.aw = '{
          id: IdWidth'(id_q),
          len: 8'(issued.beats - 1'b1),
          size: 3'd6,
          burst: BurstIncr,
          addr: addr & ~64'd63
      };
  assign m_axi.aw_valid = split_valid && issue_ok;
  assign split_ready = m_axi.aw_ready && issue_ok;
  assign aw_fire = split_valid && split_ready;

  ns_fifo #(
    .Width($bits(burst_t)),
    .Depth(4)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .in_valid_i (aw_fire),
    .in_ready_o (burst_ready),
    .in_data_i  (issued),
    .out_valid_o(burst_valid),
    .out_ready_i(w_fire && w_last),
    .out_data_o (burst),
    .count_o    ()
  );

  // Data.
  beats_t beat_q;
  logic [63:0] strb;

  assign w_last = beat_q + 1'b1 == burst.beats;
  always_comb begin
    strb = '1;
    if (burst.first && beat_q == '0) strb = strb << burst.start;
    if (burst.last && w_last) strb = strb & (64'hFFFF_FFFF_FFFF_FFFF >> (6'd63 - burst.stop));
    if (word[512]) strb = '0;
  end
  assign m_axi.w = '{last: w_last, strb: strb, data: word[511:0]};
  assign m_axi.w_valid = burst_valid && word_valid;
  assign w_fire = m_axi.w_valid && m_axi.w_ready;

  // Responses.
  id_t b_id;
  range_t b_range;
  assign b_id = id_t'(m_axi.b.id);
  assign b_range = range_of[b_id];
  assign m_axi.b_ready = 1'b1;
  assign b_fire = m_axi.b_valid;

  assign done_valid_o = issued_q[oldest_q] && count_q[oldest_q] == '0;
  assign done_o = '{write_error: write_error_q[oldest_q], read_error: read_error_q[oldest_q]};
  assign done_fire = done_valid_o && done_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      avail_q <= '0;
      beat_q <= '0;
      id_q <= '0;
      open_q <= '0;
      newest_q <= '0;
      oldest_q <= '0;
      started_q <= '0;
      issued_q <= '0;
      for (int unsigned i = 0; i < Ranges; i++) count_q[i] <= '0;
    end else begin
      avail_q <= avail_q + AvailBits'(data_valid_i && data_ready_o) - (aw_fire ? AvailBits'(issued.beats) : '0);
      if (w_fire) beat_q <= w_last ? '0 : beat_q + 1'b1;
      if (aw_fire) begin
        id_q <= id_q + 1'b1;
        open_q[id_q] <= 1'b1;
        started_q[newest_q] <= 1'b1;
        if (issued.last) begin
          issued_q[newest_q] <= 1'b1;
          newest_q <= newest_q + 1'b1;
        end
      end
      if (b_fire) open_q[b_id] <= 1'b0;
      if (aw_fire && !(b_fire && b_range == newest_q))
        count_q[newest_q] <= count_q[newest_q] + 1'b1;
      if (b_fire && !(aw_fire && b_range == newest_q)) count_q[b_range] <= count_q[b_range] - 1'b1;
      if (done_fire) begin
        started_q[oldest_q] <= 1'b0;
        issued_q[oldest_q] <= 1'b0;
        oldest_q <= oldest_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_fire) range_of[id_q] <= newest_q;
    if (aw_fire && !started_q[newest_q]) begin
      read_error_q[newest_q]  <= 1'b0;
      write_error_q[newest_q] <= 1'b0;
    end
    if (w_fire && word[512]) read_error_q[burst.range] <= 1'b1;
    if (b_fire && m_axi.b.resp[1]) write_error_q[b_range] <= 1'b1;
  end

  if (Bursts < 2 || 2 ** IdBits != Bursts || Ranges < 2 || 2 ** RangeBits != Ranges) begin : gen_bad_number
    $error("ns_dma_write: Bursts and Ranges must be powers of two of at least 2");
  end
  if (Depth < 2 * Beats) begin : gen_bad_depth
    $error("ns_dma_write: Depth must be at least two bursts");
  end

  `NS_ASSERT(response_was_requested, !b_fire || open_q[b_id])
  `NS_ASSERT(data_is_present, !burst_valid || word_valid)

endmodule
