// MSI-X table, pending bits and the messages that follow from them.
//
// An interrupt request sets the vector's pending bit; a vector that is pending and masked neither by itself nor for the
// whole function gets its message sent, and its bit cleared. Requests that come before the message has left merge into
// it. While MSI-X is disabled, requests are dropped: there are no other interrupts.
// A masked vector whose cause has gone (`withdraw_i`) is not pending any more.
// Assumes accesses of whole words; words with strobes missing are not written.
`include "ns_assert.svh"

module nvme_msix
  import nvme_pkg::*;
#(
  /// Vectors, 1 to 128.
  parameter int unsigned NumVectors = 17
) (
  /// Clock.
  input  logic                clk_i,
  /// Reset, active low.
  input  logic                rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic                busy_o,
  /// Drop all pending interrupts.
  input  logic                clear_i,

  /// MSI-X is enabled in the function's configuration space. From a register.
  input  logic                enable_i,
  /// All vectors are masked. From a register.
  input  logic                mask_i,

  /// Table access; lasts one cycle.
  input  logic                table_req_i,
  /// It is a write.
  input  logic                table_we_i,
  /// Byte offset in the table, a multiple of 4.
  input  logic [11:0]         table_addr_i,
  /// Data to write.
  input  logic [31:0]         table_wdata_i,
  /// Bits to write.
  input  logic [31:0]         table_biten_i,
  /// The access of the cycle before is done.
  output logic                table_ack_o,
  /// Its data.
  output logic [31:0]         table_rdata_o,
  /// Pending bits.
  output logic [127:0]        pending_o,

  /// Interrupt request.
  input  logic                irq_i,
  /// Its vector.
  input  logic [QidWidth-1:0] irq_vector_i,

  /// The cause has gone.
  input  logic                withdraw_i,
  /// Its vector.
  input  logic [QidWidth-1:0] withdraw_vector_i,

  /// Message address.
  output logic [63:2]         msg_addr_o,
  /// Message data.
  output logic [31:0]         msg_data_o,
  /// Its vector.
  output logic [QidWidth-1:0] msg_vector_o,
  /// Valid.
  output logic                msg_valid_o,
  /// Ready.
  input  logic                msg_ready_i
);

  localparam int unsigned Bits = ns_axi_pkg::idx_width(NumVectors);
  typedef logic [Bits-1:0] idx_t;

  logic [NumVectors-1:0] mask_q, pending_q, fire;
  logic enabled_q, masked_q;
  (* ram_style = "distributed" *) logic [31:2] low_mem[NumVectors];
  (* ram_style = "distributed" *) logic [31:0] high_mem[NumVectors];
  (* ram_style = "distributed" *) logic [31:0] data_mem[NumVectors];

  // Table.
  idx_t entry, ventry;
  logic exists, we;
  assign entry = idx_t'(table_addr_i[11:4]);
  assign exists = 32'(table_addr_i[11:4]) < NumVectors;
  assign we = table_req_i && table_we_i && exists && table_biten_i == '1;

  always_ff @(posedge clk_i) begin
    if (we && table_addr_i[3:2] == 2'd0) low_mem[entry] <= table_wdata_i[31:2];
    if (we && table_addr_i[3:2] == 2'd1) high_mem[entry] <= table_wdata_i;
    if (we && table_addr_i[3:2] == 2'd2) data_mem[entry] <= table_wdata_i;
    if (table_req_i) begin
      unique case (table_addr_i[3:2])
        2'd0: table_rdata_o <= {low_mem[entry], 2'b0};
        2'd1: table_rdata_o <= high_mem[entry];
        2'd2: table_rdata_o <= data_mem[entry];
        default: table_rdata_o <= 32'(mask_q[entry]);
      endcase
      if (!exists) table_rdata_o <= '0;
    end
  end

  // Messages, in three steps: choose a vector; which is it? If it may still fire, load its message.
  idx_t ventry_q, vector_q;
  logic [NumVectors-1:0] gnt, gnt_q;
  logic fire_valid, load, choose, numbered_q, chosen_q, valid_q;
  logic [63:2] addr_q;
  logic [31:0] data_q;
  assign fire = (enabled_q && !masked_q) ? pending_q & ~mask_q : '0;
  assign choose = !numbered_q && !chosen_q;
  assign load = chosen_q && fire[ventry_q] && (!valid_q || msg_ready_i);

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
      table_ack_o <= 1'b0;
    end else begin
      table_ack_o <= table_req_i;
      enabled_q <= enable_i;
      masked_q <= mask_i;
      if (we && table_addr_i[3:2] == 2'd3) mask_q[entry] <= table_wdata_i[0];

      // A choice holds until its message is loaded, or it may not fire any more.
      numbered_q <= choose && fire_valid;
      chosen_q <= numbered_q || (chosen_q && fire[ventry_q] && !load);
      if (load) pending_q[ventry_q] <= 1'b0;
      if (withdraw_i && (masked_q || mask_q[idx_t'(withdraw_vector_i)]))
        pending_q[idx_t'(withdraw_vector_i)] <= 1'b0;
      if (irq_i) pending_q[idx_t'(irq_vector_i)] <= 1'b1;
      if (clear_i || !enabled_q) pending_q <= '0;

      if (load) valid_q <= 1'b1;
      else if (msg_ready_i) valid_q <= 1'b0;
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

  assign msg_addr_o = addr_q;
  assign msg_data_o = data_q;
  assign msg_vector_o = QidWidth'(vector_q);
  assign msg_valid_o = valid_q;
  assign pending_o = 128'(pending_q);

  // Whether a vector may fire, a cycle later than `fire`: it is right again once a cycle has passed without a change.
  logic any_q, changed_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      any_q <= 1'b0;
      changed_q <= 1'b0;
    end else begin
      any_q <= fire != '0;
      changed_q <= irq_i || we || enabled_q != enable_i || masked_q != mask_i;
    end
  end

  assign busy_o = valid_q || any_q || changed_q || table_ack_o || enabled_q != enable_i || masked_q != mask_i;

  if (NumVectors < 1 || NumVectors > 128) begin : gen_bad_vectors
    $error("nvme_msix: NumVectors must be 1 to 128");
  end

  `NS_ASSERT(vector_exists, !irq_i || 32'(irq_vector_i) < NumVectors)
  `NS_ASSERT(rests_without_work, busy_o || (fire == '0 && (enabled_q || pending_q == '0)))
  `NS_ASSERT(withdrawn_exists, !withdraw_i || 32'(withdraw_vector_i) < NumVectors)

endmodule
