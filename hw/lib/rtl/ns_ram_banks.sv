// SPDX-License-Identifier: Apache-2.0

// Multi-port memory made of LUT RAM banks with one write port each; used through ns_ram_multi.
//
// Each write port has a separate bank, and a word is the exclusive or of its address in all banks.
// A port writes the value into its bank that yields the new word together with the other banks.
// These stay unchanged, since no two ports write one word in the same cycle. (LaForest et al.,
// Multi-Ported Memories for FPGAs via XOR, FPGA 2012.) One LUT level more than with one write port,
// and no register.
module ns_ram_banks #(
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

  // Content of each bank at the address of each write port, and of each read port.
  logic [Writes-1:0][Writes-1:0][Width-1:0] at_write;
  logic [Writes-1:0][Reads-1:0][Width-1:0] at_read;

  for (genvar b = 0; b < Writes; b++) begin : gen_bank
    (* ram_style = "distributed" *) logic [Width-1:0] bank[Depth];
    logic [Width-1:0] others;  // the exclusive or of the other banks at the address of this bank's port

    for (genvar w = 0; w < Writes; w++) begin : gen_write
      assign at_write[b][w] = bank[waddr_i[w]];
    end
    for (genvar r = 0; r < Reads; r++) begin : gen_read
      assign at_read[b][r] = bank[raddr_i[r]];
    end

    always_comb begin
      others = '0;
      for (int unsigned o = 0; o < Writes; o++) begin
        if (o != b) others ^= at_write[o][b];
      end
    end

    always_ff @(posedge clk_i) if (we_i[b]) bank[waddr_i[b]] <= wdata_i[b] ^ others;
  end

  always_comb begin
    rdata_o = '0;
    for (int unsigned b = 0; b < Writes; b++) rdata_o ^= at_read[b];
  end

endmodule
