// SPDX-License-Identifier: Apache-2.0

// AXI4-Lite demultiplexer: one master, `N` slaves with disjoint address ranges; 24-bit addresses,
// 32-bit data.
//
// Slave i answers addresses with `(addr & ~Mask[i]) == Base[i]`; the first match wins. It receives
// `addr & Mask[i]`. Other addresses are answered DECERR. A write is accepted every two cycles, and
// up to `MaxWrites` are in flight to one slave. A write to another slave waits until these are
// answered, so responses stay in order. One read is in flight at a time, as control traffic needs
// no bandwidth. Outputs depend on registers only. Reads and writes are not ordered against each
// other.
`include "ns_assert.svh"

module ns_axil_demux
  import ns_axi_pkg::*;
#(
  /// Number of slaves.
  parameter int unsigned N = 2,
  /// Base address of each slave's range.
  parameter logic [N-1:0][23:0] Base = '0,
  /// Size - 1 of each slave's range, which is a power of two.
  parameter logic [N-1:0][23:0] Mask = '0,
  /// Writes without response, 1 to 7.
  parameter int unsigned MaxWrites = 4
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  /// Master.
  ns_axil_if.slave s_axil,


  /// Slaves: addresses relative to their ranges.
  ns_axil_if.master m_axil[N],


  /// A transaction is in flight.
  output logic               busy_o
);

  // The slaves' buses, one vector per signal.
  logic [N-1:0] m_awvalid, m_awready, m_wvalid, m_wready, m_bvalid, m_bready;
  logic [N-1:0] m_arvalid, m_arready, m_rvalid, m_rready;
  logic [N-1:0][1:0] m_bresp, m_rresp;
  logic [N-1:0][31:0] m_rdata;

  // The slave of an address, one-hot; 0 for none.
  function automatic logic [N-1:0] decode(logic [23:0] addr);
    logic [N-1:0] hit;
    for (int unsigned i = 0; i < N; i++) hit[i] = (addr & ~Mask[i]) == Base[i];
    return hit & (~hit + 1'b1);
  endfunction

  function automatic logic [23:0] local_addr(logic [23:0] addr);
    logic [N-1:0] hit;
    hit = decode(addr);
    local_addr = '0;
    for (int unsigned i = 0; i < N; i++) if (hit[i]) local_addr |= addr & Mask[i];
  endfunction

  // ---------------------------------------------------------------- writes

  // Address and data arrive in any order; then both are sent to the slave.
  logic awready_q, wready_q;  // address, data of the master are still awaited
  logic [N-1:0] w_slave_q;
  logic [23:0] in_addr_q, awaddr_q;
  logic [31:0] in_data_q, wdata_q;
  logic [3:0] in_strb_q, wstrb_q;
  logic [N-1:0] awvalid_q, wvalid_q;
  logic [N-1:0] open_q;       // the slave of the writes without response
  logic [2:0] writes_q;       // their count
  logic bvalid_q;
  logic [1:0] bresp_q, bresp;
  logic request_valid, issue, decode_error, b_fire;

  assign request_valid = !awready_q && !wready_q && (awvalid_q | wvalid_q) == '0;
  assign issue = request_valid && w_slave_q != '0 && (writes_q == '0 || (w_slave_q == open_q && 32'(writes_q) < MaxWrites));
  assign decode_error = request_valid && w_slave_q == '0 && writes_q == '0 && !bvalid_q;
  assign b_fire = (m_bready & m_bvalid) != '0;

  always_comb begin
    bresp = '0;
    for (int unsigned i = 0; i < N; i++) if (open_q[i]) bresp |= m_bresp[i];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      awready_q <= 1'b1;
      wready_q <= 1'b1;
      awvalid_q <= '0;
      wvalid_q <= '0;
      writes_q <= '0;
      bvalid_q <= 1'b0;
    end else begin
      if (issue || decode_error) awready_q <= 1'b1;
      else if (s_axil.awvalid) awready_q <= 1'b0;
      if (issue || decode_error) wready_q <= 1'b1;
      else if (s_axil.wvalid) wready_q <= 1'b0;

      awvalid_q <= issue ? w_slave_q : awvalid_q & ~m_awready;
      wvalid_q  <= issue ? w_slave_q : wvalid_q & ~m_wready;
      if (issue && !b_fire) writes_q <= writes_q + 1'b1;
      if (b_fire && !issue) writes_q <= writes_q - 1'b1;

      if (b_fire || decode_error) bvalid_q <= 1'b1;
      else if (s_axil.bready) bvalid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (awready_q && s_axil.awvalid) begin
      w_slave_q <= decode(s_axil.awaddr);
      in_addr_q <= local_addr(s_axil.awaddr);
    end
    if (wready_q && s_axil.wvalid) begin
      in_data_q <= s_axil.wdata;
      in_strb_q <= s_axil.wstrb;
    end
    if (issue) begin
      open_q   <= w_slave_q;
      awaddr_q <= in_addr_q;
      wdata_q  <= in_data_q;
      wstrb_q  <= in_strb_q;
    end
    if (b_fire) bresp_q <= bresp;
    else if (decode_error) bresp_q <= RespDecErr;
  end

  assign s_axil.awready = awready_q;
  assign s_axil.wready = wready_q;
  assign s_axil.bvalid = bvalid_q;
  assign s_axil.bresp = bresp_q;
  assign m_awvalid = awvalid_q;
  assign m_wvalid = wvalid_q;
  assign m_bready = open_q & {N{writes_q != '0 && !bvalid_q}};

  // ---------------------------------------------------------------- reads

  typedef enum logic [1:0] {
    StIdle,
    StDecode,
    StSlave,   // the slave performs the read
    StRespond  // the response is offered to the master
  } state_e;

  state_e r_state_q;
  logic [N-1:0] r_slave_q, arvalid_q, rready_q;
  logic [23:0] araddr_q;
  logic [31:0] rdata_q, rdata;
  logic [1:0] rresp_q, rresp;

  always_comb begin
    rdata = '0;
    rresp = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (r_slave_q[i]) begin
        rdata |= m_rdata[i];
        rresp |= m_rresp[i];
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      r_state_q <= StIdle;
      arvalid_q <= '0;
      rready_q <= '0;
      rdata_q <= '0;
      rresp_q <= RespOkay;
    end else begin
      unique case (r_state_q)
        StIdle: if (s_axil.arvalid) r_state_q <= StDecode;
        StDecode: begin
          if (r_slave_q == '0) begin
            rdata_q <= '0;
            rresp_q <= RespDecErr;
            r_state_q <= StRespond;
          end else begin
            arvalid_q <= r_slave_q;
            rready_q <= r_slave_q;
            r_state_q <= StSlave;
          end
        end
        StSlave: begin
          arvalid_q <= arvalid_q & ~m_arready;
          if ((rready_q & m_rvalid) != '0) begin
            rready_q <= '0;
            rdata_q <= rdata;
            rresp_q <= rresp;
            r_state_q <= StRespond;
          end
        end
        default: if (s_axil.rready) r_state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (s_axil.arready && s_axil.arvalid) begin
      r_slave_q <= decode(s_axil.araddr);
      araddr_q <= local_addr(s_axil.araddr);
    end
  end

  assign s_axil.arready = r_state_q == StIdle;
  assign s_axil.rvalid = r_state_q == StRespond;
  assign s_axil.rdata = rdata_q;
  assign s_axil.rresp = rresp_q;
  assign m_arvalid = arvalid_q;
  assign m_rready = rready_q;

  assign busy_o = !awready_q || !wready_q || writes_q != '0 || bvalid_q || r_state_q != StIdle;

  for (genvar i = 0; i < N; i++) begin : gen_slave
    assign m_axil[i].awaddr = awaddr_q;
    assign m_axil[i].awvalid = m_awvalid[i];
    assign m_awready[i] = m_axil[i].awready;
    assign m_axil[i].wdata = wdata_q;
    assign m_axil[i].wstrb = wstrb_q;
    assign m_axil[i].wvalid = m_wvalid[i];
    assign m_wready[i] = m_axil[i].wready;
    assign m_bresp[i] = m_axil[i].bresp;
    assign m_bvalid[i] = m_axil[i].bvalid;
    assign m_axil[i].bready = m_bready[i];
    assign m_axil[i].araddr = araddr_q;
    assign m_axil[i].arvalid = m_arvalid[i];
    assign m_arready[i] = m_axil[i].arready;
    assign m_rdata[i] = m_axil[i].rdata;
    assign m_rresp[i] = m_axil[i].rresp;
    assign m_rvalid[i] = m_axil[i].rvalid;
    assign m_axil[i].rready = m_rready[i];
  end

  for (genvar i = 0; i < N; i++) begin : gen_check
    if ((Base[i] & Mask[i]) != '0 || (Mask[i] & (Mask[i] + 24'd1)) != '0) begin : gen_bad_range
      $error("ns_axil_demux: a range must be a power of two in size and aligned to it");
    end
  end
  if (MaxWrites < 1 || MaxWrites > 7) begin : gen_bad_writes
    $error("ns_axil_demux: MaxWrites must be 1 to 7");
  end

  `NS_ASSERT(one_write_slave, (awvalid_q & (awvalid_q - 1'b1)) == '0)
  `NS_ASSERT(one_read_slave, (arvalid_q & (arvalid_q - 1'b1)) == '0)
  `NS_ASSERT(write_response_was_requested, (m_bvalid & ~({N{writes_q != '0}} & open_q)) == '0)
  `NS_ASSERT(no_early_write_response, writes_q != 3'd1 || (m_bvalid & (awvalid_q | wvalid_q)) == '0)
  `NS_ASSERT(no_early_read_response, (m_rvalid & rready_q & arvalid_q) == '0)

endmodule
