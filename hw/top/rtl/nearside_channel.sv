// SPDX-License-Identifier: Apache-2.0

// One memory channel of the device: PM window, NVMe mover and engines share an nvm_delay in front
// of the DDR4 controller.
//
// The masters share it through a multiplexer; addresses are local to the channel. The clock of the
// nvm_delay stops while it is idle. All signals to the memory leave from a register slice on the
// free-running clock. This slice and the count of outstanding memory responses (ns_axi_drain)
// survive a reset of the function. If responses are still outstanding when the function restarts,
// all accesses end as errors until they have arrived.
//
// Assumes that the masters of all ports, the control port included, drive `valid` from registers on
// clocks derived from `clk_i`. Adds no ordering between masters beyond that of the multiplexer.
`include "ns_assert.svh"

module nearside_channel
  import ns_axi_pkg::*;
  import qos_pkg::*;
#(
  /// Masters: the PM window, the NVMe controller, engines.
  parameter int unsigned NumMasters  = 2,
  /// Bits of the masters' IDs; those above are 0.
  parameter int unsigned IdBits      = 4,
  /// Reads in flight in the nvm_delay.
  parameter int unsigned ReadSlots   = 64,
  /// Writes in flight in it.
  parameter int unsigned WriteSlots  = 64,
  /// Beats that the nvm_delay's read buffer holds.
  parameter int unsigned BufferBeats = 512,
  /// 1: an ns_axi_fill precedes the memory controller.
  parameter bit          FillInside  = 1'b0,
  /// See ns_axi_read_interleaver.
  parameter int unsigned PieceBeats  = 8,
  parameter int unsigned MaxBeats    = 32
) (
  input  logic                 clk_i,
  /// Reset of the function.
  input  logic                 rst_ni,
  /// Power-on reset, of the memory controller too.
  input  logic                 por_ni,
  /// The function ends: delays and caps are suspended. From a register.
  input  logic                 stop_i,
  /// No transaction of a master starts any more. From registers.
  input  logic [NumMasters-1:0] master_stop_i,
  /// The function is in reset: its outstanding transactions are abandoned. From a register.
  input  logic                 cut_i,
  /// An accepted write address has data to come. From a register.
  output logic                 started_o,
  /// Memory responses are outstanding. From registers.
  output logic                 open_o,
  /// The memory still zeroes blocks for the function before its reset. From registers.
  input  logic                 owed_i,
  /// Responses to the function before its reset are outstanding: accesses end as errors. From a
  /// register.
  output logic                 lost_o,
  /// A further clock edge could change the state without new input.
  output logic                 busy_o,

  /// Credits and weights of the masters. The first one has priority. From registers.
  input  qos_t [NumMasters-1:0] qos_i,
  /// Masters: the PM window, the NVMe controller, engines.
  ns_axi_if.slave s_axi[NumMasters],

  /// Requests to zero blocks, see ns_axi_fill; not timed by the nvm_delay, and not reset with the
  /// function.
  input  logic [AddrWidth-1:0] fill_addr_i,
  input  logic [15:0]          fill_blocks_i,
  input  logic                 fill_valid_i,
  output logic                 fill_ready_o,
  input  logic                 fill_stop_i,
  output logic                 fill_done_o,
  output logic                 fill_error_o,

  /// Control slave of the nvm_delay.
  ns_axil_if.slave s_axil,

  /// Memory controller.
  ns_axi_if.master m_axi
);

  logic [NumMasters-1:0] aw_accepted;  // a write address is accepted

  // From the masters to the nvm_delay.
  ns_axi_if isolated[NumMasters] ();
  ns_axi_if limited[NumMasters] ();
  ns_axi_if mux ();
  logic [NumMasters-1:0][WeightBits-1:0] weights;
  logic [NumMasters-1:0][CreditBits-1:0] reads_q, writes_q;
  logic [NumMasters-1:0] outstanding;  // something is outstanding
  localparam int unsigned Nvme = 1;

  // The lower of two limits, where 0 is no limit.
  function automatic logic [CreditBits-1:0] lower_limit(logic [CreditBits-1:0] a,
                                                        logic [CreditBits-1:0] b);
    return (a == '0 || (b != '0 && b < a)) ? b : a;
  endfunction

  for (genvar i = 0; i < NumMasters; i++) begin : gen_gate
    ns_axi_isolate u_isolate (
      .clk_i,
      .rst_ni,
      .stop_i   (master_stop_i[i]),
      .aw_fire_o(aw_accepted[i]),
      .s_axi    (s_axi[i]),
      .m_axi    (isolated[i])
    );

    // While the controller has transactions outstanding, the limits of the other masters are lower.
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        reads_q[i]  <= '0;
        writes_q[i] <= '0;
      end else begin
        reads_q[i]  <= lower_limit(qos_i[i].reads, (outstanding[Nvme] && i != Nvme) ? qos_i[i].beside : '0);
        writes_q[i] <= lower_limit(qos_i[i].writes, (outstanding[Nvme] && i != Nvme) ? qos_i[i].beside : '0);
      end
    end

    ns_axi_credit #(
      .CountBits(CreditBits),
      .MaxWrites((WriteSlots > 128) ? WriteSlots : 128)
    ) u_credit (
      .clk_i,
      .rst_ni,
      .read_i (reads_q[i]),
      .write_i(writes_q[i]),
      .open_o (outstanding[i]),
      .s_axi  (isolated[i]),
      .m_axi  (limited[i])
    );
    assign weights[i] = qos_i[i].weight;
  end

  ns_axi_mux #(
    .N         (NumMasters),
    .IdBits    (IdBits),
    .Weighted  (1'b1),
    .WeightBits(WeightBits)
  ) u_mux (
    .clk_i,
    .rst_ni,
    .urgent_i(NumMasters'(1)),
    .weight_i(weights),
    .s_axi   (limited),
    .m_axi   (mux)
  );

  // The outputs of the multiplexer and of the control bus's master are registers, so they can wake
  // the nvm_delay. Transactions elsewhere in the multiplexer and in the slices below keep
  // delay_busy at 1, or their master busy.
  logic clk_delay, delay_busy, interleaver_busy, new_access, new_control, awake, fill_busy;

  assign new_access = mux.aw_valid || mux.w_valid || mux.ar_valid;
  assign new_control = s_axil.awvalid || s_axil.wvalid || s_axil.arvalid;
  assign awake = delay_busy || interleaver_busy || new_access || new_control;
  assign busy_o = awake || fill_busy;

  ns_clock_gate u_gate (
    .clk_i,
    .en_i (awake),
    .clk_o(clk_delay)
  );

  // Between the nvm_delay and the memory.
  ns_axi_if delayed ();
  ns_axi_if interleaved ();
  ns_axi_if guarded ();
  ns_axi_if drained ();
  ns_axi_if filled ();

  localparam int unsigned MuxIdBits = IdBits + unsigned'($clog2(NumMasters));
  localparam int unsigned DelayIdBits = (MuxIdBits > 8) ? MuxIdBits : 8;
  // The first master's reads keep their priority up to the memory.
  logic mux_ar_urgent;
  logic [3:0] delayed_ar_qos;
  assign mux_ar_urgent = (mux.ar.id >> IdBits) == '0;
  logic [DelayIdBits-1:0] mux_b_id, mux_r_id, delayed_aw_id, delayed_ar_id;
  assign mux.b.id = IdWidth'(mux_b_id);
  assign mux.r.id = IdWidth'(mux_r_id);
  assign delayed.aw.id = IdWidth'(delayed_aw_id);
  assign delayed.ar.id = IdWidth'(delayed_ar_id);

  nvm_delay #(
    .IdWidth    (DelayIdBits),
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
    .s_axi_awvalid (mux.aw_valid),
    .s_axi_awready (mux.aw_ready),
    .s_axi_awid    (mux.aw.id[DelayIdBits-1:0]),
    .s_axi_awaddr  (mux.aw.addr),
    .s_axi_awlen   (mux.aw.len),
    .s_axi_awsize  (mux.aw.size),
    .s_axi_awburst (mux.aw.burst),
    .s_axi_awlock  ('0),
    .s_axi_awcache ('0),
    .s_axi_awprot  ('0),
    .s_axi_awqos   ('0),
    .s_axi_awregion('0),
    .s_axi_wvalid  (mux.w_valid),
    .s_axi_wready  (mux.w_ready),
    .s_axi_wdata   (mux.w.data),
    .s_axi_wstrb   (mux.w.strb),
    .s_axi_wlast   (mux.w.last),
    .s_axi_bvalid  (mux.b_valid),
    .s_axi_bready  (mux.b_ready),
    .s_axi_bid     (mux_b_id),
    .s_axi_bresp   (mux.b.resp),
    .s_axi_arvalid (mux.ar_valid),
    .s_axi_arready (mux.ar_ready),
    .s_axi_arid    (mux.ar.id[DelayIdBits-1:0]),
    .s_axi_araddr  (mux.ar.addr),
    .s_axi_arlen   (mux.ar.len),
    .s_axi_arsize  (mux.ar.size),
    .s_axi_arburst (mux.ar.burst),
    .s_axi_arlock  ('0),
    .s_axi_arcache ('0),
    .s_axi_arprot  ('0),
    .s_axi_arqos   (4'(mux_ar_urgent)),
    .s_axi_arregion('0),
    .s_axi_rvalid  (mux.r_valid),
    .s_axi_rready  (mux.r_ready),
    .s_axi_rid     (mux_r_id),
    .s_axi_rdata   (mux.r.data),
    .s_axi_rresp   (mux.r.resp),
    .s_axi_rlast   (mux.r.last),
    .m_axi_awvalid (delayed.aw_valid),
    .m_axi_awready (delayed.aw_ready),
    .m_axi_awid    (delayed_aw_id),
    .m_axi_awaddr  (delayed.aw.addr),
    .m_axi_awlen   (delayed.aw.len),
    .m_axi_awsize  (delayed.aw.size),
    .m_axi_awburst (delayed.aw.burst),
    .m_axi_awlock  (),
    .m_axi_awcache (),
    .m_axi_awprot  (),
    .m_axi_awqos   (),
    .m_axi_awregion(),
    .m_axi_wvalid  (delayed.w_valid),
    .m_axi_wready  (delayed.w_ready),
    .m_axi_wdata   (delayed.w.data),
    .m_axi_wstrb   (delayed.w.strb),
    .m_axi_wlast   (delayed.w.last),
    .m_axi_bvalid  (delayed.b_valid),
    .m_axi_bready  (delayed.b_ready),
    .m_axi_bid     (delayed.b.id[DelayIdBits-1:0]),
    .m_axi_bresp   (delayed.b.resp),
    .m_axi_arvalid (delayed.ar_valid),
    .m_axi_arready (delayed.ar_ready),
    .m_axi_arid    (delayed_ar_id),
    .m_axi_araddr  (delayed.ar.addr),
    .m_axi_arlen   (delayed.ar.len),
    .m_axi_arsize  (delayed.ar.size),
    .m_axi_arburst (delayed.ar.burst),
    .m_axi_arlock  (),
    .m_axi_arcache (),
    .m_axi_arprot  (),
    .m_axi_arqos   (delayed_ar_qos),
    .m_axi_arregion(),
    .m_axi_rvalid  (delayed.r_valid),
    .m_axi_rready  (delayed.r_ready),
    .m_axi_rid     (delayed.r.id[DelayIdBits-1:0]),
    .m_axi_rdata   (delayed.r.data),
    .m_axi_rresp   (delayed.r.resp),
    .m_axi_rlast   (delayed.r.last),
    .s_axil_awvalid(s_axil.awvalid),
    .s_axil_awready(s_axil.awready),
    .s_axil_awaddr(s_axil.awaddr[11:0]),
    .s_axil_awprot ('0),
    .s_axil_wvalid(s_axil.wvalid),
    .s_axil_wready(s_axil.wready),
    .s_axil_wdata(s_axil.wdata),
    .s_axil_wstrb(s_axil.wstrb),
    .s_axil_bvalid(s_axil.bvalid),
    .s_axil_bready(s_axil.bready),
    .s_axil_bresp(s_axil.bresp),
    .s_axil_arvalid(s_axil.arvalid),
    .s_axil_arready(s_axil.arready),
    .s_axil_araddr(s_axil.araddr[11:0]),
    .s_axil_arprot ('0),
    .s_axil_rvalid(s_axil.rvalid),
    .s_axil_rready(s_axil.rready),
    .s_axil_rdata(s_axil.rdata),
    .s_axil_rresp(s_axil.rresp)
  );

  ns_axi_read_interleaver #(
    .IdBits    (unsigned'($clog2(ReadSlots))),
    .PieceBeats(PieceBeats),
    .MaxBeats  (MaxBeats)
  ) u_interleaver (
    .clk_i   (clk_delay),
    .rst_ni,
    .busy_o  (interleaver_busy),
    .urgent_i(delayed_ar_qos != '0),
    .s_axi   (delayed),
    .m_axi   (interleaved)
  );

  // Parts that survive a reset of the function. If memory responses are still outstanding when the
  // function restarts, all accesses end as errors.
  logic draining;

  ns_axi_fallback u_fallback (
    .clk_i,
    .rst_ni,
    .lost_i(draining || owed_i),
    .lost_o,
    .s_axi (interleaved),
    .m_axi (guarded)
  );

  ns_axi_drain u_drain (
    .clk_i,
    .rst_ni(por_ni),
    .cut_i,
    .cut_o (draining),
    .open_o,
    .s_axi (guarded),
    .m_axi (drained)
  );

  // The zero filler, downstream of all that.
  if (FillInside) begin : gen_fill
    logic clk_fill;

    ns_clock_gate u_gate_fill (
      .clk_i,
      .en_i (fill_busy || fill_valid_i || drained.aw_valid || drained.w_valid),
      .clk_o(clk_fill)
    );

    ns_axi_fill u_fill (
      .clk_i (clk_fill),
      .rst_ni(por_ni),
      .busy_o(fill_busy),
      .fill_addr_i,
      .fill_blocks_i,
      .fill_valid_i,
      .fill_ready_o,
      .fill_stop_i,
      .fill_done_o,
      .fill_error_o,
      .s_axi (drained),
      .m_axi (filled)
    );
  end else begin : gen_no_fill
    ns_axi_connect u_connect (
      .s_axi(drained),
      .m_axi(filled)
    );
    assign fill_ready_o = 1'b0;
    assign fill_done_o = 1'b0;
    assign fill_error_o = 1'b0;
    assign fill_busy = 1'b0;
    logic unused_fill;
    assign unused_fill = ^{fill_addr_i, fill_blocks_i, fill_valid_i, fill_stop_i};
  end

  ns_axi_slice u_slice (
    .clk_i,
    .rst_ni(por_ni),
    .s_axi (filled),
    .m_axi
  );

  // Writes accepted by the multiplexer whose last beat has not arrived here.
  logic [7:0] started_q;
  logic write_start, write_end;

  assign write_start = aw_accepted != '0;
  assign write_end = delayed.w_valid && delayed.w_ready && delayed.w.last;
  assign started_o = started_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) started_q <= '0;
    else if (write_start && !write_end) started_q <= started_q + 1'b1;
    else if (!write_start && write_end) started_q <= started_q - 1'b1;
  end

  `NS_ASSERT(started_in_range, !(write_start && started_q == '1) && !(write_end && started_q == '0))

endmodule
