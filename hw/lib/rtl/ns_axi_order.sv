// Keeps transactions of one AXI ID on one target at a time, so that their responses cannot overtake each other.
//
// A counter per ID, and the target it counts for.
// Assumes that every transaction started ends once, with the same ID.
`include "ns_assert.svh"

module ns_axi_order #(
  /// Bits of a target number.
  parameter int unsigned TargetBits = 2,
  /// Bits of an ID.
  parameter int unsigned IdBits = 4,
  /// Transactions under way per ID.
  parameter int unsigned MaxOutstanding = 32
) (
  /// Clock.
  input  logic                  clk_i,
  /// Reset.
  input  logic                  rst_ni,
  /// ID of the transaction that wants to start.
  input  logic [IdBits-1:0]     id_i,
  /// Its target.
  input  logic [TargetBits-1:0] target_i,
  /// It may start.
  output logic                  ok_o,
  /// It starts.
  input  logic                  start_i,
  /// A transaction ends.
  input  logic                  end_i,
  /// Its ID.
  input  logic [IdBits-1:0]     end_id_i
);

  localparam int unsigned CountBits = unsigned'($clog2(MaxOutstanding + 1));
  localparam int unsigned Entries = 1 << IdBits;

  logic [CountBits-1:0] count_q[Entries];
  logic [TargetBits-1:0] target_q[Entries];
  logic [CountBits-1:0] count;

  assign count = count_q[id_i];
  assign ok_o = count == '0 || (target_q[id_i] == target_i && count != CountBits'(MaxOutstanding));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Entries; i++) count_q[i] <= '0;
    end else if (!(start_i && end_i && id_i == end_id_i)) begin
      if (start_i) count_q[id_i] <= count + 1'b1;
      if (end_i) count_q[end_id_i] <= count_q[end_id_i] - 1'b1;
    end
  end

  always_ff @(posedge clk_i) if (start_i) target_q[id_i] <= target_i;

  if (MaxOutstanding < 1) begin : gen_bad_max
    $error("ns_axi_order: MaxOutstanding must be at least 1");
  end

  `NS_ASSERT(start_only_if_ok, !start_i || ok_o)
  `NS_ASSERT(end_only_what_started, !end_i || count_q[end_id_i] != '0)

endmodule
