// SPDX-License-Identifier: Apache-2.0

// Reports whether an AXI4-Lite slave has outstanding accesses, so that its clock must run: at most
// three per channel.
module ns_axil_outstanding (
  input  logic clk_i,
  input  logic rst_ni,
  /// From registers: an address or data has been accepted whose response has not.
  output logic open_o,
  /// The bus: valid and ready of each channel.
  input  logic awvalid_i,
  input  logic awready_i,
  input  logic wvalid_i,
  input  logic wready_i,
  input  logic bvalid_i,
  input  logic bready_i,
  input  logic arvalid_i,
  input  logic arready_i,
  input  logic rvalid_i,
  input  logic rready_i
);

  logic [1:0] aw_q, w_q, ar_q;

  function automatic logic [1:0] count(logic [1:0] now, logic up, logic down);
    return (up == down) ? now : up ? now + 1'b1 : now - 1'b1;
  endfunction

  assign open_o = aw_q != '0 || w_q != '0 || ar_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_q <= '0;
      w_q <= '0;
      ar_q <= '0;
    end else begin
      aw_q <= count(aw_q, awvalid_i && awready_i, bvalid_i && bready_i);
      w_q <= count(w_q, wvalid_i && wready_i, bvalid_i && bready_i);
      ar_q <= count(ar_q, arvalid_i && arready_i, rvalid_i && rready_i);
    end
  end

endmodule
