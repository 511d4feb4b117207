// SPDX-License-Identifier: Apache-2.0

// Test top of dict_decode with one channel and flat ports.
`include "ns_axi_flat.svh"

module dict_decode_top_tb
  import nvme_pkg::*;
  import command_page_pkg::*;
#(
  parameter int unsigned DictBytes = 4096
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  output logic         busy_o,
  output logic         irq_o,
  // NVMe I/O commands.
  input  logic [63:0]  base_i,
  input  logic [63:0]  blocks_i,
  input  logic [511:0] sqe_i,
  input  logic         cmd_valid_i,
  output logic         cmd_ready_o,
  output logic         done_valid_o,
  output logic [10:0]  status_o,
  output logic [31:0]  dw0_o,
  // Commands of the command page.
  input  logic [511:0] page_i,
  input  logic         page_valid_i,
  output logic         page_ready_o,
  output logic         page_done_o,
  output logic [31:0]  page_result_o,
  output logic [63:0]  page_value_o,
  // Registers.
  input  logic [23:0]  s_axil_awaddr,
  input  logic         s_axil_awvalid,
  output logic         s_axil_awready,
  input  logic [31:0]  s_axil_wdata,
  input  logic [3:0]   s_axil_wstrb,
  input  logic         s_axil_wvalid,
  output logic         s_axil_wready,
  output logic [1:0]   s_axil_bresp,
  output logic         s_axil_bvalid,
  input  logic         s_axil_bready,
  input  logic [23:0]  s_axil_araddr,
  input  logic         s_axil_arvalid,
  output logic         s_axil_arready,
  output logic [31:0]  s_axil_rdata,
  output logic [1:0]   s_axil_rresp,
  output logic         s_axil_rvalid,
  input  logic         s_axil_rready,
  `NS_AXI_PORTS(m_axi, 4, output, input)
);

  ns_axil_if s_axil ();
  ns_axi_if m_mem[1] ();
  ns_axi_if m_local[1] ();
  nvme_engine_if nvme ();
  command_page_if page ();

  `NS_AXIL_FROM_FLAT(s_axil, s_axil)
  `NS_AXI_TO_FLAT(m_axi, m_mem[0])

  assign nvme.cmd = '{slot: '0, command: '0, ns_base: base_i, ns_blocks: blocks_i, sqe: sqe_i};
  assign nvme.cmd_valid = cmd_valid_i;
  assign cmd_ready_o = nvme.cmd_ready;
  assign nvme.stop_valid = 1'b0;
  assign nvme.stop_slot = '0;
  assign nvme.done_ready = 1'b1;
  assign done_valid_o = nvme.done_valid;
  assign status_o = {nvme.done.status.sct, nvme.done.status.sc};
  assign dw0_o = nvme.done.dw0;

  assign page.cmd = page_i;
  assign page.line = '0;
  assign page.settled = 1'b1;
  assign page.cmd_valid = page_valid_i;
  assign page_ready_o = page.cmd_ready;
  assign page_done_o = page.done_valid;
  assign page_result_o = page.done.result;
  assign page_value_o = page.done.value;

  assign m_local[0].aw_ready = 1'b0;
  assign m_local[0].w_ready = 1'b0;
  assign m_local[0].b = '0;
  assign m_local[0].b_valid = 1'b0;
  assign m_local[0].ar_ready = 1'b0;
  assign m_local[0].r = '0;
  assign m_local[0].r_valid = 1'b0;

  dict_decode #(
    .NumChannels(1),
    .MediaBytes (64'h10_0000),
    .DictBytes  (DictBytes)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o,
    .s_axil,
    .m_mem,
    .m_local,
    .s_nvme(nvme),
    .s_page(page),
    .irq_o
  );

endmodule
