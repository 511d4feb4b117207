// SPDX-License-Identifier: Apache-2.0

// Test top of the data path. Buses are plain vectors, port 0 in the low bits, with the fields of
// ns_axi_pkg and nvme_pkg. Fills that it requests are executed by an ns_axi_fill in each channel.
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
  /// See nvme_data. Small, so that a test reaches the limit soon.
  parameter int unsigned MaxEmpty    = 300,
  /// See nvme_data.
  parameter int unsigned MediaReadBeats = 512,
  /// See nvme_data.
  parameter int unsigned MediaReads  = 32,
  /// See nvme_data.
  parameter int unsigned MediaWriteBytes = 1024,
  /// See nvme_data.
  parameter int unsigned MediaWrites = 32,
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
  output logic                          waiting_o,
  input  logic                          stop_i,
  input  logic                          abort_valid_i,
  input  logic [SlotWidth-1:0]          abort_slot_i,
  input  logic                          abort_current_i,
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

  localparam logic [IdWidth-1:0] FillId = 12'h3F;
  ns_axi_if host[NumHost] ();
  ns_axi_if data[NumChannels] ();
  ns_axi_if adm ();
  logic [NumChannels-1:0][63:0] fill_addr;
  logic [NumChannels-1:0][15:0] fill_blocks;
  logic [NumChannels-1:0] fill_valid, fill_ready, fill_done, fill_error;
  logic fill_stop;

  for (genvar h = 0; h < NumHost; h++) begin : gen_host
    assign host_aw_o[h*AxBits+:AxBits] = host[h].aw;
    assign host_aw_valid_o[h] = host[h].aw_valid;
    assign host[h].aw_ready = host_aw_ready_i[h];
    assign host_w_o[h*WBits+:WBits] = host[h].w;
    assign host_w_valid_o[h] = host[h].w_valid;
    assign host[h].w_ready = host_w_ready_i[h];
    assign host[h].b = host_b_i[h*BBits+:BBits];
    assign host[h].b_valid = host_b_valid_i[h];
    assign host_b_ready_o[h] = host[h].b_ready;
    assign host_ar_o[h*AxBits+:AxBits] = host[h].ar;
    assign host_ar_valid_o[h] = host[h].ar_valid;
    assign host[h].ar_ready = host_ar_ready_i[h];
    assign host[h].r = host_r_i[h*RBits+:RBits];
    assign host[h].r_valid = host_r_valid_i[h];
    assign host_r_ready_o[h] = host[h].r_ready;
  end

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    ns_axi_if filled ();

    // The memory connected to the ports uses media addresses.
    function automatic ax_t to_media(ax_t ax);
      to_media = ax;
      if (ax.id == FillId) begin
        to_media.addr = ((ax.addr / 64'(Granule)) * 64'(NumChannels) + 64'(c)) * 64'(Granule) + ax.addr % 64'(Granule);
      end
    endfunction

    assign mem_aw_o[c*AxBits+:AxBits] = to_media(filled.aw);
    assign mem_aw_valid_o[c] = filled.aw_valid;
    assign filled.aw_ready = mem_aw_ready_i[c];
    assign mem_w_o[c*WBits+:WBits] = filled.w;
    assign mem_w_valid_o[c] = filled.w_valid;
    assign filled.w_ready = mem_w_ready_i[c];
    assign filled.b = mem_b_i[c*BBits+:BBits];
    assign filled.b_valid = mem_b_valid_i[c];
    assign mem_b_ready_o[c] = filled.b_ready;
    assign mem_ar_o[c*AxBits+:AxBits] = filled.ar;
    assign mem_ar_valid_o[c] = filled.ar_valid;
    assign filled.ar_ready = mem_ar_ready_i[c];
    assign filled.r = mem_r_i[c*RBits+:RBits];
    assign filled.r_valid = mem_r_valid_i[c];
    assign mem_r_ready_o[c] = filled.r_ready;

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
      .s_axi        (data[c]),
      .m_axi        (filled)
    );
  end

  assign adm_ar_o = adm.ar;
  assign adm_ar_valid_o = adm.ar_valid;
  assign adm.ar_ready = adm_ar_ready_i;
  assign adm.r = adm_r_i;
  assign adm.r_valid = adm_r_valid_i;
  assign adm_r_ready_o = adm.r_ready;

  nvme_data #(
    .NumChannels    (NumChannels),
    .Granule        (Granule),
    .NumSlots       (NumSlots),
    .MediaBytes     (MediaBytes),
    .MaxEmpty       (MaxEmpty),
    .MediaReadBeats (MediaReadBeats),
    .MediaReads     (MediaReads),
    .MediaWriteBytes(MediaWriteBytes),
    .MediaWrites    (MediaWrites)
  ) u_data (
    .m_host        (host),
    .m_mem         (data),
    .m_adm         (adm),
    .fill_addr_o   (fill_addr),
    .fill_blocks_o (fill_blocks),
    .fill_valid_o  (fill_valid),
    .fill_ready_i  (fill_ready),
    .fill_stop_o   (fill_stop),
    .fill_done_i   (fill_done),
    .fill_error_i  (fill_error),
    .trace_job_o   (),
    .trace_read_o  (),
    .trace_data_o  (),
    .trace_beat_o  (),
    .*
  );

endmodule
