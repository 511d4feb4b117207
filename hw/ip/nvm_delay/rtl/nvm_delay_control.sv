// SPDX-License-Identifier: Apache-2.0

// Control port: the register block, the committed parameters, and reads of the counters.
//
// Times are kept in two banks of LUT RAM (nvm_delay_target). A write goes to `shadow`, for reading
// back, and to the inactive bank. A commit activates that bank in the same cycle as all other
// parameters, and then copies `shadow` to the other bank. Commands and writes of times wait for the
// end of that copy. Accesses after a command wait for it: a commit covers exactly the writes before
// it.
//
// The calibration is subtracted when a time is written to a bank, so it adds no latency to
// transactions. A write to it starts the same copy, to the inactive bank.
//
// The register block has a separate gated clock that runs during accesses only.
module nvm_delay_control
  import nvm_delay_pkg::*;
#(
  /// Reads in flight, for the capability register.
  parameter int unsigned ReadSlots = 64,
  /// Writes in flight, for the capability register.
  parameter int unsigned WriteSlots = 64,
  /// Beats of the read buffer, for the capability register.
  parameter int unsigned BufferBeats = 512,
  /// Bytes of a beat, for the capability register.
  parameter int unsigned BeatBytes = 64
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// An access is in progress.
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

  /// Committed parameters.
  output config_t     config_o,
  /// A time of reads is written.
  output logic        read_time_o,
  /// A time of writes is written.
  output logic        write_time_o,
  /// Its index and value.
  output time_write_t time_o,
  /// Committed bandwidth cap of reads.
  output rate_t       read_rate_o,
  /// Committed bandwidth cap of writes.
  output rate_t       write_rate_o,
  /// Reads in flight.
  input  logic [7:0]  reads_i,
  /// Writes in flight.
  input  logic [7:0]  writes_i,

  /// Take a snapshot of the counters.
  output logic        snapshot_o,
  /// Clear the counters.
  output logic        clear_o,
  /// The snapshot is complete.
  input  logic        settled_i,
  /// Read a word of the read counters' snapshot.
  output logic        read_stats_o,
  /// Read a word of the write counters' snapshot.
  output logic        write_stats_o,
  /// 0: scalars; 1: histogram.
  output logic        stats_bucket_o,
  /// Index of the word.
  output logic [5:0]  stats_index_o,
  /// Word of the read counters, from one cycle later on.
  input  logic [31:0] read_stats_i,
  /// Word of the write counters, from one cycle later on.
  input  logic [31:0] write_stats_i
);

  // Clock of the register block: from the first valid until some cycles after the last activity.
  localparam logic [2:0] ClockHold = 3'd7;
  logic [2:0] clock_hold_q;
  logic active, copy_q, reg_clk;
  logic stats_wait_q, stats_write;  // a counter access waits; it is to the write counters

  assign active = s_axil_awvalid || s_axil_wvalid || s_axil_arvalid || s_axil_bvalid || s_axil_rvalid || copy_q
                  || stats_wait_q;
  assign busy_o = clock_hold_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) clock_hold_q <= ClockHold;
    else if (active) clock_hold_q <= ClockHold;
    else if (busy_o) clock_hold_q <= clock_hold_q - 1'b1;
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

  // Counters: a read waits for a complete snapshot. Writes have no effect.
  logic stats_ack_q, stats_is_wr_q, stats_read;
  logic [7:0] word_q;  // 0x00 scalars, 0x40 read buckets, 0x80 write buckets

  assign stats_bucket_o = word_q[7:6] != '0;
  assign stats_index_o = stats_bucket_o ? word_q[5:0] : {1'b0, word_q[5], word_q[3:0]};
  assign stats_write = stats_bucket_o ? word_q[7] : word_q[4];
  assign stats_read = stats_wait_q && settled_i;
  assign read_stats_o = stats_read && !stats_write;
  assign write_stats_o = stats_read && stats_write;

  always_ff @(posedge reg_clk or negedge rst_ni) begin
    if (!rst_ni) begin
      stats_wait_q <= 1'b0;
      stats_ack_q <= 1'b0;
    end else begin
      stats_wait_q <= hwif_out.counters.req || (stats_wait_q && !settled_i);
      stats_ack_q <= stats_read;
    end
  end

  always_ff @(posedge reg_clk) begin
    if (hwif_out.counters.req) begin
      word_q <= hwif_out.counters.addr[9:2];
      stats_is_wr_q <= hwif_out.counters.req_is_wr;
    end
  end

  config_t config_q;
  rate_t read_rate_q, write_rate_q;

  // Times: an access to the register block is stored and performed in a later cycle.
  localparam int unsigned TimeBits = RegionWidth + 2;  // region and word of a time
  localparam region_t Outside = region_t'(NumRegions);  // outside of all regions
  localparam region_t Calibration = region_t'(NumRegions + 1);
  localparam logic [TimeBits-1:0] LastTime = {Calibration, 2'd3};

  (* ram_style = "distributed" *) time_t shadow[2**TimeBits];
  logic time_req, time_req_q, time_is_wr, time_is_wr_q, time_ack_q, init_q, commit;
  logic [TimeBits-1:0] time_index, time_index_q, copy_index_q, index;
  time_t time_data, time_data_q, time_mask, time_mask_q, old_time, new_time, time_rd_q;
  logic time_write, below_calibration;
  time_t calibrated;
  region_t time_region_q;

  always_comb begin
    time_req = hwif_out.timing.req;
    time_is_wr = hwif_out.timing.req_is_wr;
    time_data = hwif_out.timing.wr_data;
    time_mask = hwif_out.timing.wr_biten;
    time_index = {Outside, hwif_out.timing.addr[3:2]};
    if (hwif_out.calibration.req) begin
      time_req = 1'b1;
      time_is_wr = hwif_out.calibration.req_is_wr;
      time_data = hwif_out.calibration.wr_data;
      time_mask = hwif_out.calibration.wr_biten;
      time_index = {Calibration, hwif_out.calibration.addr[3:2]};
    end
    for (int unsigned r = 0; r < NumRegions; r++) begin
      if (hwif_out.region[r].timing.req) begin
        time_req = 1'b1;
        time_is_wr = hwif_out.region[r].timing.req_is_wr;
        time_data = hwif_out.region[r].timing.wr_data;
        time_mask = hwif_out.region[r].timing.wr_biten;
        time_index = {RegionWidth'(r), hwif_out.region[r].timing.addr[3:2]};
      end
    end
  end

  assign index = copy_q ? copy_index_q : time_index_q;
  assign old_time = init_q ? '0 : shadow[index];
  assign new_time = copy_q ? old_time : (old_time & ~time_mask_q) | (time_data_q & time_mask_q);
  assign time_write = copy_q || (time_req_q && time_is_wr_q);
  assign {below_calibration, calibrated} = {1'b0, new_time} - {1'b0, shadow[{Calibration, index[1:0]}]};
  assign time_region_q = time_index_q[TimeBits-1:2];

  // One cycle later. A time below its calibration becomes 0 by the synchronous reset of these
  // registers, without a LUT per bit. A commit takes effect later still.
  always_ff @(posedge reg_clk or negedge rst_ni) begin
    if (!rst_ni) begin
      read_time_o  <= 1'b0;
      write_time_o <= 1'b0;
    end else begin
      read_time_o  <= time_write && !index[1];
      write_time_o <= time_write && index[1];
    end
  end

  always_ff @(posedge reg_clk) begin
    time_o.base <= !index[0];
    time_o.bank <= !config_q.bank;
    time_o.region <= index[TimeBits-1:2];
    if (below_calibration || init_q) time_o.data <= '0;
    else time_o.data <= calibrated;
  end

  always_ff @(posedge reg_clk or negedge rst_ni) begin
    if (!rst_ni) begin
      time_req_q <= 1'b0;
      time_ack_q <= 1'b0;
      copy_q <= 1'b1;  // after reset, to clear all times
      init_q <= 1'b1;
      copy_index_q <= '0;
    end else begin
      if (time_req) time_req_q <= 1'b1;
      else if (!copy_q) time_req_q <= 1'b0;
      time_ack_q <= time_req_q && !copy_q;
      if (copy_q) copy_index_q <= copy_index_q + 1'b1;
      if (copy_q && copy_index_q == LastTime) begin
        copy_q <= 1'b0;
        init_q <= 1'b0;
      end
      if (commit || (time_write && !copy_q && time_region_q == Calibration)) begin
        copy_q <= 1'b1;
        copy_index_q <= '0;
      end
    end
  end

  always_ff @(posedge reg_clk) begin
    if (time_req) begin
      time_is_wr_q <= time_is_wr;
      time_index_q <= time_index;
      time_data_q <= time_data;
      time_mask_q <= time_mask;
    end
    if (time_write) shadow[index] <= new_time;
    time_rd_q <= old_time;
  end

  // Commands: all bits of one write take effect in the same cycle.
  logic command_wait_q, command_ack_q, command_is_wr_q, command_fire;
  logic [2:0] command_q;

  assign command_fire = command_wait_q && !copy_q;
  assign commit = command_fire && command_q[0];
  assign snapshot_o = command_fire && command_q[1];
  assign clear_o = command_fire && command_q[2];

  always_ff @(posedge reg_clk or negedge rst_ni) begin
    if (!rst_ni) begin
      command_wait_q <= 1'b0;
      command_ack_q <= 1'b0;
    end else begin
      command_wait_q <= hwif_out.command.req || (command_wait_q && copy_q);
      command_ack_q <= command_fire;
    end
  end

  always_ff @(posedge reg_clk) begin
    if (hwif_out.command.req) begin
      command_is_wr_q <= hwif_out.command.req_is_wr;
      command_q <= hwif_out.command.req_is_wr
          ? {hwif_out.command.wr_data.clear, hwif_out.command.wr_data.snapshot, hwif_out.command.wr_data.commit}
            & {hwif_out.command.wr_biten.clear, hwif_out.command.wr_biten.snapshot, hwif_out.command.wr_biten.commit}
          : '0;
    end
  end

  // Status, sampled during accesses.
  logic [7:0] commits_q, reads_q, writes_q;

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
    hwif_in.cap0.read_slots.next = 8'(ReadSlots);
    hwif_in.cap0.write_slots.next = (WriteSlots > 255) ? 8'd255 : 8'(WriteSlots);
    hwif_in.cap0.frac_bits.next = 4'(FracBits);
    hwif_in.cap0.int_bits.next = 6'(IntBits);
    hwif_in.cap0.regions.next = 4'(NumRegions);
    hwif_in.cap1.buffer_beats.next = 16'(BufferBeats);
    hwif_in.cap1.beat_bytes.next = 8'(BeatBytes);
    hwif_in.cap1.buckets.next = 8'(Buckets);
    hwif_in.status.commits.next = commits_q;
    hwif_in.status.active.next = config_q.enable;
    hwif_in.status.reads.next = reads_q;
    hwif_in.status.writes.next = writes_q;
    hwif_in.command.rd_ack = command_ack_q && !command_is_wr_q;
    hwif_in.command.wr_ack = command_ack_q && command_is_wr_q;
    hwif_in.command.rd_data = '0;
    hwif_in.counters.rd_ack = stats_ack_q && !stats_is_wr_q;
    hwif_in.counters.wr_ack = stats_ack_q && stats_is_wr_q;
    hwif_in.counters.rd_data = stats_write ? write_stats_i : read_stats_i;
    hwif_in.timing.rd_ack = time_ack_q && !time_is_wr_q && time_region_q == Outside;
    hwif_in.timing.wr_ack = time_ack_q && time_is_wr_q && time_region_q == Outside;
    hwif_in.timing.rd_data = time_rd_q;
    hwif_in.calibration.rd_ack = time_ack_q && !time_is_wr_q && time_region_q == Calibration;
    hwif_in.calibration.wr_ack = time_ack_q && time_is_wr_q && time_region_q == Calibration;
    hwif_in.calibration.rd_data = time_rd_q;
    for (int unsigned r = 0; r < NumRegions; r++) begin
      hwif_in.region[r].timing.rd_ack = time_ack_q && !time_is_wr_q && time_region_q == region_t'(r);
      hwif_in.region[r].timing.wr_ack = time_ack_q && time_is_wr_q && time_region_q == region_t'(r);
      hwif_in.region[r].timing.rd_data = time_rd_q;
    end
  end


  // Committed parameters. While the emulation is off there is no cap either.
  always_ff @(posedge reg_clk or negedge rst_ni) begin
    if (!rst_ni) begin
      config_q <= '0;
      read_rate_q <= '0;
      write_rate_q <= '0;
    end else if (commit) begin
      config_q.enable <= hwif_out.control.enable.value;
      config_q.bank <= !config_q.bank;
      config_q.region_enable <= hwif_out.control.region_enable.value;
      for (int unsigned r = 0; r < NumRegions; r++) begin
        config_q.first[r] <= hwif_out.region[r].first.page.value;
        config_q.last[r] <= hwif_out.region[r].last.page.value;
      end
      read_rate_q <= hwif_out.control.enable.value ? hwif_out.read_cap.rate.value : '0;
      write_rate_q <= hwif_out.control.enable.value ? hwif_out.write_cap.rate.value : '0;
    end
  end

  assign config_o = config_q;
  assign read_rate_o = read_rate_q;
  assign write_rate_o = write_rate_q;

endmodule
