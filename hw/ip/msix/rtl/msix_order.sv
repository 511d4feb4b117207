// SPDX-License-Identifier: Apache-2.0

// Orders the interrupt requests of a bus master after its writes: each request is held until the
// earlier writes have passed the host port.
//
// Writes beyond the host port are posted in order, so the message follows the data. Requests that
// arrive while earlier ones wait are released together, after the writes before the last of them.
`include "ns_assert.svh"

module msix_order #(
  /// Number of vectors.
  parameter int unsigned NumVectors = 1,
  /// Most write addresses between the master's bus and the host port.
  parameter int unsigned MaxWrites  = 255
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic                  busy_o,
  /// A rising edge is a request. From registers.
  input  logic [NumVectors-1:0] irq_i,
  /// The master's bus accepts a write address.
  input  logic                  enter_i,
  /// A write address passes the host port.
  input  logic                  leave_i,
  /// Requests that may become messages, for one cycle. From registers.
  output logic [NumVectors-1:0] raise_o
);

  localparam int unsigned CountBits = unsigned'($clog2(MaxWrites + 1));

  logic [NumVectors-1:0] irq_q, new_q, waiting_q, raise_q;
  logic [CountBits-1:0] count_q, count_d, left_q;
  logic start, done;

  assign count_d = count_q + CountBits'(enter_i) - CountBits'(leave_i);
  assign start = waiting_q == '0 && new_q != '0;
  assign done = waiting_q != '0 && left_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      irq_q     <= '0;
      new_q     <= '0;
      waiting_q <= '0;
      raise_q   <= '0;
      count_q   <= '0;
      left_q    <= '0;
    end else begin
      count_q <= count_d;
      irq_q   <= irq_i;
      new_q   <= (start ? '0 : new_q) | (irq_i & ~irq_q);
      raise_q <= done ? waiting_q : '0;
      if (start) begin
        waiting_q <= new_q;
        left_q    <= count_d;
      end else begin
        if (done) waiting_q <= '0;
        if (leave_i && left_q != '0) left_q <= left_q - 1'b1;
      end
    end
  end

  assign raise_o = raise_q;
  assign busy_o = irq_i != irq_q || new_q != '0 || waiting_q != '0 || raise_q != '0;

  `NS_ASSERT(count_does_not_wrap, !(enter_i && !leave_i) || count_q != CountBits'(MaxWrites))
  `NS_ASSERT(leaves_after_entering, !leave_i || count_q != '0 || enter_i)

endmodule
