// NVM timing emulator between an AXI4 master and a memory channel (see README.md).
//
// Reads go to memory with their slot number as the ID, and so may come back in any order and interleaved; writes keep
// their ID. R and B leave at their deadlines, those of one ID in order; beats of different IDs may interleave.
// Assumes that the memory answers every transaction and keeps AXI4's rules; `m_axi_rready` and `m_axi_bready` are always 1.
// `clk_i` may be stopped while `busy_o` is 0 and no `valid` of s_axi_aw, s_axi_w, s_axi_ar, s_axil_aw, s_axil_w and
// s_axil_ar is 1; it must run in each cycle in which one of those is.
// Does not know exclusive accesses: LOCK goes to memory as it came, but reads lose their ID on the way.
`include "ns_assert.svh"

module nvm_delay
  import nvm_delay_pkg::*;
#(
  /// Bits of an ID on both sides: at least $clog2(Slots).
  parameter int unsigned IdWidth = 8,
  /// Bits of an address.
  parameter int unsigned AddrWidth = 64,
  /// Bits of a beat.
  parameter int unsigned DataWidth = 512,
  /// Beats that the read buffer holds: at least Slots + 255, a power of two.
  parameter int unsigned BufferBeats = 512
) (
  /// Clock.
  input  logic                   clk_i,
  /// Reset.
  input  logic                   rst_ni,
  /// A further clock edge could change the state without new input.
  output logic                   busy_o,

  /// Slave port, from the master. Its signals are those of AXI4.
  input  logic                   s_axi_awvalid,
  output logic                   s_axi_awready,
  input  logic [IdWidth-1:0]     s_axi_awid,
  input  logic [AddrWidth-1:0]   s_axi_awaddr,
  input  logic [7:0]             s_axi_awlen,
  input  logic [2:0]             s_axi_awsize,
  input  logic [1:0]             s_axi_awburst,
  input  logic                   s_axi_awlock,
  input  logic [3:0]             s_axi_awcache,
  input  logic [2:0]             s_axi_awprot,
  input  logic [3:0]             s_axi_awqos,
  input  logic [3:0]             s_axi_awregion,
  input  logic                   s_axi_wvalid,
  output logic                   s_axi_wready,
  input  logic [DataWidth-1:0]   s_axi_wdata,
  input  logic [DataWidth/8-1:0] s_axi_wstrb,
  input  logic                   s_axi_wlast,
  output logic                   s_axi_bvalid,
  input  logic                   s_axi_bready,
  output logic [IdWidth-1:0]     s_axi_bid,
  output logic [1:0]             s_axi_bresp,
  input  logic                   s_axi_arvalid,
  output logic                   s_axi_arready,
  input  logic [IdWidth-1:0]     s_axi_arid,
  input  logic [AddrWidth-1:0]   s_axi_araddr,
  input  logic [7:0]             s_axi_arlen,
  input  logic [2:0]             s_axi_arsize,
  input  logic [1:0]             s_axi_arburst,
  input  logic                   s_axi_arlock,
  input  logic [3:0]             s_axi_arcache,
  input  logic [2:0]             s_axi_arprot,
  input  logic [3:0]             s_axi_arqos,
  input  logic [3:0]             s_axi_arregion,
  output logic                   s_axi_rvalid,
  input  logic                   s_axi_rready,
  output logic [IdWidth-1:0]     s_axi_rid,
  output logic [DataWidth-1:0]   s_axi_rdata,
  output logic [1:0]             s_axi_rresp,
  output logic                   s_axi_rlast,

  /// Master port, to the memory. Its signals are those of AXI4.
  output logic                   m_axi_awvalid,
  input  logic                   m_axi_awready,
  output logic [IdWidth-1:0]     m_axi_awid,
  output logic [AddrWidth-1:0]   m_axi_awaddr,
  output logic [7:0]             m_axi_awlen,
  output logic [2:0]             m_axi_awsize,
  output logic [1:0]             m_axi_awburst,
  output logic                   m_axi_awlock,
  output logic [3:0]             m_axi_awcache,
  output logic [2:0]             m_axi_awprot,
  output logic [3:0]             m_axi_awqos,
  output logic [3:0]             m_axi_awregion,
  output logic                   m_axi_wvalid,
  input  logic                   m_axi_wready,
  output logic [DataWidth-1:0]   m_axi_wdata,
  output logic [DataWidth/8-1:0] m_axi_wstrb,
  output logic                   m_axi_wlast,
  input  logic                   m_axi_bvalid,
  output logic                   m_axi_bready,
  input  logic [IdWidth-1:0]     m_axi_bid,
  input  logic [1:0]             m_axi_bresp,
  output logic                   m_axi_arvalid,
  input  logic                   m_axi_arready,
  output logic [IdWidth-1:0]     m_axi_arid,
  output logic [AddrWidth-1:0]   m_axi_araddr,
  output logic [7:0]             m_axi_arlen,
  output logic [2:0]             m_axi_arsize,
  output logic [1:0]             m_axi_arburst,
  output logic                   m_axi_arlock,
  output logic [3:0]             m_axi_arcache,
  output logic [2:0]             m_axi_arprot,
  output logic [3:0]             m_axi_arqos,
  output logic [3:0]             m_axi_arregion,
  input  logic                   m_axi_rvalid,
  output logic                   m_axi_rready,
  input  logic [IdWidth-1:0]     m_axi_rid,
  input  logic [DataWidth-1:0]   m_axi_rdata,
  input  logic [1:0]             m_axi_rresp,
  input  logic                   m_axi_rlast,

  /// Control slave port. Its signals are those of AXI4-Lite; registers in regs/nvm_delay_regs.rdl.
  input  logic                   s_axil_awvalid,
  output logic                   s_axil_awready,
  input  logic [11:0]            s_axil_awaddr,
  input  logic [2:0]             s_axil_awprot,
  input  logic                   s_axil_wvalid,
  output logic                   s_axil_wready,
  input  logic [31:0]            s_axil_wdata,
  input  logic [3:0]             s_axil_wstrb,
  output logic                   s_axil_bvalid,
  input  logic                   s_axil_bready,
  output logic [1:0]             s_axil_bresp,
  input  logic                   s_axil_arvalid,
  output logic                   s_axil_arready,
  input  logic [11:0]            s_axil_araddr,
  input  logic [2:0]             s_axil_arprot,
  output logic                   s_axil_rvalid,
  input  logic                   s_axil_rready,
  output logic [31:0]            s_axil_rdata,
  output logic [1:0]             s_axil_rresp
);

endmodule
