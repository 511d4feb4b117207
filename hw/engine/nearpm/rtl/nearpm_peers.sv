// SPDX-License-Identifier: Apache-2.0

// Transactions of several devices: records what this device and its peers have completed, and
// decides when the records of a log may be deleted. See docs/hardware/nearpm.md, "Several devices".
//
// The progress of a log is a row of a memory. Rows have three users, one at a time, with three
// cycles per access:
// - a notification of a peer;
// - the end of a commit on this device;
// - the walk over the logs with pending work.
//
// The walk notifies peers. When all participants have completed a transaction, it has a unit write
// the descriptor of the empty log. Only the walk waits, for a unit or for the host port.
// Notifications are therefore accepted at once, and no command waits for a peer.
//
// During a deletion `hold_o` keeps units from commands on the pool as a whole, which may have
// become ready in the meantime.
`include "ns_assert.svh"

module nearpm_peers
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// The walk stops; ended commits are still recorded. From a register.
  input  logic                 freeze_i,
  /// From registers.
  output logic                 busy_o,

  /// Registers: number of this device, and whether it has one; selected log; addresses of the
  /// peers' registers in units of 4 KiB.
  input  logic                 numbered_i,
  input  logic [DeviceBits-1:0] own_i,
  input  logic [LogBits-1:0]   select_i,
  input  logic [Devices-1:0][51:0] addresses_i,
  /// The address of a peer was written: for one cycle, from registers.
  input  logic [Devices-1:0]   peer_registered_i,
  /// A peer notifies this device of `notifications_i`: for one cycle, from registers, while
  /// `notification_pending_o` is 0.
  input  logic [Devices-1:0]   peer_notified_i,
  output logic                 notification_pending_o,
  input  completion_t [Devices-1:0] notifications_i,
  /// Row of the selected log, and the highest transaction of all logs.
  output peers_row_t           view_o,
  output sequence_t            highest_o,
  /// `view_o` and `highest_o` belong to the selected log and include all notifications and commits.
  /// From registers and `select_i`.
  output logic                 settled_o,

  /// Lookup of a command's log. A cycle later: its last transaction that is complete here.
  input  logic                 lookup_valid_i,
  input  logic [LogBits-1:0]   lookup_log_i,
  output sequence_t            completed_o,

  /// A commit has ended without an error. From registers.
  input  logic                 commit_done_valid_i,
  input  logic [LogBits-1:0]   commit_done_log_i,
  input  logic [63:0]          commit_done_generation_i,
  output logic                 commit_done_ready_o,

  /// Contexts, while no command is being decoded: read or write a log. A log follows its read by a
  /// cycle; its pool, and whether it is open, are valid at once.
  input  logic                 contexts_free_i,
  output logic                 read_o,
  output logic                 write_o,
  output logic [LogBits-1:0]   log_o,
  output log_t                 new_log_o,
  input  pool_t                pool_i,
  input  logic                 open_i,
  input  log_t                 log_i,
  /// Other writers of the contexts: a log, its pool, or an error that closes a log.
  input  logic                 change_valid_i,
  input  logic [LogBits-1:0]   change_log_i,
  input  logic                 pool_change_valid_i,
  input  logic                 close_valid_i,
  input  logic [LogBits-1:0]   close_log_i,

  /// A unit writes the descriptor of an empty log. `delete_done_i`: the unit has ended; after an
  /// error the log is closed in that cycle.
  output logic                 delete_valid_o,
  output delete_t              delete_o,
  input  logic                 delete_ready_i,
  input  logic                 delete_done_i,
  output logic                 hold_o,

  /// Lines of the reserved range: 0 is the device number, then the logs. Data follow a cycle later.
  input  logic [LogBits:0]     save_index_i,
  output logic [511:0]         save_data_o,
  output logic                 restore_own_o,
  output logic                 restored_numbered_o,
  output logic [DeviceBits-1:0] restored_own_o,
  input  logic                 restore_i,
  input  logic [LogBits:0]     restore_index_i,
  input  logic [511:0]         restore_data_i,

  /// To the peers.
  ns_axi_if.master             m_host
);

  localparam int unsigned Logs = Pools * Threads;
  typedef logic [LogBits-1:0] log_index_t;

  // ---------------------------------------------------------------- inputs

  // A change of the device number clears all rows.
  logic numbered_q, forget;
  logic [DeviceBits-1:0] own_q;
  assign forget = !freeze_i && (numbered_q != numbered_i || own_q != own_i);

  logic notification_pending_q, commit_pending_q, notification_accept, commit_accept;
  logic [DeviceBits-1:0] peer_q;
  completion_t notification_q;
  log_index_t commit_log_q;
  logic [63:0] commit_generation_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      numbered_q <= 1'b0;
      own_q <= '0;
      notification_pending_q <= 1'b0;
      commit_pending_q <= 1'b0;
    end else begin
      // A number that the host writes before the restore is compared with the restored one.
      if (restore_own_o) begin
        numbered_q <= restored_numbered_o;
        own_q <= restored_own_o;
      end else if (!freeze_i) begin
        numbered_q <= numbered_i;
        own_q <= own_i;
      end
      if (notification_accept || forget) notification_pending_q <= 1'b0;
      for (int unsigned n = 0; n < Devices; n++)
      if (peer_notified_i[n] && numbered_i && own_i != DeviceBits'(n) && !freeze_i)
        notification_pending_q <= 1'b1;
      // A commit of a pool that may have another owner by now completes nothing.
      if (commit_accept || (pool_change_valid_i && pool_of(change_log_i) == pool_of(commit_log_q)))
        commit_pending_q <= 1'b0;
      if (commit_done_valid_i && !(pool_change_valid_i && pool_of(
              change_log_i
          ) == pool_of(
              commit_done_log_i
          )))
        commit_pending_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Devices; n++) begin
      if (peer_notified_i[n]) begin
        peer_q <= DeviceBits'(n);
        notification_q <= notifications_i[n];
      end
    end
    if (commit_done_valid_i) begin
      commit_log_q <= commit_done_log_i;
      commit_generation_q <= commit_done_generation_i;
    end
  end

  assign notification_pending_o = notification_pending_q;
  assign commit_done_ready_o = !commit_pending_q;

  // ---------------------------------------------------------------- rows

  typedef enum logic [2:0] {
    RowNone,
    RowNotification,
    RowCommit,
    RowWalk,  // the walk reads
    RowAllComplete,  // the walk notes that all participants have completed
    RowView
  } row_access_e;

  // Pipeline of an access: read, available a cycle later, written another cycle later.
  row_access_e row_access, read_access_q, write_access_q;
  logic walk_read_valid, walk_all_valid, write_row, row_valid_q, stale_q, port_free;
  log_index_t read_log, read_log_q, write_log_q, walk_log_q, select_q;
  peers_row_t stored, row, row_q, new_row;
  logic [Logs-1:0] valid_q;  // 0: the row is all zeros
  logic restore_row;
  log_index_t restore_log, save_log;

  assign restore_row = restore_i && restore_index_i != '0;
  assign restore_log = log_index_t'(restore_index_i - 1'b1);
  assign save_log = log_index_t'(save_index_i - 1'b1);
  assign port_free = !lookup_valid_i && read_access_q == RowNone && write_access_q == RowNone && !forget;

  always_comb begin
    row_access = RowNone;
    read_log = freeze_i ? save_log : select_i;
    if (lookup_valid_i) read_log = lookup_log_i;
    if (port_free) begin
      if (notification_pending_q) begin
        row_access = RowNotification;
        read_log = notification_q.log;
      end else if (commit_pending_q && (contexts_free_i || freeze_i)) begin
        row_access = RowCommit;
        read_log = commit_log_q;
      end else if ((walk_read_valid || walk_all_valid) && contexts_free_i && !freeze_i) begin
        row_access = walk_read_valid ? RowWalk : RowAllComplete;
        read_log = walk_log_q;
      end else if (stale_q && !freeze_i) row_access = RowView;
    end
  end

  assign notification_accept  = row_access == RowNotification;
  assign commit_accept = read_access_q == RowCommit;

  ns_ram_1r1w #(
    .Width($bits(peers_row_t)),
    .Depth(Logs),
    .Style("bram")
  ) u_rows (
    .clk_i,
    .we_i   (restore_row || write_row),
    .waddr_i(restore_row ? restore_log : write_log_q),
    .wdata_i(restore_row ? peers_row_t'(restore_data_i) : new_row),
    .re_i   (1'b1),
    .raddr_i(read_log),
    .rdata_o(stored)
  );

  assign row = row_valid_q ? stored : '0;
  assign completed_o = row.completed[own_q];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_access_q <= RowNone;
      write_access_q <= RowNone;
      valid_q <= '0;
      stale_q <= 1'b1;
    end else begin
      read_access_q   <= row_access;
      write_access_q <= forget ? RowNone : read_access_q;
      if (write_row) valid_q[write_log_q] <= 1'b1;
      if (restore_row) valid_q[restore_log] <= 1'b1;
      if (forget) valid_q <= '0;
      if (row_access == RowView) stale_q <= 1'b0;
      if (write_row || restore_row || forget || select_i != select_q) stale_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    select_q <= select_i;
    read_log_q <= read_log;
    write_log_q <= read_log_q;
    row_valid_q <= valid_q[read_log];
    row_q <= row;
  end

  // The host may read before the restore.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) view_o <= '0;
    else if (read_access_q == RowView) view_o <= row;
  end

  // While frozen, nothing new becomes visible.
  assign settled_o = freeze_i || !(notification_pending_q || commit_pending_q || stale_q || forget || select_i != select_q || read_access_q inside {RowNotification, RowCommit, RowView} ||
      write_access_q inside {RowNotification, RowCommit});

  // ---------------------------------------------------------------- row update

  logic log_open_q, newer_q, generation_match_q, pending_q;
  logic [Devices-1:0] own_mask, participants_q, participant_complete_q;
  logic [DeviceBits-1:0] notifier_q;
  sequence_t number_q, walk_sequence_q;

  assign own_mask = Devices'(1) << own_q;

  always_ff @(posedge clk_i) begin
    if (row_access == RowNotification) begin
      notifier_q <= peer_q;
      number_q <= notification_q.number;
    end
    newer_q <= number_q > row.completed[notifier_q];
    if (read_access_q inside {RowCommit, RowWalk}) begin
      number_q <= log_i.number;
      participants_q <= log_i.participants;
    end
    // Whether the log's pending transaction is still the one of this commit.
    pending_q <= log_open_q && log_i.pending;
    generation_match_q <= log_i.generation == commit_generation_q;
    for (int unsigned n = 0; n < Devices; n++)
    participant_complete_q[n] <= !log_i.participants[n] || row.completed[n] >= log_i.number;
  end

  always_comb begin
    new_row   = row_q;
    write_row = 1'b0;
    unique case (write_access_q)
      RowNotification: begin
        new_row.completed[notifier_q] = number_q;
        write_row = newer_q;
      end
      RowCommit: begin
        new_row.completed[own_q] = number_q;
        new_row.notify = participants_q & ~own_mask;
        write_row = numbered_q && pending_q && generation_match_q;
      end
      RowWalk: begin
        new_row.notify = '0;
        write_row = 1'b1;
      end
      RowAllComplete: begin
        new_row.all_completed = walk_sequence_q;
        write_row   = 1'b1;
      end
      default: ;
    endcase
    if (forget) write_row = 1'b0;
  end

  // Highest transaction that was notified or completed here.
  sequence_t highest_q;
  assign highest_o = highest_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) highest_q <= '0;
    else if (forget) highest_q <= '0;
    else if (restore_i && restore_index_i == '0) highest_q <= restore_data_i[64+:SequenceBits];
    else if (write_row && write_access_q inside {RowNotification, RowCommit} && number_q > highest_q)
      highest_q <= number_q;
  end

  // ---------------------------------------------------------------- logs with work

  // Logs with work are served one by one: pools in turn, and the threads of each pool in turn. All
  // logs are visited once after a peer is registered, and after a power failure.
  logic [Logs-1:0] work_q;
  logic [Pools-1:0] pool_work;
  logic [LogBits-ThreadBits-1:0] pool_turn, pool_q;
  logic [ThreadBits-1:0] thread_turn;
  logic work_valid, sweep_active_q, pool_pick, thread_pick, sweep_step;
  log_index_t sweep_log_q;
  logic [Devices-1:0] sweep_peers_q;

  for (genvar p = 0; p < Pools; p++) begin : gen_pool
    assign pool_work[p] = work_q[p*Threads+:Threads] != '0;
  end

  ns_rr_arbiter #(
    .N(Pools)
  ) u_pool (
    .clk_i,
    .rst_ni,
    .req_i  (pool_work),
    .next_i (pool_pick),
    .gnt_o  (),
    .idx_o  (pool_turn),
    .valid_o(work_valid)
  );

  ns_rr_arbiter #(
    .N(Threads)
  ) u_thread (
    .clk_i,
    .rst_ni,
    .req_i  (work_q[{pool_q, ThreadBits'(0)}+:Threads]),
    .next_i (thread_pick),
    .gnt_o  (),
    .idx_o  (thread_turn),
    .valid_o()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      work_q <= '0;
      sweep_active_q <= 1'b0;
      sweep_log_q <= '0;
      sweep_peers_q <= '0;
    end else begin
      // Work that arrives while the walk waits for its read is covered by that read.
      if (walk_read_valid) work_q[walk_log_q] <= 1'b0;
      if (write_row && write_access_q inside {RowNotification, RowCommit})
        work_q[write_log_q] <= 1'b1;
      if (sweep_step) begin
        sweep_log_q <= sweep_log_q + 1'b1;
        if (sweep_log_q == '1) begin
          sweep_active_q <= 1'b0;
          sweep_peers_q <= '0;
        end
      end
      if (peer_registered_i != '0 || restore_row) begin
        sweep_active_q <= 1'b1;
        sweep_log_q <= '0;
        sweep_peers_q <= sweep_peers_q | peer_registered_i;
      end
      if (forget) begin
        work_q <= '0;
        sweep_active_q <= 1'b0;
        sweep_peers_q <= '0;
      end
    end
  end

  // ---------------------------------------------------------------- walk

  typedef enum logic [3:0] {
    StIdle,
    StPick,  // selects a thread of the pool
    StReadRow,
    StReadLog,
    StEvaluate,
    StNotify,
    StResponse,  // of the host port
    StDelete,
    StDeleting,
    StLogEmpty  // the log enters its next generation
  } state_e;

  state_e state_q;
  logic all_complete, cancelled_q, void_q;
  logic [Devices-1:0] sweep_q, notify, notify_q, next_peer;
  logic [DeviceBits-1:0] next_peer_number;
  sequence_t own_sequence_q;
  logic [MediaBits-1:0] logs_q, base_q, product, product_q;
  logic [63:0] walk_generation_q;
  logic [31:0] log_bytes_q;
  logic aw_q, w_q;  // still to be accepted
  logic address_known;

  assign pool_pick = state_q == StIdle && !freeze_i;
  assign thread_pick = state_q == StPick;
  assign sweep_step = pool_pick && !work_valid && sweep_active_q;
  assign walk_read_valid = state_q == StReadRow;
  assign walk_all_valid = state_q == StLogEmpty && !void_q;

  assign all_complete = numbered_q && pending_q && participants_q[own_q] && participant_complete_q == '1;
  // Peers to notify of the present state. More may have been completed by the end.
  assign notify = !numbered_q ? '0 : (row_q.notify | (sweep_q & {Devices{row_q.completed[own_q] != '0}})) & ~own_mask;
  // Next peer to notify, and whether its address is known.
  assign next_peer = notify_q & (~notify_q + 1'b1);
  always_comb begin
    next_peer_number = '0;
    for (int unsigned n = 0; n < Devices; n++) if (next_peer[n]) next_peer_number |= DeviceBits'(n);
  end
  assign address_known = addresses_i[next_peer_number] != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      aw_q <= 1'b0;
      w_q <= 1'b0;
    end else begin
      if (m_host.aw_ready) aw_q <= 1'b0;
      if (m_host.w_ready) w_q <= 1'b0;
      unique case (state_q)
        StIdle: if (pool_pick && !forget) state_q <= work_valid ? StPick : sweep_active_q ? StReadRow : StIdle;
        StPick: state_q <= forget ? StIdle : StReadRow;
        StReadRow:
        if (forget) state_q <= StIdle;
        else if (row_access == RowWalk) state_q <= StReadLog;
        StReadLog: state_q <= forget ? StIdle : StEvaluate;
        StEvaluate: state_q <= forget ? StIdle : (notify != '0) ? StNotify : all_complete ? StDelete : StIdle;
        StNotify:
        if (notify_q == '0) state_q <= StReadRow;
        else if (address_known && !freeze_i) begin
          state_q <= StResponse;
          aw_q <= 1'b1;
          w_q <= 1'b1;
        end
        StResponse: if (m_host.b_valid) state_q <= StNotify;
        StDelete: if (delete_ready_i) state_q <= StDeleting;
        StDeleting: if (delete_done_i) state_q <= StLogEmpty;
        default: if (void_q || row_access == RowAllComplete) state_q <= StIdle;
      endcase
    end
  end

  // Offset of the thread's log within the logs of the pool.
  always_comb begin
    product = '0;
    for (int unsigned b = 0; b < ThreadBits; b++)
    product += MediaBits'(walk_log_q[b] ? log_bytes_q : '0) << b;
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      pool_q <= pool_turn;
      walk_log_q <= sweep_log_q;
      sweep_q <= work_valid ? '0 : sweep_peers_q;
    end
    if (state_q == StPick) walk_log_q <= {pool_q, thread_turn};
    if (read_o) begin
      log_open_q <= open_i && pool_i.mapped;
      logs_q <= pool_i.media + pool_i.logs;
      log_bytes_q <= pool_i.log_bytes[31:0];
    end
    product_q <= product;
    if (state_q == StReadLog) begin
      walk_sequence_q   <= log_i.number;
      walk_generation_q <= log_i.generation;
    end
    if (state_q == StEvaluate) begin
      notify_q <= notify;
      own_sequence_q <= row_q.completed[own_q];
      base_q <= logs_q + product_q;
    end
    if (state_q == StNotify) begin
      sweep_q <= '0;
      notify_q  <= notify_q & ~next_peer;
    end
    // The log has changed since it was read. After a recover, which waits for the walk, it is still
    // true that all have completed the transaction of the log that is now empty.
    if (state_q == StReadRow) begin
      cancelled_q <= 1'b0;
      void_q <= 1'b0;
    end
    if (change_valid_i && change_log_i == walk_log_q) cancelled_q <= 1'b1;
    if ((pool_change_valid_i && pool_of(
            change_log_i
        ) == pool_of(
            walk_log_q
        )) || (close_valid_i && close_log_i == walk_log_q) || forget) begin
      cancelled_q <= 1'b1;
      void_q <= 1'b1;
    end
    if (forget) notify_q <= '0;
  end

  // ---------------------------------------------------------------- contexts and units

  assign read_o = row_access inside {RowCommit, RowWalk};
  assign write_o = row_access == RowAllComplete && !cancelled_q;
  assign log_o = read_log;
  assign new_log_o = '{
          spoiled: 1'b0,
          closed: 1'b0,
          open: 1'b1,
          pending: 1'b0,
          participants: '0,
          number: '0,
          committed: 1'b0,
          generation: walk_generation_q + 64'd1,
          next: 32'd64,
          last: '0,
          records: '0
      };

  assign hold_o = state_q inside {StReadLog, StEvaluate, StDelete, StDeleting, StLogEmpty};
  assign delete_valid_o = state_q == StDelete;
  assign delete_o = '{log: walk_log_q, base: base_q, generation: walk_generation_q, number: walk_sequence_q};

  // ---------------------------------------------------------------- host port

  logic [51:0] address_q;
  logic [DeviceBits-1:0] lane_q;
  always_ff @(posedge clk_i) begin
    if (state_q == StNotify) begin
      address_q <= addresses_i[next_peer_number];
      lane_q <= own_q;
    end
  end

  completion_t notification;
  assign notification = '{log: walk_log_q, zero: '0, number: own_sequence_q};

  // A line holds one 64-bit register per device.
  assign m_host.aw = '{id: '0, len: '0, size: 3'd6, burst: BurstIncr, addr: {address_q, PeerCompletions}};
  assign m_host.aw_valid = aw_q;
  assign m_host.w = '{last: 1'b1, strb: StrbWidth'(8'hFF) << {lane_q, 3'd0}, data: {8{notification}}};
  assign m_host.w_valid = w_q;
  assign m_host.b_ready = 1'b1;
  assign m_host.ar = '0;
  assign m_host.ar_valid = 1'b0;
  assign m_host.r_ready = 1'b1;

  // ---------------------------------------------------------------- save

  logic save_number_q;
  always_ff @(posedge clk_i) save_number_q <= save_index_i == '0;

  always_comb begin
    save_data_o = 512'(row);
    save_data_o[$bits(peers_row_t)-1-:Devices] = '0;  // registration of the peers sets them again
    if (save_number_q) begin
      // The device number of the rows. A number written too late to clear the rows is lost.
      save_data_o = '0;
      save_data_o[DeviceBits-1:0] = own_q;
      save_data_o[8] = numbered_q;
      save_data_o[64+:SequenceBits] = highest_q;
    end
  end

  assign restore_own_o = restore_i && restore_index_i == '0;
  assign restored_numbered_o = restore_data_i[8];
  assign restored_own_o = restore_data_i[DeviceBits-1:0];

  assign busy_o = notification_pending_q || commit_pending_q || read_access_q != RowNone || write_access_q != RowNone || stale_q || work_valid || sweep_active_q || state_q != StIdle || numbered_q != numbered_i ||
      own_q != own_i;

  logic unused;
  assign unused = ^{m_host.aw_ready, m_host.b, m_host.ar_ready, m_host.r, m_host.r_valid, pool_i, log_i, restore_data_i, notification_q.zero};

  `NS_ASSERT(notification_is_accepted,
             peer_notified_i == '0 || !notification_pending_q || notification_accept)
  `NS_ASSERT(commit_is_accepted, !commit_done_valid_i || !commit_pending_q)
  `NS_ASSERT(one_peer_notifies, (peer_notified_i & (peer_notified_i - 1'b1)) == '0)
  `NS_ASSERT(contexts_free_for_access, !read_o && !write_o || contexts_free_i || freeze_i)

endmodule
