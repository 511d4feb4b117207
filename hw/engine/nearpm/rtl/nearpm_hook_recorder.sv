// Tells a simulation what becomes of a channel's stores and loads; see nearpm_order_pkg. It looks on, and drives nothing.
`ifdef NS_ORDER
module nearpm_hook_recorder
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_hook_pkg::*;
  import nearpm_order_pkg::*;
#(
  /// The channel.
  parameter int unsigned Channel = 0
) (
  input logic               clk_i,
  input logic               rst_ni,
  /// A store, a load has come, and the lines that it is looked up with.
  input logic               store_i,
  input logic               load_i,
  input range_t             lines_i,
  input logic [IdWidth-1:0] id_i,
  /// A store goes on; its place; into the queue.
  input logic               goes_i,
  input logic [5:0]         place_i,
  input logic               queued_i,
  /// The memory takes an address of a store or of a line.
  input logic               aw_i,
  input logic [IdWidth-1:0] aw_id_i,
  /// The store of a place has been answered, and so have all before it.
  input logic               kept_i,
  input logic [5:0]         kept_place_i,
  /// The memory has answered the oldest line.
  input logic               written_i,
  /// The memory takes an address of a load; its last data.
  input logic               ar_i,
  input logic [IdWidth-1:0] ar_id_i,
  input logic               last_i,
  input logic [IdWidth-1:0] last_id_i,
  /// Lines that come back: two entries of the reserved range.
  input logic [1:0]         restored_i,
  input logic [511:0]       restore_data_i
);

  localparam int Own = int'(Channel);

  // What causes something in the same cycle is told first.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (kept_i) ns_order(OrderKept, Own, 64'(kept_place_i), 0, 0, 0, 0);
      if (written_i) ns_order(OrderWritten, Own, 0, 0, 0, 0, 0);
      if (last_i) ns_order(OrderServed, Own, 64'(last_id_i), 0, 0, 0, 0);
      if (goes_i) ns_order(OrderGoes, Own, 64'(place_i), 64'(queued_i), 0, 0, 0);
      if (aw_i && aw_id_i == LineId) ns_order(OrderLeaves, Own, 0, 0, 0, 0, 0);
      if (aw_i && aw_id_i != LineId) ns_order(OrderReaches, Own, 64'(aw_id_i), 0, 0, 0, 0);
      if (ar_i) ns_order(OrderReads, Own, 64'(ar_id_i), 0, 0, 0, 0);
      if (store_i) ns_order(OrderStore, Own, 64'(lines_i.first), 64'(lines_i.last), 0, 0, 0);
      if (load_i) ns_order(OrderLoad, Own, 64'(lines_i.first), 64'(lines_i.last), 64'(id_i), 0, 0);
      for (int unsigned e = 0; e < 2; e++)
      if (restored_i[e])
        ns_order(OrderRestoredLine, Own, 64'(restore_data_i[256*e+:LineBits]), 0, 0, 0, 0);
    end
  end

  logic unused;
  assign unused = ^{lines_i.valid, restore_data_i};

endmodule
`endif
