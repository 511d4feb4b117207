// SPDX-License-Identifier: Apache-2.0

// AXI4 multiplexer: N masters share one slave.
//
// Addresses are granted round robin or by weights (ns_wrr_arbiter), independently on each channel.
// Write data follows the order of the granted write addresses. An ID grows by the number of its
// port, above the `IdBits` bits that the masters use. That number routes responses back and is
// hidden from the masters, so multiplexers cascade. Transactions of one master with one ID keep
// their order as far as the slave keeps it.
//
// Full throughput on every channel; each channel passes one register slice on the slave's side. Up
// to `MaxWrites` writes may wait for the data of the current one. Write data is accepted no earlier
// than the cycle after its address. Does not check addresses, and does not limit outstanding
// transactions.
`include "ns_assert.svh"

module ns_axi_mux
  import ns_axi_pkg::*;
#(
  /// Number of masters.
  parameter int unsigned N = 2,
  /// Bits of the masters' IDs; those above are 0.
  parameter int unsigned IdBits = 4,
  /// Writes whose address has been granted and whose data has not started.
  parameter int unsigned MaxWrites = 16,
  /// 1: masters are urgent or have weights in beats; 0: round robin.
  parameter bit Weighted = 1'b0,
  /// Bits of a weight.
  parameter int unsigned WeightBits = 8
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  /// Masters with priority. From a register.
  input  logic [N-1:0] urgent_i = '0,
  /// Weights of the others, at least 1. From registers.
  input  logic [N-1:0][WeightBits-1:0] weight_i = '1,

  /// Masters.
  ns_axi_if.slave s_axi[N],

  /// Slave.
  ns_axi_if.master m_axi
);

  localparam int unsigned IdxBits = idx_width(N);
  localparam int unsigned PortBits = unsigned'($clog2(N));
  localparam logic [IdWidth-1:0] MasterIdMask = IdWidth'((1 << IdBits) - 1);

  // The masters' buses, one vector per signal.
  logic [N-1:0] s_aw_valid, s_aw_ready, s_w_valid, s_w_ready, s_b_valid, s_b_ready;
  logic [N-1:0] s_ar_valid, s_ar_ready, s_r_valid, s_r_ready;

  // The master of an ID, one-hot.
  function automatic logic [N-1:0] owner(logic [IdWidth-1:0] id);
    for (int unsigned i = 0; i < N; i++) owner[i] = (id >> IdBits) == IdWidth'(i);
  endfunction

  // Write addresses. An address is granted only together with an entry in the queue of write data.
  logic aw_valid, aw_ready, aw_slice_ready, order_ready;
  logic [N-1:0] aw_gnt;
  logic [N-1:0][8:0] aw_beats;
  logic [IdxBits-1:0] aw_idx;
  logic [$bits(ax_t)-1:0] aw[N];

  assign aw_ready = aw_slice_ready && order_ready;
  assign s_aw_ready = aw_gnt & {N{aw_ready}};

  if (Weighted) begin : gen_aw_weighted
    ns_wrr_arbiter #(
      .N         (N),
      .WeightBits(WeightBits)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .urgent_i,
      .weight_i,
      .req_i  (s_aw_valid),
      .cost_i (aw_beats),
      .next_i (aw_ready),
      .gnt_o  (aw_gnt),
      .idx_o  (aw_idx),
      .valid_o(aw_valid)
    );
  end else begin : gen_aw_round_robin
    ns_rr_arbiter #(
      .N(N)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .req_i  (s_aw_valid),
      .next_i (aw_ready),
      .gnt_o  (aw_gnt),
      .idx_o  (aw_idx),
      .valid_o(aw_valid)
    );
  end

  for (genvar i = 0; i < N; i++) begin : gen_aw
    assign s_aw_valid[i] = s_axi[i].aw_valid;
    assign s_axi[i].aw_ready = s_aw_ready[i];
    ax_t ax;
    always_comb begin
      ax = s_axi[i].aw;
      ax.id = ax.id | IdWidth'(i << IdBits);
    end
    assign aw[i] = ax;
    assign aw_beats[i] = 9'(ax.len) + 9'd1;
  end

  ns_skid_mux #(
    .N    (N),
    .Width($bits(ax_t))
  ) u_aw_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (aw_valid && order_ready),
    .in_ready_o (aw_slice_ready),
    .in_idx_i   (aw_idx),
    .in_data_i  (aw),
    .out_valid_o(m_axi.aw_valid),
    .out_ready_i(m_axi.aw_ready),
    .out_data_o (m_axi.aw)
  );

  // The order of write data: the first master in registers, the others in a queue.
  logic order_push, order_bypass, queue_valid;
  logic [N-1:0] first_q;  // one-hot, 0 if none
  logic [IdxBits-1:0] first_idx_q, queue_idx;
  logic w_valid, w_ready, w_last_fire;
  logic [N-1:0] w_last;
  logic [$bits(w_t)-1:0] w[N];

  assign order_push = aw_valid && aw_ready;
  assign order_bypass = first_q == '0 || (w_last_fire && !queue_valid);

  ns_fifo #(
    .Width(IdxBits),
    .Depth(MaxWrites)
  ) u_order (
    .clk_i,
    .rst_ni,
    .in_valid_i (order_push && !order_bypass),
    .in_ready_o (order_ready),
    .in_data_i  (aw_idx),
    .out_valid_o(queue_valid),
    .out_ready_i(w_last_fire),
    .out_data_o (queue_idx),
    .count_o    ()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= '0;
      first_idx_q <= '0;
    end else if (first_q == '0 || w_last_fire) begin
      first_q <= queue_valid ? N'(1) << queue_idx : aw_gnt & {N{order_push}};
      first_idx_q <= queue_valid ? queue_idx : aw_idx;
    end
  end

  for (genvar i = 0; i < N; i++) begin : gen_w
    assign s_w_valid[i] = s_axi[i].w_valid;
    assign s_axi[i].w_ready = s_w_ready[i];
    assign w[i] = s_axi[i].w;
    assign w_last[i] = s_axi[i].w.last;
  end
  assign w_valid = (first_q & s_w_valid) != '0;
  assign w_last_fire = w_ready && (first_q & s_w_valid & w_last) != '0;
  assign s_w_ready = first_q & {N{w_ready}};

  ns_skid_mux #(
    .N    (N),
    .Width($bits(w_t))
  ) u_w_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (w_valid),
    .in_ready_o (w_ready),
    .in_idx_i   (first_idx_q),
    .in_data_i  (w),
    .out_valid_o(m_axi.w_valid),
    .out_ready_i(m_axi.w_ready),
    .out_data_o (m_axi.w)
  );

  // Write responses.
  logic b_valid;
  logic [N-1:0] b_owner;
  b_t b;

  ns_skid #(
    .Width($bits(b_t))
  ) u_b_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (m_axi.b_valid),
    .in_ready_o (m_axi.b_ready),
    .in_data_i  (m_axi.b),
    .out_valid_o(b_valid),
    .out_ready_i((s_b_ready & b_owner) != '0),
    .out_data_o (b)
  );

  assign b_owner = owner(b.id);
  for (genvar i = 0; i < N; i++) begin : gen_b
    assign s_axi[i].b_valid = s_b_valid[i];
    assign s_b_ready[i] = s_axi[i].b_ready;
    assign s_axi[i].b.id = b.id & MasterIdMask;
    assign s_axi[i].b.resp = b.resp;
  end
  assign s_b_valid = b_owner & {N{b_valid}};

  // Read addresses.
  logic ar_valid, ar_ready;
  logic [N-1:0] ar_gnt;
  logic [N-1:0][8:0] ar_beats;
  logic [IdxBits-1:0] ar_idx;
  logic [$bits(ax_t)-1:0] ar[N];

  assign s_ar_ready = ar_gnt & {N{ar_ready}};

  if (Weighted) begin : gen_ar_weighted
    ns_wrr_arbiter #(
      .N         (N),
      .WeightBits(WeightBits)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .urgent_i,
      .weight_i,
      .req_i  (s_ar_valid),
      .cost_i (ar_beats),
      .next_i (ar_ready),
      .gnt_o  (ar_gnt),
      .idx_o  (ar_idx),
      .valid_o(ar_valid)
    );
  end else begin : gen_ar_round_robin
    ns_rr_arbiter #(
      .N(N)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .req_i  (s_ar_valid),
      .next_i (ar_ready),
      .gnt_o  (ar_gnt),
      .idx_o  (ar_idx),
      .valid_o(ar_valid)
    );
  end

  for (genvar i = 0; i < N; i++) begin : gen_ar
    assign s_ar_valid[i] = s_axi[i].ar_valid;
    assign s_axi[i].ar_ready = s_ar_ready[i];
    ax_t ax;
    always_comb begin
      ax = s_axi[i].ar;
      ax.id = ax.id | IdWidth'(i << IdBits);
    end
    assign ar[i] = ax;
    assign ar_beats[i] = 9'(ax.len) + 9'd1;
  end

  ns_skid_mux #(
    .N    (N),
    .Width($bits(ax_t))
  ) u_ar_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (ar_valid),
    .in_ready_o (ar_ready),
    .in_idx_i   (ar_idx),
    .in_data_i  (ar),
    .out_valid_o(m_axi.ar_valid),
    .out_ready_i(m_axi.ar_ready),
    .out_data_o (m_axi.ar)
  );

  // Read data.
  logic r_valid;
  logic [N-1:0] r_owner;
  r_t r;

  ns_skid #(
    .Width($bits(r_t))
  ) u_r_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (m_axi.r_valid),
    .in_ready_o (m_axi.r_ready),
    .in_data_i  (m_axi.r),
    .out_valid_o(r_valid),
    .out_ready_i((s_r_ready & r_owner) != '0),
    .out_data_o (r)
  );

  assign r_owner = owner(r.id);
  for (genvar i = 0; i < N; i++) begin : gen_r
    assign s_axi[i].r_valid = s_r_valid[i];
    assign s_r_ready[i] = s_axi[i].r_ready;
    assign s_axi[i].r.id = r.id & MasterIdMask;
    assign s_axi[i].r.resp = r.resp;
    assign s_axi[i].r.last = r.last;
    assign s_axi[i].r.data = r.data;
  end
  assign s_r_valid = r_owner & {N{r_valid}};

  if (!Weighted) begin : gen_no_weights
    logic unused;
    assign unused = ^{urgent_i, weight_i, aw_beats, ar_beats};
  end

  if (N < 1 || IdBits + PortBits > IdWidth) begin : gen_bad_n
    $error("ns_axi_mux: IdBits and the bits of a port's number must not exceed 12 together");
  end

  for (genvar i = 0; i < N; i++) begin : gen_check_id
    `NS_ASSERT(aw_id_in_range, !s_aw_valid[i] || (s_axi[i].aw.id & ~MasterIdMask) == '0)
    `NS_ASSERT(ar_id_in_range, !s_ar_valid[i] || (s_axi[i].ar.id & ~MasterIdMask) == '0)
  end
  `NS_ASSERT(b_id_known, !b_valid || $onehot(b_owner))
  `NS_ASSERT(r_id_known, !r_valid || $onehot(r_owner))
  `NS_ASSERT(queue_only_after_first, !queue_valid || first_q != '0)

endmodule
