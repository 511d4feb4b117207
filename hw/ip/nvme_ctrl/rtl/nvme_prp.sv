// PRP engine: command queues and walkers for both directions, and the list reads they share.
//
// Direction 0 is device to host, 1 host to device, comparisons included. Each direction has a queue that holds all slots and NumWalkers walkers,
// whose segments are granted round robin; segments of one command stay in order. Walkers of both directions share
// one host read port and one buffer RAM for lists. List data is always accepted: a walker asks only for lines it has
// room for.
`include "ns_assert.svh"

module nvme_prp
  import ns_axi_pkg::*;
  import nvme_pkg::*;
  import nvme_data_pkg::*;
#(
  /// Commands that each direction's queue holds.
  parameter int unsigned NumSlots   = 64,
  /// Walkers per direction.
  parameter int unsigned NumWalkers = 4
) (
  /// Clock.
  input logic clk_i,
  /// Reset.
  input logic rst_ni,
  /// From registers: there are commands inside.
  output logic busy_o,

  /// Command.
  input  data_cmd_t cmd_i,
  /// Valid.
  input  logic      cmd_valid_i,
  /// Ready.
  output logic      cmd_ready_o,

  /// Segment of each direction.
  output seg_t [1:0] seg_o,
  /// Valid.
  output logic [1:0] seg_valid_o,
  /// Ready.
  input  logic [1:0] seg_ready_i,

  /// End of a walk.
  output event_t event_o,
  /// Valid.
  output logic   event_valid_o,
  /// Ready.
  input  logic   event_ready_i,

  /// List read address, ID = walker.
  output ax_t  ar_o,
  /// Valid.
  output logic ar_valid_o,
  /// Ready.
  input  logic ar_ready_i,
  /// List data.
  input  r_t   r_i,
  /// Valid.
  input  logic r_valid_i,
  /// Ready.
  output logic r_ready_o
);

  localparam int unsigned All = 2 * NumWalkers;  // direction 0 first
  localparam int unsigned AllBits = unsigned'($clog2(All));
  localparam int unsigned Lines = 4;
  localparam int unsigned LineBits = unsigned'($clog2(Lines));

  data_cmd_t [1:0] cmd;
  logic [1:0] cmd_valid, cmd_ready, queue_ready;
  logic to_media;
  logic [All-1:0] walker_valid, walker_ready;

  seg_t [All-1:0] seg;
  logic [All-1:0] seg_valid, seg_ready;
  event_t [All-1:0] walk_event;
  logic [All-1:0] walk_valid, walk_ready;

  logic [All-1:0][63:0] list_addr;
  logic [All-1:0] list_two, list_valid, list_gnt, list_ready;
  logic [All-1:0] line_came;
  logic [All-1:0][LineBits-1:0] line_write, entry_line;
  logic [All-1:0][2:0] entry_idx;
  logic [All-1:0] entry_req, entry_gnt, entry_valid_q;
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

    // The lowest free walker takes the command.
    logic [NumWalkers-1:0] free;
    assign free = walker_ready[d*NumWalkers+:NumWalkers];
    assign walker_valid[d*NumWalkers+:NumWalkers] = free & (~free + 1'b1) & {NumWalkers{cmd_valid[d]}};
    assign cmd_ready[d] = free != '0;

    logic [idx_width(NumWalkers)-1:0] idx;

    ns_rr_arbiter #(
      .N(NumWalkers)
    ) u_segments (
      .clk_i,
      .rst_ni,
      .req_i  (seg_valid[d*NumWalkers+:NumWalkers]),
      .next_i (seg_ready_i[d]),
      .gnt_o  (seg_ready[d*NumWalkers+:NumWalkers]),
      .idx_o  (idx),
      .valid_o(seg_valid_o[d])
    );
    assign seg_o[d] = seg[d*NumWalkers+32'(idx)];
  end

  for (genvar w = 0; w < All; w++) begin : gen_walker
    nvme_prp_walker #(
      .Lines(Lines)
    ) u_walker (
      .clk_i,
      .rst_ni,
      .cmd_i        (cmd[w/NumWalkers]),
      .cmd_valid_i  (walker_valid[w]),
      .cmd_ready_o  (walker_ready[w]),
      .seg_o        (seg[w]),
      .seg_valid_o  (seg_valid[w]),
      .seg_ready_i  (seg_ready[w] && seg_ready_i[w/NumWalkers]),
      .list_addr_o  (list_addr[w]),
      .list_two_o   (list_two[w]),
      .list_valid_o (list_valid[w]),
      .list_ready_i (list_ready[w]),
      .line_came_i  (line_came[w]),
      .line_error_i (r_i.resp[1]),
      .line_write_o (line_write[w]),
      .entry_req_o  (entry_req[w]),
      .entry_gnt_i  (entry_gnt[w]),
      .entry_line_o (entry_line[w]),
      .entry_idx_o  (entry_idx[w]),
      .entry_i      (entry_q),
      .entry_valid_i(entry_valid_q[w]),
      .event_o      (walk_event[w]),
      .event_valid_o(walk_valid[w]),
      .event_ready_i(walk_ready[w])
    );
  end

  // Commands inside.
  logic [$clog2(2*(NumSlots+NumWalkers)+1)-1:0] cmds_q;
  logic cmd_in, cmd_out;

  assign busy_o = cmds_q != '0;
  assign cmd_in = cmd_valid_i && cmd_ready_o;
  assign cmd_out = event_valid_o && event_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cmds_q <= '0;
    else if (cmd_in && !cmd_out) cmds_q <= cmds_q + 1'b1;
    else if (!cmd_in && cmd_out) cmds_q <= cmds_q - 1'b1;
  end

  // Ends of walks.
  logic [All-1:0] walk_gnt;
  logic [AllBits-1:0] walk_idx;
  logic walk_any, event_free;

  assign event_free = !event_valid_o || event_ready_i;
  assign walk_ready = walk_gnt & {All{event_free}};

  ns_rr_arbiter #(
    .N(All)
  ) u_events (
    .clk_i,
    .rst_ni,
    .req_i  (walk_valid),
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
  assign list_ready = list_gnt & {All{ar_free}};

  ns_rr_arbiter #(
    .N(All)
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

  // List data and entries out of it.
  logic [AllBits-1:0] r_idx, entry_sel;
  logic entry_any;
  logic [All-1:0] asked_q, reading_q;  // whose entry is in which step
  logic [AllBits+LineBits-1:0] entry_addr_q;
  logic [2:0] asked_idx_q, reading_idx_q;
  logic [DataWidth-1:0] line;

  assign r_ready_o = 1'b1;
  assign r_idx = r_i.id[AllBits-1:0];
  assign line_came = All'(r_valid_i) << r_idx;

  ns_rr_arbiter #(
    .N(All)
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
    .Depth(All * Lines),
    .Style("lutram")
  ) u_lines (
    .clk_i,
    .we_i   (r_valid_i),
    .waddr_i({r_idx, line_write[r_idx]}),
    .wdata_i(r_i.data),
    .re_i   (asked_q != '0),
    .raddr_i(entry_addr_q),
    .rdata_o(line)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      asked_q <= '0;
      reading_q <= '0;
      entry_valid_q <= '0;
    end else begin
      asked_q <= entry_gnt;
      reading_q <= asked_q;
      entry_valid_q <= reading_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (entry_any) begin
      entry_addr_q <= {entry_sel, entry_line[entry_sel]};
      asked_idx_q <= entry_idx[entry_sel];
    end
    if (asked_q != '0) reading_idx_q <= asked_idx_q;
    if (reading_q != '0) entry_q <= line[reading_idx_q*64+:64];
  end

  if (NumWalkers < 1 || (NumWalkers & (NumWalkers - 1)) != 0) begin : gen_bad_walkers
    $error("nvme_prp: NumWalkers must be a power of two");
  end

  `NS_ASSERT(has_prps,
             !cmd_valid_i || cmd_i.op == OpRead || cmd_i.op == OpWrite || cmd_i.op == OpCompare)
  `NS_ASSERT(list_data_known, !r_valid_i || 32'(r_i.id) < All)

endmodule
