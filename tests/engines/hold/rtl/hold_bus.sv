// SPDX-License-Identifier: Apache-2.0

// Passes a bus through, except for held addresses. An address that is already valid downstream is
// not held.
module hold_bus
  import ns_axi_pkg::*;
(
  /// Clock.
  input  logic        clk_i,
  /// Reset.
  input  logic        rst_ni,
  /// Hold accesses to the range.
  input  logic        hold_i,
  /// First address of the range.
  input  logic [63:0] first_i,
  /// First address past the range.
  input  logic [63:0] limit_i,
  /// A write is held; a read is held.
  output logic [1:0]  waiting_o,
  /// From the master.
  ns_axi_if.slave     s_axi,
  /// To the memory.
  ns_axi_if.master    m_axi
);

  logic aw_pending_q, ar_pending_q, aw_held, ar_held;

  function automatic logic overlaps(logic [63:0] addr, logic [7:0] len, logic [2:0] size, logic [63:0] first, logic [63:0] limit);
    overlaps = addr < limit && addr + ((64'(len) + 64'd1) << size) > first;
  endfunction

  assign aw_held = hold_i && !aw_pending_q && overlaps(s_axi.aw.addr, s_axi.aw.len, s_axi.aw.size, first_i, limit_i);
  assign ar_held = hold_i && !ar_pending_q && overlaps(s_axi.ar.addr, s_axi.ar.len, s_axi.ar.size, first_i, limit_i);
  assign waiting_o = {s_axi.ar_valid && ar_held, s_axi.aw_valid && aw_held};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_pending_q <= 1'b0;
      ar_pending_q <= 1'b0;
    end else begin
      aw_pending_q <= m_axi.aw_valid && !m_axi.aw_ready;
      ar_pending_q <= m_axi.ar_valid && !m_axi.ar_ready;
    end
  end

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && !aw_held;
  assign s_axi.aw_ready = m_axi.aw_ready && !aw_held;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid;
  assign s_axi.w_ready = m_axi.w_ready;
  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;
  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid && !ar_held;
  assign s_axi.ar_ready = m_axi.ar_ready && !ar_held;
  assign s_axi.r = m_axi.r;
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

endmodule
