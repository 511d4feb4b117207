// Registers of the quality of service: credits and weights of the masters of every memory channel.
module qos
  import qos_pkg::*;
#(
  /// Masters: the PM window, the NVMe controller, up to six engines.
  parameter int unsigned NumMasters = 2
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// Registers.
  ns_axil_if.slave           s_axil,
  /// Of each master. From registers.
  output qos_t [NumMasters-1:0] qos_o
);

  localparam int unsigned RegBits = qos_regs_pkg::QOS_REGS_MIN_ADDR_WIDTH;
  localparam logic [RegBits-1:0] Nowhere = RegBits'('hC);
  qos_regs_pkg::qos_regs__out_t hwif;

  function automatic logic [RegBits-1:0] word(logic [11:0] addr);
    word = (addr[11:RegBits] == '0) ? addr[RegBits-1:0] : Nowhere;
  endfunction

  qos_regs u_regs (
    .clk           (clk_i),
    .arst_n        (rst_ni),
    .s_axil_awready(s_axil.awready),
    .s_axil_awvalid(s_axil.awvalid),
    .s_axil_awaddr (word(s_axil.awaddr[11:0])),
    .s_axil_awprot ('0),
    .s_axil_wready (s_axil.wready),
    .s_axil_wvalid (s_axil.wvalid),
    .s_axil_wdata  (s_axil.wdata),
    .s_axil_wstrb  (s_axil.wstrb),
    .s_axil_bready (s_axil.bready),
    .s_axil_bvalid (s_axil.bvalid),
    .s_axil_bresp  (s_axil.bresp),
    .s_axil_arready(s_axil.arready),
    .s_axil_arvalid(s_axil.arvalid),
    .s_axil_araddr (word(s_axil.araddr[11:0])),
    .s_axil_arprot ('0),
    .s_axil_rready (s_axil.rready),
    .s_axil_rvalid (s_axil.rvalid),
    .s_axil_rdata  (s_axil.rdata),
    .s_axil_rresp  (s_axil.rresp),
    .hwif_out      (hwif)
  );

  function automatic qos_t of(logic [CreditBits-1:0] reads, logic [CreditBits-1:0] writes,
                              logic [WeightBits-1:0] weight);
    of = '{reads: reads, writes: writes, weight: (weight == '0) ? WeightBits'(1) : weight};
  endfunction

  qos_t [Masters-1:0] all;
  assign qos_o = all[NumMasters-1:0];
  assign all[0] = of(hwif.pm.reads.lines.value, hwif.pm.writes.lines.value, hwif.pm.weight.lines.value);
  assign all[1] = of(hwif.nvme.reads.lines.value, hwif.nvme.writes.lines.value, hwif.nvme.weight.lines.value);
  for (genvar e = 0; e < Masters - 2; e++) begin : gen_engine
    assign all[2+e] = of(
        hwif.engine[e].reads.lines.value,
        hwif.engine[e].writes.lines.value,
        hwif.engine[e].weight.lines.value
    );
  end

  if (NumMasters < 2 || NumMasters > Masters) begin : gen_bad_masters
    $error("qos: NumMasters must be 2 to 8");
  end

  logic unused;
  assign unused = ^{all, s_axil.awaddr[23:12], s_axil.araddr[23:12]};

endmodule
