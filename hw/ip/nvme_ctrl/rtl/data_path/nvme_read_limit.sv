// SPDX-License-Identifier: Apache-2.0

// Shares the host's read bandwidth among the movers of the channels: round robin, and only while
// fewer than `Bytes` are outstanding.
//
// More reads in flight than the round trip needs do not raise the bandwidth and delay every other
// read of the device. The limit is checked before each burst: up to one burst of 4 KiB more may be
// outstanding.
`include "ns_assert.svh"

module nvme_read_limit
  import ns_axi_pkg::*;
#(
  /// Ports.
  parameter int unsigned NumPorts = 4,
  /// Bytes outstanding at which no further burst starts.
  parameter int unsigned Bytes    = 32768
) (
  input logic clk_i,
  input logic rst_ni,

  /// Ports with a read address.
  input  logic [NumPorts-1:0] ar_req_i,
  /// The port whose turn it is.
  output logic [NumPorts-1:0] ar_grant_o,
  /// The granted address may be sent.
  output logic                ar_open_o,
  /// Addresses.
  input  ax_t  [NumPorts-1:0] ar_i,
  /// Address accepted.
  input  logic [NumPorts-1:0] ar_fire_i,
  /// Beat of data accepted.
  input  logic [NumPorts-1:0] r_fire_i
);

  localparam int unsigned Beats = Bytes / StrbWidth;
  localparam int unsigned CountBits = unsigned'($clog2(Beats + 65));
  localparam int unsigned IdxBits = idx_width(NumPorts);

  logic [IdxBits-1:0] idx;
  logic any_request;
  logic [CountBits-1:0] beats_q;
  logic fired_q;                   // the burst accepted in the cycle before is not yet in beats_q
  logic [7:0] len_q;
  logic [NumPorts-1:0] arrived_q;

  ns_rr_arbiter #(
    .N(NumPorts)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (ar_req_i),
    .next_i (ar_fire_i != '0),
    .gnt_o  (ar_grant_o),
    .idx_o  (idx),
    .valid_o(any_request)
  );

  assign ar_open_o = beats_q < CountBits'(Beats) && !fired_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      beats_q <= '0;
      fired_q <= 1'b0;
      arrived_q <= '0;
    end else begin
      fired_q <= ar_fire_i != '0;
      arrived_q <= r_fire_i;
      if (fired_q || arrived_q != '0) begin
        beats_q <= beats_q + (fired_q ? CountBits'(len_q) + 1'b1 : '0) -
            CountBits'($countones(arrived_q));
      end
    end
  end

  always_ff @(posedge clk_i) if (ar_fire_i != '0) len_q <= ar_i[idx].len;

  if (Bytes < 4096) begin : gen_bad_bytes
    $error("nvme_read_limit: Bytes must be at least 4096");
  end

  `NS_ASSERT(one_address, (ar_fire_i & ~ar_grant_o) == '0)
  `NS_ASSERT(data_was_requested, arrived_q == '0 || beats_q != '0)
  `NS_ASSERT(grant_only_if_any, any_request || ar_grant_o == '0)

endmodule
