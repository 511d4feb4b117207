// SPDX-License-Identifier: Apache-2.0

// Builds sorted runs of `RunRows` rows from unordered rows: sorts each row, then merges runs in
// pairs, level by level.
//
// Throughput is one row per cycle. The last row of a chunk is marked, and its last run can be
// shorter.
module sorter_cascade
  import sorter_pkg::*;
#(
  /// Bits of a record. Records are in ascending order.
  parameter int unsigned Width   = 96,
  /// Rows in a run, a power of two of at least 2.
  parameter int unsigned RunRows = 256,
  localparam int unsigned Levels = unsigned'($clog2(RunRows))
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                        flush_i,
  /// Rows are in flight. Driven by registers.
  output logic                        busy_o,
  input  logic                        in_valid_i,
  output logic                        in_ready_o,
  /// Last row of a chunk.
  input  logic                        in_end_i,
  input  logic [Lanes-1:0][Width-1:0] in_row_i,
  /// Rows of sorted runs, with marks for the last row of a run and of a chunk.
  output logic                        out_valid_o,
  input  logic                        out_ready_i,
  output logic                        out_last_o,
  output logic                        out_end_o,
  output logic [Lanes-1:0][Width-1:0] out_row_o
);

  localparam int unsigned Queue = 16;
  localparam int unsigned QueueBits = unsigned'($clog2(Queue + 1));

  logic [QueueBits-1:0] in_flight_q;
  logic in_fire, sorted_valid, sorted_end, network_busy;
  logic [Lanes-1:0][Width-1:0] sorted;
  logic [Levels:0] valid, ready, last, ends;
  logic [Levels:0][Lanes-1:0][Width-1:0] row;
  logic [Levels-1:0] busy;

  // A row in the network has a reserved place in the queue downstream.
  assign in_ready_o = in_flight_q != QueueBits'(Queue);
  assign in_fire = in_valid_i && in_ready_o;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_flight_q <= '0;
    else if (flush_i) in_flight_q <= '0;
    else in_flight_q <= in_flight_q + QueueBits'(in_fire) - QueueBits'(valid[0] && ready[0]);
  end

  sorter_network #(
    .Width(Width),
    .Lanes(Lanes)
  ) u_network (
    .clk_i,
    .rst_ni,
    .flush_i,
    .busy_o (network_busy),
    .valid_i(in_fire),
    .tag_i  (in_end_i),
    .row_i  (in_row_i),
    .valid_o(sorted_valid),
    .tag_o  (sorted_end),
    .row_o  (sorted)
  );

  ns_fifo #(
    .Width(1 + Lanes * Width),
    .Depth(Queue),
    .Style("lutram")
  ) u_sorted (
    .clk_i,
    .rst_ni,
    .flush_i,
    .in_valid_i (sorted_valid),
    .in_ready_o (),
    .in_data_i  ({sorted_end, sorted}),
    .out_valid_o(valid[0]),
    .out_ready_i(ready[0]),
    .out_data_o ({ends[0], row[0]}),
    .count_o    ()
  );
  assign last[0] = 1'b1;

  for (genvar n = 0; n < Levels; n++) begin : gen_level
    sorter_pair #(
      .Width  (Width),
      .RunRows(1 << n)
    ) u_pair (
      .clk_i,
      .rst_ni,
      .flush_i,
      .busy_o     (busy[n]),
      .in_valid_i (valid[n]),
      .in_ready_o (ready[n]),
      .in_last_i  (last[n]),
      .in_end_i   (ends[n]),
      .in_row_i   (row[n]),
      .out_valid_o(valid[n+1]),
      .out_ready_i(ready[n+1]),
      .out_last_o (last[n+1]),
      .out_end_o  (ends[n+1]),
      .out_row_o  (row[n+1])
    );
  end

  assign out_valid_o = valid[Levels];
  assign ready[Levels] = out_ready_i;
  assign out_last_o = last[Levels];
  assign out_end_o = ends[Levels];
  assign out_row_o = row[Levels];
  assign busy_o = in_flight_q != '0 || network_busy || busy != '0;

endmodule
