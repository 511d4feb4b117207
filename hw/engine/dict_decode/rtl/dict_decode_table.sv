// SPDX-License-Identifier: Apache-2.0

// Dictionary memory of 16 banks, with 16 lookups at a time.
//
// The memory holds as many copies of the dictionary as fit. A dictionary that fits in one bank is
// in every bank, so each lane has a private bank. A dictionary of twice that size occupies two
// banks with alternating words, shared by two lanes. The longest dictionary occupies all banks and
// is shared by all lanes. A bank serves one word per cycle to all lanes that need it, so equal keys
// cause no conflict.
`include "ns_assert.svh"

module dict_decode_table
  import dict_decode_pkg::*;
#(
  /// Size of the longest dictionary in bytes, a power of two from 1 KiB to 512 KiB.
  parameter int unsigned DictBytes = 512 * 1024
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                          flush_i,
  /// Starts the load of a dictionary of `bytes_i` bytes. Values have 2**`size_i` bytes. Both inputs
  /// stay stable.
  input  logic                          start_i,
  input  logic [19:0]                   bytes_i,
  input  logic [1:0]                    size_i,
  /// Beats of the dictionary.
  input  logic [511:0]                  data_i,
  input  logic                          data_valid_i,
  output logic                          data_ready_o,
  /// Row of keys. The first `number_i` keys are looked up.
  input  logic [Lanes-1:0][KeyBits-1:0] keys_i,
  input  logic [4:0]                    number_i,
  input  logic                          last_i,
  input  logic                          valid_i,
  output logic                          ready_o,
  /// Row of values.
  output logic [Lanes-1:0][63:0]        values_o,
  output logic                          last_o,
  output logic                          valid_o,
  input  logic                          ready_i
);

  localparam int unsigned Words = DictBytes / 8;
  localparam int unsigned BankWords = Words / Lanes;
  localparam int unsigned BankBits = unsigned'($clog2(BankWords));
  typedef logic [BankBits-1:0] addr_t;
  typedef logic [3:0] bank_t;

  // log2 of the banks in a copy.
  logic [2:0] copy_log_q;
  bank_t copy_mask;
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      copy_log_q <= 3'd0;
      for (int unsigned g = 0; g < 4; g++)
      if (32'(bytes_i) > 32'((8 * BankWords) << g)) copy_log_q <= 3'(g + 1);
    end
  end
  assign copy_mask = bank_t'((5'd1 << copy_log_q) - 5'd1);

  // ---------------------------------------------------------------- load

  // Each cycle writes 2**copy_log_q of a beat's 8 words to their banks. In a copy of 16 banks, a
  // beat fills one half of the banks.
  addr_t load_addr_q;
  logic [2:0] load_step_q, last_step;
  logic load_half_q, load_last;
  logic [7:0][63:0] load_words;

  assign load_words = data_i;
  always_comb begin
    unique case (copy_log_q)
      3'd0: last_step = 3'd7;
      3'd1: last_step = 3'd3;
      3'd2: last_step = 3'd1;
      default: last_step = 3'd0;
    endcase
  end
  assign load_last = load_step_q == last_step;
  assign data_ready_o = load_last;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      load_addr_q <= '0;
      load_step_q <= '0;
      load_half_q <= 1'b0;
    end else if (data_valid_i) begin
      load_step_q <= load_last ? '0 : load_step_q + 1'b1;
      load_half_q <= copy_log_q == 3'd4 && !load_half_q;
      if (copy_log_q != 3'd4 || load_half_q) load_addr_q <= load_addr_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------- lookups

  typedef struct packed {
    addr_t     addr;
    bank_t      bank;
    logic [2:0] offset;
  } lane_t;

  lane_t [Lanes-1:0] lanes, lanes_q;
  logic [Lanes-1:0] pending_q, lane_hit;
  logic last_q, busy_q, row_fire, issue, done;

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    logic [KeyBits+2:0] address;
    assign address = (KeyBits + 3)'(keys_i[l]) << size_i;
    assign lanes[l] = '{
            addr: addr_t'(address[KeyBits+2:3] >> copy_log_q),
            bank: (bank_t'(l) & ~copy_mask) | (bank_t'(address[6:3]) & copy_mask),
            offset: address[2:0]
        };
  end

  logic [Lanes-1:0] bank_valid;
  addr_t [Lanes-1:0] bank_addr;
  logic [Lanes-1:0][63:0] bank_word;

  // Lanes that need the same bank, and the same word of it, are found when a row arrives. Of the
  // pending lanes of a bank, the lowest one is the leader.
  logic [Lanes-1:0][Lanes-1:0] same_bank_q, same_word_q;
  logic [Lanes-1:0] leader;

  always_ff @(posedge clk_i) begin
    if (row_fire) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        for (int unsigned m = 0; m < Lanes; m++) begin
          same_bank_q[l][m] <= m < l && lanes[m].bank == lanes[l].bank;
          same_word_q[l][m] <= m <= l && {lanes[m].addr, lanes[m].bank} == {lanes[l].addr, lanes[l].bank};
        end
      end
    end
  end

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++)
    leader[l] = pending_q[l] && (same_bank_q[l] & pending_q) == '0;
    for (int unsigned l = 0; l < Lanes; l++)
    lane_hit[l] = pending_q[l] && (same_word_q[l] & leader) != '0;
    bank_valid = '0;
    bank_addr  = '0;
    for (int unsigned b = 0; b < Lanes; b++) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        if (leader[l] && lanes_q[l].bank == bank_t'(b)) begin
          bank_valid[b] = 1'b1;
          bank_addr[b]  = bank_addr[b] | lanes_q[l].addr;
        end
      end
    end
  end

  for (genvar b = 0; b < Lanes; b++) begin : gen_bank
    bank_t bank_index;  // index of the bank in its copy
    logic [2:0] word;
    assign bank_index = bank_t'(b) & copy_mask;
    assign word       = 3'(bank_index) | 3'(load_step_q << copy_log_q);

    ns_ram_1r1w #(
      .Width(64),
      .Depth(BankWords),
      .Style("auto")
    ) u_bank (
      .clk_i,
      .we_i   (data_valid_i && (copy_log_q != 3'd4 || load_half_q == bank_index[3])),
      .waddr_i(load_addr_q),
      .wdata_i(load_words[word]),
      .re_i   (issue && bank_valid[b]),
      .raddr_i(bank_addr[b]),
      .rdata_o(bank_word[b])
    );
  end

  // Bank outputs for the issued row. They are stable while no row is issued.
  lane_t [Lanes-1:0] read_lanes_q;
  logic [Lanes-1:0] read_hit_q;
  logic [Lanes-1:0][63:0] collected_q, words;
  logic read_done_q, read_last_q, values_ready;

  assign values_ready = !valid_o || ready_i;
  assign issue = busy_q && (!read_done_q || values_ready);
  assign done = issue && pending_q == lane_hit;
  assign row_fire = valid_i && ready_o;
  assign ready_o = !busy_q || done;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q      <= 1'b0;
      read_done_q <= 1'b0;
      valid_o     <= 1'b0;
    end else if (flush_i) begin
      busy_q      <= 1'b0;
      read_done_q <= 1'b0;
      valid_o     <= 1'b0;
    end else begin
      if (ready_o) busy_q <= valid_i;
      if (!read_done_q || values_ready) read_done_q <= done;
      if (values_ready) valid_o <= read_done_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (row_fire) begin
      lanes_q <= lanes;
      last_q  <= last_i;
      for (int unsigned l = 0; l < Lanes; l++) pending_q[l] <= 5'(l) < number_i;
    end else if (issue) pending_q <= pending_q & ~lane_hit;
    if (issue) begin
      read_lanes_q <= lanes_q;
      read_hit_q   <= lane_hit;
      read_last_q  <= last_q;
    end
    if (issue) collected_q <= words;
    if (values_ready) last_o <= read_last_q;
  end

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      words[l] = read_hit_q[l] ? bank_word[read_lanes_q[l].bank] : collected_q[l];
    end
  end

  logic [Lanes-1:0][2:0] offset_q;
  logic [Lanes-1:0][63:0] values_q;
  always_ff @(posedge clk_i) begin
    if (values_ready) begin
      values_q <= words;
      for (int unsigned l = 0; l < Lanes; l++) offset_q[l] <= read_lanes_q[l].offset;
    end
  end
  for (genvar l = 0; l < Lanes; l++) begin : gen_value
    assign values_o[l] = values_q[l] >> {offset_q[l], 3'd0};
  end

  if (2 ** $clog2(
          DictBytes
      ) != DictBytes || DictBytes < 1024 || DictBytes > 524288) begin : gen_bad_size
    $error("dict_decode_table: DictBytes must be a power of two from 1024 to 524288");
  end

  `NS_ASSERT(idle_while_loading, !data_valid_i || !busy_q)

endmodule
