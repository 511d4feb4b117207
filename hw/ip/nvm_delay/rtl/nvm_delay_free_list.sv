// SPDX-License-Identifier: Apache-2.0

// List of free indices First .. First+Count-1, all free after reset; the index freed longest ago is
// allocated first.
//
// Assumes that an index is returned only once. The indices are kept in LUT RAM; indices never used
// before come from a counter, so nothing needs initialisation.
`include "ns_assert.svh"

module nvm_delay_free_list #(
  /// Number of indices.
  parameter int unsigned Count = 64,
  /// Smallest index.
  parameter int unsigned First = 0,
  localparam int unsigned Width = $clog2(First + Count),
  localparam int unsigned PtrBits = $clog2(Count),
  localparam int unsigned CountBits = $clog2(Count + 1)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// An index is free.
  output logic                 valid_o,
  /// The next free index.
  output logic [Width-1:0]     index_o,
  /// The free index is allocated.
  input  logic                 pop_i,
  /// An index is returned.
  input  logic                 push_i,
  /// The returned index.
  input  logic [Width-1:0]     index_i,
  /// Number of indices in use.
  output logic [CountBits-1:0] used_o
);

  localparam logic [PtrBits-1:0] LastPtr = PtrBits'(Count - 1);

  (* ram_style = "distributed" *) logic [Width-1:0] mem[Count];
  logic [PtrBits-1:0] wptr_q, rptr_q;
  logic [CountBits-1:0] fresh_q, used_q;  // indices allocated at least once; indices in use
  logic fresh;

  assign fresh = fresh_q != CountBits'(Count);
  assign valid_o = used_q != CountBits'(Count);
  assign index_o = fresh ? Width'(First) + Width'(fresh_q) : mem[rptr_q];
  assign used_o = used_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
      fresh_q <= '0;
      used_q <= '0;
    end else begin
      if (pop_i && fresh) fresh_q <= fresh_q + 1'b1;
      if (pop_i && !fresh) rptr_q <= (rptr_q == LastPtr) ? '0 : rptr_q + 1'b1;
      if (push_i) wptr_q <= (wptr_q == LastPtr) ? '0 : wptr_q + 1'b1;
      if (pop_i && !push_i) used_q <= used_q + 1'b1;
      if (!pop_i && push_i) used_q <= used_q - 1'b1;
    end
  end

  always_ff @(posedge clk_i) if (push_i) mem[wptr_q] <= index_i;

  `NS_ASSERT(pop_only_free, !pop_i || valid_o)
  `NS_ASSERT(push_only_used, !push_i || used_q != '0)

endmodule
