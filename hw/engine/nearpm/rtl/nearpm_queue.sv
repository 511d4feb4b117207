// SPDX-License-Identifier: Apache-2.0

// Queue of the conflict filter: lines of stores that overlap a command, in order, on their way to
// the memory.
//
// A store reserves places for all of its lines at once; data fill them on arrival. The oldest line
// leaves when its store and all earlier ones are answered, and its commands have retired. Its place
// is free after the response of the memory.
//
// Lines are in the persistence domain when their store and all earlier stores are answered.
// `save_index_i` selects a line to save, and `restore_i` writes one back. A power cut therefore
// never keeps a younger store of a line without an older one.
//
// While `freeze_i` is 1 no line leaves and no place becomes free. Before it falls, a reset and the
// restore have to follow.
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

  /// A line of the reserved range; data follow a cycle later.
  input  logic      [6:0]                  save_index_i,
  input  commands_t                        save_dropped_i,
  output logic      [511:0]                save_data_o,
  input  logic                             restore_i,
  input  logic      [6:0]                  restore_index_i,
  input  logic      [511:0]                restore_data_i
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule)) - 6;  // lines
  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));
  localparam int unsigned EntryWords = QueueLines / 2;

  /// Written with the data of a line.
  typedef struct packed {
    line_t                line;
    logic [StrbWidth-1:0] strb;
  } tag_t;

  logic [QueueLines-1:0] valid_q;
  logic [QueueLines-1:0][PageBits-1:0] page_q;
  logic [QueueLines-1:0][PageLineBits-1:0] low_q;
  commands_t commands_q[QueueLines];
  count_t queued_q, written_q, fetched_q, settled_q;
  count_t insert_lines;

  assign insert_lines = count_t'(insert_burst_i.last - insert_burst_i.first) + count_t'(1);
  assign queued_o = queued_q;
  assign queued_next_o = queued_q + (insert_valid_i ? insert_lines : '0);
  assign written_o = written_q;
  assign free_o = (QueueBits + 1)'(QueueLines) - (QueueBits + 1)'(count_t'(queued_q - written_q));

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

  // ---------------------------------------------------------------- places

  logic fetch, out_load, line_written;
  place_t fetch_place, written_place, restore_place;
  logic restore_entries;
  logic [1:0] restore_valid;

  assign fetch_place = fetched_q[QueueBits-1:0];
  assign written_place = written_q[QueueBits-1:0];
  assign line_written = response_i && !freeze_i;
  assign restore_entries = restore_i && restore_index_i < 7'(EntryWords);
  assign restore_place = {restore_index_i[QueueBits-2:0], 1'b0};
  // Valid entries come first.
  assign restore_valid[0] = restore_data_i[63] && queued_q[QueueBits-1:0] == restore_place;
  assign restore_valid[1] = restore_data_i[256+63] && restore_valid[0];

  // Places that a store reserves, and the line offset at each.
  logic [QueueLines-1:0] insert_slot;
  place_t [QueueLines-1:0] offset;
  always_comb begin
    insert_slot  = '0;
    offset = '0;
    if (insert_valid_i) begin
      for (int unsigned i = 0; i < QueueLines; i++) begin
        offset[i] = place_t'(i) - queued_q[QueueBits-1:0];
        insert_slot[i]  = {1'b0, offset[i]} < insert_lines;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q   <= '0;

      queued_q  <= '0;
      written_q <= '0;
      fetched_q <= '0;
      settled_q <= '0;
    end else begin
      queued_q  <= queued_next_o;
      written_q <= written_q + count_t'(line_written);
      fetched_q <= fetched_q + count_t'(fetch);
      settled_q <= settled_q + settled_add_i;
      if (line_written) valid_q[written_place] <= 1'b0;

      if (insert_valid_i) begin
        for (int unsigned i = 0; i < QueueLines; i++) begin
          if (insert_slot[i]) valid_q[i] <= 1'b1;
        end
      end
      if (restore_entries) begin
        queued_q  <= queued_q + count_t'(restore_valid[0]) + count_t'(restore_valid[1]);
        settled_q <= queued_q + count_t'(restore_valid[0]) + count_t'(restore_valid[1]);
        for (int unsigned e = 0; e < 2; e++) begin
          valid_q[restore_place|place_t'(e)] <= restore_valid[e];

        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (retired_i != '0) begin
      for (int unsigned i = 0; i < QueueLines; i++) commands_q[i] <= commands_q[i] & ~retired_i;
    end
    if (insert_valid_i) begin
      for (int unsigned i = 0; i < QueueLines; i++) begin
        if (insert_slot[i]) begin
          page_q[i] <= insert_burst_i.page;
          low_q[i] <= insert_burst_i.first + offset[i];
          commands_q[i] <= insert_commands_i & ~retired_i;
        end
      end
    end
    if (restore_entries) begin
      for (int unsigned e = 0; e < 2; e++) begin
        {page_q[restore_place|place_t'(e)], low_q[restore_place|place_t'(e)]} <= to_local(
            restore_data_i[256*e+:LineBits], GranuleBits, ChannelBits
        );
        commands_q[restore_place|place_t'(e)] <= restore_data_i[256*e+128+:Commands];
      end
    end
  end

  // ---------------------------------------------------------------- data

  // Place to read: the next line to leave, or the line to save while frozen.
  place_t read_place, save_place;
  logic save_entries_q;
  logic [1:0] save_valid_q;
  commands_t save_commands_q[2];
  logic [DataWidth-1:0] data;

  assign save_place = written_place + (save_index_i < 7'(EntryWords) ? {save_index_i[QueueBits-2:0], 1'b0} : save_index_i[QueueBits-1:0] - place_t'(EntryWords));
  assign read_place = freeze_i ? save_place : fetch_place;

  ns_ram_1r1w #(
    .Width(DataWidth),
    .Depth(QueueLines),
    .Style("lutram")
  ) u_data (
    .clk_i,
    .we_i   (fill_valid_i || (restore_i && !restore_entries)),
    .waddr_i(restore_i ? restore_index_i[QueueBits-1:0] - place_t'(EntryWords) : fill_place_i),
    .wdata_i(restore_i ? restore_data_i : fill_data_i),
    .re_i   (fetch || freeze_i),
    .raddr_i(read_place),
    .rdata_o(data)
  );

  // Two banks of places, since a line of the reserved range holds two entries.
  tag_t [1:0] tag;
  place_t [1:0] read_half;
  logic fetch_odd_q, save_odd_q;
  for (genvar b = 0; b < 2; b++) begin : gen_bank
    // The one of two successive places that lies in this bank.
    assign read_half[b] = (read_place[0] == 1'(b)) ? read_place : read_place + 1'b1;
    ns_ram_1r1w #(
      .Width($bits(tag_t)),
      .Depth(QueueLines / 2),
      .Style("lutram")
    ) u_tag (
      .clk_i,
      .we_i   (restore_entries || (fill_valid_i && fill_place_i[0] == 1'(b))),
      .waddr_i(restore_entries ? restore_index_i[QueueBits-2:0] : fill_place_i[QueueBits-1:1]),
      .wdata_i(restore_entries ? {to_local(restore_data_i[256*b+:LineBits], GranuleBits, ChannelBits), restore_data_i[256*b+64+:StrbWidth]} :
               {fill_line_i, fill_strb_i}),
      .re_i   (fetch || freeze_i),
      .raddr_i(read_half[b][QueueBits-1:1]),
      .rdata_o(tag[b])
    );
  end

  // A line that was read moves to the output stage; its address leaves before its data.
  logic fetched_valid_q, out_valid_q, out_sent_q;
  tag_t out_tag_q;
  logic [DataWidth-1:0] out_data_q;

  // The set of commands is that of the place that is read.
  assign fetch = !freeze_i && fetched_q != settled_q && commands_q[read_place] == '0 &&
      (!fetched_valid_q || out_load);
  assign out_load = fetched_valid_q && !freeze_i && (!out_valid_q || (w_valid_o && w_ready_i));
  assign aw_valid_o = out_valid_q && !out_sent_q;
  assign aw_line_o = out_tag_q.line;
  assign w_valid_o = out_valid_q && out_sent_q;
  assign w_o = '{last: 1'b1, strb: out_tag_q.strb, data: out_data_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fetched_valid_q <= 1'b0;
      out_valid_q <= 1'b0;
      out_sent_q <= 1'b0;
    end else begin
      if (fetch) fetched_valid_q <= 1'b1;
      else if (out_load) fetched_valid_q <= 1'b0;
      if (out_load) out_valid_q <= 1'b1;
      else if (w_valid_o && w_ready_i) out_valid_q <= 1'b0;
      if (aw_valid_o && aw_ready_i) out_sent_q <= 1'b1;
      else if (w_valid_o && w_ready_i) out_sent_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fetch) fetch_odd_q <= fetch_place[0];
    if (out_load) begin
      out_tag_q  <= tag[fetch_odd_q];
      out_data_q <= data;
    end
  end

  // ---------------------------------------------------------------- save

  place_t save_next;
  assign save_next = save_place + 1'b1;

  // A line that waits for a dropped command is left out, with all lines after it. All of them are
  // younger than the unanswered store, whatever its channel.
  count_t [1:0] save_line_q;
  count_t save_end_q;
  logic [1:0] save_blocked, save_keep;
  always_comb begin
    for (int unsigned e = 0; e < 2; e++)
    save_blocked[e] = save_valid_q[e] && (save_commands_q[e] & save_dropped_i) != '0;
    save_keep[0] = save_valid_q[0] && !save_blocked[0] && save_line_q[0] < save_end_q;
    save_keep[1] = save_valid_q[1] && save_blocked == '0 && save_line_q[1] < save_end_q;
  end

  // An entry may be selected for several cycles. After a reset all entries count as valid, since
  // the power may fail before the lines have left.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) save_end_q <= '1;
    else if (!freeze_i) save_end_q <= '1;
    else if (save_entries_q && save_blocked != '0) begin
      if (save_blocked[0] && save_line_q[0] < save_end_q) save_end_q <= save_line_q[0];
      else if (!save_blocked[0] && save_line_q[1] < save_end_q) save_end_q <= save_line_q[1];
    end
  end

  always_ff @(posedge clk_i) begin
    save_entries_q <= save_index_i < 7'(EntryWords);
    save_odd_q <= save_place[0];
    save_commands_q[0] <= commands_q[read_place];
    save_commands_q[1] <= commands_q[save_next];
    for (int unsigned e = 0; e < 2; e++) begin
      save_line_q[e]  <= count_t'({save_index_i[QueueBits-2:0], 1'(e)});
      save_valid_q[e] <= count_t'({save_index_i[QueueBits-2:0], 1'(e)}) < count_t'(settled_q - written_q);
    end
  end

  always_comb begin
    save_data_o = data;
    if (save_entries_q) begin
      save_data_o = '0;
      for (int unsigned e = 0; e < 2; e++) begin
        if (save_keep[e]) begin
          save_data_o[256*e+63] = 1'b1;
          save_data_o[256*e+:LineBits] = to_media(tag[save_odd_q^1'(e)].line, GranuleBits, ChannelBits, Channel);
          save_data_o[256*e+64+:StrbWidth] = tag[save_odd_q^1'(e)].strb;
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
             !line_written || (valid_q[written_place] && written_q != fetched_q))
  `NS_ASSERT(
      fetched_when_free,
      !fetch || (valid_q[fetch_place] && filled_q[fetch_place] && commands_q[fetch_place] == '0))
  `NS_ASSERT(in_order, count_t'(fetched_q - written_q) <= count_t'(settled_q - written_q))

  `NS_ASSERT(settled_is_queued, count_t'(settled_q - written_q) <= count_t'(queued_q - written_q))
  `NS_ASSERT(restored_while_frozen, !restore_i || freeze_i)

endmodule
