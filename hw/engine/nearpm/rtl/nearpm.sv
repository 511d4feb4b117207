// SPDX-License-Identifier: Apache-2.0

// Crash-consistency engine: makes logs, checkpoints and shadow copies of persistent objects near
// memory. Its commands and the host's accesses have one order.
//
// docs/hardware/nearpm.md describes the operation and the structure. When the function stops
// (`stop_i`), the state of the engine is saved to the end of the media. It is restored after the
// reset.
`include "ns_assert.svh"
`include "ns_axil_regs.svh"

module nearpm
  import ns_axi_pkg::*;
  import command_page_pkg::*;
  import nearpm_pkg::*;
  import nearpm_job_pkg::*;
#(
  /// Memory channels, a power of two.
  parameter int unsigned NumChannels = 2,
  /// Bytes that go to one channel before the next channel follows, a power of two.
  parameter int unsigned Granule = 4096,
  /// Bytes of the media.
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  /// Units, 1 to 16.
  parameter int unsigned Units = 4,
  /// Lines that a unit may read in 1024 cycles, 1 to 1024.
  parameter int unsigned UnitLines = 1024,
  /// Units that share this rate. They are contexts of one unit of that rate: it executes as many
  /// commands at once.
  parameter int unsigned RateUnits = 1
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// A further clock edge can change the state without new input. From registers.
  output logic     busy_o,
  /// The function is about to be reset, or the power fails; held until then. From a register.
  input  logic     stop_i,
  /// The persistence domain is in the memory. From registers.
  output logic     saved_o,
  /// All restored commands and lines have ended: the PM window may pass. From a register.
  output logic     open_o,
  /// Registers.
  ns_axil_if.slave s_axil,
  /// Command page.
  command_page_if.engine s_page,
  /// Host port, to the peers in other devices and to host memory.
  ns_axi_if.master m_host,
  /// Memory, one master per channel; addresses are local to the channel.
  ns_axi_if.master m_mem[NumChannels],
  /// Conflict filter: accesses of the PM window and of the NVMe controller.
  ns_axi_if.slave  s_hook_pm[NumChannels],
  ns_axi_if.master m_hook_pm[NumChannels],
  ns_axi_if.slave  s_hook_nvme[NumChannels],
  ns_axi_if.master m_hook_nvme[NumChannels]
);

  // Units share buses so that their AXI IDs fit.
  localparam int unsigned PerBus = (Units + 3) / 4;
  localparam int unsigned Buses = (Units + PerBus - 1) / PerBus;
  localparam int unsigned Masters = Buses + 1;
  localparam int unsigned IdBits = 4 + unsigned'($clog2(NumChannels)) - unsigned'($clog2(Masters));
  localparam int unsigned Bursts = (IdBits > 3) ? 8 : 1 << IdBits;
  localparam int unsigned BurstBytes = 512;

  logic
      freeze,
      table_busy,
      decode_busy,
      dispatch_busy,
      save_busy,
      peers_busy,
      progress_busy,
      progress_written_q,
      track_busy,
      regs_open,
      restored,
      restore_failed,
      restore_failed_q,
      lost,
      unkept,
      live_q,
      mapped,
      forget;
  logic [NumChannels-1:0] filter_busy;
  logic open_q;

  // ---------------------------------------------------------------- commands

  // `decode_*` are commands of the host, `track_*` internal records. `insert_*` are those that
  // enter the table.
  logic
      response_valid,
      response_ready,
      decode_valid,
      track_valid,
      inserted,
      log_open,
      log_closed,
      unit_done_valid;
  result_t response;
  logic [LineWidth-1:0] decode_line;
  page_done_t unit_done;
  job_t decode_job, track_job, insert_job;
  ranges_t decode_ranges, track_ranges, insert_ranges;
  logic [CommandBits-1:0] track_number, insert_number;
  logic track_contexts, track_read, track_log_write, tracking;
  logic [LogBits-1:0] track_log;
  log_t track_new_log;
  tracked_pool_t [Pools-1:0] tracked_pools, track_pools;
  logic [NumChannels-1:0] store_present, track_line_valid, track_done;
  pool_number_t [NumChannels-1:0] track_line_pool;
  line_t [NumChannels-1:0] track_line;
  logic
      context_read,
      pool_write,
      decode_log_write,
      log_write,
      close_valid,
      close_spoiled,
      pool_overlap;
  logic [MediaBits-13:0] first_page, last_page;
  logic [LogBits-1:0] decode_log, context_log, close_log;
  pool_t pool, new_pool;
  log_t log_read_data, decode_log_write_data, log_write_data;
  logic numbered;
  logic [Devices-1:0] peer_registered_q, peer_notified_q;
  logic [DeviceBits-1:0] own;
  sequence_t completed;

  nearpm_decode #(
    .MediaBytes(MediaBytes)
  ) u_decode (
    .clk_i,
    .rst_ni,
    .freeze_i      (freeze),
    .restore_failed_i      (restore_failed_q),
    .hold_i        (store_present != '0),
    .busy_o        (decode_busy),
    .cmd_i         (s_page.cmd),
    .line_i        (s_page.line),
    .cmd_valid_i   (s_page.cmd_valid),
    .cmd_ready_o   (s_page.cmd_ready),
    .response_valid_o(response_valid),
    .response_ready_i(response_ready),
    .response_o      (response),
    .line_o        (decode_line),
    .read_o        (context_read),
    .index_o       (decode_log),
    .pool_i        (pool),
    .log_i         (log_read_data),
    .first_page_o  (first_page),
    .last_page_o   (last_page),
    .pool_overlap_i    (pool_overlap),
    .pool_write_o  (pool_write),
    .pool_o        (new_pool),
    .log_write_o   (decode_log_write),
    .log_o         (decode_log_write_data),
    .own_i         (numbered ? Devices'(1) << own : '0),
    .completed_i   (completed),
    .insert_valid_o      (decode_valid),
    .job_o         (decode_job),
    .ranges_o      (decode_ranges),
    .inserted_i    (inserted && !track_contexts)
  );

  // An internal record and a command of the host are never made at the same time.
  assign insert_number = track_contexts ? track_number : CommandBits'(decode_line);
  assign insert_job = track_contexts ? track_job : decode_job;
  assign insert_ranges = track_contexts ? track_ranges : decode_ranges;
  assign context_log = track_contexts ? track_log : decode_log;
  assign log_write = decode_log_write || track_log_write;
  assign log_write_data = track_contexts ? track_new_log : decode_log_write_data;

  // Unit completions have priority over decode responses. A pending response blocks decode, so at
  // most one is outstanding.
  assign response_ready = !unit_done_valid;
  assign s_page.done_valid = unit_done_valid || (response_valid && (!freeze || restore_failed_q));
  assign s_page.done = unit_done_valid ? unit_done : '{line: decode_line, result: 32'(response), value: '0};

  // ---------------------------------------------------------------- save and restore

  logic [CommandBits-1:0] save_number, restore_number;
  logic [7:0] save_context, restore_context_index;
  logic [LogBits-1:0] save_close_log;
  logic [6:0] save_entry, restore_entry_index;
  logic [LogBits:0] save_peers, restore_peers_index;
  job_t save_job, restore_job;
  logic
      save_close_valid,
      save_valid,
      save_stale,
      restore_stale,
      restore_command,
      restore_cancelled,
      restore_context,
      quiet;
  commands_t save_commands, cancelled, restore_commands, restore_cancelled_commands, dropped;
  logic [NumChannels-1:0][7:0] save_lines, restore_lines;
  logic restore_peers;
  logic [511:0] save_context_data, save_peers_data, restore_data;
  logic [NumChannels-1:0][511:0] save_entries;
  logic [NumChannels-1:0] restore_entry;
  ns_axi_if master[Masters] ();

  // `nearpm_peers` uses the contexts while no command is being decoded, and no record made.
  logic peers_read, peers_write;
  logic [LogBits-1:0] peers_log;
  log_t peers_new;

  nearpm_contexts u_contexts (
    .clk_i,
    .rst_ni,
    .read_i         (context_read || track_read || peers_read),
    .index_i        ((peers_read || peers_write) ? peers_log : context_log),
    .pool_o         (pool),
    .log_o          (log_read_data),
    .open_o         (log_open),
    .closed_o       (log_closed),
    .mapped_o       (mapped),
    .tracked_o      (tracked_pools),
    .tracking_o     (tracking),
    .first_page_i   (first_page),
    .last_page_i    (last_page),
    .pool_overlap_o     (pool_overlap),
    .pool_write_i   (pool_write),
    .pool_i         (new_pool),
    .log_write_i    (log_write || peers_write),
    .log_i          (peers_write ? peers_new : log_write_data),
    .close_valid_i        (close_valid || save_close_valid),
    .close_index_i  (save_close_valid ? save_close_log : close_log),
    .close_spoiled_i (close_valid && close_spoiled),
    .save_i         (freeze && !peers_read),
    .save_index_i   (save_context),
    .save_data_o    (save_context_data),
    .restore_i      (restore_context),
    .restore_index_i(restore_context_index),
    .restore_data_i (restore_data)
  );

  nearpm_save #(
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .MediaBytes (MediaBytes)
  ) u_save (
    .clk_i,
    .rst_ni,
    .stop_i,
    .quiet_i                (quiet),
    .saved_o,
    .freeze_o               (freeze),
    .busy_o                 (save_busy),
    .restored_o             (restored),
    .restore_failed_o               (restore_failed),
    .live_i                 (live_q),
    .forget_i               (forget),
    .lost_o                 (lost),
    .unkept_o               (unkept),
    .number_o               (save_number),
    .context_o              (save_context),
    .entry_o                (save_entry),
    .peers_o                (save_peers),
    .job_i                  (save_job),
    .stale_i                (save_stale),
    .command_valid_i        (save_valid),
    .commands_i             (save_commands),
    .lines_i                (save_lines),
    .cancelled_i               (cancelled),
    .dropped_i              (dropped),
    .close_valid_o                (save_close_valid),
    .close_log_o            (save_close_log),
    .context_i              (save_context_data),
    .entry_i                (save_entries),
    .peers_i                (save_peers_data),
    .restore_command_o      (restore_command),
    .restore_number_o       (restore_number),
    .restore_job_o          (restore_job),
    .restore_stale_o        (restore_stale),
    .restore_commands_o     (restore_commands),
    .restore_lines_o        (restore_lines),
    .restore_cancelled_o       (restore_cancelled),
    .restore_cancelled_commands_o(restore_cancelled_commands),
    .restore_context_o      (restore_context),
    .restore_context_index_o(restore_context_index),
    .restore_entry_o        (restore_entry),
    .restore_entry_index_o  (restore_entry_index),
    .restore_peers_o        (restore_peers),
    .restore_peers_index_o  (restore_peers_index),
    .restore_data_o         (restore_data),
    .m_axi                  (master[Buses])
  );

  // Writes of all masters that the memory has not answered.
  localparam int unsigned InFlightBits = 10;
  logic [InFlightBits-1:0] writes_in_flight_q, aw_count, b_count;
  logic [Masters-1:0] aw_fire, b_fire;

  for (genvar m = 0; m < Masters; m++) begin : gen_fire
    assign aw_fire[m] = master[m].aw_valid && master[m].aw_ready;
    assign b_fire[m] = master[m].b_valid && master[m].b_ready;
  end
  always_comb begin
    aw_count = '0;
    b_count = '0;
    for (int unsigned m = 0; m < Masters; m++) begin
      aw_count += InFlightBits'(aw_fire[m]);
      b_count += InFlightBits'(b_fire[m]);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) writes_in_flight_q <= '0;
    else writes_in_flight_q <= writes_in_flight_q + aw_count - b_count;
  end
  assign quiet = writes_in_flight_q == '0;

  // ---------------------------------------------------------------- order

  nearpm_lookup_if lookup[NumChannels] ();
  nearpm_order_if order[NumChannels] ();
  commands_t present, ready, retired, insert_after;
  logic issue_valid, retire_valid;
  logic [CommandBits-1:0] issue_number, retire_number;

  nearpm_table #(
    .NumChannels(NumChannels)
  ) u_table (
    .clk_i,
    .rst_ni,
    .freeze_i          (freeze),
    .busy_o            (table_busy),
    .insert_valid_i          (decode_valid || track_valid),
    .insert_number_i   (insert_number),
    .insert_ranges_i   (insert_ranges),
    .insert_internal_i (track_contexts),
    .insert_after_i   (insert_after),
    .inserted_o        (inserted),
    .present_o         (present),
    .ready_o           (ready),
    .issue_valid_i           (issue_valid),
    .issue_number_i    (issue_number),
    .retire_valid_i             (retire_valid),
    .retire_number_i      (retire_number),
    .retired_o           (retired),
    .dropped_o         (dropped),
    .save_number_i     (save_number),
    .save_valid_o      (save_valid),
    .save_commands_o   (save_commands),
    .save_lines_o      (save_lines),
    .restore_i         (restore_command),
    .restore_number_i  (restore_number),
    .restore_ranges_i  (ranges_of(restore_job)),
    .restore_commands_i(restore_commands),
    .restore_lines_i   (restore_lines),
    .lookup,
    .order
  );

  logic [NumChannels-1:0] store_queued, line_error;
  logic [NumChannels-1:0][6:0] queue_lines;
  logic [NumChannels-1:0][4:0] loads;

  for (genvar c = 0; c < NumChannels; c++) begin : gen_filter
    ns_axi_if pm ();
    ns_axi_if tracked ();
    ns_axi_if nvme ();

    nearpm_isolate u_isolate_pm (
      .clk_i,
      .rst_ni,
      .isolate_i(restore_failed_q),
      .s_axi (s_hook_pm[c]),
      .m_axi (pm)
    );

    nearpm_isolate u_isolate_nvme (
      .clk_i,
      .rst_ni,
      .isolate_i(restore_failed_q),
      .s_axi (s_hook_nvme[c]),
      .m_axi (nvme)
    );

    nearpm_track #(
      .NumChannels(NumChannels),
      .Granule    (Granule),
      .Channel    (c)
    ) u_track (
      .clk_i,
      .rst_ni,
      .tracking_i  (tracking),
      .pools_i     (track_pools),
      .present_o   (store_present[c]),
      .line_valid_o(track_line_valid[c]),
      .line_pool_o (track_line_pool[c]),
      .line_o      (track_line[c]),
      .done_i      (track_done[c]),
      .s_axi       (pm),
      .m_axi       (tracked)
    );

    nearpm_filter #(
      .NumChannels(NumChannels),
      .Granule    (Granule),
      .Channel    (c)
    ) u_filter (
      .clk_i,
      .rst_ni,
      .freeze_i       (freeze),
      .busy_o         (filter_busy[c]),
      .retired_i        (retired),
      .lookup         (lookup[c]),
      .order          (order[c]),
      .save_index_i   (save_entry),
      .save_data_o    (save_entries[c]),
      .restore_i      (restore_entry[c]),
      .restore_index_i(restore_entry_index),
      .restore_data_i (restore_data),
      .store_queued_o       (store_queued[c]),
      .lines_o        (queue_lines[c]),
      .loads_o        (loads[c]),
      .line_error_o   (line_error[c]),
      .s_pm      (tracked),
      .m_pm      (m_hook_pm[c]),
      .s_nvme    (nvme),
      .m_nvme    (m_hook_nvme[c])
    );
  end

  // ---------------------------------------------------------------- tracked pools

  logic [Pools-1:0] map;
  logic generation_valid;
  // Only two members are used.
  // verilator lint_off UNUSEDSIGNAL
  pool_t restored_pool;
  // verilator lint_on UNUSEDSIGNAL

  // A pool that is mapped or restored has no lines in the set.
  assign restored_pool = pool_t'(restore_data[$bits(pool_t)-1:0]);

  for (genvar p = 0; p < Pools; p++) begin : gen_map
    assign map[p] = (pool_write && new_pool.tracked[0] && pool_of(
        context_log
    ) == pool_number_t'(p)) || (restore_context && restored_pool.mapped &&
                                restored_pool.tracked[0] && restore_context_index == 8'(p));
  end

  // A log that is empty is one of a new generation.
  assign generation_valid = (log_write && log_write_data.next == 32'd64) || peers_write;

  nearpm_track_record #(
    .NumChannels(NumChannels)
  ) u_track_record (
    .clk_i,
    .rst_ni,
    .freeze_i          (freeze),
    .busy_o            (track_busy),
    .pools_i           (tracked_pools),
    .pools_o           (track_pools),
    .line_valid_i      (track_line_valid),
    .line_pool_i       (track_line_pool),
    .line_i            (track_line),
    .done_o            (track_done),
    .commands_free_i   (!decode_busy),
    .map_i             (map),
    .generation_valid_i(generation_valid),
    .generation_log_i  (peers_write ? peers_log : context_log),
    .contexts_o        (track_contexts),
    .read_o            (track_read),
    .log_o             (track_log),
    .pool_i            (pool),
    .log_i             (log_read_data),
    .log_write_o       (track_log_write),
    .new_log_o         (track_new_log),
    .present_i         (present),
    .insert_valid_o    (track_valid),
    .insert_number_o   (track_number),
    .insert_job_o      (track_job),
    .insert_ranges_o   (track_ranges),
    .inserted_i        (inserted && track_contexts)
  );

  // ---------------------------------------------------------------- units

  job_t job;
  delete_t delete;
  logic delete_valid, delete_ready, delete_done, hold, commit_done_valid, commit_done_ready;
  logic [LogBits-1:0] commit_done_log;
  logic [63:0] commit_done_generation, progress_transaction;
  logic progress_valid, progress_opens;
  logic [LogBits-1:0] progress_log;
  logic [Units-1:0] job_valid, job_ready, unit_end_valid, unit_end_ready;
  unit_end_t [Units-1:0] unit_end;

  nearpm_dispatch #(
    .Units(Units)
  ) u_dispatch (
    .clk_i,
    .rst_ni,
    .freeze_i        (freeze),
    .busy_o          (dispatch_busy),
    .inserted_i        (inserted),
    .insert_number_i (insert_number),
    .insert_job_i    (insert_job),
    .insert_open_i   (log_open),
    .insert_closed_i (log_closed),
    .insert_after_o        (insert_after),
    .ready_i         (ready),
    .issue_valid_o         (issue_valid),
    .issue_number_o  (issue_number),
    .retire_valid_o           (retire_valid),
    .retire_number_o    (retire_number),
    .job_o           (job),
    .job_valid_o     (job_valid),
    .job_ready_i     (job_ready),
    .unit_end_i           (unit_end),
    .unit_end_valid_i     (unit_end_valid & {Units{!response_valid}}),
    .unit_end_ready_o     (unit_end_ready),
    .delete_valid_i  (delete_valid),
    .delete_i        (delete),
    .delete_ready_o  (delete_ready),
    .delete_done_o       (delete_done),
    .hold_i          (hold),
    .pool_change_valid_i        (pool_write),
    .pool_change_number_i   (context_log[LogBits-1:ThreadBits]),
    .commit_done_valid_o      (commit_done_valid),
    .commit_done_log_o  (commit_done_log),
    .commit_done_generation_o(commit_done_generation),
    .commit_done_ready_i(commit_done_ready),
    .progress_valid_o(progress_valid),
    .progress_opens_o(progress_opens),
    .progress_log_o  (progress_log),
    .progress_transaction_o(progress_transaction),
    .done_valid_o          (unit_done_valid),
    .done_data_o     (unit_done),
    .close_valid_o         (close_valid),
    .close_log_o     (close_log),
    .close_spoiled_o  (close_spoiled),
    .save_number_i   (save_number),
    .save_job_o      (save_job),
    .save_stale_o    (save_stale),
    .cancelled_o        (cancelled),
    .restore_i       (restore_command),
    .restore_number_i(restore_number),
    .restore_job_i   (restore_job),
    .restore_stale_i (restore_stale),
    .restore_cancelled_i(restore_cancelled),
    .cancelled_i        (restore_cancelled_commands)
  );

  // Unit n reads at rate n, modulo their number. So units that are assigned first share none.
  localparam int unsigned Rates = (Units + RateUnits - 1) / RateUnits;
  logic [Units-1:0] read_request, read_accepted, read_open;
  logic [Units-1:0][7:0] read_len;

  for (genvar r = 0; r < Rates; r++) begin : gen_rate
    localparam int unsigned Sharing = (Units - r + Rates - 1) / Rates;
    logic [Sharing-1:0] request, accepted, open;
    logic [Sharing-1:0][7:0] len;

    for (genvar s = 0; s < Sharing; s++) begin : gen_sharing
      assign request[s] = read_request[r+s*Rates];
      assign accepted[s] = read_accepted[r+s*Rates];
      assign len[s] = read_len[r+s*Rates];
      assign read_open[r+s*Rates] = open[s];
    end

    nearpm_rate #(
      .Units     (Sharing),
      .Lines     (UnitLines),
      .BurstBytes(BurstBytes)
    ) u_rate (
      .clk_i,
      .rst_ni,
      .request_i (request),
      .accepted_i(accepted),
      .len_i     (len),
      .open_o    (open)
    );
  end

  for (genvar b = 0; b < Buses; b++) begin : gen_bus
    localparam int unsigned Here = (Units - b * PerBus < PerBus) ? Units - b * PerBus : PerBus;
    ns_axi_if unit[Here] ();
    ns_axi_if bus ();

    for (genvar u = 0; u < Here; u++) begin : gen_unit
      ns_axi_if own ();
      assign read_request[b*PerBus+u] = own.ar_valid;
      assign read_accepted[b*PerBus+u] = own.ar_valid && own.ar_ready;
      assign read_len[b*PerBus+u] = own.ar.len;

      nearpm_unit #(
        .BurstBytes(BurstBytes),
        .Bursts    (Bursts)
      ) u_unit (
        .clk_i,
        .rst_ni,
        .job_i      (job),
        .job_valid_i(job_valid[b*PerBus+u]),
        .job_ready_o(job_ready[b*PerBus+u]),
        .end_o      (unit_end[b*PerBus+u]),
        .end_valid_o(unit_end_valid[b*PerBus+u]),
        .end_ready_i(unit_end_ready[b*PerBus+u]),
        .m_axi      (own)
      );

      ns_axi_gate u_pace (
        .aw_open_i(1'b1),
        .ar_open_i(read_open[b*PerBus+u]),
        .s_axi    (own),
        .m_axi    (unit[u])
      );
    end

    if (PerBus > 1) begin : gen_share
      ns_axi_if wide ();

      ns_axi_mux #(
        .N     (Here),
        .IdBits(IdBits)
      ) u_mux (
        .clk_i,
        .rst_ni,
        .s_axi(unit),
        .m_axi(wide)
      );

      ns_axi_id_remap #(
        .InBits (IdBits + unsigned'($clog2(PerBus))),
        .OutBits(IdBits)
      ) u_remap (
        .clk_i,
        .rst_ni,
        .s_axi(wide),
        .m_axi(bus)
      );
    end else begin : gen_own
      ns_axi_connect u_link (
        .s_axi(unit[0]),
        .m_axi(bus)
      );
    end

    // No burst is started once the state is saved.
    ns_axi_gate u_gate (
      .aw_open_i(!freeze),
      .ar_open_i(!freeze),
      .s_axi    (bus),
      .m_axi    (master[b])
    );
  end

  ns_axi_if no_local[1] ();
  assign no_local[0].aw_ready = 1'b0;
  assign no_local[0].w_ready = 1'b0;
  assign no_local[0].b = '0;
  assign no_local[0].b_valid = 1'b0;
  assign no_local[0].ar_ready = 1'b0;
  assign no_local[0].r = '0;
  assign no_local[0].r_valid = 1'b0;

  engine_memory #(
    .NumMasters (Masters),
    .IdBits     (IdBits),
    .NumChannels(NumChannels),
    .Granule    (Granule),
    .MediaBytes (MediaBytes)
  ) u_memory (
    .clk_i,
    .rst_ni,
    .s_axi  (master),
    .m_mem,
    .m_local(no_local)
  );

  // ---------------------------------------------------------------- idle

  // A failed restore opens the window too: accesses then end with errors instead of waiting.
  assign open_o = open_q || restore_failed_q;
  // After a failed restore nothing changes until a reset.
  assign busy_o = regs_open || decode_busy || save_busy || (!restore_failed_q && (track_busy || table_busy || dispatch_busy || peers_busy || progress_busy || progress_written_q || peer_registered_q != '0 || peer_notified_q != '0 || filter_busy != '0 || !open_q));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      restore_failed_q <= 1'b0;
      live_q   <= 1'b0;
    end else begin
      // Holds until the reset, even if the save unit leaves its state.
      restore_failed_q <= restore_failed_q || restore_failed;
      live_q   <= mapped || table_busy || queue_lines != '0 || numbered;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (!freeze && !table_busy && queue_lines == '0) open_q <= 1'b1;
  end

  // ---------------------------------------------------------------- registers

  nearpm_regs_pkg::nearpm_regs__in_t hwif_in;
  nearpm_regs_pkg::nearpm_regs__out_t hwif_out;

  ns_axil_if regs ();
  logic settled, notification_pending;

  nearpm_register_gate u_register_gate (
    .clk_i,
    .rst_ni,
    .settled_i(settled && peer_notified_q == '0),
    .notification_pending_i (peer_notified_q != '0 || notification_pending),
    .s_axil,
    .m_axil (regs)
  );

  nearpm_regs u_regs (
    .clk           (clk_i),
    .arst_n        (rst_ni),
    `NS_AXIL_REGS(regs, 12),
    .hwif_in,
    .hwif_out
  );

  ns_axil_outstanding u_open (
    .clk_i,
    .rst_ni,
    .open_o   (regs_open),
    .awvalid_i(s_axil.awvalid),
    .awready_i(s_axil.awready),
    .wvalid_i (s_axil.wvalid),
    .wready_i (s_axil.wready),
    .bvalid_i (s_axil.bvalid),
    .bready_i (s_axil.bready),
    .arvalid_i(s_axil.arvalid),
    .arready_i(s_axil.arready),
    .rvalid_i (s_axil.rvalid),
    .rready_i (s_axil.rready)
  );

  // ---------------------------------------------------------------- several devices

  logic [Devices-1:0][51:0] addresses_q;
  completion_t [Devices-1:0] notifications;
  peers_row_t view;
  sequence_t highest;
  logic restore_own, restored_numbered;
  logic [DeviceBits-1:0] restored_own;

  ns_axi_if host[2] ();

  nearpm_peers u_peers (
    .clk_i,
    .rst_ni,
    .freeze_i           (freeze),
    .busy_o             (peers_busy),
    .numbered_i         (numbered),
    .own_i              (own),
    .select_i           (hwif_out.select.log.value),
    .addresses_i        (addresses_q),
    .peer_registered_i       (peer_registered_q),
    .peer_notified_i             (peer_notified_q),
    .notification_pending_o             (notification_pending),
    .notifications_i            (notifications),
    .view_o             (view),
    .highest_o          (highest),
    .settled_o          (settled),
    .lookup_valid_i             (context_read),
    .lookup_log_i         (context_log),
    .completed_o        (completed),
    .commit_done_valid_i            (commit_done_valid),
    .commit_done_log_i        (commit_done_log),
    .commit_done_generation_i (commit_done_generation),
    .commit_done_ready_o      (commit_done_ready),
    .contexts_free_i            (!decode_busy && !track_contexts),
    .read_o             (peers_read),
    .write_o            (peers_write),
    .log_o              (peers_log),
    .new_log_o          (peers_new),
    .pool_i             (pool),
    .open_i             (log_open),
    .log_i              (log_read_data),
    .change_valid_i          (log_write),
    .change_log_i      (context_log),
    .pool_change_valid_i           (pool_write),
    .close_valid_i           (close_valid),
    .close_log_i       (close_log),
    .delete_valid_o     (delete_valid),
    .delete_o           (delete),
    .delete_ready_i     (delete_ready),
    .delete_done_i          (delete_done),
    .hold_o             (hold),
    .save_index_i       (save_peers),
    .save_data_o        (save_peers_data),
    .restore_own_o      (restore_own),
    .restored_numbered_o(restored_numbered),
    .restored_own_o     (restored_own),
    .restore_i          (restore_peers),
    .restore_index_i    (restore_peers_index),
    .restore_data_i     (restore_data),
    .m_host             (host[0])
  );

  nearpm_progress u_progress (
    .clk_i,
    .rst_ni,
    .freeze_i            (freeze),
    .busy_o              (progress_busy),
    .address_written_i   (progress_written_q),
    .address_i           ({hwif_out.progress[1].word.value, hwif_out.progress[0].word.value[31:12]}),
    .done_valid_i        (progress_valid),
    .done_opens_i        (progress_opens),
    .done_log_i          (progress_log),
    .done_transaction_i  (progress_transaction),
    .pool_change_valid_i (pool_write),
    .pool_change_number_i(pool_of(context_log)),
    .m_host              (host[1])
  );

  ns_axi_mux #(
    .N     (2),
    .IdBits(1)
  ) u_host (
    .clk_i,
    .rst_ni,
    .s_axi(host),
    .m_axi(m_host)
  );

  assign numbered = hwif_out.device.numbered.value;
  assign own = hwif_out.device.own.value;
  for (genvar n = 0; n < Devices; n++) begin : gen_peer
    assign notifications[n] = {hwif_out.done[2*n+1].word.value, hwif_out.done[2*n].word.value};
  end

  assign forget = hwif_out.forget.forget.value;

  // An address takes effect as a whole: no notification goes to half of one.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) addresses_q <= '0;
    else
      for (int unsigned n = 0; n < Devices; n++)
      if (peer_registered_q[n])
        addresses_q[n] <= {hwif_out.peer[2*n+1].word.value, hwif_out.peer[2*n].word.value[31:12]};
  end

  // A device number that the host has already written is not overwritten by the restored one.
  logic own_written, own_written_q, numbered_written, numbered_written_q;
  assign own_written = own_written_q || hwif_out.device.own.swmod;
  assign numbered_written = numbered_written_q || hwif_out.device.numbered.swmod;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      own_written_q <= 1'b0;
      numbered_written_q <= 1'b0;
    end else begin
      own_written_q <= own_written;
      numbered_written_q <= numbered_written;
    end
  end

  // The register words are valid in the cycle that follows `swmod`.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      peer_registered_q <= '0;
      peer_notified_q <= '0;
      progress_written_q <= 1'b0;
    end else begin
      progress_written_q <= hwif_out.progress[1].word.swmod;
      for (int unsigned n = 0; n < Devices; n++) begin
        peer_registered_q[n] <= hwif_out.peer[2*n+1].word.swmod;
        peer_notified_q[n] <= hwif_out.done[2*n+1].word.swmod;
      end
    end
  end

  // ---------------------------------------------------------------- register values

  logic [31:0] taken_count_q, refused_count_q, queued_count_q, tracked_count_q;
  logic [6:0] in_flight_q, most_lines_q, most_lines;
  logic [8:0] loads_q, loads_sum;
  logic [4:0] stores_sum;
  logic line_error_q, cmd_fire, refuse_valid;
  logic [Units-1:0] working;

  assign working = ~job_ready;
  assign cmd_fire = s_page.cmd_valid && s_page.cmd_ready;
  assign refuse_valid = response_valid && response_ready && (!freeze || restore_failed_q) && response != '0;

  always_comb begin
    most_lines = most_lines_q;
    loads_sum = '0;
    stores_sum = '0;
    for (int unsigned c = 0; c < NumChannels; c++) begin
      if (queue_lines[c] > most_lines) most_lines = queue_lines[c];
      loads_sum += 9'(loads[c]);
      stores_sum += 5'(store_queued[c]);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_count_q <= '0;
      refused_count_q <= '0;
      queued_count_q <= '0;
      tracked_count_q <= '0;
      in_flight_q <= '0;
      most_lines_q <= '0;
      loads_q <= '0;
      line_error_q <= 1'b0;
    end else begin
      taken_count_q <= taken_count_q + 32'(cmd_fire);
      refused_count_q <= refused_count_q + 32'(refuse_valid);
      queued_count_q <= queued_count_q + 32'(stores_sum);
      tracked_count_q <= tracked_count_q + 32'(inserted && track_contexts);
      in_flight_q <= in_flight_q + 7'(inserted || restore_command) - 7'(retire_valid && !freeze);
      most_lines_q <= most_lines;
      loads_q <= loads_sum;
      line_error_q <= line_error_q || line_error != '0;
    end
  end

  localparam int unsigned Numbers = Devices + 2;
  logic [Numbers-1:0][63:0] numbers, read_numbers;
  logic [Numbers-1:0] low_read, high_read;

  always_comb begin
    for (int unsigned n = 0; n < Devices; n++) begin
      numbers[n]   = 64'(view.completed[n]);
      low_read[n]  = hwif_out.seen[2*n].word.swacc;
      high_read[n] = hwif_out.seen[2*n+1].word.swacc;
    end
    numbers[Devices+:2]   = {64'(highest), 64'(view.all_completed)};
    low_read[Devices+:2]  = {hwif_out.highest[0].word.swacc, hwif_out.all_complete[0].word.swacc};
    high_read[Devices+:2] = {hwif_out.highest[1].word.swacc, hwif_out.all_complete[1].word.swacc};
  end

  nearpm_reg_snapshot #(
    .Count(Numbers)
  ) u_reg_snapshot (
    .clk_i,
    .rst_ni,
    .number_i   (numbers),
    .low_read_i (low_read),
    .high_read_i(high_read),
    .number_o    (read_numbers)
  );

  always_comb begin
    hwif_in.control.idle.next = in_flight_q == '0;
    hwif_in.status.done.next = 1'b0;
    hwif_in.result.value.next = '0;
    hwif_in.taken.value.next = taken_count_q;
    hwif_in.refused.value.next = refused_count_q;
    hwif_in.under_way.value.next = in_flight_q;
    hwif_in.working.value.next = 16'(working);
    hwif_in.most_lines.value.next = most_lines_q;
    hwif_in.loads.value.next = loads_q;
    hwif_in.stores.value.next = queued_count_q;
    hwif_in.tracked.value.next = tracked_count_q;
    hwif_in.domain.restored.next = restored;
    hwif_in.domain.open.next = open_q;
    hwif_in.domain.line_error.next = line_error_q;
    hwif_in.domain.unread.next = restore_failed_q;
    hwif_in.domain.lost.next = lost;
    hwif_in.domain.unkept.next = unkept;
    hwif_in.device.own.we = restore_own && !own_written;
    hwif_in.device.own.next = restored_own;
    hwif_in.device.numbered.we = restore_own && !numbered_written;
    hwif_in.device.numbered.next = restored_numbered;
    for (int unsigned n = 0; n < Devices; n++)
    {hwif_in.seen[2*n+1].word.next, hwif_in.seen[2*n].word.next} = read_numbers[n];
    {hwif_in.all_complete[1].word.next, hwif_in.all_complete[0].word.next} = read_numbers[Devices];
    {hwif_in.highest[1].word.next, hwif_in.highest[0].word.next} = read_numbers[Devices+1];
    for (int unsigned c = 0; c < 16; c++) hwif_in.lines[c].value.next = '0;
    for (int unsigned c = 0; c < NumChannels; c++) hwif_in.lines[c].value.next = queue_lines[c];
  end

  logic unused;
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12], s_page.settled, hwif_out.control.start.value, view.notify};

  if (IdBits < 1 || (1 << IdBits) < NumChannels) begin : gen_bad_ids
    $error("nearpm: too few AXI IDs for this number of units and channels");
  end

`ifdef NS_ORDER
  nearpm_recorder u_recorder (
    .clk_i,
    .rst_ni,
    .inserted_i       (inserted),
    .number_i         (insert_number),
    .job_i            (insert_job),
    .ranges_i         (insert_ranges),
    .answered_i           (response_valid && response_ready && (!freeze || restore_failed_q)),
    .issue_valid_i         (issue_valid && !freeze),
    .issue_number_i   (issue_number),
    .retire_valid_i           (retire_valid && !freeze),
    .retire_number_i     (retire_number),
    .retire_ok_i           (unit_done.result == '0),
    .log_void_i           (delete_valid && delete_ready),
    .delete_i         (delete),
    .restored_valid_i       (restore_command),
    .restored_number_i(restore_number),
    .restored_job_i   (restore_job),
    .restored_ranges_i(ranges_of(restore_job)),
    .window_open_i          (!open_q && !freeze && !table_busy && queue_lines == '0)
  );
`endif

  `NS_ASSERT(writes_counted, writes_in_flight_q != '0 || b_count == '0)

endmodule
