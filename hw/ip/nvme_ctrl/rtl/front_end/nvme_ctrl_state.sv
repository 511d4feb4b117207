// SPDX-License-Identifier: Apache-2.0

// Life cycle of the controller: enable, ready, fatal, shutdown, disable, subsystem reset (NVMe 1.4,
// 3.1.5, 3.1.6, 7.3, 7.6.2).
//
// Enabling checks CC, AQA, ASQ and ACQ, and reports CFS if they are not usable. Disabling and
// shutting down stop the fetching of commands and wait until everything in flight has ended. There
// is no DMA after CSTS.RDY is 0 or CSTS.SHST is 2. A controller that has been shut down must be
// disabled before it accepts commands again. An NVM subsystem reset (NSSR) disables the controller
// first, for the same reason, and then resets its properties. Assumption: `quiet_i` becomes 1 after
// `fetch_o` has become 0, and then stays for at least a cycle.
module nvme_ctrl_state
  import nvme_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic        busy_o,

  /// What the host has set up.
  input  setup_t      setup_i,
  /// An NVM subsystem reset is requested. Stays until it is done.
  input  logic        nssr_i,
  /// The reset is done at the end of this cycle.
  output logic        nssr_done_o,
  /// CSTS.RDY.
  output logic        rdy_o,
  /// CSTS.CFS.
  output logic        cfs_o,
  /// CSTS.SHST.
  output logic [ 1:0] shst_o,

  /// The host port failed in a way that no command can report, or the Keep Alive timer has expired.
  input  logic        fatal_i,
  /// No command is in flight except parked ones, and no write waits for its response.
  input  logic        quiet_i,
  /// Commands may be fetched.
  output logic        fetch_o,
  /// Create the admin queues.
  output logic        init_o,
  /// They have been created.
  input  logic        init_done_i,
  /// Drop parked commands and reset features to their defaults.
  output logic        flush_o,
  /// Done, and nothing is in flight any more.
  input  logic        flush_done_i,
  /// Forget all queues.
  output logic        clear_o
);

  typedef enum logic [2:0] {
    StOff,
    StInit,
    StReady,
    StFatal,
    StDrain,
    StFlush,
    StClear
  } state_e;

  state_e state_q, state_d;
  logic rdy_q, cfs_q;
  logic [1:0] shst_q, shst_d;
  logic usable, quiet_q;

  localparam logic [1:0] ShstNormal = 2'd0;
  localparam logic [1:0] ShstOccurring = 2'd1;
  localparam logic [1:0] ShstComplete = 2'd2;

  assign usable = setup_i.cc_ok && setup_i.asqs != '0 && setup_i.acqs != '0 && setup_i.asq != '0 && setup_i.acq != '0;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StOff:   if (nssr_i) state_d = StClear;
               else if (setup_i.en) state_d = usable ? StInit : StFatal;
      StInit:  if (init_done_i) state_d = StReady;
      StReady: if (!setup_i.en || nssr_i) state_d = StDrain;
               else if (fatal_i) state_d = StFatal;
      StFatal: if (!setup_i.en || nssr_i) state_d = StDrain;
      StDrain: if (quiet_q) state_d = StFlush;
      StFlush: if (flush_done_i) state_d = StClear;
      default: state_d = StOff;
    endcase

    shst_d = shst_q;
    if (state_q == StClear) shst_d = ShstNormal;
    else if (state_q == StOff && !setup_i.en)
      shst_d = (setup_i.shn != '0) ? ShstComplete : ShstNormal;
    else if (state_q == StReady || state_q == StFatal) begin
      if (shst_q == ShstNormal && setup_i.shn != '0) shst_d = ShstOccurring;
      else if (shst_q == ShstOccurring && quiet_q) shst_d = ShstComplete;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StOff;
      rdy_q <= 1'b0;
      cfs_q <= 1'b0;
      shst_q <= ShstNormal;
      quiet_q <= 1'b0;
    end else begin
      quiet_q <= quiet_i && !fetch_o;
      state_q <= state_d;
      shst_q <= shst_d;
      if (state_d == StReady) rdy_q <= 1'b1;
      if (state_d == StFatal) cfs_q <= 1'b1;
      if (state_q == StClear) begin
        rdy_q <= 1'b0;
        cfs_q <= 1'b0;
      end
    end
  end

  assign rdy_o = rdy_q;
  assign cfs_o = cfs_q;
  assign shst_o = shst_q;
  assign fetch_o = state_q == StReady && shst_q == ShstNormal;
  assign init_o = state_q == StInit;
  assign flush_o = state_q == StFlush;
  assign clear_o = state_q == StClear;
  assign nssr_done_o = state_q == StClear && nssr_i;
  assign busy_o = (state_q == StReady || state_q == StFatal || state_q == StOff)
                  ? state_d != state_q || shst_d != shst_q || shst_q == ShstOccurring : 1'b1;

  logic unused;
  assign unused = ^{setup_i.wrr, setup_i.iosqes_ok, setup_i.iocqes_ok};

endmodule
