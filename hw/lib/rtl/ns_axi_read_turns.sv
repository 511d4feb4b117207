// Lets read bursts take turns in front of a memory: long ones are read in pieces, urgent ones go between them.
//
// A memory controller serves what it has accepted more or less in order, so a short read waits for all of the long ones before
// it. Here up to `Bursts` of them wait; of urgent ones, and then of the others, each in turn may send a piece of up to
// `PieceBeats` beats, as long as no more than `MaxBeats` beats are asked for and have not come. The beats of a burst come back as one
// burst, since the memory keeps the order of an ID. Bursts that are not INCR of whole beats stay in one piece. Writes pass.
// Assumes that no two bursts with one ID are under way at the same time, and takes an address of `s_axi` into account a cycle later.
`include "ns_assert.svh"

module ns_axi_read_turns
  import ns_axi_pkg::*;
#(
  /// Bits of an ID; those above are 0.
  parameter int unsigned IdBits = 7,
  /// Bursts that wait, a power of two.
  parameter int unsigned Bursts = 16,
  /// Beats of a piece, a power of two.
  parameter int unsigned PieceBeats = 8,
  /// Beats asked for, at most; a longer piece goes alone.
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
  localparam int unsigned CountBits = unsigned'($clog2(MaxBeats + 257));
  typedef logic [SlotBits-1:0] slot_t;
  typedef logic [CountBits-1:0] count_t;

  // Bursts that wait: what was asked, and how many pieces of it have been sent.
  ax_t ax_mem[Bursts];
  logic [8-PieceBits:0] sent_q[Bursts];
  logic [Bursts-1:0] valid_q, urgent_q, free;
  logic take, any_free;
  slot_t free_slot;

  assign free = ~valid_q;
  assign any_free = free != '0;
  assign s_axi.ar_ready = any_free;
  assign take = s_axi.ar_valid && any_free;

  always_comb begin
    free_slot = '0;
    for (int unsigned i = 0; i < Bursts; i++)
    if (free[Bursts-1-i]) free_slot = slot_t'(Bursts - 1 - i);
  end

  // The next piece.
  logic [Bursts-1:0] candidates, gnt;
  slot_t slot;
  logic gnt_valid, whole, last_piece, room, send;
  ax_t ax, piece;
  logic [8:0] beats, begin_at, rest;
  count_t count_q;

  assign candidates = ((valid_q & urgent_q) != '0) ? valid_q & urgent_q : valid_q;

  ns_rr_arbiter #(
    .N(Bursts)
  ) u_turn (
    .clk_i,
    .rst_ni,
    .req_i  (candidates),
    .next_i (send),
    .gnt_o  (gnt),
    .idx_o  (slot),
    .valid_o(gnt_valid)
  );

  assign ax = ax_mem[slot];
  assign whole = ax.burst != BurstIncr || ax.size != 3'd6;
  assign begin_at = 9'(sent_q[slot]) << PieceBits;
  assign rest = 9'(ax.len) + 9'd1 - begin_at;
  assign last_piece = whole || rest <= 9'(PieceBeats);
  assign beats = (whole || last_piece) ? rest : 9'(PieceBeats);

  always_comb begin
    piece = ax;
    piece.len = 8'(beats - 9'd1);
    if (!whole && sent_q[slot] != '0) piece.addr = {ax.addr[63:6], 6'd0} + (64'(begin_at) << 6);
  end

  assign room = count_q == '0 || 32'(count_q) + 32'(beats) <= MaxBeats;
  assign m_axi.ar = piece;
  assign m_axi.ar_valid = gnt_valid && room;
  assign send = m_axi.ar_valid && m_axi.ar_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q  <= '0;
      urgent_q <= '0;
    end else begin
      if (send && last_piece) valid_q[slot] <= 1'b0;
      if (take) begin
        valid_q[free_slot]  <= 1'b1;
        urgent_q[free_slot] <= urgent_i;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) ax_mem[free_slot] <= s_axi.ar;
    if (send) sent_q[slot] <= sent_q[slot] + 1'b1;
    if (take) sent_q[free_slot] <= '0;
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
    if (!rst_ni) count_q <= '0;
    else count_q <= count_q + (send ? count_t'(beats) : '0) - count_t'(r_fire);
  end

  assign idle = valid_q == '0 && count_q == '0;
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
  assign unused = ^{m_axi.r.last, gnt};

  `NS_ASSERT(known_id, !take || (s_axi.ar.id >> IdBits) == '0)
  `NS_ASSERT(asked_for, !r_fire || count_q != '0)
  for (genvar i = 0; i < Bursts; i++) begin : gen_check
    `NS_ASSERT(one_burst_an_id, !(take && valid_q[i]) || ax_mem[i].id != s_axi.ar.id)
  end

endmodule
