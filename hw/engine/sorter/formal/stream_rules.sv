// What a level of the merge tree may expect of those that give it rows, and owes to the level above: room is reserved before a row comes, and never
// more than there is; a stream ends with the row that is marked, or with the mark `none` alone.
//
// `Assume`: it is the environment that keeps the rules.
`include "ns_assert.svh"

module stream_rules #(
  parameter bit Assume = 1'b0,
  parameter int unsigned Streams = 2,
  parameter int unsigned Rows = 4,
  localparam int unsigned StreamBits = (Streams > 1) ? unsigned'($clog2(Streams)) : 1,
  localparam int unsigned CountBits = unsigned'($clog2(Rows + 1))
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,
  input  logic                              clear_i,
  input  logic [Streams-1:0]                room_i,
  input  logic [Streams-1:0]                reserve_i,
  input  logic                              valid_i,
  input  logic [StreamBits-1:0]             stream_i,
  input  logic                              last_i,
  input  logic                              none_i,
  /// Of each stream: rows that are on their way, rows have come, it has ended.
  output logic [Streams-1:0][CountBits-1:0] open_o,
  output logic [Streams-1:0]                rows_o,
  output logic [Streams-1:0]                ended_o
);

  logic [Streams-1:0] room_kept, expected, in_its_place, first, clear_at_rest;
  logic kept;

  for (genvar s = 0; s < Streams; s++) begin : gen_stream
    logic arrives;
    assign arrives = valid_i && stream_i == StreamBits'(s);
    assign room_kept[s] = !reserve_i[s] || room_i[s];
    assign expected[s] = !arrives || open_o[s] != '0;
    // No other row is on its way with the last one, and none follows.
    assign in_its_place[s] = !ended_o[s] || (!arrives && !reserve_i[s]);
    assign first[s] = !arrives || ((!none_i || (last_i && !rows_o[s])) && (!last_i || (open_o[s] == CountBits'(1) && !reserve_i[s])));
    assign clear_at_rest[s] = !clear_i || open_o[s] == '0;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        open_o[s]  <= '0;
        rows_o[s]  <= 1'b0;
        ended_o[s] <= 1'b0;
      end else if (clear_i) begin
        open_o[s]  <= '0;
        rows_o[s]  <= 1'b0;
        ended_o[s] <= 1'b0;
      end else begin
        open_o[s] <= open_o[s] + CountBits'(reserve_i[s]) - CountBits'(arrives);
        if (arrives && !none_i) rows_o[s] <= 1'b1;
        if (arrives && last_i) ended_o[s] <= 1'b1;
      end
    end
  end

  assign kept = room_kept == '1 && expected == '1 && in_its_place == '1 && first == '1 && clear_at_rest == '1;
  if (Assume) begin : gen_assume
    `NS_ASSUME(rules_kept, kept)
  end else begin : gen_assert
    `NS_ASSERT(room_is_there, clear_i || room_kept == '1)
    `NS_ASSERT(row_was_expected, expected == '1)
    `NS_ASSERT(nothing_behind_the_end, clear_i || in_its_place == '1)
    `NS_ASSERT(ends_with_one_mark, first == '1)
    `NS_ASSERT(clears_at_rest, clear_at_rest == '1)
  end

endmodule
