// SPDX-License-Identifier: Apache-2.0

// Reports events of a channel's stores and loads to the simulation (nearpm_order_pkg). Passive.
`ifdef NS_ORDER
module nearpm_filter_recorder
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
  import nearpm_order_pkg::*;
#(
  /// The channel.
  parameter int unsigned Channel = 0
) (
  input logic               clk_i,
  input logic               rst_ni,
  /// A store or load arrived; the lines of its lookup.
  input logic               store_valid_i,
  input logic               load_valid_i,
  input range_t             lines_i,
  input logic [IdWidth-1:0] id_i,
  /// A store leaves the lookup stage: its place; it enters the queue.
  input logic               lookup_pop_i,
  input logic [5:0]         ring_place_i,
  input logic               queue_push_i,
  /// The memory accepts the address of a store or of a line.
  input logic               aw_fire_i,
  input logic [IdWidth-1:0] aw_id_i,
  /// The store at this place, and all before it, are answered.
  input logic               answer_pop_i,
  input logic [5:0]         answer_place_i,
  /// The memory has answered the oldest line.
  input logic               line_written_i,
  /// The memory accepts the address of a load; its last data beat.
  input logic               ar_fire_i,
  input logic [IdWidth-1:0] ar_id_i,
  input logic               r_last_i,
  input logic [IdWidth-1:0] r_last_id_i,
  /// Restored lines: two entries of the reserved range.
  input logic [1:0]         restored_valid_i,
  input logic [511:0]       restore_data_i
);

  localparam int ChannelIndex = int'(Channel);

  // Within a cycle, causes are reported before effects.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (answer_pop_i) ns_order(OrderStoreAnswered, ChannelIndex, 64'(answer_place_i), 0, 0, 0, 0);
      if (line_written_i) ns_order(OrderLineWritten, ChannelIndex, 0, 0, 0, 0, 0);
      if (r_last_i) ns_order(OrderLoadDone, ChannelIndex, 64'(r_last_id_i), 0, 0, 0, 0);
      if (lookup_pop_i)
        ns_order(OrderStoreResolved, ChannelIndex, 64'(ring_place_i), 64'(queue_push_i), 0, 0, 0);
      if (aw_fire_i && aw_id_i == LineId) ns_order(OrderLineIssued, ChannelIndex, 0, 0, 0, 0, 0);
      if (aw_fire_i && aw_id_i != LineId)
        ns_order(OrderStoreIssued, ChannelIndex, 64'(aw_id_i), 0, 0, 0, 0);
      if (ar_fire_i) ns_order(OrderLoadIssued, ChannelIndex, 64'(ar_id_i), 0, 0, 0, 0);
      if (store_valid_i)
        ns_order(OrderStore, ChannelIndex, 64'(lines_i.first), 64'(lines_i.last), 0, 0, 0);
      if (load_valid_i)
        ns_order(OrderLoad, ChannelIndex, 64'(lines_i.first), 64'(lines_i.last), 64'(id_i), 0, 0);
      for (int unsigned e = 0; e < 2; e++)
      if (restored_valid_i[e])
        ns_order(OrderLineRestored, ChannelIndex, 64'(restore_data_i[256*e+:LineBits]), 0, 0, 0, 0);
    end
  end

  logic unused;
  assign unused = ^{lines_i.valid, restore_data_i};

endmodule
`endif
