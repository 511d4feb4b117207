// SPDX-License-Identifier: Apache-2.0

// One level of the merge tree. Its nodes share one selector and one network, and produce one row
// per cycle in total.
//
// Each node merges two streams from the level below, with a separate buffer for each. A node is
// ready when it has the rows it needs and room in the buffer above; ready nodes take turns. So a
// level costs as much as a single node, and sustains the full rate however the records are
// distributed, even if all pass through one node.
//
// Nodes whose rows are in demand have priority. Without demand, a merge in which all records pass
// through one node would first fill the buffers of all other nodes.
//
// A stream's last row is marked. A stream without rows is a single `empty` mark. After the ends of
// its streams a node is idle until `clear_i`.
`include "ns_assert.svh"

module sorter_level
  import sorter_pkg::*;
#(
  /// Bits of a record. Records are in ascending order.
  parameter int unsigned Width = 96,
  /// Number of nodes, a power of two.
  parameter int unsigned Nodes = 1,
  /// Rows in a buffer, a power of two. The full rate through one node needs at least 16.
  parameter int unsigned Rows = 16,
  localparam int unsigned NodeBits = ns_axi_pkg::idx_width(Nodes)
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                        flush_i,
  /// Rows are in flight. Driven by registers.
  output logic                        busy_o,
  /// Prepares for the next merge. No row is in flight.
  input  logic                        clear_i,

  /// Streams from below, two per node. There is room for a row of the stream.
  output logic [2*Nodes-1:0]          room_o,
  /// The room is reserved for a row of the stream that arrives some cycles later.
  input  logic [2*Nodes-1:0]          reserve_i,
  /// Rows of the stream are in demand. Driven by registers.
  output logic [2*Nodes-1:0]          demand_o,
  input  logic                        in_valid_i,
  input  logic [NodeBits:0]           in_stream_i,
  input  logic                        in_last_i,
  input  logic                        in_empty_i,
  input  logic [Lanes-1:0][Width-1:0] in_row_i,

  /// Streams to the level above, one per node.
  input  logic [Nodes-1:0]            room_i,
  input  logic [Nodes-1:0]            demand_i,
  output logic [Nodes-1:0]            reserve_o,
  output logic                        out_valid_o,
  output logic [NodeBits-1:0]         out_stream_o,
  output logic                        out_last_o,
  output logic                        out_empty_o,
  output logic [Lanes-1:0][Width-1:0] out_row_o
);

  localparam int unsigned PtrBits = unsigned'($clog2(Rows));
  localparam int unsigned CountBits = PtrBits + 1;
  localparam int unsigned AddrBits = (Nodes > 1) ? NodeBits + PtrBits : PtrBits;
  typedef logic [PtrBits-1:0] ptr_t;
  typedef logic [CountBits-1:0] count_t;

  // State of both streams of each node: rows buffered, rows unreserved, last row received.
  count_t [Nodes-1:0][1:0] count_q, free_q;
  ptr_t [Nodes-1:0][1:0] rptr_q, wptr_q;
  logic [Nodes-1:0][1:0] end_q;
  logic [Nodes-1:0][LaneBits-1:0] consumed_q;  // records consumed of the first stream's current row
  logic [Nodes-1:0] node_done_q;
  logic [Nodes-1:0][1:0] last_source_q;  // streams of the most recently released rows
  logic [Nodes-1:0][1:0] repeats_q;  // how often they repeated
  logic [Nodes-1:0] alternating_q;  // the streams alternate
  logic [Nodes-1:0][1:0] demand_q;

  // ---------------------------------------------------------------- choice of a node

  logic step_q;  // a step is in progress
  logic [NodeBits-1:0] node_q, node;
  logic [Nodes-1:0] ready, demanded, gnt;
  logic gnt_valid;

  // The result of a step in progress is not known yet. It releases at most one row of each stream,
  // and reduces their sum by one row.
  for (genvar n = 0; n < Nodes; n++) begin : gen_ready
    logic in_step, both_ended;
    count_t needed;
    logic [1:0] available;
    logic [CountBits:0] rows_left;
    assign in_step = step_q && node_q == NodeBits'(n);
    assign needed = in_step ? count_t'(3) : count_t'(2);
    assign available = {end_q[n][1] || count_q[n][1] >= needed, end_q[n][0] || count_q[n][0] >= needed};
    assign rows_left = (CountBits + 1)'(count_q[n][0]) + (CountBits + 1)'(count_q[n][1]) - (CountBits + 1)'(consumed_q[n] != '0);
    assign both_ended = end_q[n] == '1;
    assign ready[n] = !node_done_q[n] && room_i[n] && available == '1 && (!in_step || !both_ended || rows_left > (CountBits + 1)'(1));
  end

  assign demanded = ready & demand_i;

  ns_rr_arbiter #(
    .N(Nodes)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .flush_i,
    .req_i  ((demanded != '0) ? demanded : ready),
    .next_i (1'b1),
    .gnt_o  (gnt),
    .idx_o  (node),
    .valid_o(gnt_valid)
  );

  assign reserve_o = gnt;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) step_q <= 1'b0;
    else step_q <= gnt_valid && !clear_i && !flush_i;
  end
  always_ff @(posedge clk_i) node_q <= node;

  // ---------------------------------------------------------------- step

  logic [LaneBits-1:0] consumed;
  logic [Lanes-1:0][Width-1:0] a, b, chosen;
  logic [Lanes-1:0] a_ended, b_ended;
  logic [1:0] row_done, release_row;
  count_t [1:0] count, rows_left;
  logic [1:0] ended;
  logic empty, last;
  logic [NodeBits-1:0] in_node;

  assign in_node = in_stream_i[NodeBits:1];
  assign count = count_q[node_q];
  assign ended = end_q[node_q];

  function automatic logic [AddrBits-1:0] place(logic [NodeBits-1:0] n, ptr_t row);
    return AddrBits'({n, row});
  endfunction

  // Lanes of the first stream whose record of the current row has been consumed.
  logic [Lanes-1:0] wrapped;
  assign wrapped = ~(Lanes'('1) << consumed_q[node_q]);

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    (* ram_style = "distributed" *) logic [Width-1:0] mem_a[Nodes*Rows];
    (* ram_style = "distributed" *) logic [Width-1:0] mem_b[Nodes*Rows];
    logic a_next, b_next;

    always_ff @(posedge clk_i) begin
      if (in_valid_i && !in_empty_i && !in_stream_i[0])
        mem_a[place(in_node, wptr_q[in_node][0])] <= in_row_i[i];
      if (in_valid_i && !in_empty_i && in_stream_i[0])
        mem_b[place(in_node, wptr_q[in_node][1])] <= in_row_i[Lanes-1-i];
    end
    assign a_next = wrapped[i];
    assign b_next = wrapped != '0 && !wrapped[i];
    assign a[i] = mem_a[place(node_q, rptr_q[node_q][0]+ptr_t'(a_next))];
    assign b[i] = mem_b[place(node_q, rptr_q[node_q][1]+ptr_t'(b_next))];
    assign a_ended[i] = count[0] <= count_t'(a_next);
    assign b_ended[i] = count[1] <= count_t'(b_next);
  end

  sorter_select #(
    .Width(Width)
  ) u_select (
    .consumed_i  (consumed_q[node_q]),
    .a_i         (a),
    .a_ended_i   (a_ended),
    .b_i         (b),
    .b_ended_i   (b_ended),
    .row_o       (chosen),
    .consumed_o  (consumed),
    .a_row_done_o(row_done[0]),
    .b_row_done_o(row_done[1])
  );

  // Two streams without rows merge into one without rows.
  assign empty = count == '0;
  assign release_row = (step_q && !empty) ? row_done & {count[1] != '0, count[0] != '0} : '0;
  assign rows_left = {count[1] - count_t'(release_row[1]), count[0] - count_t'(release_row[0])};
  assign last = ended == '1 && rows_left == '0;

  for (genvar n = 0; n < Nodes; n++) begin : gen_state
    logic [1:0] arrival, released, low, source;
    // Expected sources are both streams, unless one stream supplied five rows in succession. Then
    // it is that stream, or the other one once it has supplied a row.
    assign source = alternating_q[n] ? '1 : last_source_q[n];
    for (genvar s = 0; s < 2; s++) begin : gen_stream
      assign arrival[s] = in_valid_i && in_stream_i == (NodeBits + 1)'(2 * n + s);
      assign released[s] = release_row[s] && node_q == NodeBits'(n);
      assign room_o[2*n+s] = free_q[n][s] != '0;
      assign demand_o[2*n+s] = demand_q[n][s];
      // A node in demand continues with three rows of each stream. Streams that it releases, or is
      // about to release, are kept full.
      assign low[s] = free_q[n][s] > count_t'(Rows - 3);
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) begin
          count_q[n][s] <= '0;
          free_q[n][s] <= count_t'(Rows);
          rptr_q[n][s] <= '0;
          wptr_q[n][s] <= '0;
          end_q[n][s] <= 1'b0;
        end else if (clear_i || flush_i) begin
          count_q[n][s] <= '0;
          free_q[n][s] <= count_t'(Rows);
          rptr_q[n][s] <= '0;
          wptr_q[n][s] <= '0;
          end_q[n][s] <= 1'b0;
        end else begin
          count_q[n][s] <= count_q[n][s] + count_t'(arrival[s] && !in_empty_i) - count_t'(released[s]);
          free_q[n][s] <= free_q[n][s] + count_t'(released[s]) - count_t'(reserve_i[2*n+s]);
          rptr_q[n][s] <= rptr_q[n][s] + ptr_t'(released[s]);
          wptr_q[n][s] <= wptr_q[n][s] + ptr_t'(arrival[s] && !in_empty_i);
          if (arrival[s] && in_last_i) end_q[n][s] <= 1'b1;
        end
      end
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        consumed_q[n] <= '0;
        node_done_q[n] <= 1'b0;
        last_source_q[n] <= '0;
        repeats_q[n] <= '1;
        alternating_q[n] <= 1'b0;
        demand_q[n] <= '0;
      end else if (clear_i || flush_i) begin
        consumed_q[n] <= '0;
        node_done_q[n] <= 1'b0;
        last_source_q[n] <= '0;
        repeats_q[n] <= '1;
        alternating_q[n] <= 1'b0;
        demand_q[n] <= '0;
      end else begin
        demand_q[n] <= demand_i[n] ? low | source | {end_q[n][0], end_q[n][1]} : '0;
        if (step_q && node_q == NodeBits'(n)) begin
          if (!empty) consumed_q[n] <= consumed;
          if (last) node_done_q[n] <= 1'b1;
          if (release_row != '0) begin
            last_source_q[n] <= release_row;
            if (release_row != last_source_q[n]) begin
              repeats_q[n]     <= '0;
              alternating_q[n] <= repeats_q[n] != '1;
            end else if (repeats_q[n] != '1) repeats_q[n] <= repeats_q[n] + 1'b1;
            else alternating_q[n] <= 1'b0;
          end
        end
      end
    end
  end

  // ---------------------------------------------------------------- output

  logic network_busy;

  sorter_network #(
    .Width  (Width),
    .Lanes  (Lanes),
    .Full   (1'b0),
    .TagBits(2 + NodeBits)
  ) u_network (
    .clk_i,
    .rst_ni,
    .flush_i,
    .busy_o (network_busy),
    .valid_i(step_q),
    .tag_i  ({empty, last, node_q}),
    .row_i  (chosen),
    .valid_o(out_valid_o),
    .tag_o  ({out_empty_o, out_last_o, out_stream_o}),
    .row_o  (out_row_o)
  );

  assign busy_o = step_q || network_busy;

  if (Nodes < 1 || (Nodes > 1 && 2 ** NodeBits != Nodes) || Rows < 4 || 2 ** PtrBits != Rows) begin : gen_bad_size
    $error("sorter_level: Nodes must be a power of two, Rows one of at least 4");
  end

  `NS_ASSERT(stream_ends_aligned, !step_q || !last || empty || consumed == '0)
  `NS_ASSERT(no_row_after_end, !in_valid_i || !end_q[in_node][in_stream_i[0]])
  `NS_ASSERT(row_has_room,
             !in_valid_i || in_empty_i || count_q[in_node][in_stream_i[0]] != count_t'(Rows))

endmodule
