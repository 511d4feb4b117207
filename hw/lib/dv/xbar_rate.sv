// SPDX-License-Identifier: Apache-2.0

// Throughput bench of ns_axi_xbar: masters that always have data to send, slaves that always
// respond immediately.
//
// Burst k of master i goes to slave (i + k) % N, so every port can be busy in every cycle. Counts
// the beats at each port.
module xbar_rate
  import ns_axi_pkg::*;
#(
  /// Masters and slaves, a power of two.
  parameter int unsigned N = 2,
  /// Beats of a burst.
  parameter int unsigned Beats = 16
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// Beats written by each master.
  output logic [N-1:0][31:0] writes_o,
  /// Write responses to each master.
  output logic [N-1:0][31:0] responses_o,
  /// Beats read by each master.
  output logic [N-1:0][31:0] reads_o
);

  localparam logic [7:0] Len = 8'(Beats - 1);

  ns_axi_if s[N] ();
  ns_axi_if m[N] ();

  ns_axi_xbar #(
    .NumMasters(N),
    .NumSlaves (N)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_axi(s),
    .m_axi(m)
  );

  for (genvar i = 0; i < N; i++) begin : gen_master
    logic [31:0] aw_q, ar_q, w_q, b_q, r_q;  // addresses sent, beats
    logic [7:0] w_left_q;

    assign s[i].aw = '{id: IdWidth'(aw_q[3:0]), len: Len, size: 3'd6, burst: BurstIncr, addr: 64'(aw_q + i) << 12};
    assign s[i].ar = '{id: IdWidth'(ar_q[3:0]), len: Len, size: 3'd6, burst: BurstIncr, addr: 64'(ar_q + i) << 12};
    assign s[i].w = '{last: w_left_q == '0, strb: '1, data: 512'(w_q)};
    assign s[i].aw_valid = 1'b1;
    assign s[i].w_valid = 1'b1;
    assign s[i].b_ready = 1'b1;
    assign s[i].ar_valid = 1'b1;
    assign s[i].r_ready = 1'b1;
    assign writes_o[i] = w_q;
    assign responses_o[i] = b_q;
    assign reads_o[i] = r_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        aw_q <= '0;
        ar_q <= '0;
        w_q <= '0;
        b_q <= '0;
        r_q <= '0;
        w_left_q <= Len;
      end else begin
        if (s[i].aw_ready) aw_q <= aw_q + 1;
        if (s[i].ar_ready) ar_q <= ar_q + 1;
        if (s[i].w_ready) begin
          w_q <= w_q + 1;
          w_left_q <= (w_left_q == '0) ? Len : w_left_q - 1'b1;
        end
        if (s[i].b_valid) b_q <= b_q + 1;
        if (s[i].r_valid) r_q <= r_q + 1;
      end
    end
  end

  for (genvar i = 0; i < N; i++) begin : gen_slave
    logic [7:0] r_left_q;
    logic [IdWidth-1:0] r_id_q;
    logic r_valid_q;
    logic [IdWidth-1:0] b_id;
    logic b_queue_valid, last_queue_valid;

    // A write is answered once both its address and its last beat have arrived.
    ns_fifo #(
      .Width(IdWidth),
      .Depth(32)
    ) u_ids (
      .clk_i,
      .rst_ni,
      .in_valid_i (m[i].aw_valid),
      .in_ready_o (m[i].aw_ready),
      .in_data_i  (m[i].aw.id),
      .out_valid_o(b_queue_valid),
      .out_ready_i(m[i].b_valid && m[i].b_ready),
      .out_data_o (b_id),
      .count_o    ()
    );

    ns_fifo #(
      .Width(1),
      .Depth(32)
    ) u_lasts (
      .clk_i,
      .rst_ni,
      .in_valid_i (m[i].w_valid && m[i].w.last),
      .in_ready_o (m[i].w_ready),
      .in_data_i  (1'b1),
      .out_valid_o(last_queue_valid),
      .out_ready_i(m[i].b_valid && m[i].b_ready),
      .out_data_o (),
      .count_o    ()
    );

    assign m[i].b = '{id: b_id, resp: RespOkay};
    assign m[i].b_valid = b_queue_valid && last_queue_valid;

    assign m[i].r = '{id: r_id_q, resp: RespOkay, last: r_left_q == '0, data: 512'(r_left_q)};
    assign m[i].r_valid = r_valid_q;
    assign m[i].ar_ready = !r_valid_q || (m[i].r_ready && r_left_q == '0);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        r_valid_q <= 1'b0;
        r_left_q <= '0;
        r_id_q <= '0;
      end else if (m[i].ar_ready) begin
        r_valid_q <= m[i].ar_valid;
        r_left_q <= m[i].ar.len;
        r_id_q <= m[i].ar.id;
      end else if (m[i].r_ready) begin
        r_left_q <= r_left_q - 1'b1;
      end
    end
  end

endmodule
