// SPDX-License-Identifier: Apache-2.0

// AXI4 error slave: accepts every transaction and answers it with an error.
//
// One write and one read at a time, as errors need no bandwidth. Accepts write data only after its
// address. Read data is zero.
module ns_axi_error_slave
  import ns_axi_pkg::*;
#(
  /// Response code.
  parameter logic [1:0] Resp = RespDecErr
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  /// A transaction is in flight. From registers.
  output logic               busy_o,

  /// Master.
  ns_axi_if.slave s_axi
);

  logic aw_ready_q, b_valid_q;  // neither: write data is being accepted
  logic r_valid_q;
  logic [IdWidth-1:0] b_id_q, r_id_q;
  logic [7:0] r_left_q;

  assign s_axi.aw_ready = aw_ready_q;
  assign s_axi.w_ready = !aw_ready_q && !b_valid_q;
  assign s_axi.ar_ready = !r_valid_q;
  assign s_axi.b_valid = b_valid_q;
  assign s_axi.b = '{id: b_id_q, resp: Resp};
  assign s_axi.r_valid = r_valid_q;
  assign s_axi.r = '{id: r_id_q, resp: Resp, last: r_left_q == '0, data: '0};
  assign busy_o = !aw_ready_q || r_valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_ready_q <= 1'b1;
      b_valid_q <= 1'b0;
      r_valid_q <= 1'b0;
    end else begin
      if (s_axi.aw_valid && aw_ready_q) aw_ready_q <= 1'b0;
      if (s_axi.w_valid && s_axi.w_ready && s_axi.w.last) b_valid_q <= 1'b1;
      if (b_valid_q && s_axi.b_ready) begin
        aw_ready_q <= 1'b1;
        b_valid_q <= 1'b0;
      end
      if (s_axi.ar_valid && !r_valid_q) r_valid_q <= 1'b1;
      if (r_valid_q && s_axi.r_ready && r_left_q == '0) r_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (s_axi.aw_valid && aw_ready_q) b_id_q <= s_axi.aw.id;
    if (s_axi.ar_valid && !r_valid_q) begin
      r_id_q <= s_axi.ar.id;
      r_left_q <= s_axi.ar.len;
    end else if (r_valid_q && s_axi.r_ready) begin
      r_left_q <= r_left_q - 1'b1;
    end
  end

endmodule
