// SPDX-License-Identifier: Apache-2.0

// AXI4 demultiplexer: one master, `M` address-interleaved slaves.
//
// slave = (addr / Granule) % M, local address = (addr / Granule / M) * Granule + addr % Granule. A
// transaction below `First`, or at or above `Bytes`, reaches none of these slaves: it is answered
// DECERR here. With `Outside` it goes to one more slave, with its address unchanged. A local memory
// may add `LocalM` slaves: `LocalBytes` from `LocalBase` on, interleaved in the same way.
//
// Order: a transaction waits while another one with the same ID (in its low `OrderBits` bits) is in
// flight to another slave. So responses of one ID arrive in the order of their addresses.
//
// Deadlock: a write to another slave also waits for the data of the writes before it. At most their
// last beat may be left, and that beat is already offered to its slave. So no ring of masters and
// slaves can wait for one another's write data.
//
// Rate: later transactions to the same slave do not wait, and data never waits. A change of slave
// costs no cycle. Responses of several slaves are granted round robin, up to a burst's last beat or
// a pause in the burst. Reads interleave where a slave interleaves them or pauses.
//
// Addresses pass two register slices, the other channels one. Assumes bursts that do not cross a
// granule (4 KiB or more, so every legal burst).
`include "ns_assert.svh"

module ns_axi_demux
  import ns_axi_pkg::*;
#(
  /// Number of slaves, a power of two.
  parameter int unsigned M = 2,
  /// Bytes of a granule, a power of two, at least 4096.
  parameter int unsigned Granule = 4096,
  /// First address of the slaves.
  parameter logic [AddrWidth-1:0] First = '0,
  /// End of the slaves' addresses, a multiple of M * Granule.
  parameter logic [AddrWidth-1:0] Bytes = 64'h1_0000_0000,
  /// Slaves of a local memory, after these, a power of two; 0: there is none.
  parameter int unsigned LocalM = 0,
  /// Bytes of its granules.
  parameter int unsigned LocalGranule = 4096,
  /// Its first address: a power of two, at least Bytes and at least LocalBytes.
  parameter logic [AddrWidth-1:0] LocalBase = '0,
  /// Its bytes, a multiple of LocalM * LocalGranule.
  parameter logic [AddrWidth-1:0] LocalBytes = '0,
  /// Transactions in flight per direction and ID.
  parameter int unsigned MaxOutstanding = 32,
  /// Low ID bits that distinguish transactions when order is kept.
  parameter int unsigned OrderBits = 4,
  /// 1: the last slave receives all other addresses.
  parameter bit Outside = 1'b0,
  localparam int unsigned Slaves = M + LocalM
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  /// Master.
  ns_axi_if.slave s_axi,

  /// Slaves.
  ns_axi_if.master m_axi[Slaves+32'(Outside)]
);

  // Targets are one-hot: bits 0 to Slaves-1 are the slaves, the last bit stands for addresses
  // outside of them.
  localparam int unsigned IdxBits = unsigned'($clog2(Slaves + 1));
  localparam int unsigned OpenBits = unsigned'($clog2(MaxOutstanding + 2));

  // The slaves' buses, one vector per signal.
  logic [Slaves-1:0] m_aw_valid, m_w_valid, m_ar_valid;
  logic [Slaves-1:0] m_b_valid, m_b_ready, m_r_valid, m_r_ready;
  b_t [Slaves-1:0] m_b;

  // Responses, which end transactions.
  logic [Slaves:0] b_gnt;
  logic b_valid, b_ready, b_fire;
  b_t b;
  logic [Slaves:0] r_req, r_gnt;
  logic r_valid, r_ready, r_last_fire;
  logic [$bits(r_t)-1:0] r[Slaves+1];
  logic [Slaves:0] r_last;
  logic [Slaves:0][OrderBits-1:0] r_id;
  logic [IdxBits-1:0] r_idx;

  // Ended transactions, one cycle later, so that the response arbiters do not reach into the counts
  // of the address stages.
  logic b_end_q, r_end_q;
  logic [OrderBits-1:0] b_end_id_q, r_end_id_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      b_end_q <= 1'b0;
      r_end_q <= 1'b0;
    end else begin
      b_end_q <= b_fire;
      r_end_q <= r_last_fire;
    end
  end

  always_ff @(posedge clk_i) begin
    if (b_fire) b_end_id_q <= b.id[OrderBits-1:0];
    if (r_last_fire) r_end_id_q <= r_id[r_idx];
  end

  // ---------------------------------------------------------------- write addresses

  ax_t aw;
  logic [Slaves:0] aw_target;
  logic aw_valid, aw_allowed, aw_fire, aw_data_ok;
  logic [Slaves:0] aw_ready;

  logic [OpenBits-1:0] open_q;  // writes issued whose data is incomplete
  logic [Slaves:0] open_target_q;  // target of the oldest of them,
  logic [Slaves:0] next_target_q;  // and of the next one
  logic change_q;  // these two differ
  logic w_last_offered;
  logic w_fire, w_last_fire;

  ns_axi_route #(
    .M             (M),
    .Granule       (Granule),
    .First         (First),
    .Bytes         (Bytes),
    .LocalM        (LocalM),
    .LocalGranule  (LocalGranule),
    .LocalBase     (LocalBase),
    .LocalBytes    (LocalBytes),
    .MaxOutstanding(MaxOutstanding),
    .OrderBits     (OrderBits),
    .Outside       (Outside)
  ) u_aw_route (
    .clk_i,
    .rst_ni,
    .s_ax_i    (s_axi.aw),
    .s_valid_i (s_axi.aw_valid),
    .s_ready_o (s_axi.aw_ready),
    .m_ax_o    (aw),
    .m_target_o(aw_target),
    .m_valid_o (aw_valid),
    .m_ready_i (aw_fire),
    .end_i     (b_end_q),
    .end_id_i  (b_end_id_q)
  );

  // From registers. It is sufficient that the last beat is offered; it need not leave in this
  // cycle. A master that delays that beat had its address granted before this one, so it does not
  // wait for this one's data.
  assign aw_data_ok = (open_q == '0) || (open_q == OpenBits'(1) && w_last_offered) ||
                      (!change_q && (aw_target & open_target_q) != '0 && open_q < OpenBits'(MaxOutstanding));
  assign aw_allowed = aw_valid && aw_data_ok;
  assign aw_fire = aw_allowed && (aw_ready & aw_target) != '0;
  assign m_aw_valid = aw_target[Slaves-1:0] & {Slaves{aw_allowed}};
  for (genvar i = 0; i < Slaves; i++) begin : gen_aw
    assign m_axi[i].aw = aw;
    assign m_axi[i].aw_valid = m_aw_valid[i];
    assign aw_ready[i] = m_axi[i].aw_ready;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q <= '0;
      open_target_q <= '0;
      next_target_q <= '0;
      change_q <= 1'b0;
    end else begin
      if (aw_fire) next_target_q <= aw_target;
      if (aw_fire && (open_q == '0 || w_last_fire)) open_target_q <= aw_target;
      else if (w_last_fire && change_q) open_target_q <= next_target_q;
      if (w_last_fire) change_q <= 1'b0;
      else if (aw_fire && open_q != '0) change_q <= change_q || (aw_target & open_target_q) == '0;
      if (aw_fire && !w_last_fire) open_q <= open_q + 1'b1;
      if (!aw_fire && w_last_fire) open_q <= open_q - 1'b1;
    end
  end

  // ---------------------------------------------------------------- write data

  w_t w;
  logic w_valid, w_allowed;
  logic [Slaves:0] w_ready;

  ns_skid #(
    .Width($bits(w_t))
  ) u_w_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi.w_valid),
    .in_ready_o (s_axi.w_ready),
    .in_data_i  (s_axi.w),
    .out_valid_o(w_valid),
    .out_ready_i(w_fire),
    .out_data_o (w)
  );

  assign w_allowed = w_valid && open_q != '0;
  assign w_fire = w_allowed && (w_ready & open_target_q) != '0;
  assign w_last_fire = w_fire && w.last;
  assign w_last_offered = w_valid && w.last;
  assign m_w_valid = open_target_q[Slaves-1:0] & {Slaves{w_allowed}};
  for (genvar i = 0; i < Slaves; i++) begin : gen_w
    assign m_axi[i].w = w;
    assign m_axi[i].w_valid = m_w_valid[i];
    assign w_ready[i] = m_axi[i].w_ready;
  end

  // ---------------------------------------------------------------- read addresses

  ax_t ar;
  logic [Slaves:0] ar_target;
  logic ar_valid, ar_fire;
  logic [Slaves:0] ar_ready;

  ns_axi_route #(
    .M             (M),
    .Granule       (Granule),
    .First         (First),
    .Bytes         (Bytes),
    .LocalM        (LocalM),
    .LocalGranule  (LocalGranule),
    .LocalBase     (LocalBase),
    .LocalBytes    (LocalBytes),
    .MaxOutstanding(MaxOutstanding),
    .OrderBits     (OrderBits),
    .Outside       (Outside)
  ) u_ar_route (
    .clk_i,
    .rst_ni,
    .s_ax_i    (s_axi.ar),
    .s_valid_i (s_axi.ar_valid),
    .s_ready_o (s_axi.ar_ready),
    .m_ax_o    (ar),
    .m_target_o(ar_target),
    .m_valid_o (ar_valid),
    .m_ready_i (ar_fire),
    .end_i     (r_end_q),
    .end_id_i  (r_end_id_q)
  );

  assign ar_fire = ar_valid && (ar_ready & ar_target) != '0;
  assign m_ar_valid = ar_target[Slaves-1:0] & {Slaves{ar_valid}};
  for (genvar i = 0; i < Slaves; i++) begin : gen_ar
    assign m_axi[i].ar = ar;
    assign m_axi[i].ar_valid = m_ar_valid[i];
    assign ar_ready[i] = m_axi[i].ar_ready;
  end

  // ---------------------------------------------------------------- addresses out of range

  ns_axi_if outside_bus ();

  assign outside_bus.aw = aw;
  assign outside_bus.aw_valid = aw_allowed && aw_target[Slaves];
  assign aw_ready[Slaves] = outside_bus.aw_ready;
  assign outside_bus.w = w;
  assign outside_bus.w_valid = w_allowed && open_target_q[Slaves];
  assign w_ready[Slaves] = outside_bus.w_ready;
  assign outside_bus.ar = ar;
  assign outside_bus.ar_valid = ar_valid && ar_target[Slaves];
  assign ar_ready[Slaves] = outside_bus.ar_ready;
  assign outside_bus.b_ready = b_gnt[Slaves] && b_ready;
  assign outside_bus.r_ready = r_gnt[Slaves] && r_ready;

  if (Outside) begin : gen_outside
    ns_axi_connect u_connect (
      .s_axi(outside_bus),
      .m_axi(m_axi[Slaves])
    );
  end else begin : gen_error
    ns_axi_error_slave u_error (
      .clk_i,
      .rst_ni,
      .busy_o(),
      .s_axi (outside_bus)
    );
  end

  // ---------------------------------------------------------------- write responses

  ns_rr_arbiter #(
    .N(Slaves + 1)
  ) u_b_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  ({outside_bus.b_valid, m_b_valid}),
    .next_i (b_ready),
    .gnt_o  (b_gnt),
    .idx_o  (),
    .valid_o(b_valid)
  );

  for (genvar i = 0; i < Slaves; i++) begin : gen_b
    assign m_b[i] = m_axi[i].b;
    assign m_b_valid[i] = m_axi[i].b_valid;
    assign m_axi[i].b_ready = m_b_ready[i];
  end

  always_comb begin
    b = outside_bus.b;
    for (int unsigned i = 0; i < Slaves; i++) if (b_gnt[i]) b = m_b[i];
  end

  assign b_fire = b_valid && b_ready;
  assign m_b_ready = b_gnt[Slaves-1:0] & {Slaves{b_ready}};

  ns_skid #(
    .Width($bits(b_t))
  ) u_b_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (b_valid),
    .in_ready_o (b_ready),
    .in_data_i  (b),
    .out_valid_o(s_axi.b_valid),
    .out_ready_i(s_axi.b_ready),
    .out_data_o (s_axi.b)
  );

  // ---------------------------------------------------------------- read data

  // The grant moves on when a slave pauses within a burst. Otherwise masters that each waited for
  // the rest of a burst could wait for one another, if the slaves interleave reads.
  assign r_req = {outside_bus.r_valid, m_r_valid};
  assign r_last_fire = r_valid && r_ready && r_last[r_idx];

  ns_rr_arbiter #(
    .N(Slaves + 1)
  ) u_r_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (r_req),
    .next_i (r_last_fire),
    .gnt_o  (r_gnt),
    .idx_o  (r_idx),
    .valid_o(r_valid)
  );

  for (genvar i = 0; i < Slaves; i++) begin : gen_r
    assign r[i] = m_axi[i].r;
    assign r_last[i] = m_axi[i].r.last;
    assign r_id[i] = m_axi[i].r.id[OrderBits-1:0];
    assign m_r_valid[i] = m_axi[i].r_valid;
    assign m_axi[i].r_ready = m_r_ready[i];
  end
  assign r[Slaves] = outside_bus.r;
  assign r_last[Slaves] = outside_bus.r.last;
  assign r_id[Slaves] = outside_bus.r.id[OrderBits-1:0];

  assign m_r_ready = r_gnt[Slaves-1:0] & {Slaves{r_ready}};

  ns_skid_mux #(
    .N    (Slaves + 1),
    .Width($bits(r_t))
  ) u_r_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (r_valid),
    .in_ready_o (r_ready),
    .in_idx_i   (r_idx),
    .in_data_i  (r),
    .out_valid_o(s_axi.r_valid),
    .out_ready_i(s_axi.r_ready),
    .out_data_o (s_axi.r)
  );

  `NS_ASSERT(open_in_range, open_q <= OpenBits'(MaxOutstanding > 1 ? MaxOutstanding : 2))
  `NS_ASSERT(change_after_last_beat, !change_q || (open_q == OpenBits'(2) && w_valid && w.last))

endmodule
