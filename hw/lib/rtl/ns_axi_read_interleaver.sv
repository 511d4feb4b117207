// SPDX-License-Identifier: Apache-2.0

// Interleaves read bursts ahead of a memory: long reads are split into pieces, and urgent reads
// pass between these.
//
// A memory controller serves requests roughly in order, so a short read waits for all long ones
// before it. Here up to `Bursts` reads wait. They are served in turn, a piece of up to `PieceBeats`
// beats each, urgent ones first. Reads that are not urgent wait while more than `MaxBeats`
// requested beats would be outstanding. The beats of a burst return as one burst, since the memory
// keeps the order of an ID. Bursts that are not INCR of whole beats stay in one piece. Writes pass.
//
// Assumes that no two bursts with one ID are in flight at the same time. An address leaves two
// cycles after it is accepted.
`include "ns_assert.svh"

module ns_axi_read_interleaver
  import ns_axi_pkg::*;
#(
  /// Bits of an ID; those above are 0.
  parameter int unsigned IdBits = 7,
  /// Bursts that wait, a power of two.
  parameter int unsigned Bursts = 16,
  /// Beats of a piece, a power of two.
  parameter int unsigned PieceBeats = 8,
  /// Most beats outstanding when a piece that is not urgent is sent; a longer piece is sent alone.
  parameter int unsigned MaxBeats = 32
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// From registers: a burst waits or is in flight.
  output logic     busy_o,
  /// The address on `s_axi` is urgent.
  input  logic     urgent_i,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Memory.
  ns_axi_if.master m_axi
);

  localparam int unsigned SlotBits = unsigned'($clog2(Bursts));
  localparam int unsigned PieceBits = unsigned'($clog2(PieceBeats));
  localparam int unsigned CreditBits = unsigned'($clog2(MaxBeats + 1));
  localparam int unsigned CountBits = unsigned'($clog2(MaxBeats + 256 * (Bursts + 1))) + 1;
  typedef logic [SlotBits-1:0] slot_t;
  typedef logic [CountBits-1:0] count_t;

  // Waiting bursts: the request, the pieces sent, the beats of the next piece, and whether that is
  // the last one.
  typedef logic [8-PieceBits:0] pieces_t;
  typedef logic [8:0] beats_t;
  ax_t ax_mem[Bursts];
  pieces_t sent_q[Bursts];
  beats_t beats_q[Bursts];
  logic [Bursts-1:0] valid_q, urgent_q, last_q, free;
  logic ar_fire, slot_free, unsplit, one_piece, requeue;
  slot_t free_slot;

  assign free = ~valid_q;
  assign slot_free = free != '0;
  assign s_axi.ar_ready = slot_free && !requeue;
  assign ar_fire = s_axi.ar_valid && s_axi.ar_ready;
  assign unsplit = s_axi.ar.burst != BurstIncr || s_axi.ar.size != 3'd6;
  assign one_piece = 32'(s_axi.ar.len) < PieceBeats;

  always_comb begin
    free_slot = '0;
    for (int unsigned i = 0; i < Bursts; i++)
    if (free[Bursts-1-i]) free_slot = slot_t'(Bursts - 1 - i);
  end

  // The next pieces, chosen one cycle ahead: 1 of an urgent burst, 0 of another one.
  typedef struct packed {
    slot_t   slot;
    pieces_t sent;
    beats_t  beats;
    logic    last;
    ax_t     ax;
  } piece_t;

  logic [1:0] queue_push, queue_valid, chosen_ready, chosen, send;
  piece_t [1:0] pieces;
  slot_t queue_slot;

  for (genvar k = 0; k < 2; k++) begin : gen_kind
    slot_t slot;

    // Bursts queue; one with more pieces to send is queued again.
    ns_fifo #(
      .Width(SlotBits),
      .Depth(Bursts)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (queue_push[k]),
      .in_ready_o (),
      .in_data_i  (queue_slot),
      .out_valid_o(queue_valid[k]),
      .out_ready_i(chosen_ready[k]),
      .out_data_o (slot),
      .count_o    ()
    );

    ns_fifo #(
      .Width($bits(piece_t)),
      .Depth(2)
    ) u_chosen (
      .clk_i,
      .rst_ni,
      .in_valid_i (queue_valid[k]),
      .in_ready_o (chosen_ready[k]),
      .in_data_i  ({slot, sent_q[slot], beats_q[slot], last_q[slot], ax_mem[slot]}),
      .out_valid_o(chosen[k]),
      .out_ready_i(send[k]),
      .out_data_o (pieces[k]),
      .count_o    ()
    );
  end

  // An urgent piece has priority, unless the other one is already offered.
  count_t credit_q;  // beats of credit left; below 0 as urgent pieces need none
  logic credit_ok, offered_q, urgent_first, next_last;
  piece_t piece;
  pieces_t next_sent;
  ax_t ax;

  assign urgent_first = chosen[1] && !offered_q;
  assign piece = pieces[urgent_first];
  assign credit_ok = credit_q == count_t'(MaxBeats) ||
                (!credit_q[CountBits-1] && pieces[0].beats <= 9'(credit_q[CreditBits-1:0]));

  always_comb begin
    ax = piece.ax;
    ax.len = 8'(piece.beats - 9'd1);
    // A burst does not cross 4 KiB.
    if (piece.sent != '0)
      ax.addr[11:0] = {6'(piece.ax.addr[11:6] + 6'({piece.sent, PieceBits'(0)})), 6'd0};
  end

  assign m_axi.ar = ax;
  assign m_axi.ar_valid = urgent_first || (chosen[0] && credit_ok);
  assign send[1] = urgent_first && m_axi.ar_ready;
  assign send[0] = !urgent_first && chosen[0] && credit_ok && m_axi.ar_ready;

  // A sent piece updates its burst's state one cycle later.
  logic sent_valid_q, sent_last_q;
  slot_t sent_slot_q;
  pieces_t sent_pieces_q;
  logic [7:0] sent_len_q;
  assign requeue = sent_valid_q && !sent_last_q;
  assign queue_slot = requeue ? sent_slot_q : free_slot;
  assign queue_push[1] = requeue ? urgent_q[sent_slot_q] : ar_fire && urgent_i;
  assign queue_push[0] = requeue ? !urgent_q[sent_slot_q] : ar_fire && !urgent_i;
  assign next_sent = sent_pieces_q + 1'b1;
  assign next_last = next_sent == pieces_t'(sent_len_q >> PieceBits);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q  <= '0;
      urgent_q <= '0;
      offered_q  <= 1'b0;
      sent_valid_q <= 1'b0;
    end else begin
      sent_valid_q <= send != '0;
      if (sent_valid_q && sent_last_q) valid_q[sent_slot_q] <= 1'b0;
      if (ar_fire) begin
        valid_q[free_slot]  <= 1'b1;
        urgent_q[free_slot] <= urgent_i;
      end
      offered_q <= m_axi.ar_valid && !urgent_first && !m_axi.ar_ready;
    end
  end

  always_ff @(posedge clk_i) begin
    sent_slot_q <= piece.slot;
    sent_pieces_q <= piece.sent;
    sent_last_q <= piece.last;
    sent_len_q <= piece.ax.len;
    if (sent_valid_q) begin
      sent_q[sent_slot_q]  <= next_sent;
      last_q[sent_slot_q]  <= next_last;
      beats_q[sent_slot_q] <= next_last ? 9'(sent_len_q[PieceBits-1:0]) + 9'd1 : 9'(PieceBeats);
    end
    if (ar_fire) begin
      ax_mem[free_slot]  <= s_axi.ar;
      sent_q[free_slot]  <= '0;
      last_q[free_slot]  <= unsplit || one_piece;
      beats_q[free_slot] <= (unsplit || one_piece) ? 9'(s_axi.ar.len) + 9'd1 : 9'(PieceBeats);
    end
  end

  // The last beat of a burst, wherever it is in its piece.
  logic [7:0] beats_left;
  logic r_fire, idle;
  logic [1:0] beats_left_we;
  logic [1:0][IdBits-1:0] beats_left_addr;
  logic [1:0][7:0] beats_left_data;
  assign r_fire = m_axi.r_valid && m_axi.r_ready;
  assign beats_left_we = {r_fire, ar_fire};
  assign beats_left_addr = {m_axi.r.id[IdBits-1:0], s_axi.ar.id[IdBits-1:0]};
  assign beats_left_data = {beats_left - 8'd1, s_axi.ar.len};

  ns_ram_multi #(
    .Width (8),
    .Depth (2 ** IdBits),
    .Writes(2)
  ) u_beats_left (
    .clk_i,
    .rst_ni,
    .we_i   (beats_left_we),
    .waddr_i(beats_left_addr),
    .wdata_i(beats_left_data),
    .raddr_i(m_axi.r.id[IdBits-1:0]),
    .rdata_o(beats_left)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) credit_q <= count_t'(MaxBeats);
    else credit_q <= credit_q - (send != '0 ? count_t'(piece.beats) : '0) + count_t'(r_fire);
  end

  assign idle = valid_q == '0 && credit_q == count_t'(MaxBeats);
  assign busy_o = !idle;

  assign s_axi.r = '{id: m_axi.r.id, resp: m_axi.r.resp, last: beats_left == '0, data: m_axi.r.data};
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;
  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid;
  assign s_axi.aw_ready = m_axi.aw_ready;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid;
  assign s_axi.w_ready = m_axi.w_ready;
  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;

  logic unused;
  assign unused = ^{m_axi.r.last};

  `NS_ASSERT(known_id, !ar_fire || (s_axi.ar.id >> IdBits) == '0)
  `NS_ASSERT(beat_was_requested, !r_fire || credit_q != count_t'(MaxBeats))
  for (genvar i = 0; i < Bursts; i++) begin : gen_check
    `NS_ASSERT(one_burst_per_id, !(ar_fire && valid_q[i]) || ax_mem[i].id != s_axi.ar.id)
  end

endmodule
