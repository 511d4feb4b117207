// CRC-32C (Castagnoli, as in iSCSI) of whole lines of 64 bytes. A register's value is that of the usual algorithm, not inverted.
package nearpm_crc_pkg;

  typedef logic [31:0] crc_t;

  // What each bit of a line, the first one lowest, does to a register of zeros by the end of the line.
  function automatic logic [511:0][31:0] effects();
    logic [31:0] effect;
    effect = 32'h82F6_3B78;
    for (int i = 511; i >= 0; i--) begin
      effects[i] = effect;
      effect = (effect >> 1) ^ (effect[0] ? 32'h82F6_3B78 : 32'd0);
    end
  endfunction

  localparam logic [511:0][31:0] Effects = effects();

  // Which bits of a line a bit of the register is the parity of.
  function automatic logic [511:0] bits_of(logic [4:0] b);
    for (int unsigned i = 0; i < 512; i++) bits_of[i] = Effects[i][b];
  endfunction

  /// The register that was 0, after a line.
  function automatic crc_t of_line(logic [511:0] line);
    for (int unsigned b = 0; b < 32; b++) of_line[b] = ^(line & bits_of(5'(b)));
  endfunction

  /// A register, after a line of zeros.
  function automatic crc_t past_line(crc_t crc);
    past_line = '0;
    for (int unsigned i = 0; i < 32; i++) past_line ^= Effects[i] & {32{crc[i]}};
  endfunction

  /// A line whose CRC, from a register of 0, is that of the first 60 bytes of `line` from the usual start on: zeros in front do nothing.
  function automatic logic [511:0] first_60(logic [479:0] line);
    return {line[479:32], ~line[31:0], 32'd0};
  endfunction

endpackage
