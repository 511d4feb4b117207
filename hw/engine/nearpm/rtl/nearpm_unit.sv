// SPDX-License-Identifier: Apache-2.0

// Unit: executes one command at a time.
`include "ns_assert.svh"

module nearpm_unit
  import nearpm_pkg::*;
  import nearpm_unit_pkg::*;
#(
  /// Bytes of a burst.
  parameter int unsigned BurstBytes = 1024,
  /// Bursts in flight per direction, a power of two; IDs are 0 to Bursts-1.
  parameter int unsigned Bursts = 4,
  /// Lines that the unit may read in 1024 cycles, 1 to 1024. 1024: as many as the bus carries.
  parameter int unsigned Lines = 1024
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// Command.
  input  job_t     job_i,
  input  logic     job_valid_i,
  /// The unit is idle. From a register.
  output logic     job_ready_o,
  /// Result of the command.
  output unit_end_t     end_o,
  output logic     end_valid_o,
  input  logic     end_ready_i,
  /// Memory; media addresses.
  ns_axi_if.master m_axi
);

  move_t move;
  logic move_valid, moved, read_error, write_error, read_last, read_next, record_last, record_made;
  logic [MediaBits-1:0] read_source;
  logic [16:0] read_bytes;
  logic [511:0] line;
  logic [31:0] crc;
  logic header_found;
  ns_axi_if mover ();

  nearpm_control u_control (
    .clk_i,
    .rst_ni,
    .job_i,
    .job_valid_i,
    .job_ready_o,
    .end_o,
    .end_valid_o,
    .end_ready_i,
    .move_o       (move),
    .move_valid_o (move_valid),
    .moved_i      (moved),
    .read_source_o(read_source),
    .read_bytes_o (read_bytes),
    .read_last_o  (read_last),
    .read_next_i  (read_next),
    .record_last_o(record_last),
    .record_made_i(record_made),
    .read_error_i (read_error),
    .write_error_i(write_error),
    .line_i       (line),
    .crc_i        (crc),
    .header_found_i       (header_found)
  );

  nearpm_mover #(
    .BurstBytes(BurstBytes),
    .Bursts    (Bursts)
  ) u_mover (
    .clk_i,
    .rst_ni,
    .move_i       (move),
    .valid_i      (move_valid),
    .read_source_i(read_source),
    .read_bytes_i (read_bytes),
    .read_last_i  (read_last),
    .read_next_o  (read_next),
    .record_last_i(record_last),
    .record_made_o(record_made),
    .move_done_o      (moved),
    .read_error_o (read_error),
    .write_error_o(write_error),
    .line_o       (line),
    .crc_o        (crc),
    .header_found_o       (header_found),
    .m_axi        (mover)
  );

  // Lines read ahead of the permitted rate, in 1/1024 cycles. No burst is requested until it is 0.
  localparam int unsigned AheadBits = 10 + unsigned'($clog2(BurstBytes / 64)) + 1;
  logic [AheadBits-1:0] ahead_q;
  logic open;

  assign open = Lines == 1024 || ahead_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ahead_q <= '0;
    else if (m_axi.ar_valid && m_axi.ar_ready)
      ahead_q <= AheadBits'((AheadBits'(m_axi.ar.len) + 1'b1) << 10) - AheadBits'(Lines);
    else if (ahead_q > AheadBits'(Lines)) ahead_q <= ahead_q - AheadBits'(Lines);
    else ahead_q <= '0;
  end

  ns_axi_gate u_pace (
    .aw_open_i(1'b1),
    .ar_open_i(open),
    .s_axi    (mover),
    .m_axi
  );

  if (Lines < 1 || Lines > 1024) begin : gen_bad_lines
    $error("nearpm_unit: Lines has to be 1 to 1024");
  end

  `NS_ASSERT(address_is_stable, !$past(rst_ni) || !$past(m_axi.ar_valid && !m_axi.ar_ready)
             || m_axi.ar_valid)

endmodule
