// SPDX-License-Identifier: Apache-2.0

// BAR0: the generated controller properties (nvme_regs), and separate handling of doorbells, MSI-X
// accesses and INTMC.
//
// The response of a read follows the writes to the host that were decided before it (PCI Express
// 4.0, 2.4.1). These are the message that msix has ready, and all writes of nvme_host_writes that
// the link has not accepted. Doorbells form one stream. A doorbell of a queue beyond the
// controller's is dropped and reported at `db_unknown_o`. Assumption: the stream accepts each
// doorbell after a few cycles.
`include "ns_axil_regs.svh"

module nvme_bar0
  import nvme_pkg::*;
  import nvme_regs_pkg::*;
#(
  /// Queues, the admin queue included.
  parameter int unsigned NumQueues    = 17,
  /// Largest I/O queue in entries.
  parameter int unsigned QueueEntries = 1024
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  /// From registers: a further clock edge could change the state without new input.
  output logic                busy_o,

  /// BAR0: 16 bits of address.
  ns_axil_if.slave s_axil,


  /// What the host has set up.
  output setup_t              setup_o,
  /// NSSR: an NVM subsystem reset is requested. Stays until it is done.
  output logic                nssr_o,
  /// The reset is done at the end of this cycle: all properties get their reset values, and
  /// CSTS.NSSRO is set.
  input  logic                nssr_done_i,
  /// CSTS.RDY.
  input  logic                rdy_i,
  /// CSTS.CFS.
  input  logic                cfs_i,
  /// CSTS.SHST.
  input  logic [ 1:0]         shst_i,
  /// Doorbell: its queue, below NumQueues.
  output logic [QidWidth-1:0] db_qid_o,
  /// Head of a completion queue; otherwise tail of a submission queue.
  output logic                db_cq_o,
  /// Value.
  output logic [PtrWidth-1:0] db_value_o,
  output logic                db_valid_o,
  input  logic                db_ready_i,
  /// A doorbell of a queue beyond the controller's was written.
  output logic                db_unknown_o,

  /// MSI-X table access, see msix.
  output logic                table_req_o,
  /// See msix.
  output logic                table_we_o,
  /// See msix.
  output logic [11:2]         table_addr_o,
  /// See msix.
  output logic [31:0]         table_wdata_o,
  /// See msix.
  output logic [31:0]         table_biten_o,
  /// See msix.
  input  logic                table_ack_i,
  /// See msix.
  input  logic [31:0]         table_rdata_i,
  /// See msix.
  input  logic [127:0]        pending_i,

  /// A message is ready.
  input  logic                msg_valid_i,
  /// The message is accepted.
  input  logic                msg_ready_i,
  /// Writes of nvme_host_writes have no response yet.
  input  logic                post_busy_i,
  /// Mark these writes.
  output logic                mark_valid_o,
  /// All marked writes have their responses.
  input  logic                marked_done_i
);

  nvme_regs__in_t hw_in;
  nvme_regs__out_t hw_out;

  // Transactions whose response has not been accepted yet.
  logic transaction_open, read_valid, read_ordered;

  // The generated block holds only what software writes, so it needs its clock only for
  // transactions and resets. It also runs during reset, as a simulation may begin without an edge
  // of rst_ni.
  logic clk_regs;

  ns_clock_gate u_gate (
    .clk_i,
    .en_i (transaction_open || s_axil.awvalid || s_axil.wvalid || s_axil.arvalid || nssr_done_i || !rst_ni),
    .clk_o(clk_regs)
  );

  nvme_regs u_regs (
    .clk          (clk_regs),
    .arst_n       (rst_ni),
    `NS_AXIL_REGS_READ_BY(s_axil, s_axil.rready && read_ordered, read_valid, 16),
    .hwif_in      (hw_in),
    .hwif_out     (hw_out)
  );

  ns_axil_outstanding u_open (
    .clk_i,
    .rst_ni,
    .open_o   (transaction_open),
    .awvalid_i(s_axil.awvalid),
    .awready_i(s_axil.awready),
    .wvalid_i (s_axil.wvalid),
    .wready_i (s_axil.wready),
    .bvalid_i (s_axil.bvalid),
    .bready_i (s_axil.bready),
    .arvalid_i(s_axil.arvalid),
    .arready_i(s_axil.arready),
    .rvalid_i (s_axil.rvalid),
    .rready_i (s_axil.rready)
  );

  // Reads, ordered after the writes that were decided before them.
  typedef enum logic [1:0] {
    ReadIdle,
    ReadMessage,  // a message is ready
    ReadWrites,   // writes are in flight
    ReadOrdered
  } read_e;
  read_e read_q;

  assign read_ordered = read_q == ReadOrdered;
  assign s_axil.rvalid = read_valid && read_ordered;
  assign mark_valid_o = read_q == ReadMessage && (!msg_valid_i || msg_ready_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_q <= ReadIdle;
    else
      unique case (read_q)
        ReadIdle:    if (read_valid) read_q <= (msg_valid_i || post_busy_i) ? ReadMessage : ReadOrdered;
        ReadMessage: if (mark_valid_o) read_q <= ReadWrites;
        ReadWrites:  if (marked_done_i) read_q <= ReadOrdered;
        default:     if (s_axil.rready) read_q <= ReadIdle;
      endcase
  end

  // Doorbells.
  logic db_valid_q, db_cq_q, db_ack_q, db_known;
  logic [QidWidth-1:0] db_qid_q;
  logic [PtrWidth-1:0] db_value_q;
  logic db_write;

  assign db_write = hw_out.doorbells.req && hw_out.doorbells.req_is_wr && hw_out.doorbells.wr_biten[15:0] == '1;
  assign db_known = 32'(hw_out.doorbells.addr[11:3]) < NumQueues;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      db_valid_q <= 1'b0;
      db_ack_q <= 1'b0;
    end else begin
      if (db_write && db_known) db_valid_q <= 1'b1;
      else if (db_ready_i) db_valid_q <= 1'b0;
      db_ack_q <= (hw_out.doorbells.req && !(db_write && db_known)) || (db_valid_q && db_ready_i);
    end
  end

  // The kind of access that db_ack_q answers.
  logic db_read_q;
  always_ff @(posedge clk_i) begin
    if (hw_out.doorbells.req) db_read_q <= !hw_out.doorbells.req_is_wr;
    if (db_write) begin
      db_qid_q <= hw_out.doorbells.addr[3+:QidWidth];
      db_cq_q <= hw_out.doorbells.addr[2];
      db_value_q <= hw_out.doorbells.wr_data[PtrWidth-1:0];
    end
  end

  assign db_qid_o = db_qid_q;
  assign db_cq_o = db_cq_q;
  assign db_value_o = db_value_q;
  assign db_valid_o = db_valid_q;
  assign db_unknown_o = db_write && !db_known;

  // MSI-X.
  logic table_read_q, pending_ack_q, pending_read_q;
  logic [31:0] pending_q;
  assign table_req_o = hw_out.msix_table.req;
  assign table_we_o = hw_out.msix_table.req_is_wr;
  assign table_addr_o = hw_out.msix_table.addr[11:2];
  assign table_wdata_o = hw_out.msix_table.wr_data;
  assign table_biten_o = hw_out.msix_table.wr_biten;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) pending_ack_q <= 1'b0;
    else pending_ack_q <= hw_out.msix_pending.req;
  end

  always_ff @(posedge clk_i) begin
    if (hw_out.msix_table.req) table_read_q <= !hw_out.msix_table.req_is_wr;
    pending_read_q <= !hw_out.msix_pending.req_is_wr;
    pending_q <= pending_i[32*hw_out.msix_pending.addr[3:2]+:32];
  end

  // INTMC is another view of INTMS.
  logic intmc_write;
  assign intmc_write = hw_out.intmc.req && hw_out.intmc.req_is_wr;

  always_comb begin
    hw_in.cap.mqes.next = 16'(QueueEntries - 1);
    hw_in.intms.ivms.next = hw_out.intms.ivms.value & ~(hw_out.intmc.wr_data.ivmc & hw_out.intmc.wr_biten.ivmc);
    hw_in.intms.ivms.we = intmc_write;
    hw_in.intmc.rd_ack = hw_out.intmc.req && !hw_out.intmc.req_is_wr;
    hw_in.intmc.rd_data.ivmc = hw_out.intms.ivms.value;
    hw_in.intmc.wr_ack = intmc_write;
    hw_in.intms.ivms.hwclr = nssr_done_i;
    hw_in.cc.en.hwclr = nssr_done_i;
    hw_in.cc.css.hwclr = nssr_done_i;
    hw_in.cc.mps.hwclr = nssr_done_i;
    hw_in.cc.ams.hwclr = nssr_done_i;
    hw_in.cc.shn.hwclr = nssr_done_i;
    hw_in.cc.iosqes.hwclr = nssr_done_i;
    hw_in.cc.iocqes.hwclr = nssr_done_i;
    hw_in.nssr.nssrc.hwclr = nssr_done_i;
    hw_in.aqa.asqs.hwclr = nssr_done_i;
    hw_in.aqa.acqs.hwclr = nssr_done_i;
    hw_in.asq.asqb_low.hwclr = nssr_done_i;
    hw_in.asq.asqb_high.hwclr = nssr_done_i;
    hw_in.acq.acqb_low.hwclr = nssr_done_i;
    hw_in.acq.acqb_high.hwclr = nssr_done_i;
    hw_in.pmrctl.en.hwclr = nssr_done_i;
    hw_in.csts.nssro.hwset = nssr_done_i;
    hw_in.pmrsts.nrdy.next = !hw_out.pmrctl.en.value;
    hw_in.csts.rdy.next = rdy_i;
    hw_in.csts.cfs.next = cfs_i;
    hw_in.csts.shst.next = shst_i;
    hw_in.doorbells.rd_ack = db_ack_q && db_read_q;
    hw_in.doorbells.rd_data = '0;
    hw_in.doorbells.wr_ack = db_ack_q && !db_read_q;
    hw_in.msix_table.rd_ack = table_ack_i && table_read_q;
    hw_in.msix_table.rd_data = table_rdata_i;
    hw_in.msix_table.wr_ack = table_ack_i && !table_read_q;
    hw_in.msix_pending.rd_ack = pending_ack_q && pending_read_q;
    hw_in.msix_pending.rd_data = pending_q;
    hw_in.msix_pending.wr_ack = pending_ack_q && !pending_read_q;
  end

  assign nssr_o = hw_out.nssr.nssrc.value == 32'h4E56_4D65;
  assign setup_o = '{
          en: hw_out.cc.en.value,
          shn: hw_out.cc.shn.value,
          cc_ok: hw_out.cc.css.value == '0 && hw_out.cc.mps.value == '0 && hw_out.cc.ams.value[2:1] == '0,
          wrr: hw_out.cc.ams.value[0],
          iosqes_ok: hw_out.cc.iosqes.value == 4'd6,
          iocqes_ok: hw_out.cc.iocqes.value == 4'd4,
          asqs: hw_out.aqa.asqs.value,
          acqs: hw_out.aqa.acqs.value,
          asq: {hw_out.asq.asqb_high.value, hw_out.asq.asqb_low.value},
          acq: {hw_out.acq.acqb_high.value, hw_out.acq.acqb_low.value}
      };

  assign busy_o = transaction_open || db_valid_q || db_ack_q;

endmodule
