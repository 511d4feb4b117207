// A unit: carries out one command at a time.
module nearpm_unit
  import nearpm_pkg::*;
  import nearpm_unit_pkg::*;
#(
  /// Bytes of a burst.
  parameter int unsigned BurstBytes = 1024,
  /// Bursts under way each way, a power of two; IDs 0 to Bursts-1.
  parameter int unsigned Bursts = 4
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  /// Command.
  input  job_t     job_i,
  input  logic     job_valid_i,
  /// It rests. From a register.
  output logic     job_ready_o,
  /// How the command ended.
  output end_t     end_o,
  output logic     end_valid_o,
  input  logic     end_ready_i,
  /// Memory, addresses of the media.
  ns_axi_if.master m_axi
);

  move_t move;
  logic move_valid, moved, read_error, write_error;
  logic [511:0] line;
  logic [31:0] crc;

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
    .read_error_i (read_error),
    .write_error_i(write_error),
    .line_i       (line),
    .crc_i        (crc)
  );

  nearpm_mover #(
    .BurstBytes(BurstBytes),
    .Bursts    (Bursts)
  ) u_mover (
    .clk_i,
    .rst_ni,
    .move_i       (move),
    .valid_i      (move_valid),
    .ended_o      (moved),
    .read_error_o (read_error),
    .write_error_o(write_error),
    .line_o       (line),
    .crc_o        (crc),
    .m_axi
  );

endmodule
