// SPDX-License-Identifier: Apache-2.0

// Connects one of several AXI masters to a bus, chosen by a static select.
//
// It is combinational and adds no cycle. No transaction may be in flight when the select changes.
module pipeline_axi_mux #(
  /// Number of masters.
  parameter int unsigned N = 2
) (
  /// Selected master, one-hot or 0. Driven by registers.
  input  logic [N-1:0]    select_i,
  ns_axi_if.slave         s_axi[N],
  ns_axi_if.master        m_axi
);

  import ns_axi_pkg::*;

  ax_t [N-1:0] aw, ar;
  w_t [N-1:0] w;
  logic [N-1:0] aw_valid, w_valid, b_ready, ar_valid, r_ready;

  for (genvar n = 0; n < N; n++) begin : gen_master
    assign aw[n] = s_axi[n].aw;
    assign aw_valid[n] = s_axi[n].aw_valid;
    assign s_axi[n].aw_ready = m_axi.aw_ready && select_i[n];
    assign w[n] = s_axi[n].w;
    assign w_valid[n] = s_axi[n].w_valid;
    assign s_axi[n].w_ready = m_axi.w_ready && select_i[n];
    assign s_axi[n].b = m_axi.b;
    assign s_axi[n].b_valid = m_axi.b_valid && select_i[n];
    assign b_ready[n] = s_axi[n].b_ready;
    assign ar[n] = s_axi[n].ar;
    assign ar_valid[n] = s_axi[n].ar_valid;
    assign s_axi[n].ar_ready = m_axi.ar_ready && select_i[n];
    assign s_axi[n].r = m_axi.r;
    assign s_axi[n].r_valid = m_axi.r_valid && select_i[n];
    assign r_ready[n] = s_axi[n].r_ready;
  end

  always_comb begin
    m_axi.aw = aw[0];
    m_axi.w  = w[0];
    m_axi.ar = ar[0];
    for (int unsigned n = 1; n < N; n++) begin
      if (select_i[n]) begin
        m_axi.aw = aw[n];
        m_axi.w  = w[n];
        m_axi.ar = ar[n];
      end
    end
  end
  assign m_axi.aw_valid = (aw_valid & select_i) != '0;
  assign m_axi.w_valid = (w_valid & select_i) != '0;
  assign m_axi.b_ready = (b_ready & select_i) != '0;
  assign m_axi.ar_valid = (ar_valid & select_i) != '0;
  assign m_axi.r_ready = (r_ready & select_i) != '0;

endmodule
