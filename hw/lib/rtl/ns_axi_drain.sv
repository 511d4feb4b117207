// Ends an AXI4 master's transactions when the master is cut off, by a reset or a dead link: control of all five channels.
//
// It stands between a master that may vanish at any cycle and a slave that lives on, and lets everything pass as it is, but
// write data only behind their address. While `cut_i` is 1 the master counts as gone: nothing of it is accepted, the beats
// that its begun bursts still owe are supplied as beats without strobes, and what the slave answers is dropped. `cut_o`
// stays 1 until the last answer has come: no answer reaches the master's next life, and no beat of an old burst is missing
// or left over for the next one.
// Assumes that the slave answers each transaction, in whatever order; until it does, nothing new passes. Data do not go
// through here: `m_w_fill_o` says which beats have to lose their strobes.
`include "ns_assert.svh"

module ns_axi_drain #(
  /// Writes whose address has passed and whose data is not complete. Further addresses wait.
  parameter int unsigned MaxWrites = 4,
  /// Bits of the counts of reads and of writes that wait for their response.
  parameter int unsigned CountBits = 10
) (
  /// Clock.
  input  logic       clk_i,
  /// Reset, of what lives on: both sides have nothing under way.
  input  logic       rst_ni,
  /// The master is gone. From a register.
  input  logic       cut_i,
  /// It counts as gone.
  output logic       cut_o,
  /// Something waits for the slave. From registers.
  output logic       open_o,

  /// Master: write address valid.
  input  logic       s_aw_valid_i,
  /// Ready.
  output logic       s_aw_ready_o,
  /// Its beats - 1.
  input  logic [7:0] s_aw_len_i,
  /// Write data valid.
  input  logic       s_w_valid_i,
  /// Ready.
  output logic       s_w_ready_o,
  /// Last beat of its burst.
  input  logic       s_w_last_i,
  /// Write response valid.
  output logic       s_b_valid_o,
  /// Ready.
  input  logic       s_b_ready_i,
  /// Read address valid.
  input  logic       s_ar_valid_i,
  /// Ready.
  output logic       s_ar_ready_o,
  /// Read data valid.
  output logic       s_r_valid_o,
  /// Ready.
  input  logic       s_r_ready_i,

  /// Slave: write address valid. Withdrawn when the master is cut off, so a register slice has to follow.
  output logic       m_aw_valid_o,
  /// Ready.
  input  logic       m_aw_ready_i,
  /// Write data valid. See above.
  output logic       m_w_valid_o,
  /// Ready.
  input  logic       m_w_ready_i,
  /// The beat is not the master's, and has no strobes.
  output logic       m_w_fill_o,
  /// Last beat of its burst.
  output logic       m_w_last_o,
  /// Write response valid.
  input  logic       m_b_valid_i,
  /// Ready.
  output logic       m_b_ready_o,
  /// Read address valid. See above.
  output logic       m_ar_valid_o,
  /// Ready.
  input  logic       m_ar_ready_i,
  /// Read data valid.
  input  logic       m_r_valid_i,
  /// Ready.
  output logic       m_r_ready_o,
  /// Last beat of its burst.
  input  logic       m_r_last_i
);

  logic cut_q, cut;
  logic [CountBits-1:0]
      writes_q, reads_q;  // without their response, and without the last beat of it
  logic aw_fire, w_fire, b_fire, ar_fire, r_last_fire;

  assign cut = cut_i || cut_q;
  assign cut_o = cut;
  assign open_o = writes_q != '0 || reads_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cut_q <= 1'b0;
    else cut_q <= cut && open_o;
  end

  // Write data: how long the bursts are whose data is not complete. The first of them may be the one whose address passes
  // in this very cycle.
  logic len_ready, len_valid, w_open;
  logic [7:0] len_head, len, beat_q;

  assign m_aw_valid_o = s_aw_valid_i && !cut && len_ready;
  assign s_aw_ready_o = m_aw_ready_i && !cut && len_ready;
  assign aw_fire = m_aw_valid_o && m_aw_ready_i;

  assign w_open = len_valid || aw_fire;
  assign len = len_valid ? len_head : s_aw_len_i;
  assign m_w_valid_o = w_open && (s_w_valid_i || cut);
  assign m_w_fill_o = cut;
  assign m_w_last_o = beat_q == len;
  assign s_w_ready_o = w_open && m_w_ready_i && !cut;
  assign w_fire = m_w_valid_o && m_w_ready_i;

  ns_fifo #(
    .Width(8),
    .Depth(MaxWrites)
  ) u_lengths (
    .clk_i,
    .rst_ni,
    .in_valid_i (aw_fire && (len_valid || !(w_fire && m_w_last_o))),
    .in_ready_o (len_ready),
    .in_data_i  (s_aw_len_i),
    .out_valid_o(len_valid),
    .out_ready_i(w_fire && m_w_last_o),
    .out_data_o (len_head),
    .count_o    ()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) beat_q <= '0;
    else if (w_fire) beat_q <= m_w_last_o ? '0 : beat_q + 1'b1;
  end

  // Responses.
  assign s_b_valid_o = m_b_valid_i && !cut;
  assign m_b_ready_o = s_b_ready_i || cut;
  assign b_fire = m_b_valid_i && m_b_ready_o;
  assign s_r_valid_o = m_r_valid_i && !cut;
  assign m_r_ready_o = s_r_ready_i || cut;
  assign r_last_fire = m_r_valid_i && m_r_ready_o && m_r_last_i;

  assign m_ar_valid_o = s_ar_valid_i && !cut;
  assign s_ar_ready_o = m_ar_ready_i && !cut;
  assign ar_fire = m_ar_valid_o && m_ar_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_q <= '0;
      reads_q <= '0;
    end else begin
      if (aw_fire && !b_fire) writes_q <= writes_q + 1'b1;
      if (!aw_fire && b_fire) writes_q <= writes_q - 1'b1;
      if (ar_fire && !r_last_fire) reads_q <= reads_q + 1'b1;
      if (!ar_fire && r_last_fire) reads_q <= reads_q - 1'b1;
    end
  end

  if (MaxWrites < 2) begin : gen_bad_max
    $error("ns_axi_drain: MaxWrites must be at least 2");
  end

  `NS_ASSERT(response_was_asked_for, !b_fire || writes_q != '0)
  `NS_ASSERT(data_were_asked_for, !r_last_fire || reads_q != '0)
  `NS_ASSERT(counts_do_not_wrap, !(aw_fire && writes_q == '1) && !(ar_fire && reads_q == '1))
  `NS_ASSERT(last_where_the_address_says, !(w_fire && !cut) || s_w_last_i == m_w_last_o)

endmodule
