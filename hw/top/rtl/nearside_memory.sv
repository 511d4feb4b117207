// SPDX-License-Identifier: Apache-2.0

// One memory of the device, storage or local: its channels, and the connections of PM window, NVMe
// controller and engines to each.
//
// All addresses are local to the channel. An engine reaches only what the design allows; in one
// channel that is a range of addresses, too. Other addresses are answered DECERR.
`include "ns_assert.svh"

module nearside_memory
  import ns_axi_pkg::*;
  import nearside_pkg::*;
  import qos_pkg::*;
#(
  /// Channels, a power of two up to 16.
  parameter int unsigned NumChannels = 2,
  /// Bytes of a granule, a power of two, at least 4096.
  parameter int unsigned Granule     = 4096,
  /// Bits of the masters' IDs; those above are 0.
  parameter int unsigned IdBits      = 6,
  /// Sizes of each channel's nvm_delay, see nearside_channel.
  parameter int unsigned ReadSlots   = 64,
  parameter int unsigned WriteSlots  = 64,
  parameter int unsigned BufferBeats = 512,
  /// 1: an ns_axi_fill precedes each channel's memory controller.
  parameter bit          FillInside  = 1'b0,
  /// See ns_axi_read_interleaver.
  parameter int unsigned PieceBeats  = 8,
  parameter int unsigned MaxBeats    = 32,
  /// Number of engines.
  parameter int unsigned NumEngines  = 0,
  localparam int unsigned Slots      = (NumEngines == 0) ? 1 : NumEngines,
  /// Engines with masters here.
  parameter logic [Slots-1:0] Present  = '0,
  /// Addresses of this memory, before interleaving, that each engine may access: from this one on,
  parameter logic [Slots-1:0][63:0] First = '0,
  /// below this one. Equal bounds: none.
  parameter logic [Slots-1:0][63:0] Limit = '0
) (
  input  logic                   clk_i,
  /// Clock that runs while an engine is awake.
  input  logic                   engine_clk_i,
  /// Reset of the function.
  input  logic                   rst_ni,
  /// Power-on reset.
  input  logic                   por_ni,
  /// See nearside_channel, from here on.
  input  logic                   stop_i,
  /// No transaction of an engine starts any more. From registers.
  input  logic [Slots-1:0]       engine_stop_i,
  input  logic                   cut_i,
  output logic [NumChannels-1:0] started_o,
  output logic [NumChannels-1:0] open_o,
  input  logic [NumChannels-1:0] owed_i,
  output logic [NumChannels-1:0] lost_o,
  output logic [NumChannels-1:0] busy_o,
  /// A memory responds.
  output logic                   response_valid_o,
  input  qos_t [1+NumEngines:0]  qos_i,
  input  logic [NumChannels-1:0][AddrWidth-1:0] fill_addr_i,
  input  logic [NumChannels-1:0][15:0] fill_blocks_i,
  input  logic [NumChannels-1:0] fill_valid_i,
  output logic [NumChannels-1:0] fill_ready_o,
  input  logic [NumChannels-1:0] fill_stop_i,
  output logic [NumChannels-1:0] fill_done_o,
  output logic [NumChannels-1:0] fill_error_o,

  /// PM window.
  ns_axi_if.slave s_pm[NumChannels],
  /// NVMe controller.
  ns_axi_if.slave s_nvme[NumChannels],
  /// Engines: engine e's master of channel c is number e * NumChannels + c.
  ns_axi_if.slave s_engine[Slots*NumChannels],
  /// Control slaves of the nvm_delay.
  ns_axil_if.slave s_axil[NumChannels],
  /// Memory controllers.
  ns_axi_if.master m_axi[NumChannels]
);

  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  // Transactions in flight of an engine in a channel, with IDs that agree in their lowest bit.
  localparam int unsigned EngineOutstanding = 64;

  // Bytes of channel `c` below an address.
  function automatic logic [63:0] below(logic [63:0] addr, int unsigned c);
    logic [63:0] whole, remainder, start;
    whole = (addr >> (GranuleBits + ChannelBits)) << GranuleBits;
    remainder  = addr & 64'(Granule * NumChannels - 1);
    start = 64'(c) << GranuleBits;
    below = whole + ((remainder <= start) ? '0 : (remainder - start > 64'(Granule)) ? 64'(Granule) : remainder - start);
  endfunction

  logic [NumChannels-1:0] response_valid;
  assign response_valid_o = response_valid != '0;

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    ns_axi_if bus[2+NumEngines] ();

    assign response_valid[c] = m_axi[c].b_valid || m_axi[c].r_valid;

    ns_axi_connect u_pm (
      .s_axi(s_pm[c]),
      .m_axi(bus[0])
    );

    ns_axi_connect u_nvme (
      .s_axi(s_nvme[c]),
      .m_axi(bus[1])
    );

    for (genvar e = 0; e < NumEngines; e++) begin : gen_engine
      // The bounds may exclude this channel.
      if (Present[e] && below(First[e], c) != below(Limit[e], c)) begin : gen_bounds
        ns_axi_demux #(
          .M             (1),
          .First         (below(First[e], c)),
          .Bytes         (below(Limit[e], c)),
          .MaxOutstanding(EngineOutstanding),
          .OrderBits     (1)
        ) u_bounds (
          .clk_i (engine_clk_i),
          .rst_ni,
          .s_axi (s_engine[e*NumChannels+c]),
          .m_axi (bus[2+e+:1])
        );
      end else begin : gen_none
        ns_axi_tie_off u_tie_off (.m_axi(bus[2+e]));
        if (Present[e]) begin : gen_no_access
          ns_axi_error_slave u_error (
            .clk_i (engine_clk_i),
            .rst_ni,
            .busy_o(),
            .s_axi (s_engine[e*NumChannels+c])
          );
        end
      end
    end

    nearside_channel #(
      .NumMasters (2 + NumEngines),
      .IdBits     (IdBits),
      .ReadSlots  (ReadSlots),
      .WriteSlots (WriteSlots),
      .BufferBeats(BufferBeats),
      .FillInside (FillInside),
      .PieceBeats (PieceBeats),
      .MaxBeats   (MaxBeats)
    ) u_channel (
      .clk_i,
      .rst_ni,
      .por_ni,
      .stop_i,
      .master_stop_i((2 + NumEngines)'({engine_stop_i, stop_i, stop_i})),
      .cut_i,
      .started_o    (started_o[c]),
      .open_o       (open_o[c]),
      .owed_i       (owed_i[c]),
      .lost_o       (lost_o[c]),
      .busy_o       (busy_o[c]),
      .fill_addr_i  (fill_addr_i[c]),
      .fill_blocks_i(fill_blocks_i[c]),
      .fill_valid_i (fill_valid_i[c]),
      .fill_ready_o (fill_ready_o[c]),
      .fill_stop_i  (fill_stop_i[c]),
      .fill_done_o  (fill_done_o[c]),
      .fill_error_o (fill_error_o[c]),
      .qos_i,
      .s_axi        (bus),
      .s_axil       (s_axil[c]),
      .m_axi        (m_axi[c])
    );

    `NS_ASSERT(delay_awake_for_responses, !response_valid[c] || busy_o[c] || open_o[c])
  end

  if (NumEngines == 0) begin : gen_no_engine
    logic unused;
    assign unused = engine_clk_i;
  end

  if (NumChannels < 1 || NumChannels > 16 || (NumChannels & (NumChannels - 1)) != 0) begin : gen_bad_channels
    $error("nearside_memory: NumChannels must be 1, 2, 4, 8 or 16");
  end

endmodule
