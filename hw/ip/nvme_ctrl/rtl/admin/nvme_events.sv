// SPDX-License-Identifier: Apache-2.0

// Asynchronous events (NVMe 1.4, 5.2): what is to be reported, and what has been reported.
//
// Error events: writes to doorbells that do not exist, and invalid values. SMART: the composite
// temperature reaches a threshold, if its Critical Warning is enabled. Notices: the list of changed
// namespaces is not empty, if that notice is enabled. Of each type, one event is pending or has
// been reported. Further events of that type are masked until the host has read the log with Retain
// Asynchronous Event 0. Types are reported in the order of their numbers. Events are dropped until
// the controller is ready.
`include "ns_assert.svh"

module nvme_events
  import nvme_pkg::*;
(
  input  logic           clk_i,
  input  logic           rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic           busy_o,
  /// Controller reset: forget everything.
  input  logic           reset_i,
  /// The controller is ready.
  input  logic           active_i,

  /// A feature changes.
  input  feature_write_t feature_i,
  input  logic           feature_valid_i,

  /// A doorbell that does not exist was written.
  input  logic           bad_register_i,
  /// An invalid value was written to a doorbell.
  input  logic           bad_value_i,
  /// Composite temperature in kelvins. From a register.
  input  logic [15:0]    temperature_i,
  /// The Changed Namespace List is not empty.
  input  logic           ns_changed_i,
  /// Critical Warning of the SMART log.
  output logic [7:0]     warning_o,

  /// The host has read the log and clears the event: of errors, SMART, notices.
  input  logic [2:0]     clear_i,
  /// Event to report.
  output aer_event_t     event_o,
  /// Valid; falls if the event is cleared first.
  output logic           valid_o,
  /// It is reported.
  input  logic           report_i
);

  localparam int unsigned Error = 0;
  localparam int unsigned Smart = 1;
  localparam int unsigned Notice = 2;

  localparam logic [7:0] InvalidDoorbellRegister = 8'h00;
  localparam logic [7:0] InvalidDoorbellValue = 8'h01;
  localparam logic [7:0] TemperatureThreshold = 8'h01;
  localparam logic [7:0] NamespaceAttributeChanged = 8'h00;

  // Features.
  logic [15:0] over_q, under_q;
  logic temperature_enabled_q, notice_enabled_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      over_q <= '1;
      under_q <= '0;
      temperature_enabled_q <= 1'b0;
      notice_enabled_q <= 1'b0;
    end else if (feature_valid_i) begin
      if (feature_i.idx == FeatureTemperatureOver) over_q <= feature_i.value[15:0];
      if (feature_i.idx == FeatureTemperatureUnder) under_q <= feature_i.value[15:0];
      if (feature_i.idx == FeatureEvents) begin
        temperature_enabled_q <= feature_i.value[1];
        notice_enabled_q <= feature_i.value[8];
      end
    end
  end

  // A warning is an event when it rises, not while it lasts.
  logic outside, outside_q, alarm, alarm_q;
  assign outside = temperature_i >= over_q || temperature_i <= under_q;
  assign alarm = outside_q && temperature_enabled_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      outside_q <= 1'b0;
      alarm_q   <= 1'b0;
    end else begin
      outside_q <= outside;
      alarm_q   <= alarm && !reset_i;
    end
  end

  assign warning_o = {6'b0, outside_q, 1'b0};

  // Types.
  logic [2:0] raised, pending_q, masked_q, reported;
  logic bad_value_q;  // the pending error

  assign raised[Error] = bad_register_i || bad_value_i;
  assign raised[Smart] = alarm && !alarm_q;
  assign raised[Notice] = ns_changed_i && notice_enabled_q;

  assign reported = report_i ? pending_q & ~(pending_q - 1'b1) : '0;  // the lowest

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pending_q <= '0;
      masked_q  <= '0;
    end else if (reset_i || !active_i) begin
      pending_q <= '0;
      masked_q  <= '0;
    end else begin
      pending_q <= (pending_q & ~reported & ~clear_i) | (raised & ~pending_q & ~masked_q);
      masked_q  <= (masked_q | reported) & ~clear_i;
    end
  end

  always_ff @(posedge clk_i) if (!pending_q[Error]) bad_value_q <= !bad_register_i;

  always_comb begin
    if (pending_q[Error]) begin
      event_o = '{
          kind: 3'(Error),
          info: bad_value_q ? InvalidDoorbellValue : InvalidDoorbellRegister,
          lid: LidError
      };
    end else if (pending_q[Smart]) begin
      event_o = '{kind: 3'(Smart), info: TemperatureThreshold, lid: LidSmart};
    end else begin
      event_o = '{kind: 3'(Notice), info: NamespaceAttributeChanged, lid: LidChangedNs};
    end
  end

  assign valid_o = pending_q != '0;
  assign busy_o = outside != outside_q || alarm != alarm_q
                || (active_i && raised[Notice] && !pending_q[Notice] && !masked_q[Notice]);

  logic unused;
  assign unused = ^{feature_i.value[31:9], feature_i.value[0]};

  `NS_ASSERT(one_of_a_type, (pending_q & masked_q) == '0)
  `NS_ASSERT(report_what_there_is, !report_i || valid_o)

endmodule
