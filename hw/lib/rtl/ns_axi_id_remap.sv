// SPDX-License-Identifier: Apache-2.0

// ID remapper: `InBits` of an ID towards the master, `OutBits` towards the slave.
//
// An ID with transactions in flight has an entry of a table, and the entry's number is its ID at
// the slave. So transactions of one ID keep their order as far as the slave keeps it, and different
// IDs stay different. An address without an entry waits while all entries are used. An address also
// waits while `MaxOutstanding` transactions of its ID are in flight. Later addresses wait as well.
// Reads and writes have separate tables. An address passes one register slice; the other channels
// pass combinationally.
//
// Assumes a slave that answers every request, with `last` on the last beat of a read burst.
module ns_axi_id_remap
  import ns_axi_pkg::*;
#(
  /// Bits of an ID of the master; those above are 0.
  parameter int unsigned InBits = 8,
  /// Bits of an ID at the slave: 2**OutBits IDs are in flight at once per direction.
  parameter int unsigned OutBits = 4,
  /// Transactions in flight per ID and direction.
  parameter int unsigned MaxOutstanding = 32
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Slave.
  ns_axi_if.master m_axi
);

  logic [InBits-1:0] b_id, r_id;

  ns_axi_id_remap_table #(
    .InBits        (InBits),
    .OutBits       (OutBits),
    .MaxOutstanding(MaxOutstanding)
  ) u_write (
    .clk_i,
    .rst_ni,
    .s_ax_i   (s_axi.aw),
    .s_valid_i(s_axi.aw_valid),
    .s_ready_o(s_axi.aw_ready),
    .m_ax_o   (m_axi.aw),
    .m_valid_o(m_axi.aw_valid),
    .m_ready_i(m_axi.aw_ready),
    .id_i     (m_axi.b.id),
    .id_o     (b_id),
    .end_i    (m_axi.b_valid && m_axi.b_ready)
  );

  ns_axi_id_remap_table #(
    .InBits        (InBits),
    .OutBits       (OutBits),
    .MaxOutstanding(MaxOutstanding)
  ) u_read (
    .clk_i,
    .rst_ni,
    .s_ax_i   (s_axi.ar),
    .s_valid_i(s_axi.ar_valid),
    .s_ready_o(s_axi.ar_ready),
    .m_ax_o   (m_axi.ar),
    .m_valid_o(m_axi.ar_valid),
    .m_ready_i(m_axi.ar_ready),
    .id_i     (m_axi.r.id),
    .id_o     (r_id),
    .end_i    (m_axi.r_valid && m_axi.r_ready && m_axi.r.last)
  );

  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid;
  assign s_axi.w_ready = m_axi.w_ready;
  assign s_axi.b = '{id: IdWidth'(b_id), resp: m_axi.b.resp};
  assign s_axi.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;
  assign s_axi.r = '{id: IdWidth'(r_id), resp: m_axi.r.resp, last: m_axi.r.last, data: m_axi.r.data};
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

endmodule
