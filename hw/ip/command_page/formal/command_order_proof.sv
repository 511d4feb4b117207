// SPDX-License-Identifier: Apache-2.0

// Order of the commands of an `Ordered` page: command_pages and the ns_axi_gate of a channel,
// downstream of a demultiplexer. As ns_axi_demux does (axi_demux proof), it offers one write
// address at a time. Two pages, the first of them `Ordered`; commands arrive whole or in halves.
//
// No address reaches the channel, nor any page, in two cases: a completed command is not accepted,
// or data of a write into the `Ordered` page is in progress. The response to such a write comes no
// earlier. An address offered to the channel stays. If the engine accepts immediately and data
// arrives, nothing waits for more than `Bound` cycles. Assumes that the demultiplexer's write data
// does not precede its address, and that engines accept commands within `TakeCycles`.
`include "ns_assert.svh"

module command_order_proof
  import ns_axi_pkg::*;
  import command_page_pkg::*;
#(
  /// 1: bursts of up to two beats; 0: of one beat.
  parameter bit Bursts = 1'b0,
  parameter int unsigned Bound = 12
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       aw_valid_i,
  input logic       aw_id_i,
  input logic       aw_len_i,
  input logic       aw_to_page_i,
  input logic       aw_page_i,
  input logic       aw_ready_i,
  input logic       w_valid_i,
  input logic [1:0] w_half_i,
  input logic       b_ready_i,
  input logic [1:0] cmd_ready_i,
  input logic [1:0] done_i,
  input logic       epoch_i
);

  localparam logic [AddrWidth-1:0] Base = 64'h8000_0000_0000_0000;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  InReset :
  assume property (@(posedge clk_i) rst_ni == started_q);

  ns_axi_if m[2] ();  // to the channel, to the pages
  ns_axi_if channel ();
  command_page_if page[2] ();
  logic hold, w_last;

  // The first line of each page, for both beats of a burst (`size` 0): other lines would add
  // nothing.
  assign m[1].aw = '{
          id: IdWidth'(aw_id_i),
          len: 8'(Bursts && aw_len_i),
          burst: BurstIncr,
          addr: Base | AddrWidth'({aw_page_i, 12'b0}),
          default: '0
      };
  assign m[1].aw_valid = aw_valid_i && aw_to_page_i;
  assign m[1].w = '{last: w_last, strb: {{32{w_half_i[1]}}, {32{w_half_i[0]}}}, data: '0};
  assign m[1].w_valid = w_valid_i;
  assign m[1].b_ready = b_ready_i;
  assign m[1].ar = '0;
  assign m[1].ar_valid = 1'b0;
  assign m[1].r_ready = 1'b1;

  assign m[0].aw = '0;
  assign m[0].aw_valid = aw_valid_i && !aw_to_page_i;
  assign m[0].w = '0;
  assign m[0].w_valid = 1'b0;
  assign m[0].b_ready = 1'b1;
  assign m[0].ar = '0;
  assign m[0].ar_valid = 1'b0;
  assign m[0].r_ready = 1'b1;

  ns_axi_gate u_gate (
    .aw_open_i(!hold),
    .ar_open_i(1'b1),
    .s_axi    (m[0]),
    .m_axi    (channel)
  );

  logic busy, unsettled;
  command_pages #(
    .N      (2),
    .Ordered(2'b01),
    .Base   (Base)
  ) u_pages (
    .clk_i,
    .rst_ni,
    .busy_o     (busy),
    .s_axi      (m[1]),
    .hold_o     (hold),
    .stall_i    (1'b0),
    .unsettled_o(unsettled),
    .epoch_end_i(epoch_i),
    .m_page     (page)
  );

  assign channel.aw_ready = aw_ready_i;
  assign channel.w_ready = 1'b1;
  assign channel.b = '0;
  assign channel.b_valid = 1'b0;
  assign channel.ar_ready = 1'b1;
  assign channel.r = '0;
  assign channel.r_valid = 1'b0;

  // Writes with data to come that are for the `Ordered` page; the same of writes without response;
  // the oldest one in the low bit.
  logic [3:0] data_q, unanswered_q, lens_q;  // and their lengths
  logic [2:0] data_count_q, unanswered_count_q;
  logic [1:0] halves_q;  // halves of the line that are written
  logic waiting_q;  // the line holds a command that is not accepted,
  logic accepted_q;  // or an accepted one
  logic beat_q;  // a beat for the line was accepted in the previous cycle,
  logic [1:0] strb_q;  // with these halves
  logic ordered, page_beat, page_last, page_b, line_held, completed, accept;
  logic [1:0] halves;

  // ---------------------------------------------------------------- demultiplexer

  logic [1:0] aw_fires;  // an address leaves: to the channel, to the pages
  logic second_q, w_stall_q, aw_stall_q;
  logic [3:0] aw_q;
  logic [1:0] half_q;
  assign aw_fires[0] = channel.aw_valid && aw_ready_i;
  assign aw_fires[1] = m[1].aw_valid && m[1].aw_ready;
  assign w_last = !Bursts || second_q == lens_q[0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      second_q <= 1'b0;
      w_stall_q <= 1'b0;
      aw_stall_q <= 1'b0;
    end else begin
      w_stall_q  <= w_valid_i && !m[1].w_ready;
      aw_stall_q <= aw_valid_i && !(aw_to_page_i ? m[1].aw_ready : m[0].aw_ready);
      if (page_beat) second_q <= !w_last;
    end
  end
  always_ff @(posedge clk_i) begin
    aw_q   <= {aw_id_i, aw_len_i, aw_to_page_i, aw_page_i};
    half_q <= w_half_i;
  end

  AddressStays :
  assume property (@(posedge clk_i)
      !aw_stall_q || (aw_valid_i && {aw_id_i, aw_len_i, aw_to_page_i, aw_page_i} == aw_q));
  DataStays :
  assume property (@(posedge clk_i) !w_stall_q || (w_valid_i && w_half_i == half_q));
  DataAfterAddress :
  assume property (@(posedge clk_i) !w_valid_i || data_count_q != '0);

  // --------------------------------------------------------------- pages, as observed on their bus

  assign ordered = !m[1].aw.addr[12];
  assign page_beat = m[1].w_valid && m[1].w_ready;
  assign page_last = page_beat && m[1].w.last;
  assign page_b = m[1].b_valid && m[1].b_ready;
  assign line_held = waiting_q || accepted_q;
  assign halves = halves_q | strb_q;
  assign completed = beat_q && !line_held && halves == '1;
  assign accept = page[0].cmd_valid && cmd_ready_i[0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      data_q <= '0;
      unanswered_q <= '0;
      lens_q <= '0;
      data_count_q <= '0;
      unanswered_count_q <= '0;
      halves_q <= '0;
      waiting_q <= 1'b0;
      accepted_q <= 1'b0;
      beat_q <= 1'b0;
    end else begin
      data_count_q <= data_count_q + 3'(aw_fires[1]) - 3'(page_last);
      if (page_last) data_q <= data_q >> 1;
      if (page_last) lens_q <= lens_q >> 1;
      if (aw_fires[1]) begin
        data_q[2'(data_count_q-3'(page_last))] <= ordered;
        lens_q[2'(data_count_q-3'(page_last))] <= aw_len_i;
      end
      unanswered_count_q <= unanswered_count_q + 3'(aw_fires[1]) - 3'(page_b);
      if (page_b) unanswered_q <= unanswered_q >> 1;
      if (aw_fires[1]) unanswered_q[2'(unanswered_count_q-3'(page_b))] <= ordered;
      beat_q <= page_beat && data_q[0];
      if (beat_q && !line_held) halves_q <= completed ? '0 : halves;
      if (completed) waiting_q <= 1'b1;
      else if (accept) waiting_q <= 1'b0;
      accepted_q <= (accepted_q || accept) && !done_i[0];
    end
  end

  always_ff @(posedge clk_i) strb_q <= {m[1].w.strb[32], m[1].w.strb[0]};

  for (genvar p = 0; p < 2; p++) begin : gen_engine
    assign page[p].cmd_ready  = cmd_ready_i[p];
    assign page[p].done = '0;
    assign page[p].done_valid = done_i[p];
  end
  logic accepted_1_q;  // the other page's engine has a command
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) accepted_1_q <= 1'b0;
    else accepted_1_q <= (accepted_1_q || (page[1].cmd_valid && cmd_ready_i[1])) && !done_i[1];
  end
  AcceptsInTime :
  assume property (@(posedge clk_i)
      !page[0].cmd_valid || cmd_ready_i[0] || 32'(u_pages.gen_ordered.stall_cycles_q) < TakeCycles - 1);
  EndsAcceptedCommand :
  assume property (@(posedge clk_i) (!done_i[0] || accepted_q) && (!done_i[1] || accepted_1_q));

  // ---------------------------------------------------------------- properties

  logic pending;  // a command of the `Ordered` page, or data for it
  assign pending = waiting_q || beat_q || (data_q & 4'((1 << data_count_q) - 1)) != '0;

  logic offered_q;
  logic [3:0] held_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      offered_q <= 1'b0;
      held_q  <= '0;
    end else begin
      offered_q <= channel.aw_valid && !aw_ready_i;
      if (!hold) held_q <= '0;
      else if (cmd_ready_i[0] && b_ready_i && (data_count_q == '0 || w_valid_i) && held_q != '1)
        held_q <= held_q + 1'b1;
    end
  end

  `NS_ASSERT(no_store_overtakes, !channel.aw_valid || !pending)
  `NS_ASSERT(no_page_write_overtakes, !aw_fires[1] || !pending)
  `NS_ASSERT(no_response_before_acceptance,
             !(m[1].b_valid && unanswered_count_q == 3'd1 && unanswered_q[0]) || !pending)
  `NS_ASSERT(offer_is_stable, !offered_q || channel.aw_valid)
  `NS_ASSERT(offers_completed_command, !page[0].cmd_valid || waiting_q)
  `NS_ASSERT(wait_is_bounded, 32'(held_q) < Bound)

  `NS_COVER(store_after_command, aw_fires[0] && $past(accept, 2) && $past(hold))
  `NS_COVER(in_halves, completed && halves_q == 2'b01 && strb_q == 2'b10)
  `NS_COVER(dropped, hold && accepted_q && page_last)

endmodule
