// What a simulation is told of the time to come: whether anything changes without new input, and when. Unused in hardware.
module nearside_idle (
  input  logic        clk_i,
  /// Power-on reset.
  input  logic        rst_ni,
  /// Something arrives at the device.
  input  logic        input_i,
  /// A further clock edge could change the state of something other than the NVMe controller, input or not.
  input  logic        busy_i,
  /// The same of the NVMe controller.
  input  logic        nvme_busy_i,
  /// But it waits for the memories, which zero blocks.
  input  logic        nvme_waits_i,
  /// Nothing but the time changes in it in so many cycles to come, up to five fewer; 0 if more does.
  input  logic [31:0] nvme_wait_i,
  /// It becomes busy by itself
  input  logic        nvme_alarm_i,
  /// when `cycles_i` is this.
  input  logic [63:0] nvme_alarm_cycles_i,
  /// Cycles since power-on, after the coming edge.
  input  logic [63:0] cycles_i,
  /// Cycles that were left out before this edge.
  input  logic [63:0] skipped_i,
  /// See nearside_shell.
  output logic        idle_o,
  output logic [31:0] wait_o,
  output logic [63:0] wake_o
);

  // While the memories zero what the controller waits for, nothing changes there either. Something may be on its way in it for
  // a few cycles without a sign of it, so that has to last. What is said of the time to come is some cycles old; after cycles were
  // left out it must be worked out again.
  localparam logic [31:0] Old = 32'd8;
  logic rest, idle_q;
  logic [4:0] waits_q;
  logic [2:0] stale_q;
  logic [31:0] wait_q;
  logic [63:0] wake_q;

  assign rest = !(busy_i || input_i);
  assign idle_o = idle_q;
  assign wait_o = wait_q;
  assign wake_o = wake_q;

  // What has set its time was busy for some cycles more, so this one says so in time.
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
      stale_q <= '1;
    end else begin
      if (!nvme_waits_i || input_i || busy_i) waits_q <= '0;
      else if (waits_q != '1) waits_q <= waits_q + 1'b1;
      // An engine's answer has left the engine and is in the controller now: waits_q says so a cycle later.
      idle_q <= rest && (!nvme_busy_i || (nvme_waits_i && waits_q == '1));
      wait_q <= (rest && nvme_busy_i && nvme_wait_i > Old && stale_q == '0 && skipped_i == '0) ? nvme_wait_i - Old : '0;
      stale_q <= (skipped_i != '0) ? '1 : stale_q - 3'(stale_q != '0);
    end
  end

endmodule
