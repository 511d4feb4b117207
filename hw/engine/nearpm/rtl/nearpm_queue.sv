// SPDX-License-Identifier: Apache-2.0

// Queue of the conflict filter: lines of stores that overlap a command, in order, on their way to
// the memory.
//
// A line passes through four counts: queued ─► settled ─► read ─► written.
//
// - A store reserves places for all of its lines at once; data fill them on arrival.
// - A line is settled when its store and all earlier ones are answered. It is then in the
//   persistence domain.
// - The oldest settled line is read when its commands have retired, and leaves.
// - Its place is free when the memory has answered.
//
// While `freeze_i` is 1 no line leaves and no place becomes free. Settled lines that are not
// written can then be saved, in any order. Before `freeze_i` falls, a reset and the restore have to
// follow.
`include "ns_assert.svh"

module nearpm_queue
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
#(
  /// See nearpm_filter.
  parameter int unsigned NumChannels = 2,
  parameter int unsigned Granule = 4096,
  parameter int unsigned Channel = 0
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             freeze_i,
  /// Commands that have retired.
  input  commands_t                        retired_i,

  /// Lines that entered, and lines that are in the memory. From registers.
  output count_t                           queued_o,
  output count_t                           written_o,
  /// `queued_o` of the next cycle.
  output count_t                           queued_next_o,
  /// Lookup: an access to the channel overlaps a line.
  input  logic                             lookup_valid_i,
  input  burst_t                           lookup_burst_i,
  output logic                             lookup_overlap_o,
  /// The same for a command.
  input  ranges_t                          order_lines_i,
  output logic                             order_overlap_o,

  /// A store reserves places for its lines; enough are free.
  input  logic                             insert_valid_i,
  input  burst_t                           insert_burst_i,
  input  commands_t                        insert_commands_i,
  /// Free places.
  output logic      [QueueBits:0]          free_o,
  /// Data of the line at a place; `fill_line_i` is local to the channel.
  input  logic                             fill_valid_i,
  input  logic      [QueueBits-1:0]        fill_place_i,
  input  line_t                            fill_line_i,
  input  logic      [StrbWidth-1:0]        fill_strb_i,
  input  logic      [DataWidth-1:0]        fill_data_i,

  /// A line leaves: address, then data.
  output logic                             aw_valid_o,
  output line_t                            aw_line_o,
  input  logic                             aw_ready_i,
  /// Data of a line whose address has left.
  output logic                             w_valid_o,
  output w_t                               w_o,
  input  logic                             w_ready_i,
  /// Number of further lines whose store, and all earlier ones, are answered.
  input  count_t                           settled_add_i,
  /// Response of the memory to the oldest line that has left.
  input  logic                             response_i,

  /// A line of the reserved range; data follow a cycle later. Lines are restored in order.
  input  logic      [6:0]                  save_index_i,
  output logic      [511:0]                save_data_o,
  input  logic                             restore_i,
  input  logic      [6:0]                  restore_index_i,
  input  logic      [511:0]                restore_data_i
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule)) - 6;  // lines
  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned EntryWords = QueueLines / 2;

  // ---------------------------------------------------------------- counts

  // Lines that entered, of these those whose store is answered, those that were read to leave, and
  // those that are in the memory.
  count_t queued_q, settled_q, read_q, written_q;
  count_t insert_lines, restored;
  logic restore_entries, line_read, line_written;
  logic [1:0] restore_valid;
  place_t restore_place;

  assign insert_lines = count_t'(insert_burst_i.last - insert_burst_i.first) + count_t'(1);
  assign line_written = response_i && !freeze_i;

  // A restored line of the reserved range has two entries; valid ones come first. Restored lines
  // are settled.
  assign restore_entries = restore_i && restore_index_i < 7'(EntryWords);
  assign restore_place = {restore_index_i[QueueBits-2:0], 1'b0};
  assign restore_valid[0] = restore_data_i[63] && queued_q[QueueBits-1:0] == restore_place;
  assign restore_valid[1] = restore_data_i[256+63] && restore_valid[0];
  assign restored = queued_q + count_t'(restore_valid[0]) + count_t'(restore_valid[1]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) queued_q <= '0;
    else queued_q <= restore_entries ? restored : queued_next_o;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) settled_q <= '0;
    else settled_q <= restore_entries ? restored : settled_q + settled_add_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_q <= '0;
    else read_q <= read_q + count_t'(line_read);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) written_q <= '0;
    else written_q <= written_q + count_t'(line_written);
  end

  assign queued_o = queued_q;
  assign queued_next_o = queued_q + (insert_valid_i ? insert_lines : '0);
  assign written_o = written_q;
  assign free_o = (QueueBits + 1)'(QueueLines) - (QueueBits + 1)'(count_t'(queued_q - written_q));

  // ---------------------------------------------------------------- places

  logic [QueueLines-1:0] valid_q;
  logic [QueueLines-1:0][PageBits-1:0] page_q;
  logic [QueueLines-1:0][PageLineBits-1:0] low_q;
  commands_t commands_q[QueueLines];

  // Places that a store reserves, and the line offset at each.
  logic [QueueLines-1:0] insert_slot;
  place_t [QueueLines-1:0] offset;
  always_comb begin
    insert_slot = '0;
    offset = '0;
    if (insert_valid_i) begin
      for (int unsigned i = 0; i < QueueLines; i++) begin
        offset[i] = place_t'(i) - queued_q[QueueBits-1:0];
        insert_slot[i] = {1'b0, offset[i]} < insert_lines;
      end
    end
  end

  // A place is in use from its reservation until its line is written.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= '0;
    else begin
      if (line_written) valid_q[written_q[QueueBits-1:0]] <= 1'b0;
      for (int unsigned i = 0; i < QueueLines; i++) if (insert_slot[i]) valid_q[i] <= 1'b1;
      if (restore_entries) begin
        for (int unsigned e = 0; e < 2; e++) valid_q[restore_place|place_t'(e)] <= restore_valid[e];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < QueueLines; i++) begin
      if (insert_slot[i]) begin
        page_q[i] <= insert_burst_i.page;
        low_q[i]  <= insert_burst_i.first + offset[i];
      end
    end
    if (restore_entries) begin
      for (int unsigned e = 0; e < 2; e++)
      {page_q[restore_place|place_t'(e)], low_q[restore_place|place_t'(e)]} <= to_local(
          restore_data_i[256*e+:LineBits], GranuleBits, ChannelBits
      );
    end
  end

  // Commands that a line waits for.
  always_ff @(posedge clk_i) begin
    if (retired_i != '0) begin
      for (int unsigned i = 0; i < QueueLines; i++) commands_q[i] <= commands_q[i] & ~retired_i;
    end
    for (int unsigned i = 0; i < QueueLines; i++)
    if (insert_slot[i]) commands_q[i] <= insert_commands_i & ~retired_i;
    if (restore_entries) begin
      for (int unsigned e = 0; e < 2; e++)
      commands_q[restore_place|place_t'(e)] <= restore_data_i[256*e+128+:Commands];
    end
  end

  // ---------------------------------------------------------------- overlap

  always_comb begin
    lookup_overlap_o = 1'b0;
    if (lookup_valid_i && valid_q != '0) begin
      for (int unsigned i = 0; i < QueueLines; i++)
      lookup_overlap_o |= valid_q[i] && page_q[i] == lookup_burst_i.page && low_q[i] >= lookup_burst_i.first && low_q[i] <= lookup_burst_i.last;
    end
  end

  function automatic logic contains(line_t line, range_t range);
    contains = range.valid && line >= range.first && line <= range.last;
  endfunction

  always_comb begin
    order_overlap_o = 1'b0;
    if ((order_lines_i.reads.valid || order_lines_i.writes.valid) && valid_q != '0) begin
      for (int unsigned i = 0; i < QueueLines; i++)
      order_overlap_o |= valid_q[i] && (contains(
          to_media({page_q[i], low_q[i]}, GranuleBits, ChannelBits, Channel), order_lines_i.reads
      ) || contains(
          to_media({page_q[i], low_q[i]}, GranuleBits, ChannelBits, Channel), order_lines_i.writes
      ));
    end
  end

  // ---------------------------------------------------------------- memories

  /// Written with the data of a line.
  typedef struct packed {
    line_t                line;
    logic [StrbWidth-1:0] strb;
  } tag_t;

  // One read port: while frozen it belongs to the save, otherwise to the line that leaves next. The
  // place that was read and the one after it are available a cycle later.
  logic read_valid, read_odd_q;
  place_t save_place, read_place, read_next;
  logic [DataWidth-1:0] read_data;
  tag_t [1:0] bank_tag, read_tag;
  commands_t read_commands;  // in the same cycle

  assign read_valid = freeze_i || line_read;
  assign read_place = freeze_i ? save_place : read_q[QueueBits-1:0];
  assign read_next = read_place + 1'b1;
  assign read_commands = commands_q[read_place];
  always_ff @(posedge clk_i) if (read_valid) read_odd_q <= read_place[0];

  ns_ram_1r1w #(
    .Width(DataWidth),
    .Depth(QueueLines),
    .Style("lutram")
  ) u_data (
    .clk_i,
    .we_i   (fill_valid_i || (restore_i && !restore_entries)),
    .waddr_i(restore_i ? restore_index_i[QueueBits-1:0] - place_t'(EntryWords) : fill_place_i),
    .wdata_i(restore_i ? restore_data_i : fill_data_i),
    .re_i   (read_valid),
    .raddr_i(read_place),
    .rdata_o(read_data)
  );

  // Two banks of tags, since a line of the reserved range holds two entries.
  for (genvar b = 0; b < 2; b++) begin : gen_bank
    tag_t restored_tag;
    logic [QueueBits-2:0] place;  // of the two places, the one in this bank
    assign restored_tag = '{
            line: to_local(restore_data_i[256*b+:LineBits], GranuleBits, ChannelBits),
            strb: restore_data_i[256*b+64+:StrbWidth]
        };
    assign place = (read_place[0] == 1'(b)) ? read_place[QueueBits-1:1] : read_next[QueueBits-1:1];
    ns_ram_1r1w #(
      .Width($bits(tag_t)),
      .Depth(QueueLines / 2),
      .Style("lutram")
    ) u_tag (
      .clk_i,
      .we_i   (restore_entries || (fill_valid_i && fill_place_i[0] == 1'(b))),
      .waddr_i(restore_entries ? restore_index_i[QueueBits-2:0] : fill_place_i[QueueBits-1:1]),
      .wdata_i(restore_entries ? restored_tag : {fill_line_i, fill_strb_i}),
      .re_i   (read_valid),
      .raddr_i(place),
      .rdata_o(bank_tag[b])
    );
  end
  assign read_tag = {bank_tag[!read_odd_q], bank_tag[read_odd_q]};

  // ---------------------------------------------------------------- lines that leave

  logic read_valid_q, out_load, out_valid_q, out_sent_q;
  tag_t out_tag_q;
  logic [DataWidth-1:0] out_data_q;

  // The oldest settled line is read when its commands have retired and the memory outputs are free.
  assign line_read = !freeze_i && read_q != settled_q && read_commands == '0 &&
      (!read_valid_q || out_load);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_valid_q <= 1'b0;
    else if (line_read) read_valid_q <= 1'b1;
    else if (out_load) read_valid_q <= 1'b0;
  end

  // The line moves to the output stage when the preceding one has left.
  assign out_load = read_valid_q && !freeze_i && (!out_valid_q || (w_valid_o && w_ready_i));
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) out_valid_q <= 1'b0;
    else if (out_load) out_valid_q <= 1'b1;
    else if (w_valid_o && w_ready_i) out_valid_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (out_load) begin
      out_tag_q  <= read_tag[0];
      out_data_q <= read_data;
    end
  end

  // Its address leaves before its data.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) out_sent_q <= 1'b0;
    else if (aw_valid_o && aw_ready_i) out_sent_q <= 1'b1;
    else if (w_valid_o && w_ready_i) out_sent_q <= 1'b0;
  end
  assign aw_valid_o = out_valid_q && !out_sent_q;
  assign aw_line_o = out_tag_q.line;
  assign w_valid_o = out_valid_q && out_sent_q;
  assign w_o = '{last: 1'b1, strb: out_tag_q.strb, data: out_data_q};

  // ---------------------------------------------------------------- save

  // Lines of the reserved range: first the entries, two per line, then the data. Both begin with
  // the oldest line that is not written.
  logic save_entries, save_entries_q;
  logic [1:0] save_valid_q;
  commands_t save_commands_q[2];

  assign save_entries = save_index_i < 7'(EntryWords);
  assign save_place = written_q[QueueBits-1:0] + (save_entries ? {save_index_i[QueueBits-2:0], 1'b0} :
      save_index_i[QueueBits-1:0] - place_t'(EntryWords));

  // An entry is valid if its line is settled. After a restore all lines are.
  always_ff @(posedge clk_i) begin
    save_entries_q <= save_entries;
    save_commands_q[0] <= read_commands;
    save_commands_q[1] <= commands_q[read_next];
    for (int unsigned e = 0; e < 2; e++)
    save_valid_q[e] <= count_t'({save_index_i[QueueBits-2:0], 1'(e)}) < count_t'(settled_q - written_q);
  end

  always_comb begin
    save_data_o = read_data;
    if (save_entries_q) begin
      save_data_o = '0;
      for (int unsigned e = 0; e < 2; e++) begin
        if (save_valid_q[e]) begin
          save_data_o[256*e+63] = 1'b1;
          save_data_o[256*e+:LineBits] = to_media(read_tag[e].line, GranuleBits, ChannelBits, Channel);
          save_data_o[256*e+64+:StrbWidth] = read_tag[e].strb;
          save_data_o[256*e+128+:Commands] = save_commands_q[e];
        end
      end
    end
  end

`ifdef NS_ASSERT_ON
  logic [QueueLines-1:0] filled_q;
  always_ff @(posedge clk_i) begin
    filled_q <= filled_q & ~insert_slot;
    if (fill_valid_i) filled_q[fill_place_i] <= 1'b1;
    if (restore_entries) filled_q[restore_place+:2] <= restore_valid;
  end
`endif

  `NS_ASSERT(room, !insert_valid_i || (QueueBits + 1)'(insert_lines) <= free_o)
  `NS_ASSERT(filled_once, !fill_valid_i || (valid_q[fill_place_i] && !filled_q[fill_place_i]))
  `NS_ASSERT(fills_its_line,
             !fill_valid_i || fill_line_i == {page_q[fill_place_i], low_q[fill_place_i]})
  `NS_ASSERT(response_of_a_line,
             !line_written || (valid_q[written_q[QueueBits-1:0]] && written_q != read_q))
  `NS_ASSERT(
      read_when_free,
      !line_read || (valid_q[read_place] && filled_q[read_place] && commands_q[read_place] == '0))
  `NS_ASSERT(in_order, count_t'(read_q - written_q) <= count_t'(settled_q - written_q))

  `NS_ASSERT(settled_is_queued, count_t'(settled_q - written_q) <= count_t'(queued_q - written_q))
  `NS_ASSERT(restored_while_frozen, !restore_i || freeze_i)

endmodule
