// SPDX-License-Identifier: Apache-2.0

// Test top of the crash-consistency engine with two channels. The masters share one memory port per
// channel; command page, registers and conflict filter have flat ports.
`include "ns_axi_flat.svh"

module nearpm_tb
  import nearpm_pkg::*;
  import command_page_pkg::*;
#(
  parameter int unsigned Units = 4,
  parameter int unsigned UnitLines = 1024,
  parameter int unsigned RateUnits = 1,
  parameter longint unsigned MediaBytes = 64'h10_0000
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  output logic         busy_o,
  input  logic         stop_i,
  output logic         saved_o,
  output logic         open_o,
  // Commands of the page.
  input  logic [511:0] page_i,
  input  logic [5:0]   page_line_i,
  input  logic         page_valid_i,
  output logic         page_ready_o,
  output logic         page_done_o,
  output logic [5:0]   page_done_line_o,
  output logic [31:0]  page_result_o,
  output logic [63:0]  page_value_o,
  `NS_AXIL_PORTS(s_axil, input, output),
  `NS_AXI_PORTS(s_pm0, 6, input, output),
  `NS_AXI_PORTS(s_pm1, 6, input, output),
  `NS_AXI_PORTS(s_nvme0, 6, input, output),
  `NS_AXI_PORTS(s_nvme1, 6, input, output),
  `NS_AXI_PORTS(m_host, 8, output, input),
  `NS_AXI_PORTS(m_axi0, 8, output, input),
  `NS_AXI_PORTS(m_axi1, 8, output, input)
);

  ns_axil_if s_axil ();
  ns_axi_if m_mem[2] ();
  ns_axi_if s_pm[2] ();
  ns_axi_if m_pm[2] ();
  ns_axi_if s_nvme[2] ();
  ns_axi_if m_nvme[2] ();
  ns_axi_if memory[2] ();
  command_page_if page ();
  ns_axi_if host ();

  `NS_AXIL_FROM_FLAT(s_axil, s_axil)
  `NS_AXI_FROM_FLAT(s_pm0, s_pm[0])
  `NS_AXI_FROM_FLAT(s_pm1, s_pm[1])
  `NS_AXI_FROM_FLAT(s_nvme0, s_nvme[0])
  `NS_AXI_FROM_FLAT(s_nvme1, s_nvme[1])
  `NS_AXI_TO_FLAT(m_host, host)
  `NS_AXI_TO_FLAT(m_axi0, memory[0])
  `NS_AXI_TO_FLAT(m_axi1, memory[1])

  assign page.cmd = page_i;
  assign page.line = page_line_i;
  assign page.settled = 1'b0;
  assign page.cmd_valid = page_valid_i;
  assign page_ready_o = page.cmd_ready;
  assign page_done_o = page.done_valid;
  assign page_done_line_o = page.done.line;
  assign page_result_o = page.done.result;
  assign page_value_o = page.done.value;

  nearpm #(
    .NumChannels(2),
    .MediaBytes (MediaBytes),
    .Units      (Units),
    .UnitLines  (UnitLines),
    .RateUnits  (RateUnits)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .busy_o,
    .stop_i,
    .saved_o,
    .open_o,
    .s_axil,
    .s_page     (page),
    .m_host     (host),
    .m_mem,
    .s_hook_pm  (s_pm),
    .m_hook_pm  (m_pm),
    .s_hook_nvme(s_nvme),
    .m_hook_nvme(m_nvme)
  );

  for (genvar c = 0; c < 2; c++) begin : gen_memory
    ns_axi_if masters[3] ();
    ns_axi_connect u_mem (
      .s_axi(m_mem[c]),
      .m_axi(masters[0])
    );
    ns_axi_connect u_pm (
      .s_axi(m_pm[c]),
      .m_axi(masters[1])
    );
    ns_axi_connect u_nvme (
      .s_axi(m_nvme[c]),
      .m_axi(masters[2])
    );
    ns_axi_mux #(
      .N     (3),
      .IdBits(6)
    ) u_mux (
      .clk_i,
      .rst_ni,
      .s_axi(masters),
      .m_axi(memory[c])
    );
  end

endmodule
