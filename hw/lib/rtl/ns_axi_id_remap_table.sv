// SPDX-License-Identifier: Apache-2.0

// One direction of ns_axi_id_remap: the table of IDs in flight, and the address channel.
`include "ns_assert.svh"

module ns_axi_id_remap_table
  import ns_axi_pkg::*;
#(
  /// Bits of an ID of the master; those above are 0.
  parameter int unsigned InBits = 8,
  /// Bits of an ID at the slave.
  parameter int unsigned OutBits = 4,
  /// Transactions in flight per ID.
  parameter int unsigned MaxOutstanding = 32
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// Address of the master.
  input  ax_t                s_ax_i,
  input  logic               s_valid_i,
  output logic               s_ready_o,
  /// Address for the slave.
  output ax_t                m_ax_o,
  output logic               m_valid_o,
  input  logic               m_ready_i,
  /// ID of a response.
  input  logic [IdWidth-1:0] id_i,
  /// The same ID at the master.
  output logic [InBits-1:0]  id_o,
  /// The response ends a transaction.
  input  logic               end_i
);

  localparam int unsigned Entries = 1 << OutBits;
  localparam int unsigned CountBits = unsigned'($clog2(MaxOutstanding + 1));

  typedef logic [CountBits-1:0] count_t;

  // The table: an entry is used while its count is not 0.
  count_t count_q[Entries];
  logic [InBits-1:0] id_q[Entries];
  // One bit per entry, as registers, so that no decision waits for a count. `free_q`: the entry for
  // the next new ID.
  logic [Entries-1:0] used_q, full_q, free_q, match, chosen, entry_start, entry_end, unused;

  ax_t ax;
  logic [OutBits-1:0] entry, end_entry;
  logic known, entry_ok, start, out_ready;

  assign end_entry = id_i[OutBits-1:0];
  assign id_o = id_q[end_entry];

  always_comb
    for (int unsigned i = 0; i < Entries; i++)
      match[i] = used_q[i] && id_q[i] == s_ax_i.id[InBits-1:0];
  assign known = match != '0;
  assign chosen = known ? match : free_q;
  assign entry_ok = known ? (match & full_q) == '0 : free_q != '0;
  assign start = s_valid_i && s_ready_o;
  assign s_ready_o = entry_ok && out_ready;
  assign entry_start = chosen & {Entries{start}};
  assign entry_end = end_i ? Entries'(1) << end_entry : '0;
  assign unused = ~used_q & ~free_q;

  always_comb begin
    entry = '0;
    for (int unsigned i = 0; i < Entries; i++) if (chosen[i]) entry |= OutBits'(i);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q <= '0;
      full_q <= '0;
      free_q <= '0;
      for (int unsigned i = 0; i < Entries; i++) count_q[i] <= '0;
    end else begin
      for (int unsigned i = 0; i < Entries; i++) begin
        if (entry_start[i] && !entry_end[i]) begin
          count_q[i] <= count_q[i] + 1'b1;
          used_q[i] <= 1'b1;
          full_q[i] <= count_q[i] == count_t'(MaxOutstanding - 1);
        end
        if (entry_end[i] && !entry_start[i]) begin
          count_q[i] <= count_q[i] - 1'b1;
          used_q[i] <= count_q[i] != count_t'(1);
          full_q[i] <= 1'b0;
        end
      end
      if (free_q == '0 || (start && !known)) free_q <= unused & (~unused + 1'b1);
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Entries; i++)
    if (entry_start[i] && !used_q[i]) id_q[i] <= s_ax_i.id[InBits-1:0];
  end

  always_comb begin
    ax = s_ax_i;
    ax.id = IdWidth'(entry);
  end

  ns_skid #(
    .Width($bits(ax_t))
  ) u_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_valid_i && entry_ok),
    .in_ready_o (out_ready),
    .in_data_i  (ax),
    .out_valid_o(m_valid_o),
    .out_ready_i(m_ready_i),
    .out_data_o (m_ax_o)
  );

  if (InBits < 1 || InBits > IdWidth || OutBits < 1 || OutBits > IdWidth) begin : gen_bad_bits
    $error("ns_axi_id_remap_table: InBits and OutBits must be 1 to 12");
  end
  if (MaxOutstanding < 1) begin : gen_bad_max
    $error("ns_axi_id_remap_table: MaxOutstanding must be at least 1");
  end

  `NS_ASSERT(id_in_range, !s_valid_i || (s_ax_i.id >> InBits) == '0)
  `NS_ASSERT(free_is_not_used, (free_q & used_q) == '0)
  `NS_ASSERT(one_entry_per_id, (match & (match - 1'b1)) == '0)
  `NS_ASSERT(end_has_started, !end_i || used_q[end_entry])
  `NS_ASSERT(response_in_range, !end_i || (id_i >> OutBits) == '0)

endmodule
