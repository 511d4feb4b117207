// What is always so in a level of the merge tree, apart from its records: with it, that the rules of stream_rules hold is inductive.
//
// `in_*_i`, `out_*_i`: what stream_rules tells of the streams below and above; rows pass the network at once.
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
  input logic [2*Nodes-1:0][CountBits-1:0]   in_open_i,
  input logic [2*Nodes-1:0]                  in_rows_i,
  input logic [2*Nodes-1:0]                  in_ended_i,
  input logic [Nodes-1:0][CountBits-1:0]     out_open_i,
  input logic [Nodes-1:0]                    out_rows_i,
  input logic [Nodes-1:0]                    out_ended_i,
  /// sorter_level's.
  input logic                                pick_i,
  input logic [NodeBits-1:0]                 node_i,
  input logic [Nodes-1:0][1:0][CountBits-1:0] count_i,
  input logic [Nodes-1:0][1:0][CountBits-1:0] free_i,
  input logic [Nodes-1:0][1:0][PtrBits-1:0]  rptr_i,
  input logic [Nodes-1:0][1:0][PtrBits-1:0]  wptr_i,
  input logic [Nodes-1:0][1:0]               end_i,
  input logic [Nodes-1:0][LaneBits-1:0]      taken_i,
  input logic [Nodes-1:0]                    over_i
);

  typedef logic [CountBits-1:0] count_t;

  for (genvar n = 0; n < Nodes; n++) begin : gen_node
    logic stepping;
    count_t [1:0] count;
    logic [CountBits:0] rows;  // that can be made
    assign stepping = pick_i && node_i == NodeBits'(n);
    assign count = count_i[n];
    assign rows = (CountBits + 1)'(count[0]) + (CountBits + 1)'(count[1]) - (CountBits + 1)'(taken_i[n] != '0);

    `NS_ASSERT(reserved_is_stepping, out_open_i[n] == CountBits'(stepping))
    `NS_ASSERT(over_is_ended, over_i[n] == out_ended_i[n])
    `NS_ASSERT(rows_were_given, !out_rows_i[n] || in_rows_i[2*n+:2] != '0)
    `NS_ASSERT(both_are_begun, taken_i[n] == '0 || (count[0] != '0 && count[1] != '0))
    `NS_ASSERT(over_is_empty, !over_i[n] || (!stepping && end_i[n] == '1 && count == '0))
    `NS_ASSERT(not_over_has_rows,
               over_i[n] || end_i[n] != '1 || rows != '0 || in_rows_i[2*n+:2] == '0)

    for (genvar s = 0; s < 2; s++) begin : gen_stream
      localparam int unsigned Stream = 2 * n + s;
      // Room that is lost would make a stream wait for ever.
      `NS_ASSERT(room_adds_up,
                 32'(free_i[n][s]) + 32'(count[s]) + 32'(in_open_i[Stream]) + 32'(in_ended_i[Stream] && !in_rows_i[Stream]) == Rows)
      `NS_ASSERT(rows_add_up, wptr_i[n][s] == rptr_i[n][s] + PtrBits'(count[s]))
      `NS_ASSERT(end_is_known, end_i[n][s] == in_ended_i[Stream])
      `NS_ASSERT(ended_is_complete, !in_ended_i[Stream] || in_open_i[Stream] == '0)
      `NS_ASSERT(rows_came, count[s] == '0 || in_rows_i[Stream])
      `NS_ASSERT(rows_left_by_steps, !in_rows_i[Stream] || count[s] != '0 || out_rows_i[n])
      `NS_ASSERT(steps_leave_one, !out_rows_i[n] || in_ended_i[Stream] || count[s] != '0)
      `NS_ASSERT(step_has_rows, !stepping || end_i[n][s] || count[s] >= count_t'(2))
    end
  end

endmodule
