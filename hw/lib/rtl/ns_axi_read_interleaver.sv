// Lets read bursts take turns in front of a memory: long ones are read in pieces, urgent ones go between them.
//
// A memory controller serves what it has accepted more or less in order, so a short read waits for all of the long ones before
// it. Here up to `Bursts` of them wait; each in turn may send a piece of up to `PieceBeats` beats, urgent ones first. The others wait
// while more than `MaxBeats` beats would be asked for and have not come. The beats of a burst come back as one
// burst, since the memory keeps the order of an ID. Bursts that are not INCR of whole beats stay in one piece. Writes pass.
// Assumes that no two bursts with one ID are under way at the same time. An address goes on two cycles after it was taken.
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
  /// Beats asked for, at most, when a piece that is not urgent goes; a longer one goes alone.
  parameter int unsigned MaxBeats = 32
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// From registers: a burst waits or is under way.
  output logic     busy_o,
  /// The address that `s_axi` shows is urgent.
  input  logic     urgent_i,
  /// Master.
  ns_axi_if.slave  s_axi,
  /// Memory.
  ns_axi_if.master m_axi
);

  localparam int unsigned SlotBits = unsigned'($clog2(Bursts));
  localparam int unsigned PieceBits = unsigned'($clog2(PieceBeats));
  localparam int unsigned LeftBits = unsigned'($clog2(MaxBeats + 1));
  localparam int unsigned CountBits = unsigned'($clog2(MaxBeats + 256 * (Bursts + 1))) + 1;
  typedef logic [SlotBits-1:0] slot_t;
  typedef logic [CountBits-1:0] count_t;

  // Bursts that wait: what was asked, pieces of it that have been sent, beats of the next one, and whether that is the last.
  typedef logic [8-PieceBits:0] pieces_t;
  typedef logic [8:0] beats_t;
  ax_t ax_mem[Bursts];
  pieces_t sent_q[Bursts];
  beats_t beats_q[Bursts];
  logic [Bursts-1:0] valid_q, urgent_q, last_q, free;
  logic take, any_free, whole, short, more;
  slot_t free_slot;

  assign free = ~valid_q;
  assign any_free = free != '0;
  assign s_axi.ar_ready = any_free && !more;
  assign take = s_axi.ar_valid && s_axi.ar_ready;
  assign whole = s_axi.ar.burst != BurstIncr || s_axi.ar.size != 3'd6;
  assign short = 32'(s_axi.ar.len) < PieceBeats;

  always_comb begin
    free_slot = '0;
    for (int unsigned i = 0; i < Bursts; i++)
    if (free[Bursts-1-i]) free_slot = slot_t'(Bursts - 1 - i);
  end

  // The next pieces, chosen a cycle ahead: 1 of an urgent burst, 0 of another one.
  typedef struct packed {
    slot_t   slot;
    pieces_t sent;
    beats_t  beats;
    logic    last;
    ax_t     ax;
  } piece_t;

  logic [1:0] enters, any, room_for, chosen, send;
  piece_t [1:0] pieces;
  slot_t entering;

  for (genvar k = 0; k < 2; k++) begin : gen_kind
    slot_t slot;

    // Bursts stand in a row; one with more to send goes to its end.
    ns_fifo #(
      .Width(SlotBits),
      .Depth(Bursts)
    ) u_row (
      .clk_i,
      .rst_ni,
      .in_valid_i (enters[k]),
      .in_ready_o (),
      .in_data_i  (entering),
      .out_valid_o(any[k]),
      .out_ready_i(room_for[k]),
      .out_data_o (slot),
      .count_o    ()
    );

    ns_fifo #(
      .Width($bits(piece_t)),
      .Depth(2)
    ) u_chosen (
      .clk_i,
      .rst_ni,
      .in_valid_i (any[k]),
      .in_ready_o (room_for[k]),
      .in_data_i  ({slot, sent_q[slot], beats_q[slot], last_q[slot], ax_mem[slot]}),
      .out_valid_o(chosen[k]),
      .out_ready_i(send[k]),
      .out_data_o (pieces[k]),
      .count_o    ()
    );
  end

  // An urgent one goes first, unless the other one is shown already.
  count_t left_q;  // beats that may be asked for yet; below 0 since urgent ones don't ask
  logic room, shown_q, urgent_first, next_last;
  piece_t piece;
  pieces_t next_sent;
  ax_t ax;

  assign urgent_first = chosen[1] && !shown_q;
  assign piece = pieces[urgent_first];
  assign room = left_q == count_t'(MaxBeats) ||
                (!left_q[CountBits-1] && pieces[0].beats <= 9'(left_q[LeftBits-1:0]));

  always_comb begin
    ax = piece.ax;
    ax.len = 8'(piece.beats - 9'd1);
    // A burst does not cross 4 KiB.
    if (piece.sent != '0)
      ax.addr[11:0] = {6'(piece.ax.addr[11:6] + 6'({piece.sent, PieceBits'(0)})), 6'd0};
  end

  assign m_axi.ar = ax;
  assign m_axi.ar_valid = urgent_first || (chosen[0] && room);
  assign send[1] = urgent_first && m_axi.ar_ready;
  assign send[0] = !urgent_first && chosen[0] && room && m_axi.ar_ready;

  // What is sent changes its burst's state a cycle later.
  logic sent_valid_q, sent_last_q;
  slot_t sent_slot_q;
  pieces_t sent_pieces_q;
  logic [7:0] sent_len_q;
  assign more = sent_valid_q && !sent_last_q;
  assign entering = more ? sent_slot_q : free_slot;
  assign enters[1] = more ? urgent_q[sent_slot_q] : take && urgent_i;
  assign enters[0] = more ? !urgent_q[sent_slot_q] : take && !urgent_i;
  assign next_sent = sent_pieces_q + 1'b1;
  assign next_last = next_sent == pieces_t'(sent_len_q >> PieceBits);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q  <= '0;
      urgent_q <= '0;
      shown_q  <= 1'b0;
      sent_valid_q <= 1'b0;
    end else begin
      sent_valid_q <= send != '0;
      if (sent_valid_q && sent_last_q) valid_q[sent_slot_q] <= 1'b0;
      if (take) begin
        valid_q[free_slot]  <= 1'b1;
        urgent_q[free_slot] <= urgent_i;
      end
      shown_q <= m_axi.ar_valid && !urgent_first && !m_axi.ar_ready;
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
    if (take) begin
      ax_mem[free_slot]  <= s_axi.ar;
      sent_q[free_slot]  <= '0;
      last_q[free_slot]  <= whole || short;
      beats_q[free_slot] <= (whole || short) ? 9'(s_axi.ar.len) + 9'd1 : 9'(PieceBeats);
    end
  end

  // The last beat of a burst, whatever it is of its piece.
  logic [7:0] left;
  logic r_fire, idle;
  logic [1:0] left_we;
  logic [1:0][IdBits-1:0] left_addr;
  logic [1:0][7:0] left_data;
  assign r_fire = m_axi.r_valid && m_axi.r_ready;
  assign left_we = {r_fire, take};
  assign left_addr = {m_axi.r.id[IdBits-1:0], s_axi.ar.id[IdBits-1:0]};
  assign left_data = {left - 8'd1, s_axi.ar.len};

  ns_ram_multi #(
    .Width (8),
    .Depth (2 ** IdBits),
    .Writes(2)
  ) u_left (
    .clk_i,
    .rst_ni,
    .we_i   (left_we),
    .waddr_i(left_addr),
    .wdata_i(left_data),
    .raddr_i(m_axi.r.id[IdBits-1:0]),
    .rdata_o(left)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) left_q <= count_t'(MaxBeats);
    else left_q <= left_q - (send != '0 ? count_t'(piece.beats) : '0) + count_t'(r_fire);
  end

  assign idle = valid_q == '0 && left_q == count_t'(MaxBeats);
  assign busy_o = !idle;

  assign s_axi.r = '{id: m_axi.r.id, resp: m_axi.r.resp, last: left == '0, data: m_axi.r.data};
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

  `NS_ASSERT(known_id, !take || (s_axi.ar.id >> IdBits) == '0)
  `NS_ASSERT(asked_for, !r_fire || left_q != count_t'(MaxBeats))
  for (genvar i = 0; i < Bursts; i++) begin : gen_check
    `NS_ASSERT(one_burst_an_id, !(take && valid_q[i]) || ax_mem[i].id != s_axi.ar.id)
  end

endmodule
