// SPDX-License-Identifier: Apache-2.0

// NVM timing emulator between an AXI4 master and a memory channel: see docs/hardware/nvm_delay.md.
//
// Reads go to memory with their slot number as the ID, so they may return in any order and
// interleaved; writes keep their ID. R and B leave at their deadlines, those of one ID in order;
// beats of different IDs may interleave. Assumes that the memory answers every transaction and
// follows AXI4; `m_axi_rready` and `m_axi_bready` are always 1.
//
// `clk_i` may stop while `busy_o` is 0 and no `valid` of s_axi_aw, s_axi_w, s_axi_ar, s_axil_aw,
// s_axil_w and s_axil_ar is 1. It must run in each cycle in which one of these is 1.
//
// Exclusive accesses are not supported: LOCK passes unchanged, but reads lose their ID.
`include "ns_assert.svh"

module nvm_delay
  import nvm_delay_pkg::*;
#(
  /// Bits of an ID on both sides: at least log2 of ReadSlots.
  parameter int unsigned IdWidth = 8,
  /// Bits of an address.
  parameter int unsigned AddrWidth = 64,
  /// Bits of a beat.
  parameter int unsigned DataWidth = 512,
  /// Reads in flight: a power of two, 32 to 128.
  parameter int unsigned ReadSlots = 64,
  /// Writes in flight: a power of two, 32 to 512.
  parameter int unsigned WriteSlots = 64,
  /// Beats that the read buffer holds: at least ReadSlots + 255, at most 32768, a power of two.
  parameter int unsigned BufferBeats = 512
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  /// A further clock edge could change the state without new input.
  output logic                   busy_o,
  /// Write data ignores the bandwidth cap and responses ignore their deadlines: a reset follows.
  /// From a register.
  input  logic                   flush_i,

  /// Slave port, from the master. Its signals are those of AXI4.
  input  logic                   s_axi_awvalid,
  output logic                   s_axi_awready,
  input  logic [IdWidth-1:0]     s_axi_awid,
  input  logic [AddrWidth-1:0]   s_axi_awaddr,
  input  logic [7:0]             s_axi_awlen,
  input  logic [2:0]             s_axi_awsize,
  input  logic [1:0]             s_axi_awburst,
  input  logic                   s_axi_awlock,
  input  logic [3:0]             s_axi_awcache,
  input  logic [2:0]             s_axi_awprot,
  input  logic [3:0]             s_axi_awqos,
  input  logic [3:0]             s_axi_awregion,
  input  logic                   s_axi_wvalid,
  output logic                   s_axi_wready,
  input  logic [DataWidth-1:0]   s_axi_wdata,
  input  logic [DataWidth/8-1:0] s_axi_wstrb,
  input  logic                   s_axi_wlast,
  output logic                   s_axi_bvalid,
  input  logic                   s_axi_bready,
  output logic [IdWidth-1:0]     s_axi_bid,
  output logic [1:0]             s_axi_bresp,
  input  logic                   s_axi_arvalid,
  output logic                   s_axi_arready,
  input  logic [IdWidth-1:0]     s_axi_arid,
  input  logic [AddrWidth-1:0]   s_axi_araddr,
  input  logic [7:0]             s_axi_arlen,
  input  logic [2:0]             s_axi_arsize,
  input  logic [1:0]             s_axi_arburst,
  input  logic                   s_axi_arlock,
  input  logic [3:0]             s_axi_arcache,
  input  logic [2:0]             s_axi_arprot,
  input  logic [3:0]             s_axi_arqos,
  input  logic [3:0]             s_axi_arregion,
  output logic                   s_axi_rvalid,
  input  logic                   s_axi_rready,
  output logic [IdWidth-1:0]     s_axi_rid,
  output logic [DataWidth-1:0]   s_axi_rdata,
  output logic [1:0]             s_axi_rresp,
  output logic                   s_axi_rlast,

  /// Master port, to the memory. Its signals are those of AXI4.
  output logic                   m_axi_awvalid,
  input  logic                   m_axi_awready,
  output logic [IdWidth-1:0]     m_axi_awid,
  output logic [AddrWidth-1:0]   m_axi_awaddr,
  output logic [7:0]             m_axi_awlen,
  output logic [2:0]             m_axi_awsize,
  output logic [1:0]             m_axi_awburst,
  output logic                   m_axi_awlock,
  output logic [3:0]             m_axi_awcache,
  output logic [2:0]             m_axi_awprot,
  output logic [3:0]             m_axi_awqos,
  output logic [3:0]             m_axi_awregion,
  output logic                   m_axi_wvalid,
  input  logic                   m_axi_wready,
  output logic [DataWidth-1:0]   m_axi_wdata,
  output logic [DataWidth/8-1:0] m_axi_wstrb,
  output logic                   m_axi_wlast,
  input  logic                   m_axi_bvalid,
  output logic                   m_axi_bready,
  input  logic [IdWidth-1:0]     m_axi_bid,
  input  logic [1:0]             m_axi_bresp,
  output logic                   m_axi_arvalid,
  input  logic                   m_axi_arready,
  output logic [IdWidth-1:0]     m_axi_arid,
  output logic [AddrWidth-1:0]   m_axi_araddr,
  output logic [7:0]             m_axi_arlen,
  output logic [2:0]             m_axi_arsize,
  output logic [1:0]             m_axi_arburst,
  output logic                   m_axi_arlock,
  output logic [3:0]             m_axi_arcache,
  output logic [2:0]             m_axi_arprot,
  output logic [3:0]             m_axi_arqos,
  output logic [3:0]             m_axi_arregion,
  input  logic                   m_axi_rvalid,
  output logic                   m_axi_rready,
  input  logic [IdWidth-1:0]     m_axi_rid,
  input  logic [DataWidth-1:0]   m_axi_rdata,
  input  logic [1:0]             m_axi_rresp,
  input  logic                   m_axi_rlast,

  /// Control slave port. Its signals are those of AXI4-Lite; registers in regs/nvm_delay_regs.rdl.
  input  logic                   s_axil_awvalid,
  output logic                   s_axil_awready,
  input  logic [11:0]            s_axil_awaddr,
  input  logic [2:0]             s_axil_awprot,
  input  logic                   s_axil_wvalid,
  output logic                   s_axil_wready,
  input  logic [31:0]            s_axil_wdata,
  input  logic [3:0]             s_axil_wstrb,
  output logic                   s_axil_bvalid,
  input  logic                   s_axil_bready,
  output logic [1:0]             s_axil_bresp,
  input  logic                   s_axil_arvalid,
  output logic                   s_axil_arready,
  input  logic [11:0]            s_axil_araddr,
  input  logic [2:0]             s_axil_arprot,
  output logic                   s_axil_rvalid,
  input  logic                   s_axil_rready,
  output logic [31:0]            s_axil_rdata,
  output logic [1:0]             s_axil_rresp
);

  cycle_t now_q;
  config_t parameters;
  logic read_time, write_time;
  time_write_t time_write;
  rate_t read_rate, write_rate;
  logic read_busy, write_busy, control_busy, read_stats_busy, write_stats_busy;
  logic [7:0] reads, writes;
  logic read_beat, read_done, read_late, write_beat, write_done, write_late;
  cycle_t read_latency, write_latency;
  logic [31:0] read_stats_data, write_stats_data;
  logic read_settled, write_settled, read_full, write_full;
  logic snapshot, clear, read_stats, write_stats, stats_bucket;
  logic [5:0] stats_index;

  // Set-up after reset: twice as many cycles as there are slots initialise LUT RAM, which has no
  // reset.
  localparam int unsigned MostSlots = ReadSlots > WriteSlots ? ReadSlots : WriteSlots;
  localparam int unsigned InitBits = unsigned'($clog2(MostSlots)) + 1;
  localparam int unsigned ReadInitBits = unsigned'($clog2(ReadSlots)) + 1;
  localparam int unsigned WriteInitBits = unsigned'($clog2(WriteSlots)) + 1;
  logic init_q;
  logic [InitBits-1:0] init_index_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      init_q <= 1'b1;
      init_index_q <= '0;
    end else if (init_q) begin
      init_q <= init_index_q != '1;
      init_index_q <= init_index_q + 1'b1;
    end
  end

  assign busy_o = init_q || read_busy || write_busy || control_busy || read_stats_busy || write_stats_busy;

  // Only differences are used, so the counter may stop with the clock.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) now_q <= '0;
    else now_q <= now_q + 1'b1;
  end

  nvm_delay_control #(
    .ReadSlots  (ReadSlots),
    .WriteSlots (WriteSlots),
    .BufferBeats(BufferBeats),
    .BeatBytes  (DataWidth / 8)
  ) u_control (
    .clk_i,
    .rst_ni,
    .busy_o        (control_busy),
    .s_axil_awvalid,
    .s_axil_awready,
    .s_axil_awaddr,
    .s_axil_awprot,
    .s_axil_wvalid,
    .s_axil_wready,
    .s_axil_wdata,
    .s_axil_wstrb,
    .s_axil_bvalid,
    .s_axil_bready,
    .s_axil_bresp,
    .s_axil_arvalid,
    .s_axil_arready,
    .s_axil_araddr,
    .s_axil_arprot,
    .s_axil_rvalid,
    .s_axil_rready,
    .s_axil_rdata,
    .s_axil_rresp,
    .config_o      (parameters),
    .read_time_o   (read_time),
    .write_time_o  (write_time),
    .time_o        (time_write),
    .read_rate_o   (read_rate),
    .write_rate_o  (write_rate),
    .reads_i       (reads),
    .writes_i      (writes),
    .snapshot_o    (snapshot),
    .clear_o       (clear),
    .settled_i     (read_settled && write_settled),
    .read_stats_o  (read_stats),
    .write_stats_o (write_stats),
    .stats_bucket_o(stats_bucket),
    .stats_index_o (stats_index),
    .read_stats_i  (read_stats_data),
    .write_stats_i (write_stats_data)
  );

  extra_t s_ar, m_ar, s_aw, m_aw;

  assign s_ar = '{
      lock: s_axi_arlock,
      burst: s_axi_arburst,
      prot: s_axi_arprot,
      cache: s_axi_arcache,
      qos: s_axi_arqos,
      region: s_axi_arregion
  };
  assign m_axi_arlock = m_ar.lock;
  assign m_axi_arburst = m_ar.burst;
  assign m_axi_arprot = m_ar.prot;
  assign m_axi_arcache = m_ar.cache;
  assign m_axi_arqos = m_ar.qos;
  assign m_axi_arregion = m_ar.region;
  assign m_axi_rready = 1'b1;

  nvm_delay_read #(
    .Slots      (ReadSlots),
    .IdWidth    (IdWidth),
    .AddrWidth  (AddrWidth),
    .DataWidth  (DataWidth),
    .BufferBeats(BufferBeats)
  ) u_read (
    .clk_i,
    .rst_ni,
    .now_i      (now_q),
    .config_i   (parameters),
    .time_valid_i(read_time),
    .time_i     (time_write),
    .rate_i     (read_rate),
    .init_i     (init_q),
    .init_index_i(init_index_q[ReadInitBits-1:0]),
    .busy_o     (read_busy),
    .used_o     (reads),
    .s_arvalid_i(s_axi_arvalid),
    .s_arready_o(s_axi_arready),
    .s_arid_i   (s_axi_arid),
    .s_araddr_i (s_axi_araddr),
    .s_arlen_i  (s_axi_arlen),
    .s_arsize_i (s_axi_arsize),
    .s_arextra_i(s_ar),
    .s_rvalid_o (s_axi_rvalid),
    .s_rready_i (s_axi_rready),
    .s_rid_o    (s_axi_rid),
    .s_rdata_o  (s_axi_rdata),
    .s_rresp_o  (s_axi_rresp),
    .s_rlast_o  (s_axi_rlast),
    .m_arvalid_o(m_axi_arvalid),
    .m_arready_i(m_axi_arready),
    .m_arid_o   (m_axi_arid),
    .m_araddr_o (m_axi_araddr),
    .m_arlen_o  (m_axi_arlen),
    .m_arsize_o (m_axi_arsize),
    .m_arextra_o(m_ar),
    .m_rvalid_i (m_axi_rvalid),
    .m_rid_i    (m_axi_rid),
    .m_rdata_i  (m_axi_rdata),
    .m_rresp_i  (m_axi_rresp),
    .m_rlast_i  (m_axi_rlast),
    .beat_o     (read_beat),
    .done_o     (read_done),
    .latency_o  (read_latency),
    .late_o     (read_late)
  );

  nvm_delay_stats u_read_stats (
    .clk_i,
    .rst_ni,
    .init_i       (init_q),
    .init_index_i (init_index_q[5:0]),
    .beat_i       (read_beat),
    .done_i       (read_done),
    .latency_i    (read_latency),
    .late_i       (read_late),
    .snapshot_i   (snapshot),
    .clear_i      (clear),
    .full_o       (read_full),
    .full_i       (write_full),
    .settled_o    (read_settled),
    .read_i       (read_stats),
    .read_bucket_i(stats_bucket),
    .read_index_i (stats_index),
    .read_data_o  (read_stats_data),
    .busy_o       (read_stats_busy)
  );

  assign s_aw = '{
      lock: s_axi_awlock,
      burst: s_axi_awburst,
      prot: s_axi_awprot,
      cache: s_axi_awcache,
      qos: s_axi_awqos,
      region: s_axi_awregion
  };
  assign m_axi_awlock = m_aw.lock;
  assign m_axi_awburst = m_aw.burst;
  assign m_axi_awprot = m_aw.prot;
  assign m_axi_awcache = m_aw.cache;
  assign m_axi_awqos = m_aw.qos;
  assign m_axi_awregion = m_aw.region;
  assign m_axi_bready = 1'b1;

  nvm_delay_write #(
    .Slots    (WriteSlots),
    .IdWidth  (IdWidth),
    .AddrWidth(AddrWidth),
    .DataWidth(DataWidth)
  ) u_write (
    .clk_i,
    .rst_ni,
    .now_i      (now_q),
    .flush_i,
    .config_i   (parameters),
    .time_valid_i(write_time),
    .time_i     (time_write),
    .rate_i     (write_rate),
    .init_i     (init_q),
    .init_index_i(init_index_q[WriteInitBits-1:0]),
    .busy_o     (write_busy),
    .used_o     (writes),
    .s_awvalid_i(s_axi_awvalid),
    .s_awready_o(s_axi_awready),
    .s_awid_i   (s_axi_awid),
    .s_awaddr_i (s_axi_awaddr),
    .s_awlen_i  (s_axi_awlen),
    .s_awsize_i (s_axi_awsize),
    .s_awextra_i(s_aw),
    .s_wvalid_i (s_axi_wvalid),
    .s_wready_o (s_axi_wready),
    .s_wdata_i  (s_axi_wdata),
    .s_wstrb_i  (s_axi_wstrb),
    .s_wlast_i  (s_axi_wlast),
    .s_bvalid_o (s_axi_bvalid),
    .s_bready_i (s_axi_bready),
    .s_bid_o    (s_axi_bid),
    .s_bresp_o  (s_axi_bresp),
    .m_awvalid_o(m_axi_awvalid),
    .m_awready_i(m_axi_awready),
    .m_awid_o   (m_axi_awid),
    .m_awaddr_o (m_axi_awaddr),
    .m_awlen_o  (m_axi_awlen),
    .m_awsize_o (m_axi_awsize),
    .m_awextra_o(m_aw),
    .m_wvalid_o (m_axi_wvalid),
    .m_wready_i (m_axi_wready),
    .m_wdata_o  (m_axi_wdata),
    .m_wstrb_o  (m_axi_wstrb),
    .m_wlast_o  (m_axi_wlast),
    .m_bvalid_i (m_axi_bvalid),
    .m_bid_i    (m_axi_bid),
    .m_bresp_i  (m_axi_bresp),
    .beat_o     (write_beat),
    .done_o     (write_done),
    .latency_o  (write_latency),
    .late_o     (write_late)
  );

  nvm_delay_stats u_write_stats (
    .clk_i,
    .rst_ni,
    .init_i       (init_q),
    .init_index_i (init_index_q[5:0]),
    .beat_i       (write_beat),
    .done_i       (write_done),
    .latency_i    (write_latency),
    .late_i       (write_late),
    .snapshot_i   (snapshot),
    .clear_i      (clear),
    .full_o       (write_full),
    .full_i       (read_full),
    .settled_o    (write_settled),
    .read_i       (write_stats),
    .read_bucket_i(stats_bucket),
    .read_index_i (stats_index),
    .read_data_o  (write_stats_data),
    .busy_o       (write_stats_busy)
  );

  if (ReadSlots < 32 || ReadSlots > 128 || (ReadSlots & (ReadSlots - 1)) != 0 || WriteSlots < 32 || WriteSlots > 512
      || (WriteSlots & (WriteSlots - 1)) != 0) begin : gen_bad_slots
    $error("nvm_delay: ReadSlots and WriteSlots must be powers of two from 32 to 128 and to 512");
  end
  if (2 ** IdWidth < ReadSlots) begin : gen_bad_id
    $error("nvm_delay: IdWidth must be at least %0d", $clog2(ReadSlots));
  end
  if (AddrWidth < 12 || AddrWidth > 64) begin : gen_bad_addr
    $error("nvm_delay: AddrWidth must be 12 to 64");
  end
  if (DataWidth < 8 || DataWidth > 1024 || (DataWidth & (DataWidth - 1)) != 0) begin : gen_bad_data
    $error("nvm_delay: DataWidth must be a power of two from 8 to 1024");
  end
  if (BufferBeats < ReadSlots + 255 || BufferBeats > 32768 || (BufferBeats & (BufferBeats - 1)) != 0) begin : gen_bad_buffer
    $error(
        "nvm_delay: BufferBeats must be a power of two, at least %0d, at most 32768",
        ReadSlots + 255
    );
  end

  `NS_ASSERT(r_only_for_reads, !m_axi_rvalid || reads != '0)
  `NS_ASSERT(counters_sweep_together, read_settled == write_settled)

endmodule
