// Data path of the NVMe controller: moves the data of commands between host memory and the media.
//
// Every command is walked page by page along its PRPs (nvme_prp), cut where it crosses a device granule
// (nvme_split) and copied by the mover of its memory channel and direction (nvme_mover). Commands of the two
// directions have their own queues, walkers and movers, so that neither can hold up the other.
//
// It assumes that slots in flight are distinct and below NumSlots, and that the sizes and media addresses it is
// given lie within the namespace: the front end checks those. It neither reorders nor merges commands: two that
// overlap on the media are not ordered with respect to each other.
module nvme_data
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
    /// Memory channels, a power of two.
    parameter int unsigned NumChannels = 4,
    /// Bytes of consecutive media addresses in one channel, a power of two, at least 4096.
    parameter int unsigned Granule     = 4096,
    /// Commands in flight: slots 0 to NumSlots-1.
    parameter int unsigned NumSlots    = 64,
    /// PRP walkers per direction.
    parameter int unsigned NumWalkers  = 4,
    /// Host-side AXI masters, see host_*.
    localparam int unsigned NumHost    = NumChannels + 1
) (
    /// Clock.
    input logic clk_i,
    /// Reset, active low.
    input logic rst_ni,
    /// From registers: a further clock edge could change the state without new input.
    output logic busy_o,

    /// Command; accepted at once, as there is room for all slots.
    input  data_cmd_t  cmd_i,
    /// Command valid.
    input  logic       cmd_valid_i,
    /// Command ready.
    output logic       cmd_ready_o,
    /// End of a command, exactly one for each; all its bus transactions have ended.
    output data_done_t done_o,
    /// Done valid.
    output logic       done_valid_o,
    /// Done ready.
    input  logic       done_ready_i,

    /// Host masters. Ports 0 to NumChannels-1: the movers of that channel (AR/R host to device, AW/W/B device to
    /// host), all with ID 0. Port NumChannels: AR/R the PRP lists (ID = walker, below 2*NumWalkers), AW/W/B the
    /// admin buffer to host (ID 0). Write data follows its address without a gap; R and B are always accepted soon.
    output ax_t [NumHost-1:0] host_aw_o,
    output logic [NumHost-1:0] host_aw_valid_o,
    input  logic [NumHost-1:0] host_aw_ready_i,
    output w_t [NumHost-1:0] host_w_o,
    output logic [NumHost-1:0] host_w_valid_o,
    input  logic [NumHost-1:0] host_w_ready_i,
    input  b_t [NumHost-1:0] host_b_i,
    input  logic [NumHost-1:0] host_b_valid_i,
    output logic [NumHost-1:0] host_b_ready_o,
    output ax_t [NumHost-1:0] host_ar_o,
    output logic [NumHost-1:0] host_ar_valid_o,
    input  logic [NumHost-1:0] host_ar_ready_i,
    input  r_t [NumHost-1:0] host_r_i,
    input  logic [NumHost-1:0] host_r_valid_i,
    output logic [NumHost-1:0] host_r_ready_o,

    /// Memory masters, one a channel, ID 0, media addresses (not local to the channel).
    output ax_t [NumChannels-1:0] mem_aw_o,
    output logic [NumChannels-1:0] mem_aw_valid_o,
    input  logic [NumChannels-1:0] mem_aw_ready_i,
    output w_t [NumChannels-1:0] mem_w_o,
    output logic [NumChannels-1:0] mem_w_valid_o,
    input  logic [NumChannels-1:0] mem_w_ready_i,
    input  b_t [NumChannels-1:0] mem_b_i,
    input  logic [NumChannels-1:0] mem_b_valid_i,
    output logic [NumChannels-1:0] mem_b_ready_o,
    output ax_t [NumChannels-1:0] mem_ar_o,
    output logic [NumChannels-1:0] mem_ar_valid_o,
    input  logic [NumChannels-1:0] mem_ar_ready_i,
    input  r_t [NumChannels-1:0] mem_r_i,
    input  logic [NumChannels-1:0] mem_r_valid_i,
    output logic [NumChannels-1:0] mem_r_ready_o,

    /// Admin buffer, read only: addresses with bit 63 of mem_addr cleared, ID 0.
    output ax_t  adm_ar_o,
    output logic adm_ar_valid_o,
    input  logic adm_ar_ready_i,
    input  r_t   adm_r_i,
    input  logic adm_r_valid_i,
    output logic adm_r_ready_o
);

endmodule
