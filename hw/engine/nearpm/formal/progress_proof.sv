// SPDX-License-Identifier: Apache-2.0

// nearpm_progress, for any one log. Each word that is written is the highest transaction that the
// log has completed since it was opened, so words never go back. No word is missing for long.
// `Fault` 1: no word of transaction 1 is allowed, and one has to be found. `Fault` 2: commands are
// lost, and their missing words have to be found.
`include "ns_assert.svh"

module progress_proof
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
#(
  parameter int unsigned Fault = 0
) (
  input logic                           clk_i,
  input logic                           rst_ni,
  input logic                           freeze_i,
  input logic                           address_written_i,
  input logic [1:0]                     address_i,
  input logic                           done_valid_i,
  input logic                           done_opens_i,
  input logic [LogBits-1:0]             done_log_i,
  input logic [1:0]                     done_transaction_i,
  input logic                           pool_change_valid_i,
  input pool_number_t                   pool_change_number_i,
  input logic                           aw_ready_i,
  input logic                           w_ready_i,
  input logic                           b_valid_i,
  input logic [LogBits-1:0]             any_log_i
);

  // A log and an address, which stay as they are.
  logic [LogBits-1:0] log_q;
  logic reset_q = 1'b0;
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);
  always_ff @(posedge clk_i) if (!reset_q) log_q <= any_log_i;

  logic busy, done_valid;
  assign done_valid = done_valid_i && !(Fault == 2 && done_log_i == log_q);

  ns_axi_if host ();
  assign host.aw_ready = aw_ready_i;
  assign host.w_ready = w_ready_i;
  assign host.b = '0;
  assign host.b_valid = b_valid_i;
  assign host.ar_ready = 1'b1;
  assign host.r = '0;
  assign host.r_valid = 1'b0;

  nearpm_progress u_dut (
    .clk_i,
    .rst_ni,
    .freeze_i,
    .busy_o              (busy),
    .address_written_i,
    .address_i           (52'(address_i)),
    .done_valid_i        (done_valid),
    .done_opens_i,
    .done_log_i,
    .done_transaction_i  (64'(done_transaction_i)),
    .pool_change_valid_i,
    .pool_change_number_i,
    .m_host              (host)
  );

  // The host answers a write once it has both parts.
  logic aw_taken_q, w_taken_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_taken_q <= 1'b0;
      w_taken_q  <= 1'b0;
    end else begin
      aw_taken_q <= !b_valid_i && (aw_taken_q || (host.aw_valid && aw_ready_i));
      w_taken_q  <= !b_valid_i && (w_taken_q || (host.w_valid && w_ready_i));
    end
  end
  always_comb assume (!b_valid_i || (aw_taken_q && w_taken_q));

  // What the log has completed, counted apart from the module: known one cycle after the end, as
  // there. `written_q`: the last word since the log was opened.
  logic change, done_q, opens_q, own_write;
  logic [1:0] transaction_q, completed_q, written_q, word;
  logic [1:0] address_q;

  assign change = pool_change_valid_i && pool_of(log_q) == pool_change_number_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) done_q <= 1'b0;
    else done_q <= done_valid_i && done_log_i == log_q && !change;
  end
  always_ff @(posedge clk_i) begin
    opens_q <= done_opens_i;
    transaction_q <= done_transaction_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) completed_q <= '0;
    else if (change || (done_q && opens_q)) completed_q <= '0;
    else if (done_q && transaction_q > completed_q) completed_q <= transaction_q;
  end

  // A write begins in the cycle in which its address appears.
  logic aw_valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) aw_valid_q <= 1'b0;
    else aw_valid_q <= host.aw_valid && !aw_ready_i;
  end
  localparam int unsigned LaneBits = (LogBits < 3) ? LogBits : 3;
  assign word = host.w.data[1:0];
  assign own_write = host.aw_valid && !aw_valid_q &&
      host.w.strb == StrbWidth'(8'hFF) << {log_q[LaneBits-1:0], 3'd0} &&
      (host.aw.addr & 64'hFFF) == (64'({log_q, 3'd0}) & ~64'h3F);

  logic freeze_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) freeze_q <= 1'b0;
    else freeze_q <= freeze_i;
  end

  // What was completed, and whether the log was opened, in the cycle before.
  logic [1:0] before_q;
  logic reopened_q;
  always_ff @(posedge clk_i) begin
    before_q   <= completed_q;
    reopened_q <= change || (done_q && opens_q);
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) written_q <= '0;
    else if (change || (done_q && opens_q)) written_q <= '0;
    else if (own_write && !reopened_q) written_q <= word;
  end

  `NS_ASSERT(word_is_completed,
             !own_write || (word == before_q && before_q != (Fault == 1 ? 2'd1 : 2'd0)))
  `NS_ASSERT(never_back, !own_write || reopened_q || word >= written_q)
  `NS_ASSERT(no_word_while_frozen, !(own_write && freeze_q))

  // With a host that answers at once, no other work and no freeze, the word follows.
  logic quiet;
  logic [5:0] missing_q;
  assign quiet = aw_ready_i && w_ready_i && (b_valid_i || !(aw_taken_q && w_taken_q)) && !freeze_i &&
      !done_valid_i && !address_written_i && !pool_change_valid_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) address_q <= '0;
    else if (address_written_i) address_q <= address_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) missing_q <= '0;
    else if (!quiet || address_q == '0 || completed_q == written_q) missing_q <= '0;
    else missing_q <= missing_q + 1'b1;
  end
  `NS_ASSERT(word_follows, missing_q < 6'd40)
  `NS_COVER(second_word, own_write && written_q == 2'd1 && word == 2'd3)

  logic unused;
  assign unused = ^{busy, host.ar, host.ar_valid, host.aw, host.w, host.b_ready, host.r_ready};

endmodule
