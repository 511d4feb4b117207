// SPDX-License-Identifier: Apache-2.0

// Write barrier: reports when all writes accepted before a moment have been answered, however many
// follow.
//
// A write belongs to the epoch in which its address was accepted. While `wait_i` is 1, an epoch
// ends (`epoch_end_o`, for one cycle) once no write of the epoch before it is outstanding. So all
// writes accepted before a moment have been answered at the second epoch end after it. Assumes
// responses of one ID in the order of their addresses.
`include "ns_assert.svh"

module ns_axi_write_barrier #(
  /// Bits of an ID that distinguish writes.
  parameter int unsigned IdBits = 4,
  /// Writes in flight per ID.
  parameter int unsigned MaxOutstanding = 32
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  /// An address is accepted.
  input  logic              start_i,
  /// Its ID.
  input  logic [IdBits-1:0] start_id_i,
  /// A response is accepted.
  input  logic              end_i,
  /// Its ID.
  input  logic [IdBits-1:0] end_id_i,
  /// An epoch end is awaited.
  input  logic              wait_i,
  /// An epoch ends; an address accepted in this cycle belongs to it.
  output logic              epoch_end_o
);

  localparam int unsigned CountBits = unsigned'($clog2(MaxOutstanding + 1));
  localparam int unsigned OpenBits = IdBits + CountBits;

  // Outstanding writes of the two epochs: of an ID (in LUT RAM, which has no reset), and in all.
  logic [1:0][2**IdBits-1:0] used_q;
  logic current_q;  // the current epoch; the other one is the previous epoch
  logic [1:0][OpenBits-1:0] open_q;
  logic [2:0][CountBits-1:0] counted;
  logic [CountBits-1:0] started, previous, current;
  logic end_is_previous, start_and_end;

  assign started = used_q[current_q][start_id_i] ? counted[0] : '0;
  assign previous = used_q[!current_q][end_id_i] ? counted[1] : '0;
  assign current = used_q[current_q][end_id_i] ? counted[2] : '0;
  assign end_is_previous = previous != '0;
  assign start_and_end = start_i && end_i && start_id_i == end_id_i && !end_is_previous;
  // From registers, so an epoch ends one cycle after its last response.
  assign epoch_end_o = wait_i && open_q[!current_q] == '0;

  ns_ram_multi #(
    .Width (CountBits),
    .Depth (2 ** (IdBits + 1)),
    .Writes(2),
    .Reads (3)
  ) u_counts (
    .clk_i,
    .rst_ni,
    .we_i   ({end_i && !start_and_end, start_i && !start_and_end}),
    .waddr_i({{current_q ^ end_is_previous, end_id_i}, {current_q, start_id_i}}),
    .wdata_i({(end_is_previous ? previous : current) - 1'b1, started + 1'b1}),
    .raddr_i({{current_q, end_id_i}, {!current_q, end_id_i}, {current_q, start_id_i}}),
    .rdata_o(counted)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q  <= '0;
      current_q <= 1'b0;
      open_q  <= '0;
    end else begin
      if (start_i) used_q[current_q][start_id_i] <= 1'b1;
      for (int unsigned e = 0; e < 2; e++)
      open_q[e] <= open_q[e] + OpenBits'(start_i && current_q == 1'(e)) - OpenBits'(end_i && (current_q ^ end_is_previous) == 1'(e));
      if (epoch_end_o) current_q <= !current_q;
    end
  end

  `NS_ASSERT(end_has_started, !end_i || previous != '0 || current != '0)
  `NS_ASSERT(count_does_not_wrap,
             !start_i || start_and_end || started != CountBits'(MaxOutstanding))

endmodule
