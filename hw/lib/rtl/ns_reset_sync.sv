// SPDX-License-Identifier: Apache-2.0

// Reset synchroniser: asserts immediately, without the clock, and releases on a clock edge.
//
// A simulation starts with the reset released, so that blocks with a stopped clock see it fall.
module ns_reset_sync #(
  /// Registers in series, at least 2: clock edges until a release is seen.
  parameter int unsigned Stages = 2
) (
  input  logic clk_i,
  /// Reset, asserted and released at any time.
  input  logic rst_ni,
  /// The same, released at a clock edge.
  output logic rst_no
);

  (* ASYNC_REG = "TRUE" *) logic [Stages-1:0] sync_q = '1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) sync_q <= '0;
    else sync_q <= {sync_q[Stages-2:0], 1'b1};
  end

  assign rst_no = sync_q[Stages-1];

  if (Stages < 2) begin : gen_bad_stages
    $error("ns_reset_sync: Stages must be at least 2");
  end

endmodule
