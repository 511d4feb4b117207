// SPDX-License-Identifier: Apache-2.0

// MSI-X table, pending bits and messages of the whole device.
//
// An interrupt request sets the vector's pending bit. A pending vector sends its message, and
// clears its bit, unless the vector or the whole function is masked. Requests that arrive before
// the message has left merge into it. While MSI-X is disabled, requests are dropped, as there are
// no other interrupts. A masked vector whose cause has gone (`withdraw`) is no longer pending.
//
// One block has the table in its BAR and sends all messages: the NVMe controller, after its
// completion queue entries. So reads of the table are answered after the messages decided before.
// The first vectors are the sender's; other blocks raise the rest.
//
// Assumes accesses of whole words; words with missing strobes are not written.
`include "ns_assert.svh"

module msix
  import msix_pkg::*;
#(
  /// Vectors of the sender.
  parameter int unsigned NumOwn = 17,
  /// Further vectors, after these. The sum is at most 128.
  parameter int unsigned NumRaised = 0,
  localparam int unsigned NumVectors = NumOwn + NumRaised,
  // A port has at least one bit.
  localparam int unsigned RaiseBits = (NumRaised == 0) ? 1 : NumRaised
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// MSI-X is enabled in the function's configuration space. From a register.
  input  logic                 enable_i,
  /// All vectors are masked. From a register.
  input  logic                 mask_i,
  /// From the sender.
  input  to_msix_t             sender_i,
  /// To the sender. `busy` from registers: a further clock edge could change the state without new
  /// input.
  output from_msix_t           sender_o,
  /// Interrupt requests of the further vectors, for one cycle each.
  input  logic [RaiseBits-1:0] raise_i
);

  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumVectors);
  typedef logic [Bits-1:0] idx_t;

  logic [NumVectors-1:0] mask_q, pending_q, fire;
  logic enabled_q, masked_q;
  (* ram_style = "distributed" *) logic [31:2] low_mem[NumVectors];
  (* ram_style = "distributed" *) logic [31:0] high_mem[NumVectors];
  (* ram_style = "distributed" *) logic [31:0] data_mem[NumVectors];

  logic ack_q;
  logic [31:0] rdata_q;

  // Table.
  idx_t entry, ventry;
  logic exists, we;
  assign entry = idx_t'(sender_i.table_addr[11:4]);
  assign exists = 32'(sender_i.table_addr[11:4]) < NumVectors;
  assign we = sender_i.table_req && sender_i.table_we && exists && sender_i.table_biten == '1;

  always_ff @(posedge clk_i) begin
    if (we && sender_i.table_addr[3:2] == 2'd0) low_mem[entry] <= sender_i.table_wdata[31:2];
    if (we && sender_i.table_addr[3:2] == 2'd1) high_mem[entry] <= sender_i.table_wdata;
    if (we && sender_i.table_addr[3:2] == 2'd2) data_mem[entry] <= sender_i.table_wdata;
    if (sender_i.table_req) begin
      unique case (sender_i.table_addr[3:2])
        2'd0: rdata_q <= {low_mem[entry], 2'b0};
        2'd1: rdata_q <= high_mem[entry];
        2'd2: rdata_q <= data_mem[entry];
        default: rdata_q <= 32'(mask_q[entry]);
      endcase
      if (!exists) rdata_q <= '0;
    end
  end

  // Messages, in three steps: choose a vector, encode its number, load its message if it may still
  // fire.
  idx_t ventry_q, vector_q;
  logic [NumVectors-1:0] gnt, gnt_q;
  logic fire_valid, load, choose, numbered_q, chosen_q, valid_q;
  logic [63:2] addr_q;
  logic [31:0] data_q;
  assign fire = (enabled_q && !masked_q) ? pending_q & ~mask_q : '0;
  assign choose = !numbered_q && !chosen_q;
  assign load = chosen_q && fire[ventry_q] && (!valid_q || sender_i.msg_ready);

  ns_rr_arbiter #(
    .N(NumVectors)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (fire),
    .next_i (choose),
    .gnt_o  (gnt),
    .idx_o  (),
    .valid_o(fire_valid)
  );

  always_comb begin
    ventry = '0;
    for (int unsigned i = 0; i < NumVectors; i++) if (gnt_q[i]) ventry |= idx_t'(i);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mask_q <= '1;
      pending_q <= '0;
      numbered_q <= 1'b0;
      chosen_q <= 1'b0;
      valid_q <= 1'b0;
      enabled_q <= 1'b0;
      masked_q <= 1'b0;
      ack_q <= 1'b0;
    end else begin
      ack_q <= sender_i.table_req;
      enabled_q <= enable_i;
      masked_q <= mask_i;
      if (we && sender_i.table_addr[3:2] == 2'd3) mask_q[entry] <= sender_i.table_wdata[0];

      // A choice holds until its message is loaded, or the vector may no longer fire.
      numbered_q <= choose && fire_valid;
      chosen_q <= numbered_q || (chosen_q && fire[ventry_q] && !load);
      if (load) pending_q[ventry_q] <= 1'b0;
      if (sender_i.withdraw && (masked_q || mask_q[idx_t'(sender_i.withdraw_vector)]))
        pending_q[idx_t'(sender_i.withdraw_vector)] <= 1'b0;
      if (sender_i.irq) pending_q[idx_t'(sender_i.vector)] <= 1'b1;
      for (int i = 0; i < int'(NumRaised); i++) if (raise_i[i]) pending_q[int'(NumOwn)+i] <= 1'b1;
      if (sender_i.clear) pending_q[NumOwn-1:0] <= '0;
      if (!enabled_q) pending_q <= '0;

      if (load) valid_q <= 1'b1;
      else if (sender_i.msg_ready) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (choose) gnt_q <= gnt;
    if (numbered_q) ventry_q <= ventry;
    if (load) begin
      addr_q <= {high_mem[ventry_q], low_mem[ventry_q]};
      data_q <= data_mem[ventry_q];
      vector_q <= ventry_q;
    end
  end

  // Whether a vector may fire, one cycle after `fire`: valid again one cycle after the last change.
  logic any_q, changed_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      any_q <= 1'b0;
      changed_q <= 1'b0;
    end else begin
      any_q <= fire != '0;
      changed_q <= sender_i.irq || raise_i != '0 || we || enabled_q != enable_i || masked_q != mask_i;
    end
  end

  logic busy;
  assign busy = valid_q || any_q || changed_q || ack_q || enabled_q != enable_i || masked_q != mask_i;
  assign sender_o = '{
          busy: busy,
          msg_valid: valid_q,
          msg_vector: VectorWidth'(vector_q),
          table_ack: ack_q,
          table_rdata: rdata_q,
          msg_data: data_q,
          msg_addr: addr_q,
          pending: MaxVectors'(pending_q)
      };

  if (NumOwn < 1 || NumVectors > MaxVectors) begin : gen_bad_vectors
    $error("msix: there must be 1 to 128 vectors");
  end

  `NS_ASSERT(vector_exists, !sender_i.irq || 32'(sender_i.vector) < NumOwn)
  `NS_ASSERT(idle_without_work, busy || (fire == '0 && (enabled_q || pending_q == '0)))
  `NS_ASSERT(withdrawn_exists, !sender_i.withdraw || 32'(sender_i.withdraw_vector) < NumOwn)

endmodule
