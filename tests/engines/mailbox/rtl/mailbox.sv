// SPDX-License-Identifier: Apache-2.0

// Test engine with a host master. It writes `count` lines of 64 bytes to host memory; line n is
// filled with `first` + n. Interrupt `vector` rises as soon as the last address has been accepted.
// Then it reads the lines back.
//
// It holds up to four NVMe I/O commands. A stop ends a held command as stopped. A write to 0x100
// ends all of them with the status in bits 31:17. Dword 0 of a completion is the exclusive or of
// the command's dwords and the namespace's position. 0x100 reads the number of held commands, 0x104
// the number of accepted commands. While bit 0 of 0x108 is 1, stops are ignored.
module mailbox
  import ns_axi_pkg::*;
  import nvme_pkg::*;
(
  /// Clock.
  input  logic       clk_i,
  /// Reset.
  input  logic       rst_ni,
  /// The engine is not idle.
  output logic       busy_o,
  /// Register port.
  ns_axil_if.slave   s_axil,
  /// Host port.
  ns_axi_if.master   m_host,
  /// NVMe I/O commands.
  nvme_engine_if.engine s_nvme,
  /// Interrupt requests.
  output logic [2:0] irq_o
);

  logic [3:0][63:0] args_q;
  logic start_q, job_active_q, done_q, irq_raised_q;
  logic [31:0] aw_q, w_q, b_q, ar_q, r_q, count;
  logic [2:0] result_q, irq_q;

  // Registers serve one access at a time.
  logic write, read, b_valid_q, r_valid_q;
  logic [31:0] rdata_q;
  assign write = s_axil.awvalid && s_axil.wvalid && !b_valid_q;
  assign read = s_axil.arvalid && !r_valid_q;
  assign s_axil.awready = write;
  assign s_axil.wready = write;
  assign s_axil.bvalid = b_valid_q;
  assign s_axil.bresp = RespOkay;
  assign s_axil.arready = read;
  assign s_axil.rvalid = r_valid_q;
  assign s_axil.rdata = rdata_q;
  assign s_axil.rresp = RespOkay;

  assign count = args_q[1][31:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
      r_valid_q <= 1'b0;
      start_q <= 1'b0;
      done_q <= 1'b0;
      args_q <= '0;
      rdata_q <= '0;
    end else begin
      if (write) b_valid_q <= 1'b1;
      else if (s_axil.bready) b_valid_q <= 1'b0;
      if (read) r_valid_q <= 1'b1;
      else if (s_axil.rready) r_valid_q <= 1'b0;
      start_q <= write && s_axil.awaddr[12:0] == '0 && s_axil.wdata[0] && !job_active_q;
      if (write && s_axil.awaddr[12:0] == 13'hC && s_axil.wdata[0]) done_q <= 1'b0;
      if (job_active_q && b_q == count && r_q == count) done_q <= 1'b1;
      for (int unsigned n = 0; n < 4; n++) begin
        if (write && s_axil.awaddr[12:0] == 13'(32 + 16 * n)) args_q[n][31:0] <= s_axil.wdata;
        if (write && s_axil.awaddr[12:0] == 13'(36 + 16 * n)) args_q[n][63:32] <= s_axil.wdata;
      end
      unique case (s_axil.araddr[12:0])
        13'h0: rdata_q <= {29'd0, !job_active_q && !start_q, 2'd0};
        13'hC: rdata_q <= {31'd0, done_q};
        13'h10: rdata_q <= {29'd0, result_q};
        13'h100: rdata_q <= {29'd0, held_count};
        13'h104: rdata_q <= accepted_q;
        default: rdata_q <= '0;
      endcase
    end
  end

  // NVMe I/O commands.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [31:0]          sum;
  } held_command_t;
  held_command_t [3:0] held_q;
  logic [3:0] used_q, stop_request_q, end_request_q, free_slot, done_pending;
  logic [31:0] accepted_q, sum;
  logic [14:0] status_q;
  logic [2:0] held_count;
  logic [1:0] done_index;
  logic ignore_stop_q;

  assign free_slot = ~used_q & (used_q + 4'd1);  // lowest free slot
  assign s_nvme.cmd_ready = used_q != '1;
  assign done_pending = used_q & (end_request_q | (stop_request_q & {4{!ignore_stop_q}}));
  assign done_index = done_pending[0] ? 2'd0 : done_pending[1] ? 2'd1 : done_pending[2] ? 2'd2 : 2'd3;
  assign s_nvme.done_valid = done_pending != '0;
  assign s_nvme.done = '{
          slot: held_q[done_index].slot,
          stopped: !end_request_q[done_index],
          status: status_q,
          dw0: end_request_q[done_index] ? held_q[done_index].sum : '0
      };

  always_comb begin
    sum = s_nvme.cmd.ns_base[63:32] ^ s_nvme.cmd.ns_base[31:0] ^ s_nvme.cmd.ns_blocks[63:32] ^ s_nvme.cmd.ns_blocks[31:0];
    for (int unsigned n = 0; n < 16; n++) sum ^= s_nvme.cmd.sqe[32*n+:32];
    sum ^= 32'(s_nvme.cmd.command) << 28;
    held_count = '0;
    for (int unsigned n = 0; n < 4; n++) held_count += 3'(used_q[n]);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {used_q, stop_request_q, end_request_q} <= '0;
      held_q <= '0;
      accepted_q <= '0;
      status_q <= '0;
      ignore_stop_q <= 1'b0;
    end else begin
      for (int unsigned n = 0; n < 4; n++) begin
        if (s_nvme.cmd_valid && s_nvme.cmd_ready && free_slot[n]) begin
          used_q[n] <= 1'b1;
          stop_request_q[n] <= 1'b0;
          end_request_q[n] <= 1'b0;
          held_q[n] <= '{slot: s_nvme.cmd.slot, sum: sum};
        end
        if (used_q[n] && s_nvme.stop_valid && s_nvme.stop_slot == held_q[n].slot)
          stop_request_q[n] <= 1'b1;
        if (used_q[n] && write && s_axil.awaddr[12:0] == 13'h100) end_request_q[n] <= 1'b1;
        if (s_nvme.done_valid && s_nvme.done_ready && done_index == 2'(n)) used_q[n] <= 1'b0;
      end
      accepted_q <= accepted_q + 32'(s_nvme.cmd_valid && s_nvme.cmd_ready);
      if (write && s_axil.awaddr[12:0] == 13'h100) status_q <= s_axil.wdata[31:17];
      if (write && s_axil.awaddr[12:0] == 13'h108) ignore_stop_q <= s_axil.wdata[0];
    end
  end

  // Write to the host and read back.
  logic [DataWidth-1:0] expected;
  assign expected = {8{args_q[2] + 64'(r_q)}};
  assign m_host.aw = '{id: 12'(aw_q[3:0]), len: '0, size: 3'd6, burst: BurstIncr, addr: args_q[0] + 64'(aw_q) * 64};
  assign m_host.aw_valid = job_active_q && aw_q != count;
  assign m_host.w = '{last: 1'b1, strb: '1, data: {8{args_q[2] + 64'(w_q)}}};
  assign m_host.w_valid = job_active_q && w_q != aw_q;
  assign m_host.b_ready = 1'b1;
  assign m_host.ar = '{id: '0, len: '0, size: 3'd6, burst: BurstIncr, addr: args_q[0] + 64'(ar_q) * 64};
  assign m_host.ar_valid = job_active_q && b_q == count && ar_q != count && ar_q - r_q < 16;
  assign m_host.r_ready = 1'b1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      job_active_q <= 1'b0;
      irq_raised_q <= 1'b0;
      {aw_q, w_q, b_q, ar_q, r_q} <= '0;
      result_q <= '0;
      irq_q <= '0;
    end else if (start_q) begin
      job_active_q <= 1'b1;
      irq_raised_q <= 1'b0;
      {aw_q, w_q, b_q, ar_q, r_q} <= '0;
      result_q <= '0;
      irq_q <= '0;
    end else if (job_active_q) begin
      if (m_host.aw_valid && m_host.aw_ready) aw_q <= aw_q + 1;
      if (m_host.w_valid && m_host.w_ready) w_q <= w_q + 1;
      if (m_host.b_valid) b_q <= b_q + 1;
      if (m_host.b_valid && m_host.b.resp != RespOkay) result_q[1] <= 1'b1;
      if (m_host.ar_valid && m_host.ar_ready) ar_q <= ar_q + 1;
      if (m_host.r_valid) r_q <= r_q + 1;
      if (m_host.r_valid && m_host.r.resp != RespOkay) result_q[0] <= 1'b1;
      else if (m_host.r_valid && m_host.r.data != expected) result_q[2] <= 1'b1;
      if (aw_q == count && !irq_raised_q) begin
        irq_raised_q <= 1'b1;
        irq_q[2'(args_q[3])] <= 1'b1;
      end
      if (b_q == count && r_q == count) job_active_q <= 1'b0;
    end
  end

  assign irq_o = irq_q;
  assign busy_o = job_active_q || start_q || b_valid_q || r_valid_q || done_pending != '0;

  logic unused;
  assign unused = ^{s_axil.awaddr[23:13], s_axil.araddr[23:13], s_axil.wstrb, m_host.b.id, m_host.r.id, m_host.r.last, args_q[3][63:2], args_q[1][63:32]};

endmodule
