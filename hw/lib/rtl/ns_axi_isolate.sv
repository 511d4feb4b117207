// SPDX-License-Identifier: Apache-2.0

// Isolates a master from a slave until the next reset: no new transaction starts, and started
// writes get their data.
//
// From `stop_i` on no address passes. Write addresses of the master and their data are accepted and
// discarded. Otherwise such data could block the data that another slave waits for, if the master
// spreads its writes. These writes get no response, so a reset of the master has to follow.
//
// Assumes that write data follows its address. Addresses may be withdrawn from the slave when
// `stop_i` rises. So a register slice or a multiplexer must follow that accepts addresses only
// together with `ready`.
`include "ns_assert.svh"

module ns_axi_isolate #(
  /// Bits of the count of writes whose address has passed and whose data is incomplete.
  parameter int unsigned CountBits = 8
) (
  input  logic clk_i,
  input  logic rst_ni,
  /// No transaction starts any more, until the reset. From a register.
  input  logic stop_i,
  /// A write address is accepted by the slave.
  output logic aw_fire_o,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Slave.
  ns_axi_if.master m_axi
);

  logic [CountBits-1:0] started_q;
  logic w_last_fire, discard;

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && !stop_i;
  assign s_axi.aw_ready = m_axi.aw_ready || stop_i;
  assign aw_fire_o = m_axi.aw_valid && m_axi.aw_ready;

  // Data of started writes precedes that of the discarded ones.
  assign discard = stop_i && started_q == '0;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid && !discard;
  assign s_axi.w_ready = m_axi.w_ready || discard;
  assign w_last_fire = m_axi.w_valid && m_axi.w_ready && s_axi.w.last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) started_q <= '0;
    else started_q <= started_q + CountBits'(aw_fire_o) - CountBits'(w_last_fire);
  end

  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;
  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid && !stop_i;
  assign s_axi.ar_ready = m_axi.ar_ready && !stop_i;
  assign s_axi.r = m_axi.r;
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

  `NS_ASSERT(data_after_address, !w_last_fire || started_q != '0 || aw_fire_o)
  `NS_ASSERT(count_does_not_wrap, !(aw_fire_o && !w_last_fire) || started_q != '1)

endmodule
