// SPDX-License-Identifier: Apache-2.0

// Supported Log Pages log (log 00h, NVMe 2.0; allowed with VS 1.4, as hosts ask for it): the logs
// of nvme_get_log.
//
// One dword for each log; bit 0: it is supported. The log has 1 KiB.
module nvme_log_supported
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

  function automatic logic [511:0] list();
    list = '0;
    list[32*LidSupported+:32] = 32'h1;
    list[32*LidError+:32] = 32'h1;
    list[32*LidSmart+:32] = 32'h1;
    list[32*LidFirmware+:32] = 32'h1;
    list[32*LidChangedNs+:32] = 32'h1;
    list[32*LidEffects+:32] = 32'h1;
  endfunction

  localparam logic [511:0] List = list();

  always_ff @(posedge clk_i) if (re_i) data_o <= (beat_i == '0) ? List : '0;

endmodule
