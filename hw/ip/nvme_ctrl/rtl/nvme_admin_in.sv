// Reads the eight bytes that an admin command brings along from the host (Set Features, Timestamp).
//
// Two reads of a dword each, one after the other, wherever PRP1 and PRP2 put them: any dword, and the second one
// possibly in the next page (NVMe 1.4, 4.3). A read fetches no more than the rest of its 64-byte line.
module nvme_admin_in
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
  /// ID of the reads.
  parameter logic [IdWidth-1:0] Id = 8'd1
) (
  /// Clock.
  input  logic         clk_i,
  /// Reset, active low.
  input  logic         rst_ni,

  /// Read; stays 1, with the PRPs, until done.
  input  logic         req_i,
  /// PRP1.
  input  logic [63:0]  prp1_i,
  /// PRP2.
  input  logic [63:0]  prp2_i,
  /// Done.
  output logic         done_o,
  /// How it went.
  output data_status_e status_o,
  /// The bytes.
  output logic [63:0]  data_o,

  /// Read address.
  output ax_t          ar_o,
  /// Valid.
  output logic         ar_valid_o,
  /// Ready.
  input  logic         ar_ready_i,
  /// Read data.
  input  r_t           r_i,
  /// Valid; always taken.
  input  logic         r_valid_i
);

  typedef enum logic [1:0] {
    StIdle,
    StAddress,
    StData,
    StDone
  } state_e;

  state_e state_q;
  logic second_q, crosses;
  logic [63:2] addr_q;

  assign crosses = prp1_i[11:2] == '1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle:
        if (req_i)
          state_q <= (prp1_i[1:0] != '0 || (crosses && prp2_i[11:0] != '0)) ? StDone : StAddress;
        StAddress: if (ar_ready_i) state_q <= StData;
        StData:
        if (r_valid_i) state_q <= (second_q || r_i.resp[1]) ? StDone : StAddress;
        default:   state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      addr_q <= prp1_i[63:2];
      second_q <= 1'b0;
      status_o <= DataBadPrp;
    end else if (state_q == StData && r_valid_i) begin
      addr_q <= crosses ? prp2_i[63:2] : addr_q + 1'b1;
      second_q <= 1'b1;
      status_o <= r_i.resp[1] ? DataHostError : DataOk;
      data_o <= {r_i.data[32*addr_q[5:2]+:32], data_o[63:32]};
    end
  end

  assign ar_o = '{id: Id, len: 8'd0, size: 3'd6, burst: BurstIncr, addr: {addr_q, 2'b0}};
  assign ar_valid_o = state_q == StAddress;
  assign done_o = state_q == StDone;

  logic unused;
  assign unused = ^{r_i.id, r_i.last, r_i.resp[0]};

endmodule
