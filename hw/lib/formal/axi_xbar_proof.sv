// SPDX-License-Identifier: Apache-2.0

// ns_axi_xbar, two masters and two slaves that follow AXI: no deadlock, whatever the order of
// writes to both slaves and of their acceptance. Each response goes to the master that requested
// it.
//
// Deadlock: while nothing outside waits (slaves accept and respond, masters send data and accept
// responses), a handshake occurs at some port within `Bound` cycles.
`include "ns_assert.svh"

module axi_xbar_proof
  import ns_axi_pkg::*;
#(
  /// 1: writes; 0: reads.
  parameter bit Write = 1'b1,
  /// See above; an address passes three register slices.
  parameter int unsigned Bound = 5
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [1:0] ax_valid_i,
  input logic [1:0] ax_to_i,
  input logic [1:0] ax_len_i,
  input logic [1:0] w_valid_i,
  input logic [1:0] out_ready_i,
  input logic [1:0] ax_ready_i,
  input logic [1:0] w_ready_i,
  input logic [1:0] in_valid_i,
  input logic [1:0] in_owner_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  ns_axi_if s[2] ();
  ns_axi_if m[2] ();

  logic [1:0]
      ax_fire, w_fire, w_last, out_valid, out_fire, out_tag, m_ax_fire, m_w_fire, m_w_last, in_fire;
  logic [1:0] gives, takes, w_ready;

  // For each pair: outstanding responses; for each master and slave: writes with data to come.
  logic [2:0] owed_q[2][2];
  logic [2:0] asked_q[2][2];
  logic [2:0] writes_q[2], data_q[2];
  logic [3:0] lens_q[2];
  logic [1:0] beat_q;

  for (genvar i = 0; i < 2; i++) begin : gen_master
    ax_t ax;
    assign ax = '{len: 8'(ax_len_i[i] && Write), addr: AddrWidth'({ax_to_i[i], 12'b0}), default: '0};
    assign s[i].aw = ax;
    assign s[i].ar = ax;
    assign s[i].aw_valid = Write && ax_valid_i[i];
    assign s[i].ar_valid = !Write && ax_valid_i[i];
    assign s[i].w = '{last: w_last[i], default: '0};
    assign s[i].w_valid = Write && w_valid_i[i];
    assign s[i].b_ready = out_ready_i[i];
    assign s[i].r_ready = out_ready_i[i];
    assign ax_fire[i] = ax_valid_i[i] && (Write ? s[i].aw_ready : s[i].ar_ready);
    assign w_ready[i] = s[i].w_ready;
    assign w_fire[i] = s[i].w_valid && w_ready[i];
    assign w_last[i] = beat_q[i] == lens_q[i][0];
    assign out_valid[i] = Write ? s[i].b_valid : s[i].r_valid;
    assign out_fire[i] = out_valid[i] && out_ready_i[i];
    assign out_tag[i] = Write ? s[i].b.resp[0] : s[i].r.resp[0];  // the slave's number
    assign gives[i] = !Write || writes_q[i] == '0 || w_valid_i[i];

    logic stall_q, to_q, len_q, w_stall_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        writes_q[i] <= '0;
        lens_q[i] <= '0;
        beat_q[i] <= 1'b0;
        stall_q <= 1'b0;
        w_stall_q <= 1'b0;
        asked_q[i][0] <= '0;
        asked_q[i][1] <= '0;
      end else begin
        for (int unsigned j = 0; j < 2; j++)
        asked_q[i][j] <= asked_q[i][j] + 3'(ax_fire[i] && ax_to_i[i] == 1'(j)) - 3'(out_fire[i] && out_tag[i] == 1'(j));
        stall_q <= ax_valid_i[i] && !ax_fire[i];
        w_stall_q <= w_valid_i[i] && !w_ready[i];
        if (Write) writes_q[i] <= writes_q[i] + 3'(ax_fire[i]) - 3'(w_fire[i] && w_last[i]);
        if (w_fire[i]) beat_q[i] <= !w_last[i];
        if (w_fire[i] && w_last[i]) lens_q[i] <= lens_q[i] >> 1;
        if (ax_fire[i]) lens_q[i][2'(writes_q[i]-3'(w_fire[i]&&w_last[i]))] <= ax_len_i[i];
      end
    end
    always_ff @(posedge clk_i) begin
      to_q <= ax_to_i[i];
      len_q <= ax_len_i[i];
    end
    AddressStays :
    assume property (@(posedge clk_i) !stall_q || (ax_valid_i[i] && ax_to_i[i] == to_q && ax_len_i[i] == len_q));
    DataStay :
    assume property (@(posedge clk_i) !w_stall_q || w_valid_i[i]);
    DataBehindAddress :
    assume property (@(posedge clk_i) !w_valid_i[i] || writes_q[i] != '0);
    FewWrites :
    assume property (@(posedge clk_i) !ax_valid_i[i] || writes_q[i] < 3'd3);

    // All transactions have one ID: responses of both slaves arrive in the order of the addresses.
    logic [7:0] order_q;
    logic [3:0] count_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        order_q <= '0;
        count_q <= '0;
      end else begin
        if (out_fire[i]) order_q <= order_q >> 1;
        if (ax_fire[i]) order_q[3'(count_q-4'(out_fire[i]))] <= ax_to_i[i];
        count_q <= count_q + 4'(ax_fire[i]) - 4'(out_fire[i]);
      end
    end
    FewAsked :
    assume property (@(posedge clk_i) !ax_valid_i[i] || count_q < 4'd8);
    `NS_ASSERT(response_was_requested, !out_valid[i] || count_q != '0)
    `NS_ASSERT(in_order, !out_valid[i] || out_tag[i] == order_q[0])
  end

  for (genvar i = 0; i < 2; i++) begin : gen_slave
    logic owner;
    assign m[i].aw_ready = ax_ready_i[i];
    assign m[i].ar_ready = ax_ready_i[i];
    assign m[i].w_ready = w_ready_i[i];
    assign m[i].b = '{id: IdWidth'({in_owner_i[i], 1'b0}), resp: 2'(i)};
    assign m[i].b_valid = Write && in_valid_i[i];
    assign m[i].r = '{id: IdWidth'({in_owner_i[i], 1'b0}), resp: 2'(i), last: 1'b1, data: '0};
    assign m[i].r_valid = !Write && in_valid_i[i];
    assign m_ax_fire[i] = (Write ? m[i].aw_valid : m[i].ar_valid) && ax_ready_i[i];
    assign owner = Write ? m[i].aw.id[1] : m[i].ar.id[1];
    assign m_w_fire[i] = m[i].w_valid && w_ready_i[i];
    assign m_w_last[i] = m[i].w.last;
    assign in_fire[i] = in_valid_i[i] && (Write ? m[i].b_ready : m[i].r_ready);
    assign takes[i] = ax_ready_i[i] && w_ready_i[i] && (in_valid_i[i] || (owed_q[i][0] == '0 && owed_q[i][1] == '0) ||
        (Write && data_q[i] != '0));

    logic stall_q, owner_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        owed_q[i][0] <= '0;
        owed_q[i][1] <= '0;
        data_q[i] <= '0;
        stall_q <= 1'b0;
      end else begin
        for (int unsigned j = 0; j < 2; j++)
        owed_q[i][j] <= owed_q[i][j] + 3'(m_ax_fire[i] && owner == 1'(j)) - 3'(in_fire[i] && in_owner_i[i] == 1'(j));
        // Data may arrive one burst before its address: the count is -1 until then.
        if (Write) data_q[i] <= data_q[i] + 3'(m_ax_fire[i]) - 3'(m_w_fire[i] && m_w_last[i]);
        stall_q <= in_valid_i[i] && !in_fire[i];
      end
    end
    always_ff @(posedge clk_i) owner_q <= in_owner_i[i];
    AnswerStays :
    assume property (@(posedge clk_i) !stall_q || (in_valid_i[i] && in_owner_i[i] == owner_q));
    AnswersWhatIsOwed :
    assume property (@(posedge clk_i) !in_valid_i[i] || owed_q[i][in_owner_i[i]] != '0);
  end

  ns_axi_xbar #(
    .NumMasters    (2),
    .NumSlaves     (2),
    .Bytes         (64'h2000),
    .IdBits        (1),
    .MaxOutstanding(2),
    .MaxWrites     (2),
    .OrderBits     (1)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_axi(s),
    .m_axi(m)
  );

  logic busy, moves, willing;
  logic [2:0] still_q;
  assign busy = ax_valid_i != '0 || asked_q[0][0] != '0 || asked_q[0][1] != '0 || asked_q[1][0] != '0 || asked_q[1][1] != '0;
  assign moves = (ax_fire | w_fire | out_fire | m_ax_fire | m_w_fire | in_fire) != '0;
  assign willing = out_ready_i == '1 && gives == '1 && takes == '1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) still_q <= '0;
    else still_q <= (busy && willing && !moves) ? still_q + 3'(still_q != '1) : '0;
  end

  `NS_ASSERT(no_deadlock, 32'(still_q) < Bound)
  `NS_COVER(
      crossed,
      Write && data_q[0] != '0 && data_q[1] != '0 && asked_q[0][0] != '0 && asked_q[0][1] != '0 && asked_q[1][0] != '0 && asked_q[1][1] != '0)

endmodule
