// SPDX-License-Identifier: Apache-2.0

// Queue of the front end's writes to host memory: completion queue entries, MSI-X messages,
// EventIdx of shadow doorbells.
//
// Each becomes one 64-byte beat with its bytes enabled. Addresses and data have separate queues, as
// the host port accepts addresses far ahead of data. At a full port an entry waits for a
// microsecond, while others queue after it. Writes leave in order. Responses are counted, so that
// the end of the last write is known.
`include "ns_assert.svh"

module nvme_host_writes
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
  /// Writes without a response, at least 4.
  parameter int unsigned MaxWrites = 32
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// From registers: a write has no response yet.
  output logic        busy_o,

  /// From a register: there is room, including for a write one cycle later.
  output logic        room_o,
  /// Write.
  input  host_write_t write_i,
  /// Valid. Only if there was room in this cycle or the one before.
  input  logic        write_valid_i,

  /// Write address to the host.
  output ax_t         aw_o,
  output logic        aw_valid_o,
  input  logic        aw_ready_i,
  /// Write data.
  output w_t          w_o,
  output logic        w_valid_o,
  input  logic        w_ready_i,
  /// Write response.
  input  b_t          b_i,
  input  logic        b_valid_i,
  output logic        b_ready_o,
  /// Mark the writes without a response, including the one of this cycle.
  input  logic        mark_i,
  /// From the next cycle on: all marked writes have their responses.
  output logic        marked_done_o,
  /// The host refused a write.
  output logic        error_o
);

  localparam int unsigned CountBits = unsigned'($clog2(MaxWrites + 1));

  typedef struct packed {
    logic [IdWidth-1:0] id;
    logic [63:2]        addr;
  } write_addr_t;

  typedef struct packed {
    logic [15:0]  dwords;  // enabled
    logic [127:0] data;
  } write_data_t;

  write_addr_t write_addr;
  write_data_t write_data_in, write_data;
  logic aw_ready, w_ready;
  logic [CountBits-1:0] count_q;

  // Responses arrive in the order of the writes.
  logic [CountBits-1:0] count_d, marked_q;
  always_comb begin
    count_d = count_q;
    if (write_valid_i && !b_valid_i) count_d = count_q + 1'b1;
    if (!write_valid_i && b_valid_i) count_d = count_q - 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q  <= '0;
      marked_q <= '0;
    end else begin
      count_q <= count_d;
      if (mark_i) marked_q <= count_d;
      else if (b_valid_i && marked_q != '0) marked_q <= marked_q - 1'b1;
    end
  end

  assign marked_done_o = marked_q == '0;

  // One write may arrive in this cycle, and another one in the next.
  logic room_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) room_q <= 1'b1;
    else room_q <= count_q < CountBits'(MaxWrites - 2);
  end

  assign room_o = room_q;
  assign busy_o = count_q != '0;

  ns_fifo #(
    .Width($bits(write_addr_t)),
    .Depth(MaxWrites),
    .Style("lutram")
  ) u_addresses (
    .clk_i,
    .rst_ni,
    .in_valid_i (write_valid_i),
    .in_ready_o (aw_ready),
    .in_data_i  ({write_i.id, write_i.addr}),
    .out_valid_o(aw_valid_o),
    .out_ready_i(aw_ready_i),
    .out_data_o (write_addr),
    .count_o    ()
  );

  assign write_data_in = '{
          dwords: (write_i.whole ? 16'hF : 16'h1) << write_i.addr[5:2],
          data: write_i.data
      };

  ns_fifo #(
    .Width($bits(write_data_t)),
    .Depth(MaxWrites),
    .Style("lutram")
  ) u_data (
    .clk_i,
    .rst_ni,
    .in_valid_i (write_valid_i),
    .in_ready_o (w_ready),
    .in_data_i  (write_data_in),
    .out_valid_o(w_valid_o),
    .out_ready_i(w_ready_i),
    .out_data_o (write_data),
    .count_o    ()
  );

  assign aw_o = '{
          id: write_addr.id,
          len: 8'd0,
          size: 3'd6,
          burst: BurstIncr,
          addr: {write_addr.addr, 2'b0}
      };

  // Data are repeated in all lanes; the strobes select.
  always_comb begin
    w_o.last = 1'b1;
    w_o.data = {4{write_data.data}};
    for (int unsigned i = 0; i < 64; i++) w_o.strb[i] = write_data.dwords[i/4];
  end

  assign b_ready_o = 1'b1;
  assign error_o = b_valid_i && b_i.resp[1];

  logic unused;
  assign unused = ^{b_i.id, b_i.resp[0]};

  if (MaxWrites < 4) begin : gen_bad_writes
    $error("nvme_host_writes: MaxWrites must be at least 4");
  end

  `NS_ASSERT(has_room, !write_valid_i || (aw_ready && w_ready && count_q != CountBits'(MaxWrites)))
  `NS_ASSERT(within_beat, !write_valid_i || !write_i.whole || write_i.addr[3:2] == '0)
  `NS_ASSERT(response_expected, !b_valid_i || count_q != '0)

endmodule
