// SPDX-License-Identifier: Apache-2.0

// Trackers of two channels, the set and the insertion of records, with one tracked pool.
//
// Stores arrive at any time; a command of the host starts whenever no tracker has a store. It maps
// or unmaps the pool, begins an epoch or does nothing. The table inserts a record after any time,
// and a record retires at any time. An error may close the log in any cycle.
//
// The pool has the first page of each channel. The last of the four lines that stores reach there
// belongs to the log of the pool in channel 0. The set holds two lines, so overflows are frequent.
module track_proof
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
#(
  /// 0: safety; 1: progress; 2: a store passes after its record, which is reached; 3: an epoch is
  /// too large, which is reached.
  parameter int unsigned Property = 0,
  /// 0: the log has room for three records.
  parameter bit LongLog = 1'b1,
  /// 0: negative control, commands start although a store waits for its record.
  parameter bit Hold = 1'b1,
  /// 1: no error closes the log.
  parameter bit NoErrors = 1'b0
) (
  input logic           clk_i,
  input logic           rst_ni,
  /// Per channel: a store, its line, one or two lines, in the pool or outside.
  input logic [1:0]     store_valid_i,
  input logic [1:0][1:0] store_line_i,
  input logic [1:0]     store_two_i,
  input logic [1:0]     store_outside_i,
  input logic [1:0]     store_ready_i,
  /// A command of the host, and what it does at its end.
  input logic           command_i,
  input logic           command_end_i,
  input logic [1:0]     command_effect_i,
  input logic           insert_i,
  input commands_t      retire_i,
  input logic           error_i
);

  localparam int unsigned Wait = 45;  // cycles within which a store passes

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  assume property (@(posedge clk_i) rst_ni == started_q);

  // ---------------------------------------------------------------- stores

  ns_axi_if s_axi[2] ();
  ns_axi_if m_axi[2] ();
  logic [1:0] present, line_valid, done, aw_valid, aw_fire, aw_wait_q;
  pool_number_t [1:0] line_pool;
  line_t [1:0] line;
  tracked_pool_t [Pools-1:0] pools, tracked_pools;
  logic tracking;
  logic [1:0][4:0] store_q;

  for (genvar c = 0; c < 2; c++) begin : gen_channel
    // Lines of the page, without the last one if there are two.
    assign s_axi[c].aw_valid = store_valid_i[c];
    assign s_axi[c].aw = '{
            id: '0,
            len: 8'(store_two_i[c]),
            size: 3'd6,
            burst: BurstIncr,
            addr: {store_outside_i[c], 4'd0, store_line_i[c], 6'd0}
        };
    assign s_axi[c].w = '0;
    assign s_axi[c].w_valid = 1'b0;
    assign s_axi[c].b_ready = 1'b0;
    assign s_axi[c].ar = '0;
    assign s_axi[c].ar_valid = 1'b0;
    assign s_axi[c].r_ready = 1'b0;
    assign m_axi[c].aw_ready = store_ready_i[c];
    assign m_axi[c].w_ready = 1'b0;
    assign m_axi[c].b = '0;
    assign m_axi[c].b_valid = 1'b0;
    assign m_axi[c].ar_ready = 1'b0;
    assign m_axi[c].r = '0;
    assign m_axi[c].r_valid = 1'b0;

    nearpm_track #(
      .NumChannels(2),
      .Granule    (4096),
      .Channel    (c)
    ) u_track (
      .clk_i,
      .rst_ni,
      .tracking_i  (tracking),
      .pools_i     (tracked_pools),
      .present_o   (present[c]),
      .line_valid_o(line_valid[c]),
      .line_pool_o (line_pool[c]),
      .line_o      (line[c]),
      .done_i      (done[c]),
      .s_axi       (s_axi[c]),
      .m_axi       (m_axi[c])
    );

    assign aw_valid[c] = m_axi[c].aw_valid;
    assign aw_fire[c] = m_axi[c].aw_valid && m_axi[c].aw_ready;

    // A store is held until it passes.
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) aw_wait_q[c] <= 1'b0;
      else aw_wait_q[c] <= store_valid_i[c] && !s_axi[c].aw_ready;
    end
    always_ff @(posedge clk_i)
      store_q[c] <= {
        store_outside_i[c], store_two_i[c], store_line_i[c], 1'b0
      };
    assume property (@(posedge clk_i) !aw_wait_q[c] || (store_valid_i[c] &&
        store_q[c] == {store_outside_i[c], store_two_i[c], store_line_i[c], 1'b0}));
    assume property (@(posedge clk_i) !store_two_i[c] || store_line_i[c] != 2'd3);
    // No store arrives while a command is being inserted.
    assume property (@(posedge clk_i) !store_valid_i[c] || aw_wait_q[c] || !command_busy_q);
  end

  // ---------------------------------------------------------------- commands of the host

  logic command_busy_q, command_start, command_done, mapped_q, open_q;
  logic map, generation;

  assign command_start = command_i && !command_busy_q && (present == '0 || !Hold);
  assign command_done = command_busy_q && command_end_i;
  assign map = command_done && command_effect_i == 2'd1 && !mapped_q;
  assign generation = command_done && command_effect_i == 2'd2 && mapped_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      command_busy_q <= 1'b0;
      mapped_q <= 1'b0;
      open_q <= 1'b0;
    end else begin
      command_busy_q <= command_start || (command_busy_q && !command_end_i);
      if (error_i && !NoErrors) open_q <= 1'b0;
      if (map) begin
        mapped_q <= 1'b1;
        open_q   <= 1'b0;
      end
      if (generation) open_q <= 1'b1;
      if (command_done && command_effect_i == 2'd3) begin
        mapped_q <= 1'b0;
        open_q   <= 1'b0;
      end
    end
  end

  always_comb begin
    pools = '0;
    pools[0].recorded = mapped_q && open_q;
    pools[0].last_page = 1;
    pools[0].first_log_line = 3;
    pools[0].last_log_line = 3;
  end
  assign tracking = mapped_q;

  // ---------------------------------------------------------------- records

  logic busy, contexts, read, log_write, insert_valid, inserted;
  logic [LogBits-1:0] log_number;
  logic [CommandBits-1:0] insert_number;
  pool_t pool;
  log_t log, new_log, log_q;
  job_t insert_job;
  ranges_t insert_ranges;
  commands_t present_q;

  always_comb begin
    pool = '0;
    pool.mapped = mapped_q;
    pool.bytes = 8192;
    pool.logs = 192;
    pool.log_bytes = LongLog ? 4096 : 64 + 3 * 128;
    pool.threads = 1;
    pool.tracked = 2'd1;
    log = log_q;
    log.open = open_q;
  end

  always_ff @(posedge clk_i) begin
    if (log_write) log_q <= new_log;
    if (generation) begin
      log_q <= '0;
      log_q.next <= 64;
    end
  end

  nearpm_track_record #(
    .NumChannels(2)
  ) u_record (
    .clk_i,
    .rst_ni,
    .freeze_i          (1'b0),
    .busy_o            (busy),
    .pools_i           (pools),
    .pools_o           (tracked_pools),
    .line_valid_i      (line_valid),
    .line_pool_i       (line_pool),
    .line_i            (line),
    .done_o            (done),
    .commands_free_i   (!command_busy_q),
    .map_i             (Pools'(map)),
    .generation_valid_i(generation),
    .generation_log_i  ('0),
    .contexts_o        (contexts),
    .read_o            (read),
    .log_o             (log_number),
    .pool_i            (pool),
    .log_i             (log),
    .log_write_o       (log_write),
    .new_log_o         (new_log),
    .present_i         (present_q),
    .insert_valid_o    (insert_valid),
    .insert_number_o   (insert_number),
    .insert_job_o      (insert_job),
    .insert_ranges_o   (insert_ranges),
    .inserted_i        (inserted)
  );

  assign inserted = insert_valid && insert_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) present_q <= '0;
    else begin
      present_q <= present_q & ~retire_i;
      if (inserted) present_q[insert_number] <= 1'b1;
    end
  end

  // ---------------------------------------------------------------- model

  // Lines with a record in this epoch, four of each channel; a record that could not be made.
  logic [1:0][3:0] recorded_q, store_lines, passing;
  logic [1:0][3:0] log_lines, new_line;
  logic overflow_q;
  logic [31:0] records_q;

  assign log_lines = 8'b0000_1000;
  for (genvar c = 0; c < 2; c++) begin : gen_lines
    assign store_lines[c] = (store_outside_i[c] ? '0 : store_two_i[c] ? 4'd3 : 4'd1) << store_line_i[c];
    assign passing[c] = aw_fire[c] ? store_lines[c] & ~log_lines[c] : '0;
    assign new_line[c] = (inserted && insert_job.bytes != '0 && insert_job.source[12] == 1'(c)) ?
        4'd1 << insert_job.source[7:6] : '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      recorded_q <= '0;
      overflow_q <= 1'b0;
      records_q  <= '0;
    end else if (generation || map) begin
      recorded_q <= '0;
      overflow_q <= 1'b0;
      records_q  <= '0;
    end else begin
      recorded_q <= recorded_q | new_line;
      if (inserted && insert_job.bytes == '0) overflow_q <= 1'b1;
      if (inserted && insert_job.bytes != '0) records_q <= records_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------- guarantees

  if (Property == 0) begin : gen_safe
    // No line of a tracked pool with an open log passes without its record of this epoch.
    assert property (@(posedge clk_i) disable iff (!rst_ni) !mapped_q || !open_q || overflow_q || (passing & ~recorded_q) == '0);
    if (Hold) begin : gen_held
      // Each line has one record an epoch, no more than the set holds; lines of the log have none.
      assert property (@(posedge clk_i) disable iff (!rst_ni) (new_line & (recorded_q | log_lines)) == '0);
      assert property (@(posedge clk_i) disable iff (!rst_ni) records_q <= SetLines && (LongLog || records_q <= 3));
      // At most one record of an epoch cannot be made, and none is made after it.
      assert property (@(posedge clk_i) disable iff (!rst_ni) !inserted || !overflow_q);
      // Records follow one another in the log, and nothing is inserted into an absent place.
      assert property (@(posedge clk_i) disable iff (!rst_ni) !inserted || insert_job.bytes == '0 ||
          (insert_job.target == 192 + 64 + 128 * records_q && 32'(insert_job.number) == records_q));
      assert property (@(posedge clk_i) disable iff (!rst_ni) !inserted || (!present_q[insert_number] && 32'(insert_number) >= HostCommands));
      assert property (@(posedge clk_i) disable iff (!rst_ni) !inserted || insert_job.bytes != '0 || insert_job.target == 192);
      // No command of the host starts before a store that waits for its record, or while a record
      // is made.
      assert property (@(posedge clk_i) disable iff (!rst_ni) !command_busy_q || !contexts);
      assert property (@(posedge clk_i) disable iff (!rst_ni) !command_start || !tracking || store_valid_i == '0);
    end
  end else if (Property == 1) begin : gen_progress
    // Memory, table and records are prompt, no command comes.
    logic [1:0][7:0] waited_q;
    logic [2:0] insert_q;
    commands_t present_last_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) waited_q <= '0;
      else
        for (int unsigned c = 0; c < 2; c++)
        waited_q[c] <= (store_valid_i[c] && !aw_fire[c] && !command_busy_q) ? waited_q[c] + 1'b1 : '0;
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        insert_q <= '0;
        present_last_q <= '0;
      end else begin
        insert_q <= (insert_valid && !inserted) ? insert_q + 1'b1 : '0;
        present_last_q <= present_q;
      end
    end
    assume property (@(posedge clk_i) insert_q < 3'd3 || insert_i);
    assume property (@(posedge clk_i) store_ready_i == '1);
    assume property (@(posedge clk_i) (present_last_q & ~retire_i) == '0);
    assert property (@(posedge clk_i) disable iff (!rst_ni) waited_q[0] < 8'(Wait) && waited_q[1] < 8'(Wait));
  end else if (Property == 2) begin : gen_reached
    assert property (@(posedge clk_i) disable iff (!rst_ni) (passing & recorded_q) == '0);
  end else begin : gen_overflow
    assert property (@(posedge clk_i) disable iff (!rst_ni) !overflow_q);
  end

endmodule
