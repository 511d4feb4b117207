// SPDX-License-Identifier: Apache-2.0

// Requests to zero blocks, between the NVMe controller and the storage's memories.
//
// A memory completes each request once, even if the function is reset meanwhile. The function after
// the reset does not get that completion. Until it arrives, the memory counts as lost, as it may
// still zero blocks that the function has written since. Requests to a lost memory end as errors.
module nearside_fills #(
  parameter int unsigned NumChannels = 2
) (
  input  logic                   clk_i,
  /// Reset of the function.
  input  logic                   rst_ni,
  /// Power-on reset, of the memories too.
  input  logic                   por_ni,
  /// No request starts any more, and the active ones are to end. From a register.
  input  logic                   stop_i,
  /// Responses to the function before its reset are outstanding. From registers.
  input  logic [NumChannels-1:0] lost_i,
  /// The memory zeroes blocks. From registers.
  output logic [NumChannels-1:0] open_o,
  /// The memory still zeroes blocks for the function before its reset. From registers.
  output logic [NumChannels-1:0] owed_o,

  /// The controller's requests; a request is accepted with ready, and ends with one done.
  input  logic [NumChannels-1:0] s_valid_i,
  output logic [NumChannels-1:0] s_ready_o,
  input  logic                   s_stop_i,
  output logic [NumChannels-1:0] s_done_o,
  output logic [NumChannels-1:0] s_error_o,

  /// The memories.
  output logic [NumChannels-1:0] m_valid_o,
  input  logic [NumChannels-1:0] m_ready_i,
  output logic [NumChannels-1:0] m_stop_o,
  input  logic [NumChannels-1:0] m_done_i,
  input  logic [NumChannels-1:0] m_error_i
);

  logic [NumChannels-1:0] open_q;
  logic [NumChannels-1:0] current_q;  // the request is of the function since its last reset
  logic [NumChannels-1:0] accepted, rejected, rejected_q;

  assign open_o = open_q;
  assign owed_o = open_q & ~current_q;
  assign m_valid_o = s_valid_i & ~open_q & ~lost_i & {NumChannels{!stop_i}};
  assign m_stop_o = {NumChannels{s_stop_i || stop_i}} | owed_o;
  assign accepted = m_valid_o & m_ready_i;
  assign rejected = s_valid_i & lost_i & {NumChannels{!stop_i}};
  assign s_ready_o = accepted | rejected;
  assign s_done_o = m_done_i & current_q | rejected_q;
  assign s_error_o = m_error_i | rejected_q;

  always_ff @(posedge clk_i or negedge por_ni) begin
    if (!por_ni) open_q <= '0;
    else open_q <= (open_q | accepted) & ~m_done_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      current_q <= '0;
      rejected_q <= '0;
    end else begin
      current_q <= (current_q | accepted) & ~m_done_i;
      rejected_q <= rejected;
    end
  end

endmodule
