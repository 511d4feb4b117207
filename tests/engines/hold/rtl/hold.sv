// SPDX-License-Identifier: Apache-2.0

// Test engine with the access hook: holds accesses to a range for a number of cycles.
//
// A write to 0x100 sets the number of cycles. Held are accesses of the PM window and of the NVMe
// controller to local addresses of channel 0, from `first` to below `limit`. Accesses that follow a
// held one wait as well. 0x104 reads which kinds have waited: PM window writes and reads, then
// controller writes and reads, from bit 0. The hold expires without a command, because a host's
// register accesses wait for its stores.
//
// A command of the command page starts a hold with the arguments first, limit and cycles, which
// replaces a running hold. The command is accepted after the number of cycles in 0x108 and
// completes at once.
module hold
  import ns_axi_pkg::*;
  import command_page_pkg::*;
#(
  /// Channels of the storage.
  parameter int unsigned NumChannels = 2,
  /// Granule of the channels in bytes.
  parameter int unsigned Granule = 4096,
  /// Size of the media in bytes.
  parameter longint unsigned MediaBytes = 64'h4000_0000
) (
  /// Clock.
  input  logic     clk_i,
  /// Reset.
  input  logic     rst_ni,
  /// The engine is not idle.
  output logic     busy_o,
  /// Register port.
  ns_axil_if.slave s_axil,
  /// Commands of the command page.
  command_page_if.engine s_page,
  /// Access hook.
  ns_axi_if.slave  s_hook_pm[NumChannels],
  ns_axi_if.master m_hook_pm[NumChannels],
  ns_axi_if.slave  s_hook_nvme[NumChannels],
  ns_axi_if.master m_hook_nvme[NumChannels]
);

  logic write, read, b_valid_q, r_valid_q, holding;
  logic [31:0] rdata_q, first_q, limit_q, left_q;
  logic [3:0] waited_q, delay_q, presented_q;
  logic cmd_fire, done_q;
  logic [LineWidth-1:0] line_q;
  logic [NumChannels-1:0][3:0] waiting;

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
  assign holding = left_q != '0;
  assign busy_o = b_valid_q || r_valid_q || holding || done_q;

  assign cmd_fire = s_page.cmd_valid && s_page.cmd_ready;
  assign s_page.cmd_ready = presented_q == delay_q;
  assign s_page.done = '{line: line_q, default: '0};
  assign s_page.done_valid = done_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      presented_q <= '0;
      done_q      <= 1'b0;
      line_q      <= '0;
    end else begin
      presented_q <= (s_page.cmd_valid && !cmd_fire) ? presented_q + 1'b1 : '0;
      done_q      <= cmd_fire;
      if (cmd_fire) line_q <= s_page.line;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
      r_valid_q <= 1'b0;
      left_q <= '0;
      waited_q <= '0;
      first_q <= '0;
      limit_q <= '0;
      delay_q <= '0;
      rdata_q <= '0;
    end else begin
      if (write) b_valid_q <= 1'b1;
      else if (s_axil.bready) b_valid_q <= 1'b0;
      if (read) r_valid_q <= 1'b1;
      else if (s_axil.rready) r_valid_q <= 1'b0;
      if (write && s_axil.awaddr[11:0] == 12'h020) first_q <= s_axil.wdata;
      if (write && s_axil.awaddr[11:0] == 12'h030) limit_q <= s_axil.wdata;
      if (write && s_axil.awaddr[11:0] == 12'h108) delay_q <= s_axil.wdata[3:0];
      if (cmd_fire) begin
        first_q <= s_page.cmd[64+:32];
        limit_q <= s_page.cmd[128+:32];
        left_q <= s_page.cmd[192+:32];
        waited_q <= '0;
      end else if (write && s_axil.awaddr[11:0] == 12'h100) begin
        left_q <= s_axil.wdata;
        waited_q <= '0;
      end else begin
        left_q <= left_q - 32'(holding);
        waited_q <= waited_q | waiting[0];
      end
      if (read) rdata_q <= (s_axil.araddr[11:0] == 12'h104) ? 32'(waited_q) : '0;
    end
  end

  for (genvar c = 0; c < NumChannels; c++) begin : gen_channel
    hold_bus u_pm (
      .clk_i,
      .rst_ni,
      .hold_i   (holding && c == 0),
      .first_i  (64'(first_q)),
      .limit_i  (64'(limit_q)),
      .waiting_o(waiting[c][1:0]),
      .s_axi    (s_hook_pm[c]),
      .m_axi    (m_hook_pm[c])
    );
    hold_bus u_nvme (
      .clk_i,
      .rst_ni,
      .hold_i   (holding && c == 0),
      .first_i  (64'(first_q)),
      .limit_i  (64'(limit_q)),
      .waiting_o(waiting[c][3:2]),
      .s_axi    (s_hook_nvme[c]),
      .m_axi    (m_hook_nvme[c])
    );
  end

  logic unused;
  assign unused = ^{s_axil.awaddr[23:12], s_axil.araddr[23:12], s_axil.wstrb, s_page.settled, s_page.cmd, waiting, Granule, MediaBytes};

endmodule
