// SPDX-License-Identifier: Apache-2.0

// Test top of sorter_core with a flat memory port and plain argument vectors.
`include "ns_axi_flat.svh"

module sorter_tb
  import sorter_pkg::*;
#(
  parameter int unsigned KeyBits = 128,
  parameter int unsigned Leaves  = 8,
  parameter int unsigned RunRows = 4,
  parameter int unsigned BurstBytes = 256
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  output logic        busy_o,
  input  logic        start_i,
  input  logic [63:0] src_i,
  input  logic [63:0] dst_i,
  input  logic [63:0] tmp_i,
  input  logic [31:0] count_i,
  input  logic [4:0]  kind_i,
  input  logic        indexes_i,
  input  logic        pairs_i,
  input  logic        stop_i,
  output logic        done_o,
  output logic        stopped_o,
  output logic [1:0]  errors_o,
  output logic [3:0]  passes_o,
  output logic [35:0] progress_o,
  `NS_AXI_PORTS(m_axi, 4, output, input)
);

  ns_axi_if m_axi ();

  `NS_AXI_TO_FLAT(m_axi, m_axi)

  sorter_core #(
    .KeyBits   (KeyBits),
    .Leaves    (Leaves),
    .RunRows   (RunRows),
    .BurstBytes(BurstBytes)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o,
    .start_i,
    .src_i,
    .dst_i,
    .tmp_i,
    .count_i,
    .kind_i,
    .indexes_i,
    .pairs_i,
    .stop_i,
    .done_o,
    .stopped_o,
    .errors_o,
    .passes_o,
    .progress_o,
    .m_axi
  );

endmodule
