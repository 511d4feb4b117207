// SPDX-License-Identifier: Apache-2.0

// The smallest device that uses every port of the device top, for tests of the RTL model
// (crates/rtl).
//
// BAR0: 16 words of memory. BAR2: connected to DDR channel 0. BAR4: a copy engine from host memory
// to host memory. It also has switches that make the device hang or fail an assertion:
//
// - 0x00 identification
// - 0x04 scratch
// - 0x08 write 1: start, 2: hang, 4: fail an assertion
// - 0x0C copies done
// - 0x10/0x14 source
// - 0x18/0x1C destination
// - 0x20 beats - 1
// - 0x24 clock edges seen
// - 0x28 last response codes: {b, r}
//
// Assumes a 64-byte aligned source and destination. Does not gate clocks, and has one AXI-Lite
// access in flight.
`include "ns_assert.svh"

module rtl_fixture
  import ns_axi_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,

  /// AXI4-Lite slave: BAR0 at 0, BAR4 at 1 MiB.
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

  /// AXI4 slave: BAR2.
  input  logic [3:0]   s_axi_pm_awid,
  input  logic [63:0]  s_axi_pm_awaddr,
  input  logic [7:0]   s_axi_pm_awlen,
  input  logic [2:0]   s_axi_pm_awsize,
  input  logic [1:0]   s_axi_pm_awburst,
  input  logic         s_axi_pm_awvalid,
  output logic         s_axi_pm_awready,
  input  logic [511:0] s_axi_pm_wdata,
  input  logic [63:0]  s_axi_pm_wstrb,
  input  logic         s_axi_pm_wlast,
  input  logic         s_axi_pm_wvalid,
  output logic         s_axi_pm_wready,
  output logic [3:0]   s_axi_pm_bid,
  output logic [1:0]   s_axi_pm_bresp,
  output logic         s_axi_pm_bvalid,
  input  logic         s_axi_pm_bready,
  input  logic [3:0]   s_axi_pm_arid,
  input  logic [63:0]  s_axi_pm_araddr,
  input  logic [7:0]   s_axi_pm_arlen,
  input  logic [2:0]   s_axi_pm_arsize,
  input  logic [1:0]   s_axi_pm_arburst,
  input  logic         s_axi_pm_arvalid,
  output logic         s_axi_pm_arready,
  output logic [3:0]   s_axi_pm_rid,
  output logic [511:0] s_axi_pm_rdata,
  output logic [1:0]   s_axi_pm_rresp,
  output logic         s_axi_pm_rlast,
  output logic         s_axi_pm_rvalid,
  input  logic         s_axi_pm_rready,

  /// AXI4 master to the host.
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

  /// AXI4 master to the one DDR channel.
  output logic [7:0]   m_axi_ddr_awid,
  output logic [63:0]  m_axi_ddr_awaddr,
  output logic [7:0]   m_axi_ddr_awlen,
  output logic [2:0]   m_axi_ddr_awsize,
  output logic [1:0]   m_axi_ddr_awburst,
  output logic         m_axi_ddr_awvalid,
  input  logic         m_axi_ddr_awready,
  output logic [511:0] m_axi_ddr_wdata,
  output logic [63:0]  m_axi_ddr_wstrb,
  output logic         m_axi_ddr_wlast,
  output logic         m_axi_ddr_wvalid,
  input  logic         m_axi_ddr_wready,
  input  logic [7:0]   m_axi_ddr_bid,
  input  logic [1:0]   m_axi_ddr_bresp,
  input  logic         m_axi_ddr_bvalid,
  output logic         m_axi_ddr_bready,
  output logic [7:0]   m_axi_ddr_arid,
  output logic [63:0]  m_axi_ddr_araddr,
  output logic [7:0]   m_axi_ddr_arlen,
  output logic [2:0]   m_axi_ddr_arsize,
  output logic [1:0]   m_axi_ddr_arburst,
  output logic         m_axi_ddr_arvalid,
  input  logic         m_axi_ddr_arready,
  input  logic [7:0]   m_axi_ddr_rid,
  input  logic [511:0] m_axi_ddr_rdata,
  input  logic [1:0]   m_axi_ddr_rresp,
  input  logic         m_axi_ddr_rlast,
  input  logic         m_axi_ddr_rvalid,
  output logic         m_axi_ddr_rready,

  /// MSI-X switches of the configuration space; unused here.
  input  logic         msix_enable_i,
  input  logic         msix_mask_i,
  /// Nothing changes without input.
  output logic         idle_o
);

  // BAR0 and BAR4.
  typedef enum logic [1:0] {
    LiteIdle,
    LiteWrite,
    LiteRead
  } lite_e;

  lite_e lite_q;
  logic [31:0] ram_q[16];
  logic [31:0] scratch_q, done_q, edges_q;
  logic [63:0] src_q, dst_q;
  logic [5:0] len_q;
  logic [1:0] rresp_q, bresp_q;
  logic start_q, hang_q, fail_q;
  logic write;

  assign write = lite_q == LiteIdle && s_axil_awvalid && s_axil_wvalid && s_axil_awready;
  assign s_axil_wready = s_axil_awready;

  function automatic logic mapped(logic [23:0] addr);
    return addr < 24'h40 || (addr >= 24'h10_0000 && addr < 24'h10_0040);
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lite_q         <= LiteIdle;
      s_axil_awready <= 1'b0;
      s_axil_arready <= 1'b0;
      s_axil_bvalid  <= 1'b0;
      s_axil_rvalid  <= 1'b0;
      start_q        <= 1'b0;
      hang_q         <= 1'b0;
      fail_q         <= 1'b0;
      edges_q        <= '0;
    end else begin
      start_q <= 1'b0;
      edges_q <= edges_q + 32'd1;
      unique case (lite_q)
        LiteIdle: begin
          s_axil_awready <= s_axil_awvalid && s_axil_wvalid && !s_axil_awready;
          s_axil_arready <= s_axil_arvalid && !s_axil_arready && !(s_axil_awvalid && s_axil_wvalid);
          if (write) begin
            lite_q        <= LiteWrite;
            s_axil_bvalid <= 1'b1;
            s_axil_bresp  <= mapped(s_axil_awaddr) ? RespOkay : RespDecErr;
            if (s_axil_awaddr == 24'h10_0008) begin
              start_q <= s_axil_wdata[0];
              hang_q  <= hang_q || s_axil_wdata[1];
              fail_q  <= fail_q || s_axil_wdata[2];
            end
          end else if (s_axil_arvalid && s_axil_arready) begin
            lite_q        <= LiteRead;
            s_axil_rvalid <= 1'b1;
            s_axil_rresp  <= mapped(s_axil_araddr) ? RespOkay : RespDecErr;
          end
        end
        LiteWrite: begin
          s_axil_awready <= 1'b0;
          if (s_axil_bready) begin
            s_axil_bvalid <= 1'b0;
            lite_q        <= LiteIdle;
          end
        end
        LiteRead: begin
          s_axil_arready <= 1'b0;
          if (s_axil_rready) begin
            s_axil_rvalid <= 1'b0;
            lite_q        <= LiteIdle;
          end
        end
        default: lite_q <= LiteIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (write && s_axil_wstrb == 4'hf) begin
      if (s_axil_awaddr < 24'h40) ram_q[s_axil_awaddr[5:2]] <= s_axil_wdata;
      unique case (s_axil_awaddr)
        24'h10_0004: scratch_q <= s_axil_wdata;
        24'h10_0010: src_q[31:0] <= s_axil_wdata;
        24'h10_0014: src_q[63:32] <= s_axil_wdata;
        24'h10_0018: dst_q[31:0] <= s_axil_wdata;
        24'h10_001C: dst_q[63:32] <= s_axil_wdata;
        24'h10_0020: len_q <= s_axil_wdata[5:0];
        default: ;
      endcase
    end
    if (s_axil_arvalid && s_axil_arready) begin
      unique case (s_axil_araddr)
        24'h10_0000: s_axil_rdata <= 32'h4649_5854;
        24'h10_0004: s_axil_rdata <= scratch_q;
        24'h10_000C: s_axil_rdata <= done_q;
        24'h10_0020: s_axil_rdata <= 32'(len_q);
        24'h10_0024: s_axil_rdata <= edges_q;
        24'h10_0028: s_axil_rdata <= 32'({bresp_q, rresp_q});
        default: s_axil_rdata <= mapped(s_axil_araddr) ? ram_q[s_axil_araddr[5:2]] : '1;
      endcase
    end
  end

  // The copy engine: one read burst into the buffer, one write burst out of it.
  typedef enum logic [2:0] {
    CopyIdle,
    CopyAr,
    CopyR,
    CopyAw,
    CopyW,
    CopyB
  } copy_e;

  copy_e copy_q;
  logic [511:0] buffer_q[64];
  logic [5:0] beat_q;
  logic [5:0] next_beat;

  assign next_beat = beat_q + 6'd1;
  assign m_axi_host_arid = 8'd5;
  assign m_axi_host_araddr = src_q;
  assign m_axi_host_arlen = 8'(len_q);
  assign m_axi_host_arsize = 3'd6;
  assign m_axi_host_arburst = BurstIncr;
  assign m_axi_host_arvalid = copy_q == CopyAr;
  assign m_axi_host_rready = copy_q == CopyR;
  assign m_axi_host_awid = 8'd9;
  assign m_axi_host_awaddr = dst_q;
  assign m_axi_host_awlen = 8'(len_q);
  assign m_axi_host_awsize = 3'd6;
  assign m_axi_host_awburst = BurstIncr;
  assign m_axi_host_awvalid = copy_q == CopyAw;
  assign m_axi_host_wdata = buffer_q[beat_q];
  assign m_axi_host_wstrb = '1;
  assign m_axi_host_wlast = beat_q == len_q;
  assign m_axi_host_wvalid = copy_q == CopyW;
  assign m_axi_host_bready = copy_q == CopyB;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      copy_q  <= CopyIdle;
      beat_q  <= '0;
      done_q  <= '0;
      rresp_q <= RespOkay;
      bresp_q <= RespOkay;
    end else begin
      unique case (copy_q)
        CopyIdle: if (start_q) copy_q <= CopyAr;
        CopyAr: if (m_axi_host_arready) copy_q <= CopyR;
        CopyR:
        if (m_axi_host_rvalid) begin
          beat_q  <= m_axi_host_rlast ? '0 : next_beat;
          rresp_q <= m_axi_host_rresp;
          if (m_axi_host_rlast) copy_q <= CopyAw;
        end
        CopyAw: if (m_axi_host_awready) copy_q <= CopyW;
        CopyW:
        if (m_axi_host_wready) begin
          beat_q <= m_axi_host_wlast ? '0 : next_beat;
          if (m_axi_host_wlast) copy_q <= CopyB;
        end
        CopyB:
        if (m_axi_host_bvalid) begin
          copy_q  <= CopyIdle;
          bresp_q <= m_axi_host_bresp;
          done_q  <= done_q + 32'd1;
        end
        default: copy_q <= CopyIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (copy_q == CopyR && m_axi_host_rvalid) buffer_q[beat_q] <= m_axi_host_rdata;
  end

  // BAR2 to DDR.
  ns_skid #(
    .Width(81)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .in_valid_i(s_axi_pm_awvalid),
    .in_ready_o(s_axi_pm_awready),
    .in_data_i({s_axi_pm_awid, s_axi_pm_awlen, s_axi_pm_awsize, s_axi_pm_awburst, s_axi_pm_awaddr}),
    .out_valid_o(m_axi_ddr_awvalid),
    .out_ready_i(m_axi_ddr_awready),
    .out_data_o({m_axi_ddr_awid[3:0], m_axi_ddr_awlen, m_axi_ddr_awsize, m_axi_ddr_awburst, m_axi_ddr_awaddr})
  );
  ns_skid #(
    .Width(577)
  ) u_w (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi_pm_wvalid),
    .in_ready_o (s_axi_pm_wready),
    .in_data_i  ({s_axi_pm_wlast, s_axi_pm_wstrb, s_axi_pm_wdata}),
    .out_valid_o(m_axi_ddr_wvalid),
    .out_ready_i(m_axi_ddr_wready),
    .out_data_o ({m_axi_ddr_wlast, m_axi_ddr_wstrb, m_axi_ddr_wdata})
  );
  ns_skid #(
    .Width(6)
  ) u_b (
    .clk_i,
    .rst_ni,
    .in_valid_i (m_axi_ddr_bvalid),
    .in_ready_o (m_axi_ddr_bready),
    .in_data_i  ({m_axi_ddr_bid[3:0], m_axi_ddr_bresp}),
    .out_valid_o(s_axi_pm_bvalid),
    .out_ready_i(s_axi_pm_bready),
    .out_data_o ({s_axi_pm_bid, s_axi_pm_bresp})
  );
  ns_skid #(
    .Width(81)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .in_valid_i(s_axi_pm_arvalid),
    .in_ready_o(s_axi_pm_arready),
    .in_data_i({s_axi_pm_arid, s_axi_pm_arlen, s_axi_pm_arsize, s_axi_pm_arburst, s_axi_pm_araddr}),
    .out_valid_o(m_axi_ddr_arvalid),
    .out_ready_i(m_axi_ddr_arready),
    .out_data_o({m_axi_ddr_arid[3:0], m_axi_ddr_arlen, m_axi_ddr_arsize, m_axi_ddr_arburst, m_axi_ddr_araddr})
  );
  ns_skid #(
    .Width(519)
  ) u_r (
    .clk_i,
    .rst_ni,
    .in_valid_i (m_axi_ddr_rvalid),
    .in_ready_o (m_axi_ddr_rready),
    .in_data_i  ({m_axi_ddr_rid[3:0], m_axi_ddr_rresp, m_axi_ddr_rlast, m_axi_ddr_rdata}),
    .out_valid_o(s_axi_pm_rvalid),
    .out_ready_i(s_axi_pm_rready),
    .out_data_o ({s_axi_pm_rid, s_axi_pm_rresp, s_axi_pm_rlast, s_axi_pm_rdata})
  );
  assign m_axi_ddr_awid[7:4] = '0;
  assign m_axi_ddr_arid[7:4] = '0;

  logic unused;
  assign unused = ^{m_axi_ddr_bid[7:4], m_axi_ddr_rid[7:4], m_axi_host_bid, m_axi_host_rid, msix_enable_i, msix_mask_i};

  // Idle: nothing in flight and nothing offered.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) idle_o <= 1'b0;
    else begin
      idle_o <= lite_q == LiteIdle && copy_q == CopyIdle && !start_q && !hang_q
          && !s_axil_awvalid && !s_axil_wvalid && !s_axil_arvalid && !s_axil_awready && !s_axil_arready
          && !s_axi_pm_awvalid && !s_axi_pm_wvalid && !s_axi_pm_arvalid
          && !m_axi_ddr_bvalid && !m_axi_ddr_rvalid && !m_axi_ddr_awvalid && !m_axi_ddr_wvalid && !m_axi_ddr_arvalid
          && !s_axi_pm_bvalid && !s_axi_pm_rvalid;
    end
  end

  `NS_ASSERT(fail_requested, !fail_q)

endmodule
