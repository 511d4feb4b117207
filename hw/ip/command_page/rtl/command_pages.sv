// Command pages of the engines, behind the bus of the PM window: one order of stores and commands.
//
// Page p is at Base + p * 4 KiB; where none is, the answer is DECERR. A burst that is not INCR is answered SLVERR and
// does nothing. Reads give the status of their line, one at a time. Writes take a beat a cycle; both always go on,
// whatever the engines do, but for pages that are `Ordered`: a write there is answered, and later writes are taken,
// when the engine has taken the commands that it made whole; `hold_o` asks the rest of the bus to hold its write
// addresses back until then, too.
`include "ns_assert.svh"

module command_pages
  import ns_axi_pkg::*;
  import command_page_pkg::*;
#(
  /// Pages.
  parameter int unsigned N = 1,
  /// Which of them there are.
  parameter logic [N-1:0] Present = '1,
  /// Whose commands are taken before later writes.
  parameter logic [N-1:0] Ordered = '0,
  /// Address of the first one, a multiple of 4096.
  parameter logic [AddrWidth-1:0] Base = '0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// From registers: a command waits for its engine, or is on its way.
  output logic         busy_o,

  ns_axi_if.slave      s_axi,
  /// From a register: a write into an `Ordered` page is under way, from the cycle behind its address on.
  output logic         hold_o,
  /// A write in front of the engine of an `Ordered` page waits there, or the function ends: what the engine takes meanwhile has no time limit.
  input  logic         stall_i,

  /// A command waits until the writes before it have been answered.
  output logic         unsettled_o,
  /// See command_page.
  input  logic         epoch_i,

  /// Engines; those without a page get none.
  command_page_if.page m_page[N]
);

  localparam int unsigned PageBits = unsigned'($clog2(PageBytes));

  typedef struct packed {
    logic                 present;
    logic [N-1:0]         page;  // one-hot
    logic [LineWidth-1:0] line;
    logic [5:0]           offset;
  } place_t;

  function automatic place_t place(logic [AddrWidth-1:0] addr);
    logic [AddrWidth-1:0] from;
    from = addr - Base;
    place.page = '0;
    for (int unsigned p = 0; p < N; p++)
    place.page[p] = Present[p] && (from >> PageBits) == AddrWidth'(p);
    place.present = place.page != '0;
    place.line = addr[11:6];
    place.offset = addr[5:0];
  endfunction

  // The next beat of a burst: of its own size, within the page.
  function automatic place_t next(place_t at, logic [2:0] size);
    next = at;
    {next.line, next.offset} = ({at.line, at.offset} & ~((12'd1 << size) - 12'd1)) + (12'd1 << size);
  endfunction

  logic [N-1:0] busy, unsettled;
  page_status_t [N-1:0] status;

  // ---------------------------------------------------------------- writes

  typedef struct packed {
    place_t             place;
    logic [2:0]         size;
    logic               incr;
    logic [IdWidth-1:0] id;
  } burst_t;

  burst_t burst;
  place_t in_place, to, to_q;
  logic
      burst_valid,
      aw_room,
      b_room,
      beat,
      last,
      ends,
      whole,
      inside_q;  // inside_q: the burst's first beat has been taken

  ns_skid #(
    .Width($bits(burst_t))
  ) u_aw_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi.aw_valid && !hold_o),
    .in_ready_o (aw_room),
    .in_data_i  ({in_place, s_axi.aw.size, s_axi.aw.burst == BurstIncr, s_axi.aw.id}),
    .out_valid_o(burst_valid),
    .out_ready_i(ends),
    .out_data_o (burst)
  );

  assign in_place = place(s_axi.aw.addr);
  assign to = inside_q ? to_q : burst.place;
  assign s_axi.aw_ready = aw_room && !hold_o;
  assign s_axi.w_ready = burst_valid && b_room && !whole;
  assign beat = s_axi.w_valid && s_axi.w_ready;
  assign last = beat && s_axi.w.last;

  ns_skid #(
    .Width($bits(b_t))
  ) u_b_slice (
    .clk_i,
    .rst_ni,
    .in_valid_i (ends),
    .in_ready_o (b_room),
    .in_data_i  ({burst.id, !burst.place.present ? RespDecErr : burst.incr ? RespOkay : RespSlvErr}),
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
      if (beat) inside_q <= !last;
      write_q <= to.page & {N{beat && burst.incr}};
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat) to_q <= next(to, burst.size);
    line_q <= to.line;
    strb_q <= s_axi.w.strb;
    data_q <= s_axi.w.data;
  end

  // In an `Ordered` page a burst that is `whole` ends when none of its beats is on its way and no command waits.
  if (Ordered != '0) begin : gen_ordered
    logic hold_q, whole_q, holds, rests;

    assign holds = (burst.place.page & Ordered) != '0;
    assign rests = ((write_q | busy) & Ordered) == '0;
    assign whole = whole_q;
    assign ends = holds ? whole_q && rests : last;
    assign hold_o = hold_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        hold_q  <= 1'b0;
        whole_q <= 1'b0;
      end else begin
        whole_q <= (whole_q || (last && holds)) && !ends;
        if (ends && holds) hold_q <= 1'b0;
        else if (s_axi.aw_valid && s_axi.aw_ready && (in_place.page & Ordered) != '0)
          hold_q <= 1'b1;
      end
    end

    // For the assertion alone: cycles for which an engine has let a command wait.
    localparam int unsigned WaitBits = unsigned'($clog2(TakeCycles + 1));
    logic [N-1:0] stalls;
    logic [WaitBits-1:0] waited_q;
    for (genvar p = 0; p < N; p++) begin : gen_stall
      assign stalls[p] = Ordered[p] && m_page[p].cmd_valid && !m_page[p].cmd_ready;
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) waited_q <= '0;
      else if (stalls == '0 || stall_i) waited_q <= '0;
      else waited_q <= waited_q + 1'b1;
    end

    `NS_ASSERT(holds_one, !ends || !holds || (hold_q && b_room))
    `NS_ASSERT(taken_in_time, stalls == '0 || waited_q < WaitBits'(TakeCycles - 1))
  end else begin : gen_free
    assign whole = 1'b0;
    assign ends = last;
    assign hold_o = 1'b0;
    logic unused;
    assign unused = stall_i;
  end

  // ---------------------------------------------------------------- reads

  typedef enum logic [1:0] {
    StAsk,
    StLook,
    StShow
  } read_e;

  read_e read_q;
  place_t from_q;
  logic [2:0] read_size_q;
  logic read_incr_q;
  logic [7:0] left_q;
  logic [IdWidth-1:0] read_id_q;
  page_status_t status_q, seen;

  always_comb begin
    seen = '0;
    for (int unsigned p = 0; p < N; p++) if (from_q.page[p]) seen = status[p];
  end

  assign s_axi.ar_ready = read_q == StAsk;
  assign s_axi.r_valid = read_q == StShow;
  assign s_axi.r = '{
          id: read_id_q,
          resp: !from_q.present ? RespDecErr : read_incr_q ? RespOkay : RespSlvErr,
          last: left_q == '0,
          data: DataWidth'(status_q)
      };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_q <= StAsk;
    else begin
      unique case (read_q)
        StAsk:   if (s_axi.ar_valid) read_q <= StLook;
        StLook:  read_q <= StShow;
        default: if (s_axi.r_ready) read_q <= (left_q == '0) ? StAsk : StLook;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_q == StAsk) begin
      from_q <= place(s_axi.ar.addr);
      read_size_q <= s_axi.ar.size;
      read_incr_q <= s_axi.ar.burst == BurstIncr;
      left_q <= s_axi.ar.len;
      read_id_q <= s_axi.ar.id;
    end else if (read_q == StShow && s_axi.r_ready) begin
      from_q <= next(from_q, read_size_q);
      left_q <= left_q - 1'b1;
    end
    if (read_q == StLook) status_q <= read_incr_q ? seen : '0;
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
        .read_line_i (from_q.line),
        .status_o    (status[p]),
        .unsettled_o (unsettled[p]),
        .epoch_i,
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
