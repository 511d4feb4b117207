// SPDX-License-Identifier: Apache-2.0

// ns_axi_mux between any masters and any slave that follow AXI, observed at one master, which the
// solver chooses.
//
// Each of its addresses reaches the slave once, in order, unchanged but for the master's number.
// Its write data follows the order of the addresses, burst by burst and beat by beat. Each response
// reaches the master named by its ID, once, in order, and no other master. A waiting address is
// accepted within `Bound` cycles in which the slave and the masters make progress, and everything
// inside comes out. Only `Bound` depends on the order of grants.
`include "ns_assert.svh"

module axi_mux_proof
  import ns_axi_pkg::*;
#(
  /// Number of masters.
  parameter int unsigned N = 3,
  /// Most beats of a write.
  parameter int unsigned MaxBeats = 2,
  /// 0: addresses and write data, 1: read addresses, 2: responses.
  parameter int unsigned Part = 0,
  /// See above: each other master may be granted once, with a burst each, after those that wait
  /// already.
  parameter int unsigned Bound = 14
) (
  input logic         clk_i,
  input logic         rst_ni,
  input logic [N-1:0] aw_valid_i,
  input logic [N-1:0] ar_valid_i,
  input logic [N-1:0] id_i,
  input logic [N-1:0] w_valid_i,
  input logic [N-1:0] w_last_i,
  input logic [N-1:0] b_ready_i,
  input logic [N-1:0] r_ready_i,
  input logic         m_aw_ready_i,
  input logic         m_w_ready_i,
  input logic         m_ar_ready_i,
  input logic         m_b_valid_i,
  input logic         m_r_valid_i,
  input logic [2:0]   m_id_i,
  input logic [1:0]   m_data_i,
  input logic [1:0]   master_i,
  input logic         pick_i
);

  localparam int unsigned MaxWrites = 2;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  ns_axi_if s[N] ();
  ns_axi_if m ();

  // The observed master.
  logic [1:0] me, me_q;
  assign me = started_q ? me_q : master_i;
  always_ff @(posedge clk_i) me_q <= me;
  AMaster :
  assume property (@(posedge clk_i) 32'(me) < N);

  logic [N-1:0] aw_ready, w_ready, ar_ready, b_valid, r_valid, b_id, r_id;
  logic [N-1:0] aw_fire, w_fire, ar_fire;
  logic [N-1:0][1:0] b_data, r_data;
  logic [N-1:0] w_mark, w_idx, w_last;

  for (genvar i = 0; i < N; i++) begin : gen_master
    assign s[i].aw = '{id: IdWidth'(id_i[i]), default: '0};
    assign s[i].aw_valid = Part == 0 && aw_valid_i[i];
    assign s[i].ar = '{id: IdWidth'(id_i[i]), default: '0};
    assign s[i].ar_valid = Part == 1 && ar_valid_i[i];
    assign s[i].w = '{last: w_last[i], strb: '0, data: DataWidth'({2'(i), w_mark[i], w_idx[i]})};
    assign s[i].w_valid = Part == 0 && w_valid_i[i];
    assign s[i].b_ready = b_ready_i[i];
    assign s[i].r_ready = r_ready_i[i];
    assign aw_ready[i] = s[i].aw_ready;
    assign w_ready[i] = s[i].w_ready;
    assign ar_ready[i] = s[i].ar_ready;
    assign b_valid[i] = s[i].b_valid;
    assign r_valid[i] = s[i].r_valid;
    assign b_id[i] = s[i].b.id[0];
    assign r_id[i] = s[i].r.id[0];
    assign b_data[i] = s[i].b.resp;
    assign r_data[i] = {s[i].r.last, s[i].r.data[0]};

    // An offered address stays.
    logic stall_q, id_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) stall_q <= 1'b0;
      else stall_q <= Part == 0 ? aw_valid_i[i] && !aw_ready[i] : ar_valid_i[i] && !ar_ready[i];
    end
    always_ff @(posedge clk_i) id_q <= id_i[i];
    AddressStays :
    assume property (@(posedge clk_i) !stall_q || ((Part == 0 ? aw_valid_i[i] : ar_valid_i[i]) && id_i[i] == id_q));
    logic w_stall_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) w_stall_q <= 1'b0;
      else w_stall_q <= w_valid_i[i] && !w_ready[i];
    end
    DataStay :
    assume property (@(posedge clk_i) !w_stall_q || w_valid_i[i]);
  end

  assign aw_fire = aw_valid_i & aw_ready & {N{Part == 0}};
  assign w_fire = w_valid_i & w_ready & {N{Part == 0}};
  assign ar_fire = ar_valid_i & ar_ready & {N{Part == 1}};
  assign m.aw_ready = m_aw_ready_i;
  assign m.w_ready = m_w_ready_i;
  assign m.ar_ready = m_ar_ready_i;
  assign m.b = '{id: IdWidth'(m_id_i), resp: m_data_i};
  assign m.b_valid = Part == 2 && m_b_valid_i;
  assign m.r = '{id: IdWidth'(m_id_i), last: m_data_i[1], data: DataWidth'(m_data_i[0]), default: '0};
  assign m.r_valid = Part == 2 && m_r_valid_i;

  ns_axi_mux #(
    .N        (N),
    .IdBits   (1),
    .MaxWrites(MaxWrites)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_axi(s),
    .m_axi(m)
  );

  // Addresses: of this master, and of all masters.
  if (Part == 0) begin : gen_write
    channel_order #(
      .Width(1),
      .Depth(2),
      .Bound(3)
    ) u_aw (
      .clk_i,
      .rst_ni,
      .in_fire_i  (aw_fire[me]),
      .in_data_i  (id_i[me]),
      .out_valid_i(m.aw_valid && m.aw.id[2:1] == me),
      .out_ready_i(m_aw_ready_i),
      .progress_i (m_aw_ready_i),
      .out_data_i (m.aw.id[0]),
      .pick_i
    );

    // One write of this master is followed: the earlier bursts of this master, and those of all
    // masters at the slave, in the order of the addresses there. Its data carries a mark, all data
    // the beat's number.
    logic [3:0] mine_q, mine_ahead_q;  // addresses accepted, data incomplete, on the masters' side
    logic [3:0] all_q, all_ahead_q;  // the same on the slave's side
    logic in_q, out_q;
    logic m_w_fire;
    logic [N-1:0] left_q;  // second beat is next
    logic out_idx_q;
    assign m_w_fire = m.w_valid && m_w_ready_i;

    for (genvar i = 0; i < N; i++) begin : gen_data
      assign w_mark[i] = in_q && 2'(i) == me && mine_ahead_q == '0;
      assign w_idx[i] = left_q[i];
      assign w_last[i] = w_last_i[i] || (MaxBeats == 2 && left_q[i]);
    end
    for (genvar i = 0; i < N; i++) begin : gen_last
      logic stall_q, last_q;
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) stall_q <= 1'b0;
        else stall_q <= w_valid_i[i] && !w_ready[i];
      end
      always_ff @(posedge clk_i) last_q <= w_last_i[i];
      LastStays :
      assume property (@(posedge clk_i) !stall_q || w_last_i[i] == last_q);
    end

    logic end_mine, end_all, any_aw;
    assign end_mine = w_fire[me] && w_last[me];
    assign end_all = m_w_fire && m.w.last;
    assign any_aw = aw_fire != '0;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        mine_q <= '0;
        mine_ahead_q <= '0;
        all_q <= '0;
        all_ahead_q <= '0;
        in_q <= 1'b0;
        out_q <= 1'b0;
        left_q <= '0;
        out_idx_q <= 1'b0;
      end else begin
        left_q <= (left_q ^ w_fire) & ~(w_fire & w_last);
        if (m_w_fire) out_idx_q <= !out_idx_q && !m.w.last;
        mine_q <= mine_q + 4'(aw_fire[me]) - 4'(end_mine);
        all_q <= all_q + 4'(any_aw) - 4'(end_all);
        if (!in_q && !out_q) begin
          if (aw_fire[me] && pick_i) begin
            in_q <= 1'b1;
            out_q <= 1'b1;
            mine_ahead_q <= mine_q - 4'(end_mine);
            all_ahead_q <= all_q - 4'(end_all);
          end
        end else begin
          if (in_q && end_mine) begin
            in_q <= mine_ahead_q != '0;
            mine_ahead_q <= mine_ahead_q - 4'(mine_ahead_q != '0);
          end
          if (out_q && end_all) begin
            out_q <= all_ahead_q != '0;
            all_ahead_q <= all_ahead_q - 4'(all_ahead_q != '0);
          end
        end
      end
    end

    logic followed_data;
    assign followed_data = out_q && all_ahead_q == '0;
    `NS_ASSERT(one_at_a_time, $onehot0(aw_fire) && $onehot0(w_fire))
    `NS_ASSERT(data_after_address, w_fire[me] == 1'b0 || mine_q != '0)
    `NS_ASSERT(no_spurious_data, !m.w_valid || all_q != '0)
    `NS_ASSERT(bursts_in_order, !m.w_valid || m.w.data[1] == followed_data)
    `NS_ASSERT(of_this_master, !(m.w_valid && followed_data) || m.w.data[3:2] == me)
    `NS_ASSERT(beats_in_order, !m.w_valid || m.w.data[0] == out_idx_q)
    // These properties help to prove the order.
    `NS_ASSERT(few, all_q <= 4'(MaxWrites + 3) && mine_q <= all_q)
    `NS_ASSERT(followed_inside,
               (!in_q || (out_q && mine_ahead_q < mine_q && mine_ahead_q <= all_ahead_q)) && (!out_q || all_ahead_q < all_q))
    `NS_COVER(both_beats, m_w_fire && followed_data && out_idx_q && $past(m_w_fire))
    `NS_COVER(waits_for_two, out_q && all_ahead_q == 4'd3)

    // All sides make progress: the slave accepts, and a master sends the data that may come.
    logic willing;
    logic [5:0] waited_q;
    assign willing = m_aw_ready_i && m_w_ready_i && (w_ready & ~w_valid_i) == '0;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) waited_q <= '0;
      else if (!aw_valid_i[me] || aw_ready[me]) waited_q <= '0;
      else if (willing && waited_q != '1) waited_q <= waited_q + 1'b1;
    end
    `NS_ASSERT(wait_is_bounded, 32'(waited_q) < Bound)
  end else begin : gen_no_write
    assign w_mark = '0;
    assign w_idx = '0;
    assign w_last = w_last_i;
  end

  if (Part == 1) begin : gen_read
    channel_order #(
      .Width(1),
      .Depth(2),
      .Bound(3)
    ) u_ar (
      .clk_i,
      .rst_ni,
      .in_fire_i  (ar_fire[me]),
      .in_data_i  (id_i[me]),
      .out_valid_i(m.ar_valid && m.ar.id[2:1] == me),
      .out_ready_i(m_ar_ready_i),
      .progress_i (m_ar_ready_i),
      .out_data_i (m.ar.id[0]),
      .pick_i
    );
    logic [5:0] waited_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) waited_q <= '0;
      else if (!ar_valid_i[me] || ar_ready[me]) waited_q <= '0;
      else if (m_ar_ready_i && waited_q != '1) waited_q <= waited_q + 1'b1;
    end
    `NS_ASSERT(wait_is_bounded, 32'(waited_q) < Bound)
  end

  if (Part == 2) begin : gen_response
    KnownMaster :
    assume property (@(posedge clk_i) 32'(m_id_i[2:1]) < N);
    // A response waits for those of others, which their masters have to accept.
    channel_order #(
      .Width(3),
      .Depth(2),
      .Bound(3)
    ) u_b (
      .clk_i,
      .rst_ni,
      .in_fire_i  (m.b_valid && m.b_ready && m_id_i[2:1] == me),
      .in_data_i  ({m_id_i[0], m_data_i}),
      .out_valid_i(b_valid[me]),
      .out_ready_i(b_ready_i[me]),
      .progress_i (b_ready_i == '1),
      .out_data_i ({b_id[me], b_data[me]}),
      .pick_i
    );
    channel_order #(
      .Width(3),
      .Depth(2),
      .Bound(3)
    ) u_r (
      .clk_i,
      .rst_ni,
      .in_fire_i  (m.r_valid && m.r_ready && m_id_i[2:1] == me),
      .in_data_i  ({m_id_i[0], m_data_i}),
      .out_valid_i(r_valid[me]),
      .out_ready_i(r_ready_i[me]),
      .progress_i (r_ready_i == '1),
      .out_data_i ({r_id[me], r_data[me]}),
      .pick_i
    );
  end

endmodule
