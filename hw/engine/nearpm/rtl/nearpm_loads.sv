// Loads of the PM window: those that conflict are parked, up to 16 of them, and the others pass.
//
// Loads of one ID stay in order: one goes behind a parked one of its ID, whatever it overlaps. When all places are taken, a
// further load that conflicts waits in front of them, and those behind it.
`include "ns_assert.svh"

module nearpm_loads
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_hook_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         freeze_i,
  input  commands_t    ended_i,
  input  count_t       written_i,

  /// An address may be looked up.
  output logic         open_o,
  /// One is being looked up; what it waits for is there at the end of this cycle.
  input  logic         look_i,
  input  ax_t          look_ax_i,
  input  waits_t       look_waits_i,

  /// To the memory. From registers.
  output logic         ar_valid_o,
  output ax_t          ar_o,
  input  logic         ar_ready_i,
  /// Loads that wait. From registers.
  output logic   [4:0] waiting_o,
  /// There is one. From registers.
  output logic         busy_o
);

  localparam int unsigned Bits = unsigned'($clog2(Loads));
  localparam int unsigned Depth = 4;
  localparam int unsigned RoomBits = unsigned'($clog2(Depth + 1));

  // The load that has just been looked up.
  logic valid_q;
  ax_t ax_q;
  waits_t waits_q;
  logic goes, parks;

  // Parked ones.
  logic [Loads-1:0] parked_q, ready, grant;
  logic [Loads-1:0][IdWidth-1:0] id_q;
  logic [Loads-1:0][Loads-1:0] behind_q;  // parked ones before it, of its ID
  waits_t parked_waits_q[Loads];
  ax_t parked_ax[Loads];
  logic [Bits-1:0] place, leaver;
  logic [4:0] count_q;
  logic [Loads-1:0] same;
  logic leaves;

  // Those that pass.
  logic out_valid, shown_q;
  logic [RoomBits-1:0] out_count;
  logic [RoomBits:0] on_the_way;

  assign on_the_way = (RoomBits + 1)'(out_count) + (RoomBits + 1)'(look_i) + (RoomBits + 1)'(valid_q);
  // A parked one that may go is not passed for ever.
  assign open_o = !freeze_i && ready == '0 && on_the_way < (RoomBits + 1)'(Depth) &&
      ((count_q + 5'(look_i) + 5'(valid_q) < 5'(Loads)) || (!look_i && !valid_q));

  always_comb begin
    place = '0;
    for (int i = Loads - 1; i >= 0; i--) if (!parked_q[i]) place = Bits'(i);
    for (int unsigned i = 0; i < Loads; i++) begin
      same[i] = parked_q[i] && id_q[i] == ax_q.id;
      ready[i] = parked_q[i] && none(parked_waits_q[i]) && behind_q[i] == '0;
    end
  end

  assign goes = valid_q && none(waits_q) && same == '0;
  assign parks = valid_q && !goes && count_q != 5'(Loads);
  assign leaves = ready != '0 && !goes && on_the_way < (RoomBits + 1)'(Depth);
  assign waiting_o = count_q + 5'(valid_q && !none(waits_q) && count_q == 5'(Loads));
  assign busy_o = valid_q || count_q != '0 || out_count != '0;

  ns_rr_arbiter #(
    .N(Loads)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i  (ready),
    .next_i (leaves),
    .gnt_o  (grant),
    .idx_o  (leaver),
    .valid_o()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      parked_q <= '0;
      count_q  <= '0;
    end else begin
      if (look_i) valid_q <= 1'b1;
      else if (goes || parks) valid_q <= 1'b0;
      if (parks) parked_q[place] <= 1'b1;
      if (leaves) parked_q[leaver] <= 1'b0;
      count_q <= count_q + 5'(parks) - 5'(leaves);
    end
  end

  always_ff @(posedge clk_i) begin
    if (look_i) begin
      ax_q <= look_ax_i;
      waits_q <= look_waits_i;
    end else begin
      waits_q <= left(waits_q, ended_i, written_i);
    end
    for (int unsigned i = 0; i < Loads; i++) begin
      if (parked_q[i]) parked_waits_q[i] <= left(parked_waits_q[i], ended_i, written_i);
      if (leaves) behind_q[i] <= behind_q[i] & ~grant;
    end
    if (parks) begin
      parked_waits_q[place] <= left(waits_q, ended_i, written_i);
      id_q[place] <= ax_q.id;
      behind_q[place] <= same & ~(leaves ? grant : '0);
      parked_ax[place] <= ax_q;
    end
  end

  ns_fifo #(
    .Width($bits(ax_t)),
    .Depth(Depth),
    .Style("lutram")
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (goes || leaves),
    .in_ready_o (),
    .in_data_i  (goes ? ax_q : parked_ax[leaver]),
    .out_valid_o(out_valid),
    .out_ready_i(ar_valid_o && ar_ready_i),
    .out_data_o (ar_o),
    .count_o    (out_count)
  );

  assign ar_valid_o = out_valid && (!freeze_i || shown_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) shown_q <= 1'b0;
    else shown_q <= ar_valid_o && !ar_ready_i;
  end

  `NS_ASSERT(room, !(goes || leaves) || out_count != RoomBits'(Depth))
  `NS_ASSERT(looked_up_has_a_place, !look_i || !valid_q || goes || parks)
  `NS_ASSERT(parked_in_order, !goes || same == '0)
  `NS_ASSERT(goes_without_conflict, !goes || none(waits_q))
  `NS_ASSERT(free_place, !parks || !parked_q[place])

endmodule
