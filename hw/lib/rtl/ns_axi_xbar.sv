// AXI4 crossbar: `NumMasters` masters, the address-interleaved channels of one memory or of two, every pair connected.
//
// One ns_axi_demux a master (addresses, order, DECERR) and one ns_axi_mux a slave (arbitration, IDs); their headers say how
// they route, order and arbitrate. A slave sees the master's number above the `IdBits` bits of its ID. An address takes three cycles through
// the crossbar, data and responses two; each port moves one beat a cycle.
//
// Reads and writes are not ordered against each other.
module ns_axi_xbar
  import ns_axi_pkg::*;
#(
  /// Number of masters.
  parameter int unsigned NumMasters = 2,
  /// Number of slaves that are channels of the storage, a power of two.
  parameter int unsigned NumSlaves = 2,
  /// Bytes that stay together on a slave, a power of two, at least 4096.
  parameter int unsigned Granule = 4096,
  /// Size of the address space; DECERR from there on.
  parameter logic [AddrWidth-1:0] Bytes = 64'h1_0000_0000,
  /// Number of slaves that are channels of a local memory, and its place: see ns_axi_demux.
  parameter int unsigned LocalSlaves = 0,
  parameter int unsigned LocalGranule = 4096,
  parameter logic [AddrWidth-1:0] LocalBase = '0,
  parameter logic [AddrWidth-1:0] LocalBytes = '0,
  /// Bits of the masters' IDs; those above are 0.
  parameter int unsigned IdBits = 4,
  /// Transactions under way per master, direction and ID.
  parameter int unsigned MaxOutstanding = 32,
  /// Writes per slave whose address has been granted and whose data is not complete.
  parameter int unsigned MaxWrites = 16,
  /// Low ID bits that tell a master's transactions apart when order is kept.
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

  // Bus s * NumMasters + m goes from master m to slave s.
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
      ns_axi_connect u_link (
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
