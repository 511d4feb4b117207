// Tells a simulation what becomes of commands; see nearpm_order_pkg. It looks on, and drives nothing.
`ifdef NS_ORDER
module nearpm_recorder
  import nearpm_pkg::*;
  import nearpm_order_pkg::*;
(
  input logic                   clk_i,
  input logic                   rst_ni,
  /// A command goes into the table.
  input logic                   inserted_i,
  input logic [CommandBits-1:0] number_i,
  input job_t                   job_i,
  input ranges_t                ranges_i,
  /// One is answered without having been there.
  input logic                   over_i,
  /// One begins, one ends.
  input logic                   begins_i,
  input logic [CommandBits-1:0] begin_number_i,
  input logic                   ends_i,
  input logic [CommandBits-1:0] end_number_i,
  input logic                   fine_i,
  /// A log's records are void.
  input logic                   void_i,
  input delete_t                delete_i,
  /// One comes back.
  input logic                   restored_i,
  input logic [CommandBits-1:0] restored_number_i,
  input job_t                   restored_job_i,
  input ranges_t                restored_ranges_i,
  /// The PM window opens.
  input logic                   opens_i
);

  // What causes something in the same cycle is told first.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (ends_i) ns_order(OrderEnds, 32'(end_number_i), 64'(fine_i), 0, 0, 0, 0);
      if (void_i) ns_order(OrderVoid, 32'(delete_i.log), 64'(delete_i.number), 0, 0, 0, 0);
      if (begins_i) ns_order(OrderBegins, 32'(begin_number_i), 0, 0, 0, 0, 0);
      if (inserted_i) tell_command(OrderCommand, number_i, job_i, ranges_i);
      if (over_i) ns_order(OrderOver, 32'(number_i), 0, 0, 0, 0, 0);
      if (restored_i)
        tell_command(OrderRestored, restored_number_i, restored_job_i, restored_ranges_i);
      if (opens_i) ns_order(OrderOpens, 0, 0, 0, 0, 0, 0);
    end
  end

  logic unused;
  assign unused = ^{delete_i.base, delete_i.generation};

endmodule
`endif
