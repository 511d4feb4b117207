// SPDX-License-Identifier: Apache-2.0

// ns_axi_fill, for any request and any behaviour of the master and the memory.
//
// Exactly the requested blocks are written, each once and completely, in order. The request ends
// once, after the last response. Data follows the order of the addresses. Writes of the master pass
// unchanged, and nothing gets stuck. After a stop, the blocks of started bursts are written.
`include "ns_assert.svh"

module axi_fill_proof
  import ns_axi_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input logic [63:0] fill_addr_i,
  input logic [3:0]  fill_blocks_i,
  input logic        fill_valid_i,
  input logic        fill_stop_i,
  input ax_t         s_aw_i,
  input logic        s_aw_valid_i,
  input w_t          s_w_i,
  input logic        s_w_valid_i,
  input logic        m_aw_ready_i,
  input logic        m_w_ready_i,
  input logic        m_b_valid_i
);

  localparam logic [IdWidth-1:0] Id = '1;

  logic
      fill_ready,
      done,
      error,
      busy,
      s_aw_ready,
      s_w_ready,
      s_b_valid,
      m_aw_valid,
      m_w_valid,
      m_b_ready;
  ax_t m_aw;
  w_t m_w;
  b_t m_b, s_b;

  ns_axi_if s_axi ();
  ns_axi_if m_axi ();

  assign s_axi.aw = s_aw_i;
  assign s_axi.aw_valid = s_aw_valid_i;
  assign s_aw_ready = s_axi.aw_ready;
  assign s_axi.w = s_w_i;
  assign s_axi.w_valid = s_w_valid_i;
  assign s_w_ready = s_axi.w_ready;
  assign s_b = s_axi.b;
  assign s_b_valid = s_axi.b_valid;
  assign s_axi.b_ready = 1'b1;
  assign s_axi.ar = '0;
  assign s_axi.ar_valid = 1'b0;
  assign s_axi.r_ready = 1'b0;
  assign m_aw = m_axi.aw;
  assign m_aw_valid = m_axi.aw_valid;
  assign m_axi.aw_ready = m_aw_ready_i;
  assign m_w = m_axi.w;
  assign m_w_valid = m_axi.w_valid;
  assign m_axi.w_ready = m_w_ready_i;
  assign m_axi.b = m_b;
  assign m_axi.b_valid = m_b_valid_i;
  assign m_b_ready = m_axi.b_ready;
  assign m_axi.ar_ready = 1'b0;
  assign m_axi.r = '0;
  assign m_axi.r_valid = 1'b0;

  ns_axi_fill #(
    .CountWidth(4),
    .MaxBursts (2)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o       (busy),
    .fill_addr_i,
    .fill_blocks_i,
    .fill_valid_i,
    .fill_ready_o (fill_ready),
    .fill_stop_i,
    .fill_done_o  (done),
    .fill_error_o (error),
    .s_axi,
    .m_axi
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  // The neighbours follow AXI4; the memory responds with the filler's ID, and accepts data after
  // its address.
  assign m_b = '{id: Id, resp: RespOkay};
  logic m_aw_fire, m_w_fire, fill;
  assign m_aw_fire = m_aw_valid && m_aw_ready_i;
  assign m_w_fire = m_w_valid && m_w_ready_i;
  assign fill = m_aw.id == Id;

  // Beats of bursts whose address has passed, the filler's and the master's; blocks and responses
  // of the filler.
  logic active_q;
  logic [54:0] next_q;    // first block of the filler's next burst
  logic [3:0] left_q;     // blocks without an address
  logic [2:0] open_q;     // bursts without response
  logic [6:0] our_beats_q;
  logic [1:0] ended_q;    // bursts with complete data and no response
  logic master_q;         // a burst of the master is in progress
  logic [7:0] their_beats_q;

  SizeOfTheirs:
  assume property (@(posedge clk_i) disable iff (!rst_ni) !s_aw_valid_i || (s_aw_i.id != Id && s_aw_i.len < 8'd3));
  OneOfTheirs :
  assume property (@(posedge clk_i) disable iff (!rst_ni) !master_q || !s_aw_valid_i);
  LastOfTheirs :
  assume property (@(posedge clk_i) disable iff (!rst_ni)
      !s_w_valid_i || (master_q && s_w_i.last == (their_beats_q == 8'd1)));
  AwStays :
  assume property (@(posedge clk_i) disable iff (!rst_ni) !($past(
      rst_ni
  ) && $past(
      s_aw_valid_i && !s_aw_ready
  )) || (s_aw_valid_i && s_aw_i == $past(
      s_aw_i
  )));
  WStays :
  assume property (@(posedge clk_i) disable iff (!rst_ni) !($past(
      rst_ni
  ) && $past(
      s_w_valid_i && !s_w_ready
  )) || (s_w_valid_i && s_w_i == $past(
      s_w_i
  )));
  Request :
  assume property (@(posedge clk_i) disable iff (!rst_ni)
      !fill_valid_i || (fill_addr_i[8:0] == '0 && fill_addr_i[63:20] == '0 && fill_blocks_i != '0));
  Answer :
  assume property (@(posedge clk_i) disable iff (!rst_ni) !m_b_valid_i || ended_q != '0);

  logic [3:0] burst_blocks;
  assign burst_blocks = 4'((9'(m_aw.len) + 9'd1) >> 3);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      next_q <= '0;
      left_q <= '0;
      open_q <= '0;
      our_beats_q <= '0;
      ended_q <= '0;
      master_q <= 1'b0;
      their_beats_q <= '0;
    end else begin
      if (fill_valid_i && fill_ready) begin
        active_q <= 1'b1;
        next_q <= fill_addr_i[63:9];
        left_q <= fill_blocks_i;
      end else if (done) begin
        active_q <= 1'b0;
      end
      if (m_aw_fire && fill) begin
        next_q <= next_q + 55'(burst_blocks);
        left_q <= left_q - burst_blocks;
      end
      open_q <= open_q + 3'(m_aw_fire && fill) - 3'(m_b_valid_i);
      our_beats_q <= our_beats_q + ((m_aw_fire && fill) ? 7'(m_aw.len) + 7'd1 : 7'd0)
          - 7'(m_w_fire && m_w.strb == '1 && !master_q);
      ended_q <= ended_q + 2'(m_w_fire && m_w.last && !master_q) - 2'(m_b_valid_i);
      if (m_aw_fire && !fill) begin
        master_q <= 1'b1;
        their_beats_q <= m_aw.len + 8'd1;
      end else if (master_q && m_w_fire) begin
        their_beats_q <= their_beats_q - 8'd1;
        if (m_w.last) master_q <= 1'b0;
      end
    end
  end

  `NS_ASSERT(
      asked_for,
      !(m_aw_valid && fill) || (active_q && m_aw.addr == {next_q, 9'd0} && burst_blocks <= left_q && burst_blocks != '0 && m_aw.len[2:0] == 3'd7 && m_aw.size == 3'd6 && m_aw.burst == BurstIncr))
  `NS_ASSERT(within_1_kib,
             !(m_aw_valid && fill) || 32'(m_aw.addr[9:0]) + 64 * (32'(m_aw.len) + 1) <= 1024)
  `NS_ASSERT(master_address_unchanged, !(m_aw_valid && !fill) || (s_aw_valid_i && m_aw == s_aw_i))
  `NS_ASSERT(master_data_unchanged, !(m_w_valid && master_q) || (s_w_valid_i && m_w == s_w_i))
  `NS_ASSERT(fill_data_is_zero, !(m_w_valid && !master_q) || (m_w.data == '0 && m_w.strb == '1))
  `NS_ASSERT(done_once, !done || (active_q && open_q == '0 && (left_q == '0 || fill_stop_i)))
  `NS_ASSERT(not_busy_is_quiet, busy || (!active_q && !m_w_valid))

  // With a memory that accepts everything and an idle master, each burst's data has no gap.
  logic smooth;
  assign smooth = m_aw_ready_i && m_w_ready_i;
  logic [4:0] still_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) still_q <= '0;
    else if (!smooth || !active_q || done || fill_stop_i || s_aw_valid_i || master_q || m_w_fire || m_aw_fire || m_b_valid_i || ended_q != '0)
      still_q <= '0;
    else if (still_q != '1) still_q <= still_q + 1'b1;
  end
  `NS_ASSERT(makes_progress, still_q < 5'd4)

  `NS_COVER(whole, done && left_q == '0 && $past(rst_ni))
  `NS_COVER(stopped, done && left_q != '0)

endmodule
