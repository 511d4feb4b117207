// The lines of one engine's command page: collects the pieces of commands, gives the whole ones to the engine, and keeps how they end.
//
// A command is accepted when all 64 bytes of its line have been written, in whatever pieces and order. From then on until the engine
// has ended it, its line is busy: what is written there is dropped and counted. So nobody ever waits here.
`include "ns_assert.svh"

module command_page
  import command_page_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// From registers: a command waits for the engine, or a write is being looked at.
  output logic                 busy_o,

  /// Bytes are written, for one cycle.
  input  logic                 write_i,
  input  logic [LineWidth-1:0] write_line_i,
  input  logic [63:0]          strb_i,
  input  logic [511:0]         data_i,

  input  logic [LineWidth-1:0] read_line_i,
  /// Of that line.
  output page_status_t         status_o,

  /// A command waits until the writes before it have been answered.
  output logic                 unsettled_o,
  /// For one cycle: so many of them have been as of the last time but one that this was 1 (ns_axi_write_barrier).
  input  logic                 epoch_i,

  /// The engine.
  command_page_if.page         m_page
);

  localparam int unsigned CountBits = LineWidth + 1;

  // Lines. Memories have no reset: a line's bytes count from its first write on.
  logic [Lines-1:0] begun_q, held_q, done_q, succeeded_q;
  (* ram_style = "distributed" *) logic [63:0] written[Lines];
  (* ram_style = "distributed" *) logic [95:0] ends[Lines];

  // A write: which bytes its line has had, then whether the command is whole.
  logic valid_q, refused_q, follows, take, whole;
  logic [LineWidth-1:0] line_q;
  logic [63:0] strb_q, had, have_q;
  logic [511:0] data_q;
  logic [31:0] accepted_q, ended_q, dropped_q;

  assign follows = take && write_line_i == line_q;
  assign had = follows ? have_q : begun_q[write_line_i] ? written[write_line_i] : '0;
  assign take = valid_q && !refused_q;
  assign whole = take && have_q == '1;

  always_ff @(posedge clk_i) begin
    line_q <= write_line_i;
    strb_q <= strb_i;
    data_q <= data_i;
    have_q <= had | strb_i;
    refused_q <= held_q[write_line_i] || (follows && whole);
    if (take) written[line_q] <= have_q;
    if (m_page.done_valid) ends[m_page.done.line] <= {m_page.done.value, m_page.done.result};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      begun_q <= '0;
      held_q <= '0;
      done_q <= '0;
      succeeded_q <= '0;
      accepted_q <= '0;
      ended_q <= '0;
      dropped_q <= '0;
    end else begin
      valid_q <= write_i && strb_i != '0;
      if (take) begun_q[line_q] <= !whole;
      if (m_page.done_valid) begin
        held_q[m_page.done.line] <= 1'b0;
        done_q[m_page.done.line] <= 1'b1;
        succeeded_q[m_page.done.line] <= m_page.done.result == '0;
      end
      if (whole) begin
        held_q[line_q] <= 1'b1;
        done_q[line_q] <= 1'b0;
        succeeded_q[line_q] <= 1'b0;
      end
      accepted_q <= accepted_q + 32'(whole);
      ended_q <= ended_q + 32'(m_page.done_valid);
      dropped_q <= dropped_q + 32'(valid_q && refused_q);
    end
  end

  logic [95:0] last_end;
  assign last_end = ends[read_line_i];
  assign status_o = '{
          succeeded_lines: succeeded_q,
          busy_lines: held_q,
          pad: '0,
          dropped: dropped_q,
          ended: ended_q,
          accepted: accepted_q,
          value: done_q[read_line_i] ? last_end[95:32] : '0,
          result: done_q[read_line_i] ? last_end[31:0] : '0,
          reserved: '0,
          done: done_q[read_line_i],
          busy: held_q[read_line_i]
      };

  // The bytes.
  logic [LineWidth-1:0] next_line;
  logic [511:0] cmd;
  for (genvar b = 0; b < 64; b++) begin : gen_byte
    (* ram_style = "distributed" *) logic [7:0] bytes[Lines];
    always_ff @(posedge clk_i) if (take && strb_q[b]) bytes[line_q] <= data_q[8*b+:8];
    assign cmd[8*b+:8] = bytes[next_line];
  end

  // Commands that wait for the engine, in the order of their acceptance. Of those in the queue the first `settled_q` are settled, the
  // next `middle_q` will be at the next epoch, the others at the one after that.
  logic waits, load;
  logic [CountBits-1:0] settled_q, middle_q, young_q;

  ns_fifo #(
    .Width(LineWidth),
    .Depth(Lines)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (whole),
    .in_ready_o (),
    .in_data_i  (line_q),
    .out_valid_o(waits),
    .out_ready_i(load),
    .out_data_o (next_line),
    .count_o    ()
  );

  logic show_q;
  logic [1:0] epochs_q;  // that the shown one has to wait for
  logic [LineWidth-1:0] show_line_q;
  logic [511:0] cmd_q;
  logic from_settled, from_middle;

  assign load = waits && (!show_q || m_page.cmd_ready);
  assign from_settled = load && settled_q != '0;
  assign from_middle = load && settled_q == '0 && middle_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      settled_q <= '0;
      middle_q <= '0;
      young_q <= '0;
      show_q <= 1'b0;
      epochs_q <= '0;
    end else begin
      if (epoch_i) begin
        settled_q <= settled_q - CountBits'(from_settled) + middle_q - CountBits'(from_middle);
        middle_q <= young_q - CountBits'(load && !from_settled && !from_middle);
        young_q <= CountBits'(whole);
      end else begin
        settled_q <= settled_q - CountBits'(from_settled);
        middle_q <= middle_q - CountBits'(from_middle);
        young_q <= young_q + CountBits'(whole) - CountBits'(load && !from_settled && !from_middle);
      end
      if (load) show_q <= 1'b1;
      else if (m_page.cmd_ready) show_q <= 1'b0;
      if (load)
        epochs_q <= (from_settled ? 2'd0 : from_middle ? 2'd1 : 2'd2) - 2'(epoch_i && !from_settled);
      else epochs_q <= epochs_q - 2'(epoch_i && epochs_q != '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      show_line_q <= next_line;
      cmd_q  <= cmd;
    end
  end

  assign m_page.cmd = cmd_q;
  assign m_page.line = show_line_q;
  assign m_page.settled = epochs_q == '0;
  assign m_page.cmd_valid = show_q;
  assign unsettled_o = middle_q != '0 || young_q != '0 || (show_q && epochs_q != '0);
  assign busy_o = waits || show_q || valid_q;

  `NS_ASSERT(ends_what_it_holds, !m_page.done_valid || held_q[m_page.done.line])
  `NS_ASSERT(counted, (settled_q + middle_q + young_q != '0) == waits)

endmodule
