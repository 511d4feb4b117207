// SPDX-License-Identifier: Apache-2.0

// Completion timeout of a bus: transactions that the slave never answers end as an error.
//
// A transaction without progress for `Cycles` to 2 x `Cycles` ends with SLVERR, a read with its
// missing beats. Later responses of the slave to it are dropped (ns_axi_timeout_channel). Assumes
// that responses of one ID arrive in order and with all requested beats. Also assumes that the
// slave accepts addresses and write data eventually. Further addresses of an ID wait while
// `MaxBursts` of it are outstanding.
module ns_axi_timeout
  import ns_axi_pkg::*;
#(
  /// Bits of an ID; those above are 0.
  parameter int unsigned IdBits = 4,
  /// Cycles without progress, at least 2.
  parameter int unsigned Cycles = 6_250_000,
  /// Transactions outstanding of an ID and direction, a power of two.
  parameter int unsigned MaxBursts = 64,
  /// See ns_axi_timeout_channel.
  parameter int unsigned LostBits = 50
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// From registers: active, or late responses of abandoned transactions may still arrive.
  output logic     busy_o,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Slave.
  ns_axi_if.master m_axi
);

  logic r_error, r_last, b_error, read_busy, read_open, write_busy, write_open;
  logic [IdWidth-1:0] r_id, b_id;

  assign busy_o = read_busy || write_busy;

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && write_open;
  assign s_axi.aw_ready = m_axi.aw_ready && write_open;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid;
  assign s_axi.w_ready = m_axi.w_ready;
  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid && read_open;
  assign s_axi.ar_ready = m_axi.ar_ready && read_open;

  ns_axi_timeout_channel #(
    .IdBits   (IdBits),
    .Cycles   (Cycles),
    .MaxBursts(MaxBursts),
    .LostBits (LostBits)
  ) u_read (
    .clk_i,
    .rst_ni,
    .busy_o       (read_busy),
    .ready_o      (read_open),
    .issue_i      (m_axi.ar_valid && m_axi.ar_ready),
    .issue_id_i   (s_axi.ar.id),
    .issue_len_i  (m_axi.ar.len),
    .in_id_i      (m_axi.r.id),
    .in_last_i    (m_axi.r.last),
    .in_valid_i   (m_axi.r_valid),
    .in_ready_o   (m_axi.r_ready),
    .out_id_o     (r_id),
    .out_last_o   (r_last),
    .out_error_o  (r_error),
    .out_valid_o  (s_axi.r_valid),
    .out_ready_i  (s_axi.r_ready)
  );

  ns_axi_timeout_channel #(
    .IdBits   (IdBits),
    .Cycles   (Cycles),
    .MaxBursts(MaxBursts),
    .Single   (1'b1),
    .LostBits (LostBits)
  ) u_write (
    .clk_i,
    .rst_ni,
    .busy_o       (write_busy),
    .ready_o      (write_open),
    .issue_i      (m_axi.aw_valid && m_axi.aw_ready),
    .issue_id_i   (s_axi.aw.id),
    .issue_len_i  ('0),
    .in_id_i      (m_axi.b.id),
    .in_last_i    (1'b1),
    .in_valid_i   (m_axi.b_valid),
    .in_ready_o   (m_axi.b_ready),
    .out_id_o     (b_id),
    .out_last_o   (),
    .out_error_o  (b_error),
    .out_valid_o  (s_axi.b_valid),
    .out_ready_i  (s_axi.b_ready)
  );

  assign s_axi.r = '{id: r_id, resp: r_error ? RespSlvErr : m_axi.r.resp, last: r_last, data: m_axi.r.data};
  assign s_axi.b = '{id: b_id, resp: b_error ? RespSlvErr : m_axi.b.resp};

endmodule
