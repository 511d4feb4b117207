// SPDX-License-Identifier: Apache-2.0

// CRC-32C (Castagnoli, as in iSCSI) of whole lines of 64 bytes. Register values are not inverted.
package nearpm_crc_pkg;

  typedef logic [31:0] crc_t;

  // For each register bit: the mask of line bits whose parity it is, for a register of 0. The masks
  // are computed from the last bit of the line back.
  function automatic logic [31:0][511:0] masks();
    logic [31:0] effect;
    effect = 32'h82F6_3B78;
    for (int i = 511; i >= 0; i--) begin
      for (int b = 0; b < 32; b++) masks[b][i] = effect[b];
      effect = (effect >> 1) ^ (effect[0] ? 32'h82F6_3B78 : 32'd0);
    end
  endfunction

  localparam logic [31:0][511:0] Masks = masks();

  /// Register after a line, starting from 0.
  function automatic crc_t of_line(logic [511:0] line);
    for (int unsigned b = 0; b < 32; b++) of_line[b] = ^(line & Masks[b]);
  endfunction

  /// Register after a line of zeros.
  function automatic crc_t past_line(crc_t crc);
    for (int unsigned b = 0; b < 32; b++) past_line[b] = ^(crc & Masks[b][31:0]);
  endfunction

  /// Converts the first 60 bytes of `line`: the result's CRC from a register of 0 equals theirs
  /// from the standard start value. Leading zeros leave a register of 0 unchanged.
  function automatic logic [511:0] first_60(logic [479:0] line);
    return {line[479:32], ~line[31:0], 32'd0};
  endfunction

endpackage
