// The access hook of one channel: stores, loads and accesses of the NVMe controller that overlap a command wait for it; all others pass.
//
// README.md, "Order", says who waits for what. One access a cycle is looked up in the table of commands and in the queue, in turns: stores of the PM window, its
// loads, writes and reads of the controller. A store that passes reaches the memory 3 cycles after its address came, a load 3, the controller's 2.
//
// Assumes that no store comes while a command is to be inserted, that bursts stay within 4 KiB, IDs of the PM window's stores of any
// value, and a memory that takes writes to one line in the order of their addresses, whatever their IDs, and answers those of one ID in order.
`include "ns_assert.svh"

module nearpm_hook
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_hook_pkg::*;
#(
  /// Channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next one's turn, a power of two, at least 4096.
  parameter int unsigned Granule = 4096,
  /// This one.
  parameter int unsigned Channel = 0
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  /// Nothing new passes, no line of the queue leaves, nothing counts as answered: until the next reset, or until all has been restored after one. From a register.
  input  logic             freeze_i,
  /// From registers.
  output logic             busy_o,

  /// Commands that are gone from this cycle on.
  input  commands_t        ended_i,
  /// The table.
  nearpm_lookup_if.hook    lookup,
  nearpm_order_if.hook     order,

  /// When frozen: a line of the reserved range, 0 to 95, see README; it comes a cycle later. Lines of stores that have not been answered are left out, and so are those that wait for a command in `save_dropped_i`.
  input  logic [6:0]       save_index_i,
  input  commands_t        save_dropped_i,
  output logic [511:0]     save_data_o,
  /// While frozen after a reset: a line comes back, from 0 on.
  input  logic             restore_i,
  input  logic [6:0]       restore_index_i,
  input  logic [511:0]     restore_data_i,

  /// For registers: a store goes into the queue; lines there; loads that wait; a line could not be written. From registers, but for the last.
  output logic             queued_o,
  output logic [6:0]       lines_o,
  output logic [4:0]       loads_o,
  output logic             line_error_o,

  /// PM window. Addresses are local to the channel.
  ns_axi_if.slave          s_hook_pm,
  ns_axi_if.master         m_hook_pm,
  /// NVMe controller.
  ns_axi_if.slave          s_hook_nvme,
  ns_axi_if.master         m_hook_nvme
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule)) - 6;  // lines
  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));

  // ---------------------------------------------------------------- questions

  typedef enum logic [1:0] {
    PmStore,
    PmLoad,
    NvmeWrite,
    NvmeRead
  } source_e;

  logic [3:0] request, grant, open, look;
  logic granted;
  logic valid_q;
  logic [3:0] source_q;
  ax_t ax, ax_q;
  burst_t burst_q;
  waits_t waits;
  count_t queue_next, free;

  assign request = open & {s_hook_nvme.ar_valid, s_hook_nvme.aw_valid, s_hook_pm.ar_valid, s_hook_pm.aw_valid};
  assign s_hook_pm.aw_ready = grant[PmStore];
  assign s_hook_pm.ar_ready = grant[PmLoad];
  assign s_hook_nvme.aw_ready = grant[NvmeWrite];
  assign s_hook_nvme.ar_ready = grant[NvmeRead];

  ns_rr_arbiter #(
    .N(4)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (request),
    .next_i (1'b1),
    .gnt_o  (grant),
    .idx_o  (),
    .valid_o(granted)
  );

  always_comb begin
    ax = s_hook_pm.aw;
    if (grant[PmLoad]) ax = s_hook_pm.ar;
    if (grant[NvmeWrite]) ax = s_hook_nvme.aw;
    if (grant[NvmeRead]) ax = s_hook_nvme.ar;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else valid_q <= granted;
  end

  always_ff @(posedge clk_i) begin
    if (granted) begin
      source_q <= grant;
      ax_q <= ax;
      burst_q <= burst_of(ax.addr[MediaBits-1:0], ax.len, ax.size, ax.burst);
    end
  end

  assign look = source_q & {4{valid_q}};
  assign lookup.valid = valid_q;
  assign lookup.write = source_q[PmStore] || source_q[NvmeWrite];
  assign lookup.lines.valid = 1'b1;
  assign lookup.lines.first = to_media({burst_q.page, burst_q.first}, GranuleBits, ChannelBits, Channel);
  assign lookup.lines.last = to_media({burst_q.page, burst_q.last}, GranuleBits, ChannelBits, Channel);
  assign waits.commands = lookup.commands;
  assign waits.target = queue_next;

  // ---------------------------------------------------------------- queue

  count_t queued, written, settle;
  logic insert, fill, line_aw_valid, line_aw_ready, line_w_valid, line_w_ready, line_answer;
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
    .ended_i,
    .queued_o         (queued),
    .written_o        (written),
    .queued_next_o    (queue_next),
    .look_i           (valid_q),
    .look_burst_i     (burst_q),
    .look_overlaps_o  (waits.lines),
    .order_lines_i    (order.lines),
    .order_overlaps_o (order.overlaps),
    .insert_i         (insert),
    .insert_burst_i   (insert_burst),
    .insert_commands_i(insert_commands),
    .free_o           (free),
    .fill_i           (fill),
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
    .settle_i         (settle),
    .answer_i         (line_answer),
    .save_index_i,
    .save_dropped_i,
    .save_data_o,
    .restore_i,
    .restore_index_i,
    .restore_data_i
  );

  assign order.queued = queued;
  assign order.written = written;
  assign lines_o = queued - written;
  assign line_error_o = line_answer && m_hook_pm.b.resp != RespOkay;

  // ---------------------------------------------------------------- PM window

  ns_axi_if stores ();
  ns_axi_if loads ();
  logic stores_busy, stores_quiet, loads_busy;

  // One whose address is shown is older than a command that comes now, too.
  assign order.quiet = stores_quiet && !s_hook_pm.aw_valid;

  // Data that wait for their turn behind an engine's burst hold up no store of another channel.
  w_t data;
  logic data_valid, data_ready;

  ns_fifo #(
    .Width($bits(w_t)),
    .Depth(DataBeats),
    .Style("lutram")
  ) u_data (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_hook_pm.w_valid),
    .in_ready_o (s_hook_pm.w_ready),
    .in_data_i  (s_hook_pm.w),
    .out_valid_o(data_valid),
    .out_ready_i(data_ready),
    .out_data_o (data),
    .count_o    ()
  );

  ns_axi_rw_join u_join (
    .s_read (loads),
    .s_write(stores),
    .m_axi  (m_hook_pm)
  );

  nearpm_stores u_stores (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .ended_i,
    .open_o           (open[PmStore]),
    .taken_i          (grant[PmStore]),
    .look_i           (look[PmStore]),
    .look_ax_i        (ax_q),
    .look_burst_i     (burst_q),
    .look_waits_i     (waits),
    .stores_o         (order.stores),
    .answered_o       (order.answered),
    .quiet_o          (stores_quiet),
    .busy_o           (stores_busy),
    .queued_o,
    .written_i        (written),
    .queue_tail_i     (queued[QueueBits-1:0]),
    .free_i           (free),
    .insert_o         (insert),
    .insert_burst_o   (insert_burst),
    .insert_commands_o(insert_commands),
    .fill_o           (fill),
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
    .line_answer_o    (line_answer),
    .settle_o         (settle),
    .s_w_valid_i      (data_valid),
    .s_w_i            (data),
    .s_w_ready_o      (data_ready),
    .s_b_valid_o      (s_hook_pm.b_valid),
    .s_b_o            (s_hook_pm.b),
    .s_b_ready_i      (s_hook_pm.b_ready),
    .m_axi            (stores)
  );

  nearpm_loads u_loads (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .ended_i,
    .written_i   (written),
    .open_o      (open[PmLoad]),
    .look_i      (look[PmLoad]),
    .look_ax_i   (ax_q),
    .look_waits_i(waits),
    .ar_valid_o  (loads.ar_valid),
    .ar_o        (loads.ar),
    .ar_ready_i  (loads.ar_ready),
    .waiting_o   (loads_o),
    .busy_o      (loads_busy)
  );

  assign s_hook_pm.r = loads.r;
  assign s_hook_pm.r_valid = loads.r_valid;
  assign loads.r_ready = s_hook_pm.r_ready;

  // ---------------------------------------------------------------- NVMe controller

  logic write_busy, read_busy;

  nearpm_gate u_write (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .ended_i,
    .written_i   (written),
    .open_o      (open[NvmeWrite]),
    .look_i      (look[NvmeWrite]),
    .look_ax_i   (ax_q),
    .look_waits_i(waits),
    .ax_valid_o  (m_hook_nvme.aw_valid),
    .ax_o        (m_hook_nvme.aw),
    .ax_ready_i  (m_hook_nvme.aw_ready),
    .busy_o      (write_busy)
  );

  nearpm_gate u_read (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .ended_i,
    .written_i   (written),
    .open_o      (open[NvmeRead]),
    .look_i      (look[NvmeRead]),
    .look_ax_i   (ax_q),
    .look_waits_i(waits),
    .ax_valid_o  (m_hook_nvme.ar_valid),
    .ax_o        (m_hook_nvme.ar),
    .ax_ready_i  (m_hook_nvme.ar_ready),
    .busy_o      (read_busy)
  );

  // Data follow their addresses.
  logic [7:0] begun_q;
  logic begins, ends;
  assign begins = m_hook_nvme.aw_valid && m_hook_nvme.aw_ready;
  assign ends = m_hook_nvme.w_valid && m_hook_nvme.w_ready && m_hook_nvme.w.last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begun_q <= '0;
    else begun_q <= begun_q + 8'(begins) - 8'(ends);
  end

  assign m_hook_nvme.w = s_hook_nvme.w;
  assign m_hook_nvme.w_valid = s_hook_nvme.w_valid && begun_q != '0;
  assign s_hook_nvme.w_ready = m_hook_nvme.w_ready && begun_q != '0;
  assign s_hook_nvme.b = m_hook_nvme.b;
  assign s_hook_nvme.b_valid = m_hook_nvme.b_valid;
  assign m_hook_nvme.b_ready = s_hook_nvme.b_ready;
  assign s_hook_nvme.r = m_hook_nvme.r;
  assign s_hook_nvme.r_valid = m_hook_nvme.r_valid;
  assign m_hook_nvme.r_ready = s_hook_nvme.r_ready;

  assign busy_o = valid_q || queued != written || stores_busy || loads_busy || write_busy || read_busy || begun_q != '0;

  if (Granule < 4096 || (Granule & (Granule - 1)) != 0) begin : gen_bad_granule
    $error("nearpm_hook: Granule must be a power of two, at least 4096");
  end
  if (NumChannels < 1 || NumChannels > 16 || (NumChannels & (NumChannels - 1)) != 0 || Channel >= NumChannels) begin : gen_bad_channel
    $error("nearpm_hook: NumChannels must be 1, 2, 4, 8 or 16, and Channel one of them");
  end

`ifdef NS_ORDER
  nearpm_hook_recorder #(
    .Channel(Channel)
  ) u_recorder (
    .clk_i,
    .rst_ni,
    .store_i       (look[PmStore]),
    .load_i        (look[PmLoad]),
    .lines_i       (lookup.lines),
    .id_i          (ax_q.id),
    .goes_i        (u_stores.goes),
    .place_i       (u_stores.new_q),
    .queued_i      (u_stores.queues),
    .aw_i          (m_hook_pm.aw_valid && m_hook_pm.aw_ready),
    .aw_id_i       (m_hook_pm.aw.id),
    .kept_i        (u_stores.answers),
    .kept_place_i  (u_stores.answered_place_q),
    .written_i     (u_queue.answer),
    .ar_i          (m_hook_pm.ar_valid && m_hook_pm.ar_ready),
    .ar_id_i       (m_hook_pm.ar.id),
    .last_i        (s_hook_pm.r_valid && s_hook_pm.r_ready && s_hook_pm.r.last),
    .last_id_i     (s_hook_pm.r.id),
    .restored_i    (u_queue.restore_entries ? u_queue.restore_valid : 2'b00),
    .restore_data_i(restore_data_i)
  );
`endif

  `NS_ASSERT(begun_in_range, !begins || begun_q != '1)
  `NS_ASSERT(line_ids_are_the_queues, !line_answer || queued != written)

endmodule
