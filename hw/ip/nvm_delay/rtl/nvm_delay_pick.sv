// Picks one of the slots that may go, round robin.
module nvm_delay_pick
  import nvm_delay_pkg::*;
(
  /// Clock.
  input  logic  clk_i,
  /// Reset.
  input  logic  rst_ni,
  /// Slots that may go.
  input  mask_t request_i,
  /// The one picked goes: the next pick starts behind it.
  input  logic  take_i,
  /// There is one.
  output logic  valid_o,
  /// It.
  output slot_t slot_o
);

  mask_t above_q, above, chosen;  // slots behind the last pick; requests among them; the pick

  // Slots whose number has bit `b` set.
  function automatic mask_t with_bit(int unsigned b);
    for (int unsigned s = 0; s < Slots; s++) with_bit[s] = ((s >> b) & 1) != 0;
  endfunction

  assign valid_o = request_i != '0;
  assign above = request_i & above_q;

  always_comb begin
    chosen = '0;
    slot_o = '0;
    if (valid_o) begin
      chosen = (above != '0) ? above & -above : request_i & -request_i;
      for (int unsigned b = 0; b < SlotWidth; b++) slot_o[b] = |(chosen & with_bit(b));
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) above_q <= '0;
    else if (take_i) above_q <= ~(chosen | (chosen - 1'b1));
  end

endmodule
