// SPDX-License-Identifier: Apache-2.0

// The levels of sorter_tree obey stream_rules towards the level above, so what level_proof shows of
// a level holds for all of them. The output queue always has room for the arriving row. Proven by
// induction: for streams of any length, leaves without rows, and after `clear_i`.
//
// Records do not matter here. Selector and network are replaced by select_any and network_none.
`include "ns_assert.svh"

module tree_proof
  import sorter_pkg::*;
#(
  parameter int unsigned Leaves = 4,
  parameter int unsigned Rows = 4,
  localparam int unsigned LeafBits = unsigned'($clog2(Leaves))
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                clear_i,
  input logic [Leaves-1:0]   reserve_i,
  input logic                in_valid_i,
  input logic [LeafBits-1:0] in_leaf_i,
  input logic                in_last_i,
  input logic                in_empty_i,
  input logic [Lanes-1:0]    in_row_i,
  input logic                out_ready_i
);

  localparam int unsigned Queue = 16;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic [Leaves-1:0] room, demand;
  logic busy, out_valid, out_last;


  sorter_tree #(
    .Width (1),
    .Leaves(Leaves),
    .Rows  (Rows)
  ) u_tree (
    .clk_i,
    .rst_ni,
    .flush_i(1'b0),
    .busy_o     (busy),
    .clear_i,
    .room_o     (room),
    .reserve_i,
    .demand_o    (demand),
    .in_valid_i,
    .in_leaf_i,
    .in_last_i,
    .in_empty_i,
    .in_row_i   (in_row_i),
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_last_o(out_last),
    .out_row_o ()
  );

  // ---------------------------------------------------------------- stream rules

  // Signals between levels, as in sorter_tree: level d-1 has 2**d input streams, the lowest level
  // `Leaves`.
  localparam int unsigned CountBits = unsigned'($clog2(Rows + 1));
  logic [LeafBits:0][Leaves-1:0][CountBits-1:0] pending;
  logic [LeafBits:0][Leaves-1:0] rows, ended;

  stream_rules #(
    .Assume (1'b1),
    .Streams(Leaves),
    .Rows   (Rows)
  ) u_leaves (
    .clk_i,
    .rst_ni,
    .clear_i,
    .room_i   (room),
    .reserve_i,
    .valid_i  (in_valid_i),
    .stream_i (in_leaf_i),
    .last_i   (in_last_i),
    .empty_i  (in_empty_i),
    .pending_o(pending[LeafBits]),
    .rows_o   (rows[LeafBits]),
    .ended_o  (ended[LeafBits])
  );
  `NS_ASSUME(clear_when_idle, !clear_i || (!busy && !in_valid_i && reserve_i == '0))

  for (genvar d = 0; d < LeafBits; d++) begin : gen_level
    localparam int unsigned Nodes = 1 << d;
    localparam int unsigned NodeBits = ns_axi_pkg::idx_width(Nodes);
    // A node reserves room in the cycle before it produces the row, so at most one row is pending.
    logic [Nodes-1:0][CountBits-1:0] pending_above;
    logic [Nodes-1:0] rows_above, ended_above;

    stream_rules #(
      .Streams(Nodes),
      .Rows   (Rows)
    ) u_above (
      .clk_i,
      .rst_ni,
      .clear_i,
      .room_i   (u_tree.room[d][Nodes-1:0]),
      .reserve_i(u_tree.reserve[d][Nodes-1:0]),
      .valid_i  (u_tree.valid[d]),
      .stream_i (NodeBits'(u_tree.stream[d])),
      .last_i   (u_tree.last[d]),
      .empty_i  (u_tree.empty[d]),
      .pending_o(pending_above),
      .rows_o   (rows_above),
      .ended_o  (ended_above)
    );
    assign pending[d] = (Leaves * CountBits)'(pending_above);
    assign rows[d]    = Leaves'(rows_above);
    assign ended[d]   = Leaves'(ended_above);

    level_state #(
      .Nodes(Nodes),
      .Rows (Rows)
    ) u_state (
      .clk_i,
      .rst_ni,
      .in_pending_i (pending[d+1][2*Nodes-1:0]),
      .in_rows_i    (rows[d+1][2*Nodes-1:0]),
      .in_ended_i   (ended[d+1][2*Nodes-1:0]),
      .out_pending_i(pending_above),
      .out_rows_i   (rows_above),
      .out_ended_i  (ended_above),
      .step_i       (u_tree.gen_level[d].u_level.step_q),
      .node_i       (u_tree.gen_level[d].u_level.node_q),
      .count_i      (u_tree.gen_level[d].u_level.count_q),
      .free_i       (u_tree.gen_level[d].u_level.free_q),
      .rptr_i       (u_tree.gen_level[d].u_level.rptr_q),
      .wptr_i       (u_tree.gen_level[d].u_level.wptr_q),
      .end_i        (u_tree.gen_level[d].u_level.end_q),
      .consumed_i   (u_tree.gen_level[d].u_level.consumed_q),
      .node_done_i  (u_tree.gen_level[d].u_level.node_done_q)
    );
  end

  `NS_ASSERT(queue_has_room, !u_tree.u_out.in_valid_i || u_tree.u_out.in_ready_o)
  `NS_ASSERT(queue_adds_up,
             32'(u_tree.free_q) + 32'(u_tree.u_out.count_o) + 32'(pending[0][0]) == Queue)

  // Queued rows: with the end mark among them, the root has ended.
  localparam int unsigned QueueBits = unsigned'($clog2(Queue));
  logic [QueueBits-1:0] queue_rptr;
  assign queue_rptr = u_tree.u_out.rptr_q;
  `NS_ASSERT(queue_pointers_match,
             u_tree.u_out.wptr_q == queue_rptr + QueueBits'(u_tree.u_out.count_q))
  for (genvar i = 0; i < Queue; i++) begin : gen_queued
    logic [QueueBits-1:0] offset;
    assign offset = QueueBits'(i) - queue_rptr;
    `NS_ASSERT(queued_end_has_ended,
               32'(offset) >= 32'(u_tree.u_out.count_q) || !u_tree.u_out.gen_lutram.mem[i][Lanes] || ended[0][0])
  end

  logic out_fire;
  assign out_fire = out_valid && out_ready_i;
  `NS_ASSERT(ends_after_all_leaves, !(out_fire && out_last) || ended[LeafBits] == '1)

  // ---------------------------------------------------------------- cover points

  logic [2:0] rows_q;
  logic merged_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rows_q   <= '0;
      merged_q <= 1'b0;
    end else begin
      rows_q <= clear_i ? '0 : rows_q + 3'(out_fire && rows_q != '1);
      if (clear_i && ended[LeafBits] == '1) merged_q <= 1'b1;
    end
  end
  `NS_COVER(merges_five_rows, out_fire && out_last && rows_q == 3'd4)
  `NS_COVER(merges_again, merged_q && out_fire && out_last)

endmodule
