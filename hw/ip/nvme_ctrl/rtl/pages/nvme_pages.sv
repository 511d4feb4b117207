// SPDX-License-Identifier: Apache-2.0

// Pages returned by admin commands: Identify, logs and the Timestamp, as a memory that the data
// path reads.
//
// Collects the events for the logs: start and end of commands, completions with an error, changes
// of namespaces, and time.
`include "ns_assert.svh"

module nvme_pages
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// Commands in flight.
  parameter int unsigned     NumSlots      = 128,
  /// Entries of the error log.
  parameter int unsigned     NumErrors     = 64,
  /// Asynchronous events at a time.
  parameter int unsigned     NumEvents     = 4,
  /// See nvme_namespace.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t      NsBlocks      = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes    = 64'h1_0000_0000,
  /// See nvme_ctrl.
  parameter int unsigned     MaxDeallocate = 131_072,
  /// PCI vendor and subsystem vendor ID.
  parameter logic [15:0]     VendorId      = 16'h4E53,
  /// Clock in kHz.
  parameter int unsigned     ClockKhz      = 250_000,
  /// I/O commands of engines.
  parameter engine_routes_t  Routes        = '0,
  /// See nvme_ctrl.
  parameter bit              DoorbellBuffer = 1'b1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic        busy_o,
  /// Controller reset.
  input  logic        reset_i,

  /// Serial number, 20 characters, the first one in the high bits, padded with spaces. From a
  /// register that changes only in reset.
  input  logic [159:0]             serial_i,
  /// EUI-64 of namespace 1; its low 4 bits are 0. From a register that changes only in reset.
  input  logic [63:0]              eui64_i,
  /// Cycles since power-on. From a register on the ungated clock.
  input  logic [63:0]              cycles_i,
  /// Composite temperature in kelvins. From a register on the ungated clock.
  input  logic [15:0]              temperature_i,
  /// Each toggles when Identify Namespace of its namespace has changed. From registers on the
  /// ungated clock.
  input  logic [NumNamespaces-1:0] ns_changed_i,
  /// The list of changed namespaces is not empty.
  output logic                     ns_listed_o,
  /// Critical Warning.
  input  logic [ 7:0]              warning_i,

  /// Page to show.
  input  page_e       page_i,
  /// Namespace that it describes.
  input  logic [31:0] page_nsid_i,
  /// Logs keep their present content, for the reads that follow.
  input  logic        snapshot_i,
  /// The log has been read, and its event may occur again.
  input  logic        clear_i,

  /// Compute power-on hours or the Timestamp.
  input  logic        time_valid_i,
  /// Hours; otherwise the Timestamp.
  input  logic        time_hours_i,
  /// Done.
  output logic        time_done_o,
  /// The host sets the Timestamp.
  input  logic        timestamp_set_i,
  /// To this, in milliseconds.
  input  logic [47:0] timestamp_i,
  /// ACRE of Host Behavior Support.
  input  logic        acre_i,

  /// A command is decoded.
  input  owner_t                owner_i,
  input  logic                  owner_valid_i,
  /// An I/O command goes to the data path.
  input  logic                  start_i,
  /// Its slot.
  input  logic [SlotWidth-1:0]  start_slot_i,
  /// What it does.
  input  data_op_e              start_op_i,
  /// Its bytes.
  input  logic [BytesWidth-1:0] start_bytes_i,
  /// It has ended.
  input  logic                  end_i,
  /// Its slot.
  input  logic [SlotWidth-1:0]  end_slot_i,
  /// How.
  input  data_status_e          end_status_i,
  /// A completion queue entry is posted.
  input  posted_t               posted_i,
  input  logic                  posted_valid_i,
  /// A doorbell that does not exist has been written.
  input  logic                  bad_register_i,
  /// An invalid value has been written to a doorbell.
  input  logic                  bad_value_i,
  /// The Keep Alive Timeout has expired.
  input  logic                  expired_i,

  /// Read address.
  input  ax_t                  ar_i,
  input  logic                 ar_valid_i,
  output logic                 ar_ready_o,
  /// Read data.
  output r_t                   r_o,
  output logic                 r_valid_o,
  input  logic                 r_ready_i
);

  logic buf_busy, error_log_busy, smart_busy;
  logic page_read;
  logic [5:0] page_beat;
  logic [511:0]
      identify_data, error_data, smart_data, firmware_data, changed_data, effects_data, logs_data;
  logic [47:0] hours, errors;
  logic [63:0] timestamp;

  nvme_log_error #(
    .NumSlots (NumSlots),
    .NumErrors(NumErrors)
  ) u_log_error (
    .clk_i,
    .rst_ni,
    .busy_o        (error_log_busy),
    .owner_i,
    .owner_valid_i,
    .posted_i      (posted_i),
    .posted_valid_i(posted_valid_i),
    .bad_register_i(bad_register_i),
    .bad_value_i   (bad_value_i),
    .expired_i     (expired_i),
    .count_o       (errors),
    .snapshot_i    (snapshot_i),
    .re_i          (page_read),
    .beat_i        (page_beat),
    .data_o        (error_data)
  );

  nvme_log_smart #(
    .NumSlots(NumSlots),
    .ClockKhz(ClockKhz)
  ) u_log_smart (
    .clk_i,
    .rst_ni,
    .busy_o       (smart_busy),
    .start_i      (start_i),
    .start_slot_i (start_slot_i),
    .start_op_i   (start_op_i),
    .start_bytes_i(start_bytes_i),
    .end_i        (end_i),
    .end_slot_i   (end_slot_i),
    .end_status_i (end_status_i),
    .cycles_i,
    .warning_i    (warning_i),
    .temperature_i,
    .hours_i      (hours),
    .errors_i     (errors),
    .re_i         (page_read),
    .beat_i       (page_beat),
    .data_o       (smart_data)
  );

  nvme_log_firmware u_log_firmware (
    .clk_i,
    .re_i  (page_read),
    .beat_i(page_beat),
    .data_o(firmware_data)
  );

  // A change from outside is a difference between the signal and its previous value.
  logic [NumNamespaces-1:0] ns_changed_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ns_changed_q <= '0;
    else ns_changed_q <= ns_changed_i;
  end

  nvme_log_changed_ns #(
    .NumNamespaces(NumNamespaces)
  ) u_log_changed_ns (
    .clk_i,
    .rst_ni,
    .reset_i   (reset_i),
    .changed_i (ns_changed_i ^ ns_changed_q),
    .any_o     (ns_listed_o),
    .snapshot_i(snapshot_i),
    .clear_i   (clear_i && page_i == PageChangedNs),
    .re_i      (page_read),
    .beat_i    (page_beat),
    .data_o    (changed_data)
  );

  nvme_log_effects #(
    .Routes        (Routes),
    .DoorbellBuffer(DoorbellBuffer)
  ) u_log_effects (
    .clk_i,
    .re_i  (page_read),
    .beat_i(page_beat),
    .data_o(effects_data)
  );

  nvme_log_supported u_log_supported (
    .clk_i,
    .re_i  (page_read),
    .beat_i(page_beat),
    .data_o(logs_data)
  );

  nvme_uptime #(
    .ClockKhz(ClockKhz)
  ) u_uptime (
    .clk_i,
    .rst_ni,
    .cycles_i,
    .reset_i    (reset_i),
    .set_i      (timestamp_set_i),
    .set_value_i(timestamp_i),
    .req_i      (time_valid_i),
    .hours_i    (time_hours_i),
    .done_o     (time_done_o),
    .hours_o    (hours),
    .timestamp_o(timestamp)
  );

  nvme_identify #(
    .NumNamespaces (NumNamespaces),
    .NsBlocks      (NsBlocks),
    .MediaBytes    (MediaBytes),
    .MaxDeallocate (MaxDeallocate),
    .VendorId      (VendorId),
    .NumEvents     (NumEvents),
    .NumErrors     (NumErrors),
    .DoorbellBuffer(DoorbellBuffer)
  ) u_identify (
    .clk_i,
    .serial_i,
    .eui64_i,
    .page_i,
    .nsid_i (page_nsid_i),
    .re_i   (page_read),
    .beat_i (page_beat),
    .data_o (identify_data)
  );

  nvme_admin_buffer u_admin_buffer (
    .clk_i,
    .rst_ni,
    .busy_o        (buf_busy),
    .page_i,
    .read_o        (page_read),
    .beat_o        (page_beat),
    .identify_i    (identify_data),
    .error_log_i   (error_data),
    .smart_log_i   (smart_data),
    .firmware_log_i(firmware_data),
    .changed_ns_i  (changed_data),
    .effects_log_i (effects_data),
    .logs_i        (logs_data),
    .timestamp_i   (timestamp),
    .acre_i,
    .ar_i,
    .ar_valid_i,
    .ar_ready_o,
    .r_o,
    .r_valid_o,
    .r_ready_i
  );

  assign busy_o = buf_busy || error_log_busy || smart_busy || ns_changed_i != ns_changed_q;

endmodule
