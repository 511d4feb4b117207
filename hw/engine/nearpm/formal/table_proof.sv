// SPDX-License-Identifier: Apache-2.0

// The table of commands with one channel and four commands, against a model of its ports.
//
// Commands are inserted, issued and retired in any order that the table allows. Stores and lines of
// the queue arrive and leave at any time. Nothing freezes.
module table_proof
  import nearpm_pkg::*;
#(
  /// Asserted property. 0: all guarantees. 1: no command that waited for another one is ever
  /// issued; has to fail.
  parameter int unsigned Property = 0,
  /// 1: some commands are internal records.
  parameter bit Internal = 1'b0
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic                   insert_valid_i,
  input logic [CommandBits-1:0] insert_number_i,
  input logic [9:0]             insert_lines_i,
  input logic                   insert_internal_i,
  input commands_t              insert_after_i,
  input logic                   issue_valid_i,
  input logic [CommandBits-1:0] issue_number_i,
  input logic                   retire_valid_i,
  input logic [CommandBits-1:0] retire_number_i,
  input logic                   store_i,
  input logic                   answer_i,
  input logic                   queue_i,
  input logic                   write_i,
  input logic                   quiet_i,
  input logic                   overlaps_i,
  input logic                   lookup_valid_i,
  input logic                   lookup_write_i,
  input logic [4:0]             lookup_lines_i
);

  // Starts with a reset.
  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  assume property (@(posedge clk_i) rst_ni == started_q);

  // Four lines of the media.
  function automatic range_t range_of(logic [4:0] lines);
    return '{valid: lines[4], first: line_t'(lines[3:2]), last: line_t'(lines[1:0])};
  endfunction

  function automatic logic meets(range_t a, range_t b);
    logic [3:0] of_a, of_b;
    for (int unsigned l = 0; l < 4; l++) begin
      of_a[l] = a.valid && line_t'(l) >= a.first && line_t'(l) <= a.last;
      of_b[l] = b.valid && line_t'(l) >= b.first && line_t'(l) <= b.last;
    end
    return (of_a & of_b) != '0;
  endfunction

  function automatic logic conflicts(ranges_t a, ranges_t b);
    return meets(a.writes, b.writes) || meets(a.writes, b.reads) || meets(a.reads, b.writes);
  endfunction

  nearpm_lookup_if lookup[1] ();
  nearpm_order_if order[1] ();
  logic busy, inserted;
  commands_t ready, retired, dropped, save_commands;
  logic save_valid;
  logic [0:0][7:0] save_lines;
  ranges_t insert_ranges;
  logic internal;
  assign internal = Internal && insert_internal_i;

  assign insert_ranges = '{
          reads: range_of(insert_lines_i[9:5]),
          writes: range_of(insert_lines_i[4:0])
      };

  nearpm_table #(
    .NumChannels(1)
  ) u_table (
    .clk_i,
    .rst_ni,
    .freeze_i          (1'b0),
    .busy_o            (busy),
    .insert_valid_i,
    .insert_number_i,
    .insert_ranges_i   (insert_ranges),
    .insert_internal_i (internal),
    .insert_after_i,
    .inserted_o        (inserted),
    .present_o         (),
    .ready_o           (ready),
    .issue_valid_i,
    .issue_number_i,
    .retire_valid_i,
    .retire_number_i,
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

  // ---------------------------------------------------------------- counters of the filter

  count_t stores_q, answered_q, queued_q, written_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      stores_q   <= '0;
      answered_q <= '0;
      queued_q   <= '0;
      written_q  <= '0;
    end else begin
      if (store_i && count_t'(stores_q - answered_q) < count_t'(QueueLines))
        stores_q <= stores_q + 1'b1;
      if (answer_i && stores_q != answered_q) answered_q <= answered_q + 1'b1;
      if (queue_i && count_t'(queued_q - written_q) < count_t'(QueueLines))
        queued_q <= queued_q + 1'b1;
      if (write_i && queued_q != written_q) written_q <= written_q + 1'b1;
    end
  end
  assign order[0].stores = stores_q;
  assign order[0].answered = answered_q;
  assign order[0].queued = queued_q;
  assign order[0].written = written_q;
  assign order[0].quiet = quiet_i;
  assign order[0].overlap = overlaps_i && queued_q != written_q;
  assign lookup[0].valid = lookup_valid_i;
  assign lookup[0].write = lookup_write_i;
  assign lookup[0].lines = range_of(lookup_lines_i);

  // ---------------------------------------------------------------- model

  commands_t present_q, issued_q, waited_q, retired_q;
  ranges_t ranges_q[Commands];
  commands_t older_q[Commands], after_q[Commands];
  // Older stores and lines that are still in progress.
  count_t stores_left_q[Commands], lines_left_q[Commands];
  // The same of the last command of the host, whether it is present or not.
  count_t last_stores_q, last_lines_q, last_stores, last_lines;
  assign last_stores = last_stores_q - count_t'(answer_i && stores_q != answered_q && last_stores_q != '0);
  assign last_lines = last_lines_q - count_t'(write_i && queued_q != written_q && last_lines_q != '0);
  logic [2:0] free_q[Commands];
  logic [2:0] waiting_q;
  commands_t conflict, held, overlapped;

  always_comb begin
    for (int unsigned n = 0; n < Commands; n++) begin
      conflict[n] = 1'b0;
      for (int unsigned m = 0; m < Commands; m++)
      if (older_q[n][m] && (after_q[n][m] || conflicts(ranges_q[n], ranges_q[m])))
        conflict[n] = 1'b1;
      held[n] = conflict[n] || stores_left_q[n] != '0 || lines_left_q[n] != '0;
      overlapped[n] = lookup_valid_i && present_q[n] && (meets(ranges_q[n].writes, lookup[0].lines) ||
                                               (lookup_write_i && meets(ranges_q[n].reads, lookup[0].lines)));
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      present_q   <= '0;
      issued_q   <= '0;
      waited_q  <= '0;
      retired_q    <= '0;
      waiting_q <= '0;
      last_stores_q <= '0;
      last_lines_q <= '0;
      for (int unsigned n = 0; n < Commands; n++) begin
        older_q[n] <= '0;
        after_q[n] <= '0;
        ranges_q[n] <= '0;
        stores_left_q[n] <= '0;
        lines_left_q[n] <= '0;
        free_q[n] <= '0;
      end
    end else begin
      retired_q <= '0;
      last_stores_q <= last_stores;
      last_lines_q <= last_lines;
      if (inserted && !internal) begin
        last_stores_q <= stores_q - answered_q - count_t'(answer_i && stores_q != answered_q);
        last_lines_q <= queued_q - written_q - count_t'(write_i && queued_q != written_q);
      end
      waiting_q <= (insert_valid_i && !inserted && (quiet_i || internal)) ? waiting_q + 1'b1 : '0;
      for (int unsigned n = 0; n < Commands; n++) begin
        if (answer_i && stores_q != answered_q && stores_left_q[n] != '0)
          stores_left_q[n] <= stores_left_q[n] - 1'b1;
        if (write_i && queued_q != written_q && lines_left_q[n] != '0)
          lines_left_q[n] <= lines_left_q[n] - 1'b1;
        if (conflict[n]) waited_q[n] <= 1'b1;
        free_q[n] <= (present_q[n] && !issued_q[n] && !held[n] && free_q[n] != '1) ? free_q[n] + 1'b1 : '0;
        if (retire_valid_i) older_q[n][retire_number_i] <= 1'b0;
      end
      if (issue_valid_i) issued_q[issue_number_i] <= 1'b1;
      if (retire_valid_i) begin
        present_q[retire_number_i] <= 1'b0;
        issued_q[retire_number_i] <= 1'b0;
        retired_q[retire_number_i]  <= 1'b1;
      end
      if (inserted) begin
        present_q[insert_number_i] <= 1'b1;
        issued_q[insert_number_i] <= 1'b0;
        waited_q[insert_number_i] <= 1'b0;
        ranges_q[insert_number_i] <= insert_ranges;
        after_q[insert_number_i] <= insert_after_i;
        older_q[insert_number_i] <= present_q & ~(retire_valid_i ? commands_t'(1) << retire_number_i : '0);
        stores_left_q[insert_number_i] <= internal ? last_stores : stores_q - answered_q - count_t'(answer_i && stores_q != answered_q);
        lines_left_q[insert_number_i] <= !order[0].overlap ? '0 : internal ? last_lines :
            queued_q - written_q - count_t'(write_i && queued_q != written_q);
      end
    end
  end

  // ---------------------------------------------------------------- assumptions

  logic insert_q, inserted_q, internal_q;
  logic [CommandBits-1:0] number_q;
  logic [9:0] lines_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) insert_q <= 1'b0;
    else insert_q <= insert_valid_i && !inserted;
  end
  always_ff @(posedge clk_i) begin
    number_q <= insert_number_i;
    internal_q <= internal;
    lines_q  <= insert_lines_i;
  end

  assume property (@(posedge clk_i) !insert_q || (insert_valid_i && insert_number_i == number_q && insert_lines_i == lines_q && internal == internal_q));
  assume property (@(posedge clk_i) !insert_valid_i || (!present_q[insert_number_i] && !retired_q[insert_number_i]));
  assume property (@(posedge clk_i) insert_lines_i[8:7] <= insert_lines_i[6:5] && insert_lines_i[3:2] <= insert_lines_i[1:0]);
  assume property (@(posedge clk_i) lookup_lines_i[3:2] <= lookup_lines_i[1:0]);
  assume property (@(posedge clk_i) !issue_valid_i || ready[issue_number_i]);
  assume property (@(posedge clk_i) !retire_valid_i || issued_q[retire_number_i]);

  // ---------------------------------------------------------------- guarantees

  if (Property == 1) begin : gen_reached
    assert property (@(posedge clk_i) disable iff (!rst_ni) !issue_valid_i || !waited_q[issue_number_i]);
  end else begin : gen_safe
    // No command is issued that is absent, already issued, or blocked by an older access.
    assert property (@(posedge clk_i) disable iff (!rst_ni) (ready & ~(present_q & ~issued_q & ~held)) == '0);
    // A command without conflicts becomes ready within 3 cycles, so the oldest one always does.
    for (genvar n = 0; n < Commands; n++) begin : gen_free
      assert property (@(posedge clk_i) disable iff (!rst_ni) free_q[n] < 3'd3 || ready[n] || issued_q[n]);
    end
    // A command is inserted within 4 cycles when no store is in progress.
    assert property (@(posedge clk_i) disable iff (!rst_ni) waiting_q < 3'd4);
    // Each command retires once; none is lost.
    assert property (@(posedge clk_i) disable iff (!rst_ni) retired == retired_q);
    assert property (@(posedge clk_i) disable iff (!rst_ni) busy || present_q == '0);
    // Commands that wait for unanswered stores are younger than all that do not.
    for (genvar n = 0; n < Commands; n++) begin : gen_dropped
      for (genvar m = 0; m < Commands; m++) begin : gen_younger
        assert property (@(posedge clk_i) disable iff (!rst_ni) !present_q[m] || !older_q[m][n] || !dropped[n] || dropped[m]);
      end
    end
    // A lookup returns exactly the commands that the access overlaps.
    assert property (@(posedge clk_i) disable iff (!rst_ni) lookup[0].commands == overlapped);
  end

endmodule
