// SPDX-License-Identifier: Apache-2.0

// FIFO with a first-word-fall-through output, one word in and one word out per cycle, of any depth.
//
// Three variants: "reg" and "lutram" offer a word one cycle after it was written. "bram" prefetches
// the next word from a block RAM and offers the first word two cycles after it was written. "auto"
// uses registers up to 2 words, block RAM above 512 words or above 64 words and 4096 bits, LUT RAM
// between. `in_ready_o` and `out_valid_o` depend on state only. A full FIFO accepts a word one
// cycle after one has left, so the full rate needs a depth of 2, or 3 for "bram". Does not cross
// clock domains and does not reset its data.
`include "ns_assert.svh"

module ns_fifo #(
  /// Bits of a word.
  parameter int unsigned Width = 32,
  /// Capacity in words.
  parameter int unsigned Depth = 4,
  /// "auto", "reg", "lutram" or "bram".
  parameter string Style = "auto",
  localparam int unsigned CountBits = unsigned'($clog2(Depth + 1))
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// Discards all words: in the next cycle the FIFO is empty.
  input  logic                 flush_i = 1'b0,
  /// A word is offered.
  input  logic                 in_valid_i,
  /// There is room.
  output logic                 in_ready_o,
  /// The word offered.
  input  logic [Width-1:0]     in_data_i,
  /// A word is available.
  output logic                 out_valid_o,
  /// It is accepted.
  input  logic                 out_ready_i,
  /// The oldest word.
  output logic [Width-1:0]     out_data_o,
  /// Words stored.
  output logic [CountBits-1:0] count_o
);

  localparam bit Auto = Style == "auto";
  localparam bit UseBram = Style == "bram" || (Auto && (Depth > 512 || (Depth > 64 && Depth * Width > 4096)));
  localparam bit UseReg = Style == "reg" || (Auto && Depth <= 2);
  localparam int unsigned PtrBits = Depth > 1 ? unsigned'($clog2(Depth)) : 1;
  localparam logic [PtrBits-1:0] Last = PtrBits'(Depth - 1);

  logic [PtrBits-1:0] wptr_q, rptr_q;
  logic [CountBits-1:0] count_q;
  logic in_fire, out_fire;
  logic fetch;  // the read pointer advances

  assign in_fire = in_valid_i && in_ready_o;
  assign out_fire = out_valid_o && out_ready_i;
  assign in_ready_o = count_q != CountBits'(Depth);
  assign count_o = count_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
      count_q <= '0;
    end else if (flush_i) begin
      wptr_q <= '0;
      rptr_q <= '0;
      count_q <= '0;
    end else begin
      if (in_fire) wptr_q <= (wptr_q == Last) ? '0 : wptr_q + 1'b1;
      if (fetch) rptr_q <= (rptr_q == Last) ? '0 : rptr_q + 1'b1;
      if (in_fire && !out_fire) count_q <= count_q + 1'b1;
      if (!in_fire && out_fire) count_q <= count_q - 1'b1;
    end
  end

  if (UseBram) begin : gen_bram
    logic out_valid_q;

    // The RAM holds all words but the one at the output.
    assign fetch = (count_q != CountBits'(out_valid_q)) && (!out_valid_q || out_ready_i);
    assign out_valid_o = out_valid_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) out_valid_q <= 1'b0;
      else if (flush_i) out_valid_q <= 1'b0;
      else if (fetch) out_valid_q <= 1'b1;
      else if (out_ready_i) out_valid_q <= 1'b0;
    end

    ns_ram_1r1w #(
      .Width(Width),
      .Depth(Depth),
      .Style("bram")
    ) u_ram (
      .clk_i,
      .we_i   (in_fire),
      .waddr_i(wptr_q),
      .wdata_i(in_data_i),
      .re_i   (fetch),
      .raddr_i(rptr_q),
      .rdata_o(out_data_o)
    );
  end else if (UseReg) begin : gen_reg
    (* ram_style = "registers" *) logic [Width-1:0] mem[Depth];
    always_ff @(posedge clk_i) if (in_fire) mem[wptr_q] <= in_data_i;
    assign out_data_o = mem[rptr_q];
    assign out_valid_o = count_q != '0;
    assign fetch = out_fire;
  end else begin : gen_lutram
    (* ram_style = "distributed" *) logic [Width-1:0] mem[Depth];
    always_ff @(posedge clk_i) if (in_fire) mem[wptr_q] <= in_data_i;
    assign out_data_o = mem[rptr_q];
    assign out_valid_o = count_q != '0;
    assign fetch = out_fire;
  end

  if (!(Auto || Style == "reg" || Style == "lutram" || Style == "bram")) begin : gen_bad_style
    $error("ns_fifo: Style must be auto, reg, lutram or bram");
  end
  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $error("ns_fifo: Width and Depth must be at least 1");
  end

  if (Depth != (1 << CountBits) - 1) begin : gen_check_count
    `NS_ASSERT(count_in_range, count_q <= CountBits'(Depth))
  end
  `NS_ASSERT(valid_only_with_data, !out_valid_o || count_q != '0)

endmodule
