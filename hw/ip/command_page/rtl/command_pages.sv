// SPDX-License-Identifier: Apache-2.0

// Command pages of the engines, on the bus of the PM window: stores and commands are in one order.
//
// Page p is at Base + p * 4 KiB; other addresses are answered DECERR. A burst that is not INCR is
// answered SLVERR and has no effect. Reads return the status of their line, one at a time. Writes
// take a beat a cycle. Reads and writes never wait for the engines, except in `Ordered` pages.
// There a write is answered, and later writes are accepted, only after the engine has accepted the
// commands that the write completed. `hold_o` makes the rest of the bus hold its write addresses
// until then, too.
`include "ns_assert.svh"

module command_pages
  import ns_axi_pkg::*;
  import command_page_pkg::*;
#(
  /// Number of pages.
  parameter int unsigned N = 1,
  /// Pages that exist.
  parameter logic [N-1:0] Present = '1,
  /// Pages whose commands are accepted before later writes.
  parameter logic [N-1:0] Ordered = '0,
  /// Address of page 0, a multiple of 4096.
  parameter logic [AddrWidth-1:0] Base = '0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// From registers: a command waits for its engine, or a write is in progress.
  output logic         busy_o,

  ns_axi_if.slave      s_axi,
  /// From a register: a write into an `Ordered` page is in progress, from the cycle after its
  /// address on.
  output logic         hold_o,
  /// A write waits at the engine of an `Ordered` page, or the function ends: the time limit for
  /// accepting a command is suspended.
  input  logic         stall_i,

  /// A command waits until the writes before it have been answered.
  output logic         unsettled_o,
  /// See command_page.
  input  logic         epoch_end_i,

  /// Engines; those without a page get no commands.
  command_page_if.page m_page[N]
);

  localparam int unsigned PageBits = unsigned'($clog2(PageBytes));

  typedef struct packed {
    logic                 present;
    logic [N-1:0]         page;  // one-hot
    logic [LineWidth-1:0] line;
    logic [5:0]           offset;
  } target_t;

  function automatic target_t decode(logic [AddrWidth-1:0] addr);
    logic [AddrWidth-1:0] offset_in_pages;
    offset_in_pages = addr - Base;
    decode.page = '0;
    for (int unsigned p = 0; p < N; p++)
    decode.page[p] = Present[p] && (offset_in_pages >> PageBits) == AddrWidth'(p);
    decode.present = decode.page != '0;
    decode.line = addr[11:6];
    decode.offset = addr[5:0];
  endfunction

  // The next beat of a burst: with the burst's beat size, within the page.
  function automatic target_t next(target_t at, logic [2:0] size);
    next = at;
    {next.line, next.offset} = ({at.line, at.offset} & ~((12'd1 << size) - 12'd1)) + (12'd1 << size);
  endfunction

  logic [N-1:0] busy, unsettled;
  page_status_t [N-1:0] status;

  // ---------------------------------------------------------------- writes

  typedef struct packed {
    target_t            target;
    logic [2:0]         size;
    logic               incr;
    logic [IdWidth-1:0] id;
  } burst_t;

  burst_t burst;
  target_t aw_target, beat_target, next_target_q;
  logic
      burst_valid,
      aw_slice_ready,
      b_slice_ready,
      w_fire,
      w_last_fire,
      burst_end,
      data_complete,
      inside_q;  // inside_q: the burst's first beat has been accepted

  ns_skid #(
    .Width($bits(burst_t))
  ) u_aw_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi.aw_valid && !hold_o),
    .in_ready_o (aw_slice_ready),
    .in_data_i  ({aw_target, s_axi.aw.size, s_axi.aw.burst == BurstIncr, s_axi.aw.id}),
    .out_valid_o(burst_valid),
    .out_ready_i(burst_end),
    .out_data_o (burst)
  );

  assign aw_target = decode(s_axi.aw.addr);
  assign beat_target = inside_q ? next_target_q : burst.target;
  assign s_axi.aw_ready = aw_slice_ready && !hold_o;
  assign s_axi.w_ready = burst_valid && b_slice_ready && !data_complete;
  assign w_fire = s_axi.w_valid && s_axi.w_ready;
  assign w_last_fire = w_fire && s_axi.w.last;

  ns_skid #(
    .Width($bits(b_t))
  ) u_b_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (burst_end),
    .in_ready_o (b_slice_ready),
    .in_data_i  ({burst.id, !burst.target.present ? RespDecErr : burst.incr ? RespOkay : RespSlvErr}),
    .out_valid_o(s_axi.b_valid),
    .out_ready_i(s_axi.b_ready),
    .out_data_o (s_axi.b)
  );

  // A beat on its way to its page.
  logic [N-1:0] write_q;
  logic [LineWidth-1:0] line_q;
  logic [63:0] strb_q;
  logic [511:0] data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
      write_q  <= '0;
    end else begin
      if (w_fire) inside_q <= !w_last_fire;
      write_q <= beat_target.page & {N{w_fire && burst.incr}};
    end
  end

  always_ff @(posedge clk_i) begin
    if (w_fire) next_target_q <= next(beat_target, burst.size);
    line_q <= beat_target.line;
    strb_q <= s_axi.w.strb;
    data_q <= s_axi.w.data;
  end

  // In an `Ordered` page a complete burst ends when none of its beats is in progress and no command
  // waits.
  if (Ordered != '0) begin : gen_ordered
    logic hold_q, data_complete_q, ordered_burst, ordered_idle;

    assign ordered_burst = (burst.target.page & Ordered) != '0;
    assign ordered_idle = ((write_q | busy) & Ordered) == '0;
    assign data_complete = data_complete_q;
    assign burst_end = ordered_burst ? data_complete_q && ordered_idle : w_last_fire;
    assign hold_o = hold_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        hold_q  <= 1'b0;
        data_complete_q <= 1'b0;
      end else begin
        data_complete_q <= (data_complete_q || (w_last_fire && ordered_burst)) && !burst_end;
        if (burst_end && ordered_burst) hold_q <= 1'b0;
        else if (s_axi.aw_valid && s_axi.aw_ready && (aw_target.page & Ordered) != '0)
          hold_q <= 1'b1;
      end
    end

    // For the assertion only: cycles for which an engine has not accepted a command.
    localparam int unsigned WaitBits = unsigned'($clog2(TakeCycles + 1));
    logic [N-1:0] cmd_stalls;
    logic [WaitBits-1:0] stall_cycles_q;
    for (genvar p = 0; p < N; p++) begin : gen_stall
      assign cmd_stalls[p] = Ordered[p] && m_page[p].cmd_valid && !m_page[p].cmd_ready;
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) stall_cycles_q <= '0;
      else if (cmd_stalls == '0 || stall_i) stall_cycles_q <= '0;
      else stall_cycles_q <= stall_cycles_q + 1'b1;
    end

    `NS_ASSERT(holds_one_burst, !burst_end || !ordered_burst || (hold_q && b_slice_ready))
    `NS_ASSERT(accepted_in_time, cmd_stalls == '0 || stall_cycles_q < WaitBits'(TakeCycles - 1))
  end else begin : gen_unordered
    assign data_complete = 1'b0;
    assign burst_end = w_last_fire;
    assign hold_o = 1'b0;
    logic unused;
    assign unused = stall_i;
  end

  // ---------------------------------------------------------------- reads

  typedef enum logic [1:0] {
    StIdle,
    StLookup,
    StRespond
  } read_e;

  read_e read_q;
  target_t read_target_q;
  logic [2:0] read_size_q;
  logic read_incr_q;
  logic [7:0] left_q;
  logic [IdWidth-1:0] read_id_q;
  page_status_t status_q, selected_status;

  always_comb begin
    selected_status = '0;
    for (int unsigned p = 0; p < N; p++) if (read_target_q.page[p]) selected_status = status[p];
  end

  assign s_axi.ar_ready = read_q == StIdle;
  assign s_axi.r_valid = read_q == StRespond;
  assign s_axi.r = '{
          id: read_id_q,
          resp: !read_target_q.present ? RespDecErr : read_incr_q ? RespOkay : RespSlvErr,
          last: left_q == '0,
          data: DataWidth'(status_q)
      };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_q <= StIdle;
    else begin
      unique case (read_q)
        StIdle:   if (s_axi.ar_valid) read_q <= StLookup;
        StLookup:  read_q <= StRespond;
        default: if (s_axi.r_ready) read_q <= (left_q == '0) ? StIdle : StLookup;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_q == StIdle) begin
      read_target_q <= decode(s_axi.ar.addr);
      read_size_q <= s_axi.ar.size;
      read_incr_q <= s_axi.ar.burst == BurstIncr;
      left_q <= s_axi.ar.len;
      read_id_q <= s_axi.ar.id;
    end else if (read_q == StRespond && s_axi.r_ready) begin
      read_target_q <= next(read_target_q, read_size_q);
      left_q <= left_q - 1'b1;
    end
    if (read_q == StLookup) status_q <= read_incr_q ? selected_status : '0;
  end

  // ---------------------------------------------------------------- pages

  for (genvar p = 0; p < N; p++) begin : gen_page
    if (Present[p]) begin : gen_present
      command_page u_page (
        .clk_i,
        .rst_ni,
        .busy_o      (busy[p]),
        .write_i     (write_q[p]),
        .write_line_i(line_q),
        .strb_i      (strb_q),
        .data_i      (data_q),
        .read_line_i (read_target_q.line),
        .status_o    (status[p]),
        .unsettled_o (unsettled[p]),
        .epoch_end_i,
        .m_page      (m_page[p])
      );
    end else begin : gen_none
      assign busy[p] = 1'b0;
      assign status[p] = '0;
      assign unsettled[p] = 1'b0;
      assign m_page[p].cmd = '0;
      assign m_page[p].line = '0;
      assign m_page[p].settled = 1'b0;
      assign m_page[p].cmd_valid = 1'b0;
    end
  end

  assign busy_o = busy != '0 || write_q != '0;
  assign unsettled_o = unsettled != '0;

  if ((Base & AddrWidth'(PageBytes - 1)) != 0) begin : gen_bad_base
    $error("command_pages: Base must be a multiple of 4096");
  end

endmodule
