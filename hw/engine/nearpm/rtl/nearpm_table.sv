// SPDX-License-Identifier: Apache-2.0

// In-flight access table: the commands in flight, their ranges, and what each still waits for.
//
// A command waits for older conflicting commands, for stores that arrived before it, and for
// overlapping lines in the queues of the conflict filters. These sets are fixed at insertion;
// afterwards they only shrink. The owner decides which ready command is issued to a unit, and when.
//
// `freeze_i` stops the table; it can be saved from 2 cycles later on. A reset follows, and a
// restore while `freeze_i` is 1.
//
// Assumes that a number in flight is not inserted, that only ready commands are issued, and that
// only issued commands retire.
`include "ns_assert.svh"

module nearpm_table
  import nearpm_pkg::*;
#(
  /// Channels, a power of two.
  parameter int unsigned NumChannels = 2
) (
  input  logic                                  clk_i,
  input  logic                                  rst_ni,
  /// No command is inserted, issued or retired. From a register.
  input  logic                                  freeze_i,
  /// A command is present or being inserted. From registers.
  output logic                                  busy_o,

  /// A command to insert: held, with number and ranges, until `inserted_o`.
  input  logic                                  insert_valid_i,
  input  logic    [CommandBits-1:0]             insert_number_i,
  input  ranges_t                               insert_ranges_i,
  /// It is an internal record: it waits only for stores and lines that are older than the last
  /// command of the host. Held like the number.
  input  logic                                  insert_internal_i,
  /// Older commands that it waits for regardless of ranges, if they are present at insertion.
  input  commands_t                             insert_after_i,
  /// The command is present from the next cycle on: later accesses see it.
  output logic                                  inserted_o,

  /// Commands that are present. From registers.
  output commands_t                             present_o,
  /// Commands that wait for nothing and are not issued.
  output commands_t                             ready_o,
  /// A ready command is issued to a unit.
  input  logic                                  issue_valid_i,
  input  logic    [CommandBits-1:0]             issue_number_i,
  /// A command has ended: its writes are answered.
  input  logic                                  retire_valid_i,
  input  logic    [CommandBits-1:0]             retire_number_i,
  /// Commands absent from this cycle on, for one cycle. From registers.
  output commands_t                             retired_o,

  /// While frozen: commands that wait for unanswered stores; they are not saved.
  output commands_t                             dropped_o,
  /// Number of a command to save; its fields follow a cycle later.
  input  logic    [CommandBits-1:0]             save_number_i,
  output logic                                  save_valid_o,
  /// Commands that it waits for.
  output commands_t                             save_commands_o,
  /// Lines of each channel's queue that it waits for, counted from the oldest.
  output logic    [NumChannels-1:0][7:0]        save_lines_o,
  /// Restores a command, while frozen. Conflicts with commands that are not restored are dropped.
  input  logic                                  restore_i,
  input  logic    [CommandBits-1:0]             restore_number_i,
  input  ranges_t                               restore_ranges_i,
  input  commands_t                             restore_commands_i,
  input  logic    [NumChannels-1:0][7:0]        restore_lines_i,

  /// Lookups of the conflict filters.
  nearpm_lookup_if.table_                       lookup[NumChannels],
  /// State of the conflict filters.
  nearpm_order_if.table_                        order [NumChannels]
);

  typedef enum logic [1:0] {
    StIdle,
    StWrites,
    StReads,
    StInsert
  } state_e;

  state_e state_q;
  logic [CommandBits-1:0] number_q;
  ranges_t new_q;
  logic internal_q;
  commands_t conflicts_q;  // conflicts of the new command

  commands_t valid_q, issued_q, ready_q, retired_q;
  ranges_t [Commands-1:0] ranges_q;
  commands_t wait_commands_q[Commands];
  // Per channel: the command waits until `answered`, or `written`, reaches a count.
  logic [NumChannels-1:0] wait_stores_q[Commands];
  logic [NumChannels-1:0] wait_lines_q[Commands];
  count_t [NumChannels-1:0] wait_store_count_q[Commands];
  count_t [NumChannels-1:0] wait_line_count_q[Commands];

  count_t [NumChannels-1:0] stores, answered, queued, written;
  logic [NumChannels-1:0] quiet, overlap;
  commands_t match;
  logic freeze_q;

  assign retired_o = retired_q;
  assign ready_o = freeze_i ? '0 : ready_q & ~issued_q;
  assign busy_o = valid_q != '0 || state_q != StIdle || retired_q != '0;
  assign inserted_o = state_q == StInsert && (quiet == '1 || internal_q) && !freeze_i;
  assign present_o = valid_q;

  // ---------------------------------------------------------------- lookups

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    nearpm_range_match u_match (
      .commands_i(valid_q),
      .ranges_i  (ranges_q),
      .valid_i   (lookup[c].valid),
      .write_i   (lookup[c].write),
      .lines_i   (lookup[c].lines),
      .commands_o(lookup[c].commands)
    );

    assign stores[c] = order[c].stores;
    assign answered[c] = order[c].answered;
    assign queued[c] = order[c].queued;
    assign written[c] = order[c].written;
    assign quiet[c] = order[c].quiet;
    assign overlap[c] = order[c].overlap;
    assign order[c].lines = (state_q == StInsert) ? new_q : '0;
  end

  // Conflicts of the new command: its writes with all accesses of others, then its reads with their
  // writes.
  nearpm_range_match u_match (
    .commands_i(valid_q),
    .ranges_i  (ranges_q),
    .valid_i   (state_q == StWrites || state_q == StReads),
    .write_i   (state_q == StWrites),
    .lines_i   (state_q == StWrites ? new_q.writes : new_q.reads),
    .commands_o(match)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      conflicts_q <= '0;
    end else begin
      unique case (state_q)
        StIdle:   if (insert_valid_i && !freeze_i) state_q <= StWrites;
        StWrites: state_q <= StReads;
        StReads:  state_q <= StInsert;
        default:  if (inserted_o) state_q <= StIdle;
      endcase
      conflicts_q <= (state_q == StIdle) ? '0 : (conflicts_q & ~retired_q) | match;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      number_q <= insert_number_i;
      new_q <= insert_ranges_i;
      internal_q <= insert_internal_i;
    end
  end

  // ---------------------------------------------------------------- last command of the host

  // An internal record precedes a store that has not arrived. Of the older stores to its line, all
  // since the last command of the host have a record, so it waits only for those before that
  // command. Commands that wait for unanswered stores are thus always the youngest.
  logic [NumChannels-1:0] last_stores_q, last_lines_q;
  count_t [NumChannels-1:0] last_store_count_q, last_line_count_q;
  logic [NumChannels-1:0] stores_left, lines_left;

  for (genvar c = 0; c < NumChannels; c++) begin : gen_last
    assign stores_left[c] = last_stores_q[c] && answered[c] != last_store_count_q[c];
    assign lines_left[c] = last_lines_q[c] && written[c] != last_line_count_q[c];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      last_stores_q <= '0;
      last_lines_q  <= '0;
    end else if (inserted_o && !internal_q) begin
      for (int unsigned c = 0; c < NumChannels; c++) begin
        last_stores_q[c] <= stores[c] != answered[c];
        last_lines_q[c]  <= queued[c] != written[c];
      end
    end else begin
      last_stores_q <= stores_left;
      last_lines_q  <= lines_left;
    end
  end

  always_ff @(posedge clk_i) begin
    if (inserted_o && !internal_q) begin
      last_store_count_q <= stores;
      last_line_count_q  <= queued;
    end
  end

  // ---------------------------------------------------------------- commands

  commands_t waiting;
  always_comb begin
    for (int unsigned n = 0; n < Commands; n++)
    waiting[n] = wait_commands_q[n] != '0 || wait_stores_q[n] != '0 || wait_lines_q[n] != '0;
  end

  always_comb begin
    for (int unsigned n = 0; n < Commands; n++) dropped_o[n] = valid_q[n] && wait_stores_q[n] != '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q  <= '0;
      issued_q  <= '0;
      ready_q  <= '0;
      retired_q  <= '0;
      freeze_q <= 1'b0;
    end else begin
      freeze_q <= freeze_i;
      ready_q  <= valid_q & ~issued_q & ~waiting;
      retired_q  <= '0;
      if (issue_valid_i && !freeze_i) issued_q[issue_number_i] <= 1'b1;
      if (retire_valid_i && !freeze_i) begin
        valid_q[retire_number_i] <= 1'b0;
        issued_q[retire_number_i] <= 1'b0;
        retired_q[retire_number_i] <= 1'b1;
      end
      if (inserted_o) valid_q[number_q] <= 1'b1;
      if (restore_i) valid_q[restore_number_i] <= 1'b1;
    end
  end

  // Entries of absent commands are not used.
  commands_t removed;
  assign removed = retired_q | (freeze_q && !freeze_i ? ~valid_q : '0);

  always_ff @(posedge clk_i) begin
    if (removed != '0)
      for (int unsigned n = 0; n < Commands; n++)
      wait_commands_q[n] <= wait_commands_q[n] & ~removed;
    for (int unsigned n = 0; n < Commands; n++) begin
      for (int unsigned c = 0; c < NumChannels; c++) begin
        if (wait_stores_q[n][c] && answered[c] == wait_store_count_q[n][c])
          wait_stores_q[n][c] <= 1'b0;
        if (wait_lines_q[n][c] && written[c] == wait_line_count_q[n][c]) wait_lines_q[n][c] <= 1'b0;
      end
    end
    if (inserted_o) begin
      ranges_q[number_q] <= new_q;
      wait_commands_q[number_q] <= (conflicts_q | (insert_after_i & valid_q)) & ~retired_q;
      wait_store_count_q[number_q] <= internal_q ? last_store_count_q : stores;
      wait_line_count_q[number_q] <= internal_q ? last_line_count_q : queued;
      for (int unsigned c = 0; c < NumChannels; c++)
      wait_stores_q[number_q][c] <= internal_q ? stores_left[c] : stores[c] != answered[c];
      wait_lines_q[number_q] <= internal_q ? overlap & lines_left : overlap;
    end
    if (restore_i) begin
      ranges_q[restore_number_i] <= restore_ranges_i;
      wait_commands_q[restore_number_i] <= restore_commands_i;
      wait_stores_q[restore_number_i] <= '0;
      for (int unsigned c = 0; c < NumChannels; c++) begin
        wait_line_count_q[restore_number_i][c] <= written[c] + restore_lines_i[c][CountBits-1:0];
        wait_lines_q[restore_number_i][c] <= restore_lines_i[c] != '0;
      end
    end
  end

  // ---------------------------------------------------------------- save

  always_ff @(posedge clk_i) begin
    save_valid_o <= valid_q[save_number_i] && !dropped_o[save_number_i];
    save_commands_o <= wait_commands_q[save_number_i];
    for (int unsigned c = 0; c < NumChannels; c++)
    save_lines_o[c] <= wait_lines_q[save_number_i][c] ? 8'(count_t'(wait_line_count_q[save_number_i][c] - written[c])) : '0;
  end

  `NS_ASSERT(inserted_once, !inserted_o || !valid_q[number_q])
  `NS_ASSERT(insert_held,
             state_q == StIdle || freeze_i || (insert_valid_i && insert_number_i == number_q))
  `NS_ASSERT(issued_when_ready, !issue_valid_i || freeze_i || ready_o[issue_number_i])
  `NS_ASSERT(retired_when_issued,
             !retire_valid_i || freeze_i || (valid_q[retire_number_i] && issued_q[retire_number_i]))
  `NS_ASSERT(restored_while_frozen, !restore_i || freeze_i)
  `NS_ASSERT(waits_for_older, !inserted_o || !conflicts_q[number_q])
  `NS_ASSERT(issued_is_valid, (issued_q & ~valid_q) == '0)

endmodule
