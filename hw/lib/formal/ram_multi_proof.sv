// SPDX-License-Identifier: Apache-2.0

// ns_ram_banks, used by ns_ram_multi in synthesis, and the array of ns_ram_multi, used in
// simulation, are equivalent.
//
// From the first write of a word on, both return the same value, which is the last one written.
`include "ns_assert.svh"

module ram_multi_proof #(
  /// Write ports.
  parameter int unsigned Writes = 3
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic [Writes-1:0]       we_i,
  input logic [Writes-1:0][1:0]  waddr_i,
  input logic [Writes-1:0][1:0]  wdata_i,
  input logic [1:0][1:0]         raddr_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  logic [1:0][1:0] rdata, banks_rdata;

  ns_ram_multi #(
    .Width (2),
    .Depth (4),
    .Writes(Writes),
    .Reads (2)
  ) u_ram (
    .clk_i,
    .rst_ni,
    .we_i,
    .waddr_i,
    .wdata_i,
    .raddr_i,
    .rdata_o(rdata)
  );

  ns_ram_banks #(
    .Width (2),
    .Depth (4),
    .Writes(Writes),
    .Reads (2)
  ) u_banks (
    .clk_i,
    .we_i,
    .waddr_i,
    .wdata_i,
    .raddr_i,
    .rdata_o(banks_rdata)
  );

  // The specified memory; words not written yet have any value.
  logic [1:0] word_q[4];
  logic [3:0] written_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      written_q <= '0;
    end else begin
      for (int w = 0; w < Writes; w++) begin
        if (we_i[w]) begin
          written_q[waddr_i[w]] <= 1'b1;
          word_q[waddr_i[w]] <= wdata_i[w];
        end
      end
    end
  end

  for (genvar a = 0; a < Writes; a++) begin : gen_first
    for (genvar b = a + 1; b < Writes; b++) begin : gen_second
      `NS_ASSUME(one_writer_per_word, !(we_i[a] && we_i[b] && waddr_i[a] == waddr_i[b]))
    end
  end

  for (genvar r = 0; r < 2; r++) begin : gen_read
    `NS_ASSERT(reads_what_was_written, !written_q[raddr_i[r]] || rdata[r] == word_q[raddr_i[r]])
    `NS_ASSERT(banks_read_it_too, !written_q[raddr_i[r]] || banks_rdata[r] == word_q[raddr_i[r]])
  end

  `NS_COVER(all_words_of_all_ports, written_q == '1 && we_i == '1)

endmodule
