// Command pages of the engines, behind the bus of the PM window: one order of stores and commands.
//
// Page p is at Base + p * 4 KiB; where none is, the answer is DECERR. A write to a line that is busy is dropped and answered SLVERR, as is
// one that is no INCR burst. Reads give the status of their line. One write and one read at a time; both always go on, whatever the
// engines do.
`include "ns_assert.svh"

module command_pages
  import ns_axi_pkg::*;
  import command_page_pkg::*;
#(
  /// Pages.
  parameter int unsigned N = 1,
  /// Which of them there are.
  parameter logic [N-1:0] There = '1,
  /// Address of the first one, a multiple of 4096.
  parameter logic [AddrWidth-1:0] Base = '0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// From registers: a command waits for its engine.
  output logic         busy_o,

  ns_axi_if.slave      s_axi,

  /// A command waits until the writes before it have been answered.
  output logic         unsettled_o,
  /// See command_page.
  input  logic         epoch_i,

  /// Engines; those without a page get none.
  command_page_if.page m_page[N]
);

  localparam int unsigned PageBits = unsigned'($clog2(PageBytes));
  localparam logic [63:0] Number = 64'(N);

  typedef struct packed {
    logic                 there;
    logic [N-1:0]         page;  // one-hot
    logic [LineWidth-1:0] line;
    logic [5:0]           offset;
  } place_t;

  function automatic place_t place(logic [AddrWidth-1:0] addr);
    logic [AddrWidth-1:0] from;
    from = addr - Base;
    place.page = '0;
    for (int unsigned p = 0; p < N; p++)
    place.page[p] = There[p] && (from >> PageBits) == AddrWidth'(p);
    place.there = place.page != '0;
    place.line = addr[11:6];
    place.offset = addr[5:0];
  endfunction

  // The next beat of a burst: of its own size, within the page.
  function automatic place_t next(place_t at, logic [2:0] size);
    next = at;
    {next.line, next.offset} = ({at.line, at.offset} & ~((12'd1 << size) - 12'd1)) + (12'd1 << size);
  endfunction

  logic [N-1:0] dropped, busy, unsettled;
  page_status_t [N-1:0] status;

  // ---------------------------------------------------------------- writes

  typedef enum logic [1:0] {
    StAddress,
    StData,
    StAnswer
  } write_e;

  write_e write_q;
  place_t to_q;
  logic [2:0] write_size_q;
  logic write_incr_q, refused_q;
  logic [IdWidth-1:0] write_id_q;
  logic beat;

  assign s_axi.aw_ready = write_q == StAddress;
  assign s_axi.w_ready = write_q == StData;
  assign s_axi.b_valid = write_q == StAnswer;
  assign s_axi.b = '{
          id: write_id_q,
          resp: !to_q.there ? RespDecErr : refused_q ? RespSlvErr : RespOkay
      };
  assign beat = write_q == StData && s_axi.w_valid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) write_q <= StAddress;
    else begin
      unique case (write_q)
        StAddress: if (s_axi.aw_valid) write_q <= StData;
        StData:    if (s_axi.w_valid && s_axi.w.last) write_q <= StAnswer;
        default:   if (s_axi.b_ready) write_q <= StAddress;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_q == StAddress) begin
      to_q <= place(s_axi.aw.addr);
      write_size_q <= s_axi.aw.size;
      write_incr_q <= s_axi.aw.burst == BurstIncr;
      refused_q <= s_axi.aw.burst != BurstIncr;
      write_id_q <= s_axi.aw.id;
    end else if (beat) begin
      to_q <= next(to_q, write_size_q);
      refused_q <= refused_q || dropped != '0;
    end
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
          resp: !from_q.there ? RespDecErr : read_incr_q ? RespOkay : RespSlvErr,
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
    if (There[p]) begin : gen_there
      command_page u_page (
        .clk_i,
        .rst_ni,
        .busy_o      (busy[p]),
        .write_i     (beat && to_q.page[p] && write_incr_q),
        .write_line_i(to_q.line),
        .strb_i      (s_axi.w.strb),
        .data_i      (s_axi.w.data),
        .dropped_o   (dropped[p]),
        .read_line_i (from_q.line),
        .status_o    (status[p]),
        .unsettled_o (unsettled[p]),
        .epoch_i,
        .m_page      (m_page[p])
      );
    end else begin : gen_none
      assign busy[p] = 1'b0;
      assign dropped[p] = 1'b0;
      assign status[p] = '0;
      assign unsettled[p] = 1'b0;
      assign m_page[p].cmd = '0;
      assign m_page[p].line = '0;
      assign m_page[p].settled = 1'b0;
      assign m_page[p].cmd_valid = 1'b0;
    end
  end

  assign busy_o = busy != '0;
  assign unsettled_o = unsettled != '0;

  logic unused;
  assign unused = ^{to_q.offset, Number};

  if ((Base & AddrWidth'(PageBytes - 1)) != 0) begin : gen_bad_base
    $error("command_pages: Base must be a multiple of 4096");
  end

endmodule
