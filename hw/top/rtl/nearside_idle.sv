// SPDX-License-Identifier: Apache-2.0

// Idle prediction for simulation: whether and when anything changes without new input. Unused in
// hardware.
module nearside_idle (
  input  logic        clk_i,
  /// Power-on reset.
  input  logic        rst_ni,
  /// Input arrives at the device.
  input  logic        input_i,
  /// A further clock edge could change the state of something other than the NVMe controller, input
  /// or not.
  input  logic        busy_i,
  /// The same of the NVMe controller.
  input  logic        nvme_busy_i,
  /// It waits for the memories, which zero blocks.
  input  logic        nvme_waits_i,
  /// Number of cycles to come, less up to five, in which only its time changes; 0 if more changes.
  input  logic [31:0] nvme_wait_i,
  /// It becomes busy without input
  input  logic        nvme_alarm_i,
  /// when `cycles_i` reaches this value.
  input  logic [63:0] nvme_alarm_cycles_i,
  /// Cycles since power-on, after the coming edge.
  input  logic [63:0] cycles_i,
  /// Cycles skipped before this edge.
  input  logic [63:0] skipped_i,
  /// See nearside_shell.
  output logic        idle_o,
  output logic [31:0] wait_o,
  output logic [63:0] wake_o
);

  // Nothing changes while the memories zero blocks that the controller waits for. Activity in the
  // controller may be invisible for a few cycles, so that state has to last. The prediction is some
  // cycles old; after skipped cycles it must be computed again.
  localparam logic [31:0] PredictionAge = 32'd8;
  logic inactive, idle_q;
  logic [4:0] waits_q;
  logic [2:0] stale_cycles_q;
  logic [31:0] wait_q;
  logic [63:0] wake_q;

  assign inactive = !(busy_i || input_i);
  assign idle_o = idle_q;
  assign wait_o = wait_q;
  assign wake_o = wake_q;

  // The controller stays busy for some cycles after it sets its alarm, so this value is up to date
  // in time.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) wake_q <= '1;
    else if (!nvme_alarm_i) wake_q <= '1;
    else wake_q <= (nvme_alarm_cycles_i > cycles_i) ? nvme_alarm_cycles_i - cycles_i : '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idle_q  <= 1'b0;
      waits_q <= '0;
      wait_q  <= '0;
      stale_cycles_q <= '1;
    end else begin
      if (!nvme_waits_i || input_i || busy_i) waits_q <= '0;
      else if (waits_q != '1) waits_q <= waits_q + 1'b1;
      // An engine's response that has just entered the controller shows in waits_q one cycle later.
      idle_q <= inactive && (!nvme_busy_i || (nvme_waits_i && waits_q == '1));
      wait_q <= (inactive && nvme_busy_i && nvme_wait_i > PredictionAge && stale_cycles_q == '0 && skipped_i == '0) ? nvme_wait_i - PredictionAge : '0;
      stale_cycles_q <= (skipped_i != '0) ? '1 : stale_cycles_q - 3'(stale_cycles_q != '0);
    end
  end

endmodule
