// ns_ram_banks, which ns_ram_multi is in synthesis, and ns_ram_multi, as it is in simulation, give the same from the first write of a
// word on, and both give what was written last.
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

  // The memory as it is meant; what has not been written yet may be anything.
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
      `NS_ASSUME(one_writer_a_word, !(we_i[a] && we_i[b] && waddr_i[a] == waddr_i[b]))
    end
  end

  for (genvar r = 0; r < 2; r++) begin : gen_read
    `NS_ASSERT(reads_what_was_written, !written_q[raddr_i[r]] || rdata[r] == word_q[raddr_i[r]])
    `NS_ASSERT(banks_read_it_too, !written_q[raddr_i[r]] || banks_rdata[r] == word_q[raddr_i[r]])
  end

  `NS_COVER(all_words_of_all_ports, written_q == '1 && we_i == '1)

endmodule
