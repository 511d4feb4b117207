// SPDX-License-Identifier: Apache-2.0

// ns_axi_demux (with ns_axi_route and ns_axi_error_slave) on two slaves, between a master and
// slaves that follow AXI. The slaves answer in any order of IDs, and independently of each other.
//
// Each address reaches its slave, once, in order, with its local address, and no other slave.
// Addresses outside of First to Bytes reach none, and are answered DECERR with all requested beats.
// With `Outside` they reach one more slave unchanged, and all addresses leave in the order of their
// arrival. With `Local` the second slave is a local memory after the first one. Write data follows
// its addresses. Each response reaches the master once, those of one ID in the order of their
// addresses, whatever the slave. While all sides make progress, a handshake occurs within `Bound`
// cycles. Assumes that the master's write data does not precede its address.
//
// The solver picks any one transaction and this module follows it: its data and responses carry a
// mark.
`include "ns_assert.svh"

module axi_demux_proof
  import ns_axi_pkg::*;
#(
  /// 1: writes; 0: reads.
  parameter bit Write = 1'b0,
  /// The second slave receives all other addresses.
  parameter bit Outside = 1'b0,
  /// The second slave is a local memory of granules 4 and 5; the first one has those below, from
  /// First on.
  parameter bit Local = 1'b0,
  parameter int unsigned Bound = 12
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            ax_valid_i,
  input logic            ax_id_i,
  input logic            ax_len_i,
  input logic [3:0]      ax_addr_i,
  input logic            w_valid_i,
  input logic            out_ready_i,
  input logic [1:0]      ax_ready_i,
  input logic [1:0]      w_ready_i,
  input logic [1:0]      in_valid_i,
  input logic [1:0]      in_id_i,
  input logic [1:0]      in_last_i,
  input logic            pick_i
);

  localparam int unsigned Granule = 4096;
  localparam logic [AddrWidth-1:0] First = 64'h1000;
  localparam logic [AddrWidth-1:0] Bytes = 64'h4000;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  ns_axi_if s ();
  ns_axi_if m[2] ();

  // Granules 0 to 7, in the lower half or not.
  ax_t ax;
  assign ax = '{
          id: IdWidth'(ax_id_i),
          len: 8'(ax_len_i),
          addr: AddrWidth'({ax_addr_i, 11'b0}),
          default: '0
      };
  logic [2:0] granule;
  logic in_bounds, in_range, target;
  logic [3:0] local_addr;
  assign granule = ax_addr_i[3:1];
  assign in_bounds = granule >= 3'd1 && granule < 3'd4;
  always_comb begin
    in_range = in_bounds;
    target = granule[0];
    local_addr = {2'b0, granule[1], ax_addr_i[0]};
    if (Outside) begin
      in_range = 1'b1;
      target = !in_bounds;
      local_addr = ax_addr_i;
    end else if (Local) begin
      in_range = in_bounds || granule == 3'd4 || granule == 3'd5;
      target = granule[2];
      local_addr = {1'b0, ax_addr_i[2:0]};
    end
  end

  logic ax_ready, ax_fire, w_ready, w_fire, w_last, w_mark, w_idx;
  logic out_valid, out_fire, out_id, out_last, out_end, out_beat;
  logic [1:0] out_resp;
  logic [1:0]
      ax_valid,
      ax_fires,
      ax_id,
      ax_len,
      in_ready,
      in_mark,
      in_beat,
      in_end,
      w_valid,
      w_fires,
      w_lasts,
      w_marks,
      w_idxs;
  ax_t [1:0] m_ax;

  assign s.aw = ax;
  assign s.ar = ax;
  assign s.aw_valid = Write && ax_valid_i;
  assign s.ar_valid = !Write && ax_valid_i;
  assign s.w = '{last: w_last, strb: '0, data: DataWidth'({w_mark, w_idx})};
  assign s.w_valid = Write && w_valid_i;
  assign s.b_ready = Write && out_ready_i;
  assign s.r_ready = !Write && out_ready_i;
  assign ax_ready = Write ? s.aw_ready : s.ar_ready;
  assign ax_fire = ax_valid_i && ax_ready;
  assign w_ready = s.w_ready;
  assign w_fire = s.w_valid && w_ready;
  assign out_valid = Write ? s.b_valid : s.r_valid;
  assign out_fire = out_valid && out_ready_i;
  assign out_id = Write ? s.b.id[0] : s.r.id[0];
  assign out_resp = Write ? s.b.resp : s.r.resp;
  assign out_last = Write || s.r.last;
  assign out_end = out_fire && out_last;
  assign out_beat = !Write && s.r.data[0];

  for (genvar i = 0; i < 2; i++) begin : gen_slave
    assign m[i].aw_ready = ax_ready_i[i];
    assign m[i].ar_ready = ax_ready_i[i];
    assign m[i].w_ready = w_ready_i[i];
    assign m[i].b = '{id: IdWidth'(in_id_i[i]), resp: {1'b0, in_mark[i]}};
    assign m[i].b_valid = Write && in_valid_i[i];
    assign m[i].r =
        '{id: IdWidth'(in_id_i[i]), resp: {1'b0, in_mark[i]}, last: in_last_i[i], data: DataWidth'(in_beat[i])};
    assign m[i].r_valid = !Write && in_valid_i[i];
    assign m_ax[i] = Write ? m[i].aw : m[i].ar;
    assign ax_valid[i] = Write ? m[i].aw_valid : m[i].ar_valid;
    assign ax_fires[i] = ax_valid[i] && ax_ready_i[i];
    assign in_ready[i] = Write ? m[i].b_ready : m[i].r_ready;
    assign in_end[i] = in_valid_i[i] && in_ready[i] && (Write || in_last_i[i]);
    assign w_valid[i] = m[i].w_valid;
    assign w_fires[i] = m[i].w_valid && w_ready_i[i];
    assign w_lasts[i] = m[i].w.last;
    assign {w_marks[i], w_idxs[i]} = m[i].w.data[1:0];
  end

  ns_axi_demux #(
    .M             ((Outside || Local) ? 1 : 2),
    .Granule       (Granule),
    .First         (First),
    .Bytes         (Bytes),
    .LocalM        (Local ? 1 : 0),
    .LocalBase     (Bytes),
    .LocalBytes    (64'h2000),
    .MaxOutstanding(2),
    .OrderBits     (1),
    .Outside       (Outside)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_axi(s),
    .m_axi(m)
  );

  // Transactions in flight: per ID; on the way to a slave; at a slave, per ID; with data to come
  // there.
  logic [2:0] asked_q[2], way_q[2], data_q[2];
  logic [2:0] open_q[2][2];
  logic [3:0] writes_q;  // with data that the master has yet to send

  // The followed transaction.
  logic
      picked_q, taken_q, answered_q, giving_q, storing_q, id_q, len_q, in_range_q, target_q, beat_q;
  logic [3:0] local_q;
  logic [2:0] ahead_q, way_ahead_q, open_ahead_q, data_ahead_q;
  logic [3:0] writes_ahead_q;
  logic in_beat_q, followed_answer;

  assign followed_answer = picked_q && out_id == id_q && ahead_q == '0;

  for (genvar i = 0; i < 2; i++) begin : gen_count
    logic begins;
    assign begins = ax_fire && in_range && target == 1'(i);
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        asked_q[i] <= '0;
        way_q[i] <= '0;
        data_q[i] <= '0;
        open_q[i][0] <= '0;
        open_q[i][1] <= '0;
      end else begin
        asked_q[i] <= asked_q[i] + 3'(ax_fire && ax_id_i == 1'(i)) - 3'(out_end && out_id == 1'(i));
        way_q[i] <= way_q[i] + 3'(begins) - 3'(ax_fires[i]);
        data_q[i] <= data_q[i] + 3'(begins && Write) - 3'(w_fires[i] && w_lasts[i]);
        for (int unsigned j = 0; j < 2; j++)
        open_q[i][j] <= open_q[i][j] + 3'(ax_fires[i] && m_ax[i].id[0] == 1'(j)) - 3'(in_end[i] && in_id_i[i] == 1'(j));
      end
    end
    assign in_mark[i] = picked_q && taken_q && !answered_q && in_range_q && target_q == 1'(i) && in_id_i[i] == id_q && open_ahead_q == '0;
    assign in_beat[i] = in_mark[i] && in_beat_q;

    logic stall_q, stall_id_q, stall_last_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) stall_q <= 1'b0;
      else stall_q <= in_valid_i[i] && !in_ready[i];
    end
    always_ff @(posedge clk_i) begin
      stall_id_q <= in_id_i[i];
      stall_last_q <= in_last_i[i];
    end
    AnswerStays :
    assume property (@(posedge clk_i) !stall_q || (in_valid_i[i] && in_id_i[i] == stall_id_q && in_last_i[i] == stall_last_q));
    AnswersWhatIsOwed :
    assume property (@(posedge clk_i) !in_valid_i[i] || open_q[i][in_id_i[i]] != '0);
    AsLongAsAsked :
    assume property (@(posedge clk_i) !in_mark[i] || in_last_i[i] == (in_beat_q == len_q));

    logic to_this_slave;
    assign to_this_slave = picked_q && in_range_q && target_q == 1'(i);
    `NS_ASSERT(no_spurious_address, !ax_valid[i] || way_q[i] != '0)
    `NS_ASSERT(address_intact,
               !(ax_valid[i] && to_this_slave && !taken_q && way_ahead_q == '0) ||
        (m_ax[i].id == IdWidth'(id_q) && m_ax[i].len == 8'(len_q) && m_ax[i].addr == AddrWidth'({local_q, 11'b0})))
    `NS_ASSERT(no_spurious_data, !w_valid[i] || data_q[i] != '0)
    `NS_ASSERT(data_in_order,
               !w_valid[i] || w_marks[i] == (storing_q && in_range_q && target_q == 1'(i) && data_ahead_q == '0))
  end

  // With `Outside` all addresses leave in the order of their arrival.
  logic [3:0] targets_q;  // of the addresses inside, the oldest in the low bits
  logic [2:0] inside_q;
  logic leaves;
  assign leaves = ax_fires != '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q  <= '0;
      targets_q <= '0;
    end else if (Outside) begin
      inside_q <= inside_q + 3'(ax_fire) - 3'(leaves);
      if (leaves) targets_q <= targets_q >> 1;
      if (ax_fire) targets_q[2'(inside_q-3'(leaves))] <= target;
    end
  end
  `NS_ASSERT(
      leave_in_order,
      !Outside || ax_valid == '0 || (inside_q != '0 && ax_valid == (targets_q[0] ? 2'b10 : 2'b01)))

  // Write data: the master sends it after its address, with the beat's number.
  logic w_stall_q, w_beat_q;
  logic [1:0] m_beat_q;
  logic [3:0] lens_q;  // of the writes with data to come
  assign w_mark = giving_q && writes_ahead_q == '0;
  assign w_idx = w_beat_q;
  assign w_last = w_beat_q == lens_q[0];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      w_stall_q <= 1'b0;
      w_beat_q <= 1'b0;
      m_beat_q <= '0;
      lens_q <= '0;
      writes_q <= '0;
    end else if (Write) begin
      w_stall_q <= w_valid_i && !w_ready;
      if (w_fire) w_beat_q <= !w_last;
      m_beat_q <= (m_beat_q & ~w_fires) | (w_fires & ~w_lasts);
      writes_q <= writes_q + 4'(ax_fire) - 4'(w_fire && w_last);
      if (w_fire && w_last) lens_q <= lens_q >> 1;
      if (ax_fire) lens_q[2'(writes_q-4'(w_fire&&w_last))] <= ax_len_i;
    end
  end
  DataStay :
  assume property (@(posedge clk_i) !w_stall_q || w_valid_i);
  DataBehindAddress :
  assume property (@(posedge clk_i) !w_valid_i || writes_q != '0);
  FewWrites :
  assume property (@(posedge clk_i) !(Write && ax_valid_i) || writes_q < 4'd3);
  `NS_ASSERT(beats_in_order, ((w_idxs ^ m_beat_q) & w_valid) == '0)

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      picked_q <= 1'b0;
      taken_q <= 1'b0;
      answered_q <= 1'b0;
      giving_q <= 1'b0;
      storing_q <= 1'b0;
      id_q <= 1'b0;
      len_q <= 1'b0;
      in_range_q <= 1'b0;
      target_q <= 1'b0;
      local_q <= '0;
      beat_q <= 1'b0;
      in_beat_q <= 1'b0;
      ahead_q <= '0;
      way_ahead_q <= '0;
      open_ahead_q <= '0;
      data_ahead_q <= '0;
      writes_ahead_q <= '0;
    end else if (!picked_q && !giving_q && !storing_q) begin
      if (ax_fire && pick_i) begin
        picked_q <= 1'b1;
        taken_q <= 1'b0;
        answered_q <= 1'b0;
        giving_q <= Write;
        storing_q <= Write && in_range;
        id_q <= ax_id_i;
        len_q <= ax_len_i;
        in_range_q <= in_range;
        target_q <= target;
        local_q <= local_addr;
        beat_q <= 1'b0;
        in_beat_q <= 1'b0;
        ahead_q <= asked_q[ax_id_i] - 3'(out_end && out_id == ax_id_i);
        way_ahead_q <= way_q[target] - 3'(ax_fires[target]);
        data_ahead_q <= data_q[target] - 3'(w_fires[target] && w_lasts[target]);
        writes_ahead_q <= writes_q - 4'(w_fire && w_last);
      end
    end else begin
      if (in_range_q && !taken_q && ax_fires[target_q]) begin
        way_ahead_q <= way_ahead_q - 3'(way_ahead_q != '0);
        if (way_ahead_q == '0) begin
          taken_q <= 1'b1;
          open_ahead_q <= open_q[target_q][id_q] - 3'(in_end[target_q] && in_id_i[target_q] == id_q);
        end
      end
      if (taken_q && in_end[target_q] && in_id_i[target_q] == id_q && open_ahead_q != '0)
        open_ahead_q <= open_ahead_q - 1'b1;
      if (in_mark[target_q] && in_valid_i[target_q] && in_ready[target_q]) begin
        in_beat_q <= 1'b1;
        answered_q <= in_end[target_q];
      end
      if (giving_q && w_fire && w_last) begin
        giving_q <= writes_ahead_q != '0;
        writes_ahead_q <= writes_ahead_q - 4'(writes_ahead_q != '0);
      end
      if (storing_q && w_fires[target_q] && w_lasts[target_q]) begin
        storing_q <= data_ahead_q != '0;
        data_ahead_q <= data_ahead_q - 3'(data_ahead_q != '0);
      end
      if (out_fire && followed_answer) beat_q <= 1'b1;
      if (out_end && out_id == id_q && picked_q) begin
        picked_q <= ahead_q != '0;
        ahead_q <= ahead_q - 3'(ahead_q != '0);
      end
    end
  end

  logic ax_stall_q, ax_id_q, ax_len_q;
  logic [3:0] ax_addr_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ax_stall_q <= 1'b0;
    else ax_stall_q <= ax_valid_i && !ax_ready;
  end
  always_ff @(posedge clk_i) begin
    ax_id_q <= ax_id_i;
    ax_len_q <= ax_len_i;
    ax_addr_q <= ax_addr_i;
  end
  AddressStays :
  assume property (@(posedge clk_i)
      !ax_stall_q || (ax_valid_i && ax_id_i == ax_id_q && ax_len_i == ax_len_q && ax_addr_i == ax_addr_q));

  // All sides make progress: a handshake occurs.
  logic willing, busy, moves;
  logic [4:0] waited_q;
  assign willing = ax_ready_i == '1 && w_ready_i == '1 && out_ready_i && (!Write || writes_q == '0 || w_valid_i) &&
      (in_valid_i[0] || (open_q[0][0] == '0 && open_q[0][1] == '0)) &&
      (in_valid_i[1] || (open_q[1][0] == '0 && open_q[1][1] == '0));
  assign busy = ax_valid_i || asked_q[0] != '0 || asked_q[1] != '0;
  assign moves = out_fire;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else if (!busy || moves) waited_q <= '0;
    else if (willing && waited_q != '1) waited_q <= waited_q + 1'b1;
  end

  `NS_ASSERT(response_was_requested, !out_valid || asked_q[out_id] != '0)
  `NS_ASSERT(
      in_its_place,
      !out_valid || out_resp == (followed_answer ? (in_range_q ? 2'b01 : RespDecErr) : 2'b00) || (!followed_answer && out_resp == RespDecErr))
  `NS_ASSERT(
      beats,
      !(out_valid && followed_answer) || Write || (out_last == (beat_q == len_q) && (!in_range_q || out_beat == beat_q)))
  `NS_ASSERT(makes_progress, 32'(waited_q) < Bound)

  `NS_COVER(from_both, out_end && followed_answer && in_range_q && $past(out_fire) && $past
            (out_resp) == RespDecErr)
  `NS_COVER(waits_for_another, out_end && followed_answer && in_range_q && $past(ahead_q) == 3'd1)

endmodule
