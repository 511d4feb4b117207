// SPDX-License-Identifier: Apache-2.0

// Dispatch of fetched commands: a command is decoded, checked, and paired if it is fused. It then
// goes to the data path, an engine or nvme_admin, or ends. Aborts look for their command here and
// in the data path.
`include "ns_assert.svh"

module nvme_dispatch
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// Queues, the admin queue included.
  parameter int unsigned     NumQueues     = 17,
  /// Commands in flight, 8 to 128.
  parameter int unsigned     NumSlots      = 128,
  /// See nvme_namespace.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t      NsBlocks      = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes    = 64'h1_0000_0000,
  /// Cycles that the first command of a fused pair waits for its partner, see nvme_fused_pairing.
  parameter int unsigned     HostTimeout   = 6_250_000,
  /// Ports to engines, at least 1.
  parameter int unsigned     NumEngines    = 1,
  /// Their I/O commands.
  parameter engine_routes_t  Routes        = '0
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  /// From registers: a further clock edge could change the state without new input. Fused commands
  /// that wait for their partner are not included, as their slots are in use.
  output logic                     busy_o,
  /// A fused command waits, for its partner or for a step of nvme_fused_pairing.
  output logic                     fused_waiting_o,
  /// Cycles since the last cycle with a clock edge.
  input  logic [31:0]              elapsed_i,
  /// First commands of fused pairs that wait for their partner.
  output logic [SlotWidth-1:0]     kept_count_o,
  /// Cycles until one of them times out, see nvme_fused_pairing.
  output logic [31:0]              remaining_o,

  /// Commands are fetched; otherwise the controller is being stopped.
  input  logic                     enable_i,
  /// The host has set ACRE.
  input  logic                     acre_i,
  /// Submission queues that exist.
  input  logic [NumQueues-1:0]     sq_valid_i,
  /// Namespaces that are being formatted.
  input  logic [MaxNamespaces-1:0] formatting_i,
  /// Namespaces that have commands here or in flight.
  output logic [MaxNamespaces-1:0] in_flight_o,

  /// Fetched command.
  input  fetched_t                 cmd_i,
  input  logic                     cmd_valid_i,
  output logic                     cmd_ready_o,
  /// The owner of its slot, to be written.
  output owner_t                   owner_o,
  output logic                     owner_valid_o,

  /// Admin command.
  output admin_cmd_t               admin_o,
  output logic                     admin_valid_o,
  input  logic                     admin_ready_i,
  /// Data command of an I/O queue.
  output data_cmd_t                data_o,
  output logic                     data_valid_o,
  input  logic                     data_ready_i,
  /// A data command that has ended, once.
  input  data_done_t               done_i,
  input  logic                     done_valid_i,

  /// An Abort, or the deletion of a queue: see nvme_abort.
  input  abort_t                   abort_i,
  output logic                     abort_done_o,
  output logic                     aborted_o,
  /// The owner of query_slot_o.
  input  logic [QidWidth-1:0]      abort_slot_qid_i,
  input  logic [15:0]              abort_slot_cid_i,
  /// Query to the data path for a command to abort: see nvme_data.
  output logic                     query_valid_o,
  output logic [SlotWidth-1:0]     query_slot_o,
  output logic                     query_current_o,
  output logic                     query_deleted_o,
  input  logic                     query_ready_i,
  input  logic                     query_found_i,
  /// Completion queue entry being posted.
  input  posted_t                  posted_i,
  input  logic                     posted_valid_i,

  /// Commands that have ended without moving data.
  output cpl_t                     cpl_o,
  output logic                     cpl_valid_o,
  input  logic                     cpl_ready_i,
  /// Commands of engines that have ended.
  output cpl_t                     engine_cpl_o,
  output logic                     engine_cpl_valid_o,
  input  logic                     engine_cpl_ready_i,
  /// I/O commands of engines.
  nvme_engine_if.controller        m_engine[NumEngines]
);

  // Abort of I/O commands.
  logic fused_query_valid, fused_query_ready, fused_query_found;
  logic engine_query_found;

  nvme_abort #(
    .NumSlots(NumSlots)
  ) u_abort (
    .clk_i,
    .rst_ni,
    .abort_i,
    .done_o             (abort_done_o),
    .aborted_o,
    .slot_o             (query_slot_o),
    .slot_qid_i         (abort_slot_qid_i),
    .slot_cid_i         (abort_slot_cid_i),
    .query_valid_o,
    .query_current_o,
    .query_ready_i,
    .query_found_i      (query_found_i || engine_query_found),
    .fused_query_valid_o(fused_query_valid),
    .fused_query_ready_i(fused_query_ready),
    .fused_query_found_i(fused_query_found),
    .posted_i,
    .posted_valid_i
  );

  assign query_deleted_o = abort_i.whole;

  // Fused commands.
  data_cmd_t decode_data, fused_data, io_cmd;
  logic
      decode_data_valid,
      fused_data_valid,
      fused_data_first,
      fused_data_second,
      io_cmd_valid,
      io_cmd_ready;
  logic [NumQueues-1:0] fused_pending;
  logic [QidWidth-1:0] fused_qid;
  logic [1:0] fused_fuse;
  logic [7:0] fused_sc;
  logic fused_more, fused_data_op, fused_engine, fused_valid, fused_ready, fused_engine_valid;
  cpl_t decode_cpl, fused_cpl, arbiter_cpl;
  logic
      decode_cpl_valid,
      fused_cpl_valid,
      arbiter_cpl_valid,
      cpl_slice_ready,
      arbiter_busy,
      arbiter_drop_valid;
  logic [SlotWidth-1:0] arbiter_drop_slot;

  nvme_fused_pairing #(
    .NumQueues(NumQueues),
    .Cycles   (HostTimeout)
  ) u_fused_pairing (
    .clk_i,
    .rst_ni,
    .elapsed_i,
    .kept_count_o,
    .remaining_o,
    .enable_i,
    .acre_i,
    .sq_valid_i,
    .pending_o      (fused_pending),
    .cmd_qid_i      (fused_qid),
    .cmd_fuse_i     (fused_fuse),
    .cmd_more_i     (fused_more),
    .cmd_sc_i       (fused_sc),
    .cmd_data_op_i  (fused_data_op),
    .cmd_engine_i   (fused_engine),
    .cmd_i          (decode_data),
    .cmd_valid_i    (fused_valid),
    .cmd_ready_o    (fused_ready),
    .abort_valid_i  (fused_query_valid),
    .abort_qid_i    (abort_i.qid),
    .abort_slot_i   (query_slot_o),
    .abort_current_i(query_current_o),
    .abort_ready_o  (fused_query_ready),
    .abort_found_o  (fused_query_found),
    .engine_valid_o (fused_engine_valid),
    .data_o         (fused_data),
    .data_first_o   (fused_data_first),
    .data_second_o  (fused_data_second),
    .data_valid_o   (fused_data_valid),
    .data_ready_i   (io_cmd_ready),
    .cpl_o          (fused_cpl),
    .cpl_valid_o    (fused_cpl_valid),
    .cpl_ready_i    (cpl_slice_ready && !arbiter_cpl_valid)
  );

  // The decoder sends no data command while it waits for nvme_fused_pairing, but may have a
  // completion left.
  assign io_cmd = fused_data_valid ? fused_data : decode_data;
  assign io_cmd_valid = fused_data_valid || decode_data_valid;

  nvme_fused_arbiter #(
    .NumSlots  (NumSlots),
    .MediaBytes(MediaBytes)
  ) u_fused_arbiter (
    .clk_i,
    .rst_ni,
    .busy_o              (arbiter_busy),
    .cmd_i               (io_cmd),
    .cmd_first_i         (fused_data_first),
    .cmd_second_i        (fused_data_second),
    .cmd_valid_i         (io_cmd_valid),
    .cmd_ready_o         (io_cmd_ready),
    .data_o,
    .data_valid_o,
    .data_ready_i,
    .end_i               (done_valid_i),
    .end_slot_i          (done_i.slot),
    .end_error_i         (done_i.status != DataOk),
    .abort_waiting_i     (abort_i.whole && query_valid_o && query_ready_i && query_current_o),
    .abort_waiting_slot_i(query_slot_o),
    .cpl_o               (arbiter_cpl),
    .cpl_valid_o         (arbiter_cpl_valid),
    .cpl_ready_i         (cpl_slice_ready),
    .drop_valid_o        (arbiter_drop_valid),
    .drop_slot_o         (arbiter_drop_slot)
  );

  // The choice among completions must not depend combinationally on the host's read data.
  ns_skid #(
    .Width($bits(cpl_t))
  ) u_decode_cpl (
    .clk_i,
    .rst_ni,
    .in_valid_i (arbiter_cpl_valid || fused_cpl_valid || decode_cpl_valid),
    .in_ready_o (cpl_slice_ready),
    .in_data_i  (arbiter_cpl_valid ? arbiter_cpl : fused_cpl_valid ? fused_cpl : decode_cpl),
    .out_valid_o(cpl_valid_o),
    .out_ready_i(cpl_ready_i),
    .out_data_o (cpl_o)
  );

  // Commands of engines.
  logic [511:0] engine_sqe;
  logic [SlotWidth-1:0] engine_slot;
  engine_route_t engine_route;
  logic [NsWidth-1:0] engine_ns;
  logic decode_engine_valid, engines_busy;
  logic [MaxNamespaces-1:0] engines_in_flight;

  nvme_decode #(
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes),
    .Routes       (Routes),
    .NumQueues    (NumQueues)
  ) u_decode (
    .clk_i,
    .rst_ni,
    .cmd_i,
    .cmd_valid_i,
    .cmd_ready_o,
    .owner_o,
    .owner_valid_o,
    .formatting_i,
    .data_o         (decode_data),
    .data_valid_o   (decode_data_valid),
    .data_ready_i   (io_cmd_ready),
    .fused_pending_i(fused_pending),
    .fused_qid_o    (fused_qid),
    .fused_fuse_o   (fused_fuse),
    .fused_more_o   (fused_more),
    .fused_sc_o     (fused_sc),
    .fused_data_op_o(fused_data_op),
    .fused_engine_o (fused_engine),
    .fused_valid_o  (fused_valid),
    .fused_ready_i  (fused_ready),
    .engine_sqe_o   (engine_sqe),
    .engine_slot_o  (engine_slot),
    .engine_route_o (engine_route),
    .engine_ns_o    (engine_ns),
    .engine_valid_o (decode_engine_valid),
    .cpl_o          (decode_cpl),
    .cpl_valid_o    (decode_cpl_valid),
    .cpl_ready_i    (cpl_slice_ready && !fused_cpl_valid && !arbiter_cpl_valid),
    .admin_o,
    .admin_valid_o,
    .admin_ready_i
  );

  if (has_commands(Routes)) begin : gen_engines
    nvme_engines #(
      .NumSlots     (NumSlots),
      .NumNamespaces(NumNamespaces),
      .NsBlocks     (NsBlocks),
      .MediaBytes   (MediaBytes),
      .NumEngines   (NumEngines)
    ) u_engines (
      .clk_i,
      .rst_ni,
      .busy_o         (engines_busy),
      .cmd_sqe_i      (engine_sqe),
      .cmd_slot_i     (engine_slot),
      .cmd_route_i    (engine_route),
      .cmd_ns_i       (engine_ns),
      .cmd_valid_i    (decode_engine_valid || fused_engine_valid),
      .stop_i         (!enable_i),
      .acre_i,
      .abort_valid_i  (query_valid_o && query_ready_i),
      .abort_slot_i   (query_slot_o),
      .abort_current_i(query_current_o),
      .abort_deleted_i(abort_i.whole),
      .abort_found_o  (engine_query_found),
      .cpl_o          (engine_cpl_o),
      .cpl_valid_o    (engine_cpl_valid_o),
      .cpl_ready_i    (engine_cpl_ready_i),
      .in_flight_o    (engines_in_flight),
      .m_engine
    );
  end else begin : gen_no_engines
    for (genvar e = 0; e < NumEngines; e++) begin : gen_port
      assign m_engine[e].cmd = '0;
      assign m_engine[e].cmd_valid = 1'b0;
      assign m_engine[e].stop_slot = '0;
      assign m_engine[e].stop_valid = 1'b0;
      assign m_engine[e].done_ready = 1'b1;
    end
    assign engines_busy = 1'b0;
    assign engine_query_found = 1'b0;
    assign engines_in_flight = '0;
    assign engine_cpl_o = '0;
    assign engine_cpl_valid_o = 1'b0;
    logic unused;
    assign unused = ^{engine_sqe, engine_slot, engine_route, engine_ns, decode_engine_valid, fused_engine_valid, engine_cpl_ready_i};
  end

  // A data command counts from the cycle in which nvme_fused_arbiter sees it.
  logic io_start_valid, io_shown_q, in_flight_busy;
  logic [MaxNamespaces-1:0] data_in_flight;
  assign io_start_valid = io_cmd_valid && !io_shown_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) io_shown_q <= 1'b0;
    else io_shown_q <= io_cmd_valid && !io_cmd_ready;
  end

  nvme_ns_in_flight #(
    .NumSlots     (NumSlots),
    .NumNamespaces(NumNamespaces)
  ) u_ns_in_flight (
    .clk_i,
    .rst_ni,
    .busy_o      (in_flight_busy),
    .start_i     (io_start_valid),
    .start_slot_i(io_cmd.slot),
    .start_ns_i  (io_cmd.ns),
    .end_i       (done_valid_i || arbiter_drop_valid),
    .end_slot_i  (arbiter_drop_valid ? arbiter_drop_slot : done_i.slot),
    .in_flight_o (data_in_flight)
  );

  // A command that waits in nvme_fused_pairing has passed the check against Format NVM, but moves
  // no data yet.
  logic [MaxNamespaces-1:0] fused_in_flight;
  always_comb begin
    fused_in_flight = '0;
    fused_in_flight[decode_data.ns] = fused_valid;
  end

  assign in_flight_o = data_in_flight | fused_in_flight | engines_in_flight;
  assign fused_waiting_o = fused_pending != '0 || fused_valid;
  assign busy_o = in_flight_busy || arbiter_busy || engines_busy;

endmodule
