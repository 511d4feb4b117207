// SPDX-License-Identifier: Apache-2.0

// Memory with one write and one read port on one clock, mapped to registers, LUT RAM, block RAM or
// UltraRAM.
//
// Reading takes one cycle; `rdata_o` keeps its value while `re_i` is 0. Reading the word that is
// being written returns the old one. Assumes addresses below `Depth`. Does not reset or initialise
// its content, and has no byte strobes.
module ns_ram_1r1w #(
  /// Bits of a word.
  parameter int unsigned Width = 32,
  /// Number of words.
  parameter int unsigned Depth = 512,
  /// "auto" (the synthesis tool chooses), "reg", "lutram", "bram" or "uram".
  parameter string Style = "auto",
  localparam int unsigned AddrBits = Depth > 1 ? unsigned'($clog2(Depth)) : 1
) (
  input  logic                clk_i,
  /// Write enable.
  input  logic                we_i,
  /// Word to write.
  input  logic [AddrBits-1:0] waddr_i,
  /// Its new content.
  input  logic [Width-1:0]    wdata_i,
  /// Read enable.
  input  logic                re_i,
  /// Word to read.
  input  logic [AddrBits-1:0] raddr_i,
  /// Its content, one cycle later.
  output logic [Width-1:0]    rdata_o
);

  // An attribute cannot depend on a parameter in every tool, so there is one declaration per style.
  if (Style == "reg") begin : gen_reg
    (* ram_style = "registers" *) logic [Width-1:0] mem[Depth];
    always_ff @(posedge clk_i) begin
      if (we_i) mem[waddr_i] <= wdata_i;
      if (re_i) rdata_o <= mem[raddr_i];
    end
  end else if (Style == "lutram") begin : gen_lutram
    (* ram_style = "distributed" *) logic [Width-1:0] mem[Depth];
    always_ff @(posedge clk_i) begin
      if (we_i) mem[waddr_i] <= wdata_i;
      if (re_i) rdata_o <= mem[raddr_i];
    end
  end else if (Style == "bram") begin : gen_bram
    (* ram_style = "block" *) logic [Width-1:0] mem[Depth];
    always_ff @(posedge clk_i) begin
      if (we_i) mem[waddr_i] <= wdata_i;
      if (re_i) rdata_o <= mem[raddr_i];
    end
  end else if (Style == "uram") begin : gen_uram
    (* ram_style = "ultra" *) logic [Width-1:0] mem[Depth];
    always_ff @(posedge clk_i) begin
      if (we_i) mem[waddr_i] <= wdata_i;
      if (re_i) rdata_o <= mem[raddr_i];
    end
  end else if (Style == "auto") begin : gen_auto
    logic [Width-1:0] mem[Depth];
    always_ff @(posedge clk_i) begin
      if (we_i) mem[waddr_i] <= wdata_i;
      if (re_i) rdata_o <= mem[raddr_i];
    end
  end else begin : gen_bad_style
    $error("ns_ram_1r1w: Style must be auto, reg, lutram, bram or uram");
  end

  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $error("ns_ram_1r1w: Width and Depth must be at least 1");
  end

endmodule
