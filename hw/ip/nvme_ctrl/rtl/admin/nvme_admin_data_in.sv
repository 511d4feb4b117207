// SPDX-License-Identifier: Apache-2.0

// Reads the data of a Set Features command from the host: 8 bytes of a Timestamp, or 512 bytes of
// Host Behavior Support.
//
// The data start at the dword given by PRP1 and may continue in the page given by PRP2 (NVMe 1.4,
// 4.3). Eight bytes are read as two dwords. 512 bytes are read by 64-byte lines, of which only the
// first dword is kept. A read never crosses its line.
module nvme_admin_data_in
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
  /// ID of the reads.
  parameter logic [IdWidth-1:0] Id = 12'd1
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  /// Read. Stays 1, with the following inputs, until done.
  input  logic         req_i,
  /// 512 bytes, else eight.
  input  logic         long_i,
  /// PRP1.
  input  logic [63:0]  prp1_i,
  /// PRP2.
  input  logic [63:0]  prp2_i,
  /// Done.
  output logic         done_o,
  /// Status, with done_o.
  output data_status_e status_o,
  /// The bytes; of 512 bytes, the first four in the low half.
  output logic [63:0]  data_o,

  /// Read address.
  output ax_t          ar_o,
  output logic         ar_valid_o,
  input  logic         ar_ready_i,
  /// Read data.
  input  r_t           r_i,
  /// Valid; always accepted.
  input  logic         r_valid_i
);

  typedef enum logic [1:0] {
    StIdle,
    StAddress,
    StData,
    StDone
  } state_e;

  // In dwords.
  localparam logic [7:0] Short = 8'd2;
  localparam logic [7:0] Long = 8'd128;

  state_e state_q;
  logic upper_dword_q, crosses;
  logic [63:2] addr_q, next;
  logic [7:0] total, remaining_q, read_dwords;

  assign total = long_i ? Long : Short;
  assign crosses = 11'(prp1_i[11:2]) + 11'(total) > 11'd1024;
  assign read_dwords = long_i ? 8'd16 - 8'(addr_q[5:2]) : 8'd1;
  assign next = addr_q + 62'(read_dwords);

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
        if (r_valid_i) state_q <= (remaining_q <= read_dwords || r_i.resp[1]) ? StDone : StAddress;
        default:   state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      addr_q <= prp1_i[63:2];
      remaining_q <= total;
      upper_dword_q <= 1'b0;
      status_o <= DataBadPrp;
    end else if (state_q == StData && r_valid_i) begin
      addr_q <= (next[11:2] == '0) ? prp2_i[63:2] : next;
      remaining_q <= remaining_q - read_dwords;
      upper_dword_q <= 1'b1;
      status_o <= r_i.resp[1] ? DataHostError : DataOk;
      data_o[32*upper_dword_q+:32] <= r_i.data[32*addr_q[5:2]+:32];
    end
  end

  assign ar_o = '{id: Id, len: 8'd0, size: 3'd6, burst: BurstIncr, addr: {addr_q, 2'b0}};
  assign ar_valid_o = state_q == StAddress;
  assign done_o = state_q == StDone;

  logic unused;
  assign unused = ^{r_i.id, r_i.last, r_i.resp[0]};

endmodule
