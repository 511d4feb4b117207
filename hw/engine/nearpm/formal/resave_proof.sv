// SPDX-License-Identifier: Apache-2.0

// The queue of one channel of two, with four lines, and the filter of what is saved. Lines that
// were restored and have not left are saved unchanged, whatever registers and memories held before
// the reset. A line that waits for a dropped command is left out, with all lines after it. The
// power fails again before the saved state is marked as used.
//
// Lines are restored in order; no valid one follows an invalid one. They are saved in order. One
// line is followed, by a few of its bits. The queue is frozen.
module resave_proof
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
#(
  /// Asserted property. 0: the line is saved unchanged. 1: no restored line is ever saved; has to
  /// fail.
  parameter int unsigned Property = 0
) (
  input logic         clk_i,
  input logic         rst_ni,
  input logic         restore_i,
  input logic [13:0]  restore_bits_i,
  input logic [6:0]   save_index_i,
  input logic [1:0]   followed_i,
  input logic [1:0]   dropped_i
);

  localparam int unsigned Channel = 1;
  localparam int unsigned EntryWords = QueueLines / 2;
  localparam int unsigned Words = EntryWords + QueueLines;

  // Starts with a reset.
  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  assume property (@(posedge clk_i) rst_ni == started_q);

  // The followed line and the dropped commands are fixed.
  logic [1:0] followed_q, dropped_q;
  always_ff @(posedge clk_i) {followed_q, dropped_q} <= {followed_i, dropped_i};
  assume property (@(posedge clk_i) !started_q || {followed_i, dropped_i} == {followed_q, dropped_q});

  // ---------------------------------------------------------------- restore

  typedef struct packed {
    logic         valid;
    line_t        line;
    logic [63:0]  strb;
    commands_t    commands;
  } entry_t;

  function automatic entry_t entry_of(logic [511:0] word, int unsigned e);
    return
    '{
        valid: word[256*e+63],
        line: word[256*e+:LineBits],
        strb: word[256*e+64+:64],
        commands: word[256*e+128+:Commands]
    }
    ;
  endfunction

  // Half of a word of entries: valid bit, and two bits each of the line, the strobes and the
  // commands.
  function automatic logic [255:0] half(logic [6:0] bits);
    half = '0;
    half[63] = bits[0];
    half[6] = 1'(Channel);
    half[1:0] = bits[2:1];
    half[127:126] = bits[4:3];
    half[129:128] = bits[6:5];
  endfunction

  logic [511:0] restore_data;
  logic [6:0] index_q;
  logic restores, entries, last_valid_q;
  logic [1:0] left_out;  // waits for a dropped command, and is not younger than the followed line
  logic left_out_q;  // one of the entries so far
  entry_t [1:0] entry;
  entry_t entry_q;
  logic [511:0] data_q;

  assign restores = restore_i && rst_ni && index_q != 7'(Words);
  assign entries = index_q < 7'(EntryWords);
  assign restore_data = entries ? {half(restore_bits_i[13:7]), half(restore_bits_i[6:0])} : {restore_bits_i[1:0], 508'd0, restore_bits_i[3:2]};
  assign entry[0] = entry_of(restore_data, 0);
  assign entry[1] = entry_of(restore_data, 1);
  // No valid entry follows an invalid one.
  assume property (@(posedge clk_i) !(restores && entries) || ((index_q == '0 || last_valid_q || !entry[0].valid) &&
      (entry[0].valid || !entry[1].valid)));

  always_comb begin
    for (int unsigned e = 0; e < 2; e++)
    left_out[e] = entry[e].valid && (entry[e].commands[1:0] & dropped_i) != '0 && {index_q, 1'(e)} <= 8'(followed_i);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      index_q <= '0;
      last_valid_q <= 1'b0;
      left_out_q <= 1'b0;
    end else if (restores) begin
      index_q <= index_q + 1'b1;
      if (entries) last_valid_q <= entry[1].valid;
      if (entries && left_out != '0) left_out_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (restores && entries && index_q == 7'(followed_i >> 1)) entry_q <= entry[followed_i[0]];
    if (restores && index_q == 7'(EntryWords) + 7'(followed_i)) data_q <= restore_data;
  end

  // ---------------------------------------------------------------- save

  logic [511:0] read, saved;
  logic [6:0] asked_q, entries_q;  // entries_q: the last line of entries that was read
  logic all_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) all_q <= 1'b0;
    else all_q <= index_q == 7'(Words);
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) entries_q <= '0;
    else if (index_q == 7'(Words) && save_index_i < 7'(EntryWords)) entries_q <= save_index_i;
  end
  always_ff @(posedge clk_i) asked_q <= save_index_i;
  // Lines of entries are read in order, after the restore.
  logic begun_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begun_q <= 1'b0;
    else if (index_q == 7'(Words) && save_index_i == '0) begun_q <= 1'b1;
  end
  assume property (@(posedge clk_i) save_index_i >= 7'(EntryWords) || save_index_i == '0 ||
      (begun_q && (save_index_i == entries_q || save_index_i == entries_q + 1'b1)));

  nearpm_queue #(
    .NumChannels(2),
    .Granule    (4096),
    .Channel    (Channel)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .freeze_i         (1'b1),
    .retired_i          ('0),
    .queued_o         (),
    .written_o        (),
    .queued_next_o    (),
    .lookup_valid_i           (1'b0),
    .lookup_burst_i     ('0),
    .lookup_overlap_o  (),
    .order_lines_i    ('0),
    .order_overlap_o (),
    .insert_valid_i         (1'b0),
    .insert_burst_i   ('0),
    .insert_commands_i('0),
    .free_o           (),
    .fill_valid_i           (1'b0),
    .fill_place_i     ('0),
    .fill_line_i      ('0),
    .fill_strb_i      ('0),
    .fill_data_i      ('0),
    .aw_valid_o       (),
    .aw_line_o        (),
    .aw_ready_i       (1'b0),
    .w_valid_o        (),
    .w_o              (),
    .w_ready_i        (1'b0),
    .settled_add_i         ('0),
    .response_i         (1'b0),
    .save_index_i,
    .save_data_o      (read),
    .restore_i        (restores),
    .restore_index_i  (index_q),
    .restore_data_i   (restore_data)
  );

  nearpm_save_filter u_filter (
    .clk_i,
    .dropped_i      (commands_t'(dropped_i)),
    .entries_valid_i(asked_q < 7'(EntryWords)),
    .index_i        (asked_q),
    .data_i         (read),
    .data_o         (saved)
  );

  entry_t found;
  logic looks;
  assign found = entry_of(saved, 32'(followed_i[0]));
  assign looks = all_q && asked_q == 7'(followed_i >> 1);

  if (Property == 0) begin : gen_again
    SameEntry :
    assert property (@(posedge clk_i) !(rst_ni && looks) || (found.valid == (entry_q.valid && !left_out_q) && (!found.valid || found == entry_q)));
    SameData :
    assert property (@(posedge clk_i) !(rst_ni && all_q && entry_q.valid && asked_q == 7'(EntryWords) + 7'(followed_i)) || saved == data_q);
  end else begin : gen_reached
    Saved :
    assert property (@(posedge clk_i) !(rst_ni && looks && found.valid && followed_i == 2'd3));
  end

endmodule
