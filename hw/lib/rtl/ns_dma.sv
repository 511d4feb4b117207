// Mover of data within an AXI4 address space: copies ranges of any alignment and length.
//
//   command ─┬─► ns_dma_read ──► ns_dma_align ──► ns_dma_write ─► done
//            └── what each of the others has to know
//
// Bursts end at multiples of BurstBytes, so none crosses a 4 KiB page or a granule. Many are under way, of several commands, reads
// and writes at once; a beat a cycle in each direction. Commands end in their order. Nothing is promised of the order between a
// command's reads and the writes of one before it: whoever copies what it has just written waits for its end.
// What cannot be read is not written. Assumes that the source and the target of a command do not overlap.
`include "ns_assert.svh"

module ns_dma
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
#(
  /// Bytes of a burst, a power of two, 128 to 4096.
  parameter int unsigned BurstBytes  = 1024,
  /// Read bursts under way or in the buffer, a power of two: latency times bandwidth.
  parameter int unsigned ReadBursts  = 16,
  /// Write bursts under way, a power of two.
  parameter int unsigned WriteBursts = 16,
  /// Commands under way, a power of two.
  parameter int unsigned Commands    = 8
) (
  input  logic      clk_i,
  input  logic      rst_ni,
  /// From registers: a command is inside.
  output logic      busy_o,
  /// Command.
  input  dma_cmd_t  cmd_i,
  input  logic      cmd_valid_i,
  output logic      cmd_ready_o,
  /// End of the oldest command.
  output dma_done_t done_o,
  output logic      done_valid_o,
  input  logic      done_ready_i,
  /// Memory. IDs 0 to ReadBursts-1 and 0 to WriteBursts-1.
  ns_axi_if.master  m_axi
);

  localparam int unsigned CountBits = unsigned'($clog2(Commands + 1));

  // What the aligner has to know of a command.
  typedef struct packed {
    logic [5:0] rotate;
    logic       skip;
    logic       flush;
  } align_t;

  // What the write side has to know.
  typedef struct packed {
    logic [31:0] bytes;
    logic [63:0] addr;
  } write_t;

  // Beats that a range of `bytes` at `offset` in a beat touches, modulo what tells two numbers that differ by one apart.
  function automatic logic [1:0] beats(logic [5:0] offset, logic [31:0] bytes);
    beats = 2'((33'(offset) + 33'(bytes) - 33'd1) >> 6);
  endfunction

  function automatic align_t align(dma_cmd_t of);
    logic [1:0] more;
    align.rotate = of.dst[5:0] - of.src[5:0];
    align.skip = of.dst[5:0] < of.src[5:0];
    more = beats(of.dst[5:0], of.bytes) - beats(of.src[5:0], of.bytes) + 2'(align.skip);
    align.flush = more == 2'd1;
  endfunction

  logic [CountBits-1:0] count_q;
  logic take, read_ready, align_ready, write_ready, room, in_valid, in_ready;
  dma_cmd_t cmd;

  assign busy_o = count_q != '0;
  assign room = count_q != CountBits'(Commands);
  assign cmd_ready_o = in_ready && room;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_q <= '0;
    else
      count_q <= count_q + CountBits'(cmd_valid_i && cmd_ready_o) - CountBits'(done_valid_o && done_ready_i);
  end

  ns_skid #(
    .Width($bits(dma_cmd_t))
  ) u_cmd (
    .clk_i,
    .rst_ni,
    .in_valid_i (cmd_valid_i && room),
    .in_ready_o (in_ready),
    .in_data_i  (cmd_i),
    .out_valid_o(in_valid),
    .out_ready_i(read_ready),
    .out_data_o (cmd)
  );

  assign take = in_valid && read_ready;

  // No more commands are inside than these queues hold.
  align_t range;
  logic range_valid, range_taken;
  write_t target;
  logic target_valid, target_taken;

  ns_fifo #(
    .Width($bits(align_t)),
    .Depth(Commands)
  ) u_ranges (
    .clk_i,
    .rst_ni,
    .in_valid_i (take),
    .in_ready_o (align_ready),
    .in_data_i  (align(cmd)),
    .out_valid_o(range_valid),
    .out_ready_i(range_taken),
    .out_data_o (range),
    .count_o    ()
  );

  ns_fifo #(
    .Width($bits(write_t)),
    .Depth(Commands)
  ) u_targets (
    .clk_i,
    .rst_ni,
    .in_valid_i (take),
    .in_ready_o (write_ready),
    .in_data_i  ({cmd.bytes, cmd.dst}),
    .out_valid_o(target_valid),
    .out_ready_i(target_taken),
    .out_data_o (target),
    .count_o    ()
  );

  // The bus's halves.
  ns_axi_if bus ();

  ns_axi_connect u_link (
    .s_axi(bus),
    .m_axi
  );

  logic [511:0] read_data, write_data;
  logic read_error, read_last, read_valid, read_taken, write_error, write_valid, write_taken;

  ns_dma_read #(
    .BurstBytes(BurstBytes),
    .Bursts    (ReadBursts)
  ) u_read (
    .clk_i,
    .rst_ni,
    .addr_i (cmd.src),
    .bytes_i(cmd.bytes),
    .valid_i(in_valid),
    .ready_o(read_ready),
    .data_o (read_data),
    .error_o(read_error),
    .last_o (read_last),
    .valid_o(read_valid),
    .ready_i(read_taken),
    .m_axi  (bus)
  );

  ns_dma_align u_align (
    .clk_i,
    .rst_ni,
    .rotate_i     (range.rotate),
    .skip_i       (range.skip),
    .flush_i      (range.flush),
    .range_valid_i(range_valid),
    .range_ready_o(range_taken),
    .data_i       (read_data),
    .error_i      (read_error),
    .last_i       (read_last),
    .valid_i      (read_valid),
    .ready_o      (read_taken),
    .data_o       (write_data),
    .error_o      (write_error),
    .valid_o      (write_valid),
    .ready_i      (write_taken)
  );

  ns_dma_write #(
    .BurstBytes(BurstBytes),
    .Bursts    (WriteBursts),
    .Ranges    (Commands),
    .Depth     (4 * BurstBytes / 64)
  ) u_write (
    .clk_i,
    .rst_ni,
    .addr_i      (target.addr),
    .bytes_i     (target.bytes),
    .valid_i     (target_valid),
    .ready_o     (target_taken),
    .data_i      (write_data),
    .error_i     (write_error),
    .data_valid_i(write_valid),
    .data_ready_o(write_taken),
    .done_o,
    .done_valid_o,
    .done_ready_i,
    .m_axi       (bus)
  );

  if (BurstBytes < 128) begin : gen_bad_burst
    $error("ns_dma: BurstBytes must be at least 128");
  end

  `NS_ASSERT(a_byte_at_least, !cmd_valid_i || cmd_i.bytes != '0)
  `NS_ASSERT(queues_have_room, !take || (align_ready && write_ready))

endmodule
