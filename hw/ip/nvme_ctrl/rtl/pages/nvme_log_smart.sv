// SPDX-License-Identifier: Apache-2.0

// SMART / Health Information log (NVMe 1.4, 5.14.1.2), and its counters.
//
// Commands that reach the data path are counted when they end: Compare and Verify as reads, Write
// Zeroes and Dataset Management not at all. Data units (thousands of 512 bytes, rounded up) are
// counted when a command succeeds. Media errors of any of these commands are counted. Minutes are
// counted while one of them is in flight, and at a high temperature. The device has no memory that
// survives a loss of power. Everything counts from power-on, which is the one power cycle counted;
// unsafe shutdowns are unknown (0). Spare and Percentage Used are those of a medium without wear.
`include "ns_assert.svh"

module nvme_log_smart
  import nvme_pkg::*;
#(
  /// Command slots.
  parameter int unsigned NumSlots = 128,
  /// Clock in kHz.
  parameter int unsigned ClockKhz = 250_000
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Units or the time at a high temperature are being counted.
  output logic                 busy_o,

  /// A command goes to the data path.
  input  logic                  start_i,
  /// Its slot.
  input  logic [SlotWidth-1:0]  start_slot_i,
  /// What it does.
  input  data_op_e              start_op_i,
  /// Its size, a multiple of 512 if it is counted.
  input  logic [BytesWidth-1:0] start_bytes_i,
  /// A command has ended.
  input  logic                  end_i,
  /// Its slot.
  input  logic [SlotWidth-1:0]  end_slot_i,
  /// How it ended.
  input  data_status_e          end_status_i,

  /// Cycles since power-on. From a register on the ungated clock; may advance by more than one.
  input  logic [63:0]          cycles_i,
  /// Critical Warning.
  input  logic [7:0]           warning_i,
  /// Composite Temperature in kelvins. From a register on the ungated clock.
  input  logic [15:0]          temperature_i,
  /// Power On Hours, at the time of the transfer.
  input  logic [47:0]          hours_i,
  /// Error Information log entries so far.
  input  logic [47:0]          errors_i,

  /// Read a beat.
  input  logic                 re_i,
  /// Beat, of the 64 of a page.
  input  logic [5:0]           beat_i,
  /// The beat, one cycle later.
  output logic [511:0]         data_o
);

  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumSlots);
  localparam int unsigned BlocksWidth = BytesWidth - 9;
  localparam int unsigned PartialWidth = 24;
  localparam logic [63:0] Minute = 64'(ClockKhz) * 64'd60_000;
  localparam int unsigned MinuteBits = unsigned'($clog2(Minute + 1));

  typedef logic [47:0] count_t;

  // Commands in flight.
  (* ram_style = "distributed" *) logic [BlocksWidth+1:0] command_mem[NumSlots];
  logic end_q, write_q, counted_q, start_counted;
  data_status_e status_q;
  logic [BlocksWidth-1:0] blocks_q;
  logic [SlotWidth-1:0] in_flight_q;

  assign start_counted = start_op_i != OpZero && start_op_i != OpDeallocate;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      command_mem[start_slot_i[Bits-1:0]] <= {
        start_counted, start_op_i == OpWrite, start_bytes_i[BytesWidth-1:9]
      };
    end
    if (end_i) begin
      {counted_q, write_q, blocks_q} <= command_mem[end_slot_i[Bits-1:0]];
      status_q <= end_status_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      end_q <= 1'b0;
      in_flight_q <= '0;
    end else begin
      end_q <= end_i;
      if (start_i && !end_i) in_flight_q <= in_flight_q + 1'b1;
      if (!start_i && end_i) in_flight_q <= in_flight_q - 1'b1;
    end
  end

  // Index 0: read, 1: written. Blocks of an incomplete unit are kept.
  count_t units_q[2];
  count_t commands_q[2];
  logic [PartialWidth-1:0] partial_unit_q[2];
  logic [1:0] unit_complete;
  count_t media_errors_q;

  assign unit_complete = {32'(partial_unit_q[1]) >= 32'd1000, 32'(partial_unit_q[0]) >= 32'd1000};

  for (genvar d = 0; d < 2; d++) begin : gen_direction
    logic ended;
    assign ended = end_q && counted_q && write_q == 1'(d);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        units_q[d] <= '0;
        commands_q[d] <= '0;
        partial_unit_q[d] <= '0;
      end else begin
        if (ended) commands_q[d] <= commands_q[d] + 1'b1;
        if (ended && status_q == DataOk) begin
          partial_unit_q[d] <= partial_unit_q[d] + PartialWidth'(blocks_q);
        end else if (unit_complete[d]) begin
          partial_unit_q[d]  <= partial_unit_q[d] - PartialWidth'(1000);
          units_q[d] <= units_q[d] + 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      media_errors_q <= '0;
    end else begin
      if (end_q && (status_q == DataReadError || status_q == DataWriteFault))
        media_errors_q <= media_errors_q + 1'b1;
    end
  end

  // Minutes with commands in the data path; at WCTEMP or above; at CCTEMP or above. The clock runs
  // meanwhile.
  logic [2:0] accruing, accruing_q;
  logic [MinuteBits-1:0] cycles_seen_q, elapsed;
  logic warm, critical, warm_q, critical_q;
  count_t minutes_q[3];

  assign warm = temperature_i >= WarningTemperature && !critical;
  assign critical = temperature_i >= CriticalTemperature;
  assign accruing = {critical_q, warm_q, in_flight_q != '0};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {critical_q, warm_q, accruing_q} <= '0;
    else {critical_q, warm_q, accruing_q} <= {critical, warm, accruing};
  end

  // A simulation may skip cycles in which nothing else changes.
  assign elapsed = MinuteBits'(cycles_i) - cycles_seen_q;
  always_ff @(posedge clk_i) cycles_seen_q <= MinuteBits'(cycles_i);

  for (genvar t = 0; t < 3; t++) begin : gen_time
    logic [MinuteBits-1:0] cycles_q;
    logic [MinuteBits:0] cycles;
    assign cycles = (MinuteBits + 1)'(cycles_q) + (accruing_q[t] ? (MinuteBits + 1)'(elapsed) : (MinuteBits + 1)'(1));

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        cycles_q <= '0;
        minutes_q[t] <= '0;
      end else if (accruing[t]) begin
        cycles_q <= MinuteBits'(cycles);
        if (cycles >= (MinuteBits + 1)'(Minute)) begin
          cycles_q <= MinuteBits'(cycles - (MinuteBits + 1)'(Minute));
          minutes_q[t] <= minutes_q[t] + 1'b1;
        end
      end
    end
  end

  // The page. Most beats have four fields of 16 bytes.
  always_ff @(posedge clk_i) begin
    if (re_i) begin
      data_o <= '0;
      unique case (beat_i)
        6'd0: begin
          data_o[7:0] <= warning_i;
          data_o[8*1+:16] <= temperature_i;
          data_o[8*3+:8] <= 8'd100;  // Available Spare, %
          data_o[8*32+:48] <= units_q[0] + count_t'(partial_unit_q[0] != '0);
          data_o[8*48+:48] <= units_q[1] + count_t'(partial_unit_q[1] != '0);
        end
        6'd1: begin
          data_o[8*0+:48] <= commands_q[0];
          data_o[8*16+:48] <= commands_q[1];
          data_o[8*32+:48] <= minutes_q[0];
          data_o[8*48+:48] <= count_t'(1);  // Power Cycles: this one
        end
        6'd2: begin
          data_o[8*0+:48] <= hours_i;
          data_o[8*32+:48] <= media_errors_q;
          data_o[8*48+:48] <= errors_i;
        end
        6'd3: begin
          data_o[8*0+:32] <= minutes_q[1][31:0];  // Warning Composite Temperature Time
          data_o[8*4+:32] <= minutes_q[2][31:0];  // Critical Composite Temperature Time
        end
        default: ;
      endcase
    end
  end

  // Busy time is counted only while the data path keeps the clock running.
  assign busy_o = end_q || unit_complete != '0 || {critical, warm, critical_q, warm_q} != '0;

  logic unused;
  assign unused = ^{start_bytes_i[8:0], cycles_i[63:MinuteBits]};

  `NS_ASSERT(end_of_something, !end_i || in_flight_q != '0)
  `NS_ASSERT(rest_in_range,
             !partial_unit_q[0][PartialWidth-1] && !partial_unit_q[1][PartialWidth-1])

endmodule
