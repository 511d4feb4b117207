// SPDX-License-Identifier: Apache-2.0

// Limits the beats that a master has outstanding, separately for reads and writes.
//
// A read beat is outstanding until its data has arrived, a written beat until the response of its
// burst. A burst passes if all of its beats fit below the limit, or if nothing is outstanding.
// Limits may change at any time. Credits are counted by direction only: a response returns the
// credits of the oldest outstanding burst, whichever burst it belongs to.
`include "ns_assert.svh"

module ns_axi_credit
  import ns_axi_pkg::*;
#(
  /// Bits of a limit.
  parameter int unsigned CountBits = 10,
  /// Write bursts outstanding at most, whatever the limit.
  parameter int unsigned MaxWrites = 128
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Most beats outstanding of reads; 0: no limit. From a register.
  input  logic [CountBits-1:0] read_i,
  /// The same of writes.
  input  logic [CountBits-1:0] write_i,
  /// Something is outstanding. From registers.
  output logic                 open_o,
  /// Master.
  ns_axi_if.slave              s_axi,
  /// Slave.
  ns_axi_if.master             m_axi
);

  // Without a limit the counters work modulo 2**TotalBits.
  localparam int unsigned TotalBits = 16;
  typedef logic [TotalBits-1:0] total_t;

  total_t read_q, written_q;
  logic [7:0] w_len;
  logic ar_open, aw_open, len_ready, len_valid;
  logic ar_fire, r_fire, aw_fire, b_fire;

  function automatic logic under_limit(total_t count, logic [7:0] len, logic [CountBits-1:0] limit);
    return limit == '0 || count == '0 || count + total_t'(len) < total_t'(limit);
  endfunction

  assign ar_open = under_limit(read_q, s_axi.ar.len, read_i);
  assign aw_open = under_limit(written_q, s_axi.aw.len, write_i) && len_ready;
  assign ar_fire = m_axi.ar_valid && m_axi.ar_ready;
  assign aw_fire = m_axi.aw_valid && m_axi.aw_ready;
  assign r_fire = m_axi.r_valid && m_axi.r_ready;
  assign b_fire = m_axi.b_valid && m_axi.b_ready;

  // Lengths of the writes that wait for a response.
  ns_fifo #(
    .Width(8),
    .Depth(MaxWrites),
    .Style("lutram")
  ) u_lengths (
    .clk_i,
    .rst_ni,
    .in_valid_i (aw_fire),
    .in_ready_o (len_ready),
    .in_data_i  (s_axi.aw.len),
    .out_valid_o(len_valid),
    .out_ready_i(b_fire),
    .out_data_o (w_len),
    .count_o    ()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q    <= '0;
      written_q <= '0;
    end else begin
      read_q <= read_q + (ar_fire ? total_t'(s_axi.ar.len) + 1'b1 : '0) - total_t'(r_fire);
      written_q <= written_q + (aw_fire ? total_t'(s_axi.aw.len) + 1'b1 : '0) - (b_fire ? total_t'(w_len) + 1'b1 : '0);
    end
  end

  assign open_o = read_q != '0 || written_q != '0;

  // The gate holds addresses without credit; everything else passes.
  ns_axi_gate u_gate (
    .aw_open_i(aw_open),
    .ar_open_i(ar_open),
    .s_axi,
    .m_axi
  );

  `NS_ASSERT(read_was_outstanding, !r_fire || read_q != '0)
  `NS_ASSERT(write_was_outstanding, !b_fire || len_valid)

endmodule
