// Copies rows in the order of a list of indexes.
//
//   list ─► ns_dma_read ─► indexes, one a cycle ─► index * bytes of a row ─► ns_dma: a copy for each row, many under way
//
// An index beyond the table ends it; the rows before it are copied. So do a stop and what could not be read.
`include "ns_assert.svh"

module row_shuffle_core
  import ns_dma_pkg::*;
#(
  /// Bits of an ID: so many bursts of each master are under way, as a power of two.
  parameter int unsigned IdBits = 4,
  /// Bytes of a burst.
  parameter int unsigned BurstBytes = 4096
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  /// From registers: it works.
  output logic         busy_o,
  /// Begin; at rest. What follows stays until the end, and is valid.
  input  logic         start_i,
  /// List: its first byte; a multiple of 64.
  input  logic [63:0]  index_i,
  /// Table, and target.
  input  logic [63:0]  src_i,
  input  logic [63:0]  dst_i,
  /// Indexes.
  input  logic [31:0]  count_i,
  /// 1 to 65536.
  input  logic [16:0]  row_bytes_i,
  /// Of the table.
  input  logic [31:0]  rows_i,
  /// An index stands in the middle of 8, 16, 32 bytes; 0: it has 4.
  input  logic [1:0]   records_i,
  /// End early.
  input  logic         stop_i,
  /// It has ended, for one cycle, and how.
  output logic         done_o,
  output logic         stopped_o,
  output logic         bad_index_o,
  output dma_done_t    errors_o,
  /// Rows whose copy has begun.
  output logic [31:0]  position_o,
  /// Memory, addresses of the PM window: the list, and the rows.
  ns_axi_if.master     m_list,
  ns_axi_if.master     m_rows
);

  localparam int unsigned Bursts = 1 << IdBits;
  localparam int unsigned PieceBytes = 4096;
  localparam int unsigned Commands = 32;
  localparam int unsigned CommandBits = unsigned'($clog2(Commands + 1));

  typedef enum logic [1:0] {
    StIdle,
    StWork,
    StEnd,   // what is under way ends
    StDone
  } state_e;

  state_e state_q;
  logic stop_q, bad_q, halt;
  dma_done_t errors_q;

  // ---------------------------------------------------------------- the list

  logic [63:0] list_addr_q;
  logic [36:0] list_left_q;  // bytes: 2**31 records of 32 at most
  logic [31:0] piece;
  logic piece_valid, piece_ready, piece_fire, beat_valid, beat_taken, beat_error, beat_last;
  logic [511:0] beat;
  logic [3:0] open_q;  // pieces

  assign piece = (list_left_q > 37'(PieceBytes)) ? 32'(PieceBytes) : list_left_q[31:0];
  assign piece_valid = state_q == StWork && list_left_q != '0 && open_q != '1 && !halt;
  assign piece_fire = piece_valid && piece_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      list_left_q <= '0;
      open_q <= '0;
    end else begin
      if (start_i) list_left_q <= (37'(count_i) << 2) << records_i;
      else if (piece_fire) list_left_q <= list_left_q - 37'(piece);
      open_q <= open_q + 4'(piece_fire) - 4'(beat_valid && beat_taken && beat_last);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) list_addr_q <= index_i;
    else if (piece_fire) list_addr_q <= list_addr_q + 64'(piece);
  end

  ns_axi_if list ();
  ns_dma_read #(
    .BurstBytes(1024),
    .Bursts    (Bursts)
  ) u_list (
    .clk_i,
    .rst_ni,
    .addr_i (list_addr_q),
    .bytes_i(piece),
    .valid_i(piece_valid),
    .ready_o(piece_ready),
    .data_o (beat),
    .error_o(beat_error),
    .last_o (beat_last),
    .valid_o(beat_valid),
    .ready_i(beat_taken),
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

  // ---------------------------------------------------------------- an index a cycle

  logic [3:0] place_q, place_last, place;  // of the index in its beat, in units of 4 bytes
  logic [31:0] index, asked_q;  // rows asked for
  logic index_valid, index_taken, in_table, sink;

  always_comb begin
    unique case (records_i)
      2'd0: {place, place_last} = {place_q, 4'd15};
      2'd1: {place, place_last} = {place_q[2:0], 1'b1, 4'd7};
      2'd2: {place, place_last} = {place_q[1:0], 2'd2, 4'd3};
      default: {place, place_last} = {place_q[0], 3'd4, 4'd1};
    endcase
  end
  assign index = beat[32*place+:32];
  assign in_table = index < rows_i;
  assign sink = state_q != StWork || halt;
  assign index_valid = beat_valid && !sink && asked_q != count_i;
  assign beat_taken = sink || asked_q == count_i || (index_taken && (place_q == place_last || asked_q + 1'b1 == count_i));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) place_q <= '0;
    else if (start_i) place_q <= '0;
    else if (index_valid && index_taken) place_q <= (place_q == place_last) ? '0 : place_q + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (start_i) asked_q <= '0;
    else if (index_valid && index_taken && in_table && !beat_error) asked_q <= asked_q + 1'b1;
  end

  // Where the row stands: a product in two steps, into a queue that has room for both.
  logic [1:0] product_valid_q;
  logic [31:0] index_q;
  logic [48:0] product_q;
  logic [63:0] row_addr;
  logic [2:0] row_count;
  logic row_valid, row_taken;

  assign index_taken = 32'(row_count) + 32'(product_valid_q[0]) + 32'(product_valid_q[1]) < 32'd4;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) product_valid_q <= '0;
    else
      product_valid_q <= {
        product_valid_q[0], index_valid && index_taken && in_table && !beat_error
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
    .out_ready_i(row_taken),
    .out_data_o (row_addr),
    .count_o    (row_count)
  );

  // ---------------------------------------------------------------- rows

  logic [63:0] to_q;
  logic dma_ready, dma_done_valid, dma_busy;
  dma_done_t dma_done;
  logic [CommandBits-1:0] rows_open_q;

  always_ff @(posedge clk_i) begin
    if (start_i) to_q <= dst_i;
    else if (row_valid && row_taken) to_q <= to_q + 64'(row_bytes_i);
    if (start_i) position_o <= '0;
    else if (row_valid && row_taken) position_o <= position_o + 1'b1;
  end
  assign row_taken = dma_ready;

  ns_dma #(
    .BurstBytes (BurstBytes),
    .ReadBursts (Bursts),
    .WriteBursts(Bursts),
    .Commands   (Commands)
  ) u_dma (
    .clk_i,
    .rst_ni,
    .busy_o      (dma_busy),
    .cmd_i       ('{bytes: 32'(row_bytes_i), dst: to_q, src: row_addr}),
    .cmd_valid_i (row_valid),
    .cmd_ready_o (dma_ready),
    .done_o      (dma_done),
    .done_valid_o(dma_done_valid),
    .done_ready_i(1'b1),
    .m_axi       (m_rows)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) rows_open_q <= '0;
    else
      rows_open_q <= rows_open_q + CommandBits'(row_valid && row_taken) - CommandBits'(dma_done_valid);
  end

  // ---------------------------------------------------------------- the end

  logic list_over, rows_over;
  assign halt = stop_q || bad_q || errors_q != '0;
  assign list_over = open_q == '0 && (list_left_q == '0 || halt);
  assign rows_over = product_valid_q == '0 && !row_valid && rows_open_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      stop_q   <= 1'b0;
      bad_q    <= 1'b0;
      errors_q <= '0;
    end else begin
      unique case (state_q)
        StIdle:  if (start_i) state_q <= StWork;
        StWork:  if (halt || asked_q == count_i) state_q <= StEnd;
        StEnd:   if (list_over && rows_over) state_q <= StDone;
        default: state_q <= StIdle;
      endcase
      if (start_i) begin
        stop_q   <= 1'b0;
        bad_q    <= 1'b0;
        errors_q <= '0;
      end else begin
        if (stop_i && state_q == StWork && !halt && asked_q != count_i) stop_q <= 1'b1;
        if (index_valid && index_taken && !beat_error && !in_table) bad_q <= 1'b1;
        if (index_valid && beat_error) errors_q.read_error <= 1'b1;
        if (dma_done_valid && dma_done.read_error) errors_q.read_error <= 1'b1;
        if (dma_done_valid && dma_done.write_error) errors_q.write_error <= 1'b1;
      end
    end
  end

  assign done_o = state_q == StDone;
  assign stopped_o = stop_q;
  assign bad_index_o = bad_q;
  assign errors_o = errors_q;
  assign busy_o = state_q != StIdle || dma_busy;

  `NS_ASSERT(starts_at_rest, !start_i || (state_q == StIdle && !dma_busy))
  `NS_ASSERT(rows_have_room, !product_valid_q[1] || row_count != 3'd4)

endmodule
