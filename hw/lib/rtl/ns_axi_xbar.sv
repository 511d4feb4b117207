// SPDX-License-Identifier: Apache-2.0

// AXI4 crossbar: `NumMasters` masters to the address-interleaved channels of one memory or two,
// fully connected.
//
// One ns_axi_demux per master (addresses, order, DECERR) and one ns_axi_mux per slave (arbitration,
// IDs); their headers describe routing, order and arbitration. A slave sees the master's number
// above the `IdBits` bits of its ID. An address takes three cycles through the crossbar, data and
// responses two. Each port moves one beat a cycle.
//
// Reads and writes are not ordered against each other.
module ns_axi_xbar
  import ns_axi_pkg::*;
#(
  /// Number of masters.
  parameter int unsigned NumMasters = 2,
  /// Number of slaves that are channels of the storage, a power of two.
  parameter int unsigned NumSlaves = 2,
  /// Bytes of a granule, a power of two, at least 4096.
  parameter int unsigned Granule = 4096,
  /// End of the storage's addresses; DECERR from there on.
  parameter logic [AddrWidth-1:0] Bytes = 64'h1_0000_0000,
  /// Number of slaves that are channels of a local memory, and its addresses: see ns_axi_demux.
  parameter int unsigned LocalSlaves = 0,
  parameter int unsigned LocalGranule = 4096,
  parameter logic [AddrWidth-1:0] LocalBase = '0,
  parameter logic [AddrWidth-1:0] LocalBytes = '0,
  /// Bits of the masters' IDs; those above are 0.
  parameter int unsigned IdBits = 4,
  /// Transactions in flight per master, direction and ID.
  parameter int unsigned MaxOutstanding = 32,
  /// Writes per slave whose address has been granted and whose data is incomplete.
  parameter int unsigned MaxWrites = 16,
  /// Low ID bits that distinguish a master's transactions when order is kept.
  parameter int unsigned OrderBits = 4,
  localparam int unsigned Slaves = NumSlaves + LocalSlaves
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  /// Masters.
  ns_axi_if.slave s_axi[NumMasters],

  /// Slaves: the storage's, then the local memory's.
  ns_axi_if.master m_axi[Slaves]
);

  // Bus s * NumMasters + m connects master m and slave s.
  ns_axi_if bus[Slaves*NumMasters] ();

  for (genvar m = 0; m < NumMasters; m++) begin : gen_master
    ns_axi_if to_slave[Slaves] ();

    ns_axi_demux #(
      .M             (NumSlaves),
      .Granule       (Granule),
      .Bytes         (Bytes),
      .LocalM        (LocalSlaves),
      .LocalGranule  (LocalGranule),
      .LocalBase     (LocalBase),
      .LocalBytes    (LocalBytes),
      .MaxOutstanding(MaxOutstanding),
      .OrderBits     (OrderBits)
    ) u_demux (
      .clk_i,
      .rst_ni,
      .s_axi(s_axi[m]),
      .m_axi(to_slave)
    );

    for (genvar s = 0; s < Slaves; s++) begin : gen_pair
      ns_axi_connect u_connect (
        .s_axi(to_slave[s]),
        .m_axi(bus[s*NumMasters+m])
      );
    end
  end

  for (genvar s = 0; s < Slaves; s++) begin : gen_slave
    ns_axi_mux #(
      .N        (NumMasters),
      .IdBits   (IdBits),
      .MaxWrites(MaxWrites)
    ) u_mux (
      .clk_i,
      .rst_ni,
      .s_axi(bus[s*NumMasters+:NumMasters]),
      .m_axi(m_axi[s])
    );
  end

endmodule
