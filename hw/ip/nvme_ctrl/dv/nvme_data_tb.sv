// Test top of the data path: its buses as plain vectors, port 0 in the low bits, fields as in ns_axi_pkg and nvme_pkg. What it
// asks the memories to zero is written by an ns_axi_fill in each channel.
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
  input  logic                          quiesce_i,
  output logic                          media_busy_o,
  output logic                          waits_o,
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

  localparam logic [IdWidth-1:0] FillId = 8'h3F;
  ax_t [NumChannels-1:0] data_aw, fill_aw;
  w_t [NumChannels-1:0] data_w, fill_w;
  b_t [NumChannels-1:0] data_b, fill_b;
  logic [NumChannels-1:0]
      data_aw_valid, data_aw_ready, data_w_valid, data_w_ready, data_b_valid, data_b_ready;
  logic [NumChannels-1:0][63:0] fill_addr;
  logic [NumChannels-1:0][15:0] fill_blocks;
  logic [NumChannels-1:0] fill_valid, fill_ready, fill_done, fill_error;
  logic fill_stop;

  assign mem_w_o = fill_w;
  assign fill_b = mem_b_i;

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    // The memory behind the ports has media addresses.
    function automatic ax_t to_media(ax_t ax);
      to_media = ax;
      if (ax.id == FillId) begin
        to_media.addr = ((ax.addr / 64'(Granule)) * 64'(NumChannels) + 64'(c)) * 64'(Granule) + ax.addr % 64'(Granule);
      end
    endfunction
    assign mem_aw_o[c*AxBits+:AxBits] = to_media(fill_aw[c]);

    ns_axi_fill #(
      .Id(FillId)
    ) u_fill (
      .clk_i,
      .rst_ni,
      .busy_o       (),
      .fill_addr_i  (fill_addr[c]),
      .fill_blocks_i(fill_blocks[c]),
      .fill_valid_i (fill_valid[c]),
      .fill_ready_o (fill_ready[c]),
      .fill_stop_i  (fill_stop),
      .fill_done_o  (fill_done[c]),
      .fill_error_o (fill_error[c]),
      .s_aw_i       (data_aw[c]),
      .s_aw_valid_i (data_aw_valid[c]),
      .s_aw_ready_o (data_aw_ready[c]),
      .s_w_i        (data_w[c]),
      .s_w_valid_i  (data_w_valid[c]),
      .s_w_ready_o  (data_w_ready[c]),
      .s_b_o        (data_b[c]),
      .s_b_valid_o  (data_b_valid[c]),
      .s_b_ready_i  (data_b_ready[c]),
      .m_aw_o       (fill_aw[c]),
      .m_aw_valid_o (mem_aw_valid_o[c]),
      .m_aw_ready_i (mem_aw_ready_i[c]),
      .m_w_o        (fill_w[c]),
      .m_w_valid_o  (mem_w_valid_o[c]),
      .m_w_ready_i  (mem_w_ready_i[c]),
      .m_b_i        (fill_b[c]),
      .m_b_valid_i  (mem_b_valid_i[c]),
      .m_b_ready_o  (mem_b_ready_o[c])
    );
  end

  nvme_data #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .NumSlots   (NumSlots),
    .MediaBytes (MediaBytes),
    .MaxEmpty   (MaxEmpty)
  ) u_data (
    .mem_aw_o      (data_aw),
    .mem_aw_valid_o(data_aw_valid),
    .mem_aw_ready_i(data_aw_ready),
    .mem_w_o       (data_w),
    .mem_w_valid_o (data_w_valid),
    .mem_w_ready_i (data_w_ready),
    .mem_b_i       (data_b),
    .mem_b_valid_i (data_b_valid),
    .mem_b_ready_o (data_b_ready),
    .fill_addr_o   (fill_addr),
    .fill_blocks_o (fill_blocks),
    .fill_valid_o  (fill_valid),
    .fill_ready_i  (fill_ready),
    .fill_stop_o   (fill_stop),
    .fill_done_i   (fill_done),
    .fill_error_i  (fill_error),
    .trace_job_o (),
    .trace_read_o(),
    .trace_data_o(),
    .trace_beat_o(),
    .*
  );

endmodule
