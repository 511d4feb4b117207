// SPDX-License-Identifier: Apache-2.0

// Merge tree: merges `Leaves` sorted streams into one, one row per cycle, however the records are
// distributed.
//
//   leaves ─► level of Leaves/2 nodes ─► ... ─► 2 nodes ─► 1 node ─► sorted rows
//
// The nodes of a level share one selector and one network (sorter_level).
`include "ns_assert.svh"

module sorter_tree
  import sorter_pkg::*;
#(
  /// Bits of a record. Records are in ascending order.
  parameter int unsigned Width = 96,
  /// Number of streams, a power of two of at least 2.
  parameter int unsigned Leaves = 64,
  /// Rows in the buffer of a stream, at each level.
  parameter int unsigned Rows = 16,
  localparam int unsigned LeafBits = unsigned'($clog2(Leaves))
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                        flush_i,
  /// Rows are in flight. Driven by registers.
  output logic                        busy_o,
  /// Prepares for the next merge, after the end or to discard the contents. No row of a leaf is in
  /// flight.
  input  logic                        clear_i,

  /// Leaf streams: there is room for a row, the room is reserved, and the row that uses it.
  output logic [Leaves-1:0]           room_o,
  input  logic [Leaves-1:0]           reserve_i,
  /// Rows of these leaves are in demand. Driven by registers.
  output logic [Leaves-1:0]           demand_o,
  input  logic                        in_valid_i,
  input  logic [LeafBits-1:0]         in_leaf_i,
  /// Last row of the leaf.
  input  logic                        in_last_i,
  /// The leaf has no rows.
  input  logic                        in_empty_i,
  input  logic [Lanes-1:0][Width-1:0] in_row_i,

  /// Rows in order.
  output logic                        out_valid_o,
  input  logic                        out_ready_i,
  output logic                        out_last_o,
  output logic [Lanes-1:0][Width-1:0] out_row_o
);

  localparam int unsigned Queue = 16;
  localparam int unsigned QueueBits = unsigned'($clog2(Queue + 1));

  // Signals between levels: level d-1 has 2**d input streams, the lowest level `Leaves`.
  logic [LeafBits:0][Leaves-1:0] room, reserve, demand;
  logic [LeafBits:0] valid, last, empty;
  logic [LeafBits:0][LeafBits-1:0] stream;
  logic [LeafBits:0][Lanes-1:0][Width-1:0] row;
  logic [LeafBits-1:0] busy;

  for (genvar d = 0; d < LeafBits; d++) begin : gen_level
    localparam int unsigned Nodes = 1 << d;
    localparam int unsigned NodeBits = ns_axi_pkg::idx_width(Nodes);
    logic [NodeBits-1:0] out_stream;
    logic [2*Nodes-1:0] room_below, demand_below;
    logic [Nodes-1:0] reserve_above;

    sorter_level #(
      .Width(Width),
      .Nodes(Nodes),
      .Rows (Rows)
    ) u_level (
      .clk_i,
      .rst_ni,
      .flush_i,
      .busy_o      (busy[d]),
      .clear_i,
      .room_o      (room_below),
      .reserve_i   (reserve[d+1][2*Nodes-1:0]),
      .demand_o    (demand_below),
      .in_valid_i  (valid[d+1]),
      .in_stream_i ((NodeBits + 1)'(stream[d+1])),
      .in_last_i   (last[d+1]),
      .in_empty_i  (empty[d+1]),
      .in_row_i    (row[d+1]),
      .room_i      (room[d][Nodes-1:0]),
      .demand_i    (demand[d][Nodes-1:0]),
      .reserve_o   (reserve_above),
      .out_valid_o (valid[d]),
      .out_stream_o(out_stream),
      .out_last_o  (last[d]),
      .out_empty_o (empty[d]),
      .out_row_o   (row[d])
    );

    assign room[d+1] = Leaves'(room_below);
    assign demand[d+1] = Leaves'(demand_below);
    assign reserve[d] = Leaves'(reserve_above);
    assign stream[d] = LeafBits'(out_stream);
  end

  assign room_o = room[LeafBits];
  assign demand_o = demand[LeafBits];
  assign reserve[LeafBits] = reserve_i;
  assign valid[LeafBits] = in_valid_i;
  assign stream[LeafBits] = in_leaf_i;
  assign last[LeafBits] = in_last_i;
  assign empty[LeafBits] = in_empty_i;
  assign row[LeafBits] = in_row_i;

  // ---------------------------------------------------------------- output

  logic [QueueBits-1:0] free_q;
  logic out_fire;

  assign room[0] = Leaves'(free_q != '0);
  assign demand[0] = Leaves'(1);
  assign out_fire = out_valid_o && out_ready_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) free_q <= QueueBits'(Queue);
    else if (flush_i) free_q <= QueueBits'(Queue);
    else
      free_q <= free_q - QueueBits'(reserve[0][0] && !clear_i) + QueueBits'(out_fire) + QueueBits'(valid[0] && empty[0]);
  end

  ns_fifo #(
    .Width(1 + Lanes * Width),
    .Depth(Queue),
    .Style("lutram")
  ) u_out (
    .clk_i,
    .rst_ni,
    .flush_i,
    .in_valid_i(valid[0] && !empty[0]),
    .in_ready_o(),
    .in_data_i ({last[0], row[0]}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o({out_last_o, out_row_o}),
    .count_o   ()
  );

  assign busy_o = busy != '0 || valid != '0 || out_valid_o;

  logic unused;
  assign unused = ^stream[0];

  if (Leaves < 2 || 2 ** LeafBits != Leaves) begin : gen_bad_leaves
    $error("sorter_tree: Leaves must be a power of two of at least 2");
  end

endmodule
