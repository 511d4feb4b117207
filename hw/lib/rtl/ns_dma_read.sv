// SPDX-License-Identifier: Apache-2.0

// Read side of ns_dma: reads ranges in bursts and delivers their beats in order.
//
// Each burst has a separate buffer segment and ID. So memories may answer the bursts in any order
// and interleave their beats, and several channels serve one range at the same time. One beat a
// cycle.
`include "ns_assert.svh"

module ns_dma_read
  import ns_axi_pkg::*;
#(
  /// Bytes of a burst.
  parameter int unsigned BurstBytes = 1024,
  /// Bursts in flight or in the buffer, a power of two; IDs 0 to Bursts-1.
  parameter int unsigned Bursts = 16
) (
  input  logic          clk_i,
  input  logic          rst_ni,
  /// Range: its first byte.
  input  logic [63:0]   addr_i,
  /// Its length, at least 1.
  input  logic [31:0]   bytes_i,
  input  logic          valid_i,
  output logic          ready_o,
  /// Beat, with the alignment of the bus.
  output logic [511:0]  data_o,
  /// It could not be read.
  output logic          error_o,
  /// Last beat of its range.
  output logic          last_o,
  output logic          valid_o,
  input  logic          ready_i,
  /// Memory.
  ns_axi_if.read_master m_axi
);

  localparam int unsigned Beats = BurstBytes / 64;
  localparam int unsigned BeatBits = unsigned'($clog2(Beats)) + 1;
  localparam int unsigned SlotBits = unsigned'($clog2(Bursts));
  localparam int unsigned WordBits = SlotBits + BeatBits - 1;
  typedef logic [SlotBits-1:0] slot_t;
  typedef logic [BeatBits-1:0] beats_t;

  logic [63:0] burst_first;
  beats_t burst_beats;
  logic burst_last, burst_valid, burst_ready;

  ns_dma_split #(
    .BurstBytes(BurstBytes)
  ) u_split (
    .clk_i,
    .rst_ni,
    .addr_i,
    .bytes_i,
    .valid_i,
    .ready_o,
    .addr_o (burst_first),
    .beats_o(burst_beats),
    .end_o  (),
    .first_o(),
    .last_o (burst_last),
    .valid_o(burst_valid),
    .ready_i(burst_ready)
  );

  // The slots form a ring: `head_q` is the next one to be requested, `tail_q` the one being
  // delivered.
  slot_t head_q, tail_q, r_slot;
  logic [SlotBits:0] used_q;
  logic ar_fire, free;
  beats_t expected[Bursts];
  logic [Bursts-1:0] final_q;  // last burst of its range
  beats_t arrived_q[Bursts];

  assign m_axi.ar = '{
          id: IdWidth'(head_q),
          len: 8'(burst_beats - 1'b1),
          size: 3'd6,
          burst: BurstIncr,
          addr: burst_first & ~64'd63
      };
  assign m_axi.ar_valid = burst_valid && used_q != (SlotBits + 1)'(Bursts);
  assign burst_ready = m_axi.ar_ready && used_q != (SlotBits + 1)'(Bursts);
  assign ar_fire = m_axi.ar_valid && m_axi.ar_ready;

  // Every beat that arrives has a buffer entry.
  assign r_slot = slot_t'(m_axi.r.id);
  assign m_axi.r_ready = 1'b1;

  // Beats leave the buffer as soon as they are there, into registers that hide the read latency of
  // the buffer.
  beats_t out_q;  // beats of the slot `tail_q` that have left
  logic fetch, fetched_q, fetched_last_q, out_ready, slot_end;

  assign fetch = used_q != '0 && arrived_q[tail_q] != out_q && out_ready;
  assign slot_end = out_q + 1'b1 == expected[tail_q];
  assign free = fetch && slot_end;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
      used_q <= '0;
      out_q <= '0;
      fetched_q <= 1'b0;
      for (int unsigned i = 0; i < Bursts; i++) arrived_q[i] <= '0;
    end else begin
      if (ar_fire) head_q <= head_q + 1'b1;
      if (free) tail_q <= tail_q + 1'b1;
      if (ar_fire && !free) used_q <= used_q + 1'b1;
      if (!ar_fire && free) used_q <= used_q - 1'b1;
      if (fetch) out_q <= slot_end ? '0 : out_q + 1'b1;
      if (m_axi.r_valid) arrived_q[r_slot] <= arrived_q[r_slot] + 1'b1;
      if (free) arrived_q[tail_q] <= '0;
      fetched_q <= fetch;
    end
  end

  always_ff @(posedge clk_i) begin
    if (ar_fire) begin
      expected[head_q] <= burst_beats;
      final_q[head_q]  <= burst_last;
    end
    if (fetch) fetched_last_q <= slot_end && final_q[tail_q];
  end

  logic [512:0] word;

  ns_ram_1r1w #(
    .Width(513),
    .Depth(Bursts * Beats),
    .Style("bram")
  ) u_buffer (
    .clk_i,
    .we_i   (m_axi.r_valid),
    .waddr_i(WordBits'({r_slot, arrived_q[r_slot][BeatBits-2:0]})),
    .wdata_i({m_axi.r.resp[1], m_axi.r.data}),
    .re_i   (fetch),
    .raddr_i(WordBits'({tail_q, out_q[BeatBits-2:0]})),
    .rdata_o(word)
  );

  logic [1:0] count;

  ns_fifo #(
    .Width(514),
    .Depth(3),
    .Style("reg")
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (fetched_q),
    .in_ready_o (),
    .in_data_i  ({fetched_last_q, word}),
    .out_valid_o(valid_o),
    .out_ready_i(ready_i),
    .out_data_o ({last_o, error_o, data_o}),
    .count_o    (count)
  );

  assign out_ready = count + 2'(fetched_q) < 2'd3;

  if (Bursts < 2 || 2 ** SlotBits != Bursts) begin : gen_bad_bursts
    $error("ns_dma_read: Bursts must be a power of two of at least 2");
  end

  `NS_ASSERT(beat_was_requested, !m_axi.r_valid || arrived_q[r_slot] != expected[r_slot])
  `NS_ASSERT(last_beat_matches_request,
             !m_axi.r_valid || m_axi.r.last == (arrived_q[r_slot] + 1'b1 == expected[r_slot]))

endmodule
