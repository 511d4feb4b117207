// SPDX-License-Identifier: Apache-2.0

// Counts the data commands in flight in each namespace, for blocks that wait until there are none.
//
// A command counts from the cycle after its start to the second cycle after its end. One command
// may start and one may end in a cycle.
`include "ns_assert.svh"

module nvme_ns_in_flight
  import nvme_pkg::*;
  import nvme_ns_pkg::MaxNamespaces;
#(
  /// Command slots.
  parameter int unsigned NumSlots      = 128,
  /// Namespaces, 1 to 16.
  parameter int unsigned NumNamespaces = 1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  /// From registers: a further clock edge changes the counts.
  output logic                     busy_o,

  /// A command starts.
  input  logic                     start_i,
  /// Its slot.
  input  logic [SlotWidth-1:0]     start_slot_i,
  /// Its namespace.
  input  logic [NsWidth-1:0]       start_ns_i,
  /// A command has ended.
  input  logic                     end_i,
  /// Its slot.
  input  logic [SlotWidth-1:0]     end_slot_i,

  /// Namespaces that have commands in flight.
  output logic [MaxNamespaces-1:0] in_flight_o
);

  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumSlots);

  logic end_q;
  logic [NsWidth-1:0] end_ns;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) end_q <= 1'b0;
    else end_q <= end_i;
  end

  if (NumNamespaces == 1) begin : gen_one
    assign end_ns = '0;
  end else begin : gen_table
    (* ram_style = "distributed" *) logic [NsWidth-1:0] ns_mem[NumSlots];
    logic [NsWidth-1:0] end_ns_q;
    always_ff @(posedge clk_i) begin
      if (start_i) ns_mem[start_slot_i[Bits-1:0]] <= start_ns_i;
      if (end_i) end_ns_q <= ns_mem[end_slot_i[Bits-1:0]];
    end
    assign end_ns = end_ns_q;
  end

  for (genvar n = 0; n < MaxNamespaces; n++) begin : gen_namespace
    if (n < NumNamespaces) begin : gen_count
      logic [SlotWidth-1:0] count_q;
      logic start_here, end_here;
      assign start_here = start_i && 32'(start_ns_i) == n;
      assign end_here = end_q && 32'(end_ns) == n;

      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) count_q <= '0;
        else if (start_here && !end_here) count_q <= count_q + 1'b1;
        else if (end_here && !start_here) count_q <= count_q - 1'b1;
      end

      assign in_flight_o[n] = count_q != '0;
      `NS_ASSERT(no_end_without_start, !end_here || count_q != '0)
    end else begin : gen_none
      assign in_flight_o[n] = 1'b0;
    end
  end

  assign busy_o = end_q;

  logic unused;
  assign unused = ^{start_slot_i, end_slot_i};

endmodule
