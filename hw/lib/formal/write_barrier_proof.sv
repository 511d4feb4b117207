// SPDX-License-Identifier: Apache-2.0

// ns_axi_write_barrier on a bus with two IDs: responses of one ID come in order, those of different
// IDs in any order.
//
// When two epochs have ended after a moment, no write accepted before it is outstanding. While
// `wait_i` is 1 and no write of the previous epoch is outstanding, the epoch ends: so later writes
// delay nothing.
//
// The solver picks any one write and this module follows it.
`include "ns_assert.svh"

module write_barrier_proof (
  input logic clk_i,
  input logic rst_ni,
  input logic start_i,
  input logic start_id_i,
  input logic end_i,
  input logic end_id_i,
  input logic wait_i,
  input logic pick_i,
  input logic moment_i
);

  localparam int unsigned Most = 3;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic epoch_end;
  ns_axi_write_barrier #(
    .IdBits        (1),
    .MaxOutstanding(Most)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .start_i,
    .start_id_i (start_id_i),
    .end_i,
    .end_id_i   (end_id_i),
    .wait_i,
    .epoch_end_o(epoch_end)
  );

  // Writes in flight of an ID.
  logic [1:0][2:0] open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= '0;
    else
      for (int unsigned i = 0; i < 2; i++)
      open_q[i] <= open_q[i] + 3'(start_i && start_id_i == 1'(i)) - 3'(end_i && end_id_i == 1'(i));
  end
  FewEnough :
  assume property (@(posedge clk_i) !start_i || open_q[start_id_i] < 3'(Most));
  OnlyWhatStarted :
  assume property (@(posedge clk_i) !end_i || open_q[end_id_i] != '0);

  // The followed write: writes of its ID answered before it; a moment after its acceptance, and
  // epochs ended since.
  logic picked_q, open, id_q, moment_q;
  logic [2:0] ahead_q;
  logic [1:0] epochs_q;
  logic answered;
  assign answered = picked_q && end_i && end_id_i == id_q && ahead_q == '0;
  assign open = picked_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      picked_q <= 1'b0;
      id_q <= 1'b0;
      moment_q <= 1'b0;
      ahead_q <= '0;
      epochs_q <= '0;
    end else if (!picked_q) begin
      picked_q <= start_i && pick_i;
      id_q <= start_id_i;
      ahead_q <= open_q[start_id_i] - 3'(end_i && end_id_i == start_id_i);
      moment_q <= moment_i;
      epochs_q <= '0;
    end else begin
      picked_q <= !answered;
      if (end_i && end_id_i == id_q && ahead_q != '0) ahead_q <= ahead_q - 1'b1;
      moment_q <= moment_q || moment_i;
      if (moment_q && epoch_end && epochs_q != '1) epochs_q <= epochs_q + 1'b1;
    end
  end

  // In the cycle of the second end this module may still count it as outstanding: it was answered
  // one cycle earlier.
  `NS_ASSERT(answered_at_the_second_end, !(open && moment_q && epochs_q == 2'd1 && epoch_end))
  `NS_ASSERT(ends_when_all_are_answered, !(wait_i && open_q == '0) || epoch_end)

  `NS_COVER(two_ends, picked_q && $past(epoch_end) && $past(epochs_q == 2'd0 && moment_q)
            && open_q[!id_q] != '0)
  `NS_COVER(many, open_q[0] == 3'd3 && open_q[1] == 3'd3 && $past(epoch_end))

endmodule
