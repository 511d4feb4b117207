// SPDX-License-Identifier: Apache-2.0

// Progress words: writes the last transaction that each log has completed to host memory.
//
//   ended command ─► memory of transactions, pending logs ─► choice of a log ─► read ─► host port
//
// A log is pending at most once, and its word has the transaction at the time of the read. So a
// slow host port delays words, and nothing else waits for it.
`include "ns_assert.svh"

module nearpm_progress
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
(
  input  logic               clk_i,
  input  logic               rst_ni,
  /// No write begins. From a register.
  input  logic               freeze_i,
  /// From registers.
  output logic               busy_o,

  /// The address of the words is written: for one cycle, from registers. In units of 4 KiB; 0: no
  /// words are written.
  input  logic               address_written_i,
  input  logic [51:0]        address_i,

  /// A command has ended without an error: it completes a transaction of its log, or has opened
  /// the log. From registers.
  input  logic               done_valid_i,
  input  logic               done_opens_i,
  input  logic [LogBits-1:0] done_log_i,
  input  logic [63:0]        done_transaction_i,
  /// A pool is mapped or unmapped: no word of its logs is written until they are opened.
  input  logic               pool_change_valid_i,
  input  pool_number_t       pool_change_number_i,

  /// To host memory.
  ns_axi_if.master           m_host
);

  localparam int unsigned Logs = Pools * Threads;
  typedef logic [LogBits-1:0] log_index_t;

  // ---------------------------------------------------------------- transactions

  // A command takes two cycles: the log's last transaction is read, then compared and written.
  logic update_valid_q, update_opens_q, forward_q, newer, drop_done, drop_update, drop_word;
  log_index_t update_log_q, log_q;
  logic [63:0] update_q, forwarded_q, stored, last;
  logic [Logs-1:0] known_q, pending_q;

  assign drop_done = pool_change_valid_i && pool_of(done_log_i) == pool_change_number_i;
  assign drop_update = pool_change_valid_i && pool_of(update_log_q) == pool_change_number_i;
  assign drop_word = pool_change_valid_i && pool_of(log_q) == pool_change_number_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) update_valid_q <= 1'b0;
    else update_valid_q <= done_valid_i && !drop_done;
  end

  always_ff @(posedge clk_i) begin
    update_opens_q <= done_opens_i;
    update_log_q <= done_log_i;
    update_q <= done_transaction_i;
    // The memory does not return what is being written.
    forward_q <= newer && update_log_q == done_log_i;
    forwarded_q <= update_q;
  end

  assign last = forward_q ? forwarded_q : stored;
  assign newer = update_valid_q && !drop_update && !update_opens_q &&
      update_q > (known_q[update_log_q] ? last : '0);

  ns_ram_1r1w #(
    .Width(64),
    .Depth(Logs),
    .Style("bram")
  ) u_transactions (
    .clk_i,
    .we_i   (newer),
    .waddr_i(update_log_q),
    .wdata_i(update_q),
    .re_i   (1'b1),
    .raddr_i(done_valid_i ? done_log_i : log_q),
    .rdata_o(stored)
  );

  // ---------------------------------------------------------------- choice of a log

  typedef enum logic [2:0] {
    StIdle,
    StPick,  // selects a thread of the pool
    StRead,  // when no command uses the memory
    StWord,
    StResponse  // of the host port
  } state_e;

  state_e state_q;
  logic [51:0] address_q;
  logic [Pools-1:0] pool_pending;
  logic work_valid, thread_valid, read_fire, fire, on;
  pool_number_t pool_turn, pool_q;
  logic [ThreadBits-1:0] thread_turn;

  assign on = address_q != '0;
  for (genvar p = 0; p < Pools; p++) begin : gen_pool
    assign pool_pending[p] = pending_q[p*Threads+:Threads] != '0;
  end

  ns_rr_arbiter #(
    .N(Pools)
  ) u_pool (
    .clk_i,
    .rst_ni,
    .req_i  (pool_pending),
    .next_i (state_q == StIdle && !freeze_i),
    .gnt_o  (),
    .idx_o  (pool_turn),
    .valid_o(work_valid)
  );

  ns_rr_arbiter #(
    .N(Threads)
  ) u_thread (
    .clk_i,
    .rst_ni,
    .req_i  (pending_q[{pool_q, ThreadBits'(0)}+:Threads]),
    .next_i (state_q == StPick),
    .gnt_o  (),
    .idx_o  (thread_turn),
    .valid_o(thread_valid)
  );

  assign read_fire = state_q == StRead && !done_valid_i && !update_valid_q && !freeze_i;
  // The address may have become 0 after the read.
  assign fire = state_q == StWord && on && !freeze_i && !drop_word;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else begin
      unique case (state_q)
        StIdle: if (work_valid && on && !freeze_i) state_q <= StPick;
        StPick: state_q <= thread_valid ? StRead : StIdle;
        // The log may have been opened again, or its pool unmapped.
        StRead:
        if (freeze_i || !on) state_q <= StIdle;
        else if (read_fire) state_q <= (pending_q[log_q] && !drop_word) ? StWord : StIdle;
        StWord: state_q <= fire ? StResponse : StIdle;
        default: if (m_host.b_valid) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) pool_q <= pool_turn;
    if (state_q == StPick) log_q <= {pool_q, thread_turn};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) address_q <= '0;
    else if (address_written_i) address_q <= address_i;
  end

  // All words are written to a new address.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      known_q   <= '0;
      pending_q <= '0;
    end else begin
      if (address_written_i) pending_q <= (address_i != '0) ? known_q : '0;
      else if (fire) pending_q[log_q] <= 1'b0;  // no command is compared in this cycle
      if (newer) begin
        known_q[update_log_q]   <= 1'b1;
        pending_q[update_log_q] <= address_written_i ? address_i != '0 : on;
      end
      if (update_valid_q && update_opens_q) begin
        known_q[update_log_q]   <= 1'b0;
        pending_q[update_log_q] <= 1'b0;
      end
      for (int unsigned n = 0; n < Logs; n++)
      if (pool_change_valid_i && pool_of(log_index_t'(n)) == pool_change_number_i) begin
        known_q[n]   <= 1'b0;
        pending_q[n] <= 1'b0;
      end
    end
  end

  assign busy_o = (on && pending_q != '0) || state_q != StIdle || update_valid_q;

  // ---------------------------------------------------------------- write

  logic aw_q, w_q;
  logic [63:0] word_q;
  logic [63:0] place_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_q <= 1'b0;
      w_q  <= 1'b0;
    end else begin
      aw_q <= fire || (aw_q && !m_host.aw_ready);
      w_q  <= fire || (w_q && !m_host.w_ready);
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StWord) begin
      word_q  <= stored;
      place_q <= {address_q, 12'({log_q, 3'd0})};
    end
  end

  // A line holds the words of eight logs. An error of the host is not reported: the word is lost,
  // and the next one of its log follows.
  assign m_host.aw = '{id: '0, len: '0, size: 3'd6, burst: BurstIncr, addr: {place_q[63:6], 6'd0}};
  assign m_host.aw_valid = aw_q;
  assign m_host.w = '{last: 1'b1, strb: StrbWidth'(8'hFF) << place_q[5:0], data: {8{word_q}}};
  assign m_host.w_valid = w_q;
  assign m_host.b_ready = 1'b1;
  assign m_host.ar = '0;
  assign m_host.ar_valid = 1'b0;
  assign m_host.r_ready = 1'b1;

  logic unused;
  assign unused = ^{m_host.b, m_host.ar_ready, m_host.r, m_host.r_valid};

  `NS_ASSERT(written_once_at_a_time, !fire || !(aw_q || w_q))

endmodule
