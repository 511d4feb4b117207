// SPDX-License-Identifier: Apache-2.0

// PRP and SGL walkers: command queues and walkers for both directions, and the list reads that they
// share.
//
// Direction 0 is device to host; 1 is host to device and comparisons. Each direction has a queue
// with a place for every slot, NumWalkers PRP walkers and NumSglWalkers SGL walkers. Each walker is
// followed by an nvme_block_assembler. Groups of transfer segments are granted round robin, each
// without interruption; those of one command stay in order. Another SGL walker finds the list of
// ranges of a Dataset Management for nvme_ranges. All walkers share one host read port and one
// buffer RAM for lists. List data are always accepted: a walker requests only lines that it has
// room for. The clock of an SGL walker runs only while it has a command.
`include "ns_assert.svh"

module nvme_walkers
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Commands that each direction's queue holds.
  parameter int unsigned NumSlots   = 64,
  /// PRP walkers per direction.
  parameter int unsigned NumWalkers = 4,
  /// SGL walkers per direction. A command waits at the head of the queue while all of them are
  /// busy.
  parameter int unsigned NumSglWalkers = 1,
  /// See nvme_sgl_walker.
  parameter int unsigned MaxEmpty = 4096,
  /// Number of walkers: IDs of list reads are below it.
  localparam int unsigned NumAll = 2 * (NumWalkers + NumSglWalkers) + 1
) (
  input logic clk_i,
  input logic rst_ni,
  /// From registers: there are commands inside.
  output logic busy_o,

  /// Command.
  input  data_cmd_t cmd_i,
  input  logic      cmd_valid_i,
  output logic      cmd_ready_o,

  /// Transfer segment of each direction, see nvme_block_assembler.
  output seg_t [1:0] seg_o,
  output logic [1:0] seg_valid_o,
  input  logic [1:0] seg_ready_i,

  /// End of a walk.
  output transfer_event_t event_o,
  output logic            event_valid_o,
  input  logic            event_ready_i,

  /// Dataset Management with an SGL: its list is to be found. `bytes` is the length of the list.
  input  data_cmd_t       list_cmd_i,
  input  logic            list_cmd_valid_i,
  output logic            list_cmd_ready_o,
  /// Segment of the list: address and length are used.
  output seg_t            list_seg_o,
  output logic            list_seg_valid_o,
  input  logic            list_seg_ready_i,
  /// End of the list; its status is used.
  output transfer_event_t list_event_o,
  output logic            list_event_valid_o,
  input  logic            list_event_ready_i,

  /// List read address, ID = walker.
  output ax_t  ar_o,
  output logic ar_valid_o,
  input  logic ar_ready_i,
  /// List data.
  input  r_t   r_i,
  input  logic r_valid_i,
  output logic r_ready_o
);

  // Direction 0 first; in each, PRPs first, then SGLs.
  localparam int unsigned Each = NumWalkers + NumSglWalkers;
  localparam int unsigned ListWalker = NumAll - 1;
  localparam int unsigned AllBits = unsigned'($clog2(NumAll));
  localparam int unsigned Lines = 4;
  localparam int unsigned LineBits = unsigned'($clog2(Lines));

  data_cmd_t [1:0] cmd;
  logic [1:0] cmd_valid, cmd_ready, queue_ready;
  logic to_media;
  logic [NumAll-1:0] walker_valid, walker_ready;

  seg_t [NumAll-1:0] seg;
  logic [NumAll-1:0] seg_valid, seg_ready;
  transfer_event_t [NumAll-1:0] walk_event;
  logic [NumAll-1:0] walk_valid, walk_ready;

  logic [NumAll-1:0] walker_busy;
  logic [NumAll-1:0][63:0] list_addr;
  logic [NumAll-1:0] list_two, list_valid, list_gnt, list_ready;
  logic [NumAll-1:0] line_arrived;
  logic [NumAll-1:0][LineBits-1:0] line_write, entry_line;
  logic [NumAll-1:0][2:0] entry_idx;
  logic [NumAll-1:0] entry_req, entry_gnt, entry_valid_q;
  logic [63:0] entry_q;

  assign to_media = cmd_i.op != OpRead;
  assign cmd_ready_o = queue_ready[to_media];

  for (genvar d = 0; d < 2; d++) begin : gen_direction
    ns_fifo #(
      .Width($bits(data_cmd_t)),
      .Depth(NumSlots)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (cmd_valid_i && to_media == 1'(d)),
      .in_ready_o (queue_ready[d]),
      .in_data_i  (cmd_i),
      .out_valid_o(cmd_valid[d]),
      .out_ready_i(cmd_ready[d]),
      .out_data_o (cmd[d]),
      .count_o    ()
    );

    // The lowest free walker of the right kind accepts the command.
    logic [Each-1:0] kind, free;
    assign kind = cmd[d].sgl ? {{NumSglWalkers{1'b1}}, {NumWalkers{1'b0}}} : {{NumSglWalkers{1'b0}}, {NumWalkers{1'b1}}};
    assign free = walker_ready[d*Each+:Each] & kind;
    assign walker_valid[d*Each+:Each] = free & (~free + 1'b1) & {Each{cmd_valid[d]}};
    assign cmd_ready[d] = free != '0;

    logic [idx_width(Each)-1:0] idx;
    logic [Each-1:0] grant_mask_q;  // allowed grants: within a group, only its walker

    ns_rr_arbiter #(
      .N(Each)
    ) u_segments (
      .clk_i,
      .rst_ni,
      .req_i  (seg_valid[d*Each+:Each] & grant_mask_q),
      .next_i (seg_ready_i[d]),
      .gnt_o  (seg_ready[d*Each+:Each]),
      .idx_o  (idx),
      .valid_o(seg_valid_o[d])
    );
    assign seg_o[d] = seg[d*Each+32'(idx)];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) grant_mask_q <= '1;
      else if (seg_valid_o[d] && seg_ready_i[d])
        grant_mask_q <= seg_o[d].more ? seg_ready[d*Each+:Each] : '1;
    end
  end

  assign walker_valid[ListWalker] = list_cmd_valid_i;
  assign list_cmd_ready_o = walker_ready[ListWalker];
  assign list_seg_o = seg[ListWalker];
  assign list_seg_valid_o = seg_valid[ListWalker];
  assign seg_ready[ListWalker] = list_seg_ready_i;
  assign list_event_o = walk_event[ListWalker];
  assign list_event_valid_o = walk_valid[ListWalker];

  for (genvar w = 0; w < NumAll; w++) begin : gen_walker
    data_cmd_t walker_cmd;
    seg_t walker_seg;
    transfer_event_t walker_event;
    logic walker_seg_valid, walker_seg_ready, walker_event_valid, walker_event_ready;
    logic clk;

    if (w == ListWalker) begin : gen_list
      assign walker_cmd = list_cmd_i;
      assign seg[w] = walker_seg;
      assign seg_valid[w] = walker_seg_valid;
      assign walker_seg_ready = seg_ready[w];
      assign walk_event[w] = walker_event;
      assign walk_valid[w] = walker_event_valid;
      assign walker_event_ready = walk_ready[w];
    end else begin : gen_direction
      assign walker_cmd = cmd[w/Each];

      nvme_block_assembler #(
        .ToHost(w / Each == 0),
        .ManySegments(w % Each >= NumWalkers)
      ) u_block_assembler (
        .clk_i        (clk),
        .rst_ni,
        .seg_i        (walker_seg),
        .seg_valid_i  (walker_seg_valid),
        .seg_ready_o  (walker_seg_ready),
        .event_i      (walker_event),
        .event_valid_i(walker_event_valid),
        .event_ready_o(walker_event_ready),
        .seg_o        (seg[w]),
        .seg_valid_o  (seg_valid[w]),
        .seg_ready_i  (seg_ready[w] && seg_ready_i[w/Each]),
        .event_o      (walk_event[w]),
        .event_valid_o(walk_valid[w]),
        .event_ready_i(walk_ready[w])
      );
    end

    if (w != ListWalker && w % Each < NumWalkers) begin : gen_prp
      nvme_prp_walker #(
        .Lines(Lines)
      ) u_walker (
        .clk_i,
        .rst_ni,
        .cmd_i         (walker_cmd),
        .cmd_valid_i   (walker_valid[w]),
        .cmd_ready_o   (walker_ready[w]),
        .seg_o         (walker_seg),
        .seg_valid_o   (walker_seg_valid),
        .seg_ready_i   (walker_seg_ready),
        .list_addr_o   (list_addr[w]),
        .list_two_o    (list_two[w]),
        .list_valid_o  (list_valid[w]),
        .list_ready_i  (list_ready[w]),
        .line_arrived_i(line_arrived[w]),
        .line_error_i  (r_i.resp[1]),
        .line_write_o  (line_write[w]),
        .entry_req_o   (entry_req[w]),
        .entry_gnt_i   (entry_gnt[w]),
        .entry_line_o  (entry_line[w]),
        .entry_idx_o   (entry_idx[w]),
        .entry_i       (entry_q),
        .entry_valid_i (entry_valid_q[w]),
        .event_o       (walker_event),
        .event_valid_o (walker_event_valid),
        .event_ready_i (walker_event_ready)
      );
      assign walker_busy[w] = 1'b0;  // not used
      assign clk = clk_i;
    end else begin : gen_sgl
      ns_clock_gate u_gate (
        .clk_i,
        .en_i (walker_busy[w] || walker_valid[w]),
        .clk_o(clk)
      );

      nvme_sgl_walker #(
        .Lines   (Lines),
        .MaxEmpty(MaxEmpty)
      ) u_walker (
        .clk_i         (clk),
        .rst_ni,
        .busy_o        (walker_busy[w]),
        .cmd_i         (walker_cmd),
        .cmd_valid_i   (walker_valid[w]),
        .cmd_ready_o   (walker_ready[w]),
        .seg_o         (walker_seg),
        .seg_valid_o   (walker_seg_valid),
        .seg_ready_i   (walker_seg_ready),
        .list_addr_o   (list_addr[w]),
        .list_two_o    (list_two[w]),
        .list_valid_o  (list_valid[w]),
        .list_ready_i  (list_ready[w]),
        .line_arrived_i(line_arrived[w]),
        .line_error_i  (r_i.resp[1]),
        .line_write_o  (line_write[w]),
        .entry_req_o   (entry_req[w]),
        .entry_gnt_i   (entry_gnt[w]),
        .entry_line_o  (entry_line[w]),
        .entry_idx_o   (entry_idx[w]),
        .entry_i       (entry_q),
        .entry_valid_i (entry_valid_q[w]),
        .event_o       (walker_event),
        .event_valid_o (walker_event_valid),
        .event_ready_i (walker_event_ready)
      );
    end
  end

  // Commands inside.
  logic [$clog2(2*(NumSlots+Each)+1)-1:0] cmds_q;
  logic cmd_in, cmd_out;

  assign busy_o = cmds_q != '0 || walker_busy[ListWalker];
  assign cmd_in = cmd_valid_i && cmd_ready_o;
  assign cmd_out = event_valid_o && event_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cmds_q <= '0;
    else if (cmd_in && !cmd_out) cmds_q <= cmds_q + 1'b1;
    else if (!cmd_in && cmd_out) cmds_q <= cmds_q - 1'b1;
  end

  // Ends of walks.
  logic [NumAll-2:0] walk_gnt;
  logic [idx_width(NumAll-1)-1:0] walk_idx;
  logic walk_any, event_free;

  assign event_free = !event_valid_o || event_ready_i;
  assign walk_ready = {list_event_ready_i, walk_gnt & {(NumAll - 1) {event_free}}};

  ns_rr_arbiter #(
    .N(NumAll - 1)
  ) u_events (
    .clk_i,
    .rst_ni,
    .req_i  (walk_valid[NumAll-2:0]),
    .next_i (event_free),
    .gnt_o  (walk_gnt),
    .idx_o  (walk_idx),
    .valid_o(walk_any)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) event_valid_o <= 1'b0;
    else if (event_free) event_valid_o <= walk_any;
  end

  always_ff @(posedge clk_i) if (event_free && walk_any) event_o <= walk_event[walk_idx];

  // List reads.
  logic [AllBits-1:0] list_idx;
  logic list_any, ar_free;

  assign ar_free = !ar_valid_o || ar_ready_i;
  assign list_ready = list_gnt & {NumAll{ar_free}};

  ns_rr_arbiter #(
    .N(NumAll)
  ) u_lists (
    .clk_i,
    .rst_ni,
    .req_i  (list_valid),
    .next_i (ar_free),
    .gnt_o  (list_gnt),
    .idx_o  (list_idx),
    .valid_o(list_any)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ar_valid_o <= 1'b0;
    else if (ar_free) ar_valid_o <= list_any;
  end

  always_ff @(posedge clk_i) begin
    if (ar_free && list_any) begin
      ar_o <= '{
          id: IdWidth'(list_idx),
          len: 8'(list_two[list_idx]),
          size: 3'd6,
          burst: BurstIncr,
          addr: list_addr[list_idx]
      };
    end
  end

  // List data, and entries read from them.
  logic [AllBits-1:0] r_idx, entry_sel, line_read_idx_q;
  logic entry_any;
  logic [NumAll-1:0] line_read_q, entry_select_q;  // one-hot, by step
  logic [2:0] entry_select_idx_q;
  logic [DataWidth-1:0] line;

  assign r_ready_o = 1'b1;
  assign r_idx = r_i.id[AllBits-1:0];
  assign line_arrived = NumAll'(r_valid_i) << r_idx;

  ns_rr_arbiter #(
    .N(NumAll)
  ) u_entries (
    .clk_i,
    .rst_ni,
    .req_i  (entry_req),
    .next_i (1'b1),
    .gnt_o  (entry_gnt),
    .idx_o  (entry_sel),
    .valid_o(entry_any)
  );

  ns_ram_1r1w #(
    .Width(DataWidth),
    .Depth(NumAll * Lines),
    .Style("lutram")
  ) u_lines (
    .clk_i,
    .we_i   (r_valid_i),
    .waddr_i({r_idx, line_write[r_idx]}),
    .wdata_i(r_i.data),
    .re_i   (line_read_q != '0),
    .raddr_i({line_read_idx_q, entry_line[line_read_idx_q]}),
    .rdata_o(line)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      line_read_q <= '0;
      entry_select_q <= '0;
      entry_valid_q <= '0;
    end else begin
      line_read_q <= entry_gnt;
      entry_select_q <= line_read_q;
      entry_valid_q <= entry_select_q;
    end
  end

  always_ff @(posedge clk_i) begin
    // A walker does not change the place of its entry until the entry has been returned.
    if (entry_any) line_read_idx_q <= entry_sel;
    if (line_read_q != '0) entry_select_idx_q <= entry_idx[line_read_idx_q];
    if (entry_select_q != '0) entry_q <= line[entry_select_idx_q*64+:64];
  end

  if (NumWalkers < 1 || NumSglWalkers < 1) begin : gen_bad_walkers
    $error("nvme_walkers: there must be walkers");
  end

  `NS_ASSERT(has_prps,
             !cmd_valid_i || cmd_i.op == OpRead || cmd_i.op == OpWrite || cmd_i.op == OpCompare)
  `NS_ASSERT(list_data_known, !r_valid_i || 32'(r_i.id) < NumAll)
  `NS_ASSERT(list_is_sgl, !list_cmd_valid_i || list_cmd_i.sgl)

endmodule
