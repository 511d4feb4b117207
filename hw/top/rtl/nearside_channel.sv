// One memory channel of the device: PM window and NVMe mover share an nvm_delay, behind which the DDR controller stands.
//
// Ports 0 (PM window) and 1 (NVMe) of a multiplexer; addresses are local to the channel. The clock of the nvm_delay stops
// while it rests. Everything towards the memory leaves from a register slice on the free-running clock. This slice and the
// count of what the memory owes (ns_axi_drain) outlive a reset of the function. If the memory still owes something when the
// function comes up again, all accesses end as errors until it has paid.
// Assumes that the control port's master, and the masters of ports 0 and 1, drive `valid` from registers on clocks derived
// from `clk_i`. Adds no ordering between the two masters beyond what the multiplexer keeps.
`include "ns_assert.svh"

module nearside_channel
  import ns_axi_pkg::*;
#(
  /// Reads in flight in the nvm_delay.
  parameter int unsigned ReadSlots   = 64,
  /// Writes in flight in it.
  parameter int unsigned WriteSlots  = 64,
  /// Beats that the nvm_delay's read buffer holds.
  parameter int unsigned BufferBeats = 512,
  /// There is an ns_axi_fill before the memory.
  parameter bit          FillInside  = 1'b0
) (
  /// Clock.
  input  logic                 clk_i,
  /// Reset of the function.
  input  logic                 rst_ni,
  /// Power-on reset, of the memory controller too.
  input  logic                 por_ni,
  /// Nothing of the two masters begins any more. From a register.
  input  logic                 stop_i,
  /// The function is in reset: what it has asked of the memory is no longer wanted. From a register.
  input  logic                 cut_i,
  /// Write data is still to come for an address that has been accepted. From a register.
  output logic                 begun_o,
  /// The memory has something to answer. From registers.
  output logic                 open_o,
  /// The memory still zeroes what an earlier life of the function asked it to. From registers.
  input  logic                 owed_i,
  /// The memory owes answers to an earlier life: what is asked of it ends as an error. From a register.
  output logic                 lost_o,
  /// A further clock edge could change the state without new input.
  output logic                 busy_o,

  /// Write address of each master.
  input  ax_t  [1:0]           s_aw_i,
  /// Valid.
  input  logic [1:0]           s_aw_valid_i,
  /// Ready.
  output logic [1:0]           s_aw_ready_o,
  /// Write data of each master.
  input  w_t   [1:0]           s_w_i,
  /// Valid.
  input  logic [1:0]           s_w_valid_i,
  /// Ready.
  output logic [1:0]           s_w_ready_o,
  /// Write response to each master.
  output b_t   [1:0]           s_b_o,
  /// Valid.
  output logic [1:0]           s_b_valid_o,
  /// Ready.
  input  logic [1:0]           s_b_ready_i,
  /// Read address of each master.
  input  ax_t  [1:0]           s_ar_i,
  /// Valid.
  input  logic [1:0]           s_ar_valid_i,
  /// Ready.
  output logic [1:0]           s_ar_ready_o,
  /// Read data to each master.
  output r_t   [1:0]           s_r_o,
  /// Valid.
  output logic [1:0]           s_r_valid_o,
  /// Ready.
  input  logic [1:0]           s_r_ready_i,

  /// Requests to zero blocks, see ns_axi_fill; not timed by the nvm_delay, and not reset with the function.
  input  logic [AddrWidth-1:0] fill_addr_i,
  input  logic [15:0]          fill_blocks_i,
  input  logic                 fill_valid_i,
  output logic                 fill_ready_o,
  input  logic                 fill_stop_i,
  output logic                 fill_done_o,
  output logic                 fill_error_o,

  /// Control slave of the nvm_delay; its signals are those of AXI4-Lite.
  input  logic [11:0]          s_axil_awaddr,
  input  logic                 s_axil_awvalid,
  output logic                 s_axil_awready,
  input  logic [31:0]          s_axil_wdata,
  input  logic [3:0]           s_axil_wstrb,
  input  logic                 s_axil_wvalid,
  output logic                 s_axil_wready,
  output logic [1:0]           s_axil_bresp,
  output logic                 s_axil_bvalid,
  input  logic                 s_axil_bready,
  input  logic [11:0]          s_axil_araddr,
  input  logic                 s_axil_arvalid,
  output logic                 s_axil_arready,
  output logic [31:0]          s_axil_rdata,
  output logic [1:0]           s_axil_rresp,
  output logic                 s_axil_rvalid,
  input  logic                 s_axil_rready,

  /// Master to the memory controller; its signals are those of AXI4.
  output logic [IdWidth-1:0]   m_axi_awid,
  output logic [AddrWidth-1:0] m_axi_awaddr,
  output logic [7:0]           m_axi_awlen,
  output logic [2:0]           m_axi_awsize,
  output logic [1:0]           m_axi_awburst,
  output logic                 m_axi_awvalid,
  input  logic                 m_axi_awready,
  output logic [DataWidth-1:0] m_axi_wdata,
  output logic [StrbWidth-1:0] m_axi_wstrb,
  output logic                 m_axi_wlast,
  output logic                 m_axi_wvalid,
  input  logic                 m_axi_wready,
  input  logic [IdWidth-1:0]   m_axi_bid,
  input  logic [1:0]           m_axi_bresp,
  input  logic                 m_axi_bvalid,
  output logic                 m_axi_bready,
  output logic [IdWidth-1:0]   m_axi_arid,
  output logic [AddrWidth-1:0] m_axi_araddr,
  output logic [7:0]           m_axi_arlen,
  output logic [2:0]           m_axi_arsize,
  output logic [1:0]           m_axi_arburst,
  output logic                 m_axi_arvalid,
  input  logic                 m_axi_arready,
  input  logic [IdWidth-1:0]   m_axi_rid,
  input  logic [DataWidth-1:0] m_axi_rdata,
  input  logic [1:0]           m_axi_rresp,
  input  logic                 m_axi_rlast,
  input  logic                 m_axi_rvalid,
  output logic                 m_axi_rready
);

  // Multiplexer to nvm_delay.
  ax_t mux_aw, mux_ar;
  w_t mux_w;
  b_t mux_b;
  r_t mux_r;
  logic mux_aw_valid, mux_aw_ready, mux_w_valid, mux_w_ready, mux_b_valid, mux_b_ready;
  logic mux_ar_valid, mux_ar_ready, mux_r_valid, mux_r_ready;

  logic [1:0] aw_ready, ar_ready;

  assign s_aw_ready_o = aw_ready & {2{!stop_i}};
  assign s_ar_ready_o = ar_ready & {2{!stop_i}};

  ns_axi_mux #(
    .N(2)
  ) u_mux (
    .clk_i,
    .rst_ni,
    .s_aw_i,
    .s_aw_valid_i(s_aw_valid_i & {2{!stop_i}}),
    .s_aw_ready_o(aw_ready),
    .s_w_i,
    .s_w_valid_i,
    .s_w_ready_o,
    .s_b_o,
    .s_b_valid_o,
    .s_b_ready_i,
    .s_ar_i,
    .s_ar_valid_i(s_ar_valid_i & {2{!stop_i}}),
    .s_ar_ready_o(ar_ready),
    .s_r_o,
    .s_r_valid_o,
    .s_r_ready_i,
    .m_aw_o      (mux_aw),
    .m_aw_valid_o(mux_aw_valid),
    .m_aw_ready_i(mux_aw_ready),
    .m_w_o       (mux_w),
    .m_w_valid_o (mux_w_valid),
    .m_w_ready_i (mux_w_ready),
    .m_b_i       (mux_b),
    .m_b_valid_i (mux_b_valid),
    .m_b_ready_o (mux_b_ready),
    .m_ar_o      (mux_ar),
    .m_ar_valid_o(mux_ar_valid),
    .m_ar_ready_i(mux_ar_ready),
    .m_r_i       (mux_r),
    .m_r_valid_i (mux_r_valid),
    .m_r_ready_o (mux_r_ready)
  );

  // The multiplexer's outputs are registers, and so is the control bus's master: they can wake the nvm_delay. What else is in
  // the multiplexer and in the slices below belongs to transactions that keep delay_busy at 1, or their master busy.
  logic clk_delay, delay_busy, new_access, new_control, awake, fill_busy;

  assign new_access = mux_aw_valid || mux_w_valid || mux_ar_valid;
  assign new_control = s_axil_awvalid || s_axil_wvalid || s_axil_arvalid;
  assign awake = delay_busy || new_access || new_control;
  assign busy_o = awake || fill_busy;

  ns_clock_gate u_gate (
    .clk_i,
    .en_i (awake),
    .clk_o(clk_delay)
  );

  // nvm_delay to the slices at the boundary.
  ax_t m_aw, m_ar;
  w_t m_w;
  logic m_aw_valid, m_aw_ready, m_w_valid, m_w_ready, m_ar_valid, m_ar_ready;
  logic m_b_valid, m_b_ready, m_r_valid, m_r_ready;
  b_t m_b;
  r_t m_r;
  w_t out_w;
  b_t out_b;
  logic out_b_valid, out_b_ready;

  nvm_delay #(
    .IdWidth    (IdWidth),
    .AddrWidth  (AddrWidth),
    .DataWidth  (DataWidth),
    .ReadSlots  (ReadSlots),
    .WriteSlots (WriteSlots),
    .BufferBeats(BufferBeats)
  ) u_nvm_delay (
    .clk_i         (clk_delay),
    .rst_ni,
    .busy_o        (delay_busy),
    .flush_i       (stop_i),
    .s_axi_awvalid (mux_aw_valid),
    .s_axi_awready (mux_aw_ready),
    .s_axi_awid    (mux_aw.id),
    .s_axi_awaddr  (mux_aw.addr),
    .s_axi_awlen   (mux_aw.len),
    .s_axi_awsize  (mux_aw.size),
    .s_axi_awburst (mux_aw.burst),
    .s_axi_awlock  ('0),
    .s_axi_awcache ('0),
    .s_axi_awprot  ('0),
    .s_axi_awqos   ('0),
    .s_axi_awregion('0),
    .s_axi_wvalid  (mux_w_valid),
    .s_axi_wready  (mux_w_ready),
    .s_axi_wdata   (mux_w.data),
    .s_axi_wstrb   (mux_w.strb),
    .s_axi_wlast   (mux_w.last),
    .s_axi_bvalid  (mux_b_valid),
    .s_axi_bready  (mux_b_ready),
    .s_axi_bid     (mux_b.id),
    .s_axi_bresp   (mux_b.resp),
    .s_axi_arvalid (mux_ar_valid),
    .s_axi_arready (mux_ar_ready),
    .s_axi_arid    (mux_ar.id),
    .s_axi_araddr  (mux_ar.addr),
    .s_axi_arlen   (mux_ar.len),
    .s_axi_arsize  (mux_ar.size),
    .s_axi_arburst (mux_ar.burst),
    .s_axi_arlock  ('0),
    .s_axi_arcache ('0),
    .s_axi_arprot  ('0),
    .s_axi_arqos   ('0),
    .s_axi_arregion('0),
    .s_axi_rvalid  (mux_r_valid),
    .s_axi_rready  (mux_r_ready),
    .s_axi_rid     (mux_r.id),
    .s_axi_rdata   (mux_r.data),
    .s_axi_rresp   (mux_r.resp),
    .s_axi_rlast   (mux_r.last),
    .m_axi_awvalid (m_aw_valid),
    .m_axi_awready (m_aw_ready),
    .m_axi_awid    (m_aw.id),
    .m_axi_awaddr  (m_aw.addr),
    .m_axi_awlen   (m_aw.len),
    .m_axi_awsize  (m_aw.size),
    .m_axi_awburst (m_aw.burst),
    .m_axi_awlock  (),
    .m_axi_awcache (),
    .m_axi_awprot  (),
    .m_axi_awqos   (),
    .m_axi_awregion(),
    .m_axi_wvalid  (m_w_valid),
    .m_axi_wready  (m_w_ready),
    .m_axi_wdata   (m_w.data),
    .m_axi_wstrb   (m_w.strb),
    .m_axi_wlast   (m_w.last),
    .m_axi_bvalid  (m_b_valid),
    .m_axi_bready  (m_b_ready),
    .m_axi_bid     (m_b.id),
    .m_axi_bresp   (m_b.resp),
    .m_axi_arvalid (m_ar_valid),
    .m_axi_arready (m_ar_ready),
    .m_axi_arid    (m_ar.id),
    .m_axi_araddr  (m_ar.addr),
    .m_axi_arlen   (m_ar.len),
    .m_axi_arsize  (m_ar.size),
    .m_axi_arburst (m_ar.burst),
    .m_axi_arlock  (),
    .m_axi_arcache (),
    .m_axi_arprot  (),
    .m_axi_arqos   (),
    .m_axi_arregion(),
    .m_axi_rvalid  (m_r_valid),
    .m_axi_rready  (m_r_ready),
    .m_axi_rid     (m_r.id),
    .m_axi_rdata   (m_r.data),
    .m_axi_rresp   (m_r.resp),
    .m_axi_rlast   (m_r.last),
    .s_axil_awvalid,
    .s_axil_awready,
    .s_axil_awaddr,
    .s_axil_awprot ('0),
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
    .s_axil_arprot ('0),
    .s_axil_rvalid,
    .s_axil_rready,
    .s_axil_rdata,
    .s_axil_rresp
  );

  // What outlives a reset of the function.
  logic
      out_aw_valid, out_aw_ready, out_w_valid, out_w_ready, out_w_fill, out_ar_valid, out_ar_ready;
  logic mem_aw_ready, mem_w_ready, mem_b_valid, mem_ar_ready, mem_r_valid;
  logic drained, cut, lost_q;

  ns_axi_drain u_drain (
    .clk_i,
    .rst_ni      (por_ni),
    .cut_i,
    .cut_o       (drained),
    .open_o,
    .s_aw_valid_i(m_aw_valid && !lost_q),
    .s_aw_ready_o(mem_aw_ready),
    .s_aw_len_i  (m_aw.len),
    .s_w_valid_i (m_w_valid && !lost_q),
    .s_w_ready_o (mem_w_ready),
    .s_w_last_i  (m_w.last),
    .s_b_valid_o (mem_b_valid),
    .s_b_ready_i (m_b_ready),
    .s_ar_valid_i(m_ar_valid && !lost_q),
    .s_ar_ready_o(mem_ar_ready),
    .s_r_valid_o (mem_r_valid),
    .s_r_ready_i (m_r_ready),
    .m_aw_valid_o(out_aw_valid),
    .m_aw_ready_i(out_aw_ready),
    .m_w_valid_o (out_w_valid),
    .m_w_ready_i (out_w_ready),
    .m_w_fill_o  (out_w_fill),
    .m_w_last_o  (out_w.last),
    .m_b_valid_i (out_b_valid),
    .m_b_ready_o (out_b_ready),
    .m_ar_valid_o(out_ar_valid),
    .m_ar_ready_i(out_ar_ready),
    .m_r_valid_i (m_axi_rvalid),
    .m_r_ready_o (m_axi_rready),
    .m_r_last_i  (m_axi_rlast)
  );

  // The memory has not answered for so long that the function has come up without it. The change back waits for the end of
  // what is being answered with an error.
  assign cut = drained || owed_i;
  assign lost_o = lost_q;

  b_t err_b;
  r_t err_r;
  logic err_busy, err_aw_ready, err_w_ready, err_b_valid, err_ar_ready, err_r_valid;

  ns_axi_error #(
    .Resp(RespSlvErr)
  ) u_error (
    .clk_i,
    .rst_ni,
    .busy_o      (err_busy),
    .s_aw_id_i   (m_aw.id),
    .s_aw_valid_i(m_aw_valid && lost_q && cut),
    .s_aw_ready_o(err_aw_ready),
    .s_w_last_i  (m_w.last),
    .s_w_valid_i (m_w_valid && lost_q),
    .s_w_ready_o (err_w_ready),
    .s_b_o       (err_b),
    .s_b_valid_o (err_b_valid),
    .s_b_ready_i (m_b_ready),
    .s_ar_id_i   (m_ar.id),
    .s_ar_len_i  (m_ar.len),
    .s_ar_valid_i(m_ar_valid && lost_q && cut),
    .s_ar_ready_o(err_ar_ready),
    .s_r_o       (err_r),
    .s_r_valid_o (err_r_valid),
    .s_r_ready_i (m_r_ready)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) lost_q <= 1'b0;
    else lost_q <= cut || (lost_q && err_busy);
  end

  assign m_aw_ready = lost_q ? err_aw_ready && cut : mem_aw_ready;
  assign m_w_ready = lost_q ? err_w_ready : mem_w_ready;
  assign m_ar_ready = lost_q ? err_ar_ready && cut : mem_ar_ready;
  assign m_b_valid = lost_q ? err_b_valid : mem_b_valid;
  assign m_r_valid = lost_q ? err_r_valid : mem_r_valid;
  assign m_b.id = lost_q ? err_b.id : out_b.id;
  assign m_b.resp = lost_q ? err_b.resp : out_b.resp;
  assign m_r.id = lost_q ? err_r.id : m_axi_rid;
  assign m_r.resp = lost_q ? err_r.resp : m_axi_rresp;
  assign m_r.last = lost_q ? err_r.last : m_axi_rlast;
  assign m_r.data = lost_q ? err_r.data : m_axi_rdata;

  // Past an ns_axi_fill, perhaps, to the slices.
  ax_t to_aw;
  w_t to_w;
  logic to_aw_valid, to_aw_ready, to_w_valid, to_w_ready;

  if (FillInside) begin : gen_fill
    logic clk_fill;

    ns_clock_gate u_gate_fill (
      .clk_i,
      .en_i (fill_busy || fill_valid_i || out_aw_valid || out_w_valid),
      .clk_o(clk_fill)
    );

    ns_axi_fill u_fill (
      .clk_i       (clk_fill),
      .rst_ni      (por_ni),
      .busy_o      (fill_busy),
      .fill_addr_i,
      .fill_blocks_i,
      .fill_valid_i,
      .fill_ready_o,
      .fill_stop_i,
      .fill_done_o,
      .fill_error_o,
      .s_aw_i      (m_aw),
      .s_aw_valid_i(out_aw_valid),
      .s_aw_ready_o(out_aw_ready),
      .s_w_i       (out_w),
      .s_w_valid_i (out_w_valid),
      .s_w_ready_o (out_w_ready),
      .s_b_o       (out_b),
      .s_b_valid_o (out_b_valid),
      .s_b_ready_i (out_b_ready),
      .m_aw_o      (to_aw),
      .m_aw_valid_o(to_aw_valid),
      .m_aw_ready_i(to_aw_ready),
      .m_w_o       (to_w),
      .m_w_valid_o (to_w_valid),
      .m_w_ready_i (to_w_ready),
      .m_b_i       ('{id: m_axi_bid, resp: m_axi_bresp}),
      .m_b_valid_i (m_axi_bvalid),
      .m_b_ready_o (m_axi_bready)
    );
  end else begin : gen_no_fill
    assign to_aw = m_aw;
    assign to_aw_valid = out_aw_valid;
    assign out_aw_ready = to_aw_ready;
    assign to_w = out_w;
    assign to_w_valid = out_w_valid;
    assign out_w_ready = to_w_ready;
    assign out_b = '{id: m_axi_bid, resp: m_axi_bresp};
    assign out_b_valid = m_axi_bvalid;
    assign m_axi_bready = out_b_ready;
    assign fill_ready_o = 1'b0;
    assign fill_done_o = 1'b0;
    assign fill_error_o = 1'b0;
    assign fill_busy = 1'b0;
    logic unused_fill;
    assign unused_fill = ^{fill_addr_i, fill_blocks_i, fill_valid_i, fill_stop_i};
  end

  assign out_w.strb = out_w_fill ? '0 : m_w.strb;
  assign out_w.data = m_w.data;

  // Bursts between the multiplexer, which has accepted their address, and their last beat here.
  logic [7:0] begun_q;
  logic begin_write, end_write;

  assign begin_write = (s_aw_valid_i & s_aw_ready_o) != '0;
  assign end_write = m_w_valid && m_w_ready && m_w.last;
  assign begun_o = begun_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begun_q <= '0;
    else if (begin_write && !end_write) begun_q <= begun_q + 1'b1;
    else if (!begin_write && end_write) begun_q <= begun_q - 1'b1;
  end

  ns_skid #(
    .Width($bits(ax_t))
  ) u_aw_slice (
    .clk_i,
    .rst_ni     (por_ni),
    .in_valid_i (to_aw_valid),
    .in_ready_o (to_aw_ready),
    .in_data_i  (to_aw),
    .out_valid_o(m_axi_awvalid),
    .out_ready_i(m_axi_awready),
    .out_data_o ({m_axi_awid, m_axi_awlen, m_axi_awsize, m_axi_awburst, m_axi_awaddr})
  );

  ns_skid #(
    .Width($bits(w_t))
  ) u_w_slice (
    .clk_i,
    .rst_ni     (por_ni),
    .in_valid_i (to_w_valid),
    .in_ready_o (to_w_ready),
    .in_data_i  (to_w),
    .out_valid_o(m_axi_wvalid),
    .out_ready_i(m_axi_wready),
    .out_data_o ({m_axi_wlast, m_axi_wstrb, m_axi_wdata})
  );

  ns_skid #(
    .Width($bits(ax_t))
  ) u_ar_slice (
    .clk_i,
    .rst_ni     (por_ni),
    .in_valid_i (out_ar_valid),
    .in_ready_o (out_ar_ready),
    .in_data_i  (m_ar),
    .out_valid_o(m_axi_arvalid),
    .out_ready_i(m_axi_arready),
    .out_data_o ({m_axi_arid, m_axi_arlen, m_axi_arsize, m_axi_arburst, m_axi_araddr})
  );

  `NS_ASSERT(begun_in_range, !(begin_write && begun_q == '1) && !(end_write && begun_q == '0))

endmodule
