// SPDX-License-Identifier: Apache-2.0

// Leaves lines out of a queue that is saved: a line that waits for a dropped command, with all
// lines after it. All of them are younger than the unanswered store, whatever its channel.
module nearpm_save_filter
  import nearpm_pkg::*;
(
  input  logic         clk_i,
  /// Commands that are not saved.
  input  commands_t    dropped_i,
  /// A line of the reserved range with two entries of a queue. The lines of each queue come in
  /// order, from `index_i` 0 on; a line may be repeated.
  input  logic         entries_valid_i,
  input  logic [6:0]   index_i,
  input  logic [511:0] data_i,
  /// The same line without the entries that are left out.
  output logic [511:0] data_o
);

  count_t end_q, end_number;  // number of the first entry that is left out
  count_t [1:0] number;

  for (genvar e = 0; e < 2; e++) begin : gen_number
    assign number[e] = count_t'({index_i, 1'(e)});
  end

  always_comb begin
    end_number = (index_i == '0) ? '1 : end_q;
    for (int unsigned e = 0; e < 2; e++)
    if (data_i[256*e+63] && (data_i[256*e+128+:Commands] & dropped_i) != '0 && number[e] < end_number)
      end_number = number[e];
  end

  always_ff @(posedge clk_i) if (entries_valid_i) end_q <= end_number;

  always_comb begin
    data_o = data_i;
    for (int unsigned e = 0; e < 2; e++)
    if (entries_valid_i && number[e] >= end_number) data_o[256*e+:256] = '0;
  end

endmodule
