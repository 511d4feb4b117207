// SPDX-License-Identifier: Apache-2.0

// ns_axi_route: target and order of addresses, for any addresses and any ends of transactions.
//
// An address leaves once, in order, with its local address, towards its slave. Outside of First to
// Bytes it goes to no slave, or with `Outside` unchanged to one more. It never leaves while a
// transaction of its ID is in flight to another target. So responses of an ID cannot overtake each
// other, however slow a target is. No more than `MaxOutstanding` of an ID are in flight; and an
// address leaves as soon as those of its ID have ended.
`include "ns_assert.svh"

module axi_route_proof
  import ns_axi_pkg::*;
#(
  /// Number of slaves: 1, 2 or 4.
  parameter int unsigned M = 2,
  /// Other addresses go unchanged to one more slave.
  parameter bit Outside = 1'b0
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       valid_i,
  input logic       id_i,
  input logic [5:0] addr_i,
  input logic       ready_i,
  input logic       end_i,
  input logic       end_id_i,
  input logic       pick_i
);

  localparam int unsigned Granule = 4096;
  localparam int unsigned SlaveBits = unsigned'($clog2(M));
  localparam logic [AddrWidth-1:0] First = 64'h1000;
  localparam logic [AddrWidth-1:0] Bytes = 64'h4000;
  localparam int unsigned MaxOutstanding = 2;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  // The address: high bits, granules 0 to 7, offset in the granule.
  ax_t ax, m_ax;
  logic ready, m_valid;
  logic [M:0] target, expected;
  logic [AddrWidth-1:0] address;
  logic in_range;
  assign ax = '{id: IdWidth'(id_i), addr: {addr_i[5], 48'b0, addr_i[4:2], 10'b0, addr_i[1:0]}, default: '0};
  assign in_range = ax.addr >= First && ax.addr < Bytes;
  always_comb begin
    expected = '0;
    expected[M] = !in_range;
    for (int unsigned i = 0; i < M; i++)
    expected[i] = in_range && (ax.addr / Granule) % M == AddrWidth'(i);
    address = (Outside && !in_range) ? ax.addr : (ax.addr / Granule / M) * Granule + ax.addr % Granule;
  end

  ns_axi_route #(
    .M             (M),
    .Granule       (Granule),
    .First         (First),
    .Bytes         (Bytes),
    .MaxOutstanding(MaxOutstanding),
    .OrderBits     (1),
    .Outside       (Outside)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_ax_i    (ax),
    .s_valid_i (valid_i),
    .s_ready_o (ready),
    .m_ax_o    (m_ax),
    .m_target_o(target),
    .m_valid_o (m_valid),
    .m_ready_i (ready_i),
    .end_i,
    .end_id_i
  );

  // Two register slices: at most four addresses inside.
  logic fire, m_fire, id;
  assign fire = valid_i && ready;
  assign m_fire = m_valid && ready_i;
  assign id = m_ax.id[0];
  channel_order #(
    .Width(1 + M + 1 + 7),
    .Depth(4)
  ) u_order (
    .clk_i,
    .rst_ni,
    .in_fire_i  (fire),
    .in_data_i  ({id_i, expected, address[63], address[63-SlaveBits], address[14-:3], address[1:0]}),
    .out_valid_i(m_valid),
    .out_ready_i(ready_i),
    .progress_i (1'b0),
    .out_data_i ({id, target, m_ax.addr[63], m_ax.addr[63-SlaveBits], m_ax.addr[14-:3], m_ax.addr[1:0]}),
    .pick_i
  );

  // Transactions in flight of each ID, and their target.
  logic [1:0] open_q[2];
  logic [M:0] target_q[2];
  for (genvar i = 0; i < 2; i++) begin : gen_id
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) open_q[i] <= '0;
      else open_q[i] <= open_q[i] + 2'(m_fire && id == 1'(i)) - 2'(end_i && end_id_i == 1'(i));
    end
    always_ff @(posedge clk_i) if (m_fire && id == 1'(i)) target_q[i] <= target;
    `NS_ASSERT(at_most, 32'(open_q[i]) <= MaxOutstanding)
  end

  EndsWhatHasStarted :
  assume property (@(posedge clk_i) !end_i || open_q[end_id_i] != '0);

  // A target that accepts addresses, with all earlier transactions ended: then another address
  // comes.
  logic [2:0] inside_q;
  logic [2:0] waited_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q <= '0;
      waited_q <= '0;
    end else begin
      inside_q <= inside_q + 3'(fire) - 3'(m_fire);
      if (inside_q == '0 || m_fire) waited_q <= '0;
      else if (ready_i && open_q[0] == '0 && open_q[1] == '0 && waited_q != '1)
        waited_q <= waited_q + 1'b1;
    end
  end

  `NS_ASSERT(one_target, !m_valid || $onehot(target))
  `NS_ASSERT(never_two_targets, !m_valid || open_q[id] == '0 || target_q[id] == target)
  `NS_ASSERT(makes_progress, waited_q < 3'd3)

  `NS_COVER(to_none, m_fire && target[M] && open_q[!id] != '0)
  `NS_COVER(waits, m_fire && target_q[id] != target && open_q[!id] == 2'd2)

endmodule
