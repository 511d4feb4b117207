// SPDX-License-Identifier: Apache-2.0

// Finds the commands that an access overlaps, in the same cycle.
module nearpm_range_match
  import nearpm_pkg::*;
(
  /// Commands and their lines.
  input  commands_t              commands_i,
  input  ranges_t [Commands-1:0] ranges_i,
  /// The lookup is valid.
  input  logic                   valid_i,
  /// Lines that a command reads count too; otherwise only those that it writes.
  input  logic                   write_i,
  /// Lines of the access.
  input  range_t                 lines_i,
  /// Commands that it overlaps.
  output commands_t              commands_o
);

  function automatic logic overlaps(range_t of, range_t lines);
    overlaps = of.valid && lines.valid && of.first <= lines.last && lines.first <= of.last;
  endfunction

  always_comb begin
    commands_o = '0;
    if (valid_i && commands_i != '0) begin
      for (int unsigned n = 0; n < Commands; n++)
      commands_o[n] = commands_i[n] && (overlaps(ranges_i[n].writes, lines_i) ||
                                        (write_i && overlaps(ranges_i[n].reads, lines_i)));
    end
  end

endmodule
