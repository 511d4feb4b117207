// SPDX-License-Identifier: Apache-2.0

// Dispatcher: keeps the jobs of the commands, assigns ready commands to idle units, and reports
// results.
//
//   insertion ─► commands ─► issue ─► units ─► results ─► responses, closed logs
//                              └─► cancelled ──┘
//
// Commands and results are served round-robin. A command is cancelled if an error closed its log
// after the command was accepted: nothing that depends on a missing record is executed.
//
// A large copy is divided over idle units, of which one is left for other commands. Its parts are
// assigned one after another. It ends when all of its parts have ended, with the errors of all.
`include "ns_assert.svh"

module nearpm_dispatch
  import ns_axi_pkg::*;
  import command_page_pkg::*;
  import nearpm_pkg::*;
  import nearpm_job_pkg::*;
#(
  /// Units.
  parameter int unsigned Units = 4
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  /// No command is issued or retired. From a register.
  input  logic                   freeze_i,
  /// From registers.
  output logic                   busy_o,

  /// A command enters the table. `insert_open_i`: its log is open. `insert_closed_i`: an error
  /// closed the log.
  input  logic                   inserted_i,
  input  logic [CommandBits-1:0] insert_number_i,
  input  job_t                   insert_job_i,
  input  logic                   insert_open_i,
  input  logic                   insert_closed_i,

  /// Table. `insert_after_o`: commands that `insert_job_i` waits for regardless of ranges. A switch
  /// waits for the copies of its thread, a log_open for all commands of its thread. Some of them
  /// may have ended.
  output commands_t              insert_after_o,
  input  commands_t              ready_i,
  output logic                   issue_valid_o,
  output logic [CommandBits-1:0] issue_number_o,
  output logic                   retire_valid_o,
  output logic [CommandBits-1:0] retire_number_o,

  /// Units.
  output job_t                   job_o,
  output logic [Units-1:0]       job_valid_o,
  input  logic [Units-1:0]       job_ready_i,
  input  unit_end_t [Units-1:0]       unit_end_i,
  input  logic [Units-1:0]       unit_end_valid_i,
  output logic [Units-1:0]       unit_end_ready_o,

  /// Deletion: a unit empties a log whose transaction all devices have completed; `delete_done_o`:
  /// it has ended. While `hold_i` is 1, no command on that pool as a whole starts.
  input  logic                   delete_valid_i,
  input  delete_t                delete_i,
  output logic                   delete_ready_o,
  output logic                   delete_done_o,
  input  logic                   hold_i,
  /// A pool is mapped or unmapped: its commands in flight no longer affect its logs.
  input  logic                   pool_change_valid_i,
  input  logic [LogBits-ThreadBits-1:0] pool_change_number_i,
  /// A commit of several devices has ended without an error: its log and that log's generation.
  output logic                   commit_done_valid_o,
  output logic [LogBits-1:0]     commit_done_log_o,
  output logic [63:0]            commit_done_generation_o,
  input  logic                   commit_done_ready_i,

  /// A command has ended without an error, and its log has the same owner: it completes a
  /// transaction of the log, or has opened the log.
  output logic                   progress_valid_o,
  output logic                   progress_opens_o,
  output logic [LogBits-1:0]     progress_log_o,
  output logic [63:0]            progress_transaction_o,

  /// Response of a command, for one cycle, together with `retire_valid_o`. Commands restored after
  /// a power failure have none.
  output logic                   done_valid_o,
  output page_done_t             done_data_o,
  /// Closes the log of the command.
  output logic                   close_valid_o,
  output logic [LogBits-1:0]     close_log_o,
  output logic                   close_spoiled_o,

  /// Save: number of a command. A cycle later: its job, and whether its pool has changed since.
  /// `cancelled_o`: commands that are not to be executed.
  input  logic [CommandBits-1:0] save_number_i,
  output job_t                   save_job_o,
  output logic                   save_stale_o,
  output commands_t              cancelled_o,
  /// Restores a command.
  input  logic                   restore_i,
  input  logic [CommandBits-1:0] restore_number_i,
  input  job_t                   restore_job_i,
  input  logic                   restore_stale_i,
  /// Restores the cancelled commands.
  input  logic                   restore_cancelled_i,
  input  commands_t              cancelled_i
);

  localparam int unsigned UnitBits = idx_width(Units);

  // ---------------------------------------------------------------- commands

  // A command enters with its insertion or its restore.
  logic write;
  logic [CommandBits-1:0] write_number;
  job_t write_job;
  logic [LogBits-1:0] logs_q[Commands];
  commands_t is_copy_q;
  commands_t is_large_copy_q;  // can be divided
  commands_t depends_on_log_q;  // cancelled when its log is closed
  commands_t closes_log_q;  // closes its log when it fails
  commands_t response_due_q;  // accepted since the reset
  commands_t stale_q;  // its pool has been mapped or unmapped since
  commands_t assigned_q;  // assigned to a unit, which completes it
  commands_t cancelled_q;  // not to be executed

  assign write = inserted_i || restore_i;
  assign write_number = restore_i ? restore_number_i : insert_number_i;
  assign write_job = restore_i ? restore_job_i : insert_job_i;

  always_ff @(posedge clk_i) begin
    if (write) begin
      logs_q[write_number] <= write_job.log;
      is_copy_q[write_number] <= write_job.op == OpCopy;
      is_large_copy_q[write_number] <= write_job.op == OpCopy && target_lines(write_job) >= 11'(2 * PartLines);
      depends_on_log_q[write_number] <= builds_on_log(write_job.op);
      closes_log_q[write_number] <= closes_log(write_job.op);
    end
  end

  // A switch waits for the copies of its thread, a log_open for all commands of its thread.
  always_comb begin
    for (int unsigned n = 0; n < Commands; n++)
    insert_after_o[n] = logs_q[n] == insert_job_i.log &&
        (insert_job_i.op == OpLogOpen || (insert_job_i.op == OpSwitch && is_copy_q[n]));
  end

  // Restored commands have no response, nor have internal records.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) response_due_q <= '0;
    else if (write) response_due_q[write_number] <= !restore_i && 32'(write_number) < HostCommands;
  end

  // The commands of a pool are stale once the pool is mapped or unmapped.
  always_ff @(posedge clk_i) begin
    for (int unsigned n = 0; n < Commands; n++)
    if (pool_change_valid_i && pool_of(logs_q[n]) == pool_change_number_i) stale_q[n] <= 1'b1;
    if (write) stale_q[write_number] <= restore_i && restore_stale_i;
    save_stale_o <= stale_q[save_number_i];
  end

  // ---------------------------------------------------------------- issue

  typedef enum logic [2:0] {
    StSelect,  // a command, when it is ready and a unit is idle
    StIssue,   // reads its job
    StDivide,  // determines the parts of a copy
    // waits for a unit, and for a deletion in the pool that the command is on as a whole; assigns
    // each part
    StAssign,
    StCancel   // waits for a cycle in which no unit's command ends
  } state_e;

  state_e state_q;
  logic [4:0] idle_units;
  logic [CommandBits-1:0] select_number, number_q;
  logic
      select_valid,
      unit_available,
      assign_held,
      assign_valid,
      assign_fire,
      assign_last,
      cancel_fire,
      end_valid;
  job_t job;
  unit_end_t unit_end;

  ns_rr_arbiter #(
    .N(Commands)
  ) u_select (
    .clk_i,
    .rst_ni,
    .req_i  (ready_i),
    .next_i (state_q == StSelect && unit_available),
    .gnt_o  (),
    .idx_o  (select_number),
    .valid_o(select_valid)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StSelect;
    else begin
      unique case (state_q)
        StSelect: if (select_valid && unit_available && !freeze_i) state_q <= StIssue;
        StIssue:
        if (cancelled_q[number_q]) state_q <= StCancel;
        else state_q <= (is_large_copy_q[number_q] && idle_units > 5'd2) ? StDivide : StAssign;
        StDivide: state_q <= StAssign;
        StAssign: begin
          if (assign_fire && assign_last) state_q <= StSelect;
          else if (cancelled_q[number_q]) state_q <= StCancel;
        end
        default:  if (cancel_fire) state_q <= StSelect;
      endcase
    end
  end

  always_ff @(posedge clk_i) if (state_q == StSelect) number_q <= select_number;

  assign issue_valid_o = state_q == StIssue;
  assign issue_number_o = number_q;
  assign cancel_fire = state_q == StCancel && !end_valid;

  // The jobs are read for the issue, and for the save.
  ns_ram_1r1w #(
    .Width($bits(job_t)),
    .Depth(Commands),
    .Style("lutram")
  ) u_jobs (
    .clk_i,
    .we_i   (write),
    .waddr_i(write_number),
    .wdata_i(write_job),
    .re_i   (freeze_i || state_q == StIssue),
    .raddr_i(freeze_i ? save_number_i : number_q),
    .rdata_o(job)
  );
  assign save_job_o = job;

  // ---------------------------------------------------------------- units

  // Any idle unit is suitable.
  logic [Units-1:0] unit_select, end_request, other_parts;
  assign unit_available = job_ready_i != '0;
  assign unit_select = job_ready_i & (~job_ready_i + 1'b1);
  assign idle_units = 5'($countones(job_ready_i));

  // Parts of a copy. Only the dispatcher makes units busy, so those that are idle at the division
  // stay idle until the parts are assigned. A part ends with a line of the target.
  logic divided_q, dividing_q;  // dividing_q: a part is assigned, and not the last one
  logic [2:0] parts;
  logic [10:0] copy_lines, part_lines_q;
  logic [16:0] assigned_bytes_q, bytes_left, part_bytes;

  always_comb begin
    copy_lines = target_lines(job);
    parts = (idle_units > 5'(MaxParts)) ? 3'(MaxParts) : 3'(idle_units - 1'b1);
    if (copy_lines < 11'(parts * PartLines)) parts = 3'(copy_lines / PartLines);
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StSelect) begin
      divided_q <= 1'b0;
      assigned_bytes_q <= '0;
    end
    if (state_q == StDivide) begin
      divided_q <= 1'b1;
      unique case (parts)
        3'd2: part_lines_q <= (copy_lines + 11'd1) >> 1;
        3'd3: part_lines_q <= 11'((22'(copy_lines + 11'd2) * 22'd683) >> 11);
        3'd4: part_lines_q <= (copy_lines + 11'd3) >> 2;
        default: part_lines_q <= copy_lines;
      endcase
    end
    if (assign_fire) assigned_bytes_q <= assigned_bytes_q + part_bytes;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) dividing_q <= 1'b0;
    else if (assign_fire) dividing_q <= !assign_last;
  end

  assign bytes_left = job.bytes - assigned_bytes_q;
  assign part_bytes = {part_lines_q, 6'd0} - ((assigned_bytes_q == '0) ? 17'(job.target[5:0]) : '0);
  assign assign_last = !divided_q || bytes_left <= part_bytes;

  // A command is assigned, unless it is on a pool as a whole in which a log is being deleted.
  assign assign_held = hold_i && job.op inside {OpRecover, OpPoolUnmap} &&
      pool_of(job.log) == pool_of(delete_i.log);
  assign assign_valid = state_q == StAssign && !assign_held && !freeze_i;
  assign assign_fire = assign_valid && unit_available;

  // A deletion is assigned when no command is to be assigned or cancelled.
  logic delete_valid;
  assign delete_valid = delete_valid_i && !freeze_i && !assign_valid && !(state_q inside {StDivide, StCancel});
  assign delete_ready_o = delete_valid && unit_available;

  assign job_valid_o = (assign_valid || delete_valid) ? unit_select : '0;
  always_comb begin
    job_o = job;
    if (divided_q) begin
      job_o.source = job.source + MediaBits'(assigned_bytes_q);
      job_o.target = job.target + MediaBits'(assigned_bytes_q);
      job_o.bytes  = assign_last ? bytes_left : part_bytes;
    end
    if (delete_valid) begin
      job_o.op = OpDelete;
      job_o.log = delete_i.log;
      job_o.base = delete_i.base;
      job_o.value = delete_i.generation;
      job_o.transaction = 64'(delete_i.number);
    end
  end

  // What each unit executes: a command or a part of it, a commit of several devices, or a deletion.
  // Errors of other parts that have ended.
  logic [CommandBits-1:0] unit_number_q[Units];
  logic [Units-1:0] unit_delete_q, unit_multi_device_q, unit_completes_q, unit_opens_q;
  logic [Units-1:0] read_failed_q, write_failed_q;
  logic [Units-1:0][63:0] unit_transaction_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned u = 0; u < Units; u++) begin
      if (job_valid_o[u]) begin
        unit_number_q[u] <= number_q;
        unit_delete_q[u] <= delete_valid;
        unit_multi_device_q[u] <= !delete_valid && has_peers(job);
        unit_completes_q[u] <= !delete_valid && completes_transaction(job.op);
        unit_opens_q[u] <= !delete_valid && job.op == OpLogOpen;
        unit_transaction_q[u] <= job.transaction;
        read_failed_q[u] <= 1'b0;
        write_failed_q[u] <= 1'b0;
      end else if (end_valid && other_parts[u]) begin
        read_failed_q[u] <= read_failed_q[u] || unit_end.result.read_error;
        write_failed_q[u] <= write_failed_q[u] || unit_end.result.write_error;
      end
    end
  end

  // ---------------------------------------------------------------- results

  logic [UnitBits-1:0] end_unit;
  logic end_valid_q, end_response_due_q, end_delete_q, end_multi_device_q;
  logic end_completes_q, end_opens_q;
  logic [63:0] end_transaction_q;
  logic [CommandBits-1:0] end_number, end_number_q;
  unit_end_t unit_end_q;

  // Units report their results round-robin. Commits of several devices end one at a time. Nothing
  // ends between the assignments of parts.
  assign end_request = unit_end_valid_i & {Units{!dividing_q}} &
      ~(unit_multi_device_q & {Units{!commit_done_ready_i || end_multi_device_q}});

  ns_rr_arbiter #(
    .N(Units)
  ) u_end (
    .clk_i,
    .rst_ni,
    .req_i  (end_request),
    .next_i (1'b1),
    .gnt_o  (unit_end_ready_o),
    .idx_o  (end_unit),
    .valid_o(end_valid)
  );

  // Other units execute parts of the command: it has not ended.
  always_comb begin
    other_parts = '0;
    for (int unsigned n = 0; n < Units; n++)
    for (int unsigned u = 0; u < Units; u++)
    if (unit_end_ready_o[n] && u != n && !job_ready_i[u] && !unit_delete_q[u] && !unit_delete_q[n] &&
        unit_number_q[u] == unit_number_q[n])
      other_parts[u] = 1'b1;
  end

  // A cancelled command ends as `unmapped`.
  always_comb begin
    end_number = unit_number_q[end_unit];
    unit_end   = unit_end_i[end_unit];
    unit_end.result.read_error |= read_failed_q[end_unit];
    unit_end.result.write_error |= write_failed_q[end_unit];
    if (!end_valid) begin
      end_number = number_q;
      unit_end = '0;
      unit_end.result.unmapped = 1'b1;
    end
  end

  // A command that ends while the engine freezes has not ended: it is executed again.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      end_valid_q <= 1'b0;
      end_multi_device_q <= 1'b0;
    end else begin
      end_valid_q <= (end_valid ? other_parts == '0 : cancel_fire) && !freeze_i;
      end_multi_device_q <= end_valid && unit_multi_device_q[end_unit] && !freeze_i;
    end
  end

  always_ff @(posedge clk_i) begin
    end_number_q <= end_number;
    unit_end_q <= unit_end;
    end_response_due_q <= response_due_q[end_number];
    end_delete_q <= end_valid && unit_delete_q[end_unit];
    end_completes_q <= end_valid && unit_completes_q[end_unit];
    end_opens_q <= end_valid && unit_opens_q[end_unit];
    end_transaction_q <= unit_transaction_q[end_unit];
  end

  assign delete_done_o = end_valid_q && end_delete_q;
  assign retire_valid_o = end_valid_q && !end_delete_q;
  assign retire_number_o = end_number_q;
  assign done_valid_o = retire_valid_o && end_response_due_q;
  assign done_data_o = '{
          line: LineWidth'(end_number_q),
          result: 32'(unit_end_q.result),
          value: unit_end_q.value
      };

  // A commit is reported to the peers unless its log may have another owner.
  assign commit_done_valid_o = end_multi_device_q && !freeze_i && !stale_q[end_number_q] &&
      unit_end_q.result == '0;
  assign commit_done_log_o = logs_q[end_number_q];
  assign commit_done_generation_o = unit_end_q.value;

  assign progress_valid_o = end_valid_q && !freeze_i && (end_completes_q || end_opens_q) &&
      !stale_q[end_number_q] && unit_end_q.result == '0;
  assign progress_opens_o = end_opens_q;
  assign progress_log_o = logs_q[end_number_q];
  assign progress_transaction_o = end_transaction_q;

  // ---------------------------------------------------------------- closed logs

  logic end_failed, end_stale, delete_stale_q, closes_inserted;

  // A log is closed by the failure of a command that uses it. A log of the same number with another
  // owner is left unchanged.
  assign end_failed = end_valid_q && (end_delete_q || closes_log_q[end_number_q]) &&
      (unit_end_q.result.read_error || unit_end_q.result.write_error || unit_end_q.result.torn ||
       unit_end_q.result.log_full);
  assign end_stale = end_delete_q ? delete_stale_q : stale_q[end_number_q];
  assign close_valid_o = end_failed && !end_stale;
  assign close_spoiled_o = unit_end_q.spoiled;
  assign close_log_o = end_delete_q ? delete_i.log : logs_q[end_number_q];

  // A deletion is stale once the pool of its log is mapped or unmapped.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) delete_stale_q <= 1'b0;
    else if (pool_change_valid_i && pool_of(delete_i.log) == pool_change_number_i)
      delete_stale_q <= 1'b1;
    else if (!hold_i) delete_stale_q <= 1'b0;
  end

  // A unit completes the command that is assigned to it, whatever happens to its log.
  always_ff @(posedge clk_i) begin
    if (assign_fire) assigned_q[number_q] <= 1'b1;
    if (write) assigned_q[write_number] <= 1'b0;
  end

  // A failure cancels the commands of its log that depend on the log and are not assigned. A
  // command that is inserted into a closed log is cancelled as well. A log that is opened in the
  // cycle of a failure is open after it.
  assign closes_inserted = close_valid_o && close_log_o == insert_job_i.log;
  assign cancelled_o = cancelled_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cancelled_q <= '0;
    else begin
      for (int unsigned n = 0; n < Commands; n++)
      if (end_failed && depends_on_log_q[n] && !assigned_q[n] && logs_q[n] == close_log_o &&
          stale_q[n] == end_stale)
        cancelled_q[n] <= 1'b1;
      if (assign_fire) cancelled_q[number_q] <= 1'b0;
      if (inserted_i)
        cancelled_q[insert_number_i] <= (needs_log(
            insert_job_i.op
        ) && (!insert_open_i || closes_inserted)) ||
            (insert_job_i.op == OpSwitch && (insert_closed_i || closes_inserted));
      if (restore_cancelled_i) cancelled_q <= cancelled_i;
    end
  end

  assign busy_o = state_q != StSelect || end_valid_q || job_ready_i != '1;

  if (Units < 1 || Units > 16) begin : gen_bad_units
    $error("nearpm_dispatch: Units must be 1 to 16");
  end

  `NS_ASSERT(one_at_a_time, !(inserted_i && restore_i))
  `NS_ASSERT(restored_while_frozen, !restore_i || freeze_i)
  `NS_ASSERT(parts_are_not_cancelled, state_q != StCancel || !dividing_q)

endmodule
