// SPDX-License-Identifier: Apache-2.0

// Holds the reads of units to a common rate. Units take turns; the turn stays with a unit that
// requests.
`include "ns_assert.svh"

module nearpm_rate #(
  /// Units that share the rate.
  parameter int unsigned Units = 1,
  /// Lines in 1024 cycles, 1 to 1024. 1024: as many as the bus carries.
  parameter int unsigned Lines = 1024,
  /// Bytes of a burst.
  parameter int unsigned BurstBytes = 512
) (
  // Without a limit they are not used.
  // verilator lint_off UNUSEDSIGNAL
  input  logic                  clk_i,
  input  logic                  rst_ni,
  /// A unit has the address of a read; it has been accepted; its beats - 1.
  input  logic [Units-1:0]      request_i,
  input  logic [Units-1:0]      accepted_i,
  input  logic [Units-1:0][7:0] len_i,
  // verilator lint_on UNUSEDSIGNAL
  /// Reads of the unit may pass.
  output logic [Units-1:0]      open_o
);

  if (Lines < 1 || Lines > 1024) begin : gen_bad_lines
    $error("nearpm_rate: Lines has to be 1 to 1024");
  end

  if (Lines == 1024) begin : gen_full
    assign open_o = '1;
  end else begin : gen_limit
    localparam int unsigned AheadBits = 10 + unsigned'($clog2(BurstBytes / 64)) + 1;

    // Lines read ahead of the permitted rate, in 1/1024 cycles. A burst passes when it is 0.
    logic [AheadBits-1:0] ahead_q;
    logic [Units-1:0] turn_q, turn_next;
    logic [7:0] len;

    assign turn_next = (turn_q << 1) | (turn_q >> (Units - 1));
    assign open_o = (ahead_q == '0) ? turn_q : '0;

    always_comb begin
      len = '0;
      for (int unsigned u = 0; u < Units; u++) if (turn_q[u]) len = len_i[u];
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        ahead_q <= '0;
        turn_q  <= Units'(1);
      end else begin
        if (accepted_i != '0)
          ahead_q <= AheadBits'((AheadBits'(len) + 1'b1) << 10) - AheadBits'(Lines);
        else if (ahead_q > AheadBits'(Lines)) ahead_q <= ahead_q - AheadBits'(Lines);
        else ahead_q <= '0;
        if (accepted_i != '0 || (request_i & turn_q) == '0) turn_q <= turn_next;
      end
    end

    `NS_ASSERT(one_turn, $onehot(turn_q))
    `NS_ASSERT(accepted_in_turn, (accepted_i & ~open_o) == '0)
    `NS_ASSERT(request_stays, !$past(rst_ni) || ($past(request_i & ~accepted_i) & ~request_i) == '0)
  end

endmodule
