// SPDX-License-Identifier: Apache-2.0

// ns_axi_timeout, one direction at a time, with two IDs, between a master and a slave that answers
// anything at any time, or never. The slave is assumed only to send the beats of an ID's bursts in
// order.
//
// Shown: the master gets exactly the requested beats of each ID, `last` with the last one of each
// burst. A beat of the slave goes to its transaction, or is dropped, and dropped only after the
// master got an error for it. An error comes only after `Cycles` without progress. An outstanding
// ID makes progress within `Bound` cycles in which the master accepts.
//
// The solver picks any one burst and this module follows it: its beats carry a mark.
`include "ns_assert.svh"

module timeout_proof
  import ns_axi_pkg::*;
#(
  /// 1: writes; 0: reads.
  parameter bit Write = 1'b0,
  /// Also show progress.
  parameter bit Progress = 1'b1,
  /// Most beats of a read - 1, up to 3.
  parameter int unsigned MaxLen = 1,
  /// See ns_axi_timeout.
  parameter int unsigned Cycles = 2,
  /// Most bursts of an ID outstanding at the slave, abandoned ones included, up to 4.
  parameter int unsigned MaxOwed = 2,
  parameter int unsigned Bound = 24
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       ax_valid_i,
  input logic       ax_id_i,
  input logic [1:0] ax_len_i,
  input logic       ax_ready_i,
  input logic       in_valid_i,
  input logic       in_id_i,
  input logic       out_ready_i,
  input logic       pick_i
);

  localparam int unsigned MaxBursts = 2;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  ns_axi_if s_axi ();
  ns_axi_if m_axi ();
  logic
      ax_fire,
      in_ready,
      in_fire,
      in_last,
      in_mark,
      out_valid,
      out_fire,
      out_id,
      out_last,
      out_error,
      out_mark;
  logic ax_stall;
  logic [1:0] in_beat, out_beat;
  ax_t ax;
  assign ax = '{id: IdWidth'(ax_id_i), len: 8'(ax_len_i), default: '0};

  assign s_axi.aw = ax;
  assign s_axi.ar = ax;
  assign s_axi.aw_valid = Write && ax_valid_i;
  assign s_axi.ar_valid = !Write && ax_valid_i;
  assign s_axi.w = '0;
  assign s_axi.w_valid = 1'b0;
  assign s_axi.b_ready = Write && out_ready_i;
  assign s_axi.r_ready = !Write && out_ready_i;
  assign m_axi.aw_ready = ax_ready_i;
  assign m_axi.ar_ready = ax_ready_i;
  assign m_axi.w_ready = 1'b0;
  assign m_axi.b = '{id: IdWidth'(in_id_i), resp: {1'b0, in_mark}};
  assign m_axi.b_valid = Write && in_valid_i;
  assign m_axi.r =
      '{id: IdWidth'(in_id_i), resp: {1'b0, in_mark}, last: in_last, data: DataWidth'(in_beat)};
  assign m_axi.r_valid = !Write && in_valid_i;

  assign ax_fire = Write ? s_axi.aw_valid && s_axi.aw_ready : s_axi.ar_valid && s_axi.ar_ready;
  assign ax_stall = ax_valid_i && !ax_fire;
  assign in_ready = Write ? m_axi.b_ready : m_axi.r_ready;
  assign in_fire = in_valid_i && in_ready;
  assign out_valid = Write ? s_axi.b_valid : s_axi.r_valid;
  assign out_fire = out_valid && out_ready_i;
  assign out_id = Write ? s_axi.b.id[0] : s_axi.r.id[0];
  assign {out_error, out_mark} = Write ? s_axi.b.resp : s_axi.r.resp;
  assign out_last = Write || s_axi.r.last;
  assign out_beat = Write ? '0 : s_axi.r.data[1:0];

  ns_axi_timeout #(
    .IdBits   (1),
    .Cycles   (Cycles),
    .MaxBursts(MaxBursts),
    .LostBits (2)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o(),
    .s_axi,
    .m_axi
  );

  // Outstanding of the slave and towards the master, per ID: lengths of the bursts, beats of the
  // first one that have passed.
  logic [1:0] from_len_q[2][4], to_len_q[2][4];
  logic [2:0] from_q[2], to_q[2];
  logic [1:0] from_beat_q[2], to_beat_q[2];
  // Cycles without progress of an outstanding ID; those in which the master accepts.
  logic [2:0] still_q[2];
  logic [4:0] waited_q[2];

  assign in_beat = from_beat_q[in_id_i];
  assign in_last = in_beat == from_len_q[in_id_i][0];

  for (genvar i = 0; i < 2; i++) begin : gen_id
    logic add, sub, give;
    assign add = ax_fire && ax_id_i == 1'(i);
    assign sub = in_fire && in_id_i == 1'(i);
    assign give = out_fire && out_id == 1'(i);
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        from_q[i] <= '0;
        to_q[i] <= '0;
        from_beat_q[i] <= '0;
        to_beat_q[i] <= '0;
        still_q[i] <= '0;
        waited_q[i] <= '0;
        for (int unsigned j = 0; j < 4; j++) begin
          from_len_q[i][j] <= '0;
          to_len_q[i][j] <= '0;
        end
      end else begin
        if (sub) from_beat_q[i] <= in_last ? '0 : from_beat_q[i] + 1'b1;
        if (sub && in_last)
          for (int unsigned j = 0; j < 3; j++) from_len_q[i][j] <= from_len_q[i][j+1];
        if (add) from_len_q[i][2'(from_q[i]-3'(sub&&in_last))] <= ax_len_i;
        from_q[i] <= from_q[i] + 3'(add) - 3'(sub && in_last);
        if (give) to_beat_q[i] <= out_last ? '0 : to_beat_q[i] + 1'b1;
        if (give && out_last)
          for (int unsigned j = 0; j < 3; j++) to_len_q[i][j] <= to_len_q[i][j+1];
        if (add) to_len_q[i][2'(to_q[i]-3'(give&&out_last))] <= ax_len_i;
        to_q[i] <= to_q[i] + 3'(add) - 3'(give && out_last);
        if (to_q[i] == '0 || give) still_q[i] <= '0;
        else if (still_q[i] != '1) still_q[i] <= still_q[i] + 1'b1;
        if (to_q[i] == '0 || give) waited_q[i] <= '0;
        else if (out_ready_i && waited_q[i] != '1) waited_q[i] <= waited_q[i] + 1'b1;
      end
    end
    `NS_ASSERT(progress, !Progress || 32'(waited_q[i]) < Bound)
  end

  // The followed burst: bursts of its ID ahead of it on both sides.
  logic from_picked_q, to_picked_q, picked_id_q, to_here;
  logic [2:0] from_ahead_q, to_ahead_q;
  assign in_mark = from_picked_q && in_id_i == picked_id_q && from_ahead_q == '0;
  assign to_here = to_picked_q && out_id == picked_id_q && to_ahead_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      from_picked_q <= 1'b0;
      to_picked_q <= 1'b0;
      picked_id_q <= 1'b0;
      from_ahead_q <= '0;
      to_ahead_q <= '0;
    end else if (!from_picked_q && !to_picked_q) begin
      if (ax_fire && pick_i) begin
        from_picked_q <= 1'b1;
        to_picked_q <= 1'b1;
        picked_id_q <= ax_id_i;
        from_ahead_q <= from_q[ax_id_i] - 3'(in_fire && in_id_i == ax_id_i && in_last);
        to_ahead_q <= to_q[ax_id_i] - 3'(out_fire && out_id == ax_id_i && out_last);
      end
    end else begin
      if (in_fire && in_last && in_id_i == picked_id_q && from_picked_q) begin
        from_ahead_q <= from_ahead_q - 3'(from_ahead_q != '0);
        from_picked_q <= from_ahead_q != '0;
      end
      if (out_fire && out_last && out_id == picked_id_q && to_picked_q) begin
        to_ahead_q <= to_ahead_q - 3'(to_ahead_q != '0);
        to_picked_q <= to_ahead_q != '0;
      end
    end
  end

  // Neighbours that follow AXI.
  logic ax_stall_q, ax_id_q, in_stall_q, in_id_q;
  logic [1:0] ax_len_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ax_stall_q <= 1'b0;
      in_stall_q <= 1'b0;
    end else begin
      ax_stall_q <= ax_stall;
      in_stall_q <= in_valid_i && !in_ready;
    end
  end
  always_ff @(posedge clk_i) begin
    ax_id_q <= ax_id_i;
    ax_len_q <= ax_len_i;
    in_id_q <= in_id_i;
  end
  AddressStays :
  assume property (@(posedge clk_i) !ax_stall_q || (ax_valid_i && ax_id_i == ax_id_q && ax_len_i == ax_len_q));
  AnswerStays :
  assume property (@(posedge clk_i) !in_stall_q || (in_valid_i && in_id_i == in_id_q));
  ShortBursts :
  assume property (@(posedge clk_i) 32'(ax_len_i) <= (Write ? 0 : MaxLen));
  AnswersWhatIsOwed :
  assume property (@(posedge clk_i) !in_valid_i || from_q[in_id_i] != '0);
  FewOwed :
  assume property (@(posedge clk_i) !ax_valid_i || 32'(from_q[ax_id_i]) < MaxOwed);

  // Errors of an ID are consecutive.
  logic gave_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) gave_q <= 1'b0;
    else if (out_fire) gave_q <= out_error && to_q[out_id] != 3'(out_last);
  end

  `NS_ASSERT(response_was_requested, !out_valid || to_q[out_id] != '0)
  `NS_ASSERT(at_most_two, 32'(to_q[0]) <= MaxBursts && 32'(to_q[1]) <= MaxBursts)
  `NS_ASSERT(last_beat_matches_request,
             !out_valid || out_last == (to_beat_q[out_id] == to_len_q[out_id][0]))
  `NS_ASSERT(own_beats,
             !(out_valid && !out_error) || (out_mark == to_here && out_beat == to_beat_q[out_id]))
  `NS_ASSERT(passes_in_the_same_cycle,
             !(out_valid && !out_error) || (in_valid_i && in_id_i == out_id))
  `NS_ASSERT(
      dropped_only_if_late,
      !(in_fire && in_mark && (!out_fire || out_error)) || !to_picked_q || (to_ahead_q == '0 && to_beat_q[picked_id_q] > in_beat))
  `NS_ASSERT(not_too_early,
             !(out_valid && out_error) || 32'(still_q[out_id]) >= Cycles + 3 || gave_q)
  `NS_COVER(
      torn,
      out_fire && out_error && to_here && to_beat_q[out_id] != '0 && from_beat_q[out_id] != '0)
  `NS_COVER(late, in_fire && in_mark && !out_valid)
  `NS_COVER(recovers, out_fire && !out_error && $past(in_fire && !out_valid))

endmodule
