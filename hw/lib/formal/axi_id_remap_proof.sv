// SPDX-License-Identifier: Apache-2.0

// ns_axi_id_remap with more IDs than entries, between a master and a slave that follow AXI. The
// slave answers in any order of IDs.
//
// Each address reaches the slave once, in order. No two IDs of the master share one at the slave
// while both are in flight. Each response goes to its transaction: the master's ID is right, and
// responses of one ID come in the order of their addresses. An address waits no longer than until
// the transactions that fill the table have been answered.
`include "ns_assert.svh"

module axi_id_remap_proof
  import ns_axi_pkg::*;
#(
  /// 1: writes; 0: reads.
  parameter bit Write = 1'b0,
  /// See ns_axi_id_remap.
  parameter int unsigned MaxOutstanding = 2,
  /// Cycles in which the slave accepts and ends a transaction, or has none, until an address is
  /// accepted.
  parameter int unsigned Bound = 8
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       ax_valid_i,
  input logic [1:0] ax_id_i,
  input logic       ax_tag_i,
  input logic       ax_ready_i,
  input logic       in_valid_i,
  input logic       in_id_i,
  input logic       in_last_i,
  input logic       out_ready_i,
  input logic       pick_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  ns_axi_if s_axi ();
  ns_axi_if m_axi ();
  ax_t ax, m_ax;
  logic ax_ready, ax_fire, m_valid, m_fire, in_mark, out_valid, out_mark, last, end_fire;
  logic [1:0] out_id;
  assign ax = '{id: IdWidth'(ax_id_i), len: 8'(ax_tag_i), default: '0};

  assign s_axi.aw = ax;
  assign s_axi.ar = ax;
  assign s_axi.aw_valid = Write && ax_valid_i;
  assign s_axi.ar_valid = !Write && ax_valid_i;
  assign s_axi.w = '0;
  assign s_axi.w_valid = 1'b0;
  assign s_axi.b_ready = out_ready_i;
  assign s_axi.r_ready = out_ready_i;
  assign m_axi.aw_ready = ax_ready_i;
  assign m_axi.ar_ready = ax_ready_i;
  assign m_axi.w_ready = 1'b0;
  assign m_axi.b = '{id: IdWidth'(in_id_i), resp: {1'b0, in_mark}};
  assign m_axi.b_valid = Write && in_valid_i;
  assign m_axi.r = '{id: IdWidth'(in_id_i), resp: {1'b0, in_mark}, last: in_last_i, data: '0};
  assign m_axi.r_valid = !Write && in_valid_i;

  assign ax_ready = Write ? s_axi.aw_ready : s_axi.ar_ready;
  assign ax_fire = ax_valid_i && ax_ready;
  assign m_ax = Write ? m_axi.aw : m_axi.ar;
  assign m_valid = Write ? m_axi.aw_valid : m_axi.ar_valid;
  assign m_fire = m_valid && ax_ready_i;
  assign out_valid = Write ? s_axi.b_valid : s_axi.r_valid;
  assign out_id = Write ? s_axi.b.id[1:0] : s_axi.r.id[1:0];
  assign out_mark = Write ? s_axi.b.resp[0] : s_axi.r.resp[0];
  assign last = Write || in_last_i;
  assign end_fire = in_valid_i && out_ready_i && last;

  ns_axi_id_remap #(
    .InBits        (2),
    .OutBits       (1),
    .MaxOutstanding(MaxOutstanding)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_axi,
    .m_axi
  );

  channel_order #(
    .Width(1),
    .Depth(2),
    .Bound(3)
  ) u_addresses (
    .clk_i,
    .rst_ni,
    .in_fire_i  (ax_fire),
    .in_data_i  (ax_tag_i),
    .out_valid_i(m_valid),
    .out_ready_i(ax_ready_i),
    .progress_i (ax_ready_i),
    .out_data_i (m_ax.len[0]),
    .pick_i
  );

  // Transactions in flight, by the master's ID and by the slave's. One is followed: its responses
  // carry a mark.
  logic [2:0] asked_q[4], open_q[2];
  logic picked_q, taken_q, entry_q;  // followed; the slave has its address, with this ID
  logic [1:0] id_q, inside_q;  // addresses ahead of the followed one on the way to the slave
  logic [2:0] ahead_q, open_ahead_q;  // with its ID; at the slave
  logic [1:0] way_q;

  assign in_mark = picked_q && taken_q && in_id_i == entry_q && open_ahead_q == '0;

  for (genvar i = 0; i < 4; i++) begin : gen_asked
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) asked_q[i] <= '0;
      else
        asked_q[i] <= asked_q[i] + 3'(ax_fire && ax_id_i == 2'(i)) - 3'(end_fire && out_id == 2'(i));
    end
    `NS_ASSERT(at_most, 32'(asked_q[i]) <= MaxOutstanding)
  end
  for (genvar i = 0; i < 2; i++) begin : gen_open
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) open_q[i] <= '0;
      else
        open_q[i] <= open_q[i] + 3'(m_fire && m_ax.id[0] == 1'(i)) - 3'(end_fire && in_id_i == 1'(i));
    end
    `NS_ASSERT(at_most, 32'(open_q[i]) <= MaxOutstanding)
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      way_q <= '0;
      picked_q <= 1'b0;
      taken_q <= 1'b0;
      entry_q <= 1'b0;
      id_q <= '0;
      inside_q <= '0;
      ahead_q <= '0;
      open_ahead_q <= '0;
    end else begin
      way_q <= way_q + 2'(ax_fire) - 2'(m_fire);
      if (!picked_q) begin
        if (ax_fire && pick_i) begin
          picked_q <= 1'b1;
          taken_q <= 1'b0;
          id_q <= ax_id_i;
          inside_q <= way_q - 2'(m_fire);
          ahead_q <= asked_q[ax_id_i] - 3'(end_fire && out_id == ax_id_i);
        end
      end else begin
        if (!taken_q && m_fire) begin
          inside_q <= inside_q - 2'(inside_q != '0);
          if (inside_q == '0) begin
            taken_q <= 1'b1;
            entry_q <= m_ax.id[0];
            open_ahead_q <= open_q[m_ax.id[0]] - 3'(end_fire && in_id_i == m_ax.id[0]);
          end
        end
        if (taken_q && end_fire && in_id_i == entry_q && open_ahead_q != '0)
          open_ahead_q <= open_ahead_q - 1'b1;
        if (end_fire && out_id == id_q) begin
          picked_q <= ahead_q != '0;
          ahead_q <= ahead_q - 3'(ahead_q != '0);
        end
      end
    end
  end

  logic stall_q, tag_q;
  logic [1:0] ax_id_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) stall_q <= 1'b0;
    else stall_q <= ax_valid_i && !ax_ready;
  end
  always_ff @(posedge clk_i) begin
    ax_id_q <= ax_id_i;
    tag_q <= ax_tag_i;
  end
  AddressStays :
  assume property (@(posedge clk_i) !stall_q || (ax_valid_i && ax_id_i == ax_id_q && ax_tag_i == tag_q));
  AnswersWhatIsOwed :
  assume property (@(posedge clk_i) !in_valid_i || open_q[in_id_i] != '0);

  // A slave that makes progress.
  logic willing;
  logic [4:0] waited_q;
  assign willing = ax_ready_i && (end_fire || (open_q[0] == '0 && open_q[1] == '0));
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else if (!ax_valid_i || ax_ready) waited_q <= '0;
    else if (willing && waited_q != '1) waited_q <= waited_q + 1'b1;
  end

  `NS_ASSERT(known_at_the_slave, !m_valid || m_ax.id[IdWidth-1:1] == '0)
  `NS_ASSERT(response_was_requested, !out_valid || asked_q[out_id] != '0)
  `NS_ASSERT(mark_matches, !out_valid || out_mark == (picked_q && out_id == id_q && ahead_q == '0))
  `NS_ASSERT(address_wait_is_bounded, 32'(waited_q) < Bound)
  // These properties help to prove the others.
  `NS_ASSERT(
      sums,
      4'(asked_q[0]) + 4'(asked_q[1]) + 4'(asked_q[2]) + 4'(asked_q[3]) == 4'(open_q[0]) + 4'(open_q[1]) + 4'(way_q))
  `NS_ASSERT(
      followed_inside,
      !picked_q || (ahead_q < asked_q[id_q] && (taken_q ? open_ahead_q < open_q[entry_q] && open_ahead_q == ahead_q : inside_q < way_q)))

  `NS_COVER(waits, stall_q && ax_fire && picked_q && ax_id_i != id_q)
  `NS_COVER(shares_entry, end_fire && picked_q && taken_q && open_ahead_q == 3'd1)

endmodule
