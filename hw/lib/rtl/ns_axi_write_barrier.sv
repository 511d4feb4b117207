// Says when the writes of a bus that had been accepted before some moment have all been answered, however many follow them.
//
// Writes belong to the epoch in which their address was accepted. An epoch ends (`epoch_o`, for one cycle), while somebody waits for it,
// as soon as no write of the one before it is open. So what was accepted before a moment has been answered at the second end after it.
// Assumes answers of one ID in the order of their addresses.
`include "ns_assert.svh"

module ns_axi_write_barrier #(
  /// Bits of an ID that tell writes apart.
  parameter int unsigned IdBits = 4,
  /// Writes under way per ID.
  parameter int unsigned MaxOutstanding = 32
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  /// An address is accepted.
  input  logic              start_i,
  /// Its ID.
  input  logic [IdBits-1:0] start_id_i,
  /// A response has come.
  input  logic              end_i,
  /// Its ID.
  input  logic [IdBits-1:0] end_id_i,
  /// Somebody waits.
  input  logic              wait_i,
  /// An epoch ends; what is accepted in this cycle belongs to it.
  output logic              epoch_o
);

  localparam int unsigned CountBits = unsigned'($clog2(MaxOutstanding + 1));
  localparam int unsigned OpenBits = IdBits + CountBits;

  // Open writes of each of the two epochs: of an ID (in LUT RAM, which has no reset), and all.
  logic [1:0][2**IdBits-1:0] used_q;
  logic young_q;  // the present one; the other one is that before it
  logic [1:0][OpenBits-1:0] open_q;
  logic [2:0][CountBits-1:0] counted;
  logic [CountBits-1:0] started, old, young;
  logic ends_old, both;

  assign started = used_q[young_q][start_id_i] ? counted[0] : '0;
  assign old = used_q[!young_q][end_id_i] ? counted[1] : '0;
  assign young = used_q[young_q][end_id_i] ? counted[2] : '0;
  assign ends_old = old != '0;
  assign both = start_i && end_i && start_id_i == end_id_i && !ends_old;
  // From registers, so an epoch ends a cycle behind its last answer.
  assign epoch_o = wait_i && open_q[!young_q] == '0;

  ns_ram_multi #(
    .Width (CountBits),
    .Depth (2 ** (IdBits + 1)),
    .Writes(2),
    .Reads (3)
  ) u_counts (
    .clk_i,
    .rst_ni,
    .we_i   ({end_i && !both, start_i && !both}),
    .waddr_i({{young_q ^ ends_old, end_id_i}, {young_q, start_id_i}}),
    .wdata_i({(ends_old ? old : young) - 1'b1, started + 1'b1}),
    .raddr_i({{young_q, end_id_i}, {!young_q, end_id_i}, {young_q, start_id_i}}),
    .rdata_o(counted)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q  <= '0;
      young_q <= 1'b0;
      open_q  <= '0;
    end else begin
      if (start_i) used_q[young_q][start_id_i] <= 1'b1;
      for (int unsigned e = 0; e < 2; e++)
      open_q[e] <= open_q[e] + OpenBits'(start_i && young_q == 1'(e)) - OpenBits'(end_i && (young_q ^ ends_old) == 1'(e));
      if (epoch_o) young_q <= !young_q;
    end
  end

  `NS_ASSERT(end_only_what_started, !end_i || old != '0 || young != '0)
  `NS_ASSERT(few_enough, !start_i || both || started != CountBits'(MaxOutstanding))

endmodule
