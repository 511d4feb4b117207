// Cuts a master off from a slave for good: nothing new begins, but what has begun gets its data.
//
// From `stop_i` on no address passes. Those of writes are taken and forgotten together with their data: a master that spreads its
// writes over several slaves may have such data in front of those of a write that another slave waits for. Nothing is answered
// for them, so a reset of the master has to follow.
// Assumes write data behind their address. Addresses may be withdrawn from the slave when it stops, so a register slice or a
// multiplexer has to follow that takes addresses only together with `ready`.
`include "ns_assert.svh"

module ns_axi_isolate #(
  /// Bits of the number of writes whose address has passed and whose data is not complete.
  parameter int unsigned CountBits = 8
) (
  input  logic clk_i,
  input  logic rst_ni,
  /// Nothing begins any more, until the reset. From a register.
  input  logic stop_i,
  /// A write begins.
  output logic begins_o,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Slave.
  ns_axi_if.master m_axi
);

  logic [CountBits-1:0] begun_q;
  logic ends, drops;

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && !stop_i;
  assign s_axi.aw_ready = m_axi.aw_ready || stop_i;
  assign begins_o = m_axi.aw_valid && m_axi.aw_ready;

  // Data of begun writes come before those of the forgotten ones.
  assign drops = stop_i && begun_q == '0;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid && !drops;
  assign s_axi.w_ready = m_axi.w_ready || drops;
  assign ends = m_axi.w_valid && m_axi.w_ready && s_axi.w.last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begun_q <= '0;
    else begun_q <= begun_q + CountBits'(begins_o) - CountBits'(ends);
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

  `NS_ASSERT(data_behind_address, !ends || begun_q != '0 || begins_o)
  `NS_ASSERT(counted, !(begins_o && !ends) || begun_q != '1)

endmodule
