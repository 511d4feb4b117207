// CRC-32C (Castagnoli, as in iSCSI) of whole lines of 64 bytes. A register's value is that of the usual algorithm, not inverted.
package nearpm_crc_pkg;

  typedef logic [31:0] crc_t;

  // Which bits of a line, the first one lowest, each bit of a register that was 0 is the parity of, from the last one back.
  function automatic logic [31:0][511:0] masks();
    logic [31:0] effect;
    effect = 32'h82F6_3B78;
    for (int i = 511; i >= 0; i--) begin
      for (int b = 0; b < 32; b++) masks[b][i] = effect[b];
      effect = (effect >> 1) ^ (effect[0] ? 32'h82F6_3B78 : 32'd0);
    end
  endfunction

  localparam logic [31:0][511:0] Masks = masks();

  /// The register that was 0, after a line.
  function automatic crc_t of_line(logic [511:0] line);
    for (int unsigned b = 0; b < 32; b++) of_line[b] = ^(line & Masks[b]);
  endfunction

  /// A register, after a line of zeros.
  function automatic crc_t past_line(crc_t crc);
    for (int unsigned b = 0; b < 32; b++) past_line[b] = ^(crc & Masks[b][31:0]);
  endfunction

  /// A line whose CRC, from a register of 0, is that of the first 60 bytes of `line` from the usual start on: zeros in front do nothing.
  function automatic logic [511:0] first_60(logic [479:0] line);
    return {line[479:32], ~line[31:0], 32'd0};
  endfunction

endpackage
