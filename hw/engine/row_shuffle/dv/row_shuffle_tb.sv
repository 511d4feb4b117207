// SPDX-License-Identifier: Apache-2.0

// Test top of row_shuffle_core with flat memory ports and plain argument vectors.
`include "ns_axi_flat.svh"

module row_shuffle_tb #(
  parameter int unsigned IdBits = 4
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  output logic        busy_o,
  input  logic        start_i,
  input  logic [63:0] index_i,
  input  logic [63:0] src_i,
  input  logic [63:0] dst_i,
  input  logic [31:0] count_i,
  input  logic [16:0] row_bytes_i,
  input  logic [31:0] rows_i,
  input  logic [1:0]  records_i,
  input  logic        stop_i,
  output logic        done_o,
  output logic        stopped_o,
  output logic        bad_index_o,
  output logic [1:0]  errors_o,
  output logic [31:0] position_o,
  `NS_AXI_PORTS(m_list, IdBits, output, input),
  `NS_AXI_PORTS(m_rows, IdBits, output, input)
);

  ns_axi_if m_list ();
  ns_axi_if m_rows ();

  `NS_AXI_TO_FLAT(m_list, m_list)
  `NS_AXI_TO_FLAT(m_rows, m_rows)

  row_shuffle_core #(
    .IdBits(IdBits)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o,
    .start_i,
    .index_i,
    .src_i,
    .dst_i,
    .count_i,
    .row_bytes_i,
    .rows_i,
    .records_i,
    .stop_i,
    .done_o,
    .stopped_o,
    .bad_index_o,
    .errors_o,
    .position_o,
    .m_list,
    .m_rows
  );

endmodule
