// SPDX-License-Identifier: Apache-2.0

// Test bench of nearpm_filter and nearpm_table: one channel of several, with flat ports. The test
// acts as units and command decode.
`include "ns_assert.svh"
`include "ns_axi_flat.svh"

module filter_tb
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
#(
  /// Channels; only one of them has accesses.
  parameter int unsigned NumChannels = 2,
  /// Channel with accesses.
  parameter int unsigned Channel = 1
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic freeze_i,
  output logic busy_o,
  /// Blocks stores at the port of the filter, as during the insertion of a command.
  input  logic hold_i,

  input  logic         insert_valid_i,
  input  logic [CommandBits-1:0] insert_number_i,
  input  logic [$bits(ranges_t)-1:0] insert_ranges_i,
  input  logic         insert_internal_i,
  output logic         inserted_o,
  output logic [Commands-1:0] ready_o,
  input  logic         issue_valid_i,
  input  logic [CommandBits-1:0] issue_number_i,
  input  logic         retire_valid_i,
  input  logic [CommandBits-1:0] retire_number_i,
  output logic [Commands-1:0] dropped_o,

  input  logic [CommandBits-1:0] save_number_i,
  output logic         save_valid_o,
  output logic [Commands-1:0] save_commands_o,
  output logic [7:0]   save_lines_o,
  input  logic         restore_i,
  input  logic [CommandBits-1:0] restore_number_i,
  input  logic [$bits(ranges_t)-1:0] restore_ranges_i,
  input  logic [Commands-1:0] restore_commands_i,
  input  logic [7:0]   restore_lines_i,

  input  logic [6:0]   queue_save_index_i,
  output logic [511:0] queue_save_data_o,
  input  logic         queue_restore_i,
  input  logic [6:0]   queue_restore_index_i,
  input  logic [511:0] queue_restore_data_i,

  output logic         store_queued_o,
  output logic [6:0]   lines_o,
  output logic [4:0]   loads_o,

  `NS_AXI_PORTS(s_pm, 6, input, output),
  `NS_AXI_PORTS(s_nvme, 6, input, output),
  `NS_AXI_PORTS(m_pm, 6, output, input),
  `NS_AXI_PORTS(m_nvme, 6, output, input)
);

  ns_axi_if s_pm_bus ();
  ns_axi_if pm ();
  ns_axi_if nvme ();
  ns_axi_if m_pm_bus ();
  ns_axi_if m_nvme_bus ();

  `NS_AXI_FROM_FLAT(s_pm, s_pm_bus)
  `NS_AXI_FROM_FLAT(s_nvme, nvme)
  `NS_AXI_TO_FLAT(m_pm, m_pm_bus)
  `NS_AXI_TO_FLAT(m_nvme, m_nvme_bus)

  ns_axi_gate u_gate (
    .aw_open_i(!hold_i),
    .ar_open_i(1'b1),
    .s_axi    (s_pm_bus),
    .m_axi    (pm)
  );

  nearpm_lookup_if lookup[NumChannels] ();
  nearpm_order_if order[NumChannels] ();
  logic [NumChannels-1:0][7:0] save_lines, restore_lines;
  logic table_busy, filter_busy;
  logic [511:0] queue_save_data;
  commands_t retired;

  always_comb begin
    restore_lines = '0;
    restore_lines[Channel] = restore_lines_i;
  end
  assign save_lines_o = save_lines[Channel];
  assign busy_o = table_busy || filter_busy;

  nearpm_table #(
    .NumChannels(NumChannels)
  ) u_table (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .busy_o         (table_busy),
    .insert_valid_i,
    .insert_number_i,
    .insert_ranges_i,
    .insert_internal_i,
    .insert_after_i('0),  // covered by the proof of the table
    .inserted_o,
    .present_o      (),
    .ready_o,
    .issue_valid_i,
    .issue_number_i,
    .retire_valid_i,
    .retire_number_i,
    .retired_o        (retired),
    .dropped_o,
    .save_number_i,
    .save_valid_o,
    .save_commands_o,
    .save_lines_o   (save_lines),
    .restore_i,
    .restore_number_i,
    .restore_ranges_i,
    .restore_commands_i,
    .restore_lines_i(restore_lines),
    .lookup,
    .order
  );

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    if (c == Channel) begin : gen_filter
      nearpm_filter #(
        .NumChannels(NumChannels),
        .Channel    (Channel)
      ) u_filter (
        .clk_i,
        .rst_ni,
        .freeze_i,
        .busy_o         (filter_busy),
        .retired_i        (retired),
        .lookup         (lookup[c]),
        .order          (order[c]),
        .save_index_i   (queue_save_index_i),
        .save_data_o    (queue_save_data),
        .restore_i      (queue_restore_i),
        .restore_index_i(queue_restore_index_i),
        .restore_data_i (queue_restore_data_i),
        .store_queued_o,
        .lines_o,
        .loads_o,
        .line_error_o   (),
        .s_pm      (pm),
        .m_pm      (m_pm_bus),
        .s_nvme    (nvme),
        .m_nvme    (m_nvme_bus)
      );
    end else begin : gen_none
      assign lookup[c].valid = 1'b0;
      assign lookup[c].write = 1'b0;
      assign lookup[c].lines = '0;
      assign order[c].stores = '0;
      assign order[c].answered = '0;
      assign order[c].queued = '0;
      assign order[c].written = '0;
      assign order[c].quiet = 1'b1;
      assign order[c].overlap = 1'b0;
    end
  end

  // What is saved of the queue: data follow their index by a cycle.
  logic [6:0] queue_save_index_q;
  always_ff @(posedge clk_i) queue_save_index_q <= queue_save_index_i;
  nearpm_save_filter u_save_filter (
    .clk_i,
    .dropped_i      (dropped_o),
    .entries_valid_i(queue_save_index_q < 7'(QueueLines / 2)),
    .index_i        (queue_save_index_q),
    .data_i         (queue_save_data),
    .data_o         (queue_save_data_o)
  );

  stable_check #($bits(ax_t)) u_pm_aw (clk_i, rst_ni, m_pm_awvalid, m_pm_awready, m_pm_bus.aw);
  stable_check #($bits(w_t)) u_pm_w (clk_i, rst_ni, m_pm_wvalid, m_pm_wready, m_pm_bus.w);
  stable_check #($bits(ax_t)) u_pm_ar (clk_i, rst_ni, m_pm_arvalid, m_pm_arready, m_pm_bus.ar);
  stable_check #($bits(b_t)) u_pm_b (clk_i, rst_ni, s_pm_bvalid, s_pm_bready, s_pm_bus.b);
  stable_check #($bits(ax_t)) u_nvme_aw (clk_i, rst_ni, m_nvme_awvalid, m_nvme_awready, m_nvme_bus.aw);
  stable_check #($bits(w_t)) u_nvme_w (clk_i, rst_ni, m_nvme_wvalid, m_nvme_wready, m_nvme_bus.w);
  stable_check #($bits(ax_t)) u_nvme_ar (clk_i, rst_ni, m_nvme_arvalid, m_nvme_arready, m_nvme_bus.ar);

  // Write data never precede their address.
  logic [7:0] pm_open_q, nvme_open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pm_open_q   <= '0;
      nvme_open_q <= '0;
    end else begin
      pm_open_q <= pm_open_q + 8'(m_pm_awvalid && m_pm_awready) - 8'(m_pm_wvalid && m_pm_wready && m_pm_wlast);
      nvme_open_q <= nvme_open_q + 8'(m_nvme_awvalid && m_nvme_awready) - 8'(m_nvme_wvalid && m_nvme_wready && m_nvme_wlast);
    end
  end
  `NS_ASSERT(pm_data_after_address, !m_pm_wvalid || pm_open_q != '0)
  `NS_ASSERT(nvme_data_after_address, !m_nvme_wvalid || nvme_open_q != '0)
  `NS_ASSERT(busy, filter_busy || !(m_pm_awvalid || m_pm_wvalid || m_pm_arvalid || s_pm_bvalid || m_nvme_awvalid))

endmodule
