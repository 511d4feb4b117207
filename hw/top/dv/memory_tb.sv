// SPDX-License-Identifier: Apache-2.0

// Test bench of a memory with two channels: one master that reaches both, like an engine with an
// ns_axi_demux, and the signals of the reset. The bench also drives the NVMe controller's port of
// channel 0; the PM window is idle.
`include "ns_axi_flat.svh"

module memory_tb
  import ns_axi_pkg::*;
  import qos_pkg::*;
#(
  /// Lines that the engine may have outstanding in a channel, in each direction.
  parameter int unsigned Credits = 1,
  /// Lines in each direction while the controller has any outstanding there.
  parameter int unsigned Beside = 0,
  /// Accessible addresses are below this one.
  parameter longint unsigned Limit = 64'h1_0000,
  /// Bits of its IDs.
  parameter int unsigned IdBits = 4
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       stop_i,
  output logic [1:0] begun_o,
  `NS_AXI_PORTS(s_axi, IdBits, input, output),
  `NS_AXI_PORTS(n_axi, IdBits, input, output),
  `NS_AXI_PORTS(m0_axi, IdWidth, output, input),
  `NS_AXI_PORTS(m1_axi, IdWidth, output, input)
);

  ns_axi_if s ();
  ns_axi_if engine[2] ();
  ns_axi_if pm[2] ();
  ns_axi_if nvme[2] ();
  ns_axil_if axil[2] ();
  ns_axi_if m[2] ();

  `NS_AXI_FROM_FLAT(s_axi, s)
  `NS_AXI_FROM_FLAT(n_axi, nvme[0])
  `NS_AXI_TO_FLAT(m0_axi, m[0])
  `NS_AXI_TO_FLAT(m1_axi, m[1])

  ns_axi_demux #(
    .M    (2),
    .Bytes(64'h10000)
  ) u_demux (
    .clk_i,
    .rst_ni,
    .s_axi(s),
    .m_axi(engine)
  );

  for (genvar c = 0; c < 2; c++) begin : gen_nobody
    ns_axi_tie_off u_pm (.m_axi(pm[c]));
    if (c != 0) begin : gen_controller
      ns_axi_tie_off u_nvme (.m_axi(nvme[c]));
    end
    assign axil[c].awaddr = '0;
    assign axil[c].awvalid = 1'b0;
    assign axil[c].wdata = '0;
    assign axil[c].wstrb = '0;
    assign axil[c].wvalid = 1'b0;
    assign axil[c].bready = 1'b1;
    assign axil[c].araddr = '0;
    assign axil[c].arvalid = 1'b0;
    assign axil[c].rready = 1'b1;
  end

  qos_t [2:0] qos;
  assign qos[0] = '{reads: '0, writes: '0, beside: '0, weight: 8'd1};
  assign qos[1] = '{reads: '0, writes: '0, beside: CreditBits'(Beside), weight: 8'd1};
  assign qos[2] = '{
    reads: CreditBits'(Credits),
    writes: CreditBits'(Credits),
    beside: CreditBits'(Beside),
    weight: 8'd1
  };

  nearside_memory #(
    .NumChannels(2),
    .NumEngines (1),
    .Present    (1'b1),
    .First      ('0),
    .Limit      (Limit)
  ) u_memory (
    .clk_i,
    .engine_clk_i    (clk_i),
    .rst_ni,
    .por_ni          (rst_ni),
    .stop_i,
    .engine_stop_i   (stop_i),
    .cut_i           (1'b0),
    .started_o    (begun_o),
    .open_o          (),
    .owed_i          ('0),
    .lost_o          (),
    .busy_o          (),
    .response_valid_o(),
    .qos_i           (qos),
    .fill_addr_i     ('0),
    .fill_blocks_i   ('0),
    .fill_valid_i    ('0),
    .fill_ready_o    (),
    .fill_stop_i     ('0),
    .fill_done_o     (),
    .fill_error_o    (),
    .s_pm            (pm),
    .s_nvme          (nvme),
    .s_engine        (engine),
    .s_axil          (axil),
    .m_axi           (m)
  );

endmodule
