// SPDX-License-Identifier: Apache-2.0

`include "ns_assert.svh"

/// Orders register accesses. A read waits until earlier writes are visible, at most 31 cycles,
/// since peers may notify without end. A notification waits until the preceding one is accepted.
module nearpm_register_gate
  import nearpm_pkg::*;
(
  input logic             clk_i,
  input logic             rst_ni,
  /// Readable state includes all earlier writes.
  input logic             settled_i,
  /// A notification is not yet accepted. From registers; valid from the cycle of its write
  /// response.
  input logic             notification_pending_i,
  ns_axil_if.slave        s_axil,
  ns_axil_if.master       m_axil
);

  logic read_open;
  logic [4:0] waited_q;
  assign read_open = settled_i || waited_q == '1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else if (!s_axil.arvalid || s_axil.arready) waited_q <= '0;
    else if (waited_q != '1) waited_q <= waited_q + 1'b1;
  end

  assign m_axil.araddr = s_axil.araddr;
  assign m_axil.arvalid = s_axil.arvalid && read_open;
  assign s_axil.arready = m_axil.arready && read_open;
  assign s_axil.rdata = m_axil.rdata;
  assign s_axil.rresp = m_axil.rresp;
  assign s_axil.rvalid = m_axil.rvalid;
  assign m_axil.rready = s_axil.rready;

  // A write to an upper half is a notification. Counted are outstanding writes, and the responses
  // up to that of the last notification.
  logic is_notification, write_open, aw_fire, b_fire;
  logic [1:0] outstanding_q, responses_left_q;
  assign is_notification = s_axil.awaddr[11:5] == PeerCompletions[11:5] && s_axil.awaddr[2];
  assign write_open = !is_notification || (responses_left_q == '0 && !notification_pending_i);
  assign aw_fire = m_axil.awvalid && m_axil.awready;
  assign b_fire = m_axil.bvalid && m_axil.bready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      outstanding_q <= '0;
      responses_left_q <= '0;
    end else begin
      if (aw_fire != b_fire) outstanding_q <= aw_fire ? outstanding_q + 1'b1 : outstanding_q - 1'b1;
      if (aw_fire && is_notification) responses_left_q <= outstanding_q + 1'b1 - 2'(b_fire);
      else if (b_fire && responses_left_q != '0) responses_left_q <= responses_left_q - 1'b1;
    end
  end

  assign m_axil.awaddr = s_axil.awaddr;
  assign m_axil.awvalid = s_axil.awvalid && write_open;
  assign s_axil.awready = m_axil.awready && write_open;
  assign m_axil.wdata = s_axil.wdata;
  assign m_axil.wstrb = s_axil.wstrb;
  assign m_axil.wvalid = s_axil.wvalid;
  assign s_axil.wready = m_axil.wready;
  assign s_axil.bresp = m_axil.bresp;
  assign s_axil.bvalid = m_axil.bvalid;
  assign m_axil.bready = s_axil.bready;

  `NS_ASSERT(outstanding_counted, outstanding_q != '1 || !aw_fire || b_fire)

endmodule
