// SPDX-License-Identifier: Apache-2.0

// Contexts of pools and logs, as the commands accepted so far leave them.
//
// Writing a pool closes its logs. An error in a unit closes the log concerned.
`include "ns_assert.svh"

module nearpm_contexts
  import nearpm_pkg::*;
(
  input  logic               clk_i,
  input  logic               rst_ni,

  /// Reads a log: `log_o` follows `read_i` by a cycle and holds. `open_o` and `closed_o` (closed by
  /// an error) are valid at once.
  input  logic               read_i,
  input  logic [LogBits-1:0] index_i,
  output pool_t              pool_o,
  output log_t               log_o,
  output logic               open_o,
  output logic               closed_o,
  /// A pool is mapped. From a register.
  output logic               mapped_o,
  /// Tracked pools; whether one is mapped. From registers.
  output tracked_pool_t [Pools-1:0] tracked_o,
  output logic               tracking_o,
  /// First and last media page of a pool to be mapped. A cycle later: whether another mapped pool
  /// overlaps them.
  input  logic [MediaBits-13:0] first_page_i,
  input  logic [MediaBits-13:0] last_page_i,
  output logic               pool_overlap_o,
  /// Writes the pool and the log at `index_i`.
  input  logic               pool_write_i,
  input  pool_t              pool_i,
  input  logic               log_write_i,
  input  log_t               log_i,

  /// An error closes a log.
  input  logic               close_valid_i,
  input  logic [LogBits-1:0] close_index_i,
  input  logic               close_spoiled_i,

  /// Save: excludes all but the signals below. Lines of the reserved range: pools (0 to 15), then
  /// logs (16 to 143). Data follow a cycle later.
  input  logic               save_i,
  input  logic [7:0]         save_index_i,
  output logic [511:0]       save_data_o,
  input  logic               restore_i,
  input  logic [7:0]         restore_index_i,
  input  logic [511:0]       restore_data_i
);

  localparam int unsigned Logs = Pools * Threads;
  typedef logic [6:0] pair_t;

  logic [Pools-1:0] mapped_q;
  logic [Logs-1:0] open_q, closed_q, spoiled_q;

  pair_t restore_pair;
  log_t [1:0] restored;
  assign restore_pair = pair_t'(restore_index_i - 8'(Pools));
  for (genvar h = 0; h < 2; h++) begin : gen_restored
    assign restored[h] = restore_data_i[256*h+:$bits(log_t)];
  end

  // ---------------------------------------------------------------- pools

  (* ram_style = "distributed" *) pool_t pools[Pools];
  logic [3:0] pool_index, pool_place;
  logic restore_pool, restore_logs;
  pool_t pool, pool_write;

  assign restore_pool = restore_i && restore_index_i < 8'(Pools);
  assign restore_logs = restore_i && restore_index_i >= 8'(Pools);
  assign pool_index = save_i ? save_index_i[3:0] : index_i[7:4];
  assign pool_place = restore_pool ? restore_index_i[3:0] : index_i[7:4];
  assign pool_write = restore_pool ? pool_t'(restore_data_i[$bits(pool_t)-1:0]) : pool_i;

  always_ff @(posedge clk_i) if (pool_write_i || restore_pool) pools[pool_place] <= pool_write;

  // Pages of all pools, compared in parallel.
  typedef logic [MediaBits-13:0] page_t;
  page_t first_q[Pools], last_q[Pools];

  always_ff @(posedge clk_i) begin
    if (pool_write_i || restore_pool) begin
      first_q[pool_place] <= pool_write.media[MediaBits-1:12];
      last_q[pool_place]  <= page_t'(pool_write.media[MediaBits-1:12] + pool_write.bytes[MediaBits-1:12] - 1'b1);
    end
    pool_overlap_o <= 1'b0;
    for (int unsigned p = 0; p < Pools; p++)
    if (mapped_q[p] && index_i[7:4] != 4'(p) && first_q[p] <= last_page_i && first_page_i <= last_q[p])
      pool_overlap_o <= 1'b1;
  end

  // Of a tracked pool: its log, and whether that takes no records.
  logic [Pools-1:0] tracked_q, sealed_q;
  line_t first_log_line_q[Pools], last_log_line_q[Pools];
  logic [MediaBits-1:0] logs_at;

  assign logs_at = pool_write.media + pool_write.logs;

  always_ff @(posedge clk_i) begin
    if (pool_write_i || restore_pool) begin
      tracked_q[pool_place] <= pool_write.tracked[0];
      first_log_line_q[pool_place] <= line_t'(logs_at >> 6);
      last_log_line_q[pool_place] <= line_t'((logs_at + pool_write.log_bytes - 1'b1) >> 6);
    end
    if (log_write_i && index_i[3:0] == '0)
      sealed_q[index_i[7:4]] <= log_i.committed || log_i.pending;
    if (restore_logs && restore_pair[2:0] == '0)
      sealed_q[restore_pair[6:3]] <= restored[0].committed || restored[0].pending;
  end

  always_comb begin
    for (int unsigned p = 0; p < Pools; p++)
    tracked_o[p] = '{
        recorded: mapped_q[p] && tracked_q[p] && open_q[p*Threads] && !sealed_q[p],
        first_page: first_q[p],
        last_page: last_q[p],
        first_log_line: first_log_line_q[p],
        last_log_line: last_log_line_q[p]
    };
  end
  assign tracking_o = (mapped_q & tracked_q) != '0;

  always_comb begin
    pool = pools[pool_index];
    pool.mapped = mapped_q[pool_index];
  end
  assign pool_o = pool;

  // ---------------------------------------------------------------- logs, even and odd

  pair_t pair, save_pair;
  log_t [1:0] logs;
  logic [1:0] open_pair_q, closed_pair_q, spoiled_pair_q;
  logic half_q;

  assign save_pair = pair_t'(save_index_i - 8'(Pools));
  assign pair = save_i ? save_pair : index_i[7:1];

  for (genvar h = 0; h < 2; h++) begin : gen_half
    ns_ram_1r1w #(
      .Width($bits(log_t)),
      .Depth(Logs / 2),
      .Style("bram")
    ) u_logs (
      .clk_i,
      .we_i   (restore_logs || (log_write_i && index_i[0] == 1'(h))),
      .waddr_i(restore_logs ? restore_pair : index_i[7:1]),
      .wdata_i(restore_logs ? restore_data_i[256*h+:$bits(log_t)] : log_i),
      .re_i   (read_i || save_i),
      .raddr_i(pair),
      .rdata_o(logs[h])
    );
  end

  assign open_o   = open_q[index_i];
  assign closed_o = closed_q[index_i];
  assign mapped_o = mapped_q != '0;
  always_comb begin
    log_o = logs[half_q];
    log_o.open = open_q[index_i];
    log_o.closed = closed_q[index_i];
    log_o.spoiled = spoiled_q[index_i];
  end

  // ---------------------------------------------------------------- state with a reset

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mapped_q <= '0;
      open_q   <= '0;
      closed_q <= '0;
      spoiled_q <= '0;
    end else begin
      if (log_write_i && log_i.open) begin
        open_q[index_i]   <= 1'b1;
        closed_q[index_i] <= 1'b0;
        spoiled_q[index_i] <= 1'b0;
      end
      if (close_valid_i && !(log_write_i && !open_o && close_index_i == index_i)) begin
        open_q[close_index_i]   <= 1'b0;
        closed_q[close_index_i] <= 1'b1;
        if (close_spoiled_i) spoiled_q[close_index_i] <= 1'b1;
      end
      if (pool_write_i) begin
        mapped_q[index_i[7:4]] <= pool_i.mapped;
        open_q[{index_i[7:4], 4'd0}+:Threads] <= '0;
        closed_q[{index_i[7:4], 4'd0}+:Threads] <= '0;
        spoiled_q[{index_i[7:4], 4'd0}+:Threads] <= '0;
      end
      if (restore_pool) mapped_q[restore_index_i[3:0]] <= pool_write.mapped;
      if (restore_logs) begin
        open_q[{restore_pair, 1'b0}+:2]   <= {restored[1].open, restored[0].open};
        closed_q[{restore_pair, 1'b0}+:2] <= {restored[1].closed, restored[0].closed};
        spoiled_q[{restore_pair, 1'b0}+:2] <= {restored[1].spoiled, restored[0].spoiled};
      end
    end
  end

  // ---------------------------------------------------------------- save

  logic save_pools_q;
  pool_t save_pool_q;

  always_ff @(posedge clk_i) begin
    half_q <= index_i[0];
    save_pools_q <= save_index_i < 8'(Pools);
    save_pool_q <= pool;
    open_pair_q <= open_q[{save_pair, 1'b0}+:2];
    closed_pair_q <= closed_q[{save_pair, 1'b0}+:2];
    spoiled_pair_q <= spoiled_q[{save_pair, 1'b0}+:2];
  end

  log_t [1:0] saved;

  always_comb begin
    save_data_o = '0;
    saved = '0;
    if (save_pools_q) save_data_o = 512'(save_pool_q);
    else
      for (int unsigned h = 0; h < 2; h++) begin
        saved[h] = logs[h];
        saved[h].open = open_pair_q[h];
        saved[h].closed = closed_pair_q[h];
        saved[h].spoiled = spoiled_pair_q[h];
        save_data_o[256*h+:$bits(log_t)] = saved[h];
      end
  end

  logic unused;
  assign unused = ^restore_data_i;

  `NS_ASSERT(written_while_running, !save_i || !(pool_write_i || log_write_i))

endmodule
