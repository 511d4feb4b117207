// SPDX-License-Identifier: Apache-2.0

// Address stage of ns_axi_demux: decodes the target of a transaction and enforces the order of an
// ID.
//
// Splits the address into slave and local address (see ns_axi_demux). A transaction is held while
// another one with the same ID is in flight to another target. Two register slices, one on each
// side of that check.
`include "ns_assert.svh"

module ns_axi_route
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
  /// Transactions in flight per ID.
  parameter int unsigned MaxOutstanding = 32,
  /// Low ID bits that distinguish transactions.
  parameter int unsigned OrderBits = 4,
  /// 1: an address outside of the slaves stays unchanged.
  parameter bit Outside = 1'b0,
  localparam int unsigned Slaves = M + LocalM
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  /// Address of the master.
  input  ax_t                   s_ax_i,
  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  /// Address local to the target.
  output ax_t                   m_ax_o,
  /// Target, one-hot: M slaves, those of the local memory, no slave.
  output logic [Slaves:0]       m_target_o,
  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  /// A transaction ends.
  input  logic                  end_i,
  /// Low bits of its ID.
  input  logic [OrderBits-1:0]  end_id_i
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned SlaveBits = unsigned'($clog2(M));
  localparam int unsigned TargetBits = unsigned'($clog2(Slaves + 1));
  localparam int unsigned LocalGranuleBits = unsigned'($clog2(LocalGranule));
  localparam int unsigned LocalBits = (LocalM == 0) ? 0 : unsigned'($clog2(LocalM));
  localparam int unsigned Entries = 1 << OrderBits;
  localparam int unsigned CountBits = unsigned'($clog2(MaxOutstanding + 1));

  typedef struct packed {
    logic [TargetBits-1:0] target;
    ax_t                   ax;
  } routed_t;

  function automatic routed_t route(ax_t ax);
    routed_t routed;
    logic [AddrWidth-1:0] granule, offset;
    granule = ax.addr >> GranuleBits;
    routed.ax = ax;
    routed.ax.addr = ((granule >> SlaveBits) << GranuleBits) | (ax.addr & AddrWidth'(Granule - 1));
    // Below First the difference wraps.
    routed.target = (ax.addr - First >= Bytes - First) ? TargetBits'(Slaves) : TargetBits'(granule & AddrWidth'(M - 1));
    if (Outside && routed.target == TargetBits'(Slaves)) routed.ax.addr = ax.addr;
    // LocalBase is not smaller than the memory. With that bit inverted, the memory's addresses
    // start at 0. All other addresses lie beyond it, or belong to the first M slaves.
    offset = ax.addr ^ LocalBase;
    if (LocalM != 0 && routed.target == TargetBits'(Slaves) && offset < LocalBytes) begin
      granule = offset >> LocalGranuleBits;
      routed.target = TargetBits'(M) + TargetBits'(granule & AddrWidth'(LocalM - 1));
      routed.ax.addr = ((granule >> LocalBits) << LocalGranuleBits) | (offset & AddrWidth'(LocalGranule - 1));
    end
    return routed;
  endfunction

  routed_t in;
  logic in_valid, out_ready, order_ok;

  // Transactions in flight per ID, and their target. The counts are in LUT RAM, which has no reset:
  // one that was never used counts as 0.
  logic [Entries-1:0] used_q;
  logic [1:0][CountBits-1:0] counted;
  logic [CountBits-1:0] count;
  logic [TargetBits-1:0] target_q[Entries];
  logic [OrderBits-1:0] id;
  logic start, start_and_end;

  ns_skid #(
    .Width($bits(routed_t))
  ) u_in (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_valid_i),
    .in_ready_o (s_ready_o),
    .in_data_i  (route(s_ax_i)),
    .out_valid_o(in_valid),
    .out_ready_i(order_ok && out_ready),
    .out_data_o (in)
  );

  assign id = OrderBits'(in.ax.id);
  assign count = used_q[id] ? counted[0] : '0;
  assign order_ok = count == '0 || (target_q[id] == in.target && count != CountBits'(MaxOutstanding));
  assign start = in_valid && order_ok && out_ready;
  assign start_and_end = start && end_i && id == end_id_i;

  ns_ram_multi #(
    .Width (CountBits),
    .Depth (Entries),
    .Writes(2),
    .Reads (2)
  ) u_counts (
    .clk_i,
    .rst_ni,
    .we_i   ({end_i && !start_and_end, start && !start_and_end}),
    .waddr_i({end_id_i, id}),
    .wdata_i({CountBits'(counted[1] - 1'b1), CountBits'(count + 1'b1)}),
    .raddr_i({end_id_i, id}),
    .rdata_o(counted)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) used_q <= '0;
    else if (start) used_q[id] <= 1'b1;
  end

  always_ff @(posedge clk_i) if (start) target_q[id] <= in.target;

  ns_skid #(
    .Width(Slaves + 1 + $bits(ax_t))
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (in_valid && order_ok),
    .in_ready_o (out_ready),
    .in_data_i  ({(Slaves+1)'(1) << in.target, in.ax}),
    .out_valid_o(m_valid_o),
    .out_ready_i(m_ready_i),
    .out_data_o ({m_target_o, m_ax_o})
  );

  if (M < 1 || (M & (M - 1)) != 0) begin : gen_bad_m
    $error("ns_axi_route: M must be a power of two");
  end
  if (Granule < 4096 || (Granule & (Granule - 1)) != 0) begin : gen_bad_granule
    $error("ns_axi_route: Granule must be a power of two of at least 4096");
  end
  if (Bytes == '0 || Bytes % (AddrWidth'(M) * AddrWidth'(Granule)) != '0) begin : gen_bad_bytes
    $error("ns_axi_route: Bytes must be a multiple of M * Granule");
  end
  if (LocalM != 0 && ((LocalM & (LocalM - 1)) != 0 || (LocalBase & (LocalBase - 1'b1)) != '0 || LocalBase < Bytes ||
      LocalBase < LocalBytes || LocalBytes % (AddrWidth'(LocalM) * AddrWidth'(LocalGranule)) != '0)) begin : gen_bad_local
    $error(
        "ns_axi_route: LocalBase must be a power of two, at least Bytes and LocalBytes, and the bytes a multiple of LocalM * LocalGranule"
    );
  end
  if (MaxOutstanding < 1) begin : gen_bad_max
    $error("ns_axi_route: MaxOutstanding must be at least 1");
  end
  if (OrderBits < 1 || OrderBits > IdWidth) begin : gen_bad_order_bits
    $error("ns_axi_route: OrderBits must be 1 to %0d", IdWidth);
  end

  `NS_ASSERT(end_has_started, !end_i || (used_q[end_id_i] && counted[1] != '0))

endmodule
