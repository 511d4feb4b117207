// Counters of one direction, with a snapshot that is atomic and costs no cycle.
//
// Bucket b of the histogram holds latencies of b cycles for b < 4, then four buckets an octave:
// b = 4*(e-1) + m for latencies in [2**e * (4+m)/4, 2**e * (5+m)/4); the last one holds all that are longer, too.
// A snapshot copies a bucket only when it is next counted in (`snap`), and until then reads the live one. Live buckets
// without their valid bit are zero: clearing takes one cycle as well.
module nvm_delay_stats
  import nvm_delay_pkg::*;
(
  /// Clock.
  input  logic        clk_i,
  /// Reset.
  input  logic        rst_ni,
  /// A beat passes the slave port.
  input  logic        beat_i,
  /// A transaction ends there.
  input  logic        done_i,
  /// Cycles since its address passed there.
  input  logic [31:0] latency_i,
  /// Its response was offered after its deadline.
  input  logic        late_i,
  /// Freeze a copy.
  input  logic        snapshot_i,
  /// Start anew.
  input  logic        clear_i,
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

  function automatic logic [BucketBits-1:0] bucket_of(logic [31:0] latency);
    logic [5:0] octave;
    bucket_of = BucketBits'(latency);
    for (int unsigned e = 2; e < 17; e++) begin
      octave = 6'(e - 1);
      if (latency[e]) bucket_of = BucketBits'({octave, latency[e-1-:2]});
    end
    if (latency[31:17] != '0) bucket_of = '1;
  endfunction

  // Registered before they are counted: once, then once more with their bucket.
  logic in_beat_q, in_done_q, in_late_q, beat_q, done_q, late_q;
  logic [31:0] in_latency_q, latency_q;
  logic [BucketBits-1:0] bucket_q;

  assign busy_o = in_beat_q || in_done_q || beat_q || done_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_beat_q <= 1'b0;
      in_done_q <= 1'b0;
      beat_q <= 1'b0;
      done_q <= 1'b0;
    end else begin
      in_beat_q <= beat_i;
      in_done_q <= done_i;
      beat_q <= in_beat_q;
      done_q <= in_done_q;
    end
  end

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

  // Scalars.
  logic [47:0] transactions_q, beats_q, lates_q, transactions_copy_q, beats_copy_q, lates_copy_q;
  logic [63:0] sum_q, sum_copy_q;
  logic [31:0] min_q, max_q, min_copy_q, max_copy_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      transactions_q <= '0;
      beats_q <= '0;
      lates_q <= '0;
      sum_q <= '0;
      min_q <= '1;
      max_q <= '0;
    end else begin
      if (clear_i) begin
        transactions_q <= '0;
        beats_q <= '0;
        lates_q <= '0;
        sum_q <= '0;
        min_q <= '1;
        max_q <= '0;
      end
      if (beat_q) beats_q <= (clear_i ? '0 : beats_q) + 1'b1;
      if (done_q) begin
        transactions_q <= (clear_i ? '0 : transactions_q) + 1'b1;
        if (late_q) lates_q <= (clear_i ? '0 : lates_q) + 1'b1;
        sum_q <= (clear_i ? '0 : sum_q) + 64'(latency_q);
        if (clear_i || latency_q < min_q) min_q <= latency_q;
        if (clear_i || latency_q > max_q) max_q <= latency_q;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      transactions_copy_q <= '0;
      beats_copy_q <= '0;
      lates_copy_q <= '0;
      sum_copy_q <= '0;
      min_copy_q <= '1;
      max_copy_q <= '0;
    end else if (snapshot_i) begin
      transactions_copy_q <= transactions_q;
      beats_copy_q <= beats_q;
      lates_copy_q <= lates_q;
      sum_copy_q <= sum_q;
      min_copy_q <= min_q;
      max_copy_q <= max_q;
    end
  end

  // Histogram. `valid`: the live bucket counts; `snap_valid`: it did at the snapshot; `copied`: it has changed since.
  (* ram_style = "distributed" *) logic [31:0] live[Buckets];
  (* ram_style = "distributed" *) logic [31:0] snap[Buckets];
  logic [Buckets-1:0] valid_q, snap_valid_q, copied_q;
  logic [31:0] old;

  assign old = valid_q[bucket_q] ? live[bucket_q] : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      snap_valid_q <= '0;
      copied_q <= '0;
    end else begin
      if (snapshot_i) begin
        snap_valid_q <= valid_q;
        copied_q <= '0;
      end
      if (clear_i) valid_q <= '0;
      if (done_q) begin
        valid_q[bucket_q] <= 1'b1;
        copied_q[bucket_q] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (done_q) begin
      live[bucket_q] <= (clear_i ? '0 : old) + 1'b1;
      if (snapshot_i) snap[bucket_q] <= old;
      else if (!copied_q[bucket_q]) snap[bucket_q] <= snap_valid_q[bucket_q] ? live[bucket_q] : '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_i && read_bucket_i) begin
      if (copied_q[read_index_i]) read_data_o <= snap[read_index_i];
      else read_data_o <= snap_valid_q[read_index_i] ? live[read_index_i] : '0;
    end else if (read_i) begin
      unique case (read_index_i)
        6'd0: read_data_o <= transactions_copy_q[31:0];
        6'd1: read_data_o <= 32'(transactions_copy_q[47:32]);
        6'd2: read_data_o <= beats_copy_q[31:0];
        6'd3: read_data_o <= 32'(beats_copy_q[47:32]);
        6'd4: read_data_o <= lates_copy_q[31:0];
        6'd5: read_data_o <= 32'(lates_copy_q[47:32]);
        6'd6: read_data_o <= sum_copy_q[31:0];
        6'd7: read_data_o <= sum_copy_q[63:32];
        6'd8: read_data_o <= min_copy_q;
        6'd9: read_data_o <= max_copy_q;
        default: read_data_o <= '0;
      endcase
    end
  end

endmodule
