// SPDX-License-Identifier: Apache-2.0

// Copies rows in the order of an index list.
//
//   list ─► ns_dma_read ─► one index per cycle ─► index * row bytes ─► ns_dma: one copy per row
//
// An index past the table, a stop or a read error ends the job. Rows that precede it are copied.
`include "ns_assert.svh"

module row_shuffle_core
  import ns_dma_pkg::*;
#(
  /// log2 of the bursts that each master has in flight.
  parameter int unsigned IdBits = 4,
  /// Size of a burst in bytes.
  parameter int unsigned BurstBytes = 4096
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// The block is not idle. Driven by registers.
  output logic         busy_o,
  /// Starts a job, only while idle. The arguments that follow are valid and stable until it ends.
  input  logic         start_i,
  /// Address of the list, a multiple of 64.
  input  logic [63:0]  index_i,
  /// Addresses of table and target.
  input  logic [63:0]  src_i,
  input  logic [63:0]  dst_i,
  /// Number of indexes.
  input  logic [31:0]  count_i,
  /// Size of a row in bytes, 1 to 65536.
  input  logic [16:0]  row_bytes_i,
  /// Number of rows in the table.
  input  logic [31:0]  rows_i,
  /// An index is in the middle of a record of 8, 16 or 32 bytes; 0: the list holds bare indexes of
  /// 4 bytes.
  input  logic [1:0]   records_i,
  /// End the job early.
  input  logic         stop_i,
  /// The job ends, for one cycle, with these results.
  output logic         done_o,
  output logic         stopped_o,
  output logic         bad_index_o,
  output dma_done_t    errors_o,
  /// Number of rows whose copy has begun.
  output logic [31:0]  position_o,
  /// Memory ports for the list and for the rows. Addresses are those of the PM window.
  ns_axi_if.master     m_list,
  ns_axi_if.master     m_rows
);

  localparam int unsigned Bursts = 1 << IdBits;
  localparam int unsigned RequestBytes = 4096;
  localparam int unsigned Commands = 32;
  localparam int unsigned CommandBits = unsigned'($clog2(Commands + 1));

  typedef enum logic [1:0] {
    StIdle,
    StRun,
    StDrain,   // waits for accesses in flight
    StDone
  } state_e;

  state_e state_q;
  logic stop_q, bad_index_q, halt;
  dma_done_t errors_q;

  // ---------------------------------------------------------------- list

  logic [63:0] list_addr_q;
  logic [36:0] list_left_q;  // in bytes: at most 2**31 records of 32 bytes
  logic [31:0] request_bytes;
  logic request_valid, request_ready, request_fire, beat_valid, beat_ready, beat_error, beat_last;
  logic [511:0] beat;
  logic [3:0] reads_in_flight_q;  // in requests

  assign request_bytes = (list_left_q > 37'(RequestBytes)) ? 32'(RequestBytes) : list_left_q[31:0];
  assign request_valid = state_q == StRun && list_left_q != '0 && reads_in_flight_q != '1 && !halt;
  assign request_fire = request_valid && request_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      list_left_q <= '0;
      reads_in_flight_q <= '0;
    end else begin
      if (start_i) list_left_q <= (37'(count_i) << 2) << records_i;
      else if (request_fire) list_left_q <= list_left_q - 37'(request_bytes);
      reads_in_flight_q <= reads_in_flight_q + 4'(request_fire) - 4'(beat_valid && beat_ready && beat_last);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) list_addr_q <= index_i;
    else if (request_fire) list_addr_q <= list_addr_q + 64'(request_bytes);
  end

  ns_axi_if list ();
  ns_dma_read #(
    .BurstBytes(1024),
    .Bursts    (Bursts)
  ) u_list (
    .clk_i,
    .rst_ni,
    .addr_i (list_addr_q),
    .bytes_i(request_bytes),
    .valid_i(request_valid),
    .ready_o(request_ready),
    .data_o (beat),
    .error_o(beat_error),
    .last_o (beat_last),
    .valid_o(beat_valid),
    .ready_i(beat_ready),
    .m_axi  (list)
  );
  assign list.aw = '0;
  assign list.aw_valid = 1'b0;
  assign list.w = '0;
  assign list.w_valid = 1'b0;
  assign list.b_ready = 1'b1;
  ns_axi_connect u_list_link (
    .s_axi(list),
    .m_axi(m_list)
  );

  // ---------------------------------------------------------------- one index per cycle

  logic [3:0] word_q, word_last, word;  // position of the index in its beat, in units of 4 bytes
  logic [31:0] index, issued_q;  // issued_q: rows issued
  logic index_valid, index_ready, in_table, discard;

  always_comb begin
    unique case (records_i)
      2'd0: {word, word_last} = {word_q, 4'd15};
      2'd1: {word, word_last} = {word_q[2:0], 1'b1, 4'd7};
      2'd2: {word, word_last} = {word_q[1:0], 2'd2, 4'd3};
      default: {word, word_last} = {word_q[0], 3'd4, 4'd1};
    endcase
  end
  assign index = beat[32*word+:32];
  assign in_table = index < rows_i;
  assign discard = state_q != StRun || halt;
  assign index_valid = beat_valid && !discard && issued_q != count_i;
  assign beat_ready = discard || issued_q == count_i || (index_ready && (word_q == word_last || issued_q + 1'b1 == count_i));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) word_q <= '0;
    else if (start_i) word_q <= '0;
    else if (index_valid && index_ready) word_q <= (word_q == word_last) ? '0 : word_q + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (start_i) issued_q <= '0;
    else if (index_valid && index_ready && in_table && !beat_error) issued_q <= issued_q + 1'b1;
  end

  // Compute the row's offset in a two-stage product. The queue has room for both stages.
  logic [1:0] product_valid_q;
  logic [31:0] index_q;
  logic [48:0] product_q;
  logic [63:0] row_addr;
  logic [2:0] row_count;
  logic row_valid, row_ready;

  assign index_ready = 32'(row_count) + 32'(product_valid_q[0]) + 32'(product_valid_q[1]) < 32'd4;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) product_valid_q <= '0;
    else
      product_valid_q <= {
        product_valid_q[0], index_valid && index_ready && in_table && !beat_error
      };
  end
  always_ff @(posedge clk_i) begin
    index_q   <= index;
    product_q <= index_q * row_bytes_i;
  end

  ns_fifo #(
    .Width(64),
    .Depth(4)
  ) u_rows (
    .clk_i,
    .rst_ni,
    .in_valid_i (product_valid_q[1]),
    .in_ready_o (),
    .in_data_i  (src_i + 64'(product_q)),
    .out_valid_o(row_valid),
    .out_ready_i(row_ready),
    .out_data_o (row_addr),
    .count_o    (row_count)
  );

  // ---------------------------------------------------------------- rows

  logic [63:0] dst_q;
  logic dma_ready, dma_done_valid, dma_busy;
  dma_done_t dma_done;
  logic [CommandBits-1:0] rows_in_flight_q;

  always_ff @(posedge clk_i) begin
    if (start_i) dst_q <= dst_i;
    else if (row_valid && row_ready) dst_q <= dst_q + 64'(row_bytes_i);
    if (start_i) position_o <= '0;
    else if (row_valid && row_ready) position_o <= position_o + 1'b1;
  end
  assign row_ready = dma_ready;

  ns_dma #(
    .BurstBytes (BurstBytes),
    .ReadBursts (Bursts),
    .WriteBursts(Bursts),
    .Commands   (Commands)
  ) u_dma (
    .clk_i,
    .rst_ni,
    .busy_o      (dma_busy),
    .cmd_i       ('{bytes: 32'(row_bytes_i), dst: dst_q, src: row_addr}),
    .cmd_valid_i (row_valid),
    .cmd_ready_o (dma_ready),
    .done_o      (dma_done),
    .done_valid_o(dma_done_valid),
    .done_ready_i(1'b1),
    .m_axi       (m_rows)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) rows_in_flight_q <= '0;
    else
      rows_in_flight_q <= rows_in_flight_q + CommandBits'(row_valid && row_ready) - CommandBits'(dma_done_valid);
  end

  // ---------------------------------------------------------------- end

  logic list_done, rows_done;
  assign halt = stop_q || bad_index_q || errors_q != '0;
  assign list_done = reads_in_flight_q == '0 && (list_left_q == '0 || halt);
  assign rows_done = product_valid_q == '0 && !row_valid && rows_in_flight_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      stop_q      <= 1'b0;
      bad_index_q <= 1'b0;
      errors_q    <= '0;
    end else begin
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StRun;
        StRun:  if (halt || issued_q == count_i) state_q <= StDrain;
        StDrain:   if (list_done && rows_done) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
      if (start_i) begin
        stop_q      <= 1'b0;
        bad_index_q <= 1'b0;
        errors_q    <= '0;
      end else begin
        if (stop_i && state_q == StRun && !halt && issued_q != count_i) stop_q <= 1'b1;
        if (index_valid && index_ready && !beat_error && !in_table) bad_index_q <= 1'b1;
        if (index_valid && beat_error) errors_q.read_error <= 1'b1;
        if (dma_done_valid && dma_done.read_error) errors_q.read_error <= 1'b1;
        if (dma_done_valid && dma_done.write_error) errors_q.write_error <= 1'b1;
      end
    end
  end

  assign done_o = state_q == StDone;
  assign stopped_o = stop_q;
  assign bad_index_o = bad_index_q;
  assign errors_o = errors_q;
  assign busy_o = state_q != StIdle || dma_busy;

  `NS_ASSERT(start_when_idle, !start_i || (state_q == StIdle && !dma_busy))
  `NS_ASSERT(row_has_room, !product_valid_q[1] || row_count != 3'd4)

endmodule
