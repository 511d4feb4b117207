// Zero filler: stands in the write channels in front of a memory controller and writes zeros there on request.
//
// One request at a time: so many blocks of 512 bytes from an address on. It answers when the memory has answered for all of
// them, or, after `fill_stop_i`, for those that have begun: each block is then zero or as it was. Bursts of others pass
// without delay and take turns with the filler's. These are INCR, 64 bytes a beat, end at multiples of BurstBytes, and carry
// the ID `Id`, which nobody else may use for writes.
// Assumes that write data of others comes no earlier than its address. Reads go past it. Says nothing of the order between a
// fill and others' accesses to the same blocks: who asks takes care of that.
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
  /// From registers: a request or a burst of others is inside.
  output logic                  busy_o,

  /// Request: address, a multiple of 512.
  input  logic [AddrWidth-1:0]  fill_addr_i,
  /// Blocks of 512 bytes, at least one.
  input  logic [CountWidth-1:0] fill_blocks_i,
  input  logic                  fill_valid_i,
  output logic                  fill_ready_o,
  /// End the request that is under way at a block's end. A level: held until fill_done_o.
  input  logic                  fill_stop_i,
  /// It has ended; for one cycle.
  output logic                  fill_done_o,
  /// With fill_done_o: the memory has answered with an error.
  output logic                  fill_error_o,

  /// Accesses of others.
  ns_axi_if.slave s_axi,

  /// The memory.
  ns_axi_if.master m_axi
);

  localparam int unsigned BurstBlocks = BurstBytes / 512;
  localparam int unsigned BurstBits = unsigned'($clog2(BurstBytes));
  localparam int unsigned BeatBits = BurstBits - 6;
  localparam int unsigned OpenBits = unsigned'($clog2(MaxBursts + 1));
  typedef logic [CountWidth-1:0] count_t;

  // The request: what is left of it.
  logic active_q, error_q;
  logic [AddrWidth-1:9] block_q;
  count_t left_q;
  logic [OpenBits-1:0] open_q;  // bursts without a response

  // The newest burst: its address, if that has not left; its beats, if those before it have not ended. Beats left of the
  // present one.
  logic aw_valid_q, next_q;
  ax_t aw_q;
  logic [BeatBits:0] next_beats_q, beats_q;

  // Bursts of others whose data has not ended. Whose turn it is: 1, theirs.
  logic [7:0] others_q;
  logic turn_q;

  logic filling, want, load, start, s_open, s_begins, s_ends, ends, w_last;
  count_t room, blocks;

  assign filling = beats_q != '0;
  assign w_last = beats_q == (BeatBits + 1)'(1);
  assign want = left_q != '0 && !fill_stop_i && open_q != OpenBits'(MaxBursts);
  assign load = next_q && (!filling || (w_last && m_axi.w_ready));
  assign start = want && (!aw_valid_q || m_axi.aw_ready) && (!next_q || load) && others_q == '0
      && !(turn_q && s_axi.aw_valid);
  assign s_open = !aw_valid_q && !next_q && !filling && !(want && !turn_q) && others_q != '1;

  // Blocks to the next multiple of BurstBytes, or to the end.
  assign room = count_t'(BurstBlocks) - (count_t'(block_q) & count_t'(BurstBlocks - 1));
  assign blocks = (left_q < room) ? left_q : room;

  assign m_axi.aw = aw_valid_q ? aw_q : s_axi.aw;
  assign m_axi.aw_valid = aw_valid_q || (s_axi.aw_valid && s_open);
  assign s_axi.aw_ready = m_axi.aw_ready && s_open;
  assign s_begins = s_axi.aw_valid && s_axi.aw_ready;

  assign m_axi.w = filling ? '{last: w_last, strb: '1, data: '0} : s_axi.w;
  assign m_axi.w_valid = filling || (s_axi.w_valid && others_q != '0);
  assign s_axi.w_ready = m_axi.w_ready && !filling && others_q != '0;
  assign s_ends = s_axi.w_valid && s_axi.w_ready && s_axi.w.last;

  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid && m_axi.b.id != Id;
  assign m_axi.b_ready = m_axi.b.id == Id || s_axi.b_ready;
  assign ends = m_axi.b_valid && m_axi.b.id == Id;

  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid;
  assign s_axi.ar_ready = m_axi.ar_ready;
  assign s_axi.r = m_axi.r;
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

  assign fill_ready_o = !active_q;
  assign fill_done_o = active_q && open_q == '0 && (left_q == '0 || fill_stop_i);
  assign fill_error_o = error_q;
  assign busy_o = active_q || others_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      left_q <= '0;
      open_q <= '0;
      aw_valid_q <= 1'b0;
      next_q <= 1'b0;
      beats_q <= '0;
      others_q <= '0;
      turn_q <= 1'b0;
    end else begin
      if (fill_valid_i && fill_ready_o) begin
        active_q <= 1'b1;
        left_q <= fill_blocks_i;
      end else if (fill_done_o) begin
        active_q <= 1'b0;
        left_q <= '0;
      end else if (start) begin
        left_q <= left_q - blocks;
      end
      open_q <= open_q + OpenBits'(start) - OpenBits'(ends);
      others_q <= others_q + 8'(s_begins) - 8'(s_ends);
      if (start) aw_valid_q <= 1'b1;
      else if (m_axi.aw_ready) aw_valid_q <= 1'b0;
      if (start) next_q <= 1'b1;
      else if (load) next_q <= 1'b0;
      if (load) beats_q <= next_beats_q;
      else if (filling && m_axi.w_ready) beats_q <= beats_q - 1'b1;
      if (start) turn_q <= 1'b1;
      else if (s_begins) turn_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fill_valid_i && fill_ready_o) begin
      block_q <= fill_addr_i[AddrWidth-1:9];
      error_q <= 1'b0;
    end else begin
      if (start) block_q <= block_q + (AddrWidth - 9)'(blocks);
      if (ends && m_axi.b.resp[1]) error_q <= 1'b1;
    end
    if (start) begin
      next_beats_q <= (BeatBits + 1)'({blocks, 3'd0});
      aw_q <= '{
          id: Id,
          len: 8'({blocks, 3'd0} - 1'b1),
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
  `NS_ASSERT(id_is_its_own, !s_axi.aw_valid || s_axi.aw.id != Id)
  `NS_ASSERT(response_expected, !ends || open_q != '0)

endmodule
