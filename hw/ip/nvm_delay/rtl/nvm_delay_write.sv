// SPDX-License-Identifier: Apache-2.0

// Write direction: AW and W pass through, B is held until its deadline.
//
// AW keeps its ID, so the memory keeps the order of writes of one ID; B of one ID return in that
// order. W waits for its AW to be accepted, and for the bandwidth cap. B leaves when it has
// returned, its deadline has come, and all older writes of its ID have left. A B that returns after
// its deadline bypasses to the output register. A response is late if it is offered after its
// deadline for any reason but a slow master.
`include "ns_assert.svh"

module nvm_delay_write
  import nvm_delay_pkg::*;
#(
  /// Transactions in flight: a power of two, 32 to 512.
  parameter int unsigned Slots = 64,
  /// Bits of an ID.
  parameter int unsigned IdWidth = 8,
  /// Bits of an address.
  parameter int unsigned AddrWidth = 64,
  /// Bits of a beat.
  parameter int unsigned DataWidth = 512,
  localparam int unsigned SlotWidth = unsigned'($clog2(Slots)),
  localparam int unsigned InitBits = SlotWidth + 1
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  /// Current cycle.
  input  cycle_t                 now_i,
  /// The cap is ignored, and responses leave as soon as they arrive.
  input  logic                   flush_i,
  /// Committed parameters.
  input  config_t                config_i,
  /// A time is written.
  input  logic                   time_valid_i,
  /// Its index and value.
  input  time_write_t            time_i,
  /// Committed bandwidth cap.
  input  rate_t                  rate_i,
  /// Set-up after reset: slot and row `init_index_i` are initialised; nothing is accepted
  /// meanwhile.
  input  logic                   init_i,
  /// See init_i.
  input  logic [InitBits-1:0]             init_index_i,
  /// Something is in flight.
  output logic                   busy_o,
  /// Writes in flight; 255: at least as many.
  output logic [7:0]             used_o,

  /// Slave port.
  input  logic                   s_awvalid_i,
  output logic                   s_awready_o,
  input  logic [IdWidth-1:0]     s_awid_i,
  input  logic [AddrWidth-1:0]   s_awaddr_i,
  input  logic [7:0]             s_awlen_i,
  input  logic [2:0]             s_awsize_i,
  input  extra_t                 s_awextra_i,
  input  logic                   s_wvalid_i,
  output logic                   s_wready_o,
  input  logic [DataWidth-1:0]   s_wdata_i,
  input  logic [DataWidth/8-1:0] s_wstrb_i,
  input  logic                   s_wlast_i,
  output logic                   s_bvalid_o,
  input  logic                   s_bready_i,
  output logic [IdWidth-1:0]     s_bid_o,
  output logic [1:0]             s_bresp_o,

  /// Master port.
  output logic                   m_awvalid_o,
  input  logic                   m_awready_i,
  output logic [IdWidth-1:0]     m_awid_o,
  output logic [AddrWidth-1:0]   m_awaddr_o,
  output logic [7:0]             m_awlen_o,
  output logic [2:0]             m_awsize_o,
  output extra_t                 m_awextra_o,
  output logic                   m_wvalid_o,
  input  logic                   m_wready_i,
  output logic [DataWidth-1:0]   m_wdata_o,
  output logic [DataWidth/8-1:0] m_wstrb_o,
  output logic                   m_wlast_o,
  input  logic                   m_bvalid_i,
  input  logic [IdWidth-1:0]     m_bid_i,
  input  logic [1:0]             m_bresp_i,

  /// For the counters: a W beat is accepted.
  output logic                   beat_o,
  /// For the counters: a B is accepted.
  output logic                   done_o,
  /// Its latency.
  output cycle_t                 latency_o,
  /// The write is late.
  output logic                   late_o
);

  typedef struct packed {
    logic [IdWidth-1:0]   id;
    logic [7:0]           len;
    logic [2:0]           size;
    extra_t               extra;
    logic [AddrWidth-1:0] addr;
  } aw_t;

  logic [SlotWidth-1:0] b_slot_q;  // slot of the offered response

  // AW: allocates a slot.
  logic accept, aw_ready, slot_valid, target_ready, order_ready;
  logic [SlotWidth-1:0] slot;
  logic [SlotWidth:0] used;
  aw_t m_aw;

  assign s_awready_o = aw_ready && slot_valid && target_ready && !init_i;
  assign accept = s_awvalid_i && s_awready_o;

  ns_fifo #(
    .Width($bits(aw_t)),
    .Depth(2),
    .Style("lutram")
  ) u_aw (
    .clk_i,
    .rst_ni,
    .in_valid_i (accept),
    .in_ready_o (aw_ready),
    .in_data_i  ({s_awid_i, s_awlen_i, s_awsize_i, s_awextra_i, s_awaddr_i}),
    .out_valid_o(m_awvalid_o),
    .out_ready_i(m_awready_i),
    .out_data_o (m_aw),
    .count_o    ()
  );

  assign m_awid_o = m_aw.id;
  assign m_awaddr_o = m_aw.addr;
  assign m_awlen_o = m_aw.len;
  assign m_awsize_o = m_aw.size;
  assign m_awextra_o = m_aw.extra;

  nvm_delay_free_list #(
    .Count(Slots)
  ) u_slots (
    .clk_i,
    .rst_ni,
    .valid_o(slot_valid),
    .index_o(slot),
    .pop_i  (accept),
    .push_i (done_o),
    .index_i(b_slot_q),
    .used_o (used)
  );

  assign used_o = (32'(used) > 255) ? 8'd255 : 8'(used);

  // W: after its AW, under the cap. `order` holds the size of each burst with data to come.
  logic w_open, w_allowed, cap_allowed, cap_busy, m_w_fire;
  logic [2:0] w_size;

  ns_fifo #(
    .Width(3),
    .Depth(Slots),
    .Style("lutram")
  ) u_order (
    .clk_i,
    .rst_ni,
    .in_valid_i (accept),
    .in_ready_o (order_ready),
    .in_data_i  (s_awsize_i),
    .out_valid_o(w_open),
    .out_ready_i(m_w_fire && m_wlast_o),
    .out_data_o (w_size),
    .count_o    ()
  );

  // Data passes combinationally: both handshakes wait for `w_allowed`, a function of registers.
  assign w_allowed = w_open && (cap_allowed || flush_i);
  assign m_wvalid_o = s_wvalid_i && w_allowed;
  assign s_wready_o = m_wready_i && w_allowed;
  assign {m_wlast_o, m_wstrb_o, m_wdata_o} = {s_wlast_i, s_wstrb_i, s_wdata_i};
  assign m_w_fire = m_wvalid_o && m_wready_i;

  nvm_delay_cap #(
    .BeatBytes(DataWidth / 8)
  ) u_cap (
    .clk_i,
    .rst_ni,
    .rate_i   (rate_i),
    .allowed_o(cap_allowed),
    .beat_i   (m_w_fire && !flush_i),
    .size_i   (w_size),
    .busy_o   (cap_busy)
  );

  // Deadlines.
  logic target_valid, wheel_ready;
  logic [SlotWidth-1:0] target_slot;
  time_t target_rel, target_beat;
  logic timing_valid, timing_off;
  logic [SlotWidth-1:0] timing_slot;
  cycle_t target_due;
  logic wheel_due, wheel_due_ready;
  logic [SlotWidth-1:0] wheel_due_slot;
  logic [SlotWidth-1:0] out_slot;
  logic unused_target;
  assign unused_target = ^{target_rel[FracBits-1:0], target_beat, timing_valid, timing_off, timing_slot, order_ready};

  nvm_delay_target #(
    .Slots     (Slots),
    .AddrWidth (AddrWidth),
    .WholeBurst(1'b1),
    .Lead      (1)
  ) u_target (
    .clk_i,
    .rst_ni,
    .now_i,
    .config_i,
    .time_valid_i,
    .time_i,
    .ready_o       (target_ready),
    .accept_i      (accept),
    .slot_i        (slot),
    .addr_i        (s_awaddr_i),
    .len_i         (s_awlen_i),
    .timing_valid_o(timing_valid),
    .timing_slot_o (timing_slot),
    .timing_beat_o (target_beat),
    .timing_off_o  (timing_off),
    .valid_o       (target_valid),
    .ready_i       (wheel_ready),
    .slot_o        (target_slot),
    .rel_o         (target_rel),
    .due_o         (target_due)
  );

  nvm_delay_wheel #(
    .Slots(Slots)
  ) u_wheel (
    .clk_i,
    .rst_ni,
    .now_i,
    .flush_i,
    .init_i,
    .init_row_i (init_index_i),
    .valid_i    (target_valid),
    .ready_o    (wheel_ready),
    .slot_i     (target_slot),
    .due_i      (target_due),
    .due_o      (wheel_due),
    .due_ready_i(wheel_due_ready),
    .due_slot_o (wheel_due_slot)
  );

  // Responses. A slot is due from the cycle before its deadline on.
  (* ram_style = "distributed" *) cycle_t received[Slots];
  (* ram_style = "distributed" *) logic [IdWidth-1:0] id_of[Slots];
  (* ram_style = "distributed" *) logic [1:0] resp[Slots];
  (* ram_style = "distributed" *) logic off_of[Slots];
  (* ram_style = "distributed" *) logic [IntBits-1:0] rel_of[Slots];  // the target
  logic [SlotWidth-1:0] response_slot, ready_slot;
  logic
      b_valid_q,
      b_first_q,
      b_late_q,
      b_off_q,
      b_free,
      ready_valid,
      ready_released,
      ready_pop,
      bypass,
      out_load;
  logic [IdWidth-1:0] b_id_q;
  logic [1:0] b_resp_q;
  cycle_t b_received_q;
  logic [IntBits-1:0] b_rel_q;

  assign b_free = !b_valid_q || s_bready_i;
  assign ready_pop = ready_valid && b_free;
  assign out_load = ready_pop || bypass;
  assign out_slot = ready_valid ? ready_slot : response_slot;

  nvm_delay_order #(
    .Slots        (Slots),
    .IdWidth      (IdWidth),
    .ResponsesById(1'b1)
  ) u_order_ids (
    .clk_i,
    .rst_ni,
    .init_i,
    .init_slot_i     (init_index_i[SlotWidth-1:0]),
    .accept_i        (accept),
    .slot_i          (slot),
    .id_i            (s_awid_i),
    .single_i        (1'b1),
    .due_now_i       (!config_i.enable),
    .due_i           (wheel_due),
    .due_ready_o     (wheel_due_ready),
    .due_slot_i      (wheel_due_slot),
    .response_i      (m_bvalid_i),
    .response_slot_i (response_slot),
    .bypass_ready_i  (b_free && !ready_valid),
    .bypass_o        (bypass),
    .empty_i         (ready_pop),
    .empty_slot_i    (ready_slot),
    .ready_valid_o   (ready_valid),
    .ready_slot_o    (ready_slot),
    .ready_released_o(ready_released),
    .ready_pop_i     (ready_pop),
    .ready_keep_due_i(1'b0),
    .release_i       (bypass || (ready_pop && !ready_released)),
    .release_slot_i  (out_slot),
    .lookup_i        (m_bvalid_i),
    .lookup_id_i     (m_bid_i),
    .lookup_slot_o   (response_slot)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
    end else begin
      if (b_free) b_valid_q <= out_load;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      received[slot] <= now_i;
      id_of[slot] <= s_awid_i;
      off_of[slot] <= !config_i.enable;
    end
    if (target_valid && wheel_ready) rel_of[target_slot] <= target_rel[TimeWidth-1:FracBits];
    if (m_bvalid_i) resp[response_slot] <= m_bresp_i;
    b_first_q <= out_load;
    if (b_valid_q) b_late_q <= late_o;
    if (out_load) begin
      b_slot_q <= out_slot;
      b_received_q <= received[out_slot];
      b_rel_q <= rel_of[out_slot];
      b_off_q <= off_of[out_slot];
      b_id_q <= ready_valid ? id_of[ready_slot] : m_bid_i;
      b_resp_q <= ready_valid ? resp[ready_slot] : m_bresp_i;
    end
  end

  assign s_bvalid_o = b_valid_q;
  assign s_bid_o = b_id_q;
  assign s_bresp_o = b_resp_q;

  assign beat_o = s_wvalid_i && s_wready_o;
  assign done_o = b_valid_q && s_bready_i;
  assign latency_o = now_i - b_received_q;
  // Evaluated in the cycle in which the response is first offered.
  assign late_o = b_first_q ? !b_off_q && latency_o > cycle_t'(b_rel_q) : b_late_q;
  assign busy_o = used != '0 || cap_busy;

  `NS_ASSERT(order_never_full, !accept || order_ready)
  `NS_ASSERT(b_matches_id, !m_bvalid_i || id_of[response_slot] == m_bid_i)
  `NS_ASSERT(b_for_a_write, !m_bvalid_i || used != '0)

endmodule
