// SPDX-License-Identifier: Apache-2.0

// LUT RAM with several write ports and several read ports on one clock; reading takes no cycle.
//
// A word is the value last written by any port; reading the word that is being written returns the
// old one. LUT RAM has one write port, so synthesis uses ns_ram_banks. Simulation, and proofs of
// modules that use this one, take an array instead, which is smaller and faster. The proof
// ram_multi shows that both are equivalent. Assumes that no two ports write one word in the same
// cycle, and addresses below `Depth`. Does not reset or initialise its content.
`include "ns_assert.svh"

module ns_ram_multi #(
  /// Bits of a word.
  parameter int unsigned Width = 1,
  /// Number of words.
  parameter int unsigned Depth = 64,
  /// Write ports, at least 2.
  parameter int unsigned Writes = 2,
  /// Read ports.
  parameter int unsigned Reads = 1,
  localparam int unsigned AddrBits = Depth > 1 ? unsigned'($clog2(Depth)) : 1
) (
  input  logic                            clk_i,
  /// Reset, for the assertions only.
  input  logic                            rst_ni,
  /// Write enable of each write port.
  input  logic [Writes-1:0]               we_i,
  /// Address of the word that it writes.
  input  logic [Writes-1:0][AddrBits-1:0] waddr_i,
  /// Its new content.
  input  logic [Writes-1:0][Width-1:0]    wdata_i,
  /// Address of the word that each read port reads.
  input  logic [Reads-1:0][AddrBits-1:0]  raddr_i,
  /// Its content, in the same cycle.
  output logic [Reads-1:0][Width-1:0]     rdata_o
);

`ifdef NS_ASSERT_ON
  logic [Width-1:0] mem[Depth];

  for (genvar r = 0; r < Reads; r++) begin : gen_read
    assign rdata_o[r] = mem[raddr_i[r]];
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Writes; w++) if (we_i[w]) mem[waddr_i[w]] <= wdata_i[w];
  end
`else
  logic unused_reset;
  assign unused_reset = rst_ni;

  ns_ram_banks #(
    .Width (Width),
    .Depth (Depth),
    .Writes(Writes),
    .Reads (Reads)
  ) u_banks (
    .clk_i,
    .we_i,
    .waddr_i,
    .wdata_i,
    .raddr_i,
    .rdata_o
  );
`endif

  if (Width < 1 || Depth < 1 || Writes < 2 || Reads < 1) begin : gen_bad_size
    $error("ns_ram_multi: Width, Depth and Reads must be at least 1, Writes at least 2");
  end

  for (genvar a = 0; a < Writes; a++) begin : gen_check
    for (genvar b = a + 1; b < Writes; b++) begin : gen_pair
      `NS_ASSERT(one_writer_per_word, !(we_i[a] && we_i[b] && waddr_i[a] == waddr_i[b]))
    end
  end

endmodule
