// SPDX-License-Identifier: Apache-2.0

// Firmware Slot Information log (NVMe 1.4, 5.14.1.3): the single slot, which is active and cannot
// be replaced.
module nvme_log_firmware
  import nvme_pkg::*;
(
  input  logic         clk_i,
  /// Read a beat.
  input  logic         re_i,
  /// Beat, of the 64 of a page.
  input  logic [5:0]   beat_i,
  /// The beat, one cycle later.
  output logic [511:0] data_o
);

  // AFI at byte 0, FRS1 at byte 8, its first character first.
  function automatic logic [511:0] page();
    logic [511:0] data = '0;
    data[2:0] = 3'd1;
    for (int unsigned i = 0; i < 8; i++) data[8*(8+i)+:8] = FirmwareRevision[8*(7-i)+:8];
    return data;
  endfunction

  localparam logic [511:0] Page = page();

  always_ff @(posedge clk_i) if (re_i) data_o <= (beat_i == '0) ? Page : '0;

endmodule
