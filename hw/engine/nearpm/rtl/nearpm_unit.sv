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
  parameter int unsigned Bursts = 4
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
    .m_axi
  );

  `NS_ASSERT(address_is_stable, !$past(rst_ni) || !$past(m_axi.ar_valid && !m_axi.ar_ready)
             || m_axi.ar_valid)

endmodule
