// SPDX-License-Identifier: Apache-2.0

// Host port of the device, shared by the NVMe controller and the engines; every access ends.
//
// Writes leave in the order in which the port accepts their addresses. An access that the host does
// not answer ends as an error after a timeout (ns_axi_timeout). An engine's interrupt request waits
// until the earlier writes of its master have passed the port (msix_order): the message follows its
// data. The clock runs while the port or a master is active.
`include "ns_assert.svh"

module nearside_host
  import ns_axi_pkg::*;
  import nearside_pkg::*;
#(
  /// Bits of the controller's IDs.
  parameter int unsigned NvmeIdBits = 6,
  /// Cycles without progress after which an access is abandoned; it may take up to twice that
  /// number.
  parameter int unsigned Timeout = 6_250_000,
  /// Number of engines, 0 to MaxEngines.
  parameter int unsigned NumEngines = 0,
  localparam int unsigned Slots = (NumEngines == 0) ? 1 : NumEngines,
  /// The engines.
  parameter engine_t [Slots-1:0] Engines = '0,
  // Extended to the largest number, for the functions of the package.
  localparam engine_t [MaxEngines-1:0] All = (MaxEngines * $bits(engine_t))'(Engines),
  localparam int unsigned NumRaised = vectors_before(All, NumEngines),
  localparam int unsigned RaiseBits = (NumRaised == 0) ? 1 : NumRaised
) (
  input  logic clk_i,
  /// Reset of the function.
  input  logic rst_ni,
  /// The device is stopped: it requests nothing, and accepts whatever arrives.
  input  logic stop_i,
  /// From registers: the NVMe controller is active.
  input  logic nvme_busy_i,
  /// From registers: the engine is active.
  input  logic [Slots-1:0] engine_busy_i,
  /// A further clock edge could change something without new input.
  output logic busy_o,
  /// NVMe controller.
  ns_axi_if.slave s_nvme,
  /// Engines. Bursts of whole beats within 4 KiB.
  ns_axi_if.slave s_engine[Slots],
  /// PCIe bridge.
  ns_axi_if.master m_host,
  /// Interrupt requests of the engines: a rising edge is one. From registers.
  input  logic [Slots-1:0][MaxEngineVectors-1:0] irq_i,
  /// Requests to send messages, for one cycle: the vectors of engine 0 first. From registers.
  output logic [RaiseBits-1:0] raise_o
);

  localparam bit Shared = has_host(All, NumEngines);
  localparam int unsigned Masters = Shared ? 1 + NumEngines : 1;
  localparam int unsigned IdBits = (Shared && EngineHostIdBits > NvmeIdBits) ? EngineHostIdBits : NvmeIdBits;
  localparam int unsigned MuxIdBits = IdBits + unsigned'($clog2(Masters));

  ns_axi_if master[Masters] ();
  ns_axi_if mux ();
  ns_axi_if host ();
  logic clk, timeout_busy;
  logic [Slots-1:0] engine_valid, order_busy;

  assign busy_o = timeout_busy || engine_valid != '0 || order_busy != '0;

  ns_clock_gate u_gate (
    .clk_i,
    .en_i (nvme_busy_i || engine_busy_i != '0 || busy_o),
    .clk_o(clk)
  );

  ns_axi_connect u_nvme (
    .s_axi(s_nvme),
    .m_axi(master[0])
  );

  if (!Shared) begin : gen_exclusive
    ns_axi_connect u_connect (
      .s_axi(master[0]),
      .m_axi(mux)
    );
  end else begin : gen_shared
    ns_axi_mux #(
      .N     (Masters),
      .IdBits(IdBits)
    ) u_mux (
      .clk_i (clk),
      .rst_ni,
      .s_axi (master),
      .m_axi (mux)
    );
  end

  ns_axi_timeout #(
    .IdBits(MuxIdBits),
    .Cycles(Timeout)
  ) u_timeout (
    .clk_i (clk),
    .rst_ni,
    .busy_o(timeout_busy),
    .s_axi (mux),
    .m_axi (host)
  );

  assign m_host.aw = host.aw;
  assign m_host.aw_valid = host.aw_valid && !stop_i;
  assign host.aw_ready = m_host.aw_ready;
  assign m_host.w = host.w;
  assign m_host.w_valid = host.w_valid && !stop_i;
  assign host.w_ready = m_host.w_ready;
  assign host.b = m_host.b;
  assign host.b_valid = m_host.b_valid && !stop_i;
  assign m_host.b_ready = host.b_ready || stop_i;
  assign m_host.ar = host.ar;
  assign m_host.ar_valid = host.ar_valid && !stop_i;
  assign host.ar_ready = m_host.ar_ready;
  assign host.r = m_host.r;
  assign host.r_valid = m_host.r_valid && !stop_i;
  assign m_host.r_ready = host.r_ready || stop_i;

  for (genvar e = 0; e < NumEngines; e++) begin : gen_engine
    logic aw_enters, aw_leaves;  // a write address: accepted on the bus, passed through the port

    if (Engines[e].host) begin : gen_master
      localparam int unsigned Number = 1 + e;
      assign engine_valid[e] = s_engine[e].aw_valid || s_engine[e].w_valid || s_engine[e].ar_valid;
      assign aw_enters = s_engine[e].aw_valid && s_engine[e].aw_ready;
      assign aw_leaves = host.aw_valid && host.aw_ready && (host.aw.id >> IdBits) == IdWidth'(Number);

      ns_axi_connect u_engine (
        .s_axi(s_engine[e]),
        .m_axi(master[Number])
      );
    end else begin : gen_none
      assign engine_valid[e] = 1'b0;
      assign {aw_enters, aw_leaves} = '0;
      if (Shared) begin : gen_idle
        assign master[1+e].aw_valid = 1'b0;
        assign master[1+e].aw = '0;
        assign master[1+e].w_valid = 1'b0;
        assign master[1+e].w = '0;
        assign master[1+e].b_ready = 1'b1;
        assign master[1+e].ar_valid = 1'b0;
        assign master[1+e].ar = '0;
        assign master[1+e].r_ready = 1'b1;
      end
    end

    if (Engines[e].vectors != '0) begin : gen_vectors
      localparam int unsigned Vectors = 32'(Engines[e].vectors);
      logic clk_order;

      ns_clock_gate u_gate_order (
        .clk_i,
        .en_i (engine_busy_i[e] || order_busy[e] || aw_leaves),
        .clk_o(clk_order)
      );

      msix_order #(
        .NumVectors(Vectors)
      ) u_order (
        .clk_i  (clk_order),
        .rst_ni,
        .busy_o (order_busy[e]),
        .irq_i  (irq_i[e][Vectors-1:0]),
        .enter_i(aw_enters),
        .leave_i(aw_leaves),
        .raise_o(raise_o[vectors_before(All, e)+:Vectors])
      );
    end else begin : gen_no_vectors
      assign order_busy[e] = 1'b0;
      logic unused;
      assign unused = aw_enters ^ aw_leaves;
    end
  end

  if (NumEngines == 0) begin : gen_no_engine
    assign engine_valid = '0;
    assign order_busy = '0;
  end
  if (NumRaised == 0) begin : gen_no_raise
    assign raise_o = '0;
  end
  logic unused_irq;
  assign unused_irq = ^irq_i;

  `NS_ASSERT(
      awake_for_responses,
      !(m_host.b_valid || m_host.r_valid) || nvme_busy_i || engine_busy_i != '0 || busy_o || stop_i)

endmodule
