// Counters of one direction, with a snapshot that is of one moment.
//
// Bucket b of the histogram holds latencies of b cycles for b < 4, then four buckets an octave:
// b = 4*(e-1) + m for latencies in [2**e * (4+m)/4, 2**e * (5+m)/4); the last one holds all that are longer, too.
// What happens is counted in narrow counters: those of the histogram in one of two banks of LUT RAM, the others in
// registers. A sweep exchanges the banks in one cycle and then adds what the other one holds to the totals, word by word;
// these stand in block RAM, beside the copy that software reads. There is a sweep for each snapshot and clear, and one
// whenever the narrow counters are half full. Two directions whose `full_o` and `full_i` are connected sweep together, so
// their snapshots are of one moment. `settled_o` is 0 from a command to the end of its sweep.
// Commands that come during a sweep wait for its end, and so become one; nobody has seen what was between them.
`include "ns_assert.svh"

module nvm_delay_stats
  import nvm_delay_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  /// After reset, for each number in turn: bucket `init_index_i` is set to 0; nothing is counted meanwhile.
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
  /// Freeze a copy.
  input  logic        snapshot_i,
  /// Start anew.
  input  logic        clear_i,
  /// The narrow counters are half full.
  output logic        full_o,
  /// Those of the other direction are.
  input  logic        full_i,
  /// The copy is that of the last snapshot.
  output logic        settled_o,
  /// Read a word of the copy.
  input  logic        read_i,
  /// 0: scalars; 1: histogram.
  input  logic        read_bucket_i,
  /// Which word.
  input  logic [5:0]  read_index_i,
  /// It, one cycle later.
  output logic [31:0] read_data_o,
  /// Something is still to be counted.
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

  // Registered before they are counted: once, then once more with their bucket.
  logic in_beat_q, in_done_q, in_late_q, beat_q, done_q, late_q, low, high;
  cycle_t in_latency_q, latency_q;
  logic [BucketBits-1:0] bucket_q;

  // Commands: clear, snapshot, clear, in this order. The cycle after `start` is the sweep's moment: the first one in which the
  // other bank counts, and in which the counters in registers begin anew.
  logic before_q, snapshot_q, after_q;
  logic sweep_q, start, moment_q;

  assign start = !sweep_q && !init_i && (before_q || snapshot_q || after_q || full_o || full_i);
  assign settled_o = !(before_q || snapshot_q || after_q || sweep_q || init_i);
  assign busy_o = in_beat_q || in_done_q || beat_q || done_q || !settled_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_beat_q <= 1'b0;
      in_done_q <= 1'b0;
      beat_q <= 1'b0;
      done_q <= 1'b0;
      moment_q <= 1'b0;
      before_q <= 1'b1;  // block RAM is not reset
      snapshot_q <= 1'b1;
      after_q <= 1'b0;
    end else begin
      in_beat_q <= beat_i;
      in_done_q <= done_i;
      beat_q <= in_beat_q;
      done_q <= in_done_q;
      moment_q <= start;
      if (snapshot_i) begin
        before_q <= !start && (before_q || after_q);
        snapshot_q <= 1'b1;
        after_q <= clear_i;
      end else begin
        before_q <= !start && before_q || (clear_i && (start || !snapshot_q));
        snapshot_q <= !start && snapshot_q;
        after_q <= !start && (after_q || (clear_i && snapshot_q));
      end
    end
  end

  // Narrow counters, and what they were when the sweep started.
  (* ram_style = "distributed" *) count_t counts0[Buckets];
  (* ram_style = "distributed" *) count_t counts1[Buckets];
  logic bank_q;  // the one that counts
  count_t beats_q, lates_q, held_beats_q, held_lates_q;
  logic [SumBits-1:0] sum_q, held_sum_q;
  cycle_t min_q, max_q, held_min_q, held_max_q;
  logic zero_q, copy_q, wipe_q;  // the sweep: totals were 0; copy them; then they become 0
  logic clear_live;

  assign full_o = beats_q[CountBits-1];
  assign clear_live = moment_q && (zero_q || wipe_q);

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
    low = 1'b0;
    high = 1'b0;
    if (done_q) begin
      low = latency_q < min_q;
      high = latency_q > max_q;
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
          if (clear_live || low) min_q <= latency_q;
          if (clear_live || high) max_q <= latency_q;
        end
      end
      if (start) bank_q <= !bank_q;
    end
  end

  // Sweep: four cycles a word, of which those from Buckets on are the scalars. Phase 0: a total is read, 1: added to,
  // 2: it is written, 3: so is its copy.
  localparam logic [6:0] Lates = 7'd68, SumLow = 7'd70, SumHigh = 7'd71, Min = 7'd72, Max = 7'd73;
  localparam logic [6:0] Transactions = 7'd64, Beats = 7'd66;
  localparam logic [6:0] Last = 7'd95;  // words without a counter read as 0
  logic [6:0] word_q;
  logic [1:0] phase_q;
  logic is_bucket, is_low;
  count_t counted, transactions_q, old;
  logic [31:0] delta, total_read;
  logic [32:0] total_q;
  logic ram_we;

  assign is_bucket = !word_q[6];
  assign old = bank_q ? counts1[bucket_q] : counts0[bucket_q];
  assign counted = bank_q ? counts0[word_q[5:0]] : counts1[word_q[5:0]];

  always_comb begin
    delta = '0;
    is_low = 1'b1;
    if (sweep_q) begin
      if (is_bucket) begin
        delta = 32'(counted);
      end else begin
        unique case (word_q)
          Transactions: delta = 32'(transactions_q);
          Beats: delta = 32'(held_beats_q);
          Lates: delta = 32'(held_lates_q);
          SumLow: delta = held_sum_q[31:0];
          SumHigh: delta = 32'(held_sum_q[SumBits-1:32]);
          Min: delta = {{(32 - CycleWidth) {&held_min_q}}, held_min_q};  // all ones if there was none
          Max: delta = 32'(held_max_q);
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
      sweep_q <= start;
    end
  end

  // Extremes are no sums: their totals are the live ones.
  assign total_read = (zero_q || word_q == Min || word_q == Max) ? '0 : read_data_o;

  always_ff @(posedge clk_i) begin
    if (start) begin
      zero_q <= before_q;
      copy_q <= snapshot_q;
      wipe_q <= after_q;
      transactions_q <= '0;
    end
    if (moment_q) begin
      held_beats_q <= zero_q ? '0 : beats_q;
      held_lates_q <= zero_q ? '0 : lates_q;
      held_sum_q <= zero_q ? '0 : sum_q;
      held_min_q <= zero_q ? '1 : min_q;
      held_max_q <= zero_q ? '0 : max_q;
    end
    if (sweep_q && phase_q == 2'd1) begin
      total_q <= 33'(total_read) + 33'((zero_q && is_bucket) ? '0 : delta) + 33'(!is_low && total_q[32]);
      if (is_bucket && !zero_q) transactions_q <= transactions_q + counted;
    end
  end

  logic count0, count1, wipe;
  logic [5:0] index0, index1;
  count_t value0, value1;
  assign wipe = sweep_q && phase_q == 2'd2 && is_bucket;
  assign count0 = bank_q ? wipe : done_q;
  assign count1 = bank_q ? done_q : wipe;
  assign index0 = init_i ? init_index_i : (bank_q ? word_q[5:0] : bucket_q);
  assign index1 = init_i ? init_index_i : (bank_q ? bucket_q : word_q[5:0]);
  assign value0 = (init_i || bank_q) ? '0 : old + 1'b1;
  assign value1 = (init_i || !bank_q) ? '0 : old + 1'b1;

  always_ff @(posedge clk_i) begin
    if (count0 || init_i) counts0[index0] <= value0;
    if (count1 || init_i) counts1[index1] <= value1;
  end

  logic [7:0] ram_index;
  logic [31:0] ram_data;
  assign ram_we = sweep_q && (phase_q == 2'd2 || (phase_q == 2'd3 && copy_q));
  assign ram_index = {phase_q[0], word_q};
  assign ram_data = (!phase_q[0] && wipe_q) ? '0 : total_q[31:0];

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
  `NS_ASSERT(no_overflow, !done_q || old != '1)
  `NS_ASSERT(nothing_during_init, !init_i || !done_q)

endmodule
