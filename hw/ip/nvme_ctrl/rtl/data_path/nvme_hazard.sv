// SPDX-License-Identifier: Apache-2.0

// Outstanding reads and writes of a memory channel: never a read and a write of the same granule of
// 4 KiB.
//
// AXI orders neither reads against writes, nor transactions of different IDs. A read of the media
// therefore begins only when no write of its granule is outstanding, and a write only when no read
// is. The returned data are then all old or all new. Writes have one ID and stay in order among
// themselves. A transaction in flight ends without the other side, so there is no deadlock.
//
// A side that finds its granule in use reserves it. From then on the other side begins nothing
// there before it, so at most one transaction overtakes a read or a write. Both sides may hold a
// reservation, but not of the same granule: the first one wins. A read is outstanding from the
// cycle before `read_open_o` to `read_end_i`, and may be several bursts; a write is one burst. Both
// end in the order in which they began. Reads and writes are considered in alternate cycles, so
// that each grant sees the other side's grants. A grant comes from a register and stays, which
// keeps the search out of the paths that follow the grant. With more than 32 transactions a side,
// the search takes place a cycle before the decision. No grant is given in that cycle, so a side
// has every fourth cycle.
`include "ns_assert.svh"

module nvme_hazard #(
  /// Bits of a media address that distinguish 4 KiB granules of the channel.
  parameter int unsigned TagBits = 20,
  /// Reads outstanding at most, a power of two.
  parameter int unsigned Reads   = 32,
  /// Writes outstanding at most, a power of two.
  parameter int unsigned Writes  = 32
) (
  input logic clk_i,
  input logic rst_ni,

  /// A read requests to begin. Stays, with its granule, until it begins.
  input  logic               read_req_i,
  /// Granule.
  input  logic [TagBits-1:0] read_tag_i,
  /// The request must not be granted now.
  input  logic               read_hold_i,
  /// From a register: the read may begin. Stays until it begins, even if `read_hold_i` is 1.
  output logic               read_open_o,
  /// The transaction begins.
  input  logic               read_begin_i,
  /// The oldest one ends.
  input  logic               read_end_i,

  /// A write requests to begin. Stays, with its granule, until it begins.
  input  logic               write_req_i,
  /// Granule.
  input  logic [TagBits-1:0] write_tag_i,
  /// The request must not be granted now.
  input  logic               write_hold_i,
  /// From a register: the write may begin. Stays until it begins, even if `write_hold_i` is 1.
  output logic               write_open_o,
  /// The transaction begins.
  input  logic               write_begin_i,
  /// The oldest one ends.
  input  logic               write_end_i,

  /// From registers: reads are outstanding or may begin.
  output logic read_busy_o,
  /// From registers: writes are outstanding or may begin.
  output logic write_busy_o
);

  localparam int unsigned ReadBits = unsigned'($clog2(Reads));
  localparam int unsigned WriteBits = unsigned'($clog2(Writes));

  logic [Reads-1:0][TagBits-1:0] reads_q;
  logic [Writes-1:0][TagBits-1:0] writes_q;
  logic [Reads-1:0] read_valid_q, read_hit;
  logic [Writes-1:0] write_valid_q, write_hit;
  logic [ReadBits-1:0] read_new_q, read_old_q;
  logic [WriteBits-1:0] write_new_q, write_old_q;
  logic write_turn_q;  // 1: writes are considered
  logic decision_valid;  // this cycle may grant
  logic read_blocked, write_blocked;  // by the other side
  logic read_room, write_room;
  logic read_searched, write_searched;  // the search has taken place
  logic same_granule;  // both request the same granule
  // Considered in this cycle, and the granule is not reserved by the other side.
  logic read_eligible, write_eligible;
  logic read_grant, write_grant;
  logic read_reserved_q, write_reserved_q;

  for (genvar i = 0; i < Reads; i++) begin : gen_reads
    assign read_hit[i] = read_valid_q[i] && reads_q[i] == write_tag_i;
  end
  for (genvar i = 0; i < Writes; i++) begin : gen_writes
    assign write_hit[i] = write_valid_q[i] && writes_q[i] == read_tag_i;
  end

  assign same_granule = read_tag_i == write_tag_i;
  assign read_eligible = decision_valid && !write_turn_q && read_req_i && read_searched && !read_open_o && !(write_reserved_q && same_granule);
  assign write_eligible = decision_valid && write_turn_q && write_req_i && write_searched && !write_open_o && !(read_reserved_q && same_granule);
  assign read_grant = read_eligible && !read_hold_i && read_room && !read_blocked;
  assign write_grant = write_eligible && !write_hold_i && write_room && !write_blocked;
  assign read_busy_o = read_valid_q != '0;
  assign write_busy_o = write_valid_q != '0;

  if (Reads <= 32 && Writes <= 32) begin : gen_now
    assign decision_valid = 1'b1;
    assign read_searched = 1'b1;
    assign write_searched = 1'b1;
    assign read_blocked = write_hit != '0;
    assign write_blocked = read_hit != '0;
    assign read_room = !read_valid_q[read_new_q];
    assign write_room = !write_valid_q[write_new_q];
  end else begin : gen_ahead
    localparam int unsigned Group = 16;
    localparam int unsigned ReadGroups = (Reads + Group - 1) / Group;
    localparam int unsigned WriteGroups = (Writes + Group - 1) / Group;
    logic [ReadGroups*Group-1:0] read_hits;
    logic [WriteGroups*Group-1:0] write_hits;
    logic [ReadGroups-1:0] read_hit_q;
    logic [WriteGroups-1:0] write_hit_q;
    logic decision_valid_q, read_searched_q, write_searched_q, read_room_q, write_room_q;

    assign read_hits = (ReadGroups * Group)'(read_hit);
    assign write_hits = (WriteGroups * Group)'(write_hit);
    assign decision_valid = decision_valid_q;
    assign read_searched = read_searched_q;
    assign write_searched = write_searched_q;
    assign read_blocked = write_hit_q != '0;
    assign write_blocked = read_hit_q != '0;
    assign read_room = read_room_q;
    assign write_room = write_room_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        decision_valid_q <= 1'b0;
        read_searched_q <= 1'b0;
        write_searched_q <= 1'b0;
      end else begin
        // Stops as write_turn_q does.
        decision_valid_q <= !decision_valid_q && (read_req_i || write_req_i);
        read_searched_q <= read_req_i && !read_open_o;
        write_searched_q <= write_req_i && !write_open_o;
      end
    end

    always_ff @(posedge clk_i) begin
      for (int unsigned g = 0; g < ReadGroups; g++)
      read_hit_q[g] <= read_hits[g*Group+:Group] != '0;
      for (int unsigned g = 0; g < WriteGroups; g++)
      write_hit_q[g] <= write_hits[g*Group+:Group] != '0;
      read_room_q <= !read_valid_q[read_new_q];
      write_room_q <= !write_valid_q[write_new_q];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_turn_q <= 1'b0;
      read_valid_q <= '0;
      write_valid_q <= '0;
      read_new_q <= '0;
      read_old_q <= '0;
      write_new_q <= '0;
      write_old_q <= '0;
      read_reserved_q <= 1'b0;
      write_reserved_q <= 1'b0;
      read_open_o <= 1'b0;
      write_open_o <= 1'b0;
    end else begin
      // Without a request it is reset, so that a stopped clock makes no difference.
      if (!(read_req_i || write_req_i)) write_turn_q <= 1'b0;
      else if (decision_valid) write_turn_q <= !write_turn_q;
      if (read_grant) read_open_o <= 1'b1;
      else if (read_begin_i) read_open_o <= 1'b0;
      if (write_grant) write_open_o <= 1'b1;
      else if (write_begin_i) write_open_o <= 1'b0;
      if (read_grant) read_reserved_q <= 1'b0;
      else if (read_eligible && read_blocked) read_reserved_q <= 1'b1;
      if (write_grant) write_reserved_q <= 1'b0;
      else if (write_eligible && write_blocked) write_reserved_q <= 1'b1;
      if (read_end_i) begin
        read_valid_q[read_old_q] <= 1'b0;
        read_old_q <= read_old_q + 1'b1;
      end
      if (read_grant) begin
        read_valid_q[read_new_q] <= 1'b1;
        read_new_q <= read_new_q + 1'b1;
      end
      if (write_end_i) begin
        write_valid_q[write_old_q] <= 1'b0;
        write_old_q <= write_old_q + 1'b1;
      end
      if (write_grant) begin
        write_valid_q[write_new_q] <= 1'b1;
        write_new_q <= write_new_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_grant) reads_q[read_new_q] <= read_tag_i;
    if (write_grant) writes_q[write_new_q] <= write_tag_i;
  end

  if (Reads < 2 || (Reads & (Reads - 1)) != 0 || Writes < 2 || (Writes & (Writes - 1)) != 0) begin : gen_bad_depth
    $error("nvme_hazard: Reads and Writes must be powers of two of at least 2");
  end

  `NS_ASSERT(begins_when_granted,
             (!read_begin_i || read_open_o) && (!write_begin_i || write_open_o))
  `NS_ASSERT(grant_has_request, (!read_open_o || read_req_i) && (!write_open_o || write_req_i))
  `NS_ASSERT(reservation_has_request,
             (!read_reserved_q || read_req_i) && (!write_reserved_q || write_req_i))
  `NS_ASSERT(one_reservation, !(read_reserved_q && write_reserved_q && same_granule))
  `NS_ASSERT(
      end_of_in_flight,
      (!read_end_i || read_valid_q[read_old_q]) && (!write_end_i || write_valid_q[write_old_q]))

endmodule
