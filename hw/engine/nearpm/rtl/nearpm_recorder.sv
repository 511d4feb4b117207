// SPDX-License-Identifier: Apache-2.0

// Reports events of commands to the simulation (nearpm_order_pkg). Passive.
`ifdef NS_ORDER
module nearpm_recorder
  import nearpm_pkg::*;
  import nearpm_order_pkg::*;
(
  input logic                   clk_i,
  input logic                   rst_ni,
  /// A command is inserted into the table.
  input logic                   inserted_i,
  input logic [CommandBits-1:0] number_i,
  input job_t                   job_i,
  input ranges_t                ranges_i,
  /// A command is answered without being inserted.
  input logic                   answered_i,
  /// A command is issued; a command retires.
  input logic                   issue_valid_i,
  input logic [CommandBits-1:0] issue_number_i,
  input logic                   retire_valid_i,
  input logic [CommandBits-1:0] retire_number_i,
  input logic                   retire_ok_i,
  /// The records of a log are void.
  input logic                   log_void_i,
  input delete_t                delete_i,
  /// A command is restored.
  input logic                   restored_valid_i,
  input logic [CommandBits-1:0] restored_number_i,
  input job_t                   restored_job_i,
  input ranges_t                restored_ranges_i,
  /// The PM window opens.
  input logic                   window_open_i
);

  // Within a cycle, causes are reported before effects.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (retire_valid_i)
        ns_order(OrderCommandRetired, 32'(retire_number_i), 64'(retire_ok_i), 0, 0, 0, 0);
      if (log_void_i) ns_order(OrderLogVoid, 32'(delete_i.log), 64'(delete_i.number), 0, 0, 0, 0);
      if (issue_valid_i) ns_order(OrderCommandIssued, 32'(issue_number_i), 0, 0, 0, 0, 0);
      if (inserted_i) report_command(OrderCommand, number_i, job_i, ranges_i);
      if (answered_i) ns_order(OrderCommandAnswered, 32'(number_i), 0, 0, 0, 0, 0);
      if (restored_valid_i)
        report_command(OrderCommandRestored, restored_number_i, restored_job_i, restored_ranges_i);
      if (window_open_i) ns_order(OrderWindowOpen, 0, 0, 0, 0, 0, 0);
    end
  end

  logic unused;
  assign unused = ^{delete_i.base, delete_i.generation};

endmodule
`endif
