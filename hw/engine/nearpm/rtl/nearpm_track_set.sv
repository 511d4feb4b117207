// SPDX-License-Identifier: Apache-2.0

// The lines of each tracked pool that have a record in the pool's present epoch.
//
// Each pool has a hash table in a part of one memory: a place holds a line and the number of the
// epoch in which it was added. An entry of another epoch is empty, so a new epoch empties the table
// at once. Collisions are resolved by linear probing, a place per cycle. Nothing is removed within
// an epoch.
//
// A pool's part is cleared, a place per cycle, when the pool is mapped or restored, and when the
// numbers of its epochs start again. Until then the pool is not ready.
`include "ns_assert.svh"

module nearpm_track_set
  import nearpm_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  /// A part is being cleared. From registers.
  output logic             busy_o,

  /// Pools to be cleared, and pools that begin an epoch.
  input  logic [Pools-1:0] clear_i,
  input  logic [Pools-1:0] epoch_i,
  /// Pools that are cleared; pools with the largest number of lines. From registers.
  output logic [Pools-1:0] ready_o,
  output logic [Pools-1:0] full_o,

  /// Starts the search for a line of a ready pool. From the next cycle on exactly one of `found_o`
  /// and `missing_o` rises in one of the cycles; it does so in the last one.
  input  logic             search_i,
  input  pool_number_t     pool_i,
  input  line_t            line_i,
  output logic             found_o,
  output logic             missing_o,
  /// Adds the line that was missing in the last search.
  input  logic             add_i
);

  localparam int unsigned Places = 1 << SetBits;
  localparam int unsigned PoolBits = LogBits - ThreadBits;

  typedef logic [SetBits-1:0] place_t;
  typedef logic [EpochBits-1:0] epoch_t;
  typedef logic [PoolBits+SetBits-1:0] address_t;

  /// Epoch 0 is none.
  typedef struct packed {
    epoch_t epoch;
    line_t  line;
  } entry_t;

  /// Folds the number of a line.
  function automatic place_t hash(line_t line);
    hash = '0;
    for (int unsigned b = 0; b < LineBits; b += SetBits) hash ^= place_t'(line >> b);
  endfunction

  // ---------------------------------------------------------------- epochs

  epoch_t [Pools-1:0] epoch_q;
  logic [Pools-1:0][SetBits-1:0] count_q;
  logic [Pools-1:0] pending_q, wrap;  // pending_q: to be cleared
  pool_number_t pool_q;

  for (genvar p = 0; p < Pools; p++) begin : gen_pool
    assign wrap[p] = epoch_i[p] && epoch_q[p] == '1;
    assign full_o[p] = count_q[p] == place_t'(SetLines);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        epoch_q[p] <= epoch_t'(1);
        count_q[p] <= '0;
      end else begin
        if (epoch_i[p]) epoch_q[p] <= wrap[p] ? epoch_t'(1) : epoch_q[p] + 1'b1;
        if (epoch_i[p] || clear_i[p]) count_q[p] <= '0;
        else if (add_i && pool_q == pool_number_t'(p)) count_q[p] <= count_q[p] + 1'b1;
      end
    end
  end
  assign ready_o = ~pending_q;

  // ---------------------------------------------------------------- search

  entry_t entry;
  line_t line_q;
  place_t place, place_q;  // place_q: the place that was read
  logic searching_q, empty;

  assign place = search_i ? hash(line_i) : place_q + 1'b1;
  assign empty = entry.epoch != epoch_q[pool_q];
  assign found_o = searching_q && !empty && entry.line == line_q;
  assign missing_o = searching_q && empty;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) searching_q <= 1'b0;
    else searching_q <= search_i || (searching_q && !found_o && !missing_o);
  end

  always_ff @(posedge clk_i) begin
    if (search_i) begin
      pool_q <= pool_i;
      line_q <= line_i;
    end
    if (search_i || (searching_q && !found_o && !missing_o)) place_q <= place;
  end

  // ---------------------------------------------------------------- memory

  logic clear_step;
  pool_number_t clear_pool_q, next_pool;
  place_t clear_place_q;
  logic clearing_q, next_valid;

  // A line that is added takes the write port for a cycle.
  assign clear_step = clearing_q && !add_i;

  ns_ram_1r1w #(
    .Width($bits(entry_t)),
    .Depth(Pools * Places),
    .Style("uram")
  ) u_entries (
    .clk_i,
    .we_i   (add_i || clearing_q),
    .waddr_i(add_i ? {pool_q, place_q} : {clear_pool_q, clear_place_q}),
    .wdata_i(add_i ? {epoch_q[pool_q], line_q} : '0),
    .re_i   (search_i || searching_q),
    .raddr_i(address_t'({search_i ? pool_i : pool_q, place})),
    .rdata_o(entry)
  );

  // ---------------------------------------------------------------- clearing

  always_comb begin
    next_valid = pending_q != '0;
    next_pool  = '0;
    for (int p = Pools - 1; p >= 0; p--) if (pending_q[p]) next_pool = pool_number_t'(p);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pending_q <= '0;
      clearing_q <= 1'b0;
      clear_place_q <= '0;
    end else begin
      if (!clearing_q) begin
        clearing_q <= next_valid;
        clear_place_q <= '0;
      end else if (clear_step) begin
        clear_place_q <= clear_place_q + 1'b1;
        if (clear_place_q == '1) begin
          clearing_q <= 1'b0;
          pending_q[clear_pool_q] <= 1'b0;
        end
      end
      for (int unsigned p = 0; p < Pools; p++) if (clear_i[p] || wrap[p]) pending_q[p] <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) if (!clearing_q) clear_pool_q <= next_pool;

  assign busy_o = pending_q != '0 || clearing_q;

  if (SetLines >= Places) begin : gen_bad_lines
    $error("nearpm_track_set: SetLines must be below 2^SetBits");
  end

  `NS_ASSERT(searches_ready_pool, !search_i || ready_o[pool_i])
  `NS_ASSERT(adds_to_ready_pool, !add_i || (ready_o[pool_q] && !full_o[pool_q]))

endmodule
