// Test bench of ns_axi_mux and ns_axi_xbar: flat ports for cocotbext-axi around up to four masters and four slaves, and
// AXI protocol checks on everything the interconnect drives.
`include "ns_assert.svh"

`define NS_TB_PORTS(p, from, to) \
  from logic [7:0]   p``_awid, \
  from logic [63:0]  p``_awaddr, \
  from logic [7:0]   p``_awlen, \
  from logic [2:0]   p``_awsize, \
  from logic [1:0]   p``_awburst, \
  from logic         p``_awvalid, \
  to   logic         p``_awready, \
  from logic [511:0] p``_wdata, \
  from logic [63:0]  p``_wstrb, \
  from logic         p``_wlast, \
  from logic         p``_wvalid, \
  to   logic         p``_wready, \
  to   logic [7:0]   p``_bid, \
  to   logic [1:0]   p``_bresp, \
  to   logic         p``_bvalid, \
  from logic         p``_bready, \
  from logic [7:0]   p``_arid, \
  from logic [63:0]  p``_araddr, \
  from logic [7:0]   p``_arlen, \
  from logic [2:0]   p``_arsize, \
  from logic [1:0]   p``_arburst, \
  from logic         p``_arvalid, \
  to   logic         p``_arready, \
  to   logic [7:0]   p``_rid, \
  to   logic [511:0] p``_rdata, \
  to   logic [1:0]   p``_rresp, \
  to   logic         p``_rlast, \
  to   logic         p``_rvalid, \
  from logic         p``_rready

`define NS_TB_MASTER(i, p) \
  assign s_aw[i] = '{id: p``_awid, len: p``_awlen, size: p``_awsize, burst: p``_awburst, addr: p``_awaddr}; \
  assign s_aw_valid[i] = p``_awvalid; \
  assign p``_awready = s_aw_ready[i]; \
  assign s_w[i] = '{last: p``_wlast, strb: p``_wstrb, data: p``_wdata}; \
  assign s_w_valid[i] = p``_wvalid; \
  assign p``_wready = s_w_ready[i]; \
  assign p``_bid = s_b[i].id; \
  assign p``_bresp = s_b[i].resp; \
  assign p``_bvalid = s_b_valid[i]; \
  assign s_b_ready[i] = p``_bready; \
  assign s_ar[i] = '{id: p``_arid, len: p``_arlen, size: p``_arsize, burst: p``_arburst, addr: p``_araddr}; \
  assign s_ar_valid[i] = p``_arvalid; \
  assign p``_arready = s_ar_ready[i]; \
  assign p``_rid = s_r[i].id; \
  assign p``_rdata = s_r[i].data; \
  assign p``_rresp = s_r[i].resp; \
  assign p``_rlast = s_r[i].last; \
  assign p``_rvalid = s_r_valid[i]; \
  assign s_r_ready[i] = p``_rready;

`define NS_TB_SLAVE(i, p) \
  assign p``_awid = m_aw[i].id; \
  assign p``_awaddr = m_aw[i].addr; \
  assign p``_awlen = m_aw[i].len; \
  assign p``_awsize = m_aw[i].size; \
  assign p``_awburst = m_aw[i].burst; \
  assign p``_awvalid = m_aw_valid[i]; \
  assign m_aw_ready[i] = p``_awready; \
  assign p``_wdata = m_w[i].data; \
  assign p``_wstrb = m_w[i].strb; \
  assign p``_wlast = m_w[i].last; \
  assign p``_wvalid = m_w_valid[i]; \
  assign m_w_ready[i] = p``_wready; \
  assign m_b[i] = '{id: p``_bid, resp: p``_bresp}; \
  assign m_b_valid[i] = p``_bvalid; \
  assign p``_bready = m_b_ready[i]; \
  assign p``_arid = m_ar[i].id; \
  assign p``_araddr = m_ar[i].addr; \
  assign p``_arlen = m_ar[i].len; \
  assign p``_arsize = m_ar[i].size; \
  assign p``_arburst = m_ar[i].burst; \
  assign p``_arvalid = m_ar_valid[i]; \
  assign m_ar_ready[i] = p``_arready; \
  assign m_r[i] = '{id: p``_rid, resp: p``_rresp, last: p``_rlast, data: p``_rdata}; \
  assign m_r_valid[i] = p``_rvalid; \
  assign p``_rready = m_r_ready[i];

module axi_tb
  import ns_axi_pkg::*;
