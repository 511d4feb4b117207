// SPDX-License-Identifier: Apache-2.0

// Splits a range into bursts of 64-byte beats that end at multiples of `BurstBytes`.
//
// One burst a cycle, without a gap between ranges. Outputs come from registers.
module ns_dma_split #(
  /// Bytes of the longest burst, a power of two, 64 to 4096.
  parameter int unsigned BurstBytes = 1024,
  localparam int unsigned BeatBits = unsigned'($clog2(BurstBytes / 64)) + 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  /// Range: its first byte.
  input  logic [63:0]         addr_i,
  /// Its length, at least 1.
  input  logic [31:0]         bytes_i,
  input  logic                valid_i,
  output logic                ready_o,
  /// Burst: its first byte.
  output logic [63:0]         addr_o,
  /// Beats, 1 to BurstBytes / 64.
  output logic [BeatBits-1:0] beats_o,
  /// Offset in its last beat of the last byte.
  output logic [5:0]          end_o,
  /// First burst of its range.
  output logic                first_o,
  /// Last burst of its range.
  output logic                last_o,
  output logic                valid_o,
  input  logic                ready_i
);

  localparam int unsigned SizeBits = unsigned'($clog2(BurstBytes));

  logic valid_q, first_q;
  logic [63:0] addr_q;
  logic [31:0] left_q;
  logic [31:0] aligned_bytes;  // bytes to the next multiple of BurstBytes
  logic [SizeBits:0] burst_bytes;
  logic [SizeBits:0] end_offset;  // of the last byte, from the first beat's start

  assign aligned_bytes = 32'(BurstBytes) - 32'(addr_q[SizeBits-1:0]);
  assign last_o = left_q <= aligned_bytes;
  assign burst_bytes = last_o ? left_q[SizeBits:0] : aligned_bytes[SizeBits:0];
  assign end_offset = burst_bytes + (SizeBits + 1)'(addr_q[5:0]) - 1'b1;
  assign addr_o = addr_q;
  assign beats_o = BeatBits'(end_offset >> 6) + 1'b1;
  assign end_o = end_offset[5:0];
  assign first_o = first_q;
  assign valid_o = valid_q;
  assign ready_o = !valid_q || (ready_i && last_o);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (ready_o) valid_q <= valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (ready_o) begin
      addr_q  <= addr_i;
      left_q  <= bytes_i;
      first_q <= 1'b1;
    end else if (ready_i) begin
      addr_q  <= addr_q + 64'(aligned_bytes);
      left_q  <= left_q - aligned_bytes;
      first_q <= 1'b0;
    end
  end

  if (BurstBytes < 64 || BurstBytes > 4096 || 2 ** SizeBits != BurstBytes) begin : gen_bad_burst
    $error("ns_dma_split: BurstBytes must be a power of two from 64 to 4096");
  end

endmodule
