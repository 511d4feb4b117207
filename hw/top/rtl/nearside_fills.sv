// Requests to zero blocks, between the NVMe controller and the storage's memories.
//
// A memory that is asked to zero answers once, whatever becomes of the function; the next life of the function doesn't get that
// answer. Until it comes, that memory is lost: it may still zero what this life would write. What is asked of a lost memory ends as
// an error.
module nearside_fills #(
  parameter int unsigned NumChannels = 2
) (
  input  logic                   clk_i,
  /// Reset of the function.
  input  logic                   rst_ni,
  /// Power-on reset, of the memories too.
  input  logic                   por_ni,
  /// Nothing begins any more, and what is under way is to end. From a register.
  input  logic                   stop_i,
  /// The memory owes answers to an earlier life. From registers.
  input  logic [NumChannels-1:0] lost_i,
  /// The memory zeroes blocks. From registers.
  output logic [NumChannels-1:0] open_o,
  /// The memory still zeroes what an earlier life asked it to. From registers.
  output logic [NumChannels-1:0] owed_o,

  /// The controller's requests; a request is taken when ready, and ends with one done.
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
  logic [NumChannels-1:0] mine_q;  // open_q is of this life of the function
  logic [NumChannels-1:0] taken, refuse, refused_q;

  assign open_o = open_q;
  assign owed_o = open_q & ~mine_q;
  assign m_valid_o = s_valid_i & ~open_q & ~lost_i & {NumChannels{!stop_i}};
  assign m_stop_o = {NumChannels{s_stop_i || stop_i}} | owed_o;
  assign taken = m_valid_o & m_ready_i;
  assign refuse = s_valid_i & lost_i & {NumChannels{!stop_i}};
  assign s_ready_o = taken | refuse;
  assign s_done_o = m_done_i & mine_q | refused_q;
  assign s_error_o = m_error_i | refused_q;

  always_ff @(posedge clk_i or negedge por_ni) begin
    if (!por_ni) open_q <= '0;
    else open_q <= (open_q | taken) & ~m_done_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mine_q <= '0;
      refused_q <= '0;
    end else begin
      mine_q <= (mine_q | taken) & ~m_done_i;
      refused_q <= refuse;
    end
  end

endmodule