#(
  /// 0: ns_axi_xbar, 1: ns_axi_mux (then NumSlaves is 1).
  parameter bit Mux = 0,
  /// Masters, 1 to 4; the ports of the others are not used.
  parameter int unsigned NumMasters = 4,
  /// Slaves, 1, 2 or 4.
  parameter int unsigned NumSlaves = 4,
  /// Interleaving.
  parameter int unsigned Granule = 4096,
  /// Size of the address space.
  parameter logic [AddrWidth-1:0] Bytes = 64'h4_0000,
  /// Low ID bits looked at for order.
  parameter int unsigned OrderBits = 4
) (
  input logic clk_i,
  input logic rst_ni,
  `NS_TB_PORTS(s0_axi, input, output),
  `NS_TB_PORTS(s1_axi, input, output),
  `NS_TB_PORTS(s2_axi, input, output),
  `NS_TB_PORTS(s3_axi, input, output),
  `NS_TB_PORTS(m0_axi, output, input),
  `NS_TB_PORTS(m1_axi, output, input),
  `NS_TB_PORTS(m2_axi, output, input),
  `NS_TB_PORTS(m3_axi, output, input)
);

  ax_t  [3:0] s_aw, s_ar, m_aw, m_ar;
  w_t   [3:0] s_w, m_w;
  b_t   [3:0] s_b, m_b;
  r_t   [3:0] s_r, m_r;
  logic [3:0] s_aw_valid, s_w_valid, s_b_valid, s_ar_valid, s_r_valid;
  logic [3:0] s_aw_ready, s_w_ready, s_b_ready, s_ar_ready, s_r_ready;
  logic [3:0] m_aw_valid, m_w_valid, m_b_valid, m_ar_valid, m_r_valid;
  logic [3:0] m_aw_ready, m_w_ready, m_b_ready, m_ar_ready, m_r_ready;

  `NS_TB_MASTER(0, s0_axi)
  `NS_TB_MASTER(1, s1_axi)
  `NS_TB_MASTER(2, s2_axi)
  `NS_TB_MASTER(3, s3_axi)
  `NS_TB_SLAVE(0, m0_axi)
  `NS_TB_SLAVE(1, m1_axi)
  `NS_TB_SLAVE(2, m2_axi)
  `NS_TB_SLAVE(3, m3_axi)

  if (NumMasters < 4) begin : gen_no_master
    assign s_aw_ready[3:NumMasters] = '0;
    assign s_w_ready[3:NumMasters] = '0;
    assign s_b[3:NumMasters] = '0;
    assign s_b_valid[3:NumMasters] = '0;
    assign s_ar_ready[3:NumMasters] = '0;
    assign s_r[3:NumMasters] = '0;
    assign s_r_valid[3:NumMasters] = '0;
  end

  if (NumSlaves < 4) begin : gen_no_slave
    assign m_aw[3:NumSlaves] = '0;
    assign m_aw_valid[3:NumSlaves] = '0;
    assign m_w[3:NumSlaves] = '0;
    assign m_w_valid[3:NumSlaves] = '0;
    assign m_b_ready[3:NumSlaves] = '0;
    assign m_ar[3:NumSlaves] = '0;
    assign m_ar_valid[3:NumSlaves] = '0;
    assign m_r_ready[3:NumSlaves] = '0;
  end

  if (Mux) begin : gen_mux
    ns_axi_mux #(
      .N(NumMasters)
    ) u_dut (
      .clk_i,
      .rst_ni,
      .s_aw_i      (s_aw[NumMasters-1:0]),
      .s_aw_valid_i(s_aw_valid[NumMasters-1:0]),
      .s_aw_ready_o(s_aw_ready[NumMasters-1:0]),
      .s_w_i       (s_w[NumMasters-1:0]),
      .s_w_valid_i (s_w_valid[NumMasters-1:0]),
      .s_w_ready_o (s_w_ready[NumMasters-1:0]),
      .s_b_o       (s_b[NumMasters-1:0]),
      .s_b_valid_o (s_b_valid[NumMasters-1:0]),
      .s_b_ready_i (s_b_ready[NumMasters-1:0]),
      .s_ar_i      (s_ar[NumMasters-1:0]),
      .s_ar_valid_i(s_ar_valid[NumMasters-1:0]),
      .s_ar_ready_o(s_ar_ready[NumMasters-1:0]),
      .s_r_o       (s_r[NumMasters-1:0]),
      .s_r_valid_o (s_r_valid[NumMasters-1:0]),
      .s_r_ready_i (s_r_ready[NumMasters-1:0]),
      .m_aw_o      (m_aw[0]),
      .m_aw_valid_o(m_aw_valid[0]),
      .m_aw_ready_i(m_aw_ready[0]),
      .m_w_o       (m_w[0]),
      .m_w_valid_o (m_w_valid[0]),
      .m_w_ready_i (m_w_ready[0]),
      .m_b_i       (m_b[0]),
      .m_b_valid_i (m_b_valid[0]),
      .m_b_ready_o (m_b_ready[0]),
      .m_ar_o      (m_ar[0]),
      .m_ar_valid_o(m_ar_valid[0]),
      .m_ar_ready_i(m_ar_ready[0]),
      .m_r_i       (m_r[0]),
      .m_r_valid_i (m_r_valid[0]),
      .m_r_ready_o (m_r_ready[0])
    );
  end else begin : gen_xbar
    ns_axi_xbar #(
      .NumMasters(NumMasters),
      .NumSlaves (NumSlaves),
      .Granule   (Granule),
      .Bytes     (Bytes),
      .OrderBits (OrderBits)
    ) u_dut (
      .clk_i,
      .rst_ni,
      .s_aw_i      (s_aw[NumMasters-1:0]),
      .s_aw_valid_i(s_aw_valid[NumMasters-1:0]),
      .s_aw_ready_o(s_aw_ready[NumMasters-1:0]),
      .s_w_i       (s_w[NumMasters-1:0]),
      .s_w_valid_i (s_w_valid[NumMasters-1:0]),
      .s_w_ready_o (s_w_ready[NumMasters-1:0]),
      .s_b_o       (s_b[NumMasters-1:0]),
      .s_b_valid_o (s_b_valid[NumMasters-1:0]),
      .s_b_ready_i (s_b_ready[NumMasters-1:0]),
      .s_ar_i      (s_ar[NumMasters-1:0]),
      .s_ar_valid_i(s_ar_valid[NumMasters-1:0]),
      .s_ar_ready_o(s_ar_ready[NumMasters-1:0]),
      .s_r_o       (s_r[NumMasters-1:0]),
      .s_r_valid_o (s_r_valid[NumMasters-1:0]),
      .s_r_ready_i (s_r_ready[NumMasters-1:0]),
      .m_aw_o      (m_aw[NumSlaves-1:0]),
      .m_aw_valid_o(m_aw_valid[NumSlaves-1:0]),
      .m_aw_ready_i(m_aw_ready[NumSlaves-1:0]),
      .m_w_o       (m_w[NumSlaves-1:0]),
      .m_w_valid_o (m_w_valid[NumSlaves-1:0]),
      .m_w_ready_i (m_w_ready[NumSlaves-1:0]),
      .m_b_i       (m_b[NumSlaves-1:0]),
      .m_b_valid_i (m_b_valid[NumSlaves-1:0]),
      .m_b_ready_o (m_b_ready[NumSlaves-1:0]),
      .m_ar_o      (m_ar[NumSlaves-1:0]),
      .m_ar_valid_o(m_ar_valid[NumSlaves-1:0]),
      .m_ar_ready_i(m_ar_ready[NumSlaves-1:0]),
      .m_r_i       (m_r[NumSlaves-1:0]),
      .m_r_valid_i (m_r_valid[NumSlaves-1:0]),
      .m_r_ready_o (m_r_ready[NumSlaves-1:0])
    );
  end

  for (genvar i = 0; i < NumSlaves; i++) begin : gen_check_slave
    stable_check #($bits(ax_t)) u_aw (clk_i, rst_ni, m_aw_valid[i], m_aw_ready[i], m_aw[i]);
    stable_check #($bits(w_t)) u_w (clk_i, rst_ni, m_w_valid[i], m_w_ready[i], m_w[i]);
    stable_check #($bits(ax_t)) u_ar (clk_i, rst_ni, m_ar_valid[i], m_ar_ready[i], m_ar[i]);
  end

  for (genvar i = 0; i < NumMasters; i++) begin : gen_check_master
    stable_check #($bits(b_t)) u_b (clk_i, rst_ni, s_b_valid[i], s_b_ready[i], s_b[i]);
    stable_check #($bits(r_t)) u_r (clk_i, rst_ni, s_r_valid[i], s_r_ready[i], s_r[i]);

    // Bursts of read data arrive whole.
    logic inside_q;
    logic [IdWidth-1:0] id_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        inside_q <= 1'b0;
        id_q <= '0;
      end else if (s_r_valid[i] && s_r_ready[i]) begin
        inside_q <= !s_r[i].last;
        id_q <= s_r[i].id;
      end
    end
    `NS_ASSERT(read_bursts_whole, !s_r_valid[i] || !inside_q || s_r[i].id == id_q)
  end

endmodule
