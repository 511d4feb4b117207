// SPDX-License-Identifier: Apache-2.0

// AXI4-Lite slave of an engine's registers: at most one access per cycle.
//
// If both a read and a write wait, reads and writes take turns. An access is performed in the cycle
// after its last handshake, and answered in the next one, always with OKAY. Up to two accesses wait
// for their responses to be accepted; responses are in the order of the accesses.
`include "ns_assert.svh"

module engine_axil #(
  /// Address bits that are decoded. Higher ones are ignored.
  parameter int unsigned AddrBits = 12
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  /// An address, data or a response is held. Driven by registers.
  output logic                busy_o,
  ns_axil_if.slave            s_axil,
  /// A write, for one cycle.
  output logic                write_o,
  /// Number of the word that is written or read.
  output logic [AddrBits-3:0] word_o,
  /// Write data, and its bits that are enabled.
  output logic [31:0]         wdata_o,
  output logic [31:0]         wmask_o,
  /// Contents of that word.
  input  logic [31:0]         rdata_i
);

  localparam int unsigned MaxOutstanding = 2;

  logic ar_valid_q, aw_valid_q, w_valid_q;
  logic [AddrBits-3:0] ar_word_q, aw_word_q;
  logic [31:0] wdata_q;
  logic [3:0] wstrb_q;
  logic last_was_read_q, write_ready, issue, read;

  // Responses: a ring of two. The counters have a bit more than an index.
  logic [1:0] issued_q, answered_q;
  logic is_write_q[MaxOutstanding];
  logic [31:0] rdata_q[MaxOutstanding];
  logic response_valid, response_fire;

  assign issue = issued_q - answered_q != 2'(MaxOutstanding);
  assign write_ready = aw_valid_q && w_valid_q;
  assign read = issue && ar_valid_q && !(last_was_read_q && write_ready);
  assign write_o = issue && write_ready && !read;
  assign word_o = read ? ar_word_q : aw_word_q;
  assign wdata_o = wdata_q;
  for (genvar b = 0; b < 4; b++) begin : gen_mask
    assign wmask_o[8*b+:8] = {8{wstrb_q[b]}};
  end

  assign s_axil.arready = !ar_valid_q || read;
  assign s_axil.awready = !aw_valid_q || write_o;
  assign s_axil.wready = !w_valid_q || write_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ar_valid_q      <= 1'b0;
      aw_valid_q      <= 1'b0;
      w_valid_q       <= 1'b0;
      last_was_read_q <= 1'b0;
    end else begin
      if (s_axil.arready) ar_valid_q <= s_axil.arvalid;
      if (s_axil.awready) aw_valid_q <= s_axil.awvalid;
      if (s_axil.wready) w_valid_q <= s_axil.wvalid;
      if (read || write_o) last_was_read_q <= read;
    end
  end

  always_ff @(posedge clk_i) begin
    if (s_axil.arready) ar_word_q <= s_axil.araddr[AddrBits-1:2];
    if (s_axil.awready) aw_word_q <= s_axil.awaddr[AddrBits-1:2];
    if (s_axil.wready) begin
      wdata_q <= s_axil.wdata;
      wstrb_q <= s_axil.wstrb;
    end
  end

  assign response_valid = issued_q != answered_q;
  assign s_axil.bvalid = response_valid && is_write_q[answered_q[0]];
  assign s_axil.rvalid = response_valid && !is_write_q[answered_q[0]];
  assign s_axil.rdata = rdata_q[answered_q[0]];
  assign s_axil.bresp = '0;
  assign s_axil.rresp = '0;
  assign response_fire = (s_axil.bvalid && s_axil.bready) || (s_axil.rvalid && s_axil.rready);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      issued_q   <= '0;
      answered_q <= '0;
    end else begin
      issued_q   <= issued_q + 2'(read || write_o);
      answered_q <= answered_q + 2'(response_fire);
    end
  end

  always_ff @(posedge clk_i) begin
    if (read || write_o) is_write_q[issued_q[0]] <= write_o;
    if (read) rdata_q[issued_q[0]] <= rdata_i;
  end

  assign busy_o = ar_valid_q || aw_valid_q || w_valid_q || response_valid;

  logic unused;
  assign unused = ^{s_axil.awaddr, s_axil.araddr};

  `NS_ASSERT(one_access, !(read && write_o))
  `NS_ASSERT(bounded, issued_q - answered_q <= 2'(MaxOutstanding))

endmodule
