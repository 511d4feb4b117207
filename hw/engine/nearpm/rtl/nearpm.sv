// Crash consistency near memory: logs, checkpoints and shadow copies of persistent objects, in an order with the host's accesses.
//
// README.md says what it does, and shows the parts. When the function ends (`stop_i`) all that it has taken goes to the end of the media, and comes
// back when the reset is over.
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
  /// Bytes that go to one channel before the next one's turn, a power of two.
  parameter int unsigned Granule = 4096,
  /// Bytes of the media.
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  /// Units, 1 to 16.
  parameter int unsigned Units = 4,
  /// Lines that each unit may read in 1024 cycles, 1 to 1024.
  parameter int unsigned UnitLines = 1024
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic     busy_o,
  /// The function is about to be reset, or the power fails; stays until then. From a register.
  input  logic     stop_i,
  /// All that has to survive is in the memory. From registers.
  output logic     saved_o,
  /// All that was restored has ended, and the PM window may pass. From a register.
  output logic     open_o,
  /// Registers.
  ns_axil_if.slave s_axil,
  /// Commands.
  command_page_if.engine s_page,
  /// Its peers in other devices.
  ns_axi_if.master m_host,
  /// Memory, one master a channel; addresses are local to the channel.
  ns_axi_if.master m_mem[NumChannels],
  /// Access hook.
  ns_axi_if.slave  s_hook_pm[NumChannels],
  ns_axi_if.master m_hook_pm[NumChannels],
  ns_axi_if.slave  s_hook_nvme[NumChannels],
  ns_axi_if.master m_hook_nvme[NumChannels]
);

  // Units share buses so that their IDs fit.
  localparam int unsigned PerBus = (Units + 3) / 4;
  localparam int unsigned Buses = (Units + PerBus - 1) / PerBus;
  localparam int unsigned Masters = Buses + 1;
  localparam int unsigned IdBits = 4 + unsigned'($clog2(NumChannels)) - unsigned'($clog2(Masters));
  localparam int unsigned Bursts = (IdBits > 3) ? 8 : 1 << IdBits;
  localparam int unsigned BurstBytes = 512;

  logic
      freeze,
      table_busy,
      take_busy,
      dispatch_busy,
      save_busy,
      peers_busy,
      regs_open,
      restored,
      unread,
      unread_q,
      lost,
      unkept,
      uses_q,
      mapped,
      forget;
  logic [NumChannels-1:0] hook_busy;
  logic open_q;

  // ---------------------------------------------------------------- commands

  logic answer_valid, answer_ready, inserts, inserted, log_open, log_closed, dones;
  result_t answer;
  logic [CommandBits-1:0] take_line;
  page_done_t done;
  job_t take_job;
  ranges_t take_ranges;
  logic context_read, pool_write, log_write, closes, close_spoils, overlaps;
  logic [MediaBits-13:0] first_page, last_page;
  logic [LogBits-1:0] context_log, close_log;
  pool_t pool, new_pool;
  log_t log_is, log_new;
  logic numbered;
  logic [Devices-1:0] introduced_q, told_q;
  logic [DeviceBits-1:0] own;
  sequence_t completed;

  nearpm_take #(
    .MediaBytes(MediaBytes)
  ) u_take (
    .clk_i,
    .rst_ni,
    .freeze_i      (freeze),
    .unread_i      (unread_q),
    .busy_o        (take_busy),
    .cmd_i         (s_page.cmd),
    .line_i        (s_page.line),
    .cmd_valid_i   (s_page.cmd_valid),
    .cmd_ready_o   (s_page.cmd_ready),
    .answer_valid_o(answer_valid),
    .answer_ready_i(answer_ready),
    .answer_o      (answer),
    .line_o        (take_line),
    .read_o        (context_read),
    .index_o       (context_log),
    .pool_i        (pool),
    .log_i         (log_is),
    .first_page_o  (first_page),
    .last_page_o   (last_page),
    .overlaps_i    (overlaps),
    .pool_write_o  (pool_write),
    .pool_o        (new_pool),
    .log_write_o   (log_write),
    .log_o         (log_new),
    .own_i         (numbered ? Devices'(1) << own : '0),
    .completed_i   (completed),
    .insert_o      (inserts),
    .job_o         (take_job),
    .ranges_o      (take_ranges),
    .inserted_i    (inserted)
  );

  // One of a unit that is on its way goes first; no further one is taken before this one, as it holds up the command's being taken.
  assign answer_ready = !dones;
  assign s_page.done_valid = dones || (answer_valid && (!freeze || unread_q));
  assign s_page.done = dones ? done : '{line: take_line, result: 32'(answer), value: '0};

  // ---------------------------------------------------------------- saving and restoring

  logic [CommandBits-1:0] save_number, restore_number;
  logic [7:0] save_context, restore_context_index;
  logic [LogBits-1:0] save_close_log;
  logic [6:0] save_entry, restore_entry_index;
  logic [LogBits:0] save_peers, restore_peers_index;
  job_t save_job, restore_job;
  logic
      save_closes,
      save_valid,
      save_stale,
      restore_stale,
      restore_command,
      restore_failed,
      restore_context,
      quiet;
  commands_t save_commands, failed, restore_commands, dropped;
  logic [NumChannels-1:0][7:0] save_lines, restore_lines;
  logic restore_peers;
  logic [511:0] save_context_data, save_peers_data, restore_data;
  logic [NumChannels-1:0][511:0] save_entries;
  logic [NumChannels-1:0] restore_entry;
  ns_axi_if master[Masters] ();

  // Contexts are those of the handler of several devices while no command is judged.
  logic peers_read, peers_write;
  logic [LogBits-1:0] peers_log;
  log_t peers_new;

  nearpm_contexts u_contexts (
    .clk_i,
    .rst_ni,
    .read_i         (context_read || peers_read),
    .index_i        ((peers_read || peers_write) ? peers_log : context_log),
    .pool_o         (pool),
    .log_o          (log_is),
    .open_o         (log_open),
    .closed_o       (log_closed),
    .mapped_o       (mapped),
    .first_page_i   (first_page),
    .last_page_i    (last_page),
    .overlaps_o     (overlaps),
    .pool_write_i   (pool_write),
    .pool_i         (new_pool),
    .log_write_i    (log_write || peers_write),
    .log_i          (peers_write ? peers_new : log_new),
    .close_i        (closes || save_closes),
    .close_index_i  (save_closes ? save_close_log : close_log),
    .close_spoils_i (closes && close_spoils),
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
    .unread_o               (unread),
    .uses_i                 (uses_q),
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
    .failed_i               (failed),
    .dropped_i              (dropped),
    .close_o                (save_closes),
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
    .restore_failed_o       (restore_failed),
    .restore_context_o      (restore_context),
    .restore_context_index_o(restore_context_index),
    .restore_entry_o        (restore_entry),
    .restore_entry_index_o  (restore_entry_index),
    .restore_peers_o        (restore_peers),
    .restore_peers_index_o  (restore_peers_index),
    .restore_data_o         (restore_data),
    .m_axi                  (master[Buses])
  );

  // Writes that the memory has not answered, of all masters.
  localparam int unsigned FlightBits = 10;
  logic [FlightBits-1:0] flight_q, begun, answered;
  logic [Masters-1:0] begins, answers;

  for (genvar m = 0; m < Masters; m++) begin : gen_begins
    assign begins[m] = master[m].aw_valid && master[m].aw_ready;
    assign answers[m] = master[m].b_valid && master[m].b_ready;
  end
  always_comb begin
    begun = '0;
    answered = '0;
    for (int unsigned m = 0; m < Masters; m++) begin
      begun += FlightBits'(begins[m]);
      answered += FlightBits'(answers[m]);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) flight_q <= '0;
    else flight_q <= flight_q + begun - answered;
  end
  assign quiet = flight_q == '0;

  // ---------------------------------------------------------------- order

  nearpm_lookup_if lookup[NumChannels] ();
  nearpm_order_if order[NumChannels] ();
  commands_t ready, ended, behind;
  logic begins_one, ends_one;
  logic [CommandBits-1:0] begin_number, end_number;

  nearpm_table #(
    .NumChannels(NumChannels)
  ) u_table (
    .clk_i,
    .rst_ni,
    .freeze_i          (freeze),
    .busy_o            (table_busy),
    .insert_i          (inserts),
    .insert_number_i   (take_line),
    .insert_ranges_i   (take_ranges),
    .insert_behind_i   (behind),
    .inserted_o        (inserted),
    .ready_o           (ready),
    .begin_i           (begins_one),
    .begin_number_i    (begin_number),
    .end_i             (ends_one),
    .end_number_i      (end_number),
    .ended_o           (ended),
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

  for (genvar c = 0; c < NumChannels; c++) begin : gen_hook
    ns_axi_if pm ();
    ns_axi_if nvme ();

    nearpm_shut u_shut_pm (
      .clk_i,
      .rst_ni,
      .shut_i(unread_q),
      .s_axi (s_hook_pm[c]),
      .m_axi (pm)
    );

    nearpm_shut u_shut_nvme (
      .clk_i,
      .rst_ni,
      .shut_i(unread_q),
      .s_axi (s_hook_nvme[c]),
      .m_axi (nvme)
    );

    nearpm_hook #(
      .NumChannels(NumChannels),
      .Granule    (Granule),
      .Channel    (c)
    ) u_hook (
      .clk_i,
      .rst_ni,
      .freeze_i       (freeze),
      .busy_o         (hook_busy[c]),
      .ended_i        (ended),
      .lookup         (lookup[c]),
      .order          (order[c]),
      .save_index_i   (save_entry),
      .save_dropped_i (dropped),
      .save_data_o    (save_entries[c]),
      .restore_i      (restore_entry[c]),
      .restore_index_i(restore_entry_index),
      .restore_data_i (restore_data),
      .queued_o       (store_queued[c]),
      .lines_o        (queue_lines[c]),
      .loads_o        (loads[c]),
      .line_error_o   (line_error[c]),
      .s_hook_pm      (pm),
      .m_hook_pm      (m_hook_pm[c]),
      .s_hook_nvme    (nvme),
      .m_hook_nvme    (m_hook_nvme[c])
    );
  end

  // ---------------------------------------------------------------- units

  job_t job;
  delete_t delete;
  logic deletes, delete_ready, deleted, hold, complete, complete_ready;
  logic [LogBits-1:0] complete_log;
  logic [63:0] complete_generation;
  logic [Units-1:0] job_valid, job_ready, end_valid, end_ready;
  end_t [Units-1:0] end_data;

  nearpm_dispatch #(
    .Units(Units)
  ) u_dispatch (
    .clk_i,
    .rst_ni,
    .freeze_i        (freeze),
    .busy_o          (dispatch_busy),
    .insert_i        (inserted),
    .insert_number_i (take_line),
    .insert_job_i    (take_job),
    .insert_open_i   (log_open),
    .insert_closed_i (log_closed),
    .behind_o        (behind),
    .ready_i         (ready),
    .begin_o         (begins_one),
    .begin_number_o  (begin_number),
    .end_o           (ends_one),
    .end_number_o    (end_number),
    .job_o           (job),
    .job_valid_o     (job_valid),
    .job_ready_i     (job_ready),
    .end_i           (end_data),
    .end_valid_i     (end_valid & {Units{!answer_valid}}),
    .end_ready_o     (end_ready),
    .delete_valid_i  (deletes),
    .delete_i        (delete),
    .delete_ready_o  (delete_ready),
    .deleted_o       (deleted),
    .hold_i          (hold),
    .leaves_i        (pool_write),
    .leaves_pool_i   (context_log[LogBits-1:ThreadBits]),
    .complete_o      (complete),
    .complete_log_o  (complete_log),
    .complete_generation_o(complete_generation),
    .complete_ready_i(complete_ready),
    .done_o          (dones),
    .done_data_o     (done),
    .close_o         (closes),
    .close_log_o     (close_log),
    .close_spoils_o  (close_spoils),
    .save_number_i   (save_number),
    .save_job_o      (save_job),
    .save_stale_o    (save_stale),
    .failed_o        (failed),
    .restore_i       (restore_command),
    .restore_number_i(restore_number),
    .restore_job_i   (restore_job),
    .restore_stale_i (restore_stale),
    .restore_failed_i(restore_failed),
    .failed_i        (restore_data[511:448])
  );

  for (genvar b = 0; b < Buses; b++) begin : gen_bus
    localparam int unsigned Here = (Units - b * PerBus < PerBus) ? Units - b * PerBus : PerBus;
    ns_axi_if unit[Here] ();
    ns_axi_if bus ();

    for (genvar u = 0; u < Here; u++) begin : gen_unit
      nearpm_unit #(
        .BurstBytes(BurstBytes),
        .Bursts    (Bursts),
        .Lines     (UnitLines)
      ) u_unit (
        .clk_i,
        .rst_ni,
        .job_i      (job),
        .job_valid_i(job_valid[b*PerBus+u]),
        .job_ready_o(job_ready[b*PerBus+u]),
        .end_o      (end_data[b*PerBus+u]),
        .end_valid_o(end_valid[b*PerBus+u]),
        .end_ready_i(end_ready[b*PerBus+u]),
        .m_axi      (unit[u])
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

    // Nothing begins once it is saved.
    ns_axi_gate u_gate (
      .aw_open_i(!freeze),
      .ar_open_i(!freeze),
      .s_axi    (bus),
      .m_axi    (master[b])
    );
  end

  ns_axi_if nowhere[1] ();
  assign nowhere[0].aw_ready = 1'b0;
  assign nowhere[0].w_ready = 1'b0;
  assign nowhere[0].b = '0;
  assign nowhere[0].b_valid = 1'b0;
  assign nowhere[0].ar_ready = 1'b0;
  assign nowhere[0].r = '0;
  assign nowhere[0].r_valid = 1'b0;

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
    .m_local(nowhere)
  );

  // ---------------------------------------------------------------- when it rests

  // What stays closed answers with errors, so that nobody waits for it.
  assign open_o = open_q || unread_q;
  // What could not be restored stands still until a reset.
  assign busy_o = regs_open || take_busy || save_busy || (!unread_q && (table_busy || dispatch_busy || peers_busy || introduced_q != '0 || told_q != '0 || hook_busy != '0 || !open_q));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      unread_q <= 1'b0;
      uses_q   <= 1'b0;
    end else begin
      // Until the reset, whatever becomes of it.
      unread_q <= unread_q || unread;
      uses_q   <= mapped || table_busy || queue_lines != '0 || numbered;
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
  logic settled, peers_told;

  nearpm_register_gate u_register_gate (
    .clk_i,
    .rst_ni,
    .shows_i(settled && told_q == '0),
    .told_i (told_q != '0 || peers_told),
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
  completion_t [Devices-1:0] words;
  peers_row_t view;
  sequence_t highest;
  logic restore_own, restored_numbered;
  logic [DeviceBits-1:0] restored_own;

  nearpm_peers u_peers (
    .clk_i,
    .rst_ni,
    .freeze_i           (freeze),
    .busy_o             (peers_busy),
    .numbered_i         (numbered),
    .own_i              (own),
    .select_i           (hwif_out.select.log.value),
    .addresses_i        (addresses_q),
    .introduced_i       (introduced_q),
    .told_i             (told_q),
    .told_o             (peers_told),
    .words_i            (words),
    .view_o             (view),
    .highest_o          (highest),
    .settled_o          (settled),
    .look_i             (context_read),
    .look_log_i         (context_log),
    .completed_o        (completed),
    .ended_i            (complete),
    .ended_log_i        (complete_log),
    .ended_generation_i (complete_generation),
    .ended_ready_o      (complete_ready),
    .rests_i            (!take_busy),
    .read_o             (peers_read),
    .write_o            (peers_write),
    .log_o              (peers_log),
    .new_log_o          (peers_new),
    .pool_i             (pool),
    .open_i             (log_open),
    .log_i              (log_is),
    .changes_i          (log_write),
    .changes_log_i      (context_log),
    .unmaps_i           (pool_write),
    .closes_i           (closes),
    .closes_log_i       (close_log),
    .delete_valid_o     (deletes),
    .delete_o           (delete),
    .delete_ready_i     (delete_ready),
    .deleted_i          (deleted),
    .hold_o             (hold),
    .save_index_i       (save_peers),
    .save_data_o        (save_peers_data),
    .restore_own_o      (restore_own),
    .restored_numbered_o(restored_numbered),
    .restored_own_o     (restored_own),
    .restore_i          (restore_peers),
    .restore_index_i    (restore_peers_index),
    .restore_data_i     (restore_data),
    .m_host
  );

  assign numbered = hwif_out.device.numbered.value;
  assign own = hwif_out.device.own.value;
  for (genvar n = 0; n < Devices; n++) begin : gen_peer
    assign words[n] = {hwif_out.done[2*n+1].word.value, hwif_out.done[2*n].word.value};
  end

  assign forget = hwif_out.forget.forget.value;

  // Half of an address is none: nothing goes there.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) addresses_q <= '0;
    else
      for (int unsigned n = 0; n < Devices; n++)
      if (introduced_q[n])
        addresses_q[n] <= {hwif_out.peer[2*n+1].word.value, hwif_out.peer[2*n].word.value[31:12]};
  end

  // What the host has written by then, the number or that there is one, is not overwritten by what was kept.
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

  // The words are those that were written in the next cycle.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      introduced_q <= '0;
      told_q <= '0;
    end else begin
      for (int unsigned n = 0; n < Devices; n++) begin
        introduced_q[n] <= hwif_out.peer[2*n+1].word.swmod;
        told_q[n] <= hwif_out.done[2*n+1].word.swmod;
      end
    end
  end

  // ---------------------------------------------------------------- what the registers show

  logic [31:0] taken_q, refused_q, stores_q;
  logic [6:0] under_way_q, most_q, most;
  logic [8:0] loads_q, loads_sum;
  logic [4:0] stores_sum;
  logic line_error_q, take_fire, refuses;
  logic [Units-1:0] working;

  assign working = ~job_ready;
  assign take_fire = s_page.cmd_valid && s_page.cmd_ready;
  assign refuses = answer_valid && answer_ready && (!freeze || unread_q) && answer != '0;

  always_comb begin
    most = most_q;
    loads_sum = '0;
    stores_sum = '0;
    for (int unsigned c = 0; c < NumChannels; c++) begin
      if (queue_lines[c] > most) most = queue_lines[c];
      loads_sum += 9'(loads[c]);
      stores_sum += 5'(store_queued[c]);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q <= '0;
      refused_q <= '0;
      stores_q <= '0;
      under_way_q <= '0;
      most_q <= '0;
      loads_q <= '0;
      line_error_q <= 1'b0;
    end else begin
      taken_q <= taken_q + 32'(take_fire);
      refused_q <= refused_q + 32'(refuses);
      stores_q <= stores_q + 32'(stores_sum);
      under_way_q <= under_way_q + 7'(inserted || restore_command) - 7'(ends_one && !freeze);
      most_q <= most;
      loads_q <= loads_sum;
      line_error_q <= line_error_q || line_error != '0;
    end
  end

  localparam int unsigned Numbers = Devices + 2;
  logic [Numbers-1:0][63:0] numbers, shown;
  logic [Numbers-1:0] low_read, high_read;

  always_comb begin
    for (int unsigned n = 0; n < Devices; n++) begin
      numbers[n]   = 64'(view.seen[n]);
      low_read[n]  = hwif_out.seen[2*n].word.swacc;
      high_read[n] = hwif_out.seen[2*n+1].word.swacc;
    end
    numbers[Devices+:2]   = {64'(highest), 64'(view.all)};
    low_read[Devices+:2]  = {hwif_out.highest[0].word.swacc, hwif_out.all_complete[0].word.swacc};
    high_read[Devices+:2] = {hwif_out.highest[1].word.swacc, hwif_out.all_complete[1].word.swacc};
  end

  nearpm_words #(
    .Count(Numbers)
  ) u_words (
    .clk_i,
    .rst_ni,
    .number_i   (numbers),
    .low_read_i (low_read),
    .high_read_i(high_read),
    .shown_o    (shown)
  );

  always_comb begin
    hwif_in.control.idle.next = under_way_q == '0;
    hwif_in.status.done.next = 1'b0;
    hwif_in.result.value.next = '0;
    hwif_in.taken.value.next = taken_q;
    hwif_in.refused.value.next = refused_q;
    hwif_in.under_way.value.next = under_way_q;
    hwif_in.working.value.next = 16'(working);
    hwif_in.most_lines.value.next = most_q;
    hwif_in.loads.value.next = loads_q;
    hwif_in.stores.value.next = stores_q;
    hwif_in.domain.restored.next = restored;
    hwif_in.domain.open.next = open_q;
    hwif_in.domain.line_error.next = line_error_q;
    hwif_in.domain.unread.next = unread_q;
    hwif_in.domain.lost.next = lost;
    hwif_in.domain.unkept.next = unkept;
    hwif_in.device.own.we = restore_own && !own_written;
    hwif_in.device.own.next = restored_own;
    hwif_in.device.numbered.we = restore_own && !numbered_written;
    hwif_in.device.numbered.next = restored_numbered;
    for (int unsigned n = 0; n < Devices; n++)
    {hwif_in.seen[2*n+1].word.next, hwif_in.seen[2*n].word.next} = shown[n];
    {hwif_in.all_complete[1].word.next, hwif_in.all_complete[0].word.next} = shown[Devices];
    {hwif_in.highest[1].word.next, hwif_in.highest[0].word.next} = shown[Devices+1];
    for (int unsigned c = 0; c < 16; c++) hwif_in.lines[c].value.next = '0;
    for (int unsigned c = 0; c < NumChannels; c++) hwif_in.lines[c].value.next = queue_lines[c];
  end

  logic unused;
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12], s_page.settled, hwif_out.control.start.value, view.tell};

  if (IdBits < 1 || (1 << IdBits) < NumChannels) begin : gen_bad_ids
    $error("nearpm: there are not enough IDs for so many units and channels");
  end

`ifdef NS_ORDER
  nearpm_recorder u_recorder (
    .clk_i,
    .rst_ni,
    .inserted_i       (inserted),
    .number_i         (take_line),
    .job_i            (take_job),
    .ranges_i         (take_ranges),
    .over_i           (answer_valid && answer_ready && (!freeze || unread_q)),
    .begins_i         (begins_one && !freeze),
    .begin_number_i   (begin_number),
    .ends_i           (ends_one && !freeze),
    .end_number_i     (end_number),
    .fine_i           (done.result == '0),
    .void_i           (deletes && delete_ready),
    .delete_i         (delete),
    .restored_i       (restore_command),
    .restored_number_i(restore_number),
    .restored_job_i   (restore_job),
    .restored_ranges_i(ranges_of(restore_job)),
    .opens_i          (!open_q && !freeze && !table_busy && queue_lines == '0)
  );
`endif

  `NS_ASSERT(flight_counted, flight_q != '0 || answered == '0)

endmodule
