// SPDX-License-Identifier: Apache-2.0

// msix with any requests, masks, withdrawals and table accesses, observed at one vector.
//
// Shown: the vector is pending exactly while a request is outstanding: requested while enabled, and
// not yet sent, withdrawn, or cleared. A message of it appears only if a request was outstanding
// and unmasked. It carries what was last written to the vector's entry, and stays until it is
// accepted. An unmasked request becomes a message within `Bound` cycles in which the sender
// accepts.
`include "ns_assert.svh"

module msix_proof
  import msix_pkg::*;
#(
  /// Vectors of the sender.
  parameter int unsigned NumOwn    = 2,
  /// Further vectors.
  parameter int unsigned NumRaised = 1,
  parameter int unsigned Bound     = 14
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic                   enable_i,
  input logic                   mask_i,
  input logic                   clear_i,
  input logic                   irq_i,
  input logic [VectorWidth-1:0] irq_vector_i,
  input logic                   withdraw_i,
  input logic [VectorWidth-1:0] withdraw_vector_i,
  input logic                   msg_ready_i,
  input logic                   table_req_i,
  input logic                   table_we_i,
  input logic [11:2]            table_addr_i,
  input logic                   table_whole_i,
  input logic [1:0]             table_wdata_i,
  input logic [NumRaised-1:0]   raise_i,
  input logic [VectorWidth-1:0] v  // the vector
);

  localparam int unsigned NumVectors = NumOwn + NumRaised;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  logic [VectorWidth-1:0] v_q;
  always_ff @(posedge clk_i) v_q <= v;
  TheSame :
  assume property (@(posedge clk_i) !started_q || v == v_q);
  OneVector :
  assume property (@(posedge clk_i) 32'(v) < NumVectors);
  `NS_ASSUME(own_requests, 32'(irq_vector_i) < NumOwn && 32'(withdraw_vector_i) < NumOwn)

  to_msix_t to;
  from_msix_t from;
  // Two bits of data represent all.
  assign to = '{
          clear: clear_i,
          irq: irq_i,
          vector: irq_vector_i,
          withdraw: withdraw_i,
          withdraw_vector: withdraw_vector_i,
          msg_ready: msg_ready_i,
          table_req: table_req_i,
          table_we: table_we_i,
          table_addr: table_addr_i,
          table_biten: {{31{1'b1}}, table_whole_i},
          table_wdata: {table_wdata_i[1], 28'd0, table_wdata_i[0], 1'b0, table_wdata_i[0]}
      };

  msix #(
    .NumOwn   (NumOwn),
    .NumRaised(NumRaised)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .enable_i,
    .mask_i,
    .sender_i(to),
    .sender_o(from),
    .raise_i
  );

  logic [NumVectors-1:0] pending;
  assign pending = from.pending[NumVectors-1:0];

  // Content of the vector's entry.
  logic write, masked_q, function_q, enabled_q;
  logic [2:0] known_q;
  logic [31:0] low_q, high_q, data_q;
  assign write = table_req_i && table_we_i && table_whole_i && table_addr_i[11:4] == 8'(v);

  // A request of the vector.
  logic asked, own, outstanding_q, appears, valid_q, accepted_q;
  assign own = 32'(v) < NumOwn;
  always_comb begin
    asked = irq_i && irq_vector_i == v;
    for (int unsigned i = 0; i < NumRaised; i++) if (32'(v) == NumOwn + i) asked = raise_i[i];
  end

  // A message appears: there was none, or the previous one was accepted.
  assign appears = from.msg_valid && from.msg_vector == v && (!valid_q || accepted_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      masked_q   <= 1'b1;
      function_q <= 1'b0;
      enabled_q  <= 1'b0;
      valid_q    <= 1'b0;
      accepted_q    <= 1'b0;
      known_q    <= '0;
    end else begin
      if (write && table_addr_i[3:2] == 2'd3) masked_q <= table_wdata_i[0];
      if (write && table_addr_i[3:2] != 2'd3) known_q[table_addr_i[3:2]] <= 1'b1;
      function_q <= mask_i;
      enabled_q  <= enable_i;
      valid_q    <= from.msg_valid;
      accepted_q    <= from.msg_valid && msg_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (write && table_addr_i[3:2] == 2'd0) low_q <= to.table_wdata;
    if (write && table_addr_i[3:2] == 2'd1) high_q <= to.table_wdata;
    if (write && table_addr_i[3:2] == 2'd2) data_q <= to.table_wdata;
  end

  // A message is loaded one cycle before it appears, from the state of that cycle.
  logic outstanding_before_q, open_before_q;
  logic [2:0] known_before_q;
  logic [31:0] low_before_q, high_before_q, data_before_q;
  logic owed_d;

  always_comb begin
    owed_d = outstanding_q;
    if (withdraw_i && withdraw_vector_i == v && (function_q || masked_q)) owed_d = 1'b0;
    if (asked) owed_d = 1'b1;
    if (own && clear_i) owed_d = 1'b0;
    if (!enabled_q) owed_d = 1'b0;
  end

  // The load becomes visible one cycle later, as a message: requests since then stay.
  logic since_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      outstanding_q        <= 1'b0;
      outstanding_before_q <= 1'b0;
      open_before_q <= 1'b0;
      since_q       <= 1'b0;
    end else begin
      outstanding_q        <= appears ? (since_q && outstanding_q && owed_d) || (asked && owed_d) : owed_d;
      since_q       <= asked;
      outstanding_before_q <= outstanding_q && !appears || since_q;
      open_before_q <= enabled_q && !function_q && !masked_q;
    end
  end
  always_ff @(posedge clk_i) begin
    known_before_q <= known_q;
    low_before_q   <= low_q;
    high_before_q  <= high_q;
    data_before_q  <= data_q;
  end

  // Cycles for which an unmasked request has been outstanding.
  logic [4:0] wait_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) wait_q <= '0;
    else if (!outstanding_q || appears || !open_before_q || !enabled_q || function_q || masked_q || !msg_ready_i)
      wait_q <= '0;
    else if (wait_q != '1) wait_q <= wait_q + 1'b1;
  end

  `NS_ASSERT(sent_when_outstanding, !appears || outstanding_before_q)
  `NS_ASSERT(sent_when_open, !appears || open_before_q)
  `NS_ASSERT(
      says_what_was_written,
      !appears || known_before_q != '1 || (from.msg_addr == {high_before_q, low_before_q[31:2]} && from.msg_data == data_before_q))
  `NS_ASSERT(message_is_stable, !(valid_q && !accepted_q) || from.msg_valid)
  `NS_ASSERT(pending_is_outstanding,
             ((pending >> v) & 1'b1) == NumVectors'(outstanding_q && (!appears || since_q)))
  `NS_ASSERT(sent_in_time, wait_q < 5'(Bound))
  `NS_ASSERT(no_other_vector, from.pending[MaxVectors-1:NumVectors] == '0)
  `NS_COVER(message_after_waiting, appears && known_before_q == '1 && 32'(v) >= NumOwn)

endmodule
