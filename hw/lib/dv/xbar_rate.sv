// Throughput bench of ns_axi_xbar: masters that always have something to send, slaves that always answer at once.
//
// Burst k of master i goes to slave (i + k) % N, so every port can be busy in every cycle. Counts the beats at each port.
module xbar_rate
  import ns_axi_pkg::*;
#(
  /// Masters and slaves, a power of two.
  parameter int unsigned N = 2,
  /// Beats of a burst.
  parameter int unsigned Beats = 16
) (
  /// Clock.
  input  logic               clk_i,
  /// Reset.
  input  logic               rst_ni,
  /// Beats written by each master.
  output logic [N-1:0][31:0] writes_o,
  /// Write responses to each master.
  output logic [N-1:0][31:0] responses_o,
  /// Beats read by each master.
  output logic [N-1:0][31:0] reads_o
);

  localparam logic [7:0] Len = 8'(Beats - 1);

  ax_t [N-1:0] s_aw, s_ar, m_aw, m_ar;
  w_t [N-1:0] s_w, m_w;
  b_t [N-1:0] s_b, m_b;
  r_t [N-1:0] s_r, m_r;
  logic [N-1:0] s_aw_ready, s_w_ready, s_b_valid, s_ar_ready, s_r_valid;
  logic [N-1:0] m_aw_valid, m_w_valid, m_b_valid, m_ar_valid, m_r_valid;
  logic [N-1:0] m_aw_ready, m_w_ready, m_b_ready, m_ar_ready, m_r_ready;

  ns_axi_xbar #(
    .NumMasters(N),
    .NumSlaves (N)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_aw_i      (s_aw),
    .s_aw_valid_i('1),
    .s_aw_ready_o(s_aw_ready),
    .s_w_i       (s_w),
    .s_w_valid_i ('1),
    .s_w_ready_o (s_w_ready),
    .s_b_o       (s_b),
    .s_b_valid_o (s_b_valid),
    .s_b_ready_i ('1),
    .s_ar_i      (s_ar),
    .s_ar_valid_i('1),
    .s_ar_ready_o(s_ar_ready),
    .s_r_o       (s_r),
    .s_r_valid_o (s_r_valid),
    .s_r_ready_i ('1),
    .m_aw_o      (m_aw),
    .m_aw_valid_o(m_aw_valid),
    .m_aw_ready_i(m_aw_ready),
    .m_w_o       (m_w),
    .m_w_valid_o (m_w_valid),
    .m_w_ready_i (m_w_ready),
    .m_b_i       (m_b),
    .m_b_valid_i (m_b_valid),
    .m_b_ready_o (m_b_ready),
    .m_ar_o      (m_ar),
    .m_ar_valid_o(m_ar_valid),
    .m_ar_ready_i(m_ar_ready),
    .m_r_i       (m_r),
    .m_r_valid_i (m_r_valid),
    .m_r_ready_o (m_r_ready)
  );

  for (genvar i = 0; i < N; i++) begin : gen_master
    logic [31:0] aw_q, ar_q, w_q, b_q, r_q;  // addresses sent, beats
    logic [7:0] w_left_q;

    assign s_aw[i] = '{id: 8'(aw_q[3:0]), len: Len, size: 3'd6, burst: BurstIncr, addr: 64'(aw_q + i) << 12};
    assign s_ar[i] = '{id: 8'(ar_q[3:0]), len: Len, size: 3'd6, burst: BurstIncr, addr: 64'(ar_q + i) << 12};
    assign s_w[i] = '{last: w_left_q == '0, strb: '1, data: 512'(w_q)};
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
        if (s_aw_ready[i]) aw_q <= aw_q + 1;
        if (s_ar_ready[i]) ar_q <= ar_q + 1;
        if (s_w_ready[i]) begin
          w_q <= w_q + 1;
          w_left_q <= (w_left_q == '0) ? Len : w_left_q - 1'b1;
        end
        if (s_b_valid[i]) b_q <= b_q + 1;
        if (s_r_valid[i]) r_q <= r_q + 1;
      end
    end
  end

  for (genvar i = 0; i < N; i++) begin : gen_slave
    logic [7:0] r_left_q, r_id_q;
    logic r_valid_q;
    logic [7:0] b_id;
    logic b_queue_valid, last_queue_valid;

    // A write is answered once both its address and its last beat are here.
    ns_fifo #(
      .Width(8),
      .Depth(32)
    ) u_ids (
      .clk_i,
      .rst_ni,
      .in_valid_i (m_aw_valid[i]),
      .in_ready_o (m_aw_ready[i]),
      .in_data_i  (m_aw[i].id),
      .out_valid_o(b_queue_valid),
      .out_ready_i(m_b_valid[i] && m_b_ready[i]),
      .out_data_o (b_id),
      .count_o    ()
    );

    ns_fifo #(
      .Width(1),
      .Depth(32)
    ) u_lasts (
      .clk_i,
      .rst_ni,
      .in_valid_i (m_w_valid[i] && m_w[i].last),
      .in_ready_o (m_w_ready[i]),
      .in_data_i  (1'b1),
      .out_valid_o(last_queue_valid),
      .out_ready_i(m_b_valid[i] && m_b_ready[i]),
      .out_data_o (),
      .count_o    ()
    );

    assign m_b[i] = '{id: b_id, resp: RespOkay};
    assign m_b_valid[i] = b_queue_valid && last_queue_valid;

    assign m_r[i] = '{id: r_id_q, resp: RespOkay, last: r_left_q == '0, data: 512'(r_left_q)};
    assign m_r_valid[i] = r_valid_q;
    assign m_ar_ready[i] = !r_valid_q || (m_r_ready[i] && r_left_q == '0);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        r_valid_q <= 1'b0;
        r_left_q <= '0;
        r_id_q <= '0;
      end else if (m_ar_ready[i]) begin
        r_valid_q <= m_ar_valid[i];
        r_left_q <= m_ar[i].len;
        r_id_q <= m_ar[i].id;
      end else if (m_r_ready[i]) begin
        r_left_q <= r_left_q - 1'b1;
      end
    end
  end

endmodule
