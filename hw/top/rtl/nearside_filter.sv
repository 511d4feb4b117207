// SPDX-License-Identifier: Apache-2.0

// Connects PM window and NVMe controller to the channels of the storage, through an engine's
// conflict filter if there is one.
//
// Mover c of the NVMe controller accesses channel c only, so its requests need no crossbar, only
// their local address.
`include "ns_assert.svh"

module nearside_filter
  import ns_axi_pkg::*;
#(
  /// Channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes of a granule, a power of two.
  parameter int unsigned Granule = 4096,
  /// 1: an engine has a conflict filter.
  parameter bit HasFilter = 1'b0
) (
  input logic clk_i,
  input logic rst_ni,
  /// Stores of the PM window wait in front of the engine. From a register.
  input logic hold_i,
  /// A store waits in front of the engine.
  output logic stall_o,

  /// PM window; addresses are local to the channel.
  ns_axi_if.slave  s_pm[NumChannels],
  /// NVMe controller; addresses are those of the whole storage.
  ns_axi_if.slave  s_nvme[NumChannels],
  /// To the engine and back, addresses local to the channel.
  ns_axi_if.master m_filter_pm[NumChannels],
  ns_axi_if.slave  s_filter_pm[NumChannels],
  ns_axi_if.master m_filter_nvme[NumChannels],
  ns_axi_if.slave  s_filter_nvme[NumChannels],
  /// To the channels.
  ns_axi_if.master m_pm[NumChannels],
  ns_axi_if.master m_nvme[NumChannels]
);

  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));

  function automatic ax_t to_local(ax_t ax);
    logic [AddrWidth-1:0] granule;
    granule = ax.addr >> GranuleBits;
    to_local = ax;
    to_local.addr = ((granule >> ChannelBits) << GranuleBits) | (ax.addr & AddrWidth'(Granule - 1));
  endfunction

  logic [NumChannels-1:0] stall;
  assign stall_o = stall != '0;

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    ns_axi_if nvme ();

    assign nvme.aw = to_local(s_nvme[c].aw);
    assign nvme.aw_valid = s_nvme[c].aw_valid;
    assign s_nvme[c].aw_ready = nvme.aw_ready;
    assign nvme.w = s_nvme[c].w;
    assign nvme.w_valid = s_nvme[c].w_valid;
    assign s_nvme[c].w_ready = nvme.w_ready;
    assign s_nvme[c].b = nvme.b;
    assign s_nvme[c].b_valid = nvme.b_valid;
    assign nvme.b_ready = s_nvme[c].b_ready;
    assign nvme.ar = to_local(s_nvme[c].ar);
    assign nvme.ar_valid = s_nvme[c].ar_valid;
    assign s_nvme[c].ar_ready = nvme.ar_ready;
    assign s_nvme[c].r = nvme.r;
    assign s_nvme[c].r_valid = nvme.r_valid;
    assign nvme.r_ready = s_nvme[c].r_ready;

    if (HasFilter) begin : gen_filter
      assign stall[c] = m_filter_pm[c].aw_valid && !m_filter_pm[c].aw_ready;
      ns_axi_gate u_pm_out (
        .aw_open_i(!hold_i),
        .ar_open_i(1'b1),
        .s_axi    (s_pm[c]),
        .m_axi    (m_filter_pm[c])
      );
      ns_axi_connect u_pm_in (
        .s_axi(s_filter_pm[c]),
        .m_axi(m_pm[c])
      );
      ns_axi_connect u_nvme_out (
        .s_axi(nvme),
        .m_axi(m_filter_nvme[c])
      );
      ns_axi_connect u_nvme_in (
        .s_axi(s_filter_nvme[c]),
        .m_axi(m_nvme[c])
      );
    end else begin : gen_no_filter
      assign stall[c] = 1'b0;
      logic unused;
      assign unused = hold_i;
      ns_axi_connect u_pm (
        .s_axi(s_pm[c]),
        .m_axi(m_pm[c])
      );
      ns_axi_connect u_nvme (
        .s_axi(nvme),
        .m_axi(m_nvme[c])
      );
    end

    `NS_ASSERT(mover_keeps_to_its_channel_aw,
               !s_nvme[c].aw_valid || (s_nvme[c].aw.addr >> GranuleBits & AddrWidth'(NumChannels - 1)) == AddrWidth'(c))
    `NS_ASSERT(mover_keeps_to_its_channel_ar,
               !s_nvme[c].ar_valid || (s_nvme[c].ar.addr >> GranuleBits & AddrWidth'(NumChannels - 1)) == AddrWidth'(c))
  end

endmodule
