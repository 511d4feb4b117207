// SPDX-License-Identifier: Apache-2.0

// Connects an engine's masters to the memories: each reaches all channels, with addresses of the PM
// window.
//
// A crossbar (ns_axi_xbar) in front of the engine's memory ports. Assumes that the shell bounds the
// addresses of the engine. Engines whose masters use one channel each (scan) need no crossbar.
module engine_memory #(
  /// Masters.
  parameter int unsigned NumMasters = 1,
  /// Bits of their IDs.
  parameter int unsigned IdBits = 4,
  /// The memories, as in the parameters of the engine.
  parameter int unsigned NumChannels = 2,
  parameter int unsigned Granule = 4096,
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  parameter int unsigned LocalChannels = 0,
  parameter int unsigned LocalGranule = 4096,
  parameter longint unsigned LocalBase = 0,
  parameter longint unsigned LocalBytes = 0,
  localparam int unsigned LocalPorts = (LocalChannels == 0) ? 1 : LocalChannels
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  ns_axi_if.slave  s_axi[NumMasters],
  /// Addresses are local to the channel.
  ns_axi_if.master m_mem[NumChannels],
  /// The same; one unused port if there is no local memory.
  ns_axi_if.master m_local[LocalPorts]
);

  ns_axi_if channel[NumChannels+LocalChannels] ();

  ns_axi_xbar #(
    .NumMasters  (NumMasters),
    .NumSlaves   (NumChannels),
    .Granule     (Granule),
    .Bytes       (MediaBytes),
    .LocalSlaves (LocalChannels),
    .LocalGranule(LocalGranule),
    .LocalBase   (LocalBase),
    .LocalBytes  (LocalBytes),
    .IdBits      (IdBits)
  ) u_xbar (
    .clk_i,
    .rst_ni,
    .s_axi,
    .m_axi(channel)
  );

  for (genvar c = 0; c < NumChannels; c++) begin : gen_storage
    ns_axi_connect u_connect (
      .s_axi(channel[c]),
      .m_axi(m_mem[c])
    );
  end
  for (genvar c = 0; c < LocalPorts; c++) begin : gen_local
    if (LocalChannels == 0) begin : gen_none
      ns_axi_tie_off u_tie_off (.m_axi(m_local[c]));
    end else begin : gen_connect
      ns_axi_connect u_connect (
        .s_axi(channel[NumChannels+c]),
        .m_axi(m_local[c])
      );
    end
  end

endmodule
