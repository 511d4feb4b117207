// SPDX-License-Identifier: Apache-2.0

// ns_axi_drain between a master that is cut off at any cycle and a slave that follows AXI and
// answers at any time.
//
// After a cut the master restarts with nothing in flight; the slave keeps its state. Shown: the
// slave gets complete bursts, with exactly the beats of their addresses. A master gets no response
// that it did not request. Beats that are not the master's are marked. With a slave that makes
// progress, a cut ends within `Bound` cycles.
`include "ns_assert.svh"

module drain_proof #(
  /// Writes with incomplete data.
  parameter int unsigned MaxWrites = 2,
  /// Most beats of a burst - 1.
  parameter int unsigned MaxLen = 2,
  /// Transactions outstanding per direction.
  parameter int unsigned MaxOpen = 3,
  parameter int unsigned Bound = 14
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       cut_i,
  input logic       aw_valid_i,
  input logic [7:0] aw_len_i,
  input logic       w_valid_i,
  input logic       b_ready_i,
  input logic       ar_valid_i,
  input logic       r_ready_i,
  input logic       aw_ready_i,
  input logic       w_ready_i,
  input logic       b_valid_i,
  input logic       ar_ready_i,
  input logic       r_valid_i,
  input logic       r_last_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic cut_q, cut, open;
  logic s_aw_ready, s_w_ready, s_b_valid, s_ar_ready, s_r_valid, s_w_last;
  logic m_aw_valid, m_w_valid, m_w_fill, m_w_last, m_b_ready, m_ar_valid, m_r_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cut_q <= 1'b0;
    else cut_q <= cut_i;
  end

  ns_axi_if s_axi ();
  ns_axi_if m_axi ();

  assign s_axi.aw = '{len: aw_len_i, default: '0};
  assign s_axi.aw_valid = aw_valid_i;
  assign s_aw_ready = s_axi.aw_ready;
  assign s_axi.w = '{last: s_w_last, strb: '1, data: '0};
  assign s_axi.w_valid = w_valid_i;
  assign s_w_ready = s_axi.w_ready;
  assign s_b_valid = s_axi.b_valid;
  assign s_axi.b_ready = b_ready_i;
  assign s_axi.ar = '0;
  assign s_axi.ar_valid = ar_valid_i;
  assign s_ar_ready = s_axi.ar_ready;
  assign s_r_valid = s_axi.r_valid;
  assign s_axi.r_ready = r_ready_i;
  assign m_aw_valid = m_axi.aw_valid;
  assign m_axi.aw_ready = aw_ready_i;
  assign m_w_valid = m_axi.w_valid;
  assign m_w_fill = m_axi.w.strb == '0;
  assign m_w_last = m_axi.w.last;
  assign m_axi.w_ready = w_ready_i;
  assign m_axi.b = '0;
  assign m_axi.b_valid = b_valid_i;
  assign m_b_ready = m_axi.b_ready;
  assign m_ar_valid = m_axi.ar_valid;
  assign m_axi.ar_ready = ar_ready_i;
  assign m_axi.r = '{last: r_last_i, default: '0};
  assign m_axi.r_valid = r_valid_i;
  assign m_r_ready = m_axi.r_ready;

  ns_axi_drain #(
    .MaxWrites(MaxWrites),
    .CountBits(3)
  ) u_drain (
    .clk_i,
    .rst_ni,
    .cut_i       (cut_q),
    .cut_o       (cut),
    .open_o      (open),
    .s_axi,
    .m_axi
  );

  logic
      m_aw_fire,
      m_w_fire,
      m_b_fire,
      m_ar_fire,
      m_r_fire,
      s_aw_fire,
      s_w_fire,
      s_b_fire,
      s_ar_fire,
      s_r_fire;
  assign m_aw_fire = m_aw_valid && aw_ready_i;
  assign m_w_fire = m_w_valid && w_ready_i;
  assign m_b_fire = b_valid_i && m_b_ready;
  assign m_ar_fire = m_ar_valid && ar_ready_i;
  assign m_r_fire = r_valid_i && m_r_ready && r_last_i;
  assign s_aw_fire = aw_valid_i && s_aw_ready;
  assign s_w_fire = w_valid_i && s_w_ready;
  assign s_b_fire = s_b_valid && b_ready_i;
  assign s_ar_fire = ar_valid_i && s_ar_ready;
  assign s_r_fire = s_r_valid && r_ready_i && r_last_i;

  // The slave: lengths of the bursts with data to come, from the addresses, as a shift register.
  logic [7:0] len_q[4];
  logic [2:0] lens_q, b_owed_q, r_owed_q;  // b: data complete, no response
  logic [7:0] beat_q;
  logic [7:0] head;
  assign head = (lens_q != '0) ? len_q[0] : aw_len_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lens_q <= '0;
      beat_q <= '0;
      b_owed_q <= '0;
      r_owed_q <= '0;
      for (int unsigned i = 0; i < 4; i++) len_q[i] <= '0;
    end else begin
      if (m_w_fire) beat_q <= m_w_last ? '0 : beat_q + 1'b1;
      if (m_w_fire && m_w_last) begin
        for (int unsigned i = 0; i < 3; i++) len_q[i] <= len_q[i+1];
        if (m_aw_fire && lens_q != '0) len_q[lens_q[1:0]-2'd1] <= aw_len_i;
      end else if (m_aw_fire) len_q[lens_q[1:0]] <= aw_len_i;
      lens_q <= lens_q + 3'(m_aw_fire) - 3'(m_w_fire && m_w_last);
      b_owed_q <= b_owed_q + 3'(m_w_fire && m_w_last) - 3'(m_b_fire);
      r_owed_q <= r_owed_q + 3'(m_ar_fire) - 3'(m_r_fire);
    end
  end

  BOnlyIfOwed :
  assume property (@(posedge clk_i) !b_valid_i || b_owed_q != '0);
  ROnlyIfOwed :
  assume property (@(posedge clk_i) !r_valid_i || r_owed_q != '0);

  // The master since its last reset: its requests, and the progress of its data.
  logic [2:0] writes_q, reads_q;
  logic [7:0] left_q[4];
  logic [2:0] lefts_q;
  logic [7:0] sent_q;

  assign s_w_last = sent_q == ((lefts_q != '0) ? left_q[0] : aw_len_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_q <= '0;
      reads_q <= '0;
      lefts_q <= '0;
      sent_q <= '0;
      for (int unsigned i = 0; i < 4; i++) left_q[i] <= '0;
    end else if (cut_q) begin
      writes_q <= '0;
      reads_q <= '0;
      lefts_q <= '0;
      sent_q <= '0;
    end else begin
      if (s_w_fire) sent_q <= s_w_last ? '0 : sent_q + 1'b1;
      if (s_w_fire && s_w_last) begin
        for (int unsigned i = 0; i < 3; i++) left_q[i] <= left_q[i+1];
        if (s_aw_fire && lefts_q != '0) left_q[lefts_q[1:0]-2'd1] <= aw_len_i;
      end else if (s_aw_fire) left_q[lefts_q[1:0]] <= aw_len_i;
      lefts_q <= lefts_q + 3'(s_aw_fire) - 3'(s_w_fire && s_w_last);
      writes_q <= writes_q + 3'(s_aw_fire) - 3'(s_b_fire);
      reads_q <= reads_q + 3'(s_ar_fire) - 3'(s_r_fire);
    end
  end

  ShortBursts :
  assume property (@(posedge clk_i) 32'(aw_len_i) <= MaxLen);
  FewWrites :
  assume property (@(posedge clk_i) !aw_valid_i || 32'(writes_q) < MaxOpen);
  FewReads :
  assume property (@(posedge clk_i) !ar_valid_i || 32'(reads_q) < MaxOpen);

  // A slave that accepts and answers immediately. Then a cut ends.
  logic willing;
  logic [4:0] waited_q;
  assign willing = aw_ready_i && w_ready_i && b_valid_i == (b_owed_q != '0) && r_valid_i == (r_owed_q != '0) &&
      (!r_valid_i || r_last_i);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else waited_q <= (cut && willing) ? ((waited_q == '1) ? waited_q : waited_q + 1'b1) : '0;
  end

  // The properties.
  `NS_ASSERT(no_beat_without_address, !m_w_valid || lens_q != '0 || m_aw_fire)
  `NS_ASSERT(last_beat_matches_address, !m_w_valid || m_w_last == (beat_q == head))
  `NS_ASSERT(supplied_beats_are_marked, !m_w_fire || m_w_fill == !s_w_fire)
  `NS_ASSERT(no_stale_write_response, !s_b_valid || writes_q != '0)
  `NS_ASSERT(no_stale_read_data, !s_r_valid || reads_q != '0)
  `NS_ASSERT(nothing_new_while_cut,
             !cut || !(s_aw_fire || s_w_fire || s_ar_fire || m_aw_valid || m_ar_valid))
  `NS_ASSERT(cut_ends, 32'(waited_q) < Bound || !open)

  // Not vacuous: a response to a master that restarted after one left a burst without data.
  logic filled_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) filled_q <= 1'b0;
    else if (m_w_fire && m_w_fill) filled_q <= 1'b1;
  end
  `NS_COVER(writes_after_a_cut, filled_q && s_b_fire && beat_q != '0)
  `NS_COVER(reads_after_a_cut, filled_q && s_r_fire)

endmodule
