// SPDX-License-Identifier: Apache-2.0

// Test top of the status block: flat AXI4-Lite ports for cocotbext-axi.
`include "ns_axi_flat.svh"

module status_tb #(
  parameter int unsigned ClockKhz = 250_000,
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  parameter int unsigned NumChannels = 1,
  parameter int unsigned Granule = 4096,
  parameter int unsigned NumBlocks = 1,
  parameter logic [NumBlocks-1:0][7:0][31:0] Blocks = '0
) (
  input logic clk_i,
  input logic rst_ni,
  `NS_AXIL_PORTS(s_axil, input, output)
);

  ns_axil_if s_axil ();

  `NS_AXIL_FROM_FLAT(s_axil, s_axil)

  status #(
    .ClockKhz   (ClockKhz),
    .MediaBytes (MediaBytes),
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .NumBlocks  (NumBlocks),
    .Blocks     (Blocks)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_axil
  );

endmodule
