// SPDX-License-Identifier: Apache-2.0

// Merges runs in pairs, one row per cycle: each second run with the run before it. A cascade of
// these levels turns runs of one row into long runs.
//
// The rows of a run arrive in succession. The last row of a run and of a chunk are marked. The last
// run of a chunk can be shorter, or have no partner.
`include "ns_assert.svh"

module sorter_pair
  import sorter_pkg::*;
#(
  /// Bits of a record. Records are in ascending order.
  parameter int unsigned Width = 96,
  /// Rows of an input run, a power of two.
  parameter int unsigned RunRows = 1
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                        flush_i,
  /// Rows are in flight. Driven by registers.
  output logic                        busy_o,
  /// Input row, with marks for the last row of its run and of its chunk.
  input  logic                        in_valid_i,
  output logic                        in_ready_o,
  input  logic                        in_last_i,
  input  logic                        in_end_i,
  input  logic [Lanes-1:0][Width-1:0] in_row_i,
  /// Output row of a merged run, likewise.
  output logic                        out_valid_o,
  input  logic                        out_ready_i,
  output logic                        out_last_o,
  output logic                        out_end_o,
  output logic [Lanes-1:0][Width-1:0] out_row_o
);

  // One run is buffered while the other one arrives.
  localparam int unsigned Rows = (RunRows < 4) ? 8 : 2 * RunRows;
  localparam int unsigned PtrBits = unsigned'($clog2(Rows));
  // A chosen row is in the network or in the queue downstream.
  localparam int unsigned Queue = 8;
  localparam int unsigned QueueBits = unsigned'($clog2(Queue + 1));

  // `absent` stands for the missing second run of a chunk with an odd number of runs.
  typedef struct packed {
    logic absent;
    logic last;
    logic last_of_chunk;
  } mark_t;

  logic second_run_q;  // the arriving run is the second one of its pair
  logic [1:0] write, release_row;
  mark_t [1:0] mark;
  logic [1:0][PtrBits-1:0] wptr_q, rptr_q;
  logic [1:0][PtrBits:0] count_q;
  mark_t [1:0] head;
  (* ram_style = "distributed" *) mark_t marks_a[Rows];
  (* ram_style = "distributed" *) mark_t marks_b[Rows];

  // ---------------------------------------------------------------- input

  logic in_fire, unpaired;
  assign in_ready_o = count_q[0] != (PtrBits + 1)'(Rows) && count_q[1] != (PtrBits + 1)'(Rows);
  assign in_fire = in_valid_i && in_ready_o;
  assign unpaired = in_fire && in_end_i && !second_run_q;
  assign write = {in_fire && (second_run_q || unpaired), in_fire && !second_run_q};
  assign mark[0] = '{absent: 1'b0, last: in_last_i, last_of_chunk: in_end_i};
  assign mark[1] = '{absent: unpaired, last: in_last_i, last_of_chunk: in_end_i};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) second_run_q <= 1'b0;
    else if (flush_i) second_run_q <= 1'b0;
    else if (in_fire && in_last_i) second_run_q <= !second_run_q && !in_end_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
    end else if (flush_i) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
    end else begin
      for (int unsigned s = 0; s < 2; s++) begin
        if (write[s]) wptr_q[s] <= wptr_q[s] + 1'b1;
        if (release_row[s]) rptr_q[s] <= rptr_q[s] + 1'b1;
        count_q[s] <= count_q[s] + (PtrBits + 1)'(write[s]) - (PtrBits + 1)'(release_row[s]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (write[0]) marks_a[wptr_q[0]] <= mark[0];
    if (write[1]) marks_b[wptr_q[1]] <= mark[1];
  end
  assign head[0] = marks_a[rptr_q[0]];
  assign head[1] = marks_b[rptr_q[1]];

  // ---------------------------------------------------------------- step

  logic [LaneBits-1:0] consumed_q, consumed;
  logic [1:0] done_q, done, ready, row_done, run_ended;  // run_ended: consumed completely
  logic [Lanes-1:0][Width-1:0] a, b, chosen;
  logic [Lanes-1:0] a_ended, b_ended;
  logic step, last, room;
  logic [QueueBits-1:0] in_flight_q;

  // A second row is needed once a part of the first one is consumed, unless the run ends there.
  for (genvar s = 0; s < 2; s++) begin : gen_ready
    assign ready[s] = done_q[s] || (count_q[s] != '0 && (consumed_q == '0 || head[s].last || count_q[s] != (PtrBits + 1)'(1)));
  end
  assign step = ready == '1 && room;

  // Lanes of the first run whose record of the current row has been consumed.
  logic [Lanes-1:0] wrapped;
  assign wrapped = ~(Lanes'('1) << consumed_q);

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    (* ram_style = "distributed" *) logic [Width-1:0] mem_a[Rows];
    (* ram_style = "distributed" *) logic [Width-1:0] mem_b[Rows];
    logic a_next, b_next;

    always_ff @(posedge clk_i) begin
      if (write[0]) mem_a[wptr_q[0]] <= in_row_i[i];
      if (write[1]) mem_b[wptr_q[1]] <= in_row_i[Lanes-1-i];
    end
    assign a_next = wrapped[i];
    assign b_next = wrapped != '0 && !wrapped[i];
    assign a[i] = mem_a[rptr_q[0]+PtrBits'(a_next)];
    assign b[i] = mem_b[rptr_q[1]+PtrBits'(b_next)];
    assign a_ended[i] = done_q[0] || (a_next && head[0].last);
    assign b_ended[i] = done_q[1] || head[1].absent || (b_next && head[1].last);
  end

  sorter_select #(
    .Width(Width)
  ) u_select (
    .consumed_i  (consumed_q),
    .a_i         (a),
    .a_ended_i   (a_ended),
    .b_i         (b),
    .b_ended_i   (b_ended),
    .row_o       (chosen),
    .consumed_o  (consumed),
    .a_row_done_o(row_done[0]),
    .b_row_done_o(row_done[1])
  );

  assign run_ended[0] = !done_q[0] && row_done[0] && head[0].last;
  assign run_ended[1] = !done_q[1] && (head[1].absent || (row_done[1] && head[1].last));
  assign done = done_q | run_ended;
  assign last = done == '1;
  assign release_row[0] = step && !done_q[0] && row_done[0];
  assign release_row[1] = step && !done_q[1] && (row_done[1] || head[1].absent);

  // The second run, or the mark in its place, is the last one of its chunk.
  logic chunk_end_q, chunk_ends;
  assign chunk_ends = (run_ended[1] && head[1].last_of_chunk) || chunk_end_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      consumed_q  <= '0;
      done_q      <= '0;
      chunk_end_q <= 1'b0;
    end else if (flush_i) begin
      consumed_q  <= '0;
      done_q      <= '0;
      chunk_end_q <= 1'b0;
    end else if (step) begin
      consumed_q  <= consumed;
      done_q      <= last ? '0 : done;
      chunk_end_q <= last ? 1'b0 : chunk_ends;
    end
  end

  // ---------------------------------------------------------------- output

  logic sorted_valid;
  logic [1:0] sorted_marks;
  logic [Lanes-1:0][Width-1:0] sorted;

  sorter_network #(
    .Width  (Width),
    .Lanes  (Lanes),
    .Full   (1'b0),
    .TagBits(2)
  ) u_network (
    .clk_i,
    .rst_ni,
    .flush_i,
    .busy_o (),
    .valid_i(step),
    .tag_i  ({last, last && chunk_ends}),
    .row_i  (chosen),
    .valid_o(sorted_valid),
    .tag_o  (sorted_marks),
    .row_o  (sorted)
  );

  ns_fifo #(
    .Width(2 + Lanes * Width),
    .Depth(Queue),
    .Style("lutram")
  ) u_out (
    .clk_i,
    .rst_ni,
    .flush_i,
    .in_valid_i(sorted_valid),
    .in_ready_o(),
    .in_data_i ({sorted_marks, sorted}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o({out_last_o, out_end_o, out_row_o}),
    .count_o   ()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_flight_q <= '0;
    else if (flush_i) in_flight_q <= '0;
    else in_flight_q <= in_flight_q + QueueBits'(step) - QueueBits'(out_valid_o && out_ready_i);
  end
  assign room = in_flight_q != QueueBits'(Queue);
  assign busy_o = count_q != '0 || in_flight_q != '0 || done_q != '0;

  `NS_ASSERT(run_ends_aligned, !step || !last || consumed == '0)
  `NS_ASSERT(chunk_end_is_run_end, !in_fire || !in_end_i || in_last_i)

endmodule
