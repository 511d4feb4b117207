// SPDX-License-Identifier: Apache-2.0

// DMA engine within an AXI4 address space: copies ranges of any alignment and length.
//
// command ─┬─► ns_dma_read ──► ns_dma_align ──► ns_dma_write ─► done
// └── parameters of the range for align and write
//
// Bursts end at multiples of BurstBytes, so none crosses a 4 KiB page or a granule. Several bursts
// of several commands are in flight, reads and writes at once, with a beat a cycle in each
// direction. Commands end in order. A command's reads are not ordered after the writes of the
// command before it. So a copy of data just written has to wait for the end of the first command.
//
// Data that cannot be read is not written. Assumes that source and target of a command do not
// overlap.
`include "ns_assert.svh"

module ns_dma
  import ns_axi_pkg::*;
  import ns_dma_pkg::*;
#(
  /// Bytes of a burst, a power of two, 128 to 4096.
  parameter int unsigned BurstBytes  = 1024,
  /// Read bursts in flight or in the buffer, a power of two: latency times bandwidth.
  parameter int unsigned ReadBursts  = 16,
  /// Write bursts in flight, a power of two.
  parameter int unsigned WriteBursts = 16,
  /// Commands in flight, a power of two.
  parameter int unsigned Commands    = 8
) (
  input  logic      clk_i,
  input  logic      rst_ni,
  /// From registers: a command is in flight.
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

  // Parameters of a command for the aligner.
  typedef struct packed {
    logic [5:0] rotate;
    logic       skip;
    logic       flush;
  } align_t;

  // Parameters of a command for the write side.
  typedef struct packed {
    logic [31:0] bytes;
    logic [63:0] addr;
  } write_t;

  // Beats that a range of `bytes` at `offset` in a beat touches, modulo 4: two such counts differ
  // by at most one.
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
  logic cmd_fire, read_ready, align_ready, write_ready, cmd_allowed, cmd_valid, cmd_slot_ready;
  dma_cmd_t cmd;

  assign busy_o = count_q != '0;
  assign cmd_allowed = count_q != CountBits'(Commands);
  assign cmd_ready_o = cmd_slot_ready && cmd_allowed;

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
    .in_valid_i (cmd_valid_i && cmd_allowed),
    .in_ready_o (cmd_slot_ready),
    .in_data_i  (cmd_i),
    .out_valid_o(cmd_valid),
    .out_ready_i(read_ready),
    .out_data_o (cmd)
  );

  assign cmd_fire = cmd_valid && read_ready;

  // At most `Commands` commands are in flight, so these queues never overflow.
  align_t range;
  logic range_valid, range_ready;
  write_t target;
  logic target_valid, target_ready;

  ns_fifo #(
    .Width($bits(align_t)),
    .Depth(Commands)
  ) u_ranges (
    .clk_i,
    .rst_ni,
    .in_valid_i (cmd_fire),
    .in_ready_o (align_ready),
    .in_data_i  (align(cmd)),
    .out_valid_o(range_valid),
    .out_ready_i(range_ready),
    .out_data_o (range),
    .count_o    ()
  );

  ns_fifo #(
    .Width($bits(write_t)),
    .Depth(Commands)
  ) u_targets (
    .clk_i,
    .rst_ni,
    .in_valid_i (cmd_fire),
    .in_ready_o (write_ready),
    .in_data_i  ({cmd.bytes, cmd.dst}),
    .out_valid_o(target_valid),
    .out_ready_i(target_ready),
    .out_data_o (target),
    .count_o    ()
  );

  // The bus: its halves belong to the read side and the write side.
  ns_axi_if bus ();

  ns_axi_connect u_connect (
    .s_axi(bus),
    .m_axi
  );

  logic [511:0] read_data, write_data;
  logic
      read_error,
      read_last,
      read_beat_valid,
      read_beat_ready,
      write_error,
      write_beat_valid,
      write_beat_ready;

  ns_dma_read #(
    .BurstBytes(BurstBytes),
    .Bursts    (ReadBursts)
  ) u_read (
    .clk_i,
    .rst_ni,
    .addr_i (cmd.src),
    .bytes_i(cmd.bytes),
    .valid_i(cmd_valid),
    .ready_o(read_ready),
    .data_o (read_data),
    .error_o(read_error),
    .last_o (read_last),
    .valid_o(read_beat_valid),
    .ready_i(read_beat_ready),
    .m_axi  (bus)
  );

  ns_dma_align u_align (
    .clk_i,
    .rst_ni,
    .rotate_i     (range.rotate),
    .skip_i       (range.skip),
    .flush_i      (range.flush),
    .range_valid_i(range_valid),
    .range_ready_o(range_ready),
    .data_i       (read_data),
    .error_i      (read_error),
    .last_i       (read_last),
    .valid_i      (read_beat_valid),
    .ready_o      (read_beat_ready),
    .data_o       (write_data),
    .error_o      (write_error),
    .valid_o      (write_beat_valid),
    .ready_i      (write_beat_ready)
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
    .ready_o     (target_ready),
    .data_i      (write_data),
    .error_i     (write_error),
    .data_valid_i(write_beat_valid),
    .data_ready_o(write_beat_ready),
    .done_o,
    .done_valid_o,
    .done_ready_i,
    .m_axi       (bus)
  );

  if (BurstBytes < 128) begin : gen_bad_burst
    $error("ns_dma: BurstBytes must be at least 128");
  end

  `NS_ASSERT(length_is_not_zero, !cmd_valid_i || cmd_i.bytes != '0)
  `NS_ASSERT(queues_have_room, !cmd_fire || (align_ready && write_ready))

endmodule
