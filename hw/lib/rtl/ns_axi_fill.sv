// SPDX-License-Identifier: Apache-2.0

// Zero filler: stands in the write channels of a memory controller and writes zeros on request.
//
// It serves one request at a time: a number of blocks of 512 bytes from an address on. The request
// ends when the memory has answered for all blocks. After `fill_stop_i` it ends when the started
// bursts are answered: each block is then zero or unchanged. Writes of the master pass without
// delay and alternate with the filler's bursts. The filler's bursts are INCR with 64 bytes a beat,
// end at multiples of BurstBytes, and carry the ID `Id`. The master must not use that ID for
// writes.
//
// Assumes that the master's write data follows its address. Reads pass. The order of a fill and
// other accesses to the same blocks is left to the requester.
`include "ns_assert.svh"

module ns_axi_fill
  import ns_axi_pkg::*;
#(
  /// Bytes of a burst: a power of two, 512 to 4096.
  parameter int unsigned        BurstBytes = 1024,
  /// Bursts whose response is outstanding.
  parameter int unsigned        MaxBursts  = 16,
  /// Bits of a request's number of blocks.
  parameter int unsigned        CountWidth = 16,
  /// ID of its writes.
  parameter logic [IdWidth-1:0] Id         = '1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  /// From registers: a request or a write of the master is in progress.
  output logic                  busy_o,

  /// Request: address, a multiple of 512.
  input  logic [AddrWidth-1:0]  fill_addr_i,
  /// Blocks of 512 bytes, at least one.
  input  logic [CountWidth-1:0] fill_blocks_i,
  input  logic                  fill_valid_i,
  output logic                  fill_ready_o,
  /// Ends the active request at the end of a block. A level: held until fill_done_o.
  input  logic                  fill_stop_i,
  /// The request has ended; for one cycle.
  output logic                  fill_done_o,
  /// With fill_done_o: the memory has reported an error.
  output logic                  fill_error_o,

  /// Master.
  ns_axi_if.slave s_axi,

  /// Memory controller.
  ns_axi_if.master m_axi
);

  localparam int unsigned BurstBlocks = BurstBytes / 512;
  localparam int unsigned BurstBits = unsigned'($clog2(BurstBytes));
  localparam int unsigned BeatBits = BurstBits - 6;
  localparam int unsigned OpenBits = unsigned'($clog2(MaxBursts + 1));
  typedef logic [CountWidth-1:0] count_t;

  // Remaining part of the request.
  logic active_q, error_q;
  logic [AddrWidth-1:9] block_q;
  count_t left_q;
  logic [OpenBits-1:0] open_q;  // bursts without response

  // The newest burst: its address while it is pending, and its beats while the bursts before it
  // have data left.
  logic aw_valid_q, next_q;
  ax_t aw_q;
  logic [BeatBits:0] next_beats_q, beats_q;

  // Writes of the master with incomplete data, and the arbitration between both.
  logic [7:0] s_writes_q;
  logic s_turn_q;

  logic
      w_active,
      burst_wanted,
      beats_load,
      burst_start,
      s_aw_open,
      s_aw_fire,
      s_w_last_fire,
      burst_end,
      w_last;
  count_t aligned_blocks, burst_blocks;

  assign w_active = beats_q != '0;
  assign w_last = beats_q == (BeatBits + 1)'(1);
  assign burst_wanted = left_q != '0 && !fill_stop_i && open_q != OpenBits'(MaxBursts);
  assign beats_load = next_q && (!w_active || (w_last && m_axi.w_ready));
  assign burst_start = burst_wanted && (!aw_valid_q || m_axi.aw_ready) && (!next_q || beats_load) && s_writes_q == '0
      && !(s_turn_q && s_axi.aw_valid);
  assign s_aw_open = !aw_valid_q && !next_q && !w_active && !(burst_wanted && !s_turn_q) && s_writes_q != '1;

  // Blocks up to the next multiple of BurstBytes, or to the end.
  assign aligned_blocks = count_t'(BurstBlocks) - (count_t'(block_q) & count_t'(BurstBlocks - 1));
  assign burst_blocks = (left_q < aligned_blocks) ? left_q : aligned_blocks;

  assign m_axi.aw = aw_valid_q ? aw_q : s_axi.aw;
  assign m_axi.aw_valid = aw_valid_q || (s_axi.aw_valid && s_aw_open);
  assign s_axi.aw_ready = m_axi.aw_ready && s_aw_open;
  assign s_aw_fire = s_axi.aw_valid && s_axi.aw_ready;

  assign m_axi.w = w_active ? '{last: w_last, strb: '1, data: '0} : s_axi.w;
  assign m_axi.w_valid = w_active || (s_axi.w_valid && s_writes_q != '0);
  assign s_axi.w_ready = m_axi.w_ready && !w_active && s_writes_q != '0;
  assign s_w_last_fire = s_axi.w_valid && s_axi.w_ready && s_axi.w.last;

  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid && m_axi.b.id != Id;
  assign m_axi.b_ready = m_axi.b.id == Id || s_axi.b_ready;
  assign burst_end = m_axi.b_valid && m_axi.b.id == Id;

  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid;
  assign s_axi.ar_ready = m_axi.ar_ready;
  assign s_axi.r = m_axi.r;
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

  assign fill_ready_o = !active_q;
  assign fill_done_o = active_q && open_q == '0 && (left_q == '0 || fill_stop_i);
  assign fill_error_o = error_q;
  assign busy_o = active_q || s_writes_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      left_q <= '0;
      open_q <= '0;
      aw_valid_q <= 1'b0;
      next_q <= 1'b0;
      beats_q <= '0;
      s_writes_q <= '0;
      s_turn_q <= 1'b0;
    end else begin
      if (fill_valid_i && fill_ready_o) begin
        active_q <= 1'b1;
        left_q <= fill_blocks_i;
      end else if (fill_done_o) begin
        active_q <= 1'b0;
        left_q <= '0;
      end else if (burst_start) begin
        left_q <= left_q - burst_blocks;
      end
      open_q <= open_q + OpenBits'(burst_start) - OpenBits'(burst_end);
      s_writes_q <= s_writes_q + 8'(s_aw_fire) - 8'(s_w_last_fire);
      if (burst_start) aw_valid_q <= 1'b1;
      else if (m_axi.aw_ready) aw_valid_q <= 1'b0;
      if (burst_start) next_q <= 1'b1;
      else if (beats_load) next_q <= 1'b0;
      if (beats_load) beats_q <= next_beats_q;
      else if (w_active && m_axi.w_ready) beats_q <= beats_q - 1'b1;
      if (burst_start) s_turn_q <= 1'b1;
      else if (s_aw_fire) s_turn_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fill_valid_i && fill_ready_o) begin
      block_q <= fill_addr_i[AddrWidth-1:9];
      error_q <= 1'b0;
    end else begin
      if (burst_start) block_q <= block_q + (AddrWidth - 9)'(burst_blocks);
      if (burst_end && m_axi.b.resp[1]) error_q <= 1'b1;
    end
    if (burst_start) begin
      next_beats_q <= (BeatBits + 1)'({burst_blocks, 3'd0});
      aw_q <= '{
          id: Id,
          len: 8'({burst_blocks, 3'd0} - 1'b1),
          size: 3'd6,
          burst: BurstIncr,
          addr: {block_q, 9'd0}
      };
    end
  end

  if (BurstBytes < 512 || BurstBytes > 4096 || 2 ** BurstBits != BurstBytes) begin : gen_bad_burst
    $error("ns_axi_fill: BurstBytes must be a power of two from 512 to 4096");
  end

  logic unused;
  assign unused = ^fill_addr_i[8:0];

  `NS_ASSERT(whole_blocks, !fill_valid_i || (fill_addr_i[8:0] == '0 && fill_blocks_i != '0))
  `NS_ASSERT(id_is_reserved, !s_axi.aw_valid || s_axi.aw.id != Id)
  `NS_ASSERT(response_expected, !burst_end || open_q != '0)

endmodule
