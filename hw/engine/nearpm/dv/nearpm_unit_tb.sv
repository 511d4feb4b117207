// SPDX-License-Identifier: Apache-2.0

// Test top of a unit: the fields of a command as plain vectors, and a flat memory port.
`include "ns_axi_flat.svh"

module nearpm_unit_tb
  import nearpm_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [7:0]   op_i,
  input  logic [7:0]   log_i,
  input  logic [43:0]  source_i,
  input  logic [43:0]  target_i,
  input  logic [16:0]  bytes_i,
  input  logic [63:0]  object_i,
  input  logic [63:0]  value_i,
  input  logic [63:0]  transaction_i,
  input  logic [31:0]  number_i,
  input  logic [31:0]  previous_i,
  input  logic [43:0]  base_i,
  input  logic [43:0]  pool_i,
  input  logic [43:0]  pool_last_i,
  input  logic [335:0] more_i,
  input  logic         valid_i,
  output logic         ready_o,
  output logic         end_valid_o,
  output logic [8:0]   result_o,
  output logic [63:0]  value_o,
  `NS_AXI_PORTS(m_axi, 4, output, input)
);

  ns_axi_if m_axi ();
  `NS_AXI_TO_FLAT(m_axi, m_axi)

  unit_end_t ended;
  assign result_o = ended.result;
  assign value_o = ended.value;

  nearpm_unit u_dut (
    .clk_i,
    .rst_ni,
    .job_i      ('{
        more: more_i,
        op: op_e'(op_i),
        log: log_i,
        source: source_i,
        target: target_i,
        bytes: bytes_i,
        object: object_i,
        value: value_i,
        transaction: transaction_i,
        number: number_i,
        previous: previous_i,
        base: base_i,
        pool: pool_i,
        pool_last: pool_last_i
    }),
    .job_valid_i(valid_i),
    .job_ready_o(ready_o),
    .end_o      (ended),
    .end_valid_o,
    .end_ready_i(1'b1),
    .m_axi
  );

endmodule
