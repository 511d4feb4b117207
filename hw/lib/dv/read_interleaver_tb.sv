// SPDX-License-Identifier: Apache-2.0

// Test top of ns_axi_credit before ns_axi_read_interleaver: flat ports; reads with ID 0 are urgent.
`include "ns_axi_flat.svh"

module read_interleaver_tb #(
  parameter int unsigned PieceBeats = 8,
  parameter int unsigned MaxBeats   = 32
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  output logic       busy_o,
  input  logic [9:0] read_credits_i,
  input  logic [9:0] write_credits_i,
  `NS_AXI_PORTS(s_axi, 6, input, output),
  `NS_AXI_PORTS(m_axi, 6, output, input)
);

  ns_axi_if s_axi ();
  ns_axi_if limited ();
  ns_axi_if turned ();
  ns_axi_if m_axi ();

  `NS_AXI_FROM_FLAT(s_axi, s_axi)
  `NS_AXI_TO_FLAT(m_axi, m_axi)

  ns_axi_credit u_credit (
    .clk_i,
    .rst_ni,
    .read_i (read_credits_i),
    .write_i(write_credits_i),
    .open_o (),
    .s_axi,
    .m_axi  (limited)
  );

  ns_axi_read_interleaver #(
    .IdBits    (6),
    .PieceBeats(PieceBeats),
    .MaxBeats  (MaxBeats)
  ) u_turns (
    .clk_i,
    .rst_ni,
    .busy_o,
    .urgent_i(limited.ar.id == '0),
    .s_axi   (limited),
    .m_axi   (turned)
  );

  ns_axi_slice u_slice (
    .clk_i,
    .rst_ni,
    .s_axi(turned),
    .m_axi
  );

  stable_check #(64 + 6 + 8) u_ar (clk_i, rst_ni, m_axi_arvalid, m_axi_arready, {m_axi_araddr, m_axi_arid, m_axi_arlen});

endmodule
