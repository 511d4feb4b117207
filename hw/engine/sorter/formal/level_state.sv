// SPDX-License-Identifier: Apache-2.0

// Invariants of a level of the merge tree, apart from its records. With them stream_rules is
// inductive.
//
// `in_*_i` and `out_*_i` are the states of stream_rules for the streams below and above. The
// network is replaced, so rows pass it in zero cycles.
`include "ns_assert.svh"

module level_state
  import sorter_pkg::*;
#(
  parameter int unsigned Nodes = 1,
  parameter int unsigned Rows = 4,
  localparam int unsigned NodeBits = ns_axi_pkg::idx_width(Nodes),
  localparam int unsigned PtrBits = unsigned'($clog2(Rows)),
  localparam int unsigned CountBits = PtrBits + 1
) (
  input logic                                clk_i,
  input logic                                rst_ni,
  input logic [2*Nodes-1:0][CountBits-1:0]   in_pending_i,
  input logic [2*Nodes-1:0]                  in_rows_i,
  input logic [2*Nodes-1:0]                  in_ended_i,
  input logic [Nodes-1:0][CountBits-1:0]     out_pending_i,
  input logic [Nodes-1:0]                    out_rows_i,
  input logic [Nodes-1:0]                    out_ended_i,
  /// State of sorter_level.
  input logic                                step_i,
  input logic [NodeBits-1:0]                 node_i,
  input logic [Nodes-1:0][1:0][CountBits-1:0] count_i,
  input logic [Nodes-1:0][1:0][CountBits-1:0] free_i,
  input logic [Nodes-1:0][1:0][PtrBits-1:0]  rptr_i,
  input logic [Nodes-1:0][1:0][PtrBits-1:0]  wptr_i,
  input logic [Nodes-1:0][1:0]               end_i,
  input logic [Nodes-1:0][LaneBits-1:0]      consumed_i,
  input logic [Nodes-1:0]                    node_done_i
);

  typedef logic [CountBits-1:0] count_t;

  for (genvar n = 0; n < Nodes; n++) begin : gen_node
    logic in_step;
    count_t [1:0] count;
    logic [CountBits:0] rows;  // that can be produced
    assign in_step = step_i && node_i == NodeBits'(n);
    assign count = count_i[n];
    assign rows = (CountBits + 1)'(count[0]) + (CountBits + 1)'(count[1]) - (CountBits + 1)'(consumed_i[n] != '0);

    `NS_ASSERT(reserved_is_stepping, out_pending_i[n] == CountBits'(in_step))
    `NS_ASSERT(done_is_ended, node_done_i[n] == out_ended_i[n])
    `NS_ASSERT(rows_have_source, !out_rows_i[n] || in_rows_i[2*n+:2] != '0)
    `NS_ASSERT(consumed_has_rows, consumed_i[n] == '0 || (count[0] != '0 && count[1] != '0))
    `NS_ASSERT(done_is_empty, !node_done_i[n] || (!in_step && end_i[n] == '1 && count == '0))
    `NS_ASSERT(not_done_has_rows,
               node_done_i[n] || end_i[n] != '1 || rows != '0 || in_rows_i[2*n+:2] == '0)

    for (genvar s = 0; s < 2; s++) begin : gen_stream
      localparam int unsigned Stream = 2 * n + s;
      // Room that is lost would stall a stream for ever.
      `NS_ASSERT(room_adds_up,
                 32'(free_i[n][s]) + 32'(count[s]) + 32'(in_pending_i[Stream]) + 32'(in_ended_i[Stream] && !in_rows_i[Stream]) == Rows)
      `NS_ASSERT(rows_add_up, wptr_i[n][s] == rptr_i[n][s] + PtrBits'(count[s]))
      `NS_ASSERT(end_matches_rules, end_i[n][s] == in_ended_i[Stream])
      `NS_ASSERT(ended_is_complete, !in_ended_i[Stream] || in_pending_i[Stream] == '0)
      `NS_ASSERT(count_has_rows, count[s] == '0 || in_rows_i[Stream])
      `NS_ASSERT(rows_leave_by_steps, !in_rows_i[Stream] || count[s] != '0 || out_rows_i[n])
      `NS_ASSERT(step_leaves_row, !out_rows_i[n] || in_ended_i[Stream] || count[s] != '0)
      `NS_ASSERT(step_has_rows, !in_step || end_i[n][s] || count[s] >= count_t'(2))
    end
  end

endmodule
