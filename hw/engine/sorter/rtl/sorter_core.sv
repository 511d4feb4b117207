// Sorts one column of keys in memory, in passes over it.
//
//   pass 1:  keys ─► sorter_load ─► sorter_cascade ─► sorter_leaves ─► sorter_tree ─► sorter_unload ─► sorted chunks
//   others:  runs ─► sorter_load ───────────────────► sorter_leaves ─► sorter_tree ─► sorter_unload ─► fewer, longer runs
//
// A chunk is what the leaves hold; while it is merged the next one comes. Each further pass merges as many runs into one as there are
// leaves, or two. Each record carries its index, so no two are equal, and equal keys stay in their order.
`include "ns_assert.svh"

module sorter_core
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import sorter_pkg::*;
#(
  /// Bits of the longest key: 32, 64 or 128.
  parameter int unsigned KeyBits    = 64,
  /// Runs that are merged at a time, a power of two.
  parameter int unsigned Leaves     = 64,
  /// Rows of 8 records that the cascade sorts, a power of two.
  parameter int unsigned RunRows    = 256,
  /// Bytes of a burst; bits of the IDs of its master, at most 4.
  parameter int unsigned BurstBytes = 4096,
  parameter int unsigned IdBits     = 4,
  /// Memory channels, a power of two, and bytes that go to one of them before the next one's turn: reads are spread over them.
  parameter int unsigned NumChannels = 2,
  parameter int unsigned Granule    = 4096
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// From registers: it works.
  output logic        busy_o,
  /// Begin; at rest. What follows stays until the end, and is valid.
  input  logic        start_i,
  input  logic [63:0] src_i,
  input  logic [63:0] dst_i,
  input  logic [63:0] tmp_i,
  /// Keys, 1 to 2**31.
  input  logic [31:0] count_i,
  input  kind_t       kind_i,
  /// In the end only indexes are written.
  input  logic        indexes_i,
  /// Passes after the first one merge two runs at a time instead of as many as there are leaves: for comparison.
  input  logic        pairs_i,
  /// End early.
  input  logic        stop_i,
  /// It has ended, for one cycle, and how.
  output logic        done_o,
  output logic        stopped_o,
  output dma_done_t   errors_o,
  /// Passes that it took.
  output logic [3:0]  passes_o,
  /// Records merged, of all passes; the last one's until the next start.
  output logic [35:0] progress_o,
  /// Memory, addresses of the PM window.
  ns_axi_if.master    m_axi
);

  localparam int unsigned Width = KeyBits + IndexBits;
  localparam int unsigned LeafBits = unsigned'($clog2(Leaves));
  localparam int unsigned RunBits = unsigned'($clog2(RunRows));
  localparam int unsigned RowBits = 29;  // of a number of rows
  // Rows of a chunk, as a power of two.
  localparam int unsigned ChunkBits = LeafBits + RunBits;
  // What is read at a time: 4 KiB, but no more than a run.
  localparam int unsigned PieceBytes = 4096;
  localparam int unsigned SizeBits = 11;
  typedef logic [RowBits-1:0] rows_t;

  typedef enum logic [2:0] {
    StIdle,
    StPass,   // a pass begins
    StWork,
    StWrite,  // all of it has been handed over
    StAbort,  // what is under way ends
    StReset   // what is inside is forgotten
  } state_e;

  state_e state_q;
  logic [3:0] pass_q;
  rows_t
      rows, run_rows_q;  // of all records; of a run that this pass reads, from the second pass on
  logic first_pass, last_pass, to_dst_q, stop_q, error_q;
  logic [63:0] from, to;
  logic pass_begin, rest_n_q;
  logic abort, writes_rest, reads_rest, merged_all, merge_over, merge_half_q;
  logic read_error, read_last, read_valid, read_taken;
  logic write_error_q;  // of this sort

  assign rows = rows_t'((33'(count_i) + 33'd7) >> 3);
  assign first_pass = pass_q == '0;
  assign pass_begin = state_q == StPass;
  assign abort = state_q == StAbort;

  // Runs grow by the leaves in each pass, or by two. The last one writes to the target, so the first one does if their number is odd.
  function automatic logic [3:0] passes(rows_t n, logic pairs);
    passes = 4'd1;
    for (int unsigned p = 0; ChunkBits + p < RowBits; p++) begin
      if (pairs && 33'(n) > (33'd1 << (ChunkBits + p))) passes = 4'(p + 2);
      if (!pairs && ChunkBits + p * LeafBits < RowBits && 33'(n) > (33'd1 << (ChunkBits + p * LeafBits)))
        passes = 4'(p + 2);
    end
  endfunction

  // Runs that are merged at a time, as a power of two.
  localparam int unsigned GroupBits = unsigned'($clog2(LeafBits + 1));
  logic [GroupBits-1:0] group_bits;
  assign group_bits = pairs_i ? GroupBits'(1) : GroupBits'(LeafBits);

  logic [3:0] passes_q;
  assign last_pass = pass_q + 1'b1 == passes_q;
  assign passes_o = passes_q;
  assign from = first_pass ? src_i : to_dst_q ? tmp_i : dst_i;
  assign to = to_dst_q ? dst_i : tmp_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      stop_q   <= 1'b0;
      error_q  <= 1'b0;
      rest_n_q <= 1'b0;
    end else begin
      rest_n_q <= state_q != StReset;
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StPass;
        StPass:  state_q <= StWork;
        StWork: begin
          if (stop_q || error_q || write_error_q) state_q <= StAbort;
          else if (merged_all) state_q <= StWrite;
        end
        StWrite:
        if (writes_rest) state_q <= (last_pass || stop_q || write_error_q) ? StReset : StPass;
        StAbort: if (writes_rest && reads_rest) state_q <= StReset;
        default: state_q <= StIdle;
      endcase
      if (start_i) stop_q <= 1'b0;
      else if (stop_i && (state_q == StPass || state_q == StWork || (state_q == StWrite && !last_pass)))
        stop_q <= 1'b1;
      if (start_i) error_q <= 1'b0;
      else if (read_valid && read_taken && read_error) error_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      pass_q   <= '0;
      passes_q <= passes(rows_t'((33'(count_i) + 33'd7) >> 3), pairs_i);
      run_rows_q <= rows_t'(1) << ChunkBits;
    end else if (state_q == StWrite && writes_rest) begin
      pass_q <= pass_q + 1'b1;
      if (!first_pass) run_rows_q <= run_rows_q << group_bits;
    end
  end
  assign to_dst_q = passes_q[0] ^ pass_q[0];

  assign done_o = state_q == StReset;
  assign stopped_o = stop_q && !error_q;
  assign busy_o = state_q != StIdle;

  // ---------------------------------------------------------------- reads

  logic [63:0] range_addr;
  logic [31:0] range_bytes;
  logic [SizeBits-1:0] range_size;
  logic [LeafBits-1:0] range_leaf;
  logic range_valid, range_ready, range_fire, tags_ready, dma_ready;
  logic [511:0] read_data;
  logic [6:0] open_q;  // ranges

  // Pass 1: keys, one after another.
  logic [31:0] keys_left_q, keys_piece;
  logic [63:0] keys_addr_q;
  logic [1:0] width;
  assign width = kind_i.width;
  assign keys_piece = (keys_left_q > 32'(PieceBytes >> 2) >> width) ? 32'(PieceBytes >> 2) >> width : keys_left_q;

  // Others: of each leaf's run what its ring has room for.
  localparam int unsigned MostRows = (RunRows < PieceBytes / 64) ? RunRows : PieceBytes / 64;
  rows_t [Leaves-1:0] next_q, ask_q;
  logic [Leaves-1:0][RunBits+1:0] used_q;
  logic [Leaves-1:0] wants, next_channel, gnt, taken;
  logic [LeafBits-1:0] asker;
  logic any;
  rows_t piece_rows, asked, group_q;  // the first row of the group of runs that are merged
  logic group_begin;
  logic [31:0] records_left;

  assign piece_rows = rows_t'(MostRows) < (rows_t'(PieceBytes / 64) >> width) ? rows_t'(MostRows) : rows_t'(PieceBytes / 64) >> width;
  assign asked = (ask_q[asker] < piece_rows) ? ask_q[asker] : piece_rows;

  ns_rr_arbiter #(
    .N(Leaves)
  ) u_askers (
    .clk_i,
    .rst_ni (rst_ni && rest_n_q),
    .req_i  ((next_channel != '0) ? next_channel : wants),
    .next_i (range_fire),
    .gnt_o  (gnt),
    .idx_o  (asker),
    .valid_o(any)
  );

  // Of those that want one, the channel whose turn it is goes first: the data come in the order in which they are asked for, so a channel
  // that is asked twice makes the other one rest.
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = idx_width(NumChannels);
  logic [ChannelBits-1:0] turn_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) turn_q <= '0;
    else if (range_fire) turn_q <= range_addr[GranuleBits+:ChannelBits] + 1'b1;
  end

  for (genvar l = 0; l < Leaves; l++) begin : gen_asker
    rows_t first, left;
    logic [ChannelBits-1:0] channel;
    assign channel = ChannelBits'((from + (64'(next_q[l]) << (6 + width))) >> GranuleBits);
    assign next_channel[l] = NumChannels > 1 && wants[l] && channel == turn_q;
    assign first = group_q + (rows_t'(l) * run_rows_q);
    assign left  = (pairs_i && l >= 2) || (64'(group_q) + 64'(l) * 64'(run_rows_q) >= 64'(rows)) ? '0 :
        (rows - first < run_rows_q) ? rows - first : run_rows_q;
    assign wants[l] = ask_q[l] != '0 && used_q[l] <= (RunBits + 2)'(2 * RunRows) - (RunBits + 2)'(piece_rows);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        ask_q[l]  <= '0;
        used_q[l] <= '0;
      end else if (!rest_n_q) begin
        ask_q[l]  <= '0;
        used_q[l] <= '0;
      end else if (group_begin) begin
        ask_q[l]  <= left;
        used_q[l] <= '0;
      end else begin
        if (!first_pass && range_fire && gnt[l]) ask_q[l] <= ask_q[l] - asked;
        used_q[l] <= used_q[l] + ((!first_pass && range_fire && gnt[l]) ? (RunBits + 2)'(asked) : '0) -
            (RunBits + 2)'(!first_pass && taken[l]);
      end
    end
    always_ff @(posedge clk_i) begin
      if (group_begin) next_q[l] <= first;
      else if (range_fire && gnt[l]) next_q[l] <= next_q[l] + asked;
    end
  end

  assign records_left = count_i - {next_q[asker], 3'd0};
  always_comb begin
    if (first_pass) begin
      range_addr  = keys_addr_q;
      range_size  = SizeBits'(keys_piece);
      range_bytes = keys_piece << (2 + width);
      range_leaf  = '0;
      range_valid = state_q == StWork && keys_left_q != '0;
    end else begin
      range_addr  = from + (64'(next_q[asker]) << (6 + width));
      range_size  = (records_left < {asked, 3'd0}) ? SizeBits'(records_left) : SizeBits'({asked, 3'd0});
      range_bytes = 32'(range_size) << (3 + width);
      range_leaf  = asker;
      range_valid = state_q == StWork && any;
    end
  end
  assign range_ready = dma_ready && tags_ready;
  assign range_fire = range_valid && range_ready;

  always_ff @(posedge clk_i) begin
    if (pass_begin) begin
      keys_left_q <= first_pass ? count_i : '0;
      keys_addr_q <= src_i;
    end else if (range_fire && first_pass) begin
      keys_left_q <= keys_left_q - keys_piece;
      keys_addr_q <= keys_addr_q + 64'(range_bytes);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= '0;
    else open_q <= open_q + 7'(range_fire) - 7'(read_valid && read_taken && read_last);
  end
  assign reads_rest = open_q == '0;

  ns_axi_if bus ();

  ns_dma_read #(
    .BurstBytes(BurstBytes),
    .Bursts    (1 << IdBits)
  ) u_read (
    .clk_i,
    .rst_ni,
    .addr_i (range_addr),
    .bytes_i(range_bytes),
    .valid_i(range_valid && tags_ready),
    .ready_o(dma_ready),
    .data_o (read_data),
    .error_o(read_error),
    .last_o (read_last),
    .valid_o(read_valid),
    .ready_i(read_taken),
    .m_axi  (bus)
  );

  logic [SizeBits-1:0] size;
  logic [LeafBits-1:0] tag;
  logic tag_valid, tag_taken;
  ns_fifo #(
    .Width(SizeBits + LeafBits),
    .Depth(64),
    .Style("lutram")
  ) u_tags (
    .clk_i,
    .rst_ni     (rst_ni && rest_n_q),
    .in_valid_i (range_fire),
    .in_ready_o (tags_ready),
    .in_data_i  ({range_size, range_leaf}),
    .out_valid_o(tag_valid),
    .out_ready_i(tag_taken),
    .out_data_o ({size, tag}),
    .count_o    ()
  );

  // ---------------------------------------------------------------- rows

  logic [Lanes-1:0][Width-1:0] loaded, run_row, leaf_row, merged;
  logic [LeafBits-1:0] loaded_tag;
  logic loaded_last, loaded_valid, loaded_taken, load_taken;

  sorter_load #(
    .KeyBits (KeyBits),
    .TagBits (LeafBits),
    .SizeBits(SizeBits)
  ) u_load (
    .clk_i,
    .rst_ni       (rst_ni && rest_n_q),
    .kind_i,
    .keys_i       (first_pass),
    .size_i       (size),
    .tag_i        (tag),
    .range_valid_i(tag_valid),
    .range_ready_o(tag_taken),
    .data_i       (read_data),
    .valid_i      (read_valid && !abort),
    .ready_o      (load_taken),
    .row_o        (loaded),
    .tag_o        (loaded_tag),
    .last_o       (loaded_last),
    .valid_o      (loaded_valid),
    .ready_i      (loaded_taken)
  );
  assign read_taken = abort || load_taken;

  // Pass 1: into the cascade; the last row of a chunk is marked.
  logic cascade_ready, chunk_end, run_valid, run_taken, run_last, run_end, cascade_busy;
  rows_t loaded_q;  // rows of this pass

  assign chunk_end = loaded_q[ChunkBits-1:0] == '1 || loaded_q + 1'b1 == rows;
  assign loaded_taken = first_pass ? cascade_ready : 1'b1;
  always_ff @(posedge clk_i) begin
    if (pass_begin) loaded_q <= '0;
    else if (loaded_valid && loaded_taken) loaded_q <= loaded_q + 1'b1;
  end

  sorter_cascade #(
    .Width  (Width),
    .RunRows(RunRows)
  ) u_cascade (
    .clk_i,
    .rst_ni     (rst_ni && rest_n_q),
    .busy_o     (cascade_busy),
    .in_valid_i (loaded_valid && first_pass),
    .in_ready_o (cascade_ready),
    .in_end_i   (chunk_end),
    .in_row_i   (loaded),
    .out_valid_o(run_valid),
    .out_ready_i(run_taken),
    .out_last_o (run_last),
    .out_end_o  (run_end),
    .out_row_o  (run_row)
  );

  // Its runs fill one half of the leaves, then the other one.
  typedef struct packed {
    logic              half;
    logic [LeafBits:0] wholes;
    logic [RunBits:0]  part;
  } chunk_t;

  logic half_q;
  logic [1:0] full_q;
  logic [LeafBits-1:0] leaf_q;
  logic [RunBits-1:0] row_q;
  logic chunk_ready, chunk_valid, chunk_taken, run_fire, run_whole;
  chunk_t chunk, chunk_made;

  assign run_taken = !full_q[half_q] && chunk_ready;
  assign run_fire = run_valid && run_taken;
  assign run_whole = row_q == '1;
  assign chunk_made = '{
          half: half_q,
          wholes: (LeafBits + 1)'(leaf_q) + (LeafBits + 1)'(run_whole),
          part: run_whole ? '0 : (RunBits + 1)'(row_q) + 1'b1
      };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      half_q <= 1'b0;
      full_q <= '0;
      leaf_q <= '0;
      row_q  <= '0;
    end else if (!rest_n_q) begin
      half_q <= 1'b0;
      full_q <= '0;
      leaf_q <= '0;
      row_q  <= '0;
    end else begin
      if (run_fire) begin
        row_q <= run_last ? '0 : row_q + 1'b1;
        if (run_last) leaf_q <= run_end ? '0 : leaf_q + 1'b1;
        if (run_end) half_q <= !half_q;
        if (run_end) full_q[half_q] <= 1'b1;
      end
      if (merge_over && first_pass) full_q[merge_half_q] <= 1'b0;
    end
  end

  ns_fifo #(
    .Width($bits(chunk_t)),
    .Depth(2)
  ) u_chunks (
    .clk_i,
    .rst_ni     (rst_ni && rest_n_q),
    .in_valid_i (run_fire && run_end),
    .in_ready_o (chunk_ready),
    .in_data_i  (chunk_made),
    .out_valid_o(chunk_valid),
    .out_ready_i(chunk_taken),
    .out_data_o (chunk),
    .count_o    ()
  );

  // Others: into the leaf's ring.
  logic [Leaves-1:0][RunBits:0] ring_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < Leaves; l++) begin
      if (group_begin) ring_q[l] <= '0;
      else if (loaded_valid && loaded_tag == LeafBits'(l)) ring_q[l] <= ring_q[l] + 1'b1;
    end
  end

  // ---------------------------------------------------------------- merges

  // One after another: a chunk, or a group of runs.
  typedef enum logic [1:0] {
    MgIdle,
    MgBegin,
    MgWork,
    MgClear
  } merge_e;

  merge_e merge_q;
  logic merge_begin, tree_busy, leaves_busy, any_group, out_valid, out_taken, out_last;
  rows_t merged_q;  // rows of this pass that have been merged
  logic [LeafBits:0] wholes, wholes_q;
  logic [31:0] part, part_q;
  rows_t group_rows;
  logic [Leaves-1:0] leaf_room, leaf_reserve, leaf_wants;
  logic leaf_valid, leaf_last, leaf_none;
  logic [LeafBits-1:0] leaf_number;

  assign any_group = first_pass ? chunk_valid : group_q < rows;
  assign merge_begin = merge_q == MgBegin;
  assign group_begin = merge_begin && !first_pass;
  assign chunk_taken = merge_begin && first_pass;
  assign merge_over = merge_q == MgClear;

  // Of the group's runs, how many are whole, and what the next one has.
  assign group_rows = rows - group_q;
  always_comb begin
    wholes = '0;
    part   = '0;
    for (int unsigned l = 0; l < Leaves; l++) begin
      if ((!pairs_i || l < 2) && 64'(l + 1) * 64'(run_rows_q) <= 64'(group_rows))
        wholes = (LeafBits + 1)'(l + 1);
    end
    if (wholes != (LeafBits + 1)'(1) << group_bits)
      part = 32'(group_rows) - 32'(wholes) * 32'(run_rows_q);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) merge_q <= MgIdle;
    else if (!rest_n_q) merge_q <= MgIdle;
    else begin
      unique case (merge_q)
        MgIdle:  if (state_q == StWork && any_group) merge_q <= MgBegin;
        MgBegin: merge_q <= MgWork;
        MgWork:  if (out_valid && out_taken && out_last) merge_q <= MgClear;
        default: merge_q <= MgIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    wholes_q <= wholes;
    part_q   <= part;
    if (merge_begin) merge_half_q <= chunk.half;
    if (pass_begin) group_q <= '0;
    else if (merge_over && !first_pass)
      group_q <= (64'(group_q) + (64'(run_rows_q) << group_bits) > 64'(rows)) ? rows : group_q + (run_rows_q << group_bits);
    if (start_i || pass_begin) merged_q <= '0;
    else if (out_valid && out_taken) merged_q <= merged_q + 1'b1;
  end

  logic write_comes;
  assign write_comes = loaded_valid && !first_pass;

  sorter_leaves #(
    .Width  (Width),
    .Leaves (Leaves),
    .RunRows(RunRows)
  ) u_leaves (
    .clk_i,
    .rst_ni       (rst_ni && rest_n_q),
    .busy_o       (leaves_busy),
    .begin_i      (merge_begin),
    .wholes_i     (first_pass ? chunk.wholes : wholes_q),
    .full_i       (first_pass ? 32'(RunRows) : 32'(run_rows_q)),
    .part_i       (first_pass ? 32'(chunk.part) : part_q),
    .here_i       (first_pass),
    .half_i       (chunk.half),
    .write_valid_i(write_comes || run_fire),
    .write_leaf_i (first_pass ? leaf_q : loaded_tag),
    .write_place_i(first_pass ? {half_q, row_q} : ring_q[loaded_tag]),
    .write_row_i  (first_pass ? run_row : loaded),
    .write_comes_i(!first_pass),
    .taken_o      (taken),
    .room_i       (leaf_room),
    .wants_i      (leaf_wants),
    .reserve_o    (leaf_reserve),
    .out_valid_o  (leaf_valid),
    .out_leaf_o   (leaf_number),
    .out_last_o   (leaf_last),
    .out_none_o   (leaf_none),
    .out_row_o    (leaf_row)
  );

  sorter_tree #(
    .Width (Width),
    .Leaves(Leaves)
  ) u_tree (
    .clk_i,
    .rst_ni     (rst_ni && rest_n_q),
    .busy_o     (tree_busy),
    .clear_i    (merge_over),
    .room_o     (leaf_room),
    .reserve_i  (leaf_reserve),
    .wants_o    (leaf_wants),
    .in_valid_i (leaf_valid),
    .in_leaf_i  (leaf_number),
    .in_last_i  (leaf_last),
    .in_none_i  (leaf_none),
    .in_row_i   (leaf_row),
    .out_valid_o(out_valid),
    .out_ready_i(out_taken),
    .out_last_o (out_last),
    .out_row_o  (merged)
  );

  // ---------------------------------------------------------------- writes

  logic [511:0] write_data;
  logic unloaded_valid, write_valid, write_ready, write_fire, wants_indexes;
  logic [37:0] bytes, bytes_left_q, feed_q;
  logic [63:0] write_addr_q;
  logic [31:0] write_room, write_whole, write_bytes;
  logic write_range_ready, write_range_fire;
  dma_done_t write_done;
  logic write_done_valid;
  logic [3:0] write_open_q;

  assign wants_indexes = indexes_i && last_pass;
  assign bytes = wants_indexes ? 38'(count_i) << 2 : 38'(count_i) << (3 + width);
  // The memory waits for all of a range, also after a stop: so it is short, ends at a multiple of its size, and the next one is handed over
  // when less than that is left of those before.
  localparam int unsigned RangeBits = 14;
  assign write_room  = 32'd1 << RangeBits;
  assign write_whole = write_room - 32'(write_addr_q[RangeBits-1:0]);
  assign write_bytes = (bytes_left_q > 38'(write_whole)) ? write_whole : bytes_left_q[31:0];
  assign write_range_fire = state_q == StWork && bytes_left_q != '0 && feed_q < 38'(write_room >> 6) && write_range_ready &&
      write_open_q != '1;

  sorter_unload #(
    .KeyBits(KeyBits)
  ) u_unload (
    .clk_i,
    .rst_ni   (rst_ni && rest_n_q),
    .kind_i,
    .indexes_i(wants_indexes),
    .row_i    (merged),
    .last_i   (out_last && merged_q + 1'b1 == rows),
    .valid_i  (out_valid),
    .ready_o  (out_taken),
    .start_i  (pass_begin),
    .beats_i  ((bytes + 38'd63) >> 6),
    .data_o   (write_data),
    .valid_o  (unloaded_valid),
    .ready_i  (write_fire)
  );
  // The last row may not be full.
  logic [35:0] merged_before_q;  // records of the passes before this one
  always_ff @(posedge clk_i) begin
    if (start_i) merged_before_q <= '0;
    else if (pass_begin && !first_pass) merged_before_q <= merged_before_q + 36'(count_i);
  end
  assign progress_o = merged_before_q + ((merged_q == rows) ? 36'(count_i) : 36'({merged_q, 3'd0}));

  assign merged_all = merged_q == rows && !unloaded_valid && bytes_left_q == '0 && feed_q == '0 && reads_rest;

  // Beats that the ranges handed over still lack; after an error or a stop they come without data.
  assign write_valid = feed_q != '0 && (unloaded_valid || abort);
  assign write_fire = write_valid && write_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bytes_left_q <= '0;
      feed_q <= '0;
      write_open_q <= '0;
      write_error_q <= 1'b0;
    end else begin
      if (pass_begin) bytes_left_q <= bytes;
      else if (write_range_fire) bytes_left_q <= bytes_left_q - 38'(write_bytes);
      else if (abort) bytes_left_q <= '0;
      feed_q <= feed_q + (write_range_fire ? (38'(write_bytes) + 38'd63) >> 6 : '0) - 38'(write_fire);
      write_open_q <= write_open_q + 4'(write_range_fire) - 4'(write_done_valid);
      if (start_i) write_error_q <= 1'b0;
      else if (write_done_valid && write_done.write_error) write_error_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (pass_begin) write_addr_q <= to;
    else if (write_range_fire) write_addr_q <= write_addr_q + 64'(write_bytes);
  end
  assign writes_rest = write_open_q == '0 && feed_q == '0;
  assign errors_o = '{write_error: write_error_q, read_error: error_q};

  ns_dma_write #(
    .BurstBytes(BurstBytes),
    .Bursts    (1 << IdBits),
    .Ranges    (8),
    .Depth     (4 * BurstBytes / 64)
  ) u_write (
    .clk_i,
    .rst_ni,
    .addr_i      (write_addr_q),
    .bytes_i     (write_bytes),
    .valid_i     (write_range_fire),
    .ready_o     (write_range_ready),
    .data_i      (write_data),
    .error_i     (abort),
    .data_valid_i(write_valid),
    .data_ready_o(write_ready),
    .done_o      (write_done),
    .done_valid_o(write_done_valid),
    .done_ready_i(1'b1),
    .m_axi       (bus)
  );

  ns_axi_connect u_link (
    .s_axi(bus),
    .m_axi
  );

  logic unused;
  assign unused = ^{loaded_last, tree_busy, leaves_busy, cascade_busy, write_done.read_error};

  `NS_ASSERT(starts_at_rest, !start_i || state_q == StIdle)
  `NS_ASSERT(runs_are_rows, !run_fire || !run_whole || run_last)

endmodule
