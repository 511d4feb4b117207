// SPDX-License-Identifier: Apache-2.0

// Sorts one column of keys in memory, in passes over it.
//
//   pass 1: keys ─► sorter_load ─► sorter_cascade ─► sorter_leaves ─► sorter_tree ─► sorter_unload
//   others: runs ─► sorter_load ───────────────────► sorter_leaves ─► sorter_tree ─► sorter_unload
//
// Pass 1 writes sorted chunks. A chunk is what the leaves hold, and while one chunk is merged the
// next one is loaded. Each further pass merges as many runs into one as there are leaves, or two in
// pairs mode. Every record carries its index, so no two records are equal, and equal keys keep
// their order.
`include "ns_assert.svh"

module sorter_core
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
  import sorter_pkg::*;
#(
  /// Width of the longest key in bits: 32, 64 or 128.
  parameter int unsigned KeyBits    = 64,
  /// Runs merged at a time, a power of two.
  parameter int unsigned Leaves     = 64,
  /// Rows in a run that the cascade builds, a power of two. A row is 8 records.
  parameter int unsigned RunRows    = 256,
  /// Size of a burst in bytes, and ID bits of the master, at most 4.
  parameter int unsigned BurstBytes = 4096,
  parameter int unsigned IdBits     = 4,
  /// Channels of the storage, a power of two, and their granule. Reads are distributed over the
  /// channels.
  parameter int unsigned NumChannels = 2,
  parameter int unsigned Granule    = 4096
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// The block is not idle. Driven by registers.
  output logic        busy_o,
  /// Starts a job, only while idle. The arguments that follow are valid and stable until it ends.
  input  logic        start_i,
  input  logic [63:0] src_i,
  input  logic [63:0] dst_i,
  input  logic [63:0] tmp_i,
  /// Number of keys, 1 to 2**31.
  input  logic [31:0] count_i,
  input  kind_t       kind_i,
  /// The last pass writes indexes only.
  input  logic        indexes_i,
  /// Passes after the first one merge two runs at a time, for comparison. Else they merge one run
  /// per leaf.
  input  logic        pairs_i,
  /// End the job early.
  input  logic        stop_i,
  /// The job ends, for one cycle, with these results.
  output logic        done_o,
  output logic        stopped_o,
  output dma_done_t   errors_o,
  /// Number of passes.
  output logic [3:0]  passes_o,
  /// Records merged in all passes. Stable from the end of a job until the next start.
  output logic [35:0] progress_o,
  /// Memory port. Addresses are those of the PM window.
  ns_axi_if.master    m_axi
);

  localparam int unsigned Width = KeyBits + IndexBits;
  localparam int unsigned LeafBits = unsigned'($clog2(Leaves));
  localparam int unsigned RunBits = unsigned'($clog2(RunRows));
  localparam int unsigned RowBits = 29;  // bits of a row count
  // log2 of the rows in a chunk.
  localparam int unsigned ChunkBits = LeafBits + RunBits;
  // Size of a read request: 4 KiB, but not more than a run.
  localparam int unsigned RequestBytes = 4096;
  localparam int unsigned SizeBits = 11;
  typedef logic [RowBits-1:0] rows_t;

  typedef enum logic [2:0] {
    StIdle,
    StPass,   // starts a pass
    StRun,
    StWrite,  // waits for the writes of the pass
    StAbort,  // waits for accesses in flight
    StFlush   // discards what an error or a stop has left in the pipeline
  } state_e;

  state_e state_q;
  logic [3:0] pass_q;
  rows_t rows, run_rows_q;  // of all records; of a run that this pass reads, from the second pass
  logic first_pass, last_pass, to_dst_q, stop_q, error_q;
  logic [63:0] pass_src, pass_dst;
  logic pass_begin, flush;
  logic abort, writes_idle, reads_idle, pass_merged, merge_done, merge_half_q;
  logic read_error, read_last, read_valid, read_ready;
  logic write_error_q;  // of this job

  assign rows = rows_t'((33'(count_i) + 33'd7) >> 3);
  assign first_pass = pass_q == '0;
  assign pass_begin = state_q == StPass;
  assign flush = state_q == StFlush;
  assign abort = state_q == StAbort;

  // Each pass multiplies the length of the runs by the number of leaves, or by two. The last pass
  // writes to the target, so the first pass does so if the number of passes is odd.
  function automatic logic [3:0] passes(rows_t n, logic pairs);
    passes = 4'd1;
    for (int unsigned p = 0; ChunkBits + p < RowBits; p++) begin
      if (pairs && 33'(n) > (33'd1 << (ChunkBits + p))) passes = 4'(p + 2);
      if (!pairs && ChunkBits + p * LeafBits < RowBits && 33'(n) > (33'd1 << (ChunkBits + p * LeafBits)))
        passes = 4'(p + 2);
    end
  endfunction

  // log2 of the runs merged at a time.
  localparam int unsigned GroupBits = unsigned'($clog2(LeafBits + 1));
  logic [GroupBits-1:0] group_bits;
  assign group_bits = pairs_i ? GroupBits'(1) : GroupBits'(LeafBits);

  logic [3:0] passes_q;
  assign last_pass = pass_q + 1'b1 == passes_q;
  assign passes_o = passes_q;
  assign pass_src = first_pass ? src_i : to_dst_q ? tmp_i : dst_i;
  assign pass_dst = to_dst_q ? dst_i : tmp_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      stop_q    <= 1'b0;
      error_q   <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StPass;
        StPass:  state_q <= StRun;
        StRun: begin
          if (stop_q || error_q || write_error_q) state_q <= StAbort;
          else if (pass_merged) state_q <= StWrite;
        end
        StWrite:
        if (writes_idle) state_q <= (last_pass || stop_q || write_error_q) ? StFlush : StPass;
        StAbort: if (writes_idle && reads_idle) state_q <= StFlush;
        default: state_q <= StIdle;
      endcase
      if (start_i) stop_q <= 1'b0;
      else if (stop_i && (state_q == StPass || state_q == StRun || (state_q == StWrite && !last_pass)))
        stop_q <= 1'b1;
      if (start_i) error_q <= 1'b0;
      else if (read_valid && read_ready && read_error) error_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      pass_q   <= '0;
      passes_q <= passes(rows_t'((33'(count_i) + 33'd7) >> 3), pairs_i);
      run_rows_q <= rows_t'(1) << ChunkBits;
    end else if (state_q == StWrite && writes_idle) begin
      pass_q <= pass_q + 1'b1;
      if (!first_pass) run_rows_q <= run_rows_q << group_bits;
    end
  end
  assign to_dst_q = passes_q[0] ^ pass_q[0];

  assign done_o = flush;
  assign stopped_o = stop_q && !error_q;
  assign busy_o = state_q != StIdle;

  // ---------------------------------------------------------------- reads

  logic [63:0] range_addr;
  logic [31:0] range_bytes;
  logic [SizeBits-1:0] range_size;
  logic [LeafBits-1:0] range_leaf;
  logic range_valid, range_ready, range_fire, tags_ready, dma_ready;
  logic [511:0] read_data;
  logic [6:0] reads_in_flight_q;  // in ranges

  // Pass 1 reads the keys in order.
  logic [31:0] keys_left_q, request_keys;
  logic [63:0] keys_addr_q;
  logic [1:0] width;
  assign width = kind_i.width;
  assign request_keys = (keys_left_q > 32'(RequestBytes >> 2) >> width) ? 32'(RequestBytes >> 2) >> width : keys_left_q;

  // Other passes request as much of each leaf's run as its ring has room for.
  localparam int unsigned MaxRows = (RunRows < RequestBytes / 64) ? RunRows : RequestBytes / 64;
  rows_t [Leaves-1:0] next_row_q, unrequested_q;
  logic [Leaves-1:0][RunBits+1:0] ring_used_q;
  logic [Leaves-1:0] request, preferred, gnt, ring_release;
  logic [LeafBits-1:0] requester;
  logic gnt_valid;
  rows_t max_rows, request_rows, group_first_q;  // first row of the current group of runs
  logic group_begin;
  logic [31:0] records_left;

  assign max_rows = rows_t'(MaxRows) < (rows_t'(RequestBytes / 64) >> width) ? rows_t'(MaxRows) : rows_t'(RequestBytes / 64) >> width;
  assign request_rows = (unrequested_q[requester] < max_rows) ? unrequested_q[requester] : max_rows;

  ns_rr_arbiter #(
    .N(Leaves)
  ) u_requesters (
    .clk_i,
    .rst_ni,
    .flush_i (flush),
    .req_i  ((preferred != '0) ? preferred : request),
    .next_i (range_fire),
    .gnt_o  (gnt),
    .idx_o  (requester),
    .valid_o(gnt_valid)
  );

  // Requests for the channel after the last one have priority. Read data arrive in the order of the
  // requests, so two successive requests to one channel would leave the others idle.
  localparam int unsigned GranuleBits = unsigned'($clog2(Granule));
  localparam int unsigned ChannelBits = idx_width(NumChannels);
  logic [ChannelBits-1:0] channel_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) channel_q <= '0;
    else if (range_fire) channel_q <= range_addr[GranuleBits+:ChannelBits] + 1'b1;
  end

  for (genvar l = 0; l < Leaves; l++) begin : gen_request
    rows_t first, left;
    logic [ChannelBits-1:0] channel;
    assign channel = ChannelBits'((pass_src + (64'(next_row_q[l]) << (6 + width))) >> GranuleBits);
    assign preferred[l] = NumChannels > 1 && request[l] && channel == channel_q;
    assign first = group_first_q + (rows_t'(l) * run_rows_q);
    assign left  = (pairs_i && l >= 2) || (64'(group_first_q) + 64'(l) * 64'(run_rows_q) >= 64'(rows)) ? '0 :
        (rows - first < run_rows_q) ? rows - first : run_rows_q;
    assign request[l] = unrequested_q[l] != '0 && ring_used_q[l] <= (RunBits + 2)'(2 * RunRows) - (RunBits + 2)'(max_rows);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        unrequested_q[l] <= '0;
        ring_used_q[l]   <= '0;
      end else if (flush) begin
        unrequested_q[l] <= '0;
        ring_used_q[l]   <= '0;
      end else if (group_begin) begin
        unrequested_q[l] <= left;
        ring_used_q[l]   <= '0;
      end else begin
        if (!first_pass && range_fire && gnt[l])
          unrequested_q[l] <= unrequested_q[l] - request_rows;
        ring_used_q[l] <= ring_used_q[l] + ((!first_pass && range_fire && gnt[l]) ? (RunBits + 2)'(request_rows) : '0) -
            (RunBits + 2)'(!first_pass && ring_release[l]);
      end
    end
    always_ff @(posedge clk_i) begin
      if (group_begin) next_row_q[l] <= first;
      else if (range_fire && gnt[l]) next_row_q[l] <= next_row_q[l] + request_rows;
    end
  end

  assign records_left = count_i - {next_row_q[requester], 3'd0};
  always_comb begin
    if (first_pass) begin
      range_addr  = keys_addr_q;
      range_size  = SizeBits'(request_keys);
      range_bytes = request_keys << (2 + width);
      range_leaf  = '0;
      range_valid = state_q == StRun && keys_left_q != '0;
    end else begin
      range_addr  = pass_src + (64'(next_row_q[requester]) << (6 + width));
      range_size  = (records_left < {request_rows, 3'd0}) ? SizeBits'(records_left) : SizeBits'({request_rows, 3'd0});
      range_bytes = 32'(range_size) << (3 + width);
      range_leaf  = requester;
      range_valid = state_q == StRun && gnt_valid;
    end
  end
  assign range_ready = dma_ready && tags_ready;
  assign range_fire = range_valid && range_ready;

  always_ff @(posedge clk_i) begin
    if (pass_begin) begin
      keys_left_q <= first_pass ? count_i : '0;
      keys_addr_q <= src_i;
    end else if (range_fire && first_pass) begin
      keys_left_q <= keys_left_q - request_keys;
      keys_addr_q <= keys_addr_q + 64'(range_bytes);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reads_in_flight_q <= '0;
    else
      reads_in_flight_q <= reads_in_flight_q + 7'(range_fire) - 7'(read_valid && read_ready && read_last);
  end
  assign reads_idle = reads_in_flight_q == '0;

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
    .ready_i(read_ready),
    .m_axi  (bus)
  );

  logic [SizeBits-1:0] size;
  logic [LeafBits-1:0] tag;
  logic tag_valid, tag_ready;
  ns_fifo #(
    .Width(SizeBits + LeafBits),
    .Depth(64),
    .Style("lutram")
  ) u_tags (
    .clk_i,
    .rst_ni,
    .flush_i    (flush),
    .in_valid_i (range_fire),
    .in_ready_o (tags_ready),
    .in_data_i  ({range_size, range_leaf}),
    .out_valid_o(tag_valid),
    .out_ready_i(tag_ready),
    .out_data_o ({size, tag}),
    .count_o    ()
  );

  // ---------------------------------------------------------------- rows

  logic [Lanes-1:0][Width-1:0] loaded, run_row, leaf_row, merged;
  logic [LeafBits-1:0] loaded_tag;
  logic loaded_last, loaded_valid, loaded_ready, load_ready;

  sorter_load #(
    .KeyBits (KeyBits),
    .TagBits (LeafBits),
    .SizeBits(SizeBits)
  ) u_load (
    .clk_i,
    .rst_ni,
    .flush_i      (flush),
    .kind_i,
    .keys_i       (first_pass),
    .size_i       (size),
    .tag_i        (tag),
    .range_valid_i(tag_valid),
    .range_ready_o(tag_ready),
    .data_i       (read_data),
    .valid_i      (read_valid && !abort),
    .ready_o      (load_ready),
    .row_o        (loaded),
    .tag_o        (loaded_tag),
    .last_o       (loaded_last),
    .valid_o      (loaded_valid),
    .ready_i      (loaded_ready)
  );
  assign read_ready = abort || load_ready;

  // Pass 1 sends rows to the cascade, and marks the last row of a chunk.
  logic cascade_ready, chunk_end, run_valid, run_ready, run_last, run_end, cascade_busy;
  rows_t rows_loaded_q;  // of this pass

  assign chunk_end = rows_loaded_q[ChunkBits-1:0] == '1 || rows_loaded_q + 1'b1 == rows;
  assign loaded_ready = first_pass ? cascade_ready : 1'b1;
  always_ff @(posedge clk_i) begin
    if (pass_begin) rows_loaded_q <= '0;
    else if (loaded_valid && loaded_ready) rows_loaded_q <= rows_loaded_q + 1'b1;
  end

  sorter_cascade #(
    .Width  (Width),
    .RunRows(RunRows)
  ) u_cascade (
    .clk_i,
    .rst_ni,
    .flush_i    (flush),
    .busy_o     (cascade_busy),
    .in_valid_i (loaded_valid && first_pass),
    .in_ready_o (cascade_ready),
    .in_end_i   (chunk_end),
    .in_row_i   (loaded),
    .out_valid_o(run_valid),
    .out_ready_i(run_ready),
    .out_last_o (run_last),
    .out_end_o  (run_end),
    .out_row_o  (run_row)
  );

  // The runs of a chunk fill one half of the leaves, those of the next chunk the other half.
  typedef struct packed {
    logic              half;
    logic [LeafBits:0] full_leaves;
    logic [RunBits:0]  partial_rows;
  } chunk_t;

  logic half_q;
  logic [1:0] full_q;
  logic [LeafBits-1:0] leaf_q;
  logic [RunBits-1:0] row_q;
  logic chunk_ready, chunk_valid, chunk_pop, run_fire, run_full;
  chunk_t chunk, built_chunk;

  assign run_ready = !full_q[half_q] && chunk_ready;
  assign run_fire = run_valid && run_ready;
  assign run_full = row_q == '1;
  assign built_chunk = '{
          half: half_q,
          full_leaves: (LeafBits + 1)'(leaf_q) + (LeafBits + 1)'(run_full),
          partial_rows: run_full ? '0 : (RunBits + 1)'(row_q) + 1'b1
      };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      half_q <= 1'b0;
      full_q <= '0;
      leaf_q <= '0;
      row_q  <= '0;
    end else if (flush) begin
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
      if (merge_done && first_pass) full_q[merge_half_q] <= 1'b0;
    end
  end

  ns_fifo #(
    .Width($bits(chunk_t)),
    .Depth(2)
  ) u_chunks (
    .clk_i,
    .rst_ni,
    .flush_i    (flush),
    .in_valid_i (run_fire && run_end),
    .in_ready_o (chunk_ready),
    .in_data_i  (built_chunk),
    .out_valid_o(chunk_valid),
    .out_ready_i(chunk_pop),
    .out_data_o (chunk),
    .count_o    ()
  );

  // Other passes send rows to the ring of their leaf.
  logic [Leaves-1:0][RunBits:0] ring_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < Leaves; l++) begin
      if (group_begin) ring_q[l] <= '0;
      else if (loaded_valid && loaded_tag == LeafBits'(l)) ring_q[l] <= ring_q[l] + 1'b1;
    end
  end

  // ---------------------------------------------------------------- merges

  // Merges run one after another. A merge covers a chunk or a group of runs.
  typedef enum logic [1:0] {
    MgIdle,
    MgBegin,
    MgRun,
    MgClear
  } merge_e;

  merge_e merge_q;
  logic merge_begin, tree_busy, leaves_busy, merge_available, out_valid, out_ready, out_last;
  rows_t rows_merged_q;  // of this pass
  logic [LeafBits:0] full_leaves, full_leaves_q;
  logic [31:0] partial_rows, partial_rows_q;
  rows_t group_rows;
  logic [Leaves-1:0] leaf_room, leaf_reserve, leaf_demand;
  logic leaf_valid, leaf_last, leaf_empty;
  logic [LeafBits-1:0] leaf_number;

  assign merge_available = first_pass ? chunk_valid : group_first_q < rows;
  assign merge_begin = merge_q == MgBegin;
  assign group_begin = merge_begin && !first_pass;
  assign chunk_pop = merge_begin && first_pass;
  assign merge_done = merge_q == MgClear;

  // Number of full runs in the group, and rows of the run that follows them.
  assign group_rows = rows - group_first_q;
  always_comb begin
    full_leaves  = '0;
    partial_rows = '0;
    for (int unsigned l = 0; l < Leaves; l++) begin
      if ((!pairs_i || l < 2) && 64'(l + 1) * 64'(run_rows_q) <= 64'(group_rows))
        full_leaves = (LeafBits + 1)'(l + 1);
    end
    if (full_leaves != (LeafBits + 1)'(1) << group_bits)
      partial_rows = 32'(group_rows) - 32'(full_leaves) * 32'(run_rows_q);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) merge_q <= MgIdle;
    else if (flush) merge_q <= MgIdle;
    else begin
      unique case (merge_q)
        MgIdle:  if (state_q == StRun && merge_available) merge_q <= MgBegin;
        MgBegin: merge_q <= MgRun;
        MgRun:  if (out_valid && out_ready && out_last) merge_q <= MgClear;
        default: merge_q <= MgIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    full_leaves_q  <= full_leaves;
    partial_rows_q <= partial_rows;
    if (merge_begin) merge_half_q <= chunk.half;
    if (pass_begin) group_first_q <= '0;
    else if (merge_done && !first_pass)
      group_first_q <= (64'(group_first_q) + (64'(run_rows_q) << group_bits) > 64'(rows)) ? rows : group_first_q + (run_rows_q << group_bits);
    if (start_i || pass_begin) rows_merged_q <= '0;
    else if (out_valid && out_ready) rows_merged_q <= rows_merged_q + 1'b1;
  end

  logic write_ring;
  assign write_ring = loaded_valid && !first_pass;

  sorter_leaves #(
    .Width  (Width),
    .Leaves (Leaves),
    .RunRows(RunRows)
  ) u_leaves (
    .clk_i,
    .rst_ni,
    .flush_i       (flush),
    .busy_o        (leaves_busy),
    .start_i       (merge_begin),
    .full_leaves_i (first_pass ? chunk.full_leaves : full_leaves_q),
    .full_rows_i   (first_pass ? 32'(RunRows) : 32'(run_rows_q)),
    .partial_rows_i(first_pass ? 32'(chunk.partial_rows) : partial_rows_q),
    .preloaded_i   (first_pass),
    .half_i        (chunk.half),
    .write_valid_i (write_ring || run_fire),
    .write_leaf_i  (first_pass ? leaf_q : loaded_tag),
    .write_place_i (first_pass ? {half_q, row_q} : ring_q[loaded_tag]),
    .write_row_i   (first_pass ? run_row : loaded),
    .write_ring_i  (!first_pass),
    .release_o     (ring_release),
    .room_i        (leaf_room),
    .demand_i      (leaf_demand),
    .reserve_o     (leaf_reserve),
    .out_valid_o   (leaf_valid),
    .out_leaf_o    (leaf_number),
    .out_last_o    (leaf_last),
    .out_empty_o   (leaf_empty),
    .out_row_o     (leaf_row)
  );

  sorter_tree #(
    .Width (Width),
    .Leaves(Leaves)
  ) u_tree (
    .clk_i,
    .rst_ni,
    .flush_i    (flush),
    .busy_o     (tree_busy),
    .clear_i    (merge_done),
    .room_o     (leaf_room),
    .reserve_i  (leaf_reserve),
    .demand_o   (leaf_demand),
    .in_valid_i (leaf_valid),
    .in_leaf_i  (leaf_number),
    .in_last_i  (leaf_last),
    .in_empty_i (leaf_empty),
    .in_row_i   (leaf_row),
    .out_valid_o(out_valid),
    .out_ready_i(out_ready),
    .out_last_o (out_last),
    .out_row_o  (merged)
  );

  // ---------------------------------------------------------------- writes

  logic [511:0] write_data;
  logic unloaded_valid, write_valid, write_ready, write_fire, write_indexes;
  logic [37:0] bytes, bytes_left_q, beats_due_q;
  logic [63:0] write_addr_q;
  logic [31:0] write_max, write_aligned, write_bytes;
  logic write_range_ready, write_range_fire;
  dma_done_t write_done;
  logic write_done_valid;
  logic [3:0] writes_in_flight_q;

  assign write_indexes = indexes_i && last_pass;
  assign bytes = write_indexes ? 38'(count_i) << 2 : 38'(count_i) << (3 + width);
  // The memory waits for all data of a write range, even after a stop. So ranges are short and end
  // at multiples of their size. The next range is issued when the earlier ones need fewer beats
  // than one range has.
  localparam int unsigned RangeBits = 14;
  assign write_max     = 32'd1 << RangeBits;
  assign write_aligned = write_max - 32'(write_addr_q[RangeBits-1:0]);
  assign write_bytes   = (bytes_left_q > 38'(write_aligned)) ? write_aligned : bytes_left_q[31:0];
  assign write_range_fire = state_q == StRun && bytes_left_q != '0 && beats_due_q < 38'(write_max >> 6) && write_range_ready &&
      writes_in_flight_q != '1;

  sorter_unload #(
    .KeyBits(KeyBits)
  ) u_unload (
    .clk_i,
    .rst_ni,
    .flush_i  (flush),
    .kind_i,
    .indexes_i(write_indexes),
    .row_i    (merged),
    .last_i   (out_last && rows_merged_q + 1'b1 == rows),
    .valid_i  (out_valid),
    .ready_o  (out_ready),
    .start_i  (pass_begin),
    .beats_i  ((bytes + 38'd63) >> 6),
    .data_o   (write_data),
    .valid_o  (unloaded_valid),
    .ready_i  (write_fire)
  );
  // The last row can be partial.
  logic [35:0] records_before_q;  // of earlier passes
  always_ff @(posedge clk_i) begin
    if (start_i) records_before_q <= '0;
    else if (pass_begin && !first_pass) records_before_q <= records_before_q + 36'(count_i);
  end
  assign progress_o = records_before_q + ((rows_merged_q == rows) ? 36'(count_i) : 36'({rows_merged_q, 3'd0}));

  assign pass_merged = rows_merged_q == rows && !unloaded_valid && bytes_left_q == '0 && beats_due_q == '0 && reads_idle;

  // Beats that the issued ranges still need. After an error or a stop they carry no data.
  assign write_valid = beats_due_q != '0 && (unloaded_valid || abort);
  assign write_fire = write_valid && write_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bytes_left_q <= '0;
      beats_due_q <= '0;
      writes_in_flight_q <= '0;
      write_error_q <= 1'b0;
    end else begin
      if (pass_begin) bytes_left_q <= bytes;
      else if (write_range_fire) bytes_left_q <= bytes_left_q - 38'(write_bytes);
      else if (abort) bytes_left_q <= '0;
      beats_due_q <= beats_due_q + (write_range_fire ? (38'(write_bytes) + 38'd63) >> 6 : '0) - 38'(write_fire);
      writes_in_flight_q <= writes_in_flight_q + 4'(write_range_fire) - 4'(write_done_valid);
      if (start_i) write_error_q <= 1'b0;
      else if (write_done_valid && write_done.write_error) write_error_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (pass_begin) write_addr_q <= pass_dst;
    else if (write_range_fire) write_addr_q <= write_addr_q + 64'(write_bytes);
  end
  assign writes_idle = writes_in_flight_q == '0 && beats_due_q == '0;
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

  `NS_ASSERT(start_when_idle, !start_i || state_q == StIdle)
  `NS_ASSERT(full_run_is_marked, !run_fire || !run_full || run_last)

endmodule
