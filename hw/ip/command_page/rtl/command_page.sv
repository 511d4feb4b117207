// SPDX-License-Identifier: Apache-2.0

// One engine's command page: assembles commands from writes, passes complete ones to the engine,
// and stores their results.
//
// A command is accepted once all 64 bytes of its line have been written, in any pieces and order.
// From then until the engine has ended it, the line is busy: writes to it are dropped and counted.
// So no write ever waits here.
`include "ns_assert.svh"

module command_page
  import command_page_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// From registers: a command waits for the engine, or a write is in progress.
  output logic                 busy_o,

  /// Bytes are written, for one cycle.
  input  logic                 write_i,
  input  logic [LineWidth-1:0] write_line_i,
  input  logic [63:0]          strb_i,
  input  logic [511:0]         data_i,

  input  logic [LineWidth-1:0] read_line_i,
  /// Status of that line.
  output page_status_t         status_o,

  /// A command waits until the writes before it have been answered.
  output logic                 unsettled_o,
  /// The end of a write epoch, for one cycle: the writes before the last epoch end but one have
  /// been answered (ns_axi_write_barrier).
  input  logic                 epoch_end_i,

  /// The engine.
  command_page_if.page         m_page
);

  localparam int unsigned CountBits = LineWidth + 1;

  // Lines. Memories have no reset: a line's bytes are valid from its first write on.
  logic [Lines-1:0] partial_q, busy_q, done_q, succeeded_q;
  (* ram_style = "distributed" *) logic [63:0] written[Lines];
  (* ram_style = "distributed" *) logic [95:0] ends[Lines];

  // A write: first the bytes written so far to its line, then whether the command is complete.
  logic valid_q, line_busy_q, same_line, accept, complete;
  logic [LineWidth-1:0] line_q;
  logic [63:0] strb_q, written_before, written_q;
  logic [511:0] data_q;
  logic [31:0] accepted_q, ended_q, dropped_q;

  assign same_line = accept && write_line_i == line_q;
  assign written_before = same_line ? written_q : partial_q[write_line_i] ? written[write_line_i] : '0;
  assign accept = valid_q && !line_busy_q;
  assign complete = accept && written_q == '1;

  always_ff @(posedge clk_i) begin
    line_q <= write_line_i;
    strb_q <= strb_i;
    data_q <= data_i;
    written_q <= written_before | strb_i;
    line_busy_q <= busy_q[write_line_i] || (same_line && complete);
    if (accept) written[line_q] <= written_q;
    if (m_page.done_valid) ends[m_page.done.line] <= {m_page.done.value, m_page.done.result};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      partial_q <= '0;
      busy_q <= '0;
      done_q <= '0;
      succeeded_q <= '0;
      accepted_q <= '0;
      ended_q <= '0;
      dropped_q <= '0;
    end else begin
      valid_q <= write_i && strb_i != '0;
      if (accept) partial_q[line_q] <= !complete;
      if (m_page.done_valid) begin
        busy_q[m_page.done.line] <= 1'b0;
        done_q[m_page.done.line] <= 1'b1;
        succeeded_q[m_page.done.line] <= m_page.done.result == '0;
      end
      if (complete) begin
        busy_q[line_q] <= 1'b1;
        done_q[line_q] <= 1'b0;
        succeeded_q[line_q] <= 1'b0;
      end
      accepted_q <= accepted_q + 32'(complete);
      ended_q <= ended_q + 32'(m_page.done_valid);
      dropped_q <= dropped_q + 32'(valid_q && line_busy_q);
    end
  end

  logic [95:0] last_end;
  assign last_end = ends[read_line_i];
  assign status_o = '{
          succeeded_lines: succeeded_q,
          busy_lines: busy_q,
          pad: '0,
          dropped: dropped_q,
          ended: ended_q,
          accepted: accepted_q,
          value: done_q[read_line_i] ? last_end[95:32] : '0,
          result: done_q[read_line_i] ? last_end[31:0] : '0,
          reserved: '0,
          done: done_q[read_line_i],
          busy: busy_q[read_line_i]
      };

  // Content of the lines.
  logic [LineWidth-1:0] next_line;
  logic [511:0] cmd;
  for (genvar b = 0; b < 64; b++) begin : gen_byte
    (* ram_style = "distributed" *) logic [7:0] bytes[Lines];
    always_ff @(posedge clk_i) if (accept && strb_q[b]) bytes[line_q] <= data_q[8*b+:8];
    assign cmd[8*b+:8] = bytes[next_line];
  end

  // Commands that wait for the engine, in the order of their acceptance. The first `settled_q` of
  // the queue are settled. The next `middle_q` become settled at the next epoch end, the others at
  // the one after that.
  logic queue_valid, offer_load;
  logic [CountBits-1:0] settled_q, middle_q, recent_q;

  ns_fifo #(
    .Width(LineWidth),
    .Depth(Lines)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (complete),
    .in_ready_o (),
    .in_data_i  (line_q),
    .out_valid_o(queue_valid),
    .out_ready_i(offer_load),
    .out_data_o (next_line),
    .count_o    ()
  );

  logic offer_valid_q;
  logic [1:0] epochs_q;  // epoch ends until the offered command is settled
  logic [LineWidth-1:0] offer_line_q;
  logic [511:0] cmd_q;
  logic from_settled, from_middle;

  assign offer_load = queue_valid && (!offer_valid_q || m_page.cmd_ready);
  assign from_settled = offer_load && settled_q != '0;
  assign from_middle = offer_load && settled_q == '0 && middle_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      settled_q <= '0;
      middle_q <= '0;
      recent_q <= '0;
      offer_valid_q <= 1'b0;
      epochs_q <= '0;
    end else begin
      if (epoch_end_i) begin
        settled_q <= settled_q - CountBits'(from_settled) + middle_q - CountBits'(from_middle);
        middle_q <= recent_q - CountBits'(offer_load && !from_settled && !from_middle);
        recent_q <= CountBits'(complete);
      end else begin
        settled_q <= settled_q - CountBits'(from_settled);
        middle_q <= middle_q - CountBits'(from_middle);
        recent_q <= recent_q + CountBits'(complete) - CountBits'(offer_load && !from_settled && !from_middle);
      end
      if (offer_load) offer_valid_q <= 1'b1;
      else if (m_page.cmd_ready) offer_valid_q <= 1'b0;
      if (offer_load)
        epochs_q <= (from_settled ? 2'd0 : from_middle ? 2'd1 : 2'd2) - 2'(epoch_end_i && !from_settled);
      else epochs_q <= epochs_q - 2'(epoch_end_i && epochs_q != '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (offer_load) begin
      offer_line_q <= next_line;
      cmd_q  <= cmd;
    end
  end

  assign m_page.cmd = cmd_q;
  assign m_page.line = offer_line_q;
  assign m_page.settled = epochs_q == '0;
  assign m_page.cmd_valid = offer_valid_q;
  assign unsettled_o = middle_q != '0 || recent_q != '0 || (offer_valid_q && epochs_q != '0);
  assign busy_o = queue_valid || offer_valid_q || valid_q;

  `NS_ASSERT(ends_a_busy_line, !m_page.done_valid || busy_q[m_page.done.line])
  `NS_ASSERT(counts_match_queue, (settled_q + middle_q + recent_q != '0) == queue_valid)

endmodule
