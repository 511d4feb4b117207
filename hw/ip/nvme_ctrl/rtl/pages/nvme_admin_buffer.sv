// SPDX-License-Identifier: Apache-2.0

// Pages returned by admin commands, as an AXI read slave: Identify, logs and features.
//
// `page_i` selects the page; addresses count from its start. Pages are at most 4 KiB. Each source
// module returns a beat of 64 bytes one cycle after `read_o`; beats beyond the page are 0. A beat
// every other cycle. One burst at a time, INCR, 64-byte beats. The page must not change during a
// transfer.
module nvme_admin_buffer
  import ns_axi_pkg::*;
  import nvme_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  /// From registers: a burst is in flight.
  output logic         busy_o,

  /// Page.
  input  page_e        page_i,
  /// Read a beat of all pages.
  output logic         read_o,
  /// Which.
  output logic [5:0]   beat_o,
  /// Identify.
  input  logic [511:0] identify_i,
  /// Error Information log.
  input  logic [511:0] error_log_i,
  /// SMART / Health Information log.
  input  logic [511:0] smart_log_i,
  /// Firmware Slot Information log.
  input  logic [511:0] firmware_log_i,
  /// Changed Namespace List.
  input  logic [511:0] changed_ns_i,
  /// Commands Supported and Effects log.
  input  logic [511:0] effects_log_i,
  /// Supported Log Pages log.
  input  logic [511:0] logs_i,
  /// Timestamp.
  input  logic [63:0]  timestamp_i,
  /// ACRE of Host Behavior Support.
  input  logic         acre_i,

  /// Read address.
  input  ax_t          ar_i,
  input  logic         ar_valid_i,
  output logic         ar_ready_o,
  /// Read data.
  output r_t           r_o,
  output logic         r_valid_o,
  input  logic         r_ready_i
);

  // Beats of the largest transfer that begins at the end of a page.
  localparam int unsigned BeatBits = TransferWidth - 6;

  typedef enum logic [1:0] {
    StIdle,
    StRead,  // request a beat from the sources
    StLoad   // store it
  } state_e;

  state_e state_q;
  logic valid_q, last_q, load_valid;
  logic [BeatBits-1:0] beat_q;
  logic [7:0] remaining_q;
  logic [IdWidth-1:0] id_q;
  logic [511:0] data_q;

  assign load_valid = state_q == StLoad && (!valid_q || r_ready_i);
  assign ar_ready_o = state_q == StIdle;
  assign read_o = state_q == StRead;
  assign beat_o = beat_q[5:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      valid_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:  if (ar_valid_i) state_q <= StRead;
        StRead:  state_q <= StLoad;
        default: if (load_valid) state_q <= (remaining_q == '0) ? StIdle : StRead;
      endcase
      if (load_valid) valid_q <= 1'b1;
      else if (r_ready_i) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      beat_q <= ar_i.addr[6+:BeatBits];
      remaining_q <= ar_i.len;
      if (ar_valid_i) id_q <= ar_i.id;
    end else if (load_valid) begin
      beat_q <= beat_q + 1'b1;
      remaining_q <= remaining_q - 1'b1;
    end
    if (load_valid) begin
      last_q <= remaining_q == '0;
      unique case (page_i)
        PageErrorLog:    data_q <= error_log_i;
        PageSmartLog:    data_q <= smart_log_i;
        PageFirmwareLog: data_q <= firmware_log_i;
        PageChangedNs:   data_q <= changed_ns_i;
        PageEffectsLog:  data_q <= effects_log_i;
        PageLogs:        data_q <= logs_i;
        PageTimestamp:   data_q <= 512'(timestamp_i);
        PageBehavior:    data_q <= (beat_q == '0) ? 512'(acre_i) : '0;
        default:         data_q <= identify_i;
      endcase
      if (beat_q[BeatBits-1:6] != '0) data_q <= '0;
    end
  end

  assign r_o = '{id: id_q, resp: RespOkay, last: last_q, data: data_q};
  assign r_valid_o = valid_q;
  assign busy_o = state_q != StIdle || valid_q;

  logic unused;
  assign unused = ^{ar_i.size, ar_i.burst, ar_i.addr[63:TransferWidth], ar_i.addr[5:0]};

endmodule
