// Test top of the data path: its buses as plain vectors, port 0 in the low bits, fields as in ns_axi_pkg and nvme_pkg.
module nvme_data_tb
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
  /// See nvme_data.
  parameter int unsigned NumChannels = 2,
  /// See nvme_data.
  parameter int unsigned Granule     = 4096,
  /// See nvme_data.
  parameter int unsigned NumSlots    = 64,
  /// See nvme_data.
  parameter longint unsigned MediaBytes = 64'h80_0000,
  /// See nvme_data. Few, so that a test reaches the limit soon.
  parameter int unsigned MaxEmpty    = 300,
  localparam int unsigned NumHost    = NumChannels + 1,
  localparam int unsigned AxBits     = $bits(ax_t),
  localparam int unsigned WBits      = $bits(w_t),
  localparam int unsigned BBits      = $bits(b_t),
  localparam int unsigned RBits      = $bits(r_t)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  output logic                          busy_o,
  input  logic                          stop_i,
  input  logic                          abort_valid_i,
  input  logic [SlotWidth-1:0]          abort_slot_i,
  input  logic                          abort_same_i,
  input  logic                          abort_deleted_i,
  output logic                          abort_ready_o,
  output logic                          abort_found_o,
  input  logic [$bits(data_cmd_t)-1:0]  cmd_i,
  input  logic                          cmd_valid_i,
  output logic                          cmd_ready_o,
  output logic [$bits(data_done_t)-1:0] done_o,
  output logic                          done_valid_o,
  input  logic                          done_ready_i,
  output logic [NumHost*AxBits-1:0]     host_aw_o,
  output logic [NumHost-1:0]            host_aw_valid_o,
  input  logic [NumHost-1:0]            host_aw_ready_i,
  output logic [NumHost*WBits-1:0]      host_w_o,
  output logic [NumHost-1:0]            host_w_valid_o,
  input  logic [NumHost-1:0]            host_w_ready_i,
  input  logic [NumHost*BBits-1:0]      host_b_i,
  input  logic [NumHost-1:0]            host_b_valid_i,
  output logic [NumHost-1:0]            host_b_ready_o,
  output logic [NumHost*AxBits-1:0]     host_ar_o,
  output logic [NumHost-1:0]            host_ar_valid_o,
  input  logic [NumHost-1:0]            host_ar_ready_i,
  input  logic [NumHost*RBits-1:0]      host_r_i,
  input  logic [NumHost-1:0]            host_r_valid_i,
  output logic [NumHost-1:0]            host_r_ready_o,
  output logic [NumChannels*AxBits-1:0] mem_aw_o,
  output logic [NumChannels-1:0]        mem_aw_valid_o,
  input  logic [NumChannels-1:0]        mem_aw_ready_i,
  output logic [NumChannels*WBits-1:0]  mem_w_o,
  output logic [NumChannels-1:0]        mem_w_valid_o,
  input  logic [NumChannels-1:0]        mem_w_ready_i,
  input  logic [NumChannels*BBits-1:0]  mem_b_i,
  input  logic [NumChannels-1:0]        mem_b_valid_i,
  output logic [NumChannels-1:0]        mem_b_ready_o,
  output logic [NumChannels*AxBits-1:0] mem_ar_o,
  output logic [NumChannels-1:0]        mem_ar_valid_o,
  input  logic [NumChannels-1:0]        mem_ar_ready_i,
  input  logic [NumChannels*RBits-1:0]  mem_r_i,
  input  logic [NumChannels-1:0]        mem_r_valid_i,
  output logic [NumChannels-1:0]        mem_r_ready_o,
  output logic [AxBits-1:0]             adm_ar_o,
  output logic                          adm_ar_valid_o,
  input  logic                          adm_ar_ready_i,
  input  logic [RBits-1:0]              adm_r_i,
  input  logic                          adm_r_valid_i,
  output logic                          adm_r_ready_o
);

  nvme_data #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .NumSlots   (NumSlots),
    .MediaBytes (MediaBytes),
    .MaxEmpty   (MaxEmpty)
  ) u_data (
    .trace_job_o (),
    .trace_read_o(),
    .trace_data_o(),
    .trace_beat_o(),
    .*
  );

endmodule
