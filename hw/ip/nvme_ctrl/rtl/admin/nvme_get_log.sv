// SPDX-License-Identifier: Apache-2.0

// Get Log Page: decodes a command and checks it (NVMe 1.4, 5.14, figures 188 to 191).
//
// The length may be any multiple of 4 up to MDTS, the offset any multiple of 4 up to the log's
// size. Logs belong to the controller, so the namespace must be 0 or FFFFFFFFh.
module nvme_get_log
  import nvme_pkg::*;
(
  input  logic                  clk_i,
  /// Command.
  input  admin_cmd_t            cmd_i,
  /// Error of the command, one cycle later.
  output status_t               status_o,
  /// Log, one cycle later.
  output page_e                 page_o,
  /// Bytes, one cycle later.
  output logic [BytesWidth-1:0] bytes_o,
  /// Offset of the first, one cycle later.
  output logic [12:0]           offset_o
);

  logic [31:0] numd;  // 0-based
  logic [63:0] offset;
  logic log_known, offset_beyond_end;  // the offset lies beyond the end of the log
  page_e page;
  status_t status;

  assign numd = {cmd_i.cdw11[15:0], cmd_i.cdw10[31:16]};
  assign offset = {cmd_i.cdw13, cmd_i.cdw12};

  always_comb begin
    log_known  = 1'b1;
    offset_beyond_end = offset > 64'd4096;
    page   = PageErrorLog;
    unique case (cmd_i.cdw10[7:0])
      LidSupported: begin
        page   = PageLogs;
        offset_beyond_end = offset > 64'd1024;
      end
      LidError: ;
      LidSmart: begin
        page   = PageSmartLog;
        offset_beyond_end = offset > 64'd512;
      end
      LidFirmware: begin
        page   = PageFirmwareLog;
        offset_beyond_end = offset > 64'd512;
      end
      LidChangedNs: page = PageChangedNs;
      LidEffects:   page = PageEffectsLog;
      default:      log_known = 1'b0;
    endcase

    status = generic_status(ScSuccess);
    if (!log_known) status = command_status(ScInvalidLogPage);
    else if (cmd_i.nsid != '0 && cmd_i.nsid != '1) status = generic_status(ScInvalidField);
    else if (numd[31:TransferWidth-3] != '0) status = generic_status(ScInvalidField);
    else if (offset[1:0] != '0 || offset_beyond_end) status = generic_status(ScInvalidField);
  end

  always_ff @(posedge clk_i) begin
    status_o <= status;
    page_o   <= page;
    bytes_o  <= BytesWidth'({numd[TransferWidth-4:0], 2'b00}) + BytesWidth'(4);
    offset_o <= offset[12:0];
  end

  logic unused;
  assign unused = ^{
    cmd_i.slot, cmd_i.cid, cmd_i.opcode, cmd_i.bad_flags, cmd_i.prp1, cmd_i.prp2, cmd_i.cdw10[15:8], cmd_i.cdw11[31:16]
  };

endmodule
