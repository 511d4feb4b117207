// SPDX-License-Identifier: Apache-2.0

// PM window: connects the PCIe bridge to the channels of the memories and to the command pages, in
// one order.
//
// While it is idle, it accepts nothing: an access waits for one cycle until the clock runs. A host
// that has vanished leaves bursts without data. These are completed with beats without strobes,
// since data of the NVMe controller may wait for them.
`include "ns_assert.svh"

module nearside_window
  import ns_axi_pkg::*;
  import nearside_pkg::*;
#(
  /// See nearside_shell, from here on.
  parameter int unsigned     NumChannels   = 2,
  parameter int unsigned     Granule       = 4096,
  parameter longint unsigned MediaBytes    = 64'h4000_0000,
  parameter int unsigned     LocalChannels = 0,
  parameter int unsigned     LocalGranule  = 4096,
  parameter longint unsigned LocalBytes    = 0,
  parameter int unsigned     IdBits        = 6,
  parameter int unsigned     NumEngines    = 0,
  localparam int unsigned    Slots         = (NumEngines == 0) ? 1 : NumEngines,
  parameter engine_t [Slots-1:0] Engines   = '0,
  localparam int unsigned    Channels      = NumChannels + LocalChannels
) (
  input  logic clk_i,
  /// Reset of the function.
  input  logic rst_ni,
  /// The host has vanished. From a register.
  input  logic stop_i,
  /// An engine still restores its state: nothing passes. From a register.
  input  logic closed_i,
  /// A store waits in front of the engine with the conflict filter.
  input  logic stall_i,
  /// An access arrives.
  output logic input_o,
  /// A transaction is in flight between bridge and channels, or the clock runs for another reason.
  /// From a register.
  output logic awake_o,
  /// A further clock edge could change the state without new input.
  output logic busy_o,
  /// The engine with the conflict filter has yet to accept a command: later stores wait in front of
  /// the filter. From a register.
  output logic hold_o,

  /// BAR2 from 0 on; the command pages of BAR4 from `nearside_pkg::PageBase` on.
  ns_axi_if.slave s_axi,
  /// Channels of the storage, then of the local memory; addresses are local to the channel.
  ns_axi_if.master m_axi[Channels],
  /// Commands written into engines' pages.
  command_page_if.page m_page[Slots]
);

  localparam logic [MaxEngines-1:0] Pages = pages(
      (MaxEngines * $bits(engine_t))'(Engines), NumEngines
  );
  localparam bit HasPages = Pages != '0;
  localparam logic [MaxEngines-1:0] Filters = filters(
      (MaxEngines * $bits(engine_t))'(Engines), NumEngines
  );
  localparam int unsigned Outstanding = 32;  // per ID
  localparam longint unsigned Accessible = MediaBytes - reserved(
      (MaxEngines * $bits(engine_t))'(Engines), NumEngines
  );

  ns_axi_if drained ();
  ns_axi_if awake_bus ();  // while awake
  ns_axi_if target[Channels+32'(HasPages)] ();

  ns_axi_drain #(
    .CountBits(12)
  ) u_drain (
    .clk_i,
    .rst_ni,
    .cut_i (stop_i),
    .cut_o (),
    .open_o(),
    .s_axi,
    .m_axi (drained)
  );

  // Transactions between address and last response.
  logic [15:0] open_q;
  logic [1:0] started, ended;
  logic r_end;
  logic clk, awake_q, pass_allowed, pages_busy;

  assign r_end = drained.r_valid && drained.r_ready && drained.r.last;
  assign started = 2'(drained.aw_valid && drained.aw_ready) + 2'(drained.ar_valid && drained.ar_ready);
  assign ended = 2'(drained.b_valid && drained.b_ready) + 2'(r_end);
  assign input_o = s_axi.aw_valid || s_axi.w_valid || s_axi.ar_valid;
  assign awake_o = awake_q;
  assign busy_o = awake_q || open_q != '0 || pages_busy;
  assign pass_allowed = awake_q && !closed_i;
  assign awake_bus.aw = drained.aw;
  assign awake_bus.aw_valid = drained.aw_valid && pass_allowed;
  assign drained.aw_ready = awake_bus.aw_ready && pass_allowed;
  assign awake_bus.w = drained.w;
  assign awake_bus.w_valid = drained.w_valid && pass_allowed;
  assign drained.w_ready = awake_bus.w_ready && pass_allowed;
  assign drained.b = awake_bus.b;
  assign drained.b_valid = awake_bus.b_valid;
  assign awake_bus.b_ready = drained.b_ready;
  assign awake_bus.ar = drained.ar;
  assign awake_bus.ar_valid = drained.ar_valid && pass_allowed;
  assign drained.ar_ready = awake_bus.ar_ready && pass_allowed;
  assign drained.r = awake_bus.r;
  assign drained.r_valid = awake_bus.r_valid;
  assign awake_bus.r_ready = drained.r_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q  <= '0;
      awake_q <= 1'b0;
    end else begin
      open_q  <= open_q + 16'(started) - 16'(ended);
      awake_q <= input_o || open_q != '0;
    end
  end

  ns_clock_gate u_gate (
    .clk_i,
    .en_i (awake_q),
    .clk_o(clk)
  );

  ns_axi_demux #(
    .M             (NumChannels),
    .Granule       (Granule),
    .Bytes         (Accessible),
    .LocalM        (LocalChannels),
    .LocalGranule  (LocalGranule),
    .LocalBase     (local_base(MediaBytes, LocalBytes)),
    .LocalBytes    (LocalBytes),
    .MaxOutstanding(Outstanding),
    .OrderBits     (IdBits),
    .Outside       (HasPages)
  ) u_demux (
    .clk_i(clk),
    .rst_ni,
    .s_axi(awake_bus),
    .m_axi(target)
  );

  for (genvar c = 0; c < Channels; c++) begin : gen_channel
    ns_axi_connect u_connect (
      .s_axi(target[c]),
      .m_axi(m_axi[c])
    );
    `NS_ASSERT(awake_for_responses, !(m_axi[c].b_valid || m_axi[c].r_valid) || awake_q)
  end

  // ---------------------------------------------------------------- command pages

  // Their commands are in one order with the stores of the PM window, and wait until earlier stores
  // are answered.
  if (HasPages) begin : gen_pages
    logic clk_pages, unsettled, epoch_end;
    logic [Slots-1:0] done;
    for (genvar e = 0; e < NumEngines; e++) begin : gen_done
      assign done[e] = Pages[e] && m_page[e].done_valid;
    end

    ns_clock_gate u_gate (
      .clk_i,
      .en_i (awake_q || pages_busy || done != '0),
      .clk_o(clk_pages)
    );

    ns_axi_write_barrier #(
      .IdBits        (IdBits),
      .MaxOutstanding(2 * Outstanding)  // some wait in the demultiplexer
    ) u_write_barrier (
      .clk_i      (clk_pages),
      .rst_ni,
      .start_i    (awake_bus.aw_valid && awake_bus.aw_ready),
      .start_id_i (awake_bus.aw.id[IdBits-1:0]),
      .end_i      (awake_bus.b_valid && awake_bus.b_ready),
      .end_id_i   (awake_bus.b.id[IdBits-1:0]),
      .wait_i     (unsettled),
      .epoch_end_o(epoch_end)
    );

    command_pages #(
      .N      (Slots),
      .Present(Pages[Slots-1:0]),
      .Ordered(Pages[Slots-1:0] & Filters[Slots-1:0]),
      .Base   (PageBase)
    ) u_pages (
      .clk_i      (clk_pages),
      .rst_ni,
      .busy_o     (pages_busy),
      .s_axi      (target[Channels]),
      .hold_o,
      .stall_i,
      .unsettled_o(unsettled),
      .epoch_end_i(epoch_end),
      .m_page
    );
  end else begin : gen_no_page
    logic unused;
    assign unused = stall_i;
    assign pages_busy = 1'b0;
    assign hold_o = 1'b0;
    for (genvar e = 0; e < Slots; e++) begin : gen_page
      assign m_page[e].cmd = '0;
      assign m_page[e].line = '0;
      assign m_page[e].settled = 1'b0;
      assign m_page[e].cmd_valid = 1'b0;
    end
  end

  if (IdBits < 1 || IdBits > 8) begin : gen_bad_id_bits
    $error("nearside_window: IdBits must be 1 to 8");
  end

  `NS_ASSERT(count_does_not_wrap, open_q < 16'h8000)

endmodule
