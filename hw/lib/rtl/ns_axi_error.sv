// AXI4 slave that is not there: takes everything, and answers with an error.
//
// One write and one read at a time: its accesses are errors, not traffic. Takes write data only behind their address. Read
// data are zeros.
module ns_axi_error
  import ns_axi_pkg::*;
#(
  /// The answer.
  parameter logic [1:0] Resp = RespDecErr
) (
  /// Clock.
  input  logic               clk_i,
  /// Reset.
  input  logic               rst_ni,
  /// A transaction is under way. From registers.
  output logic               busy_o,

  /// Write address: its ID.
  input  logic [IdWidth-1:0] s_aw_id_i,
  /// Valid.
  input  logic               s_aw_valid_i,
  /// Ready.
  output logic               s_aw_ready_o,
  /// Write data: last beat.
  input  logic               s_w_last_i,
  /// Valid.
  input  logic               s_w_valid_i,
  /// Ready.
  output logic               s_w_ready_o,
  /// Write response.
  output b_t                 s_b_o,
  /// Valid.
  output logic               s_b_valid_o,
  /// Ready.
  input  logic               s_b_ready_i,
  /// Read address: its ID.
  input  logic [IdWidth-1:0] s_ar_id_i,
  /// Beats - 1.
  input  logic [7:0]         s_ar_len_i,
  /// Valid.
  input  logic               s_ar_valid_i,
  /// Ready.
  output logic               s_ar_ready_o,
  /// Read data.
  output r_t                 s_r_o,
  /// Valid.
  output logic               s_r_valid_o,
  /// Ready.
  input  logic               s_r_ready_i
);

  logic aw_ready_q, b_valid_q;  // neither: the write's data is being taken
  logic r_valid_q;
  logic [IdWidth-1:0] b_id_q, r_id_q;
  logic [7:0] r_left_q;

  assign s_aw_ready_o = aw_ready_q;
  assign s_w_ready_o = !aw_ready_q && !b_valid_q;
  assign s_ar_ready_o = !r_valid_q;
  assign s_b_valid_o = b_valid_q;
  assign s_b_o = '{id: b_id_q, resp: Resp};
  assign s_r_valid_o = r_valid_q;
  assign s_r_o = '{id: r_id_q, resp: Resp, last: r_left_q == '0, data: '0};
  assign busy_o = !aw_ready_q || r_valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      aw_ready_q <= 1'b1;
      b_valid_q <= 1'b0;
      r_valid_q <= 1'b0;
    end else begin
      if (s_aw_valid_i && aw_ready_q) aw_ready_q <= 1'b0;
      if (s_w_valid_i && s_w_ready_o && s_w_last_i) b_valid_q <= 1'b1;
      if (b_valid_q && s_b_ready_i) begin
        aw_ready_q <= 1'b1;
        b_valid_q <= 1'b0;
      end
      if (s_ar_valid_i && !r_valid_q) r_valid_q <= 1'b1;
      if (r_valid_q && s_r_ready_i && r_left_q == '0) r_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (s_aw_valid_i && aw_ready_q) b_id_q <= s_aw_id_i;
    if (s_ar_valid_i && !r_valid_q) begin
      r_id_q <= s_ar_id_i;
      r_left_q <= s_ar_len_i;
    end else if (r_valid_q && s_r_ready_i) begin
      r_left_q <= r_left_q - 1'b1;
    end
  end

endmodule
