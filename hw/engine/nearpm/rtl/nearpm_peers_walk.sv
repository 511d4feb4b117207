// SPDX-License-Identifier: Apache-2.0

// Walk of nearpm_peers over the logs with pending work, one log at a time.
//
//   choice of a log ─► row and log are read ─┬─► notifications of peers ─► read again
//                                            └─► deletion of the records ─► the log is empty
//
// The walk waits for units and for the host port; nothing waits for the walk. From the read of a
// log on, `hold_o` keeps units from commands on its pool as a whole, which may have become ready in
// the meantime.
module nearpm_peers_walk
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// No row is read and no notification begins. From a register.
  input  logic                 freeze_i,
  /// The device number changes: all rows are cleared.
  input  logic                 forget_i,
  /// From registers.
  output logic                 busy_o,

  /// Number of this device, and whether it has one. Addresses of the peers' registers in units of 4
  /// KiB.
  input  logic                 numbered_i,
  input  logic [DeviceBits-1:0] own_i,
  input  logic [Devices-1:0][51:0] addresses_i,
  /// All logs are visited: peers were registered, which are notified again; a row was restored.
  input  logic [Devices-1:0]   peer_registered_i,
  input  logic                 restored_i,
  /// A log has work: its row has changed.
  input  logic                 work_valid_i,
  input  logic [LogBits-1:0]   work_log_i,

  /// Read of a log and its row: `pool_i` and `open_i` are valid at once, `log_i` and `row_i` a cycle
  /// later. The read clears `notify` of the row.
  output logic [LogBits-1:0]   log_o,
  output logic                 read_valid_o,
  input  logic                 read_ready_i,
  input  pool_t                pool_i,
  input  logic                 open_i,
  input  log_t                 log_i,
  input  peers_row_t           row_i,
  /// Other writers of the contexts, see nearpm_peers.
  input  logic                 change_valid_i,
  input  logic [LogBits-1:0]   change_log_i,
  input  logic                 pool_change_valid_i,
  input  logic                 close_valid_i,
  input  logic [LogBits-1:0]   close_log_i,

  /// Deletion, see nearpm_peers.
  output logic                 delete_valid_o,
  output delete_t              delete_o,
  input  logic                 delete_ready_i,
  input  logic                 delete_done_i,
  output logic                 hold_o,
  /// All participants have completed a transaction of the log: for its row. `write_o`: the log
  /// becomes `new_log_o` in the same cycle.
  output logic                 all_complete_valid_o,
  output sequence_t            all_complete_number_o,
  input  logic                 all_complete_ready_i,
  output logic                 write_o,
  output log_t                 new_log_o,

  /// To the peers.
  ns_axi_if.master             m_host
);

  localparam int unsigned Logs = Pools * Threads;
  typedef logic [LogBits-1:0] log_index_t;

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
  log_index_t log_q;  // the log that is visited
  logic work_valid, sweep_active_q, address_known, notify_fire, all_complete, void_q;
  logic [Devices-1:0] notify, notify_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle:
        if (!freeze_i && !forget_i)
          state_q <= work_valid ? StPick : sweep_active_q ? StReadRow : StIdle;
        StPick: state_q <= forget_i ? StIdle : StReadRow;
        StReadRow:
        if (forget_i) state_q <= StIdle;
        else if (read_ready_i) state_q <= StReadLog;
        StReadLog: state_q <= forget_i ? StIdle : StEvaluate;
        StEvaluate:
        if (forget_i) state_q <= StIdle;
        else state_q <= (notify != '0) ? StNotify : all_complete ? StDelete : StIdle;
        StNotify:
        if (notify_q == '0) state_q <= StReadRow;
        else if (notify_fire) state_q <= StResponse;
        StResponse: if (m_host.b_valid) state_q <= StNotify;
        StDelete: if (delete_ready_i) state_q <= StDeleting;
        StDeleting: if (delete_done_i) state_q <= StLogEmpty;
        default: if (void_q || all_complete_ready_i) state_q <= StIdle;
      endcase
    end
  end

  assign log_o = log_q;
  assign read_valid_o = state_q == StReadRow;
  assign busy_o = work_valid || sweep_active_q || state_q != StIdle;

  // ---------------------------------------------------------------- choice of a log

  logic [Logs-1:0] work_q;
  logic [Pools-1:0] pool_work;
  logic [LogBits-ThreadBits-1:0] pool_turn, pool_q;
  logic [ThreadBits-1:0] thread_turn;
  logic sweep_step;
  log_index_t sweep_log_q;
  logic [Devices-1:0] sweep_peers_q;

  // Logs with work are served pool by pool in turn, and in each pool thread by thread in turn.
  for (genvar p = 0; p < Pools; p++) begin : gen_pool
    assign pool_work[p] = work_q[p*Threads+:Threads] != '0;
  end

  ns_rr_arbiter #(
    .N(Pools)
  ) u_pool (
    .clk_i,
    .rst_ni,
    .req_i  (pool_work),
    .next_i (state_q == StIdle && !freeze_i),
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
    .next_i (state_q == StPick),
    .gnt_o  (),
    .idx_o  (thread_turn),
    .valid_o()
  );

  // Work that arrives while the walk waits for its read is covered by that read.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) work_q <= '0;
    else if (forget_i) work_q <= '0;
    else begin
      if (state_q == StReadRow) work_q[log_q] <= 1'b0;
      if (work_valid_i) work_q[work_log_i] <= 1'b1;
    end
  end

  // A sweep visits all logs once, when none has work: after a peer is registered, and after a power
  // failure.
  assign sweep_step = state_q == StIdle && !freeze_i && !work_valid && sweep_active_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sweep_active_q <= 1'b0;
      sweep_log_q <= '0;
      sweep_peers_q <= '0;
    end else begin
      if (sweep_step) begin
        sweep_log_q <= sweep_log_q + 1'b1;
        if (sweep_log_q == '1) begin
          sweep_active_q <= 1'b0;
          sweep_peers_q <= '0;
        end
      end
      if (peer_registered_i != '0 || restored_i) begin
        sweep_active_q <= 1'b1;
        sweep_log_q <= '0;
        sweep_peers_q <= sweep_peers_q | peer_registered_i;
      end
      if (forget_i) begin
        sweep_active_q <= 1'b0;
        sweep_peers_q <= '0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) pool_q <= pool_turn;
    if (state_q == StIdle) log_q <= sweep_log_q;
    else if (state_q == StPick) log_q <= {pool_q, thread_turn};
  end

  // ---------------------------------------------------------------- evaluation

  logic log_open_q, pending_q;
  logic [Devices-1:0] participants_q, complete_q, row_notify_q;
  sequence_t number_q, own_number_q;
  logic [63:0] generation_q;

  // The pending transaction of the log, and which of its participants have completed it.
  always_ff @(posedge clk_i) begin
    if (read_ready_i) log_open_q <= open_i && pool_i.mapped;
    if (state_q == StReadLog) begin
      pending_q <= log_open_q && log_i.pending;
      number_q <= log_i.number;
      generation_q <= log_i.generation;
      participants_q <= log_i.participants;
      for (int unsigned n = 0; n < Devices; n++)
      complete_q[n] <= !log_i.participants[n] || row_i.completed[n] >= log_i.number;
    end
  end

  // What this device has completed, and which peers have not been notified of it.
  always_ff @(posedge clk_i) begin
    if (state_q == StReadLog) begin
      own_number_q <= row_i.completed[own_i];
      row_notify_q <= row_i.notify;
    end
  end

  assign all_complete = numbered_i && pending_q && participants_q[own_i] && complete_q == '1;

  // The log has changed since it was read. After a recover, which waits for the walk, it is still
  // true that all have completed the transaction of the log that is now empty: the row is written,
  // but the log is not. If the log has another owner or is closed, the transaction is void.
  logic voided, cancelled_q;
  assign voided = (pool_change_valid_i && pool_of(
      change_log_i
  ) == pool_of(
      log_q
  )) || (close_valid_i && close_log_i == log_q) || forget_i;
  always_ff @(posedge clk_i) begin
    void_q <= voided || (void_q && state_q != StReadRow);
    cancelled_q <= voided || (change_valid_i && change_log_i == log_q) || (cancelled_q && state_q != StReadRow);
  end

  // ---------------------------------------------------------------- notifications

  logic [Devices-1:0] next_peer, sweep_q;  // sweep_q: peers of a sweep
  logic [DeviceBits-1:0] next_peer_number, lane_q;
  logic [51:0] address_q;
  logic aw_q, w_q;  // still to be accepted
  completion_t notification;

  // Peers are notified of the present state, in a sweep of any state. More may have been completed
  // by the end.
  assign notify = numbered_i ? (row_notify_q | (sweep_q & {Devices{own_number_q != '0}})) & ~(Devices'(1) << own_i) : '0;

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) sweep_q <= work_valid ? '0 : sweep_peers_q;
    else if (state_q == StNotify) sweep_q <= '0;
  end

  // One after another, if their addresses are known.
  assign next_peer = notify_q & (~notify_q + 1'b1);
  always_comb begin
    next_peer_number = '0;
    for (int unsigned n = 0; n < Devices; n++) if (next_peer[n]) next_peer_number |= DeviceBits'(n);
  end
  assign address_known = addresses_i[next_peer_number] != '0;

  always_ff @(posedge clk_i) begin
    if (forget_i) notify_q <= '0;
    else if (state_q == StEvaluate) notify_q <= notify;
    else if (state_q == StNotify) notify_q <= notify_q & ~next_peer;
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StNotify) begin
      address_q <= addresses_i[next_peer_number];
      lane_q <= own_i;
    end
  end

  assign notify_fire = state_q == StNotify && notify_q != '0 && address_known && !freeze_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_q <= 1'b0;
      w_q  <= 1'b0;
    end else begin
      aw_q <= notify_fire || (aw_q && !m_host.aw_ready);
      w_q  <= notify_fire || (w_q && !m_host.w_ready);
    end
  end

  // A line holds one 64-bit register per device.
  assign notification = '{log: log_q, zero: '0, number: own_number_q};
  assign m_host.aw = '{id: '0, len: '0, size: 3'd6, burst: BurstIncr, addr: {address_q, PeerCompletions}};
  assign m_host.aw_valid = aw_q;
  assign m_host.w = '{last: 1'b1, strb: StrbWidth'(8'hFF) << {lane_q, 3'd0}, data: {8{notification}}};
  assign m_host.w_valid = w_q;
  assign m_host.b_ready = 1'b1;
  assign m_host.ar = '0;
  assign m_host.ar_valid = 1'b0;
  assign m_host.r_ready = 1'b1;

  // ---------------------------------------------------------------- deletion

  logic [MediaBits-1:0] logs_q, base_q, product, product_q;
  logic [31:0] log_bytes_q;

  // Descriptor of the log: the logs of the pool, and the thread's offset in them.
  always_comb begin
    product = '0;
    for (int unsigned b = 0; b < ThreadBits; b++)
    product += MediaBits'(log_q[b] ? log_bytes_q : '0) << b;
  end

  always_ff @(posedge clk_i) begin
    if (read_ready_i) begin
      logs_q <= pool_i.media + pool_i.logs;
      log_bytes_q <= pool_i.log_bytes[31:0];
    end
    product_q <= product;
    if (state_q == StEvaluate) base_q <= logs_q + product_q;
  end

  // A unit writes the descriptor.
  assign hold_o = state_q inside {StReadLog, StEvaluate, StDelete, StDeleting, StLogEmpty};
  assign delete_valid_o = state_q == StDelete;
  assign delete_o = '{log: log_q, base: base_q, generation: generation_q, number: number_q};

  // Then the row is written, and the log enters its next generation.
  assign all_complete_valid_o = state_q == StLogEmpty && !void_q;
  assign all_complete_number_o = number_q;
  assign write_o = all_complete_ready_i && !cancelled_q;
  assign new_log_o = '{
          spoiled: 1'b0,
          closed: 1'b0,
          open: 1'b1,
          pending: 1'b0,
          participants: '0,
          number: '0,
          committed: 1'b0,
          generation: generation_q + 64'd1,
          next: 32'd64,
          last: '0,
          records: '0
      };

  logic unused;
  assign unused = ^{m_host.aw_ready, m_host.b, m_host.ar_ready, m_host.r, m_host.r_valid, pool_i, log_i, row_i};

endmodule
