// SPDX-License-Identifier: Apache-2.0

// Conflict filter of one channel: accesses of the PM window and of the NVMe controller that overlap
// a command wait for it; all others pass.
//
// The rules are in docs/hardware/nearpm.md, "Order". One access per cycle is looked up in the table
// of commands and in the queue. Stores and loads of the PM window, and writes and reads of the
// controller, take turns. A store or load without conflicts reaches the memory 3 cycles after its
// address arrived; an access of the controller takes 2 cycles.
//
// Assumptions:
// - No store arrives while a command of the host is being inserted.
// - Bursts stay within 4 KiB. IDs of the stores are arbitrary.
// - The memory performs writes to one line in the order of their addresses, whatever their IDs.
// - The memory answers the writes of one ID in order.
`include "ns_assert.svh"

module nearpm_filter
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
#(
  /// Channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next channel follows, a power of two, at least 4096.
  parameter int unsigned Granule = 4096,
  /// Index of this channel.
  parameter int unsigned Channel = 0
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  /// No access is forwarded, no line leaves the queue and no response counts. Holds until the next
  /// reset, or after a reset until the restore is done. From a register.
  input  logic             freeze_i,
  /// From registers.
  output logic             busy_o,

  /// Commands that retire: absent from this cycle on.
  input  commands_t        retired_i,
  /// Table of commands.
  nearpm_lookup_if.filter    lookup,
  nearpm_order_if.filter     order,

  /// Save, while frozen: selects one of 96 lines of the reserved range; data follow a cycle later.
  /// Lines of unanswered stores are left out.
  input  logic [6:0]       save_index_i,
  output logic [511:0]     save_data_o,
  /// Restore, while frozen after a reset: lines in order, from 0 on.
  input  logic             restore_i,
  input  logic [6:0]       restore_index_i,
  input  logic [511:0]     restore_data_i,

  /// For registers: a store enters the queue; lines in it; waiting loads; a line could not be
  /// written. From registers, except the last.
  output logic             store_queued_o,
  output logic [6:0]       lines_o,
  output logic [4:0]       loads_o,
  output logic             line_error_o,

  /// PM window. Addresses are local to the channel.
  ns_axi_if.slave          s_pm,
  ns_axi_if.master         m_pm,
  /// NVMe controller.
  ns_axi_if.slave          s_nvme,
  ns_axi_if.master         m_nvme
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule)) - 6;  // lines
  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));

  // ---------------------------------------------------------------- lookup

  typedef enum logic [1:0] {
    PmStore,
    PmLoad,
    NvmeWrite,
    NvmeRead
  } source_e;

  logic [3:0] request, grant, lookup_ready, lookup_valid;
  logic grant_valid;
  logic valid_q;
  logic [3:0] source_q;
  ax_t ax, ax_q;
  burst_t burst_q;
  conflict_set_t conflicts;
  count_t queue_next, free;

  assign request = lookup_ready & {s_nvme.ar_valid, s_nvme.aw_valid, s_pm.ar_valid, s_pm.aw_valid};
  assign s_pm.aw_ready = grant[PmStore];
  assign s_pm.ar_ready = grant[PmLoad];
  assign s_nvme.aw_ready = grant[NvmeWrite];
  assign s_nvme.ar_ready = grant[NvmeRead];

  ns_rr_arbiter #(
    .N(4)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (request),
    .next_i (1'b1),
    .gnt_o  (grant),
    .idx_o  (),
    .valid_o(grant_valid)
  );

  always_comb begin
    ax = s_pm.aw;
    if (grant[PmLoad]) ax = s_pm.ar;
    if (grant[NvmeWrite]) ax = s_nvme.aw;
    if (grant[NvmeRead]) ax = s_nvme.ar;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else valid_q <= grant_valid;
  end

  always_ff @(posedge clk_i) begin
    if (grant_valid) begin
      source_q <= grant;
      ax_q <= ax;
      burst_q <= burst_of(ax.addr[MediaBits-1:0], ax.len, ax.size, ax.burst);
    end
  end

  assign lookup_valid = source_q & {4{valid_q}};
  assign lookup.valid = valid_q;
  assign lookup.write = source_q[PmStore] || source_q[NvmeWrite];
  assign lookup.lines.valid = 1'b1;
  assign lookup.lines.first = to_media({burst_q.page, burst_q.first}, GranuleBits, ChannelBits, Channel);
  assign lookup.lines.last = to_media({burst_q.page, burst_q.last}, GranuleBits, ChannelBits, Channel);
  assign conflicts.commands = lookup.commands;
  assign conflicts.target = queue_next;

  // ---------------------------------------------------------------- queue

  count_t queued, written, settled_add;
  logic
      insert_valid,
      fill_valid,
      line_aw_valid,
      line_aw_ready,
      line_w_valid,
      line_w_ready,
      line_response;
  burst_t insert_burst;
  commands_t insert_commands;
  place_t fill_place;
  line_t fill_line, line_aw_line;
  logic [StrbWidth-1:0] fill_strb;
  logic [DataWidth-1:0] fill_data;
  w_t line_w;

  nearpm_queue #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .Channel    (Channel)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .retired_i,
    .queued_o         (queued),
    .written_o        (written),
    .queued_next_o    (queue_next),
    .lookup_valid_i           (valid_q),
    .lookup_burst_i     (burst_q),
    .lookup_overlap_o  (conflicts.lines),
    .order_lines_i    (order.lines),
    .order_overlap_o (order.overlap),
    .insert_valid_i         (insert_valid),
    .insert_burst_i   (insert_burst),
    .insert_commands_i(insert_commands),
    .free_o           (free),
    .fill_valid_i           (fill_valid),
    .fill_place_i     (fill_place),
    .fill_line_i      (fill_line),
    .fill_strb_i      (fill_strb),
    .fill_data_i      (fill_data),
    .aw_valid_o       (line_aw_valid),
    .aw_line_o        (line_aw_line),
    .aw_ready_i       (line_aw_ready),
    .w_valid_o        (line_w_valid),
    .w_o              (line_w),
    .w_ready_i        (line_w_ready),
    .settled_add_i         (settled_add),
    .response_i         (line_response),
    .save_index_i,
    .save_data_o,
    .restore_i,
    .restore_index_i,
    .restore_data_i
  );

  assign order.queued = queued;
  assign order.written = written;
  assign lines_o = queued - written;
  assign line_error_o = line_response && m_pm.b.resp != RespOkay;

  // ---------------------------------------------------------------- PM window

  ns_axi_if stores ();
  ns_axi_if loads ();
  logic stores_busy, stores_quiet, loads_busy;

  // A store whose address is valid at the port is older than a command that arrives now.
  assign order.quiet = stores_quiet && !s_pm.aw_valid;

  // Data that wait for an engine's burst in this channel do not block stores of other channels.
  w_t data;
  logic data_valid, data_ready;

  ns_fifo #(
    .Width($bits(w_t)),
    .Depth(DataBeats),
    .Style("lutram")
  ) u_data (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_pm.w_valid),
    .in_ready_o (s_pm.w_ready),
    .in_data_i  (s_pm.w),
    .out_valid_o(data_valid),
    .out_ready_i(data_ready),
    .out_data_o (data),
    .count_o    ()
  );

  ns_axi_rw_join u_join (
    .s_read (loads),
    .s_write(stores),
    .m_axi  (m_pm)
  );

  nearpm_store_path u_store_path (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .retired_i,
    .lookup_ready_o           (lookup_ready[PmStore]),
    .accept_i          (grant[PmStore]),
    .lookup_valid_i           (lookup_valid[PmStore]),
    .lookup_ax_i        (ax_q),
    .lookup_burst_i     (burst_q),
    .lookup_conflicts_i     (conflicts),
    .stores_o         (order.stores),
    .answered_o       (order.answered),
    .quiet_o          (stores_quiet),
    .busy_o           (stores_busy),
    .store_queued_o,
    .written_i        (written),
    .queue_tail_i     (queued[QueueBits-1:0]),
    .free_i           (free),
    .insert_valid_o         (insert_valid),
    .insert_burst_o   (insert_burst),
    .insert_commands_o(insert_commands),
    .fill_valid_o           (fill_valid),
    .fill_place_o     (fill_place),
    .fill_line_o      (fill_line),
    .fill_strb_o      (fill_strb),
    .fill_data_o      (fill_data),
    .line_aw_valid_i  (line_aw_valid),
    .line_aw_line_i   (line_aw_line),
    .line_aw_ready_o  (line_aw_ready),
    .line_w_valid_i   (line_w_valid),
    .line_w_i         (line_w),
    .line_w_ready_o   (line_w_ready),
    .line_response_o    (line_response),
    .settled_add_o         (settled_add),
    .s_w_valid_i      (data_valid),
    .s_w_i            (data),
    .s_w_ready_o      (data_ready),
    .s_b_valid_o      (s_pm.b_valid),
    .s_b_o            (s_pm.b),
    .s_b_ready_i      (s_pm.b_ready),
    .m_axi            (stores)
  );

  nearpm_load_path u_load_path (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .retired_i,
    .written_i   (written),
    .lookup_ready_o      (lookup_ready[PmLoad]),
    .lookup_valid_i      (lookup_valid[PmLoad]),
    .lookup_ax_i   (ax_q),
    .lookup_conflicts_i(conflicts),
    .ar_valid_o  (loads.ar_valid),
    .ar_o        (loads.ar),
    .ar_ready_i  (loads.ar_ready),
    .waiting_o   (loads_o),
    .busy_o      (loads_busy)
  );

  assign s_pm.r = loads.r;
  assign s_pm.r_valid = loads.r_valid;
  assign loads.r_ready = s_pm.r_ready;

  // ---------------------------------------------------------------- NVMe controller

  logic write_busy, read_busy;

  nearpm_nvme_path u_nvme_write (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .retired_i,
    .written_i   (written),
    .lookup_ready_o      (lookup_ready[NvmeWrite]),
    .lookup_valid_i      (lookup_valid[NvmeWrite]),
    .lookup_ax_i   (ax_q),
    .lookup_conflicts_i(conflicts),
    .ax_valid_o  (m_nvme.aw_valid),
    .ax_o        (m_nvme.aw),
    .ax_ready_i  (m_nvme.aw_ready),
    .busy_o      (write_busy)
  );

  nearpm_nvme_path u_nvme_read (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .retired_i,
    .written_i   (written),
    .lookup_ready_o      (lookup_ready[NvmeRead]),
    .lookup_valid_i      (lookup_valid[NvmeRead]),
    .lookup_ax_i   (ax_q),
    .lookup_conflicts_i(conflicts),
    .ax_valid_o  (m_nvme.ar_valid),
    .ax_o        (m_nvme.ar),
    .ax_ready_i  (m_nvme.ar_ready),
    .busy_o      (read_busy)
  );

  // Data follow their addresses.
  logic [7:0] nvme_write_count_q;
  logic nvme_aw_fire, nvme_w_last_fire;
  assign nvme_aw_fire = m_nvme.aw_valid && m_nvme.aw_ready;
  assign nvme_w_last_fire = m_nvme.w_valid && m_nvme.w_ready && m_nvme.w.last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) nvme_write_count_q <= '0;
    else nvme_write_count_q <= nvme_write_count_q + 8'(nvme_aw_fire) - 8'(nvme_w_last_fire);
  end

  assign m_nvme.w = s_nvme.w;
  assign m_nvme.w_valid = s_nvme.w_valid && nvme_write_count_q != '0;
  assign s_nvme.w_ready = m_nvme.w_ready && nvme_write_count_q != '0;
  assign s_nvme.b = m_nvme.b;
  assign s_nvme.b_valid = m_nvme.b_valid;
  assign m_nvme.b_ready = s_nvme.b_ready;
  assign s_nvme.r = m_nvme.r;
  assign s_nvme.r_valid = m_nvme.r_valid;
  assign m_nvme.r_ready = s_nvme.r_ready;

  assign busy_o = valid_q || queued != written || stores_busy || loads_busy || write_busy || read_busy || nvme_write_count_q != '0;

  if (Granule < 4096 || (Granule & (Granule - 1)) != 0) begin : gen_bad_granule
    $error("nearpm_filter: Granule must be a power of two, at least 4096");
  end
  if (NumChannels < 1 || NumChannels > 16 || (NumChannels & (NumChannels - 1)) != 0 || Channel >= NumChannels) begin : gen_bad_channel
    $error("nearpm_filter: NumChannels must be 1, 2, 4, 8 or 16, and Channel one of them");
  end

`ifdef NS_ORDER
  nearpm_filter_recorder #(
    .Channel(Channel)
  ) u_recorder (
    .clk_i,
    .rst_ni,
    .store_valid_i       (lookup_valid[PmStore]),
    .load_valid_i        (lookup_valid[PmLoad]),
    .lines_i       (lookup.lines),
    .id_i          (ax_q.id),
    .lookup_pop_i        (u_store_path.lookup_pop),
    .ring_place_i       (u_store_path.ring_tail_q),
    .queue_push_i      (u_store_path.queue_push),
    .aw_fire_i          (m_pm.aw_valid && m_pm.aw_ready),
    .aw_id_i       (m_pm.aw.id),
    .answer_pop_i        (u_store_path.answer_pop),
    .answer_place_i  (u_store_path.answer_place_q),
    .line_written_i     (u_queue.line_written),
    .ar_fire_i          (m_pm.ar_valid && m_pm.ar_ready),
    .ar_id_i       (m_pm.ar.id),
    .r_last_i        (s_pm.r_valid && s_pm.r_ready && s_pm.r.last),
    .r_last_id_i     (s_pm.r.id),
    .restored_valid_i    (u_queue.restore_entries ? u_queue.restore_valid : 2'b00),
    .restore_data_i(restore_data_i)
  );
`endif

  `NS_ASSERT(nvme_writes_counted, !nvme_aw_fire || nvme_write_count_q != '1)
  `NS_ASSERT(line_response_of_the_queue, !line_response || queued != written)

endmodule
