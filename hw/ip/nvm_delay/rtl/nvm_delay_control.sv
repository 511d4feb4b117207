// Control port: the register block, the committed parameters, and the way to the counters.
//
// The register block has a gated clock of its own: it moves only while an access is under way.
// Assumes that nothing else writes the shadow registers; a commit copies all of them in one cycle.
module nvm_delay_control
  import nvm_delay_pkg::*;
#(
  /// Beats that the read buffer holds, as the capability register says it.
  parameter int unsigned BufferBeats = 512,
  /// Bytes of a beat, as the capability register says it.
  parameter int unsigned BeatBytes = 64
) (
  /// Clock.
  input  logic        clk_i,
  /// Reset.
  input  logic        rst_ni,
  /// An access is under way.
  output logic        busy_o,

  /// AXI4-Lite slave port.
  input  logic        s_axil_awvalid,
  output logic        s_axil_awready,
  input  logic [11:0] s_axil_awaddr,
  input  logic [2:0]  s_axil_awprot,
  input  logic        s_axil_wvalid,
  output logic        s_axil_wready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0]  s_axil_wstrb,
  output logic        s_axil_bvalid,
  input  logic        s_axil_bready,
  output logic [1:0]  s_axil_bresp,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  input  logic [11:0] s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,

  /// Committed parameters of reads.
  output config_t     read_config_o,
  /// Committed parameters of writes.
  output config_t     write_config_o,
  /// Committed bandwidth cap of reads.
  output rate_t       read_rate_o,
  /// Committed bandwidth cap of writes.
  output rate_t       write_rate_o,
  /// Reads in flight.
  input  logic [7:0]  reads_i,
  /// Writes in flight.
  input  logic [7:0]  writes_i,

  /// Freeze the counters' copy.
  output logic        snapshot_o,
  /// Clear the counters.
  output logic        clear_o,
  /// Read a word of the read counters' copy.
  output logic        read_stats_o,
  /// Read a word of the write counters' copy.
  output logic        write_stats_o,
  /// 0: scalars; 1: histogram.
  output logic        stats_bucket_o,
  /// Which word.
  output logic [5:0]  stats_index_o,
  /// Word of the read counters, one cycle later.
  input  logic [31:0] read_stats_i,
  /// Word of the write counters, one cycle later.
  input  logic [31:0] write_stats_i
);

  // Clock of the register block: from the first valid until some cycles after the last sign of life.
  localparam logic [2:0] Linger = 3'd7;
  logic [2:0] linger_q;
  logic active, reg_clk;

  assign active = s_axil_awvalid || s_axil_wvalid || s_axil_arvalid || s_axil_bvalid || s_axil_rvalid;
  assign busy_o = linger_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) linger_q <= Linger;
    else if (active) linger_q <= Linger;
    else if (busy_o) linger_q <= linger_q - 1'b1;
  end

  ns_clock_gate u_gate (
    .clk_i,
    .en_i (active || busy_o),
    .clk_o(reg_clk)
  );

  nvm_delay_regs_pkg::nvm_delay_regs__in_t hwif_in;
  nvm_delay_regs_pkg::nvm_delay_regs__out_t hwif_out;

  nvm_delay_regs u_regs (
    .clk   (reg_clk),
    .arst_n(rst_ni),
    .s_axil_awready,
    .s_axil_awvalid,
    .s_axil_awaddr,
    .s_axil_awprot,
    .s_axil_wready,
    .s_axil_wvalid,
    .s_axil_wdata,
    .s_axil_wstrb,
    .s_axil_bready,
    .s_axil_bvalid,
    .s_axil_bresp,
    .s_axil_arready,
    .s_axil_arvalid,
    .s_axil_araddr,
    .s_axil_arprot,
    .s_axil_rready,
    .s_axil_rvalid,
    .s_axil_rdata,
    .s_axil_rresp,
    .hwif_in,
    .hwif_out
  );

  // Counters: an acknowledge two cycles after the request. Writes to them change nothing.
  logic stats_req_q, stats_ack_q, stats_write_q, stats_is_wr_q;
  logic [31:0] stats_data_q;
  logic [7:0] word;  // 0x00 scalars, 0x40 read buckets, 0x80 write buckets
  logic write_stats_sel;

  assign word = hwif_out.counters.addr[9:2];
  assign stats_bucket_o = word[7:6] != '0;
  assign stats_index_o = stats_bucket_o ? word[5:0] : {1'b0, word[5], word[3:0]};
  assign write_stats_sel = stats_bucket_o ? word[7] : word[4];
  assign read_stats_o = hwif_out.counters.req && !write_stats_sel;
  assign write_stats_o = hwif_out.counters.req && write_stats_sel;

  always_ff @(posedge reg_clk or negedge rst_ni) begin
    if (!rst_ni) begin
      stats_req_q <= 1'b0;
      stats_ack_q <= 1'b0;
    end else begin
      stats_req_q <= hwif_out.counters.req;
      stats_ack_q <= stats_req_q;
    end
  end

  always_ff @(posedge reg_clk) begin
    if (hwif_out.counters.req) begin
      stats_write_q <= write_stats_sel;
      stats_is_wr_q <= hwif_out.counters.req_is_wr;
    end
    if (stats_req_q) stats_data_q <= stats_write_q ? write_stats_i : read_stats_i;
  end

  // Status, sampled while an access is under way.
  logic [7:0] commits_q, reads_q, writes_q;
  logic commit;

  assign commit = hwif_out.command.commit.value;
  assign snapshot_o = hwif_out.command.snapshot.value;
  assign clear_o = hwif_out.command.clear.value;

  always_ff @(posedge reg_clk or negedge rst_ni) begin
    if (!rst_ni) begin
      commits_q <= '0;
      reads_q <= '0;
      writes_q <= '0;
    end else begin
      if (commit) commits_q <= commits_q + 1'b1;
      reads_q <= reads_i;
      writes_q <= writes_i;
    end
  end

  always_comb begin
    hwif_in.cap0.read_slots.next = 8'(Slots);
    hwif_in.cap0.write_slots.next = 8'(Slots);
    hwif_in.cap0.frac_bits.next = 4'(FracBits);
    hwif_in.cap0.int_bits.next = 6'(IntBits);
    hwif_in.cap0.regions.next = 4'(NumRegions);
    hwif_in.cap1.buffer_beats.next = 16'(BufferBeats);
    hwif_in.cap1.beat_bytes.next = 8'(BeatBytes);
    hwif_in.cap1.buckets.next = 8'(Buckets);
    hwif_in.status.commits.next = commits_q;
    hwif_in.status.active.next = read_config_o.enable;
    hwif_in.status.reads.next = reads_q;
    hwif_in.status.writes.next = writes_q;
    hwif_in.counters.rd_ack = stats_ack_q && !stats_is_wr_q;
    hwif_in.counters.wr_ack = stats_ack_q && stats_is_wr_q;
    hwif_in.counters.rd_data = stats_data_q;
  end

  // Committed parameters. With `enable` 0 they are all as good as zero; the caps are made so here.
  config_t read_q, write_q;

  always_ff @(posedge reg_clk or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q <= '0;
      write_q <= '0;
      read_rate_o <= '0;
      write_rate_o <= '0;
    end else if (commit) begin
      read_q.enable <= hwif_out.control.enable.value;
      write_q.enable <= hwif_out.control.enable.value;
      read_q.region_enable <= hwif_out.control.region_enable.value;
      write_q.region_enable <= hwif_out.control.region_enable.value;
      read_rate_o <= hwif_out.control.enable.value ? hwif_out.read_cap.rate.value : '0;
      write_rate_o <= hwif_out.control.enable.value ? hwif_out.write_cap.rate.value : '0;
      read_q.base[NumRegions] <= hwif_out.timing.read_base.cycles.value;
      read_q.beat[NumRegions] <= hwif_out.timing.read_beat.cycles.value;
      write_q.base[NumRegions] <= hwif_out.timing.write_base.cycles.value;
      write_q.beat[NumRegions] <= hwif_out.timing.write_beat.cycles.value;
      for (int unsigned r = 0; r < NumRegions; r++) begin
        read_q.first[r] <= hwif_out.region[r].first.page.value;
        write_q.first[r] <= hwif_out.region[r].first.page.value;
        read_q.last[r] <= hwif_out.region[r].last.page.value;
        write_q.last[r] <= hwif_out.region[r].last.page.value;
        read_q.base[r] <= hwif_out.region[r].read_base.cycles.value;
        read_q.beat[r] <= hwif_out.region[r].read_beat.cycles.value;
        write_q.base[r] <= hwif_out.region[r].write_base.cycles.value;
        write_q.beat[r] <= hwif_out.region[r].write_beat.cycles.value;
      end
    end
  end

  assign read_config_o = read_q;
  assign write_config_o = write_q;

endmodule
