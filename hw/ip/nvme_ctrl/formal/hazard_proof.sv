// SPDX-License-Identifier: Apache-2.0

// nvme_hazard: no read and no write of one granule are ever outstanding together, for any requests
// and ends. A read without obstacle is granted within two cycles, and so is a write. While a read
// waits, at most one write of its granule is granted; then it waits only for outstanding writes.
// The same holds for a write.
//
// Four granules, four reads and four writes outstanding. Assumed of the mover: only a granted
// transaction begins, a request stays, and only transactions in flight end. The times of
// beginnings, ends and holds are free.
`include "ns_assert.svh"

module hazard_proof (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       read_req_i,
  input logic [1:0] read_tag_i,
  input logic       read_hold_i,
  input logic       read_begin_i,
  input logic       read_end_i,
  input logic       write_req_i,
  input logic [1:0] write_tag_i,
  input logic       write_hold_i,
  input logic       write_begin_i,
  input logic       write_end_i
);

  logic reset_q = 1'b0;  // has been reset
  always_ff @(posedge clk_i) reset_q <= 1'b1;
  always_comb assume (rst_ni == reset_q);

  logic read_open, write_open, read_busy, write_busy;

  nvme_hazard #(
    .TagBits(2),
    .Reads  (4),
    .Writes (4)
  ) u_hazard (
    .clk_i,
    .rst_ni,
    .read_req_i,
    .read_tag_i,
    .read_hold_i,
    .read_open_o (read_open),
    .read_begin_i,
    .read_end_i,
    .write_req_i,
    .write_tag_i,
    .write_hold_i,
    .write_open_o(write_open),
    .write_begin_i,
    .write_end_i,
    .read_busy_o (read_busy),
    .write_busy_o(write_busy)
  );

  // Outstanding transactions, the oldest first; a granted one is the youngest.
  logic read_grant, write_grant;
  assign read_grant = u_hazard.read_grant;
  assign write_grant = u_hazard.write_grant;
  logic [2:0] reads_q, writes_q, reads_left, writes_left;
  logic [4:0][1:0] read_tags_q, write_tags_q;
  assign reads_left = reads_q - 3'(read_end_i);
  assign writes_left = writes_q - 3'(write_end_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reads_q <= '0;
      writes_q <= '0;
    end else begin
      reads_q <= reads_left + 3'(read_grant);
      writes_q <= writes_left + 3'(write_grant);
    end
  end

  always_ff @(posedge clk_i) begin
    if (read_end_i) read_tags_q <= read_tags_q >> 2;
    if (read_grant) read_tags_q[reads_left] <= read_tag_i;
    if (write_end_i) write_tags_q <= write_tags_q >> 2;
    if (write_grant) write_tags_q[writes_left] <= write_tag_i;
  end

  // The neighbours.
  `NS_ASSUME(only_open, (!read_begin_i || read_open) && (!write_begin_i || write_open))
  `NS_ASSUME(
      only_begun,
      (!read_end_i || reads_q != 3'(read_open)) && (!write_end_i || writes_q != 3'(write_open)))

  logic read_stalled_q, write_stalled_q;
  logic [1:0] read_tag_q, write_tag_q;
  always_ff @(posedge clk_i) begin
    read_stalled_q <= rst_ni && read_req_i && !read_begin_i;
    write_stalled_q <= rst_ni && write_req_i && !write_begin_i;
    read_tag_q <= read_tag_i;
    write_tag_q <= write_tag_i;
  end
  `NS_ASSUME(read_stays, !read_stalled_q || (read_req_i && read_tag_i == read_tag_q))
  `NS_ASSUME(write_stays, !write_stalled_q || (write_req_i && write_tag_i == write_tag_q))

  // What is proven.
  logic same_granule, read_excluded, write_excluded;  // by the other side
  assign same_granule = read_tag_i == write_tag_i;
  assign read_excluded = u_hazard.write_reserved_q && same_granule;
  assign write_excluded = u_hazard.read_reserved_q && same_granule;
  logic disjoint, read_free, write_free;
  always_comb begin
    disjoint = 1'b1;
    read_free = reads_q != 3'd4;
    write_free = writes_q != 3'd4;
    for (int unsigned i = 0; i < 4; i++) begin
      for (int unsigned j = 0; j < 4; j++) begin
        if (i < 32'(reads_q) && j < 32'(writes_q) && read_tags_q[i] == write_tags_q[j])
          disjoint = 1'b0;
      end
      if (i < 32'(reads_q) && read_tags_q[i] == write_tag_i) write_free = 1'b0;
      if (i < 32'(writes_q) && write_tags_q[i] == read_tag_i) read_free = 1'b0;
    end
  end
  `NS_ASSERT(never_together, disjoint)
  logic read_openable, write_openable;  // may be granted
  assign read_openable = read_req_i && !read_open && !read_hold_i;
  assign write_openable = write_req_i && !write_open && !write_hold_i;
  `NS_ASSERT(read_on_its_turn,
             read_grant == (read_openable && read_free && !u_hazard.write_turn_q && !read_excluded))
  `NS_ASSERT(
      write_on_its_turn,
      write_grant == (write_openable && write_free && u_hazard.write_turn_q && !write_excluded))
  logic read_open_q, write_open_q;  // the previous cycle has left it granted
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_open_q <= 1'b0;
      write_open_q <= 1'b0;
    end else begin
      read_open_q <= read_grant || (read_open && !read_begin_i);
      write_open_q <= write_grant || (write_open && !write_begin_i);
    end
  end
  `NS_ASSERT(granted_until_begin, read_open == read_open_q && write_open == write_open_q)
  `NS_ASSERT(
      granted_is_youngest,
      (!read_open || (reads_q != '0 && read_tags_q[reads_q-3'd1] == read_tag_i)) && (!write_open || (writes_q != '0 && write_tags_q[writes_q-3'd1] == write_tag_i)))
  `NS_ASSERT(busy, read_busy == (reads_q != '0) && write_busy == (writes_q != '0))
  logic turn_q;
  always_ff @(posedge clk_i) turn_q <= rst_ni && u_hazard.write_turn_q;
  `NS_ASSERT(turns_change, turn_q == 1'b0 || !u_hazard.write_turn_q)

  // One of the same granule has been granted while this one waits. No other one is granted, and
  // this one is, as soon as outstanding transactions allow it.
  logic write_passed_q, read_passed_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_passed_q <= 1'b0;
      read_passed_q <= 1'b0;
    end else begin
      write_passed_q <= read_req_i && !read_open && !read_grant && (write_passed_q || (write_grant && same_granule));
      read_passed_q <= write_req_i && !write_open && !write_grant && (read_passed_q || (read_grant && same_granule));
    end
  end
  `NS_ASSERT(one_write_passes, !(write_passed_q && write_grant && same_granule))
  `NS_ASSERT(one_read_passes, !(read_passed_q && read_grant && same_granule))
  `NS_ASSERT(then_read_granted,
             !(write_passed_q && !read_hold_i && read_free && !u_hazard.write_turn_q) || read_grant)
  `NS_ASSERT(
      then_write_granted,
      !(read_passed_q && !write_hold_i && write_free && u_hazard.write_turn_q) || write_grant)

  // Invariant: the granule is reserved from the next turn on.
  `NS_ASSERT(read_still_waiting, !write_passed_q || (read_stalled_q && !read_open))
  `NS_ASSERT(write_still_waiting, !read_passed_q || (write_stalled_q && !write_open))
  `NS_ASSERT(
      reserver_waits,
      (!u_hazard.read_reserved_q || (read_stalled_q && !read_open)) && (!u_hazard.write_reserved_q || (write_stalled_q && !write_open)))
  `NS_ASSERT(
      read_reserves_soon,
      !write_passed_q || u_hazard.read_reserved_q || (!u_hazard.write_turn_q && !u_hazard.write_reserved_q && writes_q != '0 && write_tags_q[writes_q-3'd1] == read_tag_i))
  `NS_ASSERT(
      write_reserves_soon,
      !read_passed_q || u_hazard.write_reserved_q || (u_hazard.write_turn_q && !u_hazard.read_reserved_q && reads_q != '0 && read_tags_q[reads_q-3'd1] == write_tag_i))

  // Invariant: the rings hold the outstanding transactions.
  `NS_ASSERT(counts, reads_q <= 3'd4 && writes_q <= 3'd4)
  `NS_ASSERT(read_ring, u_hazard.read_new_q == 2'(u_hazard.read_old_q + reads_q[1:0]))
  `NS_ASSERT(write_ring, u_hazard.write_new_q == 2'(u_hazard.write_old_q + writes_q[1:0]))
  for (genvar i = 0; i < 4; i++) begin : gen_place
    logic [1:0] read_at, write_at;
    assign read_at = u_hazard.read_old_q + 2'(i);
    assign write_at = u_hazard.write_old_q + 2'(i);
    `NS_ASSERT(read_known, u_hazard.read_valid_q[read_at] == (i < 32'(reads_q)))
    `NS_ASSERT(write_known, u_hazard.write_valid_q[write_at] == (i < 32'(writes_q)))
    `NS_ASSERT(read_tag, i >= 32'(reads_q) || u_hazard.reads_q[read_at] == read_tags_q[i])
    `NS_ASSERT(write_tag, i >= 32'(writes_q) || u_hazard.writes_q[write_at] == write_tags_q[i])
  end

  `NS_COVER(full, reads_q == 3'd4 && writes_q == 3'd4)
  `NS_COVER(read_after_write, write_passed_q && read_grant)
  `NS_COVER(write_after_read, read_passed_q && write_grant)
  logic waited_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= 1'b0;
    else if (reads_q == 3'd1 && read_tags_q[0] == write_tag_i && writes_q == 3'd2) waited_q <= 1'b1;
  end
  `NS_COVER(begins_after_wait, waited_q && write_begin_i && reads_q == 3'd3)

endmodule
