// SPDX-License-Identifier: Apache-2.0

// Two instances of nearpm_peers connected to each other, with one log per device: no log is deleted
// before both devices have completed its transaction, and then it is deleted.
//
// Notifications may arrive late, twice or in another order. Commits and their ends, units and the
// host port may be late too. For liveness, all of them respond at once from cycle 7 on, and no log
// waits in cycle 70. A false notification has to be detected.
module peers_proof
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
#(
  /// Asserted property. 0: no early deletion. 1: liveness. 2: as 0 with false notifications; has to
  /// fail. 3: no log ever becomes empty; has to fail. 4: as 1 with lost notifications; has to fail.
  parameter int unsigned Property = 0
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [1:0] commit_i,
  input logic [1:0] end_i,
  input logic [1:0] rest_i,
  input logic [1:0] look_i,
  input logic [1:0] unit_i,
  input logic [1:0] written_i,
  input logic [1:0] accept_i,
  input logic [1:0] answer_i,
  input logic [1:0] deliver_i,
  input logic [1:0] which_i,  // selects one of two messages
  input logic [1:0] again_i,  // the message is delivered once more
  input logic [1:0] register_i
);

  // Starts with a reset.
  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic [6:0] cycle_q;
  logic draining;
  assign draining = (Property == 1 || Property == 4) && cycle_q >= 7'd7;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cycle_q <= '0;
    else if (cycle_q != '1) cycle_q <= cycle_q + 1'b1;
  end

  // Reference: the last transaction whose commit has ended on each device.
  sequence_t [1:0] done_q, last_q;
  logic [1:0] pending_q, under_way_q;
  // Messages in flight to each device.
  logic [1:0][1:0] message_q;
  sequence_t [1:0][1:0] number_q;

  logic [1:0] sends, room, delete_valid;
  sequence_t [1:0] sent, deleted_number;
  logic [1:0] empties;

  for (genvar d = 0; d < 2; d++) begin : gen_device
    localparam int unsigned Peer = 1 - d;
    logic [1:0] generation_q;
    logic commit_begins, commit_done_valid, contexts_free, commit_done_ready, reads, writes;
    logic delete_accept, delete_done, deleting_q, asked_q, delivers, which;
    logic [LogBits-1:0] log;
    log_t new_log, log_now, log_q;
    pool_t pool;
    delete_t delete;
    completion_t [1:0] notifications;
    logic [1:0] peer_notified;
    logic notification_pending;  // the preceding notification is not yet accepted
    ns_axi_if host ();

    // Command decode uses the contexts exclusively, for six cycles.
    logic [2:0] lookup_wait_q;
    logic lookup_valid;
    assign contexts_free = draining || rest_i[d];
    assign lookup_valid = look_i[d] && !contexts_free && lookup_wait_q == '0;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) lookup_wait_q <= '0;
      else lookup_wait_q <= lookup_valid ? 3'd5 : (lookup_wait_q == '0) ? '0 : lookup_wait_q - 1'b1;
    end
    assign commit_begins = commit_i[d] && !contexts_free && !pending_q[d] && last_q[d] != '1;
    assign commit_done_valid = under_way_q[d] && commit_done_ready && (draining || end_i[d]);
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        pending_q[d] <= 1'b0;
        under_way_q[d] <= 1'b0;
        generation_q <= '0;
        last_q[d] <= '0;
        done_q[d] <= '0;
      end else begin
        if (commit_begins) begin
          pending_q[d] <= 1'b1;
          under_way_q[d] <= 1'b1;
          last_q[d] <= last_q[d] + 1'b1;
        end
        if (commit_done_valid) begin
          under_way_q[d] <= 1'b0;
          done_q[d] <= last_q[d];
        end
        if (writes) begin
          pending_q[d] <= 1'b0;
          generation_q <= new_log.generation[1:0];
        end
      end
    end

    always_comb begin
      log_now = '0;
      log_now.open = 1'b1;
      log_now.pending = pending_q[d];
      log_now.participants = '1;
      log_now.number = last_q[d];
      log_now.generation = 64'(generation_q);
      if (log != '0) log_now = '0;
      pool = '0;
      pool.mapped = 1'b1;
    end
    always_ff @(posedge clk_i) if (reads) log_q <= log_now;

    // Units.
    assign delete_accept = delete_valid[d] && (draining || unit_i[d]);
    assign delete_done = deleting_q && (draining || written_i[d]);
    assign deleted_number[d] = delete.number;
    assign empties[d] = writes;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) deleting_q <= 1'b0;
      else deleting_q <= delete_accept || (deleting_q && !delete_done);
    end

    // Host port: address and data together, while there is room.
    assign host.aw_ready = host.aw_valid && host.w_valid && room[Peer] && (draining || accept_i[d]);
    assign host.w_ready = host.aw_ready;
    assign host.b_valid = asked_q && (draining || answer_i[d]);
    assign host.b = '0;
    assign host.ar_ready = 1'b0;
    assign host.r_valid = 1'b0;
    assign host.r = '0;
    assign sends[d] = host.aw_ready;
    assign sent[d] = host.w.data[64*d+:SequenceBits];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) asked_q <= 1'b0;
      else asked_q <= sends[d] || (asked_q && !host.b_valid);
    end

    // Messages to this device.
    assign room[d] = message_q[d] != '1;
    assign which = draining ? !message_q[d][0] : which_i[d];
    assign delivers = (message_q[d][which] || Property == 2) && !notification_pending && (draining || deliver_i[d]);
    always_comb begin
      peer_notified = '0;
      peer_notified[Peer] = delivers;
      notifications = '0;
      notifications[Peer].number = (Property == 2) ? 2'd1 : number_q[d][which];
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        message_q[d] <= '0;
      end else begin
        if (delivers && (draining || !again_i[d])) message_q[d][which] <= 1'b0;
        if (sends[Peer] && Property != 4) message_q[d][message_q[d][0]] <= 1'b1;
      end
    end
    always_ff @(posedge clk_i) if (sends[Peer]) number_q[d][message_q[d][0]] <= sent[Peer];

    nearpm_peers u_peers (
      .clk_i,
      .rst_ni,
      .freeze_i           (1'b0),
      .busy_o             (),
      .numbered_i         (1'b1),
      .own_i              (DeviceBits'(d)),
      .select_i           ('0),
      .addresses_i        ({52'd1, 52'd1}),
      .peer_registered_i       ((register_i[d] && !draining) ? 2'b1 << Peer : '0),
      .peer_notified_i             (peer_notified),
      .notification_pending_o             (notification_pending),
      .notifications_i            (notifications),
      .view_o             (),
      .highest_o          (),
      .settled_o          (),
      .lookup_valid_i             (lookup_valid),
      .lookup_log_i         ('0),
      .completed_o        (),
      .commit_done_valid_i            (commit_done_valid),
      .commit_done_log_i        ('0),
      .commit_done_generation_i (64'(generation_q)),
      .commit_done_ready_o      (commit_done_ready),
      .contexts_free_i            (contexts_free),
      .read_o             (reads),
      .write_o            (writes),
      .log_o              (log),
      .new_log_o          (new_log),
      .pool_i             (pool),
      .open_i             (1'b1),
      .log_i              (log_q),
      .change_valid_i          (commit_begins),
      .change_log_i      ('0),
      .pool_change_valid_i           (1'b0),
      .close_valid_i           (1'b0),
      .close_log_i       ('0),
      .delete_valid_o     (delete_valid[d]),
      .delete_o           (delete),
      .delete_ready_i     (delete_accept),
      .delete_done_i          (delete_done),
      .hold_o             (),
      .save_index_i       ('0),
      .save_data_o        (),
      .restore_own_o      (),
      .restored_numbered_o(),
      .restored_own_o     (),
      .restore_i          (1'b0),
      .restore_index_i    ('0),
      .restore_data_i     ('0),
      .m_host             (host)
    );

    always @(posedge clk_i)
      if (rst_ni) begin
        // No deletion before both devices have completed the transaction; only a pending log
        // becomes empty.
        if (Property == 0 || Property == 2)
          no_early_deletion :
          assert (!delete_valid[d] || (delete.log == '0 && delete.number <= done_q[0] && delete.number <= done_q[1]));
        if (Property == 0) begin
          only_pending_becomes_empty :
          assert (!writes || (log == '0 && pending_q[d] && !under_way_q[d]));
          // Notifications are true.
          sent_is_complete : assert (!sends[d] || sent[d] <= done_q[d]);
          message_is_true_0 : assert (!message_q[d][0] || number_q[d][0] <= done_q[Peer]);
          message_is_true_1 : assert (!message_q[d][1] || number_q[d][1] <= done_q[Peer]);
        end
        if ((Property == 1 || Property == 4) && cycle_q >= 7'd70)
          no_log_waits : assert (!pending_q[d] || last_q[Peer] < last_q[d]);
        if (Property == 3) no_log_becomes_empty : assert (!writes);
      end
  end

endmodule
