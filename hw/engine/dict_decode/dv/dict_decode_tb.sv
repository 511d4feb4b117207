// SPDX-License-Identifier: Apache-2.0

// Test top of dict_decode_core with a flat memory port and plain argument vectors.
`include "ns_axi_flat.svh"

module dict_decode_tb
  import dict_decode_pkg::*;
#(
  parameter int unsigned DictBytes  = 4096,
  parameter int unsigned BurstBytes = 256
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  output logic                busy_o,
  input  logic                start_i,
  input  logic [63:0]         dict_i,
  input  logic [KeyBits:0]    entries_i,
  input  logic [63:0]         src_i,
  input  logic [SizeBits-1:0] bytes_i,
  input  logic [63:0]         dst_i,
  input  logic [31:0]         count_i,
  input  logic [9:0]          kind_i,
  input  logic                stop_i,
  output logic                done_o,
  output logic [2:0]          end_o,
  output logic                stopped_o,
  output logic                write_error_o,
  output logic [31:0]         position_o,
  `NS_AXI_PORTS(m_axi, 4, output, input)
);

  ns_axi_if m_axi ();

  `NS_AXI_TO_FLAT(m_axi, m_axi)

  end_e how;
  assign end_o = how;

  dict_decode_core #(
    .DictBytes (DictBytes),
    .BurstBytes(BurstBytes)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o,
    .start_i,
    .dict_i,
    .entries_i,
    .src_i,
    .bytes_i,
    .dst_i,
    .count_i,
    .kind_i,
    .stop_i,
    .done_o,
    .end_o(how),
    .stopped_o,
    .write_error_o,
    .position_o,
    .m_axi
  );

endmodule
