// From the table to the units, and back: keeps what the commands are, gives those that are ready to units that rest, and tells how they ended.
//
// Both ways take turns. A command of a log that was closed by an error after it had been taken is not begun: nothing that builds on a record that is not
// there is done.
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
  /// Nothing begins or ends. From a register.
  input  logic                   freeze_i,
  /// From registers.
  output logic                   busy_o,

  /// A command goes into the table; `insert_open_i`: its log is open; `insert_closed_i`: it was closed by an error.
  input  logic                   insert_i,
  input  logic [CommandBits-1:0] insert_number_i,
  input  job_t                   insert_job_i,
  input  logic                   insert_open_i,
  input  logic                   insert_closed_i,

  /// The table. `behind_o`: what `insert_job_i` waits for, whatever it touches: a switch for the copies of its thread, a log_open for all of its thread; some may have ended.
  output commands_t              behind_o,
  input  commands_t              ready_i,
  output logic                   begin_o,
  output logic [CommandBits-1:0] begin_number_o,
  output logic                   end_o,
  output logic [CommandBits-1:0] end_number_o,

  /// Units.
  output job_t                   job_o,
  output logic [Units-1:0]       job_valid_o,
  input  logic [Units-1:0]       job_ready_i,
  input  end_t [Units-1:0]       end_i,
  input  logic [Units-1:0]       end_valid_i,
  output logic [Units-1:0]       end_ready_o,

  /// A unit is to make a log empty whose transaction all devices have completed; how that ended. While `hold_i` no command begins that is about that pool as a whole.
  input  logic                   delete_valid_i,
  input  delete_t                delete_i,
  output logic                   delete_ready_o,
  output logic                   deleted_o,
  input  logic                   hold_i,
  /// A pool is mapped or unmapped: commands of it that are under way have nothing to do with its logs any more.
  input  logic                   leaves_i,
  input  logic [LogBits-ThreadBits-1:0] leaves_pool_i,
  /// A commit of several devices has ended without an error: its log, that log's generation.
  output logic                   complete_o,
  output logic [LogBits-1:0]     complete_log_o,
  output logic [63:0]            complete_generation_o,
  input  logic                   complete_ready_i,

  /// Answer of a command, for one cycle; together with `end_o`. Commands of an earlier life have none.
  output logic                   done_o,
  output page_done_t             done_data_o,
  /// Its log is closed.
  output logic                   close_o,
  output logic [LogBits-1:0]     close_log_o,
  output logic                   close_spoils_o,

  /// A command to save; it comes a cycle later, and whether its pool is another one by now. Commands that are not to begin.
  input  logic [CommandBits-1:0] save_number_i,
  output job_t                   save_job_o,
  output logic                   save_stale_o,
  output commands_t              failed_o,
  /// One comes back.
  input  logic                   restore_i,
  input  logic [CommandBits-1:0] restore_number_i,
  input  job_t                   restore_job_i,
  input  logic                   restore_stale_i,
  /// What was not to begin.
  input  logic                   restore_failed_i,
  input  commands_t              failed_i
);

  localparam int unsigned UnitBits = idx_width(Units);

  // ---------------------------------------------------------------- commands

  logic write;
  logic [CommandBits-1:0] write_number;
  job_t write_job, job;
  commands_t failed_q, mine_q;  // mine_q: of this life
  commands_t copies_q;  // it is a copy
  commands_t builds_q;  // not begun when its log is closed
  commands_t begun_q;  // a unit has it: it is done to its end
  commands_t stale_q;  // of a pool that has been unmapped since
  logic [LogBits-1:0] logs_q[Commands];

  always_comb begin
    for (int unsigned n = 0; n < Commands; n++)
    behind_o[n] = logs_q[n] == insert_job_i.log &&
        (insert_job_i.op == OpLogOpen || (insert_job_i.op == OpSwitch && copies_q[n]));
  end

  assign write = insert_i || restore_i;
  assign write_number = restore_i ? restore_number_i : insert_number_i;
  assign write_job = restore_i ? restore_job_i : insert_job_i;

  // Beginning: one of the commands that are ready is chosen, then it begins, then its job is here.
  typedef enum logic [1:0] {
    StChoose,
    StBegin,
    StGive
  } state_e;

  state_e state_q;
  logic [CommandBits-1:0] number, number_q;
  logic any, refuse_q, given, taken, held, deletes;
  logic [Units-1:0]
      unit, deletes_q, completes_q;  // what units do: delete, commit for several devices

  ns_rr_arbiter #(
    .N(Commands)
  ) u_choose (
    .clk_i,
    .rst_ni,
    .req_i  (ready_i),
    .next_i (state_q == StChoose && job_ready_i != '0),
    .gnt_o  (),
    .idx_o  (number),
    .valid_o(any)
  );

  // Any unit will do.
  assign unit = job_ready_i & (~job_ready_i + 1'b1);

  ns_ram_1r1w #(
    .Width($bits(job_t)),
    .Depth(Commands),
    .Style("lutram")
  ) u_jobs (
    .clk_i,
    .we_i   (write),
    .waddr_i(write_number),
    .wdata_i(write_job),
    .re_i   (freeze_i || state_q == StBegin),
    .raddr_i(freeze_i ? save_number_i : number_q),
    .rdata_o(job)
  );

  assign begin_o = state_q == StBegin;
  assign begin_number_o = number_q;
  assign save_job_o = job;
  assign held = hold_i && job.op inside {OpRecover, OpPoolUnmap} && job.log[LogBits-1:ThreadBits] == delete_i.log[LogBits-1:ThreadBits];
  assign deletes = delete_valid_i && !freeze_i && (state_q != StGive || (held && !refuse_q));
  assign delete_ready_o = deletes && unit != '0;
  assign job_valid_o = (deletes || (state_q == StGive && !refuse_q && !held && !freeze_i)) ? unit : '0;
  always_comb begin
    job_o = job;
    if (deletes) begin
      job_o.op = OpDelete;
      job_o.log = delete_i.log;
      job_o.base = delete_i.base;
      job_o.value = delete_i.generation;
      job_o.transaction = 64'(delete_i.number);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StChoose;
    else begin
      unique case (state_q)
        StChoose: if (any && job_ready_i != '0 && !freeze_i) state_q <= StBegin;
        StBegin:  state_q <= StGive;
        default:  if (given) state_q <= StChoose;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StChoose) number_q <= number;
    refuse_q <= failed_q[number_q];
  end

  // ---------------------------------------------------------------- ends

  logic [Units-1:0] end_grant;
  logic [UnitBits-1:0] end_unit;
  logic [Units-1:0] ends;
  logic end_valid, end_valid_q, end_mine_q, end_deletes_q, end_completes_q;
  logic [CommandBits-1:0] numbers_q[Units];
  logic [CommandBits-1:0] end_number, end_number_q;
  end_t ended, ended_q;
  logic refuses;

  ns_rr_arbiter #(
    .N(Units)
  ) u_end (
    .clk_i,
    .rst_ni,
    .req_i  (ends),
    .next_i (1'b1),
    .gnt_o  (end_grant),
    .idx_o  (end_unit),
    .valid_o(end_valid)
  );

  // Commits of several devices one by one.
  assign ends = end_valid_i & ~(completes_q & {Units{!complete_ready_i || end_completes_q}});

  // A command that is refused here ends when no unit's does.
  assign refuses = state_q == StGive && refuse_q && !end_valid;
  assign given = refuse_q ? refuses : unit != '0 && !held && !freeze_i;
  assign taken = state_q == StGive && given && !refuse_q;
  assign end_ready_o = end_grant;
  assign end_number = end_valid ? numbers_q[end_unit] : number_q;

  always_comb begin
    ended = end_i[end_unit];
    if (!end_valid) begin
      ended = '0;
      ended.result.unmapped = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      end_valid_q <= 1'b0;
      end_completes_q <= 1'b0;
    end else begin
      end_valid_q <= (end_valid || refuses) && !freeze_i;
      end_completes_q <= end_valid && completes_q[end_unit] && !freeze_i;
    end
  end

  always_ff @(posedge clk_i) begin
    end_number_q <= end_number;
    ended_q <= ended;
    end_mine_q <= mine_q[end_number];
    end_deletes_q <= end_valid && deletes_q[end_unit];
    for (int unsigned u = 0; u < Units; u++) begin
      if (job_valid_o[u]) begin
        numbers_q[u] <= number_q;
        deletes_q[u] <= deletes;
        completes_q[u] <= !deletes && has_peers(job);
      end
    end
  end

  assign end_o = end_valid_q && !end_deletes_q;
  assign end_number_o = end_number_q;
  assign done_o = end_o && end_mine_q;
  assign deleted_o = end_valid_q && end_deletes_q;
  // What ends as all freezes has not ended: it is done again.
  assign complete_o = end_completes_q && !freeze_i && !stale_q[end_number_q] && ended_q.result == '0;
  assign complete_log_o = logs_q[end_number_q];
  assign complete_generation_o = ended_q.value;
  assign done_data_o = '{line: end_number_q, result: 32'(ended_q.result), value: ended_q.value};

  // ---------------------------------------------------------------- logs that are closed

  commands_t uses_q;
  logic fails, stale, closes_it, delete_stale_q;
  assign fails = end_valid_q && (end_deletes_q || uses_q[end_number_q]) &&
      (ended_q.result.read_error || ended_q.result.write_error || ended_q.result.torn);
  assign stale = end_deletes_q ? delete_stale_q : stale_q[end_number_q];
  // A log of the same number that somebody else has by now stays as it is.
  assign close_o = fails && !stale;
  assign close_spoils_o = ended_q.spoils;
  assign close_log_o = end_deletes_q ? delete_i.log : logs_q[end_number_q];
  // One that goes in. A log that is opened in this cycle is so behind that.
  assign closes_it = close_o && close_log_o == insert_job_i.log;
  assign failed_o = failed_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      failed_q <= '0;
      mine_q <= '0;
      delete_stale_q <= 1'b0;
    end else begin
      if (!hold_i) delete_stale_q <= 1'b0;
      if (leaves_i && delete_i.log[LogBits-1:ThreadBits] == leaves_pool_i) delete_stale_q <= 1'b1;
      if (fails)
        for (int unsigned n = 0; n < Commands; n++)
        if (builds_q[n] && !begun_q[n] && logs_q[n] == close_log_o && stale_q[n] == stale)
          failed_q[n] <= 1'b1;
      if (taken) failed_q[number_q] <= 1'b0;
      if (insert_i) begin
        failed_q[insert_number_i] <= (needs_log(insert_job_i.op) && (!insert_open_i || closes_it)) ||
            (insert_job_i.op == OpSwitch && (insert_closed_i || closes_it));
        mine_q[insert_number_i] <= 1'b1;
      end
      if (restore_i) mine_q[restore_number_i] <= 1'b0;
      if (restore_failed_i) failed_q <= failed_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (taken) begun_q[number_q] <= 1'b1;
    if (write) begun_q[write_number] <= 1'b0;
    for (int unsigned n = 0; n < Commands; n++)
    if (leaves_i && logs_q[n][LogBits-1:ThreadBits] == leaves_pool_i) stale_q[n] <= 1'b1;
    if (write) stale_q[write_number] <= restore_i && restore_stale_i;
    save_stale_o <= stale_q[save_number_i];
    if (write) begin
      logs_q[write_number]  <= write_job.log;
      copies_q[write_number] <= write_job.op == OpCopy;
      builds_q[write_number] <= builds_on_log(write_job.op);
      uses_q[write_number]   <= closes_log(write_job.op);
    end
  end

  assign busy_o = state_q != StChoose || end_valid_q || job_ready_i != '1;

  if (Units < 1 || Units > 16) begin : gen_bad_units
    $error("nearpm_dispatch: Units must be 1 to 16");
  end

  `NS_ASSERT(one_at_a_time, !(insert_i && restore_i))
  `NS_ASSERT(restored_while_frozen, !restore_i || freeze_i)

endmodule
