// NVMe 1.4 controller without firmware: registers, doorbells, MSI-X, command fetch, decode, admin commands, data path
// and completions, all in hardware.
//
// It assumes that the host port keeps posted writes in order and answers reads with one ID in order, that `m_mem_*`
// serve addresses from 0 to MediaBytes-1, and that its clock runs while `busy_o` is 1 or an AXI4-Lite channel has
// something for it (see `busy_o`). It has no PCI configuration space: MSI-X enable and mask come from outside.
module nvme_ctrl
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
    /// I/O queue pairs, 1 to 63. There are as many MSI-X vectors, plus one.
    parameter int unsigned NumIoQueues = 16,
    /// Largest I/O queue in entries (CAP.MQES + 1), a power of two, 16 to 65536.
    parameter int unsigned QueueEntries = 1024,
    /// Commands in flight, 8 to 128.
    parameter int unsigned NumSlots = 128,
    /// Submission queue entries being read from the host at a time, 1 to 64.
    parameter int unsigned FetchDepth = 16,
    /// Memory channels, a power of two.
    parameter int unsigned NumChannels = 2,
    /// Bytes of consecutive media addresses in one channel, a power of two, at least 4096.
    parameter int unsigned Granule = 4096,
    /// PRP walkers per direction.
    parameter int unsigned NumWalkers = 4,
    /// Size of namespace 1 in bytes, a multiple of 512.
    parameter longint unsigned MediaBytes = 64'h1_0000_0000,
    /// Serial number: 20 ASCII characters, filled with spaces on the right.
    parameter logic [159:0] SerialNumber = "NS000000000000000001",
    /// EUI-64 of namespace 1; its NGUID is this with eight bytes in front.
    parameter logic [63:0] Eui64 = 64'h0200_4E53_0000_0001,
    /// PCI vendor and subsystem vendor ID as in the function's configuration space.
    parameter logic [15:0] VendorId = 16'h4E53
) (
    /// Clock.
    input logic clk_i,
    /// Reset, active low.
    input logic rst_ni,
    /// 1 while a further clock edge could change the state without new input. From registers only. The clock may be
    /// gated with `busy_o || s_axil_awvalid || s_axil_wvalid || s_axil_arvalid`; responses keep `busy_o` at 1.
    output logic busy_o,

    /// Function-level MSI-X enable and mask. From registers on the ungated clock.
    input logic msix_enable_i,
    /// See above.
    input logic msix_mask_i,

    /// AXI4-Lite slave: BAR0.
    input  logic [15:0] s_axil_awaddr,
    /// Protection type, ignored.
    input  logic [ 2:0] s_axil_awprot,
    /// Write address valid.
    input  logic        s_axil_awvalid,
    /// Write address ready.
    output logic        s_axil_awready,
    /// Write data.
    input  logic [31:0] s_axil_wdata,
    /// Write strobes. Doorbells and MSI-X entries take whole words only.
    input  logic [ 3:0] s_axil_wstrb,
    /// Write data valid.
    input  logic        s_axil_wvalid,
    /// Write data ready.
    output logic        s_axil_wready,
    /// Write response, always OKAY.
    output logic [ 1:0] s_axil_bresp,
    /// Write response valid.
    output logic        s_axil_bvalid,
    /// Write response ready.
    input  logic        s_axil_bready,
    /// Read address.
    input  logic [15:0] s_axil_araddr,
    /// Protection type, ignored.
    input  logic [ 2:0] s_axil_arprot,
    /// Read address valid.
    input  logic        s_axil_arvalid,
    /// Read address ready.
    output logic        s_axil_arready,
    /// Read data; 0 where there is no register.
    output logic [31:0] s_axil_rdata,
    /// Read response, always OKAY.
    output logic [ 1:0] s_axil_rresp,
    /// Read data valid.
    output logic        s_axil_rvalid,
    /// Read data ready.
    input  logic        s_axil_rready,

    /// Host master: write address.
    output ax_t  m_host_aw_o,
    /// Valid.
    output logic m_host_aw_valid_o,
    /// Ready.
    input  logic m_host_aw_ready_i,
    /// Write data.
    output w_t   m_host_w_o,
    /// Valid.
    output logic m_host_w_valid_o,
    /// Ready.
    input  logic m_host_w_ready_i,
    /// Write response: the link has accepted the write.
    input  b_t   m_host_b_i,
    /// Valid.
    input  logic m_host_b_valid_i,
    /// Ready.
    output logic m_host_b_ready_o,
    /// Read address.
    output ax_t  m_host_ar_o,
    /// Valid.
    output logic m_host_ar_valid_o,
    /// Ready.
    input  logic m_host_ar_ready_i,
    /// Read data.
    input  r_t   m_host_r_i,
    /// Valid.
    input  logic m_host_r_valid_i,
    /// Ready.
    output logic m_host_r_ready_o,

    /// Memory masters, one a channel, ID 0, media addresses (not local to the channel): write address.
    output ax_t [NumChannels-1:0] m_mem_aw_o,
    /// Valid.
    output logic [NumChannels-1:0] m_mem_aw_valid_o,
    /// Ready.
    input logic [NumChannels-1:0] m_mem_aw_ready_i,
    /// Write data.
    output w_t [NumChannels-1:0] m_mem_w_o,
    /// Valid.
    output logic [NumChannels-1:0] m_mem_w_valid_o,
    /// Ready.
    input logic [NumChannels-1:0] m_mem_w_ready_i,
    /// Write response.
    input b_t [NumChannels-1:0] m_mem_b_i,
    /// Valid.
    input logic [NumChannels-1:0] m_mem_b_valid_i,
    /// Ready.
    output logic [NumChannels-1:0] m_mem_b_ready_o,
    /// Read address.
    output ax_t [NumChannels-1:0] m_mem_ar_o,
    /// Valid.
    output logic [NumChannels-1:0] m_mem_ar_valid_o,
    /// Ready.
    input logic [NumChannels-1:0] m_mem_ar_ready_i,
    /// Read data.
    input r_t [NumChannels-1:0] m_mem_r_i,
    /// Valid.
    input logic [NumChannels-1:0] m_mem_r_valid_i,
    /// Ready.
    output logic [NumChannels-1:0] m_mem_r_ready_o
);

endmodule
