// SPDX-License-Identifier: Apache-2.0

// Row memory of the merge tree's leaves, and the choice of the leaf that sends the next row.
//
// Each leaf has 2 * RunRows rows. In pass 1 they are two halves: one is merged while the next chunk
// fills the other. In other passes they are one ring between the memory and the tree.
`include "ns_assert.svh"

module sorter_leaves
  import sorter_pkg::*;
#(
  /// Bits of a record.
  parameter int unsigned Width   = 96,
  /// Number of leaves, a power of two.
  parameter int unsigned Leaves  = 64,
  /// Rows in a half, a power of two.
  parameter int unsigned RunRows = 256,
  localparam int unsigned LeafBits = unsigned'($clog2(Leaves)),
  localparam int unsigned RunBits = unsigned'($clog2(RunRows))
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                          flush_i,
  /// A row is in flight. Driven by registers.
  output logic                          busy_o,

  /// Starts a merge. The first `full_leaves_i` leaves have `full_rows_i` rows, the next one has
  /// `partial_rows_i`, and the others have none.
  input  logic                          start_i,
  input  logic [LeafBits:0]             full_leaves_i,
  input  logic [31:0]                   full_rows_i,
  input  logic [31:0]                   partial_rows_i,
  /// All rows are in half `half_i` already. Else they arrive in the rings.
  input  logic                          preloaded_i,
  input  logic                          half_i,

  /// Write of a row: its leaf, and its position in the leaf's rows.
  input  logic                          write_valid_i,
  input  logic [LeafBits-1:0]           write_leaf_i,
  input  logic [RunBits:0]              write_place_i,
  input  logic [Lanes-1:0][Width-1:0]   write_row_i,
  /// The row belongs to a ring.
  input  logic                          write_ring_i,

  /// A row leaves the ring, for each leaf.
  output logic [Leaves-1:0]             release_o,

  /// Interface of sorter_tree.
  input  logic [Leaves-1:0]             room_i,
  input  logic [Leaves-1:0]             demand_i,
  output logic [Leaves-1:0]             reserve_o,
  output logic                          out_valid_o,
  output logic [LeafBits-1:0]           out_leaf_o,
  output logic                          out_last_o,
  output logic                          out_empty_o,
  output logic [Lanes-1:0][Width-1:0]   out_row_o
);

  logic [Leaves-1:0] ready, demanded, gnt;
  logic [LeafBits-1:0] leaf;
  logic gnt_valid;
  logic [Leaves-1:0][31:0] rows_left_q;
  logic [Leaves-1:0][RunBits+1:0] available_q;
  logic [Leaves-1:0][RunBits:0] place_q;
  logic [Leaves-1:0] active_q;  // its end has not been sent yet

  for (genvar l = 0; l < Leaves; l++) begin : gen_leaf
    logic [31:0] rows;
    logic arrival;
    assign rows = ((LeafBits + 1)'(l) < full_leaves_i) ? full_rows_i : ((LeafBits + 1)'(l) == full_leaves_i) ? partial_rows_i : '0;
    assign ready[l] = active_q[l] && room_i[l] && (available_q[l] != '0 || rows_left_q[l] == '0);
    assign arrival = write_valid_i && write_ring_i && write_leaf_i == LeafBits'(l);
    assign release_o[l] = gnt[l] && rows_left_q[l] != '0;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        active_q[l] <= 1'b0;
        available_q[l] <= '0;
      end else if (flush_i) begin
        active_q[l] <= 1'b0;
        available_q[l] <= '0;
      end else if (start_i) begin
        active_q[l] <= 1'b1;
        available_q[l] <= preloaded_i ? (RunBits + 2)'(rows) : '0;
      end else begin
        if (gnt[l] && rows_left_q[l] <= 32'd1) active_q[l] <= 1'b0;
        available_q[l] <= available_q[l] + (RunBits + 2)'(arrival) - (RunBits + 2)'(release_o[l]);
      end
    end

    always_ff @(posedge clk_i) begin
      if (start_i) begin
        rows_left_q[l] <= rows;
        place_q[l]     <= {preloaded_i && half_i, RunBits'(0)};
      end else if (release_o[l]) begin
        rows_left_q[l] <= rows_left_q[l] - 1'b1;
        place_q[l]     <= place_q[l] + 1'b1;
      end
    end
  end

  assign demanded = ready & demand_i;

  ns_rr_arbiter #(
    .N(Leaves)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .flush_i,
    .req_i  ((demanded != '0) ? demanded : ready),
    .next_i (1'b1),
    .gnt_o  (gnt),
    .idx_o  (leaf),
    .valid_o(gnt_valid)
  );
  assign reserve_o = gnt;

  // Three stages: choice, read, output.
  logic pick_q, read_q, pick_last_q, pick_empty_q;
  logic [LeafBits-1:0] pick_leaf_q;
  logic [RunBits:0] pick_place_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pick_q <= 1'b0;
      read_q <= 1'b0;
    end else begin
      pick_q <= gnt_valid && !flush_i;
      read_q <= pick_q && !flush_i;
    end
  end
  always_ff @(posedge clk_i) begin
    pick_leaf_q <= leaf;
    pick_place_q <= place_q[leaf];
    pick_last_q <= rows_left_q[leaf] <= 32'd1;
    pick_empty_q <= rows_left_q[leaf] == '0;
    out_leaf_o <= pick_leaf_q;
    out_last_o <= pick_last_q;
    out_empty_o <= pick_empty_q;
  end
  assign out_valid_o = read_q;
  assign busy_o = pick_q || read_q || active_q != '0;

  ns_ram_1r1w #(
    .Width(Lanes * Width),
    .Depth(2 * Leaves * RunRows),
    .Style("uram")
  ) u_rows (
    .clk_i,
    .we_i   (write_valid_i),
    .waddr_i({write_place_i[RunBits], write_leaf_i, write_place_i[RunBits-1:0]}),
    .wdata_i(write_row_i),
    .re_i   (pick_q),
    .raddr_i({pick_place_q[RunBits], pick_leaf_q, pick_place_q[RunBits-1:0]}),
    .rdata_o(out_row_o)
  );

  if (RunRows < 2 || 2 ** RunBits != RunRows || Leaves < 2 || 2 ** LeafBits != Leaves) begin : gen_bad_size
    $error("sorter_leaves: Leaves and RunRows must be powers of two of at least 2");
  end

  `NS_ASSERT(start_when_idle, !start_i || active_q == '0)

endmodule
