// SPDX-License-Identifier: Apache-2.0

// Test top of the controller with MSI-X and the host port's timeout. AXI ports are flat, and the
// memory channels are merged into one port. The clock is gated as in the device top, so that every
// test also tests `busy_o`.
`include "ns_axi_flat.svh"

module nvme_ctrl_tb
  import ns_axi_pkg::*;
  import msix_pkg::*;
  import nvme_ns_pkg::ns_blocks_t;
#(
  /// See nvme_ctrl.
  parameter int unsigned     NumIoQueues  = 4,
  /// See nvme_ctrl.
  parameter int unsigned     QueueEntries = 64,
  /// See nvme_ctrl.
  parameter int unsigned     NumSlots     = 16,
  /// See nvme_ctrl.
  parameter int unsigned     FetchDepth   = 4,
  /// See nvme_ctrl.
  parameter int unsigned     NumChannels  = 2,
  /// See nvme_ctrl.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_ctrl.
  parameter ns_blocks_t      NsBlocks     = '0,
  /// See nvme_ctrl.
  parameter longint unsigned MediaBytes   = 64'h40_0000,
  /// See nvme_ctrl. No recommendation.
  parameter int unsigned     MaxDeallocate = 0,
  /// See nvme_ctrl.
  parameter bit              DoorbellBuffer = 1'b1,
  /// See nvme_ctrl. Short, but longer than the host usually takes.
  parameter int unsigned     HostTimeout  = 3_000,
  /// See nvme_ctrl. Slow, so that a test covers milliseconds.
  parameter int unsigned     ClockKhz     = 20
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  output logic                     busy_o,
  input  logic [159:0]             serial_i,  // constant
  input  logic [63:0]              eui64_i,  // constant
  output logic [31:0]              wait_o,
  input  logic [63:0]              skipped_i,  // added to the cycles since power-on in each cycle
  input  logic [15:0]              temperature_i,
  input  logic [NumNamespaces-1:0] ns_changed_i,
  input  logic                     msix_enable_i,
  input  logic                     msix_mask_i,
  `NS_AXIL_PORTS(s_axil, input, output),
  `NS_AXI_PORTS(m_axi_host, IdWidth, output, input),
  `NS_AXI_PORTS(m_axi_mem, IdWidth, output, input)
);

  // Clock gate, as at the top of the device.
  logic clk, enable_q, mask_q;
  logic [NumNamespaces-1:0] ns_changed_q;
  logic [63:0] cycles_q;
  logic [15:0] temperature_q;

  ns_clock_gate u_gate (
    .clk_i,
    .en_i (busy_o || s_axil_awvalid || s_axil_wvalid || s_axil_arvalid),
    .clk_o(clk)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      enable_q <= 1'b0;
      mask_q <= 1'b0;
      cycles_q <= '0;
      temperature_q <= 16'd308;
      ns_changed_q <= '0;
    end else begin
      cycles_q <= cycles_q + 64'd1 + skipped_i;
      temperature_q <= temperature_i;
      ns_changed_q <= ns_changed_i;
      enable_q <= msix_enable_i;
      mask_q <= msix_mask_i;
    end
  end

  ns_axil_if s_axil ();
  ns_axi_if host ();
  ns_axi_if nvme[NumChannels] ();
  ns_axi_if channel[NumChannels] ();
  ns_axi_if mem ();

  `NS_AXIL_FROM_FLAT(s_axil, s_axil)
  `NS_AXI_TO_FLAT(m_axi_host, host)
  `NS_AXI_TO_FLAT(m_axi_mem, mem)

  // Fills requested by the controller are executed by an ns_axi_fill in each channel.
  localparam logic [IdWidth-1:0] FillId = 12'h3F;
  logic [NumChannels-1:0][63:0] fill_addr;
  logic [NumChannels-1:0][15:0] fill_blocks;
  logic [NumChannels-1:0] fill_valid, fill_ready, fill_done, fill_error;
  logic fill_stop, waiting;

  logic ctrl_busy, host_busy;
  to_msix_t to_msix;
  from_msix_t from_msix;
  ns_axi_if unguarded ();

  for (genvar c = 0; c < NumChannels; c++) begin : gen_fill
    ns_axi_if filled ();

    ns_axi_fill #(
      .Id(FillId)
    ) u_fill (
      .clk_i,
      .rst_ni,
      .busy_o       (),
      .fill_addr_i  (fill_addr[c]),
      .fill_blocks_i(fill_blocks[c]),
      .fill_valid_i (fill_valid[c]),
      .fill_ready_o (fill_ready[c]),
      .fill_stop_i  (fill_stop),
      .fill_done_o  (fill_done[c]),
      .fill_error_o (fill_error[c]),
      .s_axi        (nvme[c]),
      .m_axi        (filled)
    );

    // The memory connected to the channels uses media addresses.
    ax_t aw;
    always_comb begin
      aw = filled.aw;
      if (filled.aw.id == FillId)
        aw.addr = {52'(filled.aw.addr[63:12] * 52'(NumChannels)) + 52'(c), filled.aw.addr[11:0]};
    end

    assign channel[c].aw = aw;
    assign channel[c].aw_valid = filled.aw_valid;
    assign filled.aw_ready = channel[c].aw_ready;
    assign channel[c].w = filled.w;
    assign channel[c].w_valid = filled.w_valid;
    assign filled.w_ready = channel[c].w_ready;
    assign filled.b = channel[c].b;
    assign filled.b_valid = channel[c].b_valid;
    assign channel[c].b_ready = filled.b_ready;
    assign channel[c].ar = filled.ar;
    assign channel[c].ar_valid = filled.ar_valid;
    assign filled.ar_ready = channel[c].ar_ready;
    assign filled.r = channel[c].r;
    assign filled.r_valid = channel[c].r_valid;
    assign channel[c].r_ready = filled.r_ready;
  end

  // No engines.
  nvme_engine_if engine[1] ();
  assign engine[0].cmd_ready = 1'b0;
  assign engine[0].done = '0;
  assign engine[0].done_valid = 1'b0;

  nvme_ctrl #(
    .NumIoQueues  (NumIoQueues),
    .QueueEntries (QueueEntries),
    .NumSlots     (NumSlots),
    .FetchDepth   (FetchDepth),
    .NumChannels  (NumChannels),
    .Granule      (4096),
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes),
    .MaxDeallocate(MaxDeallocate),
    .DoorbellBuffer(DoorbellBuffer),
    .HostTimeout  (HostTimeout),
    .ClockKhz     (ClockKhz)
  ) u_ctrl (
    .clk_i            (clk),
    .rst_ni,
    .busy_o           (ctrl_busy),
    .quiesce_i        (1'b0),
    .media_busy_o     (),
    .serial_i         (serial_i),
    .eui64_i          (eui64_i),
    .wait_o,
    .alarm_o          (),
    .alarm_cycles_o   (),
    .waiting_o        (waiting),
    .cycles_i         (cycles_q),
    .temperature_i    (temperature_q),
    .ns_changed_i     (ns_changed_q),
    .msix_o           (to_msix),
    .msix_i           (from_msix),
    .s_axil,
    .m_host           (unguarded),
    .m_mem            (nvme),
    .m_engine         (engine),
    .fill_addr_o      (fill_addr),
    .fill_blocks_o    (fill_blocks),
    .fill_valid_o     (fill_valid),
    .fill_ready_i     (fill_ready),
    .fill_stop_o      (fill_stop),
    .fill_done_i      (fill_done),
    .fill_error_i     (fill_error),
    .trace_event_o    (),
    .trace_sqe_o      (),
    .trace_cqe_o      (),
    .trace_irq_o      (),
    .trace_job_o      (),
    .trace_read_o     (),
    .trace_data_o     (),
    .trace_beat_o     ()
  );

  msix #(
    .NumOwn(NumIoQueues + 1)
  ) u_msix (
    .clk_i   (clk),
    .rst_ni,
    .enable_i(enable_q),
    .mask_i  (mask_q),
    .sender_i(to_msix),
    .sender_o(from_msix),
    .raise_i (1'b0)
  );

  ns_axi_timeout #(
    .IdBits(nvme_data_pkg::host_id_bits(NumChannels, 4, 1)),
    .Cycles(HostTimeout)
  ) u_timeout (
    .clk_i (clk),
    .rst_ni,
    .busy_o(host_busy),
    .s_axi (unguarded),
    .m_axi (host)
  );

  assign busy_o = ctrl_busy || host_busy;

  ns_axi_mux #(
    .N     (NumChannels),
    .IdBits(6)
  ) u_mem_mux (
    .clk_i,
    .rst_ni,
    .s_axi(channel),
    .m_axi(mem)
  );

endmodule
