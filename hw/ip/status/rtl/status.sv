// SPDX-License-Identifier: Apache-2.0

// Status block: a read-only table of the device's blocks, as an AXI4-Lite slave; layout in
// docs/hardware/status.md.
//
// The content comes from parameters, so the table is a ROM. Writes are accepted and have no effect;
// addresses after the table read 0. One read and one write at a time. Outputs come from registers.
// Assumes that its parameters are correct: the top that instantiates the blocks writes the table.
`include "ns_assert.svh"

module status
  import ns_axi_pkg::*;
#(
  /// Clock in kHz.
  parameter int unsigned ClockKhz = 250_000,
  /// Bytes of the media.
  parameter longint unsigned MediaBytes = 64'h4000_0000,
  /// Memory channels.
  parameter int unsigned NumChannels = 1,
  /// Bytes of a granule.
  parameter int unsigned Granule = 4096,
  /// Blocks listed, 1 to 120.
  parameter int unsigned NumBlocks = 1,
  /// Eight words per block, the first in the low bits: type, version, instance, BAR, offset, size,
  /// capabilities 0 and 1.
  parameter logic [NumBlocks-1:0][7:0][31:0] Blocks = '0
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// AXI4-Lite slave.
  ns_axil_if.slave s_axil
);

  localparam logic [31:0] Magic = 32'h4E53_4456;  // "NSDV"
  localparam logic [31:0] LayoutVersion = 32'd1;
  localparam int unsigned FirstBlock = 8;  // in units of 32 bytes: 0x100
  localparam logic [31:0] MediaLow = 32'(MediaBytes);
  localparam logic [31:0] MediaHigh = 32'(MediaBytes >> 32);

  function automatic logic [31:0] word(logic [9:0] index);
    logic [6:0] line;
    line = index[9:3];
    word = '0;
    if (line == '0) begin
      unique case (index[2:0])
        3'd0: word = Magic;
        3'd1: word = LayoutVersion;
        3'd2: word = 32'(NumBlocks);
        3'd3: word = 32'(ClockKhz);
        3'd4: word = MediaLow;
        3'd5: word = MediaHigh;
        3'd6: word = 32'(NumChannels);
        3'd7: word = 32'(Granule);
        default: word = '0;
      endcase
    end
    for (int unsigned i = 0; i < NumBlocks; i++) begin
      if (line == 7'(FirstBlock + i)) word = Blocks[i][index[2:0]];
    end
  endfunction

  logic rvalid_q, bvalid_q, awready_q, wready_q;
  logic [31:0] rdata_q;

  assign s_axil.arready = !rvalid_q;
  assign s_axil.rvalid = rvalid_q;
  assign s_axil.rdata = rdata_q;
  assign s_axil.rresp = RespOkay;
  assign s_axil.awready = awready_q;
  assign s_axil.wready = wready_q;
  assign s_axil.bvalid = bvalid_q;
  assign s_axil.bresp = RespOkay;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rvalid_q <= 1'b0;
      bvalid_q <= 1'b0;
      awready_q <= 1'b1;
      wready_q <= 1'b1;
    end else begin
      if (!rvalid_q) rvalid_q <= s_axil.arvalid;
      else if (s_axil.rready) rvalid_q <= 1'b0;

      if (s_axil.awvalid) awready_q <= 1'b0;
      if (s_axil.wvalid) wready_q <= 1'b0;
      if (!awready_q && !wready_q && !bvalid_q) bvalid_q <= 1'b1;
      if (bvalid_q && s_axil.bready) begin
        bvalid_q  <= 1'b0;
        awready_q <= 1'b1;
        wready_q  <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) if (!rvalid_q && s_axil.arvalid) rdata_q <= word(s_axil.araddr[11:2]);

  logic unused;
  assign unused = ^{s_axil.awaddr, s_axil.wdata, s_axil.wstrb, s_axil.araddr[1:0]};

  if (NumBlocks < 1 || NumBlocks > 120) begin : gen_bad_blocks
    $error("status: NumBlocks must be 1 to 120");
  end

  `NS_ASSERT(response_after_both, !bvalid_q || (!awready_q && !wready_q))

endmodule
