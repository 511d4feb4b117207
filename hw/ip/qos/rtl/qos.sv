// SPDX-License-Identifier: Apache-2.0

// Registers of the quality of service: credits and weights of the masters of every memory channel.
`include "ns_axil_regs.svh"

module qos
  import qos_pkg::*;
#(
  /// Masters: the PM window, the NVMe controller, engines; up to `Masters`.
  parameter int unsigned NumMasters = 2
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// Registers.
  ns_axil_if.slave           s_axil,
  /// Parameters of each master. From registers.
  output qos_t [NumMasters-1:0] qos_o
);

  qos_regs_pkg::qos_regs__out_t hwif;

  qos_regs u_regs (
    .clk           (clk_i),
    .arst_n        (rst_ni),
    `NS_AXIL_REGS(s_axil, 12),
    .hwif_out      (hwif)
  );

  function automatic qos_t qos_of(logic [CreditBits-1:0] reads, logic [CreditBits-1:0] writes,
                                  logic [CreditBits-1:0] beside, logic [WeightBits-1:0] weight);
    qos_of = '{
        reads: reads,
        writes: writes,
        beside: beside,
        weight: (weight == '0) ? WeightBits'(1) : weight
    };
  endfunction

  qos_t [Masters-1:0] all;
  assign qos_o = all[NumMasters-1:0];
  assign all[0] = qos_of(
      hwif.pm.reads.lines.value,
      hwif.pm.writes.lines.value,
      hwif.pm.beside.lines.value,
      hwif.pm.weight.lines.value
  );
  assign all[1] = qos_of(
      hwif.nvme.reads.lines.value,
      hwif.nvme.writes.lines.value,
      hwif.nvme.beside.lines.value,
      hwif.nvme.weight.lines.value
  );
  for (genvar e = 0; e < Masters - 2; e++) begin : gen_engine
    assign all[2+e] = qos_of(
        hwif.engine[e].reads.lines.value,
        hwif.engine[e].writes.lines.value,
        hwif.engine[e].beside.lines.value,
        hwif.engine[e].weight.lines.value
    );
  end

  if (NumMasters < 2 || NumMasters > Masters) begin : gen_bad_masters
    $error("qos: NumMasters must be 2 to qos_pkg::Masters");
  end

  logic unused;
  assign unused = ^{all, s_axil.awaddr[23:12], s_axil.araddr[23:12]};

endmodule
