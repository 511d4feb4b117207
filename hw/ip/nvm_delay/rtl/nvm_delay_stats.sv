// SPDX-License-Identifier: Apache-2.0

// Counters of one direction, with an atomic snapshot.
//
// Bucket b of the histogram holds latencies of b cycles for b < 4, then four buckets per octave: b
// = 4*(e-1) + m for latencies in [2**e * (4+m)/4, 2**e * (5+m)/4). The last bucket also holds all
// longer latencies.
//
// Events are counted in narrow counters: those of the histogram in one of two banks of LUT RAM, the
// others in registers. A sweep exchanges the banks in one cycle and then adds the other bank to the
// totals, word by word. Totals are kept in block RAM, beside the snapshot that software reads. A
// sweep runs for each snapshot and clear, and whenever the narrow counters are half full. Two
// directions with connected `full_o` and `full_i` sweep together, so both snapshots show the same
// moment. `settled_o` is 0 from a command to the end of its sweep.
//
// Commands during a sweep wait for its end and are merged; software cannot observe the state
// between them.
`include "ns_assert.svh"

module nvm_delay_stats
  import nvm_delay_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  /// Set-up after reset: bucket `init_index_i` is cleared; nothing is counted meanwhile.
  input  logic        init_i,
  /// See init_i.
  input  logic [5:0]  init_index_i,
  /// A beat passes the slave port.
  input  logic        beat_i,
  /// A transaction ends there; no more often than beats pass, but for a few hundred.
  input  logic        done_i,
  /// Cycles since its address passed there.
  input  cycle_t      latency_i,
  /// Its response was offered after its deadline.
  input  logic        late_i,
  /// Take a snapshot.
  input  logic        snapshot_i,
  /// Clear the counters.
  input  logic        clear_i,
  /// The narrow counters are half full.
  output logic        full_o,
  /// The narrow counters of the other direction are half full.
  input  logic        full_i,
  /// The snapshot is complete.
  output logic        settled_o,
  /// Read a word of the snapshot.
  input  logic        read_i,
  /// 0: scalars; 1: histogram.
  input  logic        read_bucket_i,
  /// Index of the word.
  input  logic [5:0]  read_index_i,
  /// Its value, one cycle later.
  output logic [31:0] read_data_o,
  /// Events wait to be counted.
  output logic        busy_o
);

  localparam int unsigned BucketBits = $clog2(Buckets);
  localparam int unsigned CountBits = 13;  // of a narrow counter; a sweep starts at half of that
  localparam int unsigned SumBits = CountBits + CycleWidth;

  typedef logic [CountBits-1:0] count_t;

  function automatic logic [BucketBits-1:0] bucket_of(cycle_t latency);
    logic [5:0] octave;
    bucket_of = BucketBits'(latency);
    for (int unsigned e = 2; e < 17; e++) begin
      octave = 6'(e - 1);
      if (latency[e]) bucket_of = BucketBits'({octave, latency[e-1-:2]});
    end
    if (latency[CycleWidth-1:17] != '0) bucket_of = '1;
  endfunction

  // Two register stages ahead of the counters; the second one adds the bucket.
  logic in_beat_q, in_done_q, in_late_q, beat_q, done_q, late_q, new_min, new_max;
  cycle_t in_latency_q, latency_q;
  logic [BucketBits-1:0] bucket_q;

  // Commands: clear, snapshot, clear, in this order. The cycle after `sweep_start` is the sweep's
  // moment: from it on the other bank counts, and the counters in registers restart.
  logic clear_before_q, snapshot_q, clear_after_q;
  logic sweep_q, sweep_start, moment_q;

  assign sweep_start = !sweep_q && !init_i && (clear_before_q || snapshot_q || clear_after_q || full_o || full_i);
  assign settled_o = !(clear_before_q || snapshot_q || clear_after_q || sweep_q || init_i);
  assign busy_o = in_beat_q || in_done_q || beat_q || done_q || !settled_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_beat_q <= 1'b0;
      in_done_q <= 1'b0;
      beat_q <= 1'b0;
      done_q <= 1'b0;
      moment_q <= 1'b0;
      clear_before_q <= 1'b1;  // block RAM is not reset
      snapshot_q <= 1'b1;
      clear_after_q <= 1'b0;
    end else begin
      in_beat_q <= beat_i;
      in_done_q <= done_i;
      beat_q <= in_beat_q;
      done_q <= in_done_q;
      moment_q <= sweep_start;
      if (snapshot_i) begin
        clear_before_q <= !sweep_start && (clear_before_q || clear_after_q);
        snapshot_q <= 1'b1;
        clear_after_q <= clear_i;
      end else begin
        clear_before_q <= !sweep_start && clear_before_q || (clear_i && (sweep_start || !snapshot_q));
        snapshot_q <= !sweep_start && snapshot_q;
        clear_after_q <= !sweep_start && (clear_after_q || (clear_i && snapshot_q));
      end
    end
  end

  // Narrow counters, and their values when the sweep started.
  (* ram_style = "distributed" *) count_t counts0[Buckets];
  (* ram_style = "distributed" *) count_t counts1[Buckets];
  logic bank_q;  // the active bank
  count_t beats_q, lates_q, swept_beats_q, swept_lates_q;
  logic [SumBits-1:0] sum_q, swept_sum_q;
  cycle_t min_q, max_q, swept_min_q, swept_max_q;
  logic
      totals_zero_q,
      copy_totals_q,
      clear_totals_q;  // the sweep: totals count as 0; copy them; then clear them
  logic clear_live;

  assign full_o = beats_q[CountBits-1];
  assign clear_live = moment_q && (totals_zero_q || clear_totals_q);

  always_ff @(posedge clk_i) begin
    if (done_i) begin
      in_latency_q <= latency_i;
      in_late_q <= late_i;
    end
    if (in_done_q) begin
      latency_q <= in_latency_q;
      late_q <= in_late_q;
      bucket_q <= bucket_of(in_latency_q);
    end
  end

  always_comb begin
    new_min = 1'b0;
    new_max = 1'b0;
    if (done_q) begin
      new_min = latency_q < min_q;
      new_max = latency_q > max_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      beats_q <= '0;
      lates_q <= '0;
      sum_q <= '0;
      min_q <= '1;
      max_q <= '0;
      bank_q <= 1'b0;
    end else begin
      if (moment_q || beat_q) beats_q <= (moment_q ? '0 : beats_q) + count_t'(beat_q);
      if (moment_q || done_q) begin
        lates_q <= (moment_q ? '0 : lates_q) + count_t'(done_q && late_q);
        sum_q <= (moment_q ? '0 : sum_q) + (done_q ? SumBits'(latency_q) : '0);
        if (clear_live && !done_q) begin
          min_q <= '1;
          max_q <= '0;
        end else begin
          if (clear_live || new_min) min_q <= latency_q;
          if (clear_live || new_max) max_q <= latency_q;
        end
      end
      if (sweep_start) bank_q <= !bank_q;
    end
  end

  // Sweep: four cycles a word; words from Buckets on are the scalars. Phase 0 reads a total, 1 adds
  // to it, 2 writes it, 3 writes its copy.
  localparam logic [6:0] Lates = 7'd68, SumLow = 7'd70, SumHigh = 7'd71, Min = 7'd72, Max = 7'd73;
  localparam logic [6:0] Transactions = 7'd64, Beats = 7'd66;
  localparam logic [6:0] Last = 7'd95;  // words without a counter read as 0
  logic [6:0] word_q;
  logic [1:0] phase_q;
  logic is_bucket, is_low;
  count_t swept_count, transactions_q, bucket_count;
  logic [31:0] delta, total_read;
  logic [32:0] total_q;
  logic ram_we;

  assign is_bucket = !word_q[6];
  assign bucket_count = bank_q ? counts1[bucket_q] : counts0[bucket_q];
  assign swept_count = bank_q ? counts0[word_q[5:0]] : counts1[word_q[5:0]];

  always_comb begin
    delta = '0;
    is_low = 1'b1;
    if (sweep_q) begin
      if (is_bucket) begin
        delta = 32'(swept_count);
      end else begin
        unique case (word_q)
          Transactions: delta = 32'(transactions_q);
          Beats: delta = 32'(swept_beats_q);
          Lates: delta = 32'(swept_lates_q);
          SumLow: delta = swept_sum_q[31:0];
          SumHigh: delta = 32'(swept_sum_q[SumBits-1:32]);
          Min: delta = {{(32 - CycleWidth) {&swept_min_q}}, swept_min_q};  // all ones if there was none
          Max: delta = 32'(swept_max_q);
          default: delta = '0;
        endcase
        is_low = !word_q[0] || word_q == Max;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sweep_q <= 1'b0;
      phase_q <= '0;
      word_q <= '0;
    end else if (sweep_q) begin
      phase_q <= phase_q + 1'b1;
      if (phase_q == 2'd3) begin
        word_q <= (word_q == Last) ? '0 : word_q + 1'b1;
        sweep_q <= word_q != Last;
      end
    end else begin
      sweep_q <= sweep_start;
    end
  end

  // Extremes are not summed: their totals are the live values.
  assign total_read = (totals_zero_q || word_q == Min || word_q == Max) ? '0 : read_data_o;

  always_ff @(posedge clk_i) begin
    if (sweep_start) begin
      totals_zero_q <= clear_before_q;
      copy_totals_q <= snapshot_q;
      clear_totals_q <= clear_after_q;
      transactions_q <= '0;
    end
    if (moment_q) begin
      swept_beats_q <= totals_zero_q ? '0 : beats_q;
      swept_lates_q <= totals_zero_q ? '0 : lates_q;
      swept_sum_q <= totals_zero_q ? '0 : sum_q;
      swept_min_q <= totals_zero_q ? '1 : min_q;
      swept_max_q <= totals_zero_q ? '0 : max_q;
    end
    if (sweep_q && phase_q == 2'd1) begin
      total_q <= 33'(total_read) + 33'((totals_zero_q && is_bucket) ? '0 : delta) + 33'(!is_low && total_q[32]);
      if (is_bucket && !totals_zero_q) transactions_q <= transactions_q + swept_count;
    end
  end

  logic count0, count1, clear_word;
  logic [5:0] index0, index1;
  count_t value0, value1;
  assign clear_word = sweep_q && phase_q == 2'd2 && is_bucket;
  assign count0 = bank_q ? clear_word : done_q;
  assign count1 = bank_q ? done_q : clear_word;
  assign index0 = init_i ? init_index_i : (bank_q ? word_q[5:0] : bucket_q);
  assign index1 = init_i ? init_index_i : (bank_q ? bucket_q : word_q[5:0]);
  assign value0 = (init_i || bank_q) ? '0 : bucket_count + 1'b1;
  assign value1 = (init_i || !bank_q) ? '0 : bucket_count + 1'b1;

  always_ff @(posedge clk_i) begin
    if (count0 || init_i) counts0[index0] <= value0;
    if (count1 || init_i) counts1[index1] <= value1;
  end

  logic [7:0] ram_index;
  logic [31:0] ram_data;
  assign ram_we = sweep_q && (phase_q == 2'd2 || (phase_q == 2'd3 && copy_totals_q));
  assign ram_index = {phase_q[0], word_q};
  assign ram_data = (!phase_q[0] && clear_totals_q) ? '0 : total_q[31:0];

  ns_ram_1r1w #(
    .Width(32),
    .Depth(256),
    .Style("bram")
  ) u_totals (
    .clk_i,
    .we_i   (ram_we),
    .waddr_i(ram_index),
    .wdata_i(ram_data),
    .re_i   (sweep_q ? phase_q == 2'd0 : read_i),
    .raddr_i(sweep_q ? {1'b0, word_q} : {1'b1, !read_bucket_i, read_index_i}),
    .rdata_o(read_data_o)
  );

  `NS_ASSERT(read_settled, !read_i || settled_o)
  `NS_ASSERT(no_overflow, !done_q || bucket_count != '1)
  `NS_ASSERT(nothing_during_init, !init_i || !done_q)

endmodule
