// SPDX-License-Identifier: Apache-2.0

// Rules of a stream between levels of the merge tree. Room is reserved before a row is sent, and
// never more than there is. A stream ends with a marked row, or with the `empty` mark alone.
//
// `Assume`: the environment obeys the rules. Else they are asserted.
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
  input  logic                              empty_i,
  /// State of each stream: rows reserved but not arrived, rows have arrived, the stream has ended.
  output logic [Streams-1:0][CountBits-1:0] pending_o,
  output logic [Streams-1:0]                rows_o,
  output logic [Streams-1:0]                ended_o
);

  logic [Streams-1:0] room_respected, expected, end_respected, mark_respected, clear_respected;
  logic respected;

  for (genvar s = 0; s < Streams; s++) begin : gen_stream
    logic arrival;
    assign arrival = valid_i && stream_i == StreamBits'(s);
    assign room_respected[s] = !reserve_i[s] || room_i[s];
    assign expected[s] = !arrival || pending_o[s] != '0;
    // No other row is reserved when the last row arrives, and none follows it.
    assign end_respected[s] = !ended_o[s] || (!arrival && !reserve_i[s]);
    assign mark_respected[s] = !arrival || ((!empty_i || (last_i && !rows_o[s])) && (!last_i || (pending_o[s] == CountBits'(1) && !reserve_i[s])));
    assign clear_respected[s] = !clear_i || pending_o[s] == '0;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        pending_o[s] <= '0;
        rows_o[s]    <= 1'b0;
        ended_o[s]   <= 1'b0;
      end else if (clear_i) begin
        pending_o[s] <= '0;
        rows_o[s]    <= 1'b0;
        ended_o[s]   <= 1'b0;
      end else begin
        pending_o[s] <= pending_o[s] + CountBits'(reserve_i[s]) - CountBits'(arrival);
        if (arrival && !empty_i) rows_o[s] <= 1'b1;
        if (arrival && last_i) ended_o[s] <= 1'b1;
      end
    end
  end

  assign respected = room_respected == '1 && expected == '1 && end_respected == '1 && mark_respected == '1 && clear_respected == '1;
  if (Assume) begin : gen_assume
    `NS_ASSUME(rules_respected, respected)
  end else begin : gen_assert
    `NS_ASSERT(reserve_has_room, clear_i || room_respected == '1)
    `NS_ASSERT(row_is_reserved, expected == '1)
    `NS_ASSERT(no_row_after_end, clear_i || end_respected == '1)
    `NS_ASSERT(end_has_one_mark, mark_respected == '1)
    `NS_ASSERT(clear_when_idle, clear_respected == '1)
  end

endmodule
