// SPDX-License-Identifier: Apache-2.0

// Front end of the NVMe controller: everything except the data path.
//
//   BAR0 -> nvme_bar0 -> nvme_fetch -> nvme_dispatch -> data commands, engines, nvme_admin
//   nvme_completion <- ended data commands, nvme_dispatch, nvme_admin
//
// The data path accepts `data_cmd_*`, answers each with one `data_done_*` once all its transactions
// have ended, and reads pages of admin commands from `s_adm`. All other assumptions are listed in
// nvme_ctrl.
`include "ns_assert.svh"

module nvme_front
  import ns_axi_pkg::*;
  import msix_pkg::*;
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// I/O queue pairs, 1 to 127.
  parameter int unsigned     NumIoQueues  = 16,
  /// Largest I/O queue in entries, a power of two, 16 to 65536.
  parameter int unsigned     QueueEntries = 1024,
  /// Commands in flight, 8 to 128.
  parameter int unsigned     NumSlots     = 128,
  /// Submission queue entries being read from the host at a time, 1 to 64.
  parameter int unsigned     FetchDepth   = 32,
  /// See nvme_namespace.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t      NsBlocks     = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes   = 64'h1_0000_0000,
  /// See nvme_ctrl.
  parameter int unsigned     MaxDeallocate = 131_072,
  /// See nvme_ctrl.
  parameter bit              DoorbellBuffer = 1'b1,
  /// PCI vendor and subsystem vendor ID.
  parameter logic [15:0]     VendorId     = 16'h4E53,
  /// Cycles that the first command of a fused pair waits for its partner, see nvme_fused_pairing.
  parameter int unsigned     HostTimeout  = 6_250_000,
  /// Clock in kHz.
  parameter int unsigned     ClockKhz     = 250_000,
  /// See nvme_ctrl.
  parameter int unsigned     NumEngines   = 0,
  /// See nvme_ctrl.
  parameter engine_routes_t  Routes       = '0,
  localparam int unsigned    EnginePorts  = (NumEngines == 0) ? 1 : NumEngines
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic        busy_o,
  /// From a register: at least this number of cycles, up to five fewer, passes in which only the
  /// time changes, without new input. 0 if anything else changes.
  output logic [31:0] wait_o,
  /// All activity here, if any, waits for the data path.
  output logic        waiting_o,
  /// From a register: busy_o becomes 1 by itself.
  output logic        alarm_o,
  /// From a register: at this value of cycles_i.
  output logic [63:0] alarm_cycles_o,

  /// Serial number, 20 characters, the first one in the high bits, padded with spaces. From a
  /// register that changes only in reset.
  input  logic [159:0]             serial_i,
  /// EUI-64 of namespace 1; its low 4 bits are 0. From a register that changes only in reset.
  input  logic [63:0]              eui64_i,
  /// Cycles since power-on. From a register on the ungated clock.
  input  logic [63:0]              cycles_i,
  /// Composite temperature in kelvins. From a register on the ungated clock.
  input  logic [15:0]              temperature_i,
  /// Each toggles when Identify Namespace of its namespace has changed. From registers on the
  /// ungated clock.
  input  logic [NumNamespaces-1:0] ns_changed_i,
  /// MSI-X: the table is in BAR0, and messages follow completion queue entries.
  output to_msix_t                 msix_o,
  /// From there.
  input  from_msix_t               msix_i,

  /// BAR0.
  ns_axil_if.slave s_axil,


  /// Host: writes of completion queue entries, MSI-X messages and shadow doorbells; reads of
  /// submission queue entries, shadow doorbells and data of admin commands.
  ns_axi_if.master m_host,


  /// The controller is being stopped: see nvme_data.
  output logic                 data_stop_o,
  /// Abort of a data command: see nvme_data.
  output logic                 data_abort_valid_o,
  output logic [SlotWidth-1:0] data_abort_slot_o,
  output logic                 data_abort_current_o,
  output logic                 data_abort_deleted_o,
  input  logic                 data_abort_ready_i,
  input  logic                 data_abort_found_i,
  /// Data command.
  output data_cmd_t            data_cmd_o,
  output logic                 data_cmd_valid_o,
  input  logic                 data_cmd_ready_i,
  /// Ended data command.
  input  data_done_t           data_done_i,
  input  logic                 data_done_valid_i,
  output logic                 data_done_ready_o,

  /// Admin buffer, read by the data path.
  ns_axi_if.read_slave s_adm,
  /// I/O commands of engines.
  nvme_engine_if.controller m_engine[EnginePorts],

  /// Trace of commands, see nvme_trace.
  output logic [ 63:0] trace_event_o,
  output logic [191:0] trace_sqe_o,
  output logic [191:0] trace_cqe_o,
  output logic [ 15:0] trace_irq_o
);

  localparam int unsigned NumQueues = NumIoQueues + 1;
  localparam int unsigned NumEvents = 4;  // AERL + 1
  localparam int unsigned NumErrors = 64;  // ELPE + 1
  localparam logic [IdWidth-1:0] IdFetch = 12'd0;
  localparam logic [IdWidth-1:0] IdAdmin = 12'd1;
  localparam logic [IdWidth-1:0] IdShadow = 12'd2;  // and of the writes of EventIdx

  // Controller properties and state.
  setup_t setup;
  logic nssr, nssr_done, rdy, cfs;
  logic [1:0] shst;
  logic fetch, init, init_done, flush, flush_done, clear, quiet;
  logic
      bar0_busy,
      state_busy,
      fetch_busy,
      admin_busy,
      admin_waiting,
      pages_busy,
      completion_busy,
      post_busy;
  logic shadow_busy, events_busy, coalesce_busy;
  logic [31:0] coalesce_remaining, fused_remaining, cycles_q;
  logic [SlotWidth-1:0] fused_kept_count;

  // Doorbells: from registers, and downstream of nvme_shadow.
  logic [QidWidth-1:0] reg_qid;
  logic reg_cq, reg_valid, reg_ready;
  logic [PtrWidth-1:0] reg_value;
  logic [QidWidth-1:0] db_qid;
  logic db_cq, db_shadow, db_valid, tail_ready, head_ready;
  logic [PtrWidth-1:0] db_value;
  logic tail_bad_qid, tail_bad_value, head_bad_qid, head_bad_value, db_unknown;
  logic bad_register_q, bad_value_q;

  // Shadow doorbells.
  logic shadow_set, shadow_armed, shadow_error, shadow_msg_valid, shadow_msg_ready;
  logic [63:2] shadow_msg_addr;
  logic [31:0] shadow_msg_data;
  logic shadow_ar_valid, shadow_ar_ready, shadow_r_valid;
  logic cq_full;
  logic [NumQueues-1:0] sq_nonempty;
  ax_t shadow_ar;

  // MSI-X.
  logic table_req, table_we;
  logic [11:2] table_addr;
  logic [31:0] table_wdata, table_biten;
  logic posted_irq, posted_irq_admin, irq, msg_ready;
  logic [QidWidth-1:0] posted_irq_vector, irq_vector, emptied_vector, withdraw_vector;
  logic emptied, withdraw;
  logic [NumQueues-1:0] uncoalesced;

  // Queues.
  queue_cfg_t cfg;
  logic cfg_valid, cfg_fire, fetch_cfg_ready, completion_cfg_ready;
  logic [NumQueues-1:0] sq_valid, cq_valid;
  logic [QidWidth-1:0] admin_qid, admin_cqid, cq_qid, sq_qid, sq_cqid;
  logic admin_sq_idle, unreserve_valid, unreserve_ready, admin_done, cq_moved, retire;
  logic [PtrWidth-1:0] cq_head, cq_size, sq_head;

  // Ended data command.
  data_done_t done;
  logic done_valid, admin_done_valid;

  // Slots.
  logic [SlotWidth-1:0] free_slot, used, parked, cpl_slot;
  logic free_valid, slot_spare, slot_alloc, owner_valid;
  owner_t owner;
  logic [QidWidth-1:0] slot_alloc_qid;
  logic [PtrWidth-1:0] slot_alloc_head;
  logic [QidWidth-1:0] cpl_qid;
  logic [15:0] cpl_cid;

  // Commands.
  fetched_t cmd;
  logic cmd_valid, cmd_ready;
  data_cmd_t io_data, admin_data;
  logic io_data_valid, io_data_ready, admin_data_valid, admin_data_ready;
  admin_cmd_t admin_cmd;
  logic admin_cmd_valid, admin_cmd_ready;
  logic [SlotWidth-1:0] admin_data_slot;
  logic admin_data_wait;
  page_e page;
  logic [31:0] page_nsid;
  logic [MaxNamespaces-1:0] flying, formatting;
  logic commands_busy, fused_waiting;
  logic reserve_valid, reserve_done, reserve_ok;
  aer_event_t event_next;
  logic event_valid, event_report;
  feature_write_t feature;
  logic feature_valid;

  // Data returned and read by admin commands.
  logic log_start, log_clear;
  logic [7:0] warning;
  logic [63:0] data_in;
  logic ns_listed;
  logic
      time_valid,
      time_hours,
      time_done,
      data_in_valid,
      data_in_long,
      data_in_done,
      timestamp_set,
      acre;
  data_status_e data_in_status;
  logic keep_alive_busy, keep_alive_expired;
  to_keep_alive_t to_keep_alive;
  from_keep_alive_t from_keep_alive;
  posted_t posted;
  logic posted_valid;

  // Completions: 0 of data commands, 1 of nvme_decode, 2 of nvme_admin, 3 of engines.
  cpl_t [3:0] cpl;
  logic [3:0] cpl_valid, cpl_ready;
  cpl_t admin_cpl;
  logic admin_cpl_valid, admin_cpl_ready, admin_cpl_slice_ready;
  host_write_t post;
  logic post_valid, post_room, post_mark, post_marked_done, write_error;

  nvme_bar0 #(
    .NumQueues   (NumQueues),
    .QueueEntries(QueueEntries)
  ) u_bar0 (
    .clk_i,
    .rst_ni,
    .busy_o        (bar0_busy),
    .s_axil,
    .setup_o       (setup),
    .nssr_o        (nssr),
    .nssr_done_i   (nssr_done),
    .rdy_i         (rdy),
    .cfs_i         (cfs),
    .shst_i        (shst),
    .db_qid_o      (reg_qid),
    .db_cq_o       (reg_cq),
    .db_value_o    (reg_value),
    .db_valid_o    (reg_valid),
    .db_ready_i    (reg_ready),
    .db_unknown_o  (db_unknown),
    .table_req_o   (table_req),
    .table_we_o    (table_we),
    .table_addr_o  (table_addr),
    .table_wdata_o (table_wdata),
    .table_biten_o (table_biten),
    .table_ack_i   (msix_i.table_ack),
    .table_rdata_i (msix_i.table_rdata),
    .pending_i     (msix_i.pending),
    .msg_valid_i   (msix_i.msg_valid),
    .msg_ready_i   (msg_ready),
    .post_busy_i   (post_busy),
    .mark_valid_o  (post_mark),
    .marked_done_i (post_marked_done)
  );

  nvme_ctrl_state u_ctrl_state (
    .clk_i,
    .rst_ni,
    .busy_o      (state_busy),
    .setup_i     (setup),
    .nssr_i      (nssr),
    .nssr_done_o (nssr_done),
    .rdy_o       (rdy),
    .cfs_o       (cfs),
    .shst_o      (shst),
    .fatal_i     (write_error || shadow_error || (cmd_valid && cmd.error) || keep_alive_expired),
    .quiet_i     (quiet),
    .fetch_o     (fetch),
    .init_o      (init),
    .init_done_i (init_done),
    .flush_o     (flush),
    .flush_done_i(flush_done),
    .clear_o     (clear)
  );

  // A slot is in use from before the read of its entry until after the write of its completion.
  assign quiet = used == parked && !fetch_busy && !shadow_busy && !completion_busy && !post_busy && !coalesce_busy && !msix_i.busy && !admin_busy;

  if (DoorbellBuffer) begin : gen_shadow
    nvme_shadow #(
      .NumQueues(NumQueues),
      .Id       (IdShadow)
    ) u_shadow (
      .clk_i,
      .rst_ni,
      .busy_o     (shadow_busy),
      .enable_i   (fetch),
      .clear_i    (clear),
      .set_i      (shadow_set),
      .shadow_i   (admin_data.prp1[63:12]),
      .event_idx_i(admin_data.prp2[63:12]),
      .armed_o    (shadow_armed),
      .error_o    (shadow_error),
      .cfg_fire_i (cfg_fire),
      .cfg_i      (cfg),
      .sq_valid_i (sq_valid),
      .cq_valid_i (cq_valid),
      .nonempty_i (sq_nonempty),
      .full_i     (cq_full),
      .full_qid_i (cq_qid),
      .reg_qid_i  (reg_qid),
      .reg_cq_i   (reg_cq),
      .reg_value_i(reg_value),
      .reg_valid_i(reg_valid),
      .reg_ready_o(reg_ready),
      .db_qid_o   (db_qid),
      .db_cq_o    (db_cq),
      .db_value_o (db_value),
      .db_shadow_o(db_shadow),
      .db_valid_o (db_valid),
      .db_ready_i (db_cq ? head_ready : tail_ready),
      .db_bad_i   (tail_bad_qid || tail_bad_value || head_bad_qid || head_bad_value),
      .ar_o       (shadow_ar),
      .ar_valid_o (shadow_ar_valid),
      .ar_ready_i (shadow_ar_ready),
      .r_i        (m_host.r),
      .r_valid_i  (shadow_r_valid),
      .msg_addr_o (shadow_msg_addr),
      .msg_data_o (shadow_msg_data),
      .msg_valid_o(shadow_msg_valid),
      .msg_ready_i(shadow_msg_ready),
      .msg_done_i (m_host.b_valid && m_host.b.id == IdShadow)
    );
  end else begin : gen_registers
    // Registers alone: the slice that they pass on the way through nvme_shadow.
    ns_skid #(
      .Width(QidWidth + 1 + PtrWidth)
    ) u_doorbell (
      .clk_i,
      .rst_ni,
      .in_valid_i (reg_valid),
      .in_ready_o (reg_ready),
      .in_data_i  ({reg_qid, reg_cq, reg_value}),
      .out_valid_o(db_valid),
      .out_ready_i(db_cq ? head_ready : tail_ready),
      .out_data_o ({db_qid, db_cq, db_value})
    );

    assign db_shadow = 1'b0;
    assign shadow_busy = 1'b0;
    assign shadow_armed = 1'b1;
    assign shadow_error = 1'b0;
    assign shadow_ar = '0;
    assign shadow_ar_valid = 1'b0;
    assign shadow_msg_addr = '0;
    assign shadow_msg_data = '0;
    assign shadow_msg_valid = 1'b0;

    logic unused_shadow;
    assign unused_shadow = ^{shadow_set, sq_nonempty, cq_full, shadow_ar_ready, shadow_r_valid, shadow_msg_ready};
  end

  // EventIdx leaves as MSI-X messages do.
  assign shadow_msg_ready = msg_ready && !msix_i.msg_valid;

  nvme_coalescer #(
    .NumVectors(NumQueues),
    .ClockKhz  (ClockKhz)
  ) u_coalescer (
    .clk_i,
    .rst_ni,
    .busy_o           (coalesce_busy),
    .cycles_i         (cycles_i[31:0]),
    .remaining_o      (coalesce_remaining),
    .reset_i          (clear),
    .enable_i         (fetch),
    .feature_i        (feature),
    .feature_valid_i  (feature_valid),
    .disable_i        (uncoalesced),
    .irq_i            (posted_irq),
    .irq_vector_i     (posted_irq_vector),
    .irq_admin_i      (posted_irq_admin),
    .withdraw_i       (emptied),
    .withdraw_vector_i(emptied_vector),
    .irq_o            (irq),
    .irq_vector_o     (irq_vector),
    .withdraw_o       (withdraw),
    .withdraw_vector_o(withdraw_vector)
  );

  assign msix_o = '{
          clear: clear,
          irq: irq,
          vector: irq_vector,
          withdraw: withdraw,
          withdraw_vector: withdraw_vector,
          msg_ready: msg_ready,
          table_req: table_req,
          table_we: table_we,
          table_addr: table_addr,
          table_biten: table_biten,
          table_wdata: table_wdata
      };

  logic [QidWidth-1:0] abort_slot_qid;
  logic [15:0] abort_slot_cid;

  nvme_slot_table #(
    .NumSlots(NumSlots)
  ) u_slot_table (
    .clk_i,
    .rst_ni,
    .free_o        (free_slot),
    .free_valid_o  (free_valid),
    .spare_o       (slot_spare),
    .alloc_i       (slot_alloc),
    .release_i     (retire),
    .release_slot_i(cpl_slot),
    .used_o        (used),
    .we_i          (owner_valid),
    .wslot_i       (owner.slot),
    .wqid_i        (owner.qid),
    .wcid_i        (owner.cid),
    .rslot_i       (cpl_slot),
    .rqid_o        (cpl_qid),
    .rcid_o        (cpl_cid),
    .abort_slot_i  (data_abort_slot_o),
    .abort_qid_o   (abort_slot_qid),
    .abort_cid_o   (abort_slot_cid)
  );

  // Reads from the host.
  ax_t fetch_ar, data_in_ar;
  logic fetch_ar_valid, fetch_ar_ready, fetch_r_valid, fetch_r_ready;
  logic data_in_ar_valid, data_in_ar_ready, data_in_r_valid;
  r_t fetch_r;

  nvme_host_reads #(
    .FetchDepth(FetchDepth),
    .IdFetch   (IdFetch),
    .IdAdmin   (IdAdmin),
    .IdShadow  (IdShadow)
  ) u_host_reads (
    .clk_i,
    .rst_ni,
    .admin_ar_i       (data_in_ar),
    .admin_ar_valid_i (data_in_ar_valid),
    .admin_ar_ready_o (data_in_ar_ready),
    .admin_r_valid_o  (data_in_r_valid),
    .shadow_ar_i      (shadow_ar),
    .shadow_ar_valid_i(shadow_ar_valid),
    .shadow_ar_ready_o(shadow_ar_ready),
    .shadow_r_valid_o (shadow_r_valid),
    .fetch_ar_i       (fetch_ar),
    .fetch_ar_valid_i (fetch_ar_valid),
    .fetch_ar_ready_o (fetch_ar_ready),
    .fetch_r_o        (fetch_r),
    .fetch_r_valid_o  (fetch_r_valid),
    .fetch_r_ready_i  (fetch_r_ready),
    .ar_o             (m_host.ar),
    .ar_valid_o       (m_host.ar_valid),
    .ar_ready_i       (m_host.ar_ready),
    .r_i              (m_host.r),
    .r_valid_i        (m_host.r_valid)
  );

  assign m_host.r_ready = 1'b1;

  nvme_admin_data_in #(
    .Id(IdAdmin)
  ) u_admin_data_in (
    .clk_i,
    .rst_ni,
    .req_i     (data_in_valid),
    .long_i    (data_in_long),
    .prp1_i    (admin_data.prp1),
    .prp2_i    (admin_data.prp2),
    .done_o    (data_in_done),
    .status_o  (data_in_status),
    .data_o    (data_in),
    .ar_o      (data_in_ar),
    .ar_valid_o(data_in_ar_valid),
    .ar_ready_i(data_in_ar_ready),
    .r_i       (m_host.r),
    .r_valid_i (data_in_r_valid)
  );

  nvme_fetch #(
    .NumQueues (NumQueues),
    .FetchDepth(FetchDepth)
  ) u_fetch (
    .clk_i,
    .rst_ni,
    .busy_o           (fetch_busy),
    .enable_i         (fetch),
    .clear_i          (clear),
    .wrr_i            (setup.wrr),
    .feature_i        (feature),
    .feature_valid_i  (feature_valid),
    .tail_valid_i     (db_valid && !db_cq),
    .tail_ready_o     (tail_ready),
    .tail_qid_i       (db_qid),
    .tail_i           (db_value),
    .tail_bad_qid_o   (tail_bad_qid),
    .tail_bad_value_o (tail_bad_value),
    .cfg_valid_i      (cfg_valid),
    .cfg_ready_o      (fetch_cfg_ready),
    .cfg_fire_i       (cfg_fire),
    .cfg_i            (cfg),
    .sq_valid_o       (sq_valid),
    .sq_nonempty_o    (sq_nonempty),
    .admin_qid_i      (admin_qid),
    .admin_cqid_o     (admin_cqid),
    .admin_idle_o     (admin_sq_idle),
    .unreserve_valid_i(unreserve_valid),
    .unreserve_ready_o(unreserve_ready),
    .reserve_valid_i  (reserve_valid),
    .reserve_done_o   (reserve_done),
    .reserve_ok_o     (reserve_ok),
    .admin_done_i     (admin_done),
    .cq_qid_o         (cq_qid),
    .cq_head_i        (cq_head),
    .cq_size_i        (cq_size),
    .cq_full_o        (cq_full),
    .cq_moved_i       (cq_moved),
    .sq_qid_i         (sq_qid),
    .sq_cqid_o        (sq_cqid),
    .sq_head_o        (sq_head),
    .retire_i         (retire),
    .retire_qid_i     (sq_qid),
    .slot_i           (free_slot),
    .slot_valid_i     (free_valid),
    .slot_spare_i     (slot_spare),
    .slot_alloc_o     (slot_alloc),
    .slot_qid_o       (slot_alloc_qid),
    .slot_head_o      (slot_alloc_head),
    .ar_o             (fetch_ar),
    .ar_valid_o       (fetch_ar_valid),
    .ar_ready_i       (fetch_ar_ready),
    .r_i              (fetch_r),
    .r_valid_i        (fetch_r_valid),
    .r_ready_o        (fetch_r_ready),
    .cmd_o            (cmd),
    .cmd_valid_o      (cmd_valid),
    .cmd_ready_i      (cmd_ready)
  );

  // Abort of I/O commands.
  abort_t abort;
  logic abort_done, aborted;

  nvme_dispatch #(
    .NumQueues    (NumQueues),
    .NumSlots     (NumSlots),
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes),
    .HostTimeout  (HostTimeout),
    .NumEngines   (EnginePorts),
    .Routes       (Routes)
  ) u_dispatch (
    .clk_i,
    .rst_ni,
    .busy_o            (commands_busy),
    .fused_waiting_o   (fused_waiting),
    .elapsed_i         (cycles_i[31:0] - cycles_q),
    .kept_count_o      (fused_kept_count),
    .remaining_o       (fused_remaining),
    .enable_i          (fetch),
    .acre_i            (acre),
    .sq_valid_i        (sq_valid),
    .formatting_i      (formatting),
    .in_flight_o       (flying),
    .cmd_i             (cmd),
    .cmd_valid_i       (cmd_valid),
    .cmd_ready_o       (cmd_ready),
    .owner_o           (owner),
    .owner_valid_o     (owner_valid),
    .admin_o           (admin_cmd),
    .admin_valid_o     (admin_cmd_valid),
    .admin_ready_i     (admin_cmd_ready),
    .data_o            (io_data),
    .data_valid_o      (io_data_valid),
    .data_ready_i      (io_data_ready),
    .done_i            (done),
    .done_valid_i      (cpl_valid[0] && cpl_ready[0]),
    .abort_i           (abort),
    .abort_done_o      (abort_done),
    .aborted_o         (aborted),
    .abort_slot_qid_i  (abort_slot_qid),
    .abort_slot_cid_i  (abort_slot_cid),
    .query_valid_o     (data_abort_valid_o),
    .query_slot_o      (data_abort_slot_o),
    .query_current_o   (data_abort_current_o),
    .query_deleted_o   (data_abort_deleted_o),
    .query_ready_i     (data_abort_ready_i),
    .query_found_i     (data_abort_found_i),
    .posted_i          (posted),
    .posted_valid_i    (posted_valid),
    .cpl_o             (cpl[1]),
    .cpl_valid_o       (cpl_valid[1]),
    .cpl_ready_i       (cpl_ready[1]),
    .engine_cpl_o      (cpl[3]),
    .engine_cpl_valid_o(cpl_valid[3]),
    .engine_cpl_ready_i(cpl_ready[3]),
    .m_engine
  );

  assign cfg_fire = cfg_valid && fetch_cfg_ready && completion_cfg_ready;

  nvme_admin #(
    .NumIoQueues  (NumIoQueues),
    .QueueEntries (QueueEntries),
    .NumEvents    (NumEvents),
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes),
    .DoorbellBuffer(DoorbellBuffer)
  ) u_admin (
    .clk_i,
    .rst_ni,
    .busy_o           (admin_busy),
    .waiting_o        (admin_waiting),
    .init_i           (init),
    .init_done_o      (init_done),
    .flush_i          (flush),
    .flush_done_o     (flush_done),
    .used_i           (used),
    .parked_o         (parked),
    .setup_i          (setup),
    .cmd_i            (admin_cmd),
    .cmd_valid_i      (admin_cmd_valid),
    .cmd_ready_o      (admin_cmd_ready),
    .done_o           (admin_done),
    .cfg_o            (cfg),
    .cfg_valid_o      (cfg_valid),
    .cfg_fire_i       (cfg_fire),
    .sq_valid_i       (sq_valid),
    .cq_valid_i       (cq_valid),
    .sq_qid_o         (admin_qid),
    .sq_cqid_i        (admin_cqid),
    .sq_idle_i        (admin_sq_idle),
    .unreserve_valid_o(unreserve_valid),
    .unreserve_ready_i(unreserve_ready),
    .reserve_valid_o  (reserve_valid),
    .reserve_done_i   (reserve_done),
    .reserve_ok_i     (reserve_ok),
    .cq_moved_i       (cq_moved),
    .event_i          (event_next),
    .event_valid_i    (event_valid),
    .event_report_o   (event_report),
    .feature_o        (feature),
    .feature_valid_o  (feature_valid),
    .uncoalesced_o    (uncoalesced),
    .log_start_o      (log_start),
    .log_clear_o      (log_clear),
    .time_valid_o     (time_valid),
    .time_hours_o     (time_hours),
    .time_done_i      (time_done),
    .data_in_valid_o  (data_in_valid),
    .data_in_done_i   (data_in_done),
    .data_in_status_i (data_in_status),
    .data_in_long_o   (data_in_long),
    .data_in_byte_i   (data_in[7:0]),
    .timestamp_set_o  (timestamp_set),
    .acre_o           (acre),
    .keep_alive_o     (to_keep_alive),
    .keep_alive_i     (from_keep_alive),
    .shadow_set_o     (shadow_set),
    .abort_o          (abort),
    .abort_done_i     (abort_done),
    .aborted_i        (aborted),
    .stop_i           (data_stop_o),
    .in_flight_i      (flying),
    .formatting_o     (formatting),
    .page_o           (page),
    .page_nsid_o      (page_nsid),
    .data_o           (admin_data),
    .data_valid_o     (admin_data_valid),
    .data_ready_i     (admin_data_ready),
    .data_status_i    (done.status),
    .data_done_i      (admin_done_valid),
    .data_slot_o      (admin_data_slot),
    .data_wait_o      (admin_data_wait),
    .cpl_o            (admin_cpl),
    .cpl_valid_o      (admin_cpl_valid),
    .cpl_ready_i      (admin_cpl_ready)
  );

  // A command that creates a queue or configures shadow doorbells ends when the host can rely on
  // EventIdx. The slice decouples the choice among completions from the state of nvme_admin.
  ns_skid #(
    .Width($bits(cpl_t))
  ) u_admin_cpl (
    .clk_i,
    .rst_ni,
    .in_valid_i (admin_cpl_valid && (shadow_armed || !fetch)),
    .in_ready_o (admin_cpl_slice_ready),
    .in_data_i  (admin_cpl),
    .out_valid_o(cpl_valid[2]),
    .out_ready_i(cpl_ready[2]),
    .out_data_o (cpl[2])
  );

  assign admin_cpl_ready = admin_cpl_slice_ready && (shadow_armed || !fetch);

  // Events, logs and time.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bad_register_q <= 1'b0;
      bad_value_q <= 1'b0;
    end else begin
      // A value from the shadow page may arrive after the deletion of its queue.
      bad_register_q <= rdy && (db_unknown || ((tail_bad_qid || head_bad_qid) && !db_shadow));
      bad_value_q <= rdy && (tail_bad_value || head_bad_value);
    end
  end

  nvme_events u_events (
    .clk_i,
    .rst_ni,
    .busy_o         (events_busy),
    .reset_i        (clear),
    .active_i       (rdy),
    .feature_i      (feature),
    .feature_valid_i(feature_valid),
    .bad_register_i (bad_register_q),
    .bad_value_i    (bad_value_q),
    .temperature_i,
    .ns_changed_i   (ns_listed),
    .warning_o      (warning),
    .clear_i        ({3{log_clear}} & {page == PageChangedNs, page == PageSmartLog, page == PageErrorLog}),
    .event_o        (event_next),
    .valid_o        (event_valid),
    .report_i       (event_report)
  );

  nvme_keep_alive #(
    .ClockKhz(ClockKhz)
  ) u_keep_alive (
    .clk_i,
    .rst_ni,
    .busy_o    (keep_alive_busy),
    .cycles_i,
    .reset_i   (clear),
    .active_i  (fetch),
    .admin_i   (to_keep_alive),
    .admin_o   (from_keep_alive),
    .armed_o   (alarm_o),
    .deadline_o(alarm_cycles_o),
    .expired_o (keep_alive_expired)
  );

  nvme_pages #(
    .NumSlots     (NumSlots),
    .NumErrors    (NumErrors),
    .NumEvents    (NumEvents),
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes),
    .MaxDeallocate(MaxDeallocate),
    .VendorId     (VendorId),
    .ClockKhz     (ClockKhz),
    .Routes       (Routes),
    .DoorbellBuffer(DoorbellBuffer)
  ) u_pages (
    .clk_i,
    .rst_ni,
    .busy_o         (pages_busy),
    .reset_i        (clear),
    .serial_i,
    .eui64_i,
    .cycles_i,
    .temperature_i,
    .ns_changed_i,
    .ns_listed_o    (ns_listed),
    .warning_i      (warning),
    .page_i         (page),
    .page_nsid_i    (page_nsid),
    .snapshot_i     (log_start),
    .clear_i        (log_clear),
    .time_valid_i   (time_valid),
    .time_hours_i   (time_hours),
    .time_done_o    (time_done),
    .timestamp_set_i(timestamp_set),
    .timestamp_i    (data_in[47:0]),
    .acre_i         (acre),
    .owner_i        (owner),
    .owner_valid_i  (owner_valid),
    .start_i        (io_data_valid && io_data_ready),
    .start_slot_i   (io_data.slot),
    .start_op_i     (io_data.op),
    .start_bytes_i  (io_data.bytes),
    .end_i          (cpl_valid[0] && cpl_ready[0]),
    .end_slot_i     (done.slot),
    .end_status_i   (done.status),
    .posted_i       (posted),
    .posted_valid_i (posted_valid),
    .bad_register_i (bad_register_q),
    .bad_value_i    (bad_value_q),
    .expired_i      (keep_alive_expired),
    .ar_i           (s_adm.ar),
    .ar_valid_i     (s_adm.ar_valid),
    .ar_ready_o     (s_adm.ar_ready),
    .r_o            (s_adm.r),
    .r_valid_o      (s_adm.r_valid),
    .r_ready_i      (s_adm.r_ready)
  );

  logic unused;
  assign unused = ^data_in[63:48];

  // Fetching is off: the controller is being disabled, reset or shut down, or has failed. Long
  // operations then end, since the host does not wait for them (CAP.TO). Fetching resumes only
  // after everything has ended.
  assign data_stop_o = !fetch;

  // Data commands: those of nvme_admin are rare, and have priority. A valid command stays.
  logic io_shown_q, admin_first;
  assign admin_first = admin_data_valid && !io_shown_q;
  assign data_cmd_o = admin_first ? admin_data : io_data;
  assign data_cmd_valid_o = admin_data_valid || io_data_valid;
  assign admin_data_ready = admin_first && data_cmd_ready_i;
  assign io_data_ready = !admin_first && data_cmd_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) io_shown_q <= 1'b0;
    else io_shown_q <= io_data_valid && !admin_first && !data_cmd_ready_i;
  end

  // Ended data commands: nvme_admin completes the ones that it issued. Much logic depends on them
  // in their cycle, so they come from registers, together with their owner. nvme_admin waits before
  // its command can have ended.
  logic done_admin;
  ns_skid #(
    .Width($bits(data_done_t) + 1)
  ) u_done (
    .clk_i,
    .rst_ni,
    .in_valid_i (data_done_valid_i),
    .in_ready_o (data_done_ready_o),
    .in_data_i  ({admin_data_wait && data_done_i.slot == admin_data_slot, data_done_i}),
    .out_valid_o(done_valid),
    .out_ready_i(done_admin || cpl_ready[0]),
    .out_data_o ({done_admin, done})
  );

  assign cpl[0] = '{silent: 1'b0, slot: done.slot, status: data_status(done.status, acre), dw0: '0};
  assign cpl_valid[0] = done_valid && !done_admin;
  assign admin_done_valid = done_valid && done_admin;

  nvme_completion #(
    .NumQueues (NumQueues),
    .NumSources(4)
  ) u_completion (
    .clk_i,
    .rst_ni,
    .busy_o           (completion_busy),
    .clear_i          (clear),
    .head_valid_i     (db_valid && db_cq),
    .head_ready_o     (head_ready),
    .head_qid_i       (db_qid),
    .head_i           (db_value),
    .head_bad_qid_o   (head_bad_qid),
    .head_bad_value_o (head_bad_value),
    .cfg_ready_o      (completion_cfg_ready),
    .cfg_fire_i       (cfg_fire),
    .cfg_i            (cfg),
    .cq_valid_o       (cq_valid),
    .cq_qid_i         (cq_qid),
    .cq_head_o        (cq_head),
    .cq_size_o        (cq_size),
    .cq_moved_o       (cq_moved),
    .cpl_i            (cpl),
    .cpl_valid_i      (cpl_valid),
    .cpl_ready_o      (cpl_ready),
    .slot_o           (cpl_slot),
    .slot_qid_i       (cpl_qid),
    .slot_cid_i       (cpl_cid),
    .sq_qid_o         (sq_qid),
    .sq_cqid_i        (sq_cqid),
    .sq_head_i        (sq_head),
    .retire_o         (retire),
    .posted_o         (posted),
    .posted_valid_o   (posted_valid),
    .irq_o            (posted_irq),
    .irq_vector_o     (posted_irq_vector),
    .irq_admin_o      (posted_irq_admin),
    .withdraw_o       (emptied),
    .withdraw_vector_o(emptied_vector),
    .msg_id_i         (msix_i.msg_valid ? '0 : IdShadow),
    .msg_addr_i       (msix_i.msg_valid ? msix_i.msg_addr : shadow_msg_addr),
    .msg_data_i       (msix_i.msg_valid ? msix_i.msg_data : shadow_msg_data),
    .msg_valid_i      (msix_i.msg_valid || shadow_msg_valid),
    .msg_ready_o      (msg_ready),
    .write_o          (post),
    .write_valid_o    (post_valid),
    .write_room_i     (post_room)
  );

  nvme_host_writes u_host_writes (
    .clk_i,
    .rst_ni,
    .busy_o       (post_busy),
    .room_o       (post_room),
    .write_i      (post),
    .write_valid_i(post_valid),
    .aw_o         (m_host.aw),
    .aw_valid_o   (m_host.aw_valid),
    .aw_ready_i   (m_host.aw_ready),
    .w_o          (m_host.w),
    .w_valid_o    (m_host.w_valid),
    .w_ready_i    (m_host.w_ready),
    .b_i          (m_host.b),
    .b_valid_i    (m_host.b_valid),
    .b_ready_o    (m_host.b_ready),
    .mark_i       (post_mark),
    .marked_done_o(post_marked_done),
    .error_o      (write_error)
  );

  nvme_trace u_trace (
    .clk_i,
    .rst_ni,
    .fetch_i      (slot_alloc),
    .fetch_slot_i (free_slot),
    .fetch_qid_i  (slot_alloc_qid),
    .fetch_head_i (slot_alloc_head),
    .decode_i     (owner_valid),
    .decode_qid_i (owner.qid),
    .sqe_i        (admin_cmd),
    .start_i      (data_cmd_valid_o && data_cmd_ready_i),
    .start_slot_i (data_cmd_o.slot),
    .done_i       (admin_done_valid || (cpl_valid[0] && cpl_ready[0])),
    .done_slot_i  (done.slot),
    .post_i       (posted_valid),
    .retire_i     (retire),
    .retire_slot_i(cpl_slot),
    .cqe_addr_i   (post.addr),
    .cqe_i        (post.data),
    .irq_i        (posted_irq),
    .irq_vector_i (posted_irq_vector),
    .msg_i        (msix_i.msg_valid && msg_ready),
    .msg_vector_i (msix_i.msg_vector),
    .msg_addr_i   (msix_i.msg_addr),
    .msg_data_i   (msix_i.msg_data),
    .event_o      (trace_event_o),
    .sqe_o        (trace_sqe_o),
    .cqe_o        (trace_cqe_o),
    .irq_o        (trace_irq_o)
  );

  logic work_pending, others_busy;
  assign others_busy = bar0_busy || state_busy || fetch_busy || shadow_busy || db_valid || pages_busy || completion_busy || post_busy
                || msix_i.busy || events_busy || bad_register_q || bad_value_q || commands_busy || keep_alive_busy;
  assign work_pending = others_busy || admin_busy;
  assign busy_o = work_pending || coalesce_busy || used != parked;

  // For a simulation: everything here waits for a time, namely held interrupts and first commands
  // of fused pairs. Nothing else depends on the time while the controller is busy; cycles_q is
  // correct while its clock runs.
  logic coalesce_only_waits, fused_only_waits;
  assign coalesce_only_waits = !coalesce_busy || coalesce_remaining != '0;
  assign fused_only_waits = used == parked + fused_kept_count;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) wait_o <= '0;
    else if (work_pending || !coalesce_only_waits || !fused_only_waits) wait_o <= '0;
    else if (!coalesce_busy) wait_o <= (fused_kept_count == '0) ? '0 : fused_remaining;
    else
      wait_o <= (fused_kept_count != '0 && fused_remaining < coalesce_remaining) ? fused_remaining : coalesce_remaining;
  end
  always_ff @(posedge clk_i) cycles_q <= cycles_i[31:0];
  assign waiting_o = !others_busy && !coalesce_busy && (!admin_busy || admin_waiting) && !fused_waiting && !done_valid;

  if (NumIoQueues < 1 || NumIoQueues > 127) begin : gen_bad_queues
    $error("nvme_front: NumIoQueues must be 1 to 127");
  end
  if (QueueEntries < 16 || QueueEntries > 65536 || 2 ** $clog2(
          QueueEntries
      ) != QueueEntries) begin : gen_bad_entries
    $error("nvme_front: QueueEntries must be a power of two, 16 to 65536");
  end
  if (NumSlots < 8 || NumSlots > 128) begin : gen_bad_slots
    $error("nvme_front: NumSlots must be 8 to 128");
  end
  if (FetchDepth < 1 || FetchDepth > 64) begin : gen_bad_depth
    $error("nvme_front: FetchDepth must be 1 to 64");
  end

  `NS_ASSERT(admin_waiting_for_its_own,
             !done_valid || done.slot != admin_data_slot || admin_data_wait == done_admin)
  `NS_ASSERT(data_cmd_stable, !io_shown_q || (io_data_valid && !admin_first))
  // Except for messages of other blocks.
  `NS_ASSERT(
      no_dma_when_off,
      rdy || init || setup.en || !(m_host.ar_valid || (post_valid && !(msix_i.msg_valid && 32'(msix_i.msg_vector) >= NumQueues))))

endmodule
