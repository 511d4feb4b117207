// SPDX-License-Identifier: Apache-2.0

// Transactions of several devices: records what this device and its peers have completed, and
// decides when the records of a log may be deleted. See docs/hardware/nearpm.md, "Several devices".
//
// The progress of a log is a row of a memory. Rows have four users, one at a time:
//
// - a notification of a peer;
// - the end of a commit on this device;
// - nearpm_peers_walk, which visits the logs with pending work;
// - the view of the selected log in the registers.
//
// The walk notifies peers. When all participants have completed a transaction, it has a unit write
// the descriptor of the empty log. Only the walk waits, for a unit or for the host port.
// Notifications are therefore accepted at once, and no command waits for a peer.
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

  // ---------------------------------------------------------------- device number

  // A change of the device number clears all rows. A number that the host writes before the restore
  // is compared with the restored one.
  logic numbered_q, forget;
  logic [DeviceBits-1:0] own_q;
  assign forget = !freeze_i && (numbered_q != numbered_i || own_q != own_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      numbered_q <= 1'b0;
      own_q <= '0;
    end else if (restore_own_o) begin
      numbered_q <= restored_numbered_o;
      own_q <= restored_own_o;
    end else if (!freeze_i) begin
      numbered_q <= numbered_i;
      own_q <= own_i;
    end
  end

  // ---------------------------------------------------------------- notifications and commits

  logic notification_pending_q, notification_accept;
  logic [DeviceBits-1:0] peer_q;
  completion_t notification_q;

  // A notification of a peer waits for its access to the row.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) notification_pending_q <= 1'b0;
    else begin
      if (notification_accept || forget) notification_pending_q <= 1'b0;
      for (int unsigned n = 0; n < Devices; n++)
      if (peer_notified_i[n] && numbered_i && own_i != DeviceBits'(n) && !freeze_i)
        notification_pending_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Devices; n++) begin
      if (peer_notified_i[n]) begin
        peer_q <= DeviceBits'(n);
        notification_q <= notifications_i[n];
      end
    end
  end
  assign notification_pending_o = notification_pending_q;

  logic commit_pending_q, commit_accept;
  log_index_t commit_log_q, commit_log;
  logic [63:0] commit_generation_q;

  // A commit that has ended waits for its access to the row. A commit of a pool that may have
  // another owner by now completes nothing.
  assign commit_log = commit_done_valid_i ? commit_done_log_i : commit_log_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) commit_pending_q <= 1'b0;
    else if (pool_change_valid_i && pool_of(change_log_i) == pool_of(commit_log))
      commit_pending_q <= 1'b0;
    else if (commit_done_valid_i) commit_pending_q <= 1'b1;
    else if (commit_accept) commit_pending_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (commit_done_valid_i) begin
      commit_log_q <= commit_done_log_i;
      commit_generation_q <= commit_done_generation_i;
    end
  end
  assign commit_done_ready_o = !commit_pending_q;

  // ---------------------------------------------------------------- accesses to rows

  typedef enum logic [2:0] {
    RowNone,
    RowNotification,
    RowCommit,
    RowWalk,  // the walk reads
    RowAllComplete,  // the walk notes that all participants have completed
    RowView
  } row_access_e;

  // An access takes three cycles: it reads, the row is available, and the row is written.
  row_access_e row_access, read_access_q, write_access_q;
  logic walk_read_valid, all_complete_valid, write_row, row_valid_q, view_stale_q, port_free;
  log_index_t read_log, read_log_q, write_log_q, walk_log, select_q;
  peers_row_t stored, row, row_q, new_row;
  logic [Logs-1:0] valid_q;  // 0: the row is all zeros
  logic restore_row;
  log_index_t restore_log, save_log;

  assign restore_row = restore_i && restore_index_i != '0;
  assign restore_log = log_index_t'(restore_index_i - 1'b1);
  assign save_log = log_index_t'(save_index_i - 1'b1);
  assign port_free = !lookup_valid_i && read_access_q == RowNone && write_access_q == RowNone && !forget;

  // One access begins when none is in progress. Lookups of commands have priority.
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
      end else if ((walk_read_valid || all_complete_valid) && contexts_free_i && !freeze_i) begin
        row_access = walk_read_valid ? RowWalk : RowAllComplete;
        read_log = walk_log;
      end else if (view_stale_q && !freeze_i) row_access = RowView;
    end
  end

  assign notification_accept = row_access == RowNotification;
  assign commit_accept = read_access_q == RowCommit;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_access_q  <= RowNone;
      write_access_q <= RowNone;
    end else begin
      read_access_q  <= row_access;
      write_access_q <= forget ? RowNone : read_access_q;
    end
  end

  always_ff @(posedge clk_i) begin
    read_log_q  <= read_log;
    write_log_q <= read_log_q;
    row_valid_q <= valid_q[read_log];
    row_q <= row;
  end

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
    if (!rst_ni) valid_q <= '0;
    else begin
      if (write_row) valid_q[write_log_q] <= 1'b1;
      if (restore_row) valid_q[restore_log] <= 1'b1;
      if (forget) valid_q <= '0;
    end
  end

  // ---------------------------------------------------------------- row update

  logic log_open_q, newer_q, commit_valid_q;
  logic [Devices-1:0] participants_q;
  logic [DeviceBits-1:0] device_q;
  sequence_t number_q, all_complete_number;
  logic completion_valid;

  // A notification or a commit: the device that has completed a transaction, and its number.
  always_ff @(posedge clk_i) begin
    if (row_access == RowNotification) begin
      device_q <= peer_q;
      number_q <= notification_q.number;
    end
    if (read_access_q == RowCommit) begin
      device_q <= own_q;
      number_q <= log_i.number;
    end
  end

  // A notification counts if its number is higher than the last one.
  always_ff @(posedge clk_i) newer_q <= number_q > row.completed[device_q];

  // A commit counts if the log's pending transaction is still the one of this commit.
  always_ff @(posedge clk_i) begin
    if (row_access == RowCommit) log_open_q <= open_i && pool_i.mapped;
    participants_q <= log_i.participants;
    commit_valid_q <= log_open_q && log_i.pending && log_i.generation == commit_generation_q;
  end

  always_comb begin
    unique case (write_access_q)
      RowNotification: completion_valid = newer_q && !forget;
      RowCommit: completion_valid = commit_valid_q && numbered_q && !forget;
      default: completion_valid = 1'b0;
    endcase
  end

  // The walk takes over whom to notify when it reads the row.
  always_comb begin
    new_row = row_q;
    if (completion_valid) new_row.completed[device_q] = number_q;
    if (write_access_q == RowCommit) new_row.notify = participants_q & ~(Devices'(1) << own_q);
    if (write_access_q == RowWalk) new_row.notify = '0;
    if (write_access_q == RowAllComplete) new_row.all_completed = all_complete_number;
  end
  assign write_row = completion_valid || (write_access_q inside {RowWalk, RowAllComplete} && !forget);

  // Highest transaction that was notified or completed here.
  sequence_t highest_q;
  assign highest_o = highest_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) highest_q <= '0;
    else if (forget) highest_q <= '0;
    else if (restore_i && restore_index_i == '0) highest_q <= restore_data_i[64+:SequenceBits];
    else if (completion_valid && number_q > highest_q) highest_q <= number_q;
  end

  // ---------------------------------------------------------------- view

  // The view is read again after each change of a row, and of the selected log.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) view_stale_q <= 1'b1;
    else if (write_row || restore_row || forget || select_i != select_q) view_stale_q <= 1'b1;
    else if (row_access == RowView) view_stale_q <= 1'b0;
  end
  always_ff @(posedge clk_i) select_q <= select_i;

  // The host may read before the restore.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) view_o <= '0;
    else if (read_access_q == RowView) view_o <= row;
  end

  // While frozen, nothing new becomes visible.
  assign settled_o = freeze_i || !(notification_pending_q || commit_pending_q || view_stale_q || forget || select_i != select_q || read_access_q inside {RowNotification, RowCommit, RowView} ||
      write_access_q inside {RowNotification, RowCommit});

  // ---------------------------------------------------------------- walk

  logic walk_busy;

  nearpm_peers_walk u_walk (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .forget_i             (forget),
    .busy_o               (walk_busy),
    .numbered_i           (numbered_q),
    .own_i                (own_q),
    .addresses_i,
    .peer_registered_i,
    .restored_i           (restore_row),
    .work_valid_i         (completion_valid),
    .work_log_i           (write_log_q),
    .log_o                (walk_log),
    .read_valid_o         (walk_read_valid),
    .read_ready_i         (row_access == RowWalk),
    .pool_i,
    .open_i,
    .log_i,
    .row_i                (row),
    .change_valid_i,
    .change_log_i,
    .pool_change_valid_i,
    .close_valid_i,
    .close_log_i,
    .delete_valid_o,
    .delete_o,
    .delete_ready_i,
    .delete_done_i,
    .hold_o,
    .all_complete_valid_o (all_complete_valid),
    .all_complete_number_o(all_complete_number),
    .all_complete_ready_i (row_access == RowAllComplete),
    .write_o,
    .new_log_o,
    .m_host
  );

  assign read_o = row_access inside {RowCommit, RowWalk};
  assign log_o = read_log;

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

  assign busy_o = notification_pending_q || commit_pending_q || read_access_q != RowNone || write_access_q != RowNone || view_stale_q || walk_busy || numbered_q != numbered_i ||
      own_q != own_i;

  logic unused;
  assign unused = ^{pool_i, log_i, restore_data_i, notification_q.zero};

  `NS_ASSERT(notification_is_accepted,
             peer_notified_i == '0 || !notification_pending_q || notification_accept)
  `NS_ASSERT(commit_is_accepted, !commit_done_valid_i || !commit_pending_q)
  `NS_ASSERT(one_peer_notifies, (peer_notified_i & (peer_notified_i - 1'b1)) == '0)
  `NS_ASSERT(contexts_free_for_access, !read_o && !write_o || contexts_free_i || freeze_i)

endmodule
