// Test top of the controller: flat AXI ports, the memory channels merged into one port, and its clock gated as the device
// top does it, so that every test also tests `busy_o`.
module nvme_ctrl_tb
  import ns_axi_pkg::*;
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
  /// See nvme_ctrl. Nothing recommended.
  parameter int unsigned     MaxDeallocate = 0,
  /// See nvme_ctrl. Short, but longer than the host takes otherwise.
  parameter int unsigned     HostTimeout  = 3_000,
  /// See nvme_ctrl. Slow, so that a test sees milliseconds pass.
  parameter int unsigned     ClockKhz     = 20
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  output logic         busy_o,
  input  logic [159:0] serial_i,  // constant
  input  logic [63:0]  eui64_i,  // constant
  output logic [31:0]  wait_o,
  input  logic [63:0]  skipped_i,  // added to the cycles since power-on in each cycle
  input  logic [15:0]  temperature_i,
  input  logic [NumNamespaces-1:0] ns_changed_i,
  input  logic         msix_enable_i,
  input  logic         msix_mask_i,
  input  logic [15:0]  s_axil_awaddr,
  input  logic [2:0]   s_axil_awprot,
  input  logic         s_axil_awvalid,
  output logic         s_axil_awready,
  input  logic [31:0]  s_axil_wdata,
  input  logic [3:0]   s_axil_wstrb,
  input  logic         s_axil_wvalid,
  output logic         s_axil_wready,
  output logic [1:0]   s_axil_bresp,
  output logic         s_axil_bvalid,
  input  logic         s_axil_bready,
  input  logic [15:0]  s_axil_araddr,
  input  logic [2:0]   s_axil_arprot,
  input  logic         s_axil_arvalid,
  output logic         s_axil_arready,
  output logic [31:0]  s_axil_rdata,
  output logic [1:0]   s_axil_rresp,
  output logic         s_axil_rvalid,
  input  logic         s_axil_rready,
  output logic [7:0]   m_axi_host_awid,
  output logic [63:0]  m_axi_host_awaddr,
  output logic [7:0]   m_axi_host_awlen,
  output logic [2:0]   m_axi_host_awsize,
  output logic [1:0]   m_axi_host_awburst,
  output logic         m_axi_host_awvalid,
  input  logic         m_axi_host_awready,
  output logic [511:0] m_axi_host_wdata,
  output logic [63:0]  m_axi_host_wstrb,
  output logic         m_axi_host_wlast,
  output logic         m_axi_host_wvalid,
  input  logic         m_axi_host_wready,
  input  logic [7:0]   m_axi_host_bid,
  input  logic [1:0]   m_axi_host_bresp,
  input  logic         m_axi_host_bvalid,
  output logic         m_axi_host_bready,
  output logic [7:0]   m_axi_host_arid,
  output logic [63:0]  m_axi_host_araddr,
  output logic [7:0]   m_axi_host_arlen,
  output logic [2:0]   m_axi_host_arsize,
  output logic [1:0]   m_axi_host_arburst,
  output logic         m_axi_host_arvalid,
  input  logic         m_axi_host_arready,
  input  logic [7:0]   m_axi_host_rid,
  input  logic [511:0] m_axi_host_rdata,
  input  logic [1:0]   m_axi_host_rresp,
  input  logic         m_axi_host_rlast,
  input  logic         m_axi_host_rvalid,
  output logic         m_axi_host_rready,
  output logic [7:0]   m_axi_mem_awid,
  output logic [63:0]  m_axi_mem_awaddr,
  output logic [7:0]   m_axi_mem_awlen,
  output logic [2:0]   m_axi_mem_awsize,
  output logic [1:0]   m_axi_mem_awburst,
  output logic         m_axi_mem_awvalid,
  input  logic         m_axi_mem_awready,
  output logic [511:0] m_axi_mem_wdata,
  output logic [63:0]  m_axi_mem_wstrb,
  output logic         m_axi_mem_wlast,
  output logic         m_axi_mem_wvalid,
  input  logic         m_axi_mem_wready,
  input  logic [7:0]   m_axi_mem_bid,
  input  logic [1:0]   m_axi_mem_bresp,
  input  logic         m_axi_mem_bvalid,
  output logic         m_axi_mem_bready,
  output logic [7:0]   m_axi_mem_arid,
  output logic [63:0]  m_axi_mem_araddr,
  output logic [7:0]   m_axi_mem_arlen,
  output logic [2:0]   m_axi_mem_arsize,
  output logic [1:0]   m_axi_mem_arburst,
  output logic         m_axi_mem_arvalid,
  input  logic         m_axi_mem_arready,
  input  logic [7:0]   m_axi_mem_rid,
  input  logic [511:0] m_axi_mem_rdata,
  input  logic [1:0]   m_axi_mem_rresp,
  input  logic         m_axi_mem_rlast,
  input  logic         m_axi_mem_rvalid,
  output logic         m_axi_mem_rready
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

  ax_t host_aw, host_ar, mem_aw, mem_ar;
  w_t host_w, mem_w;
  b_t host_b, mem_b;
  r_t host_r, mem_r;

  ax_t [NumChannels-1:0] ch_aw, ch_ar;
  w_t [NumChannels-1:0] ch_w;
  b_t [NumChannels-1:0] ch_b;
  r_t [NumChannels-1:0] ch_r;
  logic [NumChannels-1:0] ch_aw_valid, ch_aw_ready, ch_w_valid, ch_w_ready, ch_b_valid, ch_b_ready;
  logic [NumChannels-1:0] ch_ar_valid, ch_ar_ready, ch_r_valid, ch_r_ready;

  // What the controller asks the memories to zero is written by an ns_axi_fill in each channel.
  localparam logic [IdWidth-1:0] FillId = 8'h3F;
  ax_t [NumChannels-1:0] nvme_aw, fill_aw;
  w_t [NumChannels-1:0] nvme_w;
  b_t [NumChannels-1:0] nvme_b;
  logic [NumChannels-1:0]
      nvme_aw_valid, nvme_aw_ready, nvme_w_valid, nvme_w_ready, nvme_b_valid, nvme_b_ready;
  logic [NumChannels-1:0][63:0] fill_addr;
  logic [NumChannels-1:0][15:0] fill_blocks;
  logic [NumChannels-1:0] fill_valid, fill_ready, fill_done, fill_error;
  logic fill_stop, waits;

  for (genvar c = 0; c < NumChannels; c++) begin : gen_fill
    // The memory behind the channels has media addresses.
    always_comb begin
      ch_aw[c] = fill_aw[c];
      if (fill_aw[c].id == FillId)
        ch_aw[c].addr = {
          52'(fill_aw[c].addr[63:12] * 52'(NumChannels)) + 52'(c), fill_aw[c].addr[11:0]
        };
    end

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
      .s_aw_i       (nvme_aw[c]),
      .s_aw_valid_i (nvme_aw_valid[c]),
      .s_aw_ready_o (nvme_aw_ready[c]),
      .s_w_i        (nvme_w[c]),
      .s_w_valid_i  (nvme_w_valid[c]),
      .s_w_ready_o  (nvme_w_ready[c]),
      .s_b_o        (nvme_b[c]),
      .s_b_valid_o  (nvme_b_valid[c]),
      .s_b_ready_i  (nvme_b_ready[c]),
      .m_aw_o       (fill_aw[c]),
      .m_aw_valid_o (ch_aw_valid[c]),
      .m_aw_ready_i (ch_aw_ready[c]),
      .m_w_o        (ch_w[c]),
      .m_w_valid_o  (ch_w_valid[c]),
      .m_w_ready_i  (ch_w_ready[c]),
      .m_b_i        (ch_b[c]),
      .m_b_valid_i  (ch_b_valid[c]),
      .m_b_ready_o  (ch_b_ready[c])
    );
  end

  nvme_ctrl #(
    .NumIoQueues (NumIoQueues),
    .QueueEntries(QueueEntries),
    .NumSlots    (NumSlots),
    .FetchDepth  (FetchDepth),
    .NumChannels (NumChannels),
    .Granule     (4096),
    .NumNamespaces(NumNamespaces),
    .NsBlocks    (NsBlocks),
    .MediaBytes  (MediaBytes),
    .MaxDeallocate(MaxDeallocate),
    .HostTimeout (HostTimeout),
    .ClockKhz    (ClockKhz)
  ) u_ctrl (
    .clk_i            (clk),
    .rst_ni,
    .busy_o,
    .quiesce_i        (1'b0),
    .media_busy_o     (),
    .serial_i         (serial_i),
    .eui64_i          (eui64_i),
    .wait_o,
    .alarm_o          (),
    .alarm_cycles_o   (),
    .waits_o          (waits),
    .cycles_i         (cycles_q),
    .temperature_i    (temperature_q),
    .ns_changed_i     (ns_changed_q),
    .msix_enable_i    (enable_q),
    .msix_mask_i      (mask_q),
    .s_axil_awaddr,
    .s_axil_awprot,
    .s_axil_awvalid,
    .s_axil_awready,
    .s_axil_wdata,
    .s_axil_wstrb,
    .s_axil_wvalid,
    .s_axil_wready,
    .s_axil_bresp,
    .s_axil_bvalid,
    .s_axil_bready,
    .s_axil_araddr,
    .s_axil_arprot,
    .s_axil_arvalid,
    .s_axil_arready,
    .s_axil_rdata,
    .s_axil_rresp,
    .s_axil_rvalid,
    .s_axil_rready,
    .m_host_aw_o      (host_aw),
    .m_host_aw_valid_o(m_axi_host_awvalid),
    .m_host_aw_ready_i(m_axi_host_awready),
    .m_host_w_o      (host_w),
    .m_host_w_valid_o(m_axi_host_wvalid),
    .m_host_w_ready_i(m_axi_host_wready),
    .m_host_b_i      (host_b),
    .m_host_b_valid_i(m_axi_host_bvalid),
    .m_host_b_ready_o(m_axi_host_bready),
    .m_host_ar_o      (host_ar),
    .m_host_ar_valid_o(m_axi_host_arvalid),
    .m_host_ar_ready_i(m_axi_host_arready),
    .m_host_r_i      (host_r),
    .m_host_r_valid_i(m_axi_host_rvalid),
    .m_host_r_ready_o(m_axi_host_rready),
    .m_mem_aw_o       (nvme_aw),
    .m_mem_aw_valid_o (nvme_aw_valid),
    .m_mem_aw_ready_i (nvme_aw_ready),
    .m_mem_w_o       (nvme_w),
    .m_mem_w_valid_o (nvme_w_valid),
    .m_mem_w_ready_i (nvme_w_ready),
    .m_mem_b_i       (nvme_b),
    .m_mem_b_valid_i (nvme_b_valid),
    .m_mem_b_ready_o (nvme_b_ready),
    .fill_addr_o      (fill_addr),
    .fill_blocks_o    (fill_blocks),
    .fill_valid_o     (fill_valid),
    .fill_ready_i     (fill_ready),
    .fill_stop_o      (fill_stop),
    .fill_done_i      (fill_done),
    .fill_error_i     (fill_error),
    .m_mem_ar_o       (ch_ar),
    .m_mem_ar_valid_o (ch_ar_valid),
    .m_mem_ar_ready_i (ch_ar_ready),
    .m_mem_r_i       (ch_r),
    .m_mem_r_valid_i (ch_r_valid),
    .m_mem_r_ready_o (ch_r_ready),
    .trace_event_o    (),
    .trace_sqe_o      (),
    .trace_cqe_o      (),
    .trace_irq_o      (),
    .trace_job_o      (),
    .trace_read_o     (),
    .trace_data_o     (),
    .trace_beat_o     ()
  );

  ns_axi_mux #(
    .N(NumChannels)
  ) u_mem_mux (
    .clk_i,
    .rst_ni,
    .s_aw_i      (ch_aw),
    .s_aw_valid_i(ch_aw_valid),
    .s_aw_ready_o(ch_aw_ready),
    .s_w_i      (ch_w),
    .s_w_valid_i(ch_w_valid),
    .s_w_ready_o(ch_w_ready),
    .s_b_o      (ch_b),
    .s_b_valid_o(ch_b_valid),
    .s_b_ready_i(ch_b_ready),
    .s_ar_i      (ch_ar),
    .s_ar_valid_i(ch_ar_valid),
    .s_ar_ready_o(ch_ar_ready),
    .s_r_o      (ch_r),
    .s_r_valid_o(ch_r_valid),
    .s_r_ready_i(ch_r_ready),
    .m_aw_o      (mem_aw),
    .m_aw_valid_o(m_axi_mem_awvalid),
    .m_aw_ready_i(m_axi_mem_awready),
    .m_w_o      (mem_w),
    .m_w_valid_o(m_axi_mem_wvalid),
    .m_w_ready_i(m_axi_mem_wready),
    .m_b_i      (mem_b),
    .m_b_valid_i(m_axi_mem_bvalid),
    .m_b_ready_o(m_axi_mem_bready),
    .m_ar_o      (mem_ar),
    .m_ar_valid_o(m_axi_mem_arvalid),
    .m_ar_ready_i(m_axi_mem_arready),
    .m_r_i      (mem_r),
    .m_r_valid_i(m_axi_mem_rvalid),
    .m_r_ready_o(m_axi_mem_rready)
  );

  assign m_axi_host_awid = host_aw.id;
  assign m_axi_host_awaddr = host_aw.addr;
  assign m_axi_host_awlen = host_aw.len;
  assign m_axi_host_awsize = host_aw.size;
  assign m_axi_host_awburst = host_aw.burst;
  assign m_axi_host_arid = host_ar.id;
  assign m_axi_host_araddr = host_ar.addr;
  assign m_axi_host_arlen = host_ar.len;
  assign m_axi_host_arsize = host_ar.size;
  assign m_axi_host_arburst = host_ar.burst;
  assign m_axi_host_wdata = host_w.data;
  assign m_axi_host_wstrb = host_w.strb;
  assign m_axi_host_wlast = host_w.last;
  assign host_b = '{id: m_axi_host_bid, resp: m_axi_host_bresp};
  assign host_r = '{id: m_axi_host_rid, resp: m_axi_host_rresp, last: m_axi_host_rlast, data: m_axi_host_rdata};

  assign m_axi_mem_awid = mem_aw.id;
  assign m_axi_mem_awaddr = mem_aw.addr;
  assign m_axi_mem_awlen = mem_aw.len;
  assign m_axi_mem_awsize = mem_aw.size;
  assign m_axi_mem_awburst = mem_aw.burst;
  assign m_axi_mem_arid = mem_ar.id;
  assign m_axi_mem_araddr = mem_ar.addr;
  assign m_axi_mem_arlen = mem_ar.len;
  assign m_axi_mem_arsize = mem_ar.size;
  assign m_axi_mem_arburst = mem_ar.burst;
  assign m_axi_mem_wdata = mem_w.data;
  assign m_axi_mem_wstrb = mem_w.strb;
  assign m_axi_mem_wlast = mem_w.last;
  assign mem_b = '{id: m_axi_mem_bid, resp: m_axi_mem_bresp};
  assign mem_r = '{id: m_axi_mem_rid, resp: m_axi_mem_rresp, last: m_axi_mem_rlast, data: m_axi_mem_rdata};

endmodule
