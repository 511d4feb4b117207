// SPDX-License-Identifier: Apache-2.0

// Tracker of a channel: holds a store of the PM window at its address until all of its lines in a
// tracked pool are recorded. Data, responses and loads pass unchanged.
//
// While no tracked pool is mapped, addresses pass in the same cycle. Otherwise an address is
// compared with the pools first; it passes a cycle later if it is in none of them. For each line in
// a tracked pool nearpm_track_record then inserts a record, unless there is one of this epoch.
//
// Bursts stay within 4 KiB, pools consist of pages of 4 KiB. So a burst is in one pool at most.
`include "ns_assert.svh"

module nearpm_track
  import ns_axi_pkg::*;
  import nearpm_pkg::*;
  import nearpm_filter_pkg::*;
#(
  /// See nearpm_filter.
  parameter int unsigned NumChannels = 2,
  parameter int unsigned Granule = 4096,
  parameter int unsigned Channel = 0
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  /// A tracked pool is mapped. From registers.
  input  logic                      tracking_i,
  /// From registers.
  input  tracked_pool_t [Pools-1:0] pools_i,
  /// A store is present while a tracked pool is mapped.
  output logic                      present_o,
  /// A line to be recorded; held until `done_i`, from registers.
  output logic                      line_valid_o,
  output pool_number_t              line_pool_o,
  output line_t                     line_o,
  /// The line is recorded, or need not be.
  input  logic                      done_i,
  /// Addresses are local to the channel.
  ns_axi_if.slave                   s_axi,
  ns_axi_if.master                  m_axi
);

  localparam int unsigned GranuleBits = unsigned'($clog2(Granule)) - 6;  // lines
  localparam int unsigned ChannelBits = unsigned'($clog2(NumChannels));

  // ---------------------------------------------------------------- match

  logic matched_q;  // the address was compared with the pools
  logic offered_q;  // the address was offered before a tracked pool was mapped
  logic hit_q;  // lines are left to record
  logic pass, accept, hit;
  pool_number_t pool, pool_q;
  line_t first, line_q;
  logic [PageLineBits-1:0] left_q;  // lines after this one
  burst_t burst;

  assign burst = burst_of(s_axi.aw.addr[MediaBits-1:0], s_axi.aw.len, s_axi.aw.size, s_axi.aw.burst);
  assign first = to_media({burst.page, burst.first}, GranuleBits, ChannelBits, Channel);

  always_comb begin
    hit  = 1'b0;
    pool = '0;
    for (int unsigned p = 0; p < Pools; p++) begin
      if (pools_i[p].recorded && first[LineBits-1:PageLineBits] >= pools_i[p].first_page &&
          first[LineBits-1:PageLineBits] <= pools_i[p].last_page) begin
        hit = 1'b1;
        pool |= pool_number_t'(p);
      end
    end
  end

  // ---------------------------------------------------------------- lines

  assign pass = matched_q ? !hit_q : !tracking_i || offered_q;
  assign accept = s_axi.aw_valid && pass && m_axi.aw_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      matched_q <= 1'b0;
      offered_q <= 1'b0;
      hit_q <= 1'b0;
    end else begin
      offered_q <= s_axi.aw_valid && pass && !matched_q && !m_axi.aw_ready;
      if (!matched_q) begin
        matched_q <= s_axi.aw_valid && !pass;
        hit_q <= hit;
      end else begin
        if (done_i && left_q == '0) hit_q <= 1'b0;
        // The function ends: the address has been withdrawn.
        if (accept || (!hit_q && !s_axi.aw_valid)) matched_q <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!matched_q) begin
      pool_q <= pool;
      line_q <= first;
      left_q <= burst.last - burst.first;
    end else if (done_i) begin
      line_q <= line_q + 1'b1;
      left_q <= left_q - 1'b1;
    end
  end

  assign present_o = matched_q || (s_axi.aw_valid && tracking_i);
  assign line_valid_o = matched_q && hit_q;
  assign line_pool_o = pool_q;
  assign line_o = line_q;

  // ---------------------------------------------------------------- bus

  assign m_axi.aw = s_axi.aw;
  assign m_axi.aw_valid = s_axi.aw_valid && pass;
  assign s_axi.aw_ready = m_axi.aw_ready && pass;
  assign m_axi.w = s_axi.w;
  assign m_axi.w_valid = s_axi.w_valid;
  assign s_axi.w_ready = m_axi.w_ready;
  assign s_axi.b = m_axi.b;
  assign s_axi.b_valid = m_axi.b_valid;
  assign m_axi.b_ready = s_axi.b_ready;
  assign m_axi.ar = s_axi.ar;
  assign m_axi.ar_valid = s_axi.ar_valid;
  assign s_axi.ar_ready = m_axi.ar_ready;
  assign s_axi.r = m_axi.r;
  assign s_axi.r_valid = m_axi.r_valid;
  assign m_axi.r_ready = s_axi.r_ready;

  `NS_ASSERT(recorded_on_request, !done_i || line_valid_o)

endmodule
