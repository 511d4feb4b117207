// SPDX-License-Identifier: Apache-2.0

// sorter_level loses and duplicates no record, and the rows of its nodes are in order. Proven by
// induction, so for streams of any length.
//
// A record has two bits. Bit 0 marks one arbitrary record. It leaves exactly once if it arrived,
// before the end of its node's stream or with the last row. Bit 1 tells whether a record is at or
// above an arbitrary bound. Once such a record has left a node, no record below the bound leaves.
// As record and bound are arbitrary, this is integrity and order for all records.
//
// Selector and network have separate proofs, and are replaced by select_any and network_none.
`include "ns_assert.svh"

module level_proof
  import sorter_pkg::*;
#(
  parameter int unsigned Nodes = 1,
  parameter int unsigned Rows = 4,
  /// 1: no bounds, the marked record only.
  parameter int unsigned Width = 2,
  localparam int unsigned NodeBits = ns_axi_pkg::idx_width(Nodes)
) (
  input logic                        clk_i,
  input logic                        rst_ni,
  input logic                        clear_i,
  input logic [2*Nodes-1:0]          reserve_i,
  input logic                        in_valid_i,
  input logic [NodeBits:0]           in_stream_i,
  input logic                        in_last_i,
  input logic                        in_empty_i,
  input logic [Lanes-1:0][Width-1:0] in_row_i,
  input logic [Nodes-1:0]            room_i,
  input logic [Nodes-1:0]            demand_i
);

  localparam int unsigned PtrBits = unsigned'($clog2(Rows));
  localparam int unsigned CountBits = PtrBits + 1;
  typedef logic [CountBits-1:0] count_t;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic [2*Nodes-1:0] room, demand;
  logic [Nodes-1:0] reserve;
  logic busy, out_valid, out_last, out_empty;
  logic [NodeBits-1:0] out_stream;
  logic [Lanes-1:0][Width-1:0] out_row;

  sorter_level #(
    .Width(Width),
    .Nodes(Nodes),
    .Rows (Rows)
  ) u_level (
    .clk_i,
    .rst_ni,
    .flush_i(1'b0),
    .busy_o      (busy),
    .clear_i,
    .room_o      (room),
    .reserve_i,
    .demand_o     (demand),
    .in_valid_i,
    .in_stream_i,
    .in_last_i,
    .in_empty_i,
    .in_row_i,
    .room_i,
    .demand_i,
    .reserve_o   (reserve),
    .out_valid_o (out_valid),
    .out_stream_o(out_stream),
    .out_last_o  (out_last),
    .out_empty_o (out_empty),
    .out_row_o   (out_row)
  );

  // ---------------------------------------------------------------- stream rules

  logic [2*Nodes-1:0][CountBits-1:0] in_pending;
  logic [2*Nodes-1:0] in_rows, in_ended;
  logic [Nodes-1:0][CountBits-1:0] out_pending;
  logic [Nodes-1:0] out_rows, out_ended;

  stream_rules #(
    .Assume (1'b1),
    .Streams(2 * Nodes),
    .Rows   (Rows)
  ) u_in (
    .clk_i,
    .rst_ni,
    .clear_i,
    .room_i   (room),
    .reserve_i,
    .valid_i  (in_valid_i),
    .stream_i ((unsigned'($clog2(2 * Nodes)))'(in_stream_i)),
    .last_i   (in_last_i),
    .empty_i  (in_empty_i),
    .pending_o(in_pending),
    .rows_o   (in_rows),
    .ended_o  (in_ended)
  );
  `NS_ASSUME(stream_exists, !in_valid_i || 32'(in_stream_i) < 2 * Nodes)
  `NS_ASSUME(clear_when_idle, !clear_i || (!busy && !in_valid_i))

  stream_rules #(
    .Streams(Nodes),
    .Rows   (Rows)
  ) u_out (
    .clk_i,
    .rst_ni,
    .clear_i,
    .room_i,
    .reserve_i(reserve),
    .valid_i  (out_valid),
    .stream_i (out_stream),
    .last_i   (out_last),
    .empty_i  (out_empty),
    .pending_o(out_pending),
    .rows_o   (out_rows),
    .ended_o  (out_ended)
  );

  // ---------------------------------------------------------------- the marked record

  logic [Lanes-1:0] in_mark, in_above, out_mark, out_above;
  for (genvar i = 0; i < Lanes; i++) begin : gen_bits
    assign {in_above[i], in_mark[i]}   = in_row_i[i];
    assign {out_above[i], out_mark[i]} = out_row[i];
  end

  logic in_row, out_row_valid, arrived_q, departed_q, arrival, departure;
  logic [NodeBits:0] mark_stream_q;
  assign in_row = in_valid_i && !in_empty_i;
  assign out_row_valid = out_valid && !out_empty;
  assign arrival = in_row && in_mark != '0;
  assign departure = out_row_valid && out_mark != '0;

  // Position of the mark: row and lane of the memories. The second stream's rows are stored in
  // reverse.
  logic [PtrBits-1:0] mark_row_q;
  logic [LaneBits-1:0] mark_lane_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      arrived_q <= 1'b0;
      departed_q <= 1'b0;
    end else if (clear_i) begin
      arrived_q <= 1'b0;
      departed_q <= 1'b0;
    end else begin
      if (arrival) arrived_q <= 1'b1;
      if (departure) departed_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (arrival) begin
      mark_stream_q <= in_stream_i;
      mark_row_q <= u_level.wptr_q[in_stream_i[NodeBits:1]][in_stream_i[0]];
      mark_lane_q <= '0;
      for (int unsigned i = 0; i < Lanes; i++)
      if (in_mark[i]) mark_lane_q <= LaneBits'(in_stream_i[0] ? Lanes - 1 - i : i);
    end
  end

  `NS_ASSUME(one_mark, !arrival || (!arrived_q && $countones(in_mark) == 1))

  `NS_ASSERT(departs_once, !departure || (arrived_q && !departed_q && $countones(out_mark) == 1))
  `NS_ASSERT(departs_from_its_node, !departure || out_stream == mark_stream_q[NodeBits:1])
  `NS_ASSERT(
      departs_before_end,
      !(out_valid && out_last && arrived_q && out_stream == mark_stream_q[NodeBits:1]) || departed_q || departure)

  // ---------------------------------------------------------------- order

  logic [2*Nodes-1:0] in_above_q;  // the stream's last record is at or above the bound
  logic [  Nodes-1:0] out_above_q;  // a record at or above the bound has left

  `NS_ASSUME(
      stream_in_order,
      !in_row || ((in_above & ~(in_above >> 1)) & (Lanes'('1) >> 1)) == '0 && (!in_above_q[in_stream_i] || in_above == '1))

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_above_q  <= '0;
      out_above_q <= '0;
    end else if (clear_i) begin
      in_above_q  <= '0;
      out_above_q <= '0;
    end else begin
      if (in_row) in_above_q[in_stream_i] <= in_above[Lanes-1];
      if (out_row_valid && out_above != '0) out_above_q[out_stream] <= 1'b1;
    end
  end

  `NS_ASSERT(rows_in_order, !(out_row_valid && out_above_q[out_stream]) || out_above == '1)

  // ---------------------------------------------------------------- step

  // The step meets the assumptions of select_proof. A stream that appears to have ended has ended.
  logic step;
  assign step = u_level.step_q && !u_level.empty;
  `NS_ASSERT(step_is_legal, !step || u_level.u_select.legal)
  `NS_ASSERT(a_ended_is_true, !step || u_level.a_ended == '0 || in_ended[{u_level.node_q, 1'b0}])
  `NS_ASSERT(b_ended_is_true, !step || u_level.b_ended == '0 || in_ended[{u_level.node_q, 1'b1}])

  // ---------------------------------------------------------------- induction invariants

  level_state #(
    .Nodes(Nodes),
    .Rows (Rows)
  ) u_state (
    .clk_i,
    .rst_ni,
    .in_pending_i (in_pending),
    .in_rows_i    (in_rows),
    .in_ended_i   (in_ended),
    .out_pending_i(out_pending),
    .out_rows_i   (out_rows),
    .out_ended_i  (out_ended),
    .step_i       (u_level.step_q),
    .node_i       (u_level.node_q),
    .count_i      (u_level.count_q),
    .free_i       (u_level.free_q),
    .rptr_i       (u_level.rptr_q),
    .wptr_i       (u_level.wptr_q),
    .end_i        (u_level.end_q),
    .consumed_i   (u_level.consumed_q),
    .node_done_i  (u_level.node_done_q)
  );

  `NS_ASSERT(departed_has_arrived, !departed_q || arrived_q)

  for (genvar n = 0; n < Nodes; n++) begin : gen_node
    logic [LaneBits-1:0] consumed;
    count_t [1:0] count;
    assign consumed = u_level.consumed_q[n];
    assign count = u_level.count_q[n];
    `NS_ASSERT(above_departed_has_rows, !out_above_q[n] || out_rows[n])

    for (genvar s = 0; s < 2; s++) begin : gen_stream
      localparam int unsigned Stream = 2 * n + s;
      logic mark_waits;
      logic [PtrBits-1:0] rptr;
      assign rptr   = u_level.rptr_q[n][s];
      assign mark_waits = arrived_q && !departed_q && mark_stream_q == (NodeBits + 1)'(Stream);

      `NS_ASSERT(below_is_before, !out_above_q[n] || in_ended[Stream] || in_above_q[Stream])
      `NS_ASSERT(above_has_rows, !in_above_q[Stream] || in_rows[Stream])

      logic [Rows-1:0][Lanes-1:0] live, marked, above;
      for (genvar r = 0; r < Rows; r++) begin : gen_row
        logic [PtrBits-1:0] offset;
        assign offset = PtrBits'(r) - rptr;
        for (genvar i = 0; i < Lanes; i++) begin : gen_lane
          if (s == 0) begin : gen_a
            assign {above[r][i], marked[r][i]} = u_level.gen_lane[i].mem_a[n*Rows+r];
            assign live[r][i] = count_t'(offset) < count[0] && (offset != '0 || LaneBits'(i) >= consumed);
          end else begin : gen_b
            assign {above[r][i], marked[r][i]} = u_level.gen_lane[i].mem_b[n*Rows+r];
            assign live[r][i] = count_t'(offset) < count[1] && (offset != '0 || consumed == '0 || LaneBits'(i) < consumed);
          end
          logic is_mark;
          assign is_mark = mark_waits && mark_row_q == PtrBits'(r) && mark_lane_q == LaneBits'(i);
          `NS_ASSERT(mark_is_live, !is_mark || live[r][i])
          `NS_ASSERT(marked_is_mark, !live[r][i] || marked[r][i] == is_mark)
          `NS_ASSERT(live_are_above, !(live[r][i] && out_above_q[n]) || above[r][i])
          // Next record of the stream.
          localparam bit End = i == ((s == 0) ? Lanes - 1 : 0);
          localparam int unsigned NextLane = (s == 0) ? (i + 1) % Lanes : (i + Lanes - 1) % Lanes;
          localparam int unsigned NextRow = End ? (r + 1) % Rows : r;
          logic newest;
          assign newest = End && count_t'(offset) + 1'b1 == count[s];
          `NS_ASSERT(in_order,
                     !live[r][i] || !above[r][i] || (newest ? in_above_q[Stream] : above[NextRow][NextLane]))
          `NS_ASSERT(newest_is_last, !(live[r][i] && newest) || above[r][i] == in_above_q[Stream])
        end
      end
    end
  end

  `NS_COVER(departs_last, departure && out_last && out_rows[0])
  `NS_COVER(no_rows, out_valid && out_empty)

endmodule
