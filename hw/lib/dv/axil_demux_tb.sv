// SPDX-License-Identifier: Apache-2.0

// Test bench of ns_axil_demux: flat ports for cocotbext-axi around three slaves.
`include "ns_axi_flat.svh"

module axil_demux_tb (
  input  logic clk_i,
  input  logic rst_ni,
  output logic busy_o,
  `NS_AXIL_PORTS(s_axil, input, output),
  `NS_AXIL_PORTS(m0_axil, output, input),
  `NS_AXIL_PORTS(m1_axil, output, input),
  `NS_AXIL_PORTS(m2_axil, output, input)
);

  localparam int unsigned N = 3;

  ns_axil_if s_axil ();
  ns_axil_if m_axil[N] ();

  `NS_AXIL_FROM_FLAT(s_axil, s_axil)
  `NS_AXIL_TO_FLAT(m0_axil, m_axil[0])
  `NS_AXIL_TO_FLAT(m1_axil, m_axil[1])
  `NS_AXIL_TO_FLAT(m2_axil, m_axil[2])

  ns_axil_demux #(
    .N   (N),
    .Base({24'h11_0000, 24'h10_0000, 24'h00_0000}),
    .Mask({24'h00_0FFF, 24'h00_FFFF, 24'h00_FFFF})
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_axil,
    .m_axil,
    .busy_o
  );

endmodule
