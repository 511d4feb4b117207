// SPDX-License-Identifier: Apache-2.0

// The dispatcher with two units and four commands, against a model of its ports. Upstream is the
// table, or anything that keeps the guarantees of the table (table_proof.sv).
//
// Commands arrive at any time, units end in any order and with any error, and a log of several
// devices may be deleted in between. There are two pools with two logs each; a log holds two
// records, a pool two objects. Conflicts follow from the meaning of the commands, not from ranges
// of lines. Nothing is restored.
module dispatch_proof
  import command_page_pkg::*;
  import nearpm_pkg::*;
#(
  /// The table is upstream.
  parameter bit Table = 1'b1,
  /// Copies are divided, with three units: records, switches, and copies of one and of two lines.
  parameter bit Parts = 1'b0,
  /// Asserted property. 0: all guarantees. 4: a ready command is assigned within a bound, with
  /// switches alone. The others have to fail. 1: no command that had a conflict is assigned. 2: no
  /// command is cancelled. 3: no commit of several devices ends after another one. 5: no copy is
  /// divided.
  parameter int unsigned Property = 0,
  parameter int unsigned Units = Parts ? 3 : 2
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic                   freeze_i,
  input logic                   insert_valid_i,
  input logic [CommandBits-1:0] insert_number_i,
  input logic [3:0]             insert_kind_i,
  input logic [LogBits-1:0]     insert_log_i,
  input logic                   insert_record_i,
  input logic                   insert_object_i,
  input logic                   insert_open_i,
  input logic                   insert_closed_i,
  input commands_t              ready_i,
  input logic [Units-1:0]       unit_end_i,
  input logic [Units-1:0][2:0]  unit_error_i,
  input logic [Units-1:0]       unit_value_i,
  input logic                   delete_i,
  input logic [LogBits-1:0]     delete_log_i,
  input logic                   hold_i,
  input logic                   pool_change_valid_i,
  input logic [LogBits-ThreadBits-1:0] pool_change_number_i,
  input logic                   commit_done_ready_i
);

  // Starts with a reset.
  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  assume property (@(posedge clk_i) rst_ni == started_q);

  // ---------------------------------------------------------------- commands

  typedef enum logic [3:0] {
    Record,
    Commit,
    CommitPeers,
    Recover,
    Switch,
    Sync,
    Open,
    Copy,  // within an object: no other command of its log depends on it
    RecordBoth,  // a command with two ranges
    CopyBoth  // of two lines, from a place within a line on: has two parts
  } kind_e;
  assume property (@(posedge clk_i) Parts ? insert_kind_i inside {4'(Record), 4'(Switch), 4'(Copy), 4'(CopyBoth)} :
      insert_kind_i <= 4'(RecordBoth));

  typedef struct packed {
    kind_e              kind;
    logic [LogBits-1:0] log;
    logic               record;  // place in the log
    logic               object;  // index in the pool
  } command_t;

  function automatic logic records(command_t c);
    return c.kind inside {Record, RecordBoth};
  endfunction

  function automatic logic of_log(command_t c);
    return c.kind inside {Record, RecordBoth, Commit, CommitPeers, Sync, Open};
  endfunction

  /// Has no effect when the log is closed.
  function automatic logic needs(command_t c);
    return c.kind inside {Record, RecordBoth, Commit, CommitPeers};
  endfunction

  /// Is cancelled when the log is closed after it was accepted.
  function automatic logic builds(command_t c);
    return needs(c) || c.kind inside {Switch, Open};
  endfunction

  function automatic logic copies(command_t c);
    return c.kind inside {Copy, CopyBoth};
  endfunction

  /// Is about both objects.
  function automatic logic both(command_t c);
    return c.kind inside {RecordBoth, CopyBoth};
  endfunction

  /// Command b waits for command a.
  function automatic logic conflicts(command_t a, command_t b);
    if (a.log[LogBits-1:ThreadBits] != b.log[LogBits-1:ThreadBits]) return 1'b0;
    if (a.kind == Recover || b.kind == Recover) return 1'b1;
    if (of_log(a) && of_log(b) && a.log == b.log)
      return a.kind != Record || b.kind != Record || a.record == b.record;
    // Data that are recorded must not change before the record is made.
    if ((a.kind == Switch || copies(
            a
        )) && (b.kind == Switch || copies(
            b
        ) || records(
            b
        )) && (a.object == b.object || both(
            a
        ) || both(
            b
        )))
      return 1'b1;
    if (records(a) && (b.kind == Switch || copies(b)))
      return a.object == b.object || both(a) || both(b);
    // A page is not replaced before it has been copied.
    if (copies(a) && b.kind == Switch) return a.log == b.log;
    // No older command closes a log that has been opened.
    return (a.kind == Switch || copies(a)) && b.kind == Open && a.log == b.log;
  endfunction

  // A pool has 16 lines: two objects, and logs of four lines from the eighth line on.
  function automatic job_t job_of(command_t c);
    logic [MediaBits-1:0] pool, base;
    pool = MediaBits'(c.log[LogBits-1:ThreadBits]) << 10;
    base = pool + 512 + (MediaBits'(c.log[ThreadBits-1:0]) << 8);
    job_of = '0;
    job_of.log = c.log;
    job_of.source = pool + (MediaBits'(c.object) << 6);
    job_of.target = (c.kind == Record) ? base + (MediaBits'(c.record) << 7) : job_of.source;
    job_of.object = 64'd256;
    job_of.base = base;
    job_of.pool = pool;
    job_of.pool_last = pool + 1023;
    unique case (c.kind)
      Record:      {job_of.op, job_of.bytes} = {OpUndo, 17'd64};
      RecordBoth: begin
        job_of.op = OpUndoRanges;
        job_of.source = pool;
        job_of.pool_last = pool + 127;
        job_of.object = {8'd0, 16'd64, 40'd0};
        job_of.more[0] = {16'd64, 40'd64};
        job_of.target = base;
        job_of.bytes = 17'd4;
      end
      Commit:      job_of.op = OpCommit;
      CommitPeers: {job_of.op, job_of.bytes} = {OpCommit, 17'd3};
      Recover:     job_of.op = OpRecover;
      Switch:      job_of.op = OpSwitch;
      Open:        job_of.op = OpLogOpen;
      Copy:        {job_of.op, job_of.bytes} = {OpCopy, 17'd64};
      CopyBoth: begin
        {job_of.op, job_of.bytes} = {OpCopy, 17'd100};
        job_of.source = pool + 3;
        job_of.target = pool + 8;
      end
      default:     job_of.op = OpSync;
    endcase
  endfunction

  command_t insert;
  assign insert = '{
          kind: kind_e'(insert_kind_i),
          log: insert_log_i,
          record: insert_record_i,
          object: insert_object_i
      };
  // ---------------------------------------------------------------- device under test

  logic
      busy,
      issue_valid,
      retire_valid,
      inserted,
      assign_valid,
      delete_grant,
      delete_done,
      commit_done_valid,
      done_valid,
      close_valid,
      close_spoiled,
      restore;
  logic save_stale;
  logic [CommandBits-1:0] issue_number, retire_number;
  logic [Units-1:0] job_valid, job_ready, end_valid, end_ready;
  unit_end_t [Units-1:0] end_data;
  job_t job, insert_job, save_job;
  page_done_t done_data;
  logic [LogBits-1:0] commit_done_log, close_log;
  logic [63:0] commit_done_generation;
  commands_t ready, cancelled, insert_after;
  delete_t delete;
  logic delete_valid;

  assign insert_job = job_of(insert);

  nearpm_dispatch #(
    .Units(Units)
  ) u_dispatch (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .busy_o               (busy),
    .inserted_i             (inserted),
    .insert_number_i,
    .insert_job_i         (insert_job),
    .insert_open_i,
    .insert_closed_i,
    .insert_after_o             (insert_after),
    .ready_i              (ready),
    .issue_valid_o              (issue_valid),
    .issue_number_o       (issue_number),
    .retire_valid_o                (retire_valid),
    .retire_number_o         (retire_number),
    .job_o                (job),
    .job_valid_o          (job_valid),
    .job_ready_i          (job_ready),
    .unit_end_i                (end_data),
    .unit_end_valid_i          (end_valid),
    .unit_end_ready_o          (end_ready),
    .delete_valid_i       (delete_valid),
    .delete_i             (delete),
    .delete_ready_o       (delete_grant),
    .delete_done_o            (delete_done),
    .hold_i,
    .pool_change_valid_i,
    .pool_change_number_i,
    .commit_done_valid_o           (commit_done_valid),
    .commit_done_log_o       (commit_done_log),
    .commit_done_generation_o(commit_done_generation),
    .commit_done_ready_i,
    .done_valid_o               (done_valid),
    .done_data_o          (done_data),
    .close_valid_o              (close_valid),
    .close_log_o          (close_log),
    .close_spoiled_o       (close_spoiled),
    .save_number_i        ('0),
    .save_job_o           (save_job),
    .save_stale_o         (save_stale),
    .cancelled_o             (cancelled),
    .restore_i            (1'b0),
    .restore_number_i     ('0),
    .restore_job_i        ('0),
    .restore_stale_i      (1'b0),
    .restore_cancelled_i     (1'b0),
    .cancelled_i             ('0)
  );

  // ---------------------------------------------------------------- model

  commands_t present_q, issued_q, assigned_q, retired_q;
  command_t  command_q[Commands];
  commands_t older_q  [Commands];
  // closed_q: an error closed the log before or after the command was accepted. builds_q: a command
  // that it waited for has failed. waited_q: the command has waited.
  commands_t closed_q, builds_q, waited_q;
  // The pool has been unmapped since.
  commands_t stale_q;
  commands_t conflict;
  // Cycles in which only other commands delayed it.
  logic [3:0] free_q[Commands];

  always_comb begin
    for (int unsigned n = 0; n < Commands; n++) begin
      conflict[n] = 1'b0;
      for (int unsigned m = 0; m < Commands; m++)
      if (older_q[n][m] && conflicts(command_q[m], command_q[n])) conflict[n] = 1'b1;
    end
  end

  // The command that is issued and not yet assigned.
  commands_t to_assign;
  logic [CommandBits-1:0] number;
  assign to_assign = issued_q & ~assigned_q;
  always_comb begin
    number = '0;
    for (int unsigned n = 0; n < Commands; n++) if (to_assign[n]) number |= CommandBits'(n);
  end
  assign assign_valid = job_valid != '0 && !delete_grant;

  // Bytes of this command that are assigned. A command is assigned with its last part.
  logic [16:0] assigned_bytes_q;
  logic assign_last;
  job_t whole, part;
  assign whole = job_of(command_q[number]);
  assign assign_last = command_q[number].kind != CopyBoth || assigned_bytes_q + job.bytes >= whole.bytes;
  always_comb begin
    part = whole;
    if (command_q[number].kind == CopyBoth) begin
      part.source = whole.source + MediaBits'(assigned_bytes_q);
      part.target = whole.target + MediaBits'(assigned_bytes_q);
      part.bytes  = assign_last ? whole.bytes - assigned_bytes_q : job.bytes;
    end
  end

  // Units.
  logic [Units-1:0] works_q, ends_q, deletes_q;
  logic [CommandBits-1:0] number_q[Units];
  unit_end_t [Units-1:0] end_q;
  logic [2:0] end_for_q[Units];
  // Other parts of the command of a unit are executed or still to be assigned.
  logic [Units-1:0] partly_assigned, more_parts;
  result_t part_result_q[Commands];  // errors of parts that have ended
  always_comb begin
    for (int unsigned u = 0; u < Units; u++) begin
      partly_assigned[u] = !deletes_q[u] && assigned_bytes_q != '0 && number_q[u] == number;
      more_parts[u] = partly_assigned[u];
      for (int unsigned v = 0; v < Units; v++)
      if (u != v && works_q[v] && !deletes_q[v] && !deletes_q[u] && number_q[u] == number_q[v])
        more_parts[u] = 1'b1;
    end
  end
  assign job_ready = ~works_q;
  assign end_valid = ends_q;
  assign end_data  = end_q;

  // Result to be reported in this cycle.
  logic reported_q, reported_delete_q;
  logic [CommandBits-1:0] reported_number_q;
  unit_end_t reported_end_q;
  logic cancel_valid;
  assign cancel_valid = retire_valid && !(reported_q && !reported_delete_q);

  // A command on a log failed in a unit; whether the log still has the same owner.
  logic end_failed, stale, delete_stale_q;
  logic [LogBits-1:0] fail_log;
  assign end_failed = reported_q && reported_end_q.result != '0 &&
      (reported_delete_q || command_q[reported_number_q].kind != Sync);
  assign fail_log = reported_delete_q ? delete.log : command_q[reported_number_q].log;
  assign stale = reported_delete_q ? delete_stale_q : stale_q[reported_number_q];

  logic free;
  assign free = job_ready != '0 && !delete_valid && !hold_i && !freeze_i &&
      (end_valid == '0 || (present_q & closed_q) == '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      present_q  <= '0;
      issued_q  <= '0;
      assigned_q  <= '0;
      retired_q  <= '0;
      closed_q <= '0;
      builds_q <= '0;
      waited_q <= '0;
      stale_q  <= '0;
      delete_stale_q <= 1'b0;
      for (int unsigned n = 0; n < Commands; n++) begin
        command_q[n] <= '0;
        older_q[n] <= '0;
        free_q[n] <= '0;
      end
      assigned_bytes_q <= '0;
      for (int unsigned n = 0; n < Commands; n++) part_result_q[n] <= '0;
      works_q <= '0;
      ends_q <= '0;
      deletes_q <= '0;
      reported_q <= 1'b0;
      reported_delete_q <= 1'b0;
      reported_number_q <= '0;
      reported_end_q <= '0;
      end_q <= '0;
      for (int unsigned u = 0; u < Units; u++) begin
        number_q[u]  <= '0;
        end_for_q[u] <= '0;
      end
    end else begin
      retired_q <= '0;
      for (int unsigned n = 0; n < Commands; n++) begin
        if (present_q[n] && conflict[n]) waited_q[n] <= 1'b1;
        if (retire_valid) older_q[n][retire_number] <= 1'b0;
        if (pool_change_valid_i && command_q[n].log[LogBits-1:ThreadBits] == pool_change_number_i)
          stale_q[n] <= 1'b1;
        if (end_failed && command_q[n].log == fail_log && stale_q[n] == stale && builds(
                command_q[n]
            )) begin
          closed_q[n] <= 1'b1;
          if (retire_valid && older_q[n][retire_number] && conflicts(
                  command_q[retire_number], command_q[n]
              ))
            builds_q[n] <= 1'b1;
        end
        if (ready[n] || to_assign[n]) free_q[n] <= free_q[n] + 4'(free && free_q[n] != '1);
        else free_q[n] <= '0;
      end
      if (issue_valid && !freeze_i) issued_q[issue_number] <= 1'b1;
      if (assign_valid) begin
        assigned_q[number] <= assign_last;
        assigned_bytes_q <= assign_last ? '0 : assigned_bytes_q + job.bytes;
      end
      if (retire_valid && !freeze_i) begin
        present_q[retire_number] <= 1'b0;
        issued_q[retire_number] <= 1'b0;
        assigned_q[retire_number] <= 1'b0;
        retired_q[retire_number] <= 1'b1;
      end
      if (inserted) begin
        present_q[insert_number_i] <= 1'b1;
        command_q[insert_number_i] <= insert;
        older_q[insert_number_i] <= present_q & ~(retire_valid ? commands_t'(1) << retire_number : '0);
        closed_q[insert_number_i] <= (needs(insert) && (!insert_open_i || (close_valid && close_log == insert.log))) ||
            (insert.kind == Switch && (insert_closed_i || (close_valid && close_log == insert.log)));
        part_result_q[insert_number_i] <= '0;
        builds_q[insert_number_i] <= 1'b0;
        waited_q[insert_number_i] <= 1'b0;
        stale_q[insert_number_i] <= 1'b0;
      end

      if (!hold_i) delete_stale_q <= 1'b0;
      if (pool_change_valid_i && delete.log[LogBits-1:ThreadBits] == pool_change_number_i)
        delete_stale_q <= 1'b1;

      reported_q <= (end_valid & end_ready & ~more_parts) != '0 && !freeze_i;
      for (int unsigned u = 0; u < Units; u++) begin
        if (job_valid[u]) begin
          works_q[u] <= 1'b1;
          deletes_q[u] <= delete_grant;
          number_q[u] <= number;
        end
        if (works_q[u] && !ends_q[u] && unit_end_i[u]) begin
          ends_q[u] <= 1'b1;
          end_q[u] <= '0;
          end_q[u].value <= 64'(unit_value_i[u]);
          end_q[u].spoiled <= unit_value_i[u];
          end_q[u].result.read_error <= unit_error_i[u] == 3'd1;
          end_q[u].result.write_error <= unit_error_i[u] == 3'd2;
          end_q[u].result.torn <= unit_error_i[u] == 3'd3;
          end_q[u].result.log_full <= unit_error_i[u] == 3'd4;
          end_for_q[u] <= '0;
        end
        if (ends_q[u] && commit_done_ready_i && assigned_bytes_q == '0)
          end_for_q[u] <= end_for_q[u] + 1'b1;
        if (end_valid[u] && end_ready[u]) begin
          works_q[u] <= 1'b0;
          ends_q[u] <= 1'b0;
          reported_delete_q <= deletes_q[u];
          reported_number_q <= number_q[u];
          reported_end_q <= end_q[u];
          if (!deletes_q[u]) begin
            reported_end_q.result <= end_q[u].result | part_result_q[number_q[u]];
            part_result_q[number_q[u]] <= end_q[u].result | part_result_q[number_q[u]];
          end
        end
      end
    end
  end

  // ---------------------------------------------------------------- assumptions

  // A copy fails with errors of the memory only.
  if (Parts) begin : gen_copy_errors
    assume property (@(posedge clk_i) unit_error_i[0] <= 3'd2 && unit_error_i[1] <= 3'd2 && unit_error_i[2] <= 3'd2);
  end

  // Several devices: a deletion is held until a unit accepts it, and the next one follows after its
  // end. Meanwhile `hold_i` is 1.
  logic delete_q, deleting_q;
  logic [LogBits-1:0] delete_log_q;
  logic [2:0] delete_for_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      delete_q <= 1'b0;
      deleting_q <= 1'b0;
      delete_for_q <= '0;
      delete_log_q <= '0;
    end else begin
      if (delete_i && hold_i && !delete_q && !deleting_q) delete_q <= 1'b1;
      if (delete_grant) {delete_q, deleting_q} <= 2'b01;
      if (delete_done) deleting_q <= 1'b0;
      if (!hold_i || (!delete_q && !deleting_q && !delete_i)) delete_log_q <= delete_log_i;
      delete_for_q <= !delete_q ? '0 : delete_for_q + 3'(job_ready != '0 && end_valid == '0 && !freeze_i);
    end
  end
  assign delete_valid = delete_q;
  always_comb begin
    delete = '0;
    delete.log = delete_log_q;
    delete.base = MediaBits'(delete_log_q) << 6;
  end
  assume property (@(posedge clk_i) !(delete_q || deleting_q) || hold_i);

  // A commit that has ended occupies the peers' buffer from the next cycle until it is accepted.
  logic commit_done_ready_q, commit_done_valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {commit_done_ready_q, commit_done_valid_q} <= '0;
    else {commit_done_ready_q, commit_done_valid_q} <= {commit_done_ready_i, commit_done_valid};
  end
  assume property (@(posedge clk_i) disable iff (!rst_ni) !commit_done_valid_q || !commit_done_ready_i);
  assume property (@(posedge clk_i) disable iff (!rst_ni) !commit_done_ready_q || commit_done_ready_i || commit_done_valid_q);

  // A pool is unmapped before its pool_unmap command is inserted.
  assume property (@(posedge clk_i) !pool_change_valid_i || !insert_valid_i);

  // A freeze lasts until the reset.
  logic freeze_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) freeze_q <= 1'b0;
    else freeze_q <= freeze_i;
  end
  assume property (@(posedge clk_i) !freeze_q || freeze_i);

  // A page line is free in the cycle after the end of its command.
  assume property (@(posedge clk_i) !insert_valid_i || (!present_q[insert_number_i] && !retired_q[insert_number_i]));

  if (Table) begin : gen_table
    nearpm_lookup_if lookup[1] ();
    nearpm_order_if order[1] ();
    commands_t retired, dropped, save_commands;
    logic table_busy, save_valid;
    logic [0:0][7:0] save_lines;
    ranges_t insert_ranges;
    logic insert_q;
    logic [CommandBits-1:0] insert_number_q;
    command_t held_q;

    assign insert_ranges = nearpm_job_pkg::ranges_of(insert_job);
    assign lookup[0].valid = 1'b0;
    assign lookup[0].write = 1'b0;
    assign lookup[0].lines = '0;
    assign order[0].stores = '0;
    assign order[0].answered = '0;
    assign order[0].queued = '0;
    assign order[0].written = '0;
    assign order[0].quiet = 1'b1;
    assign order[0].overlap = 1'b0;

    nearpm_table #(
      .NumChannels(1)
    ) u_table (
      .clk_i,
      .rst_ni,
      .freeze_i,
      .busy_o            (table_busy),
      .insert_valid_i,
      .insert_number_i,
      .insert_ranges_i   (insert_ranges),
      .insert_internal_i (1'b0),
      .insert_after_i   (insert_after),
      .inserted_o        (inserted),
      .present_o         (),
      .ready_o           (ready),
      .issue_valid_i           (issue_valid),
      .issue_number_i    (issue_number),
      .retire_valid_i             (retire_valid),
      .retire_number_i      (retire_number),
      .retired_o           (retired),
      .dropped_o         (dropped),
      .save_number_i     ('0),
      .save_valid_o      (save_valid),
      .save_commands_o   (save_commands),
      .save_lines_o      (save_lines),
      .restore_i         (1'b0),
      .restore_number_i  ('0),
      .restore_ranges_i  ('0),
      .restore_commands_i('0),
      .restore_lines_i   ('0),
      .lookup            (lookup),
      .order             (order)
    );

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) insert_q <= 1'b0;
      else insert_q <= insert_valid_i && !inserted;
    end
    always_ff @(posedge clk_i) {insert_number_q, held_q} <= {insert_number_i, insert};
    assume property (@(posedge clk_i) !insert_q || (insert_valid_i && insert_number_i == insert_number_q && insert == held_q));

    // The table does not depend on the numbers, so the lowest free one is sufficient. Deletion and
    // freeze are covered without the table.
    logic [CommandBits-1:0] first_free;
    always_comb begin
      first_free = '0;
      for (int n = Commands - 1; n >= 0; n--)
      if (!present_q[n] && !retired_q[n]) first_free = CommandBits'(n);
    end
    assume property (@(posedge clk_i) insert_q || insert_number_i == first_free);
    assume property (@(posedge clk_i) !delete_i && !hold_i && !freeze_i && !pool_change_valid_i);
  end else begin : gen_any
    // A command may become ready whenever it is not issued and its conflicts have ended. It then
    // stays ready.
    commands_t ready_q, conflict_q;
    assign inserted = insert_valid_i && !freeze_i;
    assign ready = freeze_i ? '0 : ready_i & present_q & ~issued_q & ~conflict & ~conflict_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        ready_q <= '0;
        conflict_q <= '0;
      end else begin
        ready_q <= ready & ~(issue_valid ? commands_t'(1) << issue_number : '0);
        conflict_q <= conflict;
      end
    end
    assume property (@(posedge clk_i) (ready_q & ~ready_i) == '0);
  end

  // ---------------------------------------------------------------- guarantees

  if (Property == 1) begin : gen_none_waits
    assert property (@(posedge clk_i) disable iff (!rst_ni) !assign_valid || !waited_q[number]);
  end else if (Property == 2) begin : gen_none_refused
    assert property (@(posedge clk_i) disable iff (!rst_ni) !cancel_valid);
  end else if (Property == 3) begin : gen_one_complete
    logic before_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) before_q <= 1'b0;
      else if (commit_done_valid) before_q <= 1'b1;
    end
    assert property (@(posedge clk_i) disable iff (!rst_ni) !(before_q && commit_done_valid));
  end else if (Property == 5) begin : gen_none_divided
    assert property (@(posedge clk_i) disable iff (!rst_ni) assigned_bytes_q == '0);
  end else if (Property == 4) begin : gen_fairness
    assume property (@(posedge clk_i) insert.kind == Switch && !insert_closed_i && unit_error_i == '0 && !delete_i && !hold_i && !freeze_i);
    // A ready command is assigned when a unit is free: each other command precedes it at most once.
    for (genvar n = 0; n < Commands; n++) begin : gen_free
      assert property (@(posedge clk_i) disable iff (!rst_ni) free_q[n] < 4'd13);
    end
  end else begin : gen_safe
    // Only present and ready commands are issued, one at a time.
    assert property (@(posedge clk_i) disable iff (!rst_ni)
        !issue_valid || freeze_i || (present_q[issue_number] && !issued_q[issue_number] && ready[issue_number]));
    assert property (@(posedge clk_i) disable iff (!rst_ni) (to_assign & (to_assign - 1'b1)) == '0);
    // A job is assigned to one idle unit.
    assert property (@(posedge clk_i) disable iff (!rst_ni)
        (job_valid & (job_valid - 1'b1)) == '0 && (job_valid & ~job_ready) == '0);
    // The assigned command is the issued one, its job is unchanged, no older conflict is present,
    // and nothing that it depends on has failed.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !assign_valid || to_assign != '0);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !assign_valid || job == part);
    // Parts are not empty, end with a line of the target, and are assigned one after another. Then
    // a unit is idle.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !assign_valid || assign_last ||
        (job.bytes != '0 && 6'(job.target + MediaBits'(job.bytes)) == '0));
    assert property (@(posedge clk_i) disable iff (!rst_ni) assigned_bytes_q == '0 || freeze_i || assign_valid);
    assert property (@(posedge clk_i) disable iff (!rst_ni) assigned_bytes_q == '0 || freeze_i || $countones(
        job_ready
    ) > 1);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !assign_valid || !conflict[number]);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !assign_valid || !builds_q[number]);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !assign_valid || !hold_i || command_q[number].kind != Recover ||
        command_q[number].log[LogBits-1:ThreadBits] != delete.log[LogBits-1:ThreadBits]);
    // A deletion is assigned on request, unchanged.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !delete_grant || (delete_q && job_valid != '0 &&
        job.op == OpDelete && job.log == delete.log && job.base == delete.base));
    // The result of a unit is reported in the next cycle. Otherwise only cancelled commands are
    // reported.
    assert property (@(posedge clk_i) disable iff (!rst_ni)
        freeze_q || !(reported_q && !reported_delete_q) || (retire_valid && retire_number == reported_number_q &&
                                         done_data.result == 32'(reported_end_q.result) && done_data.value == reported_end_q.value));
    assert property (@(posedge clk_i) disable iff (!rst_ni) delete_done == (reported_q && reported_delete_q));
    assert property (@(posedge clk_i) disable iff (!rst_ni)
        !cancel_valid || (assigned_bytes_q == '0 && to_assign[retire_number] && closed_q[retire_number] && done_data.result == 32'd8 && done_data.value == '0));
    // Only a present command ends, once, with one response.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !retire_valid || (present_q[retire_number] && issued_q[retire_number]));
    assert property (@(posedge clk_i) disable iff (!rst_ni)
        done_valid == retire_valid && (!done_valid || done_data.line == LineWidth'(retire_number)));
    // An error closes its log, unless the log may have another owner by now.
    assert property (@(posedge clk_i) disable iff (!rst_ni) close_valid == (end_failed && !stale));
    assert property (@(posedge clk_i) disable iff (!rst_ni)
        !close_valid || (close_log == fail_log && close_spoiled == reported_end_q.spoiled));
    // Each commit of several devices is reported to the peers when they can accept it. One that is
    // executed again, or whose log may have another owner, is not.
    assert property (@(posedge clk_i) disable iff (!rst_ni) commit_done_valid == (reported_q && !reported_delete_q &&
        command_q[reported_number_q].kind == CommitPeers && reported_end_q.result == '0 && !stale && !freeze_i));
    assert property (@(posedge clk_i) disable iff (!rst_ni) !commit_done_valid || (commit_done_ready_q && !commit_done_valid_q &&
        commit_done_log == command_q[reported_number_q].log && commit_done_generation == reported_end_q.value));
    // A result is accepted within 3 cycles in which the peers accept one, with more units as many
    // and 1, not counting those between the assignments of parts. A deletion is assigned at
    // the latest in the second cycle with an idle unit and no result. A division and a second part
    // delay it by a cycle each.
    for (genvar u = 0; u < Units; u++) begin : gen_end
      assert property (@(posedge clk_i) disable iff (!rst_ni) !ends_q[u] || end_for_q[u] <= 3'(Units));
    end
    assert property (@(posedge clk_i) disable iff (!rst_ni) delete_for_q < (Parts ? 3'd5 : 3'd3));
    // The dispatcher is idle only without commands.
    assert property (@(posedge clk_i) disable iff (!rst_ni) freeze_i || busy || issued_q == '0);
    // While frozen nothing is issued or ends.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !freeze_i || job_valid == '0);
    assert property (@(posedge clk_i) disable iff (!rst_ni) !freeze_q || (!retire_valid && !delete_done && !commit_done_valid));
  end

endmodule
