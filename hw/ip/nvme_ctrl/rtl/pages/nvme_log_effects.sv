// SPDX-License-Identifier: Apache-2.0

// Commands Supported and Effects log (NVMe 1.4, 5.14.1.5): the commands of nvme_admin, nvme_decode
// and engines.
//
// One dword for each opcode: 256 of admin commands, then 256 of I/O commands; 16 to a beat.
module nvme_log_effects
  import nvme_pkg::*;
#(
  /// I/O commands of engines.
  parameter engine_routes_t Routes = '0,
  /// See nvme_ctrl.
  parameter bit DoorbellBuffer = 1'b1
) (
  input  logic         clk_i,
  /// Read a beat.
  input  logic         re_i,
  /// Beat, of the 64 of a page.
  input  logic [5:0]   beat_i,
  /// The beat, one cycle later.
  output logic [511:0] data_o
);

  localparam logic [31:0] Supported = 32'h1;  // CSUPP
  localparam logic [31:0] ChangesContent = 32'h2;  // LBCC
  // CSE 001b: no other command to the same namespace.
  localparam logic [31:0] NamespaceAlone = 32'h1_0000;

  function automatic logic [31:0] admin_effect(logic [7:0] opcode);
    unique case (opcode)
      AdminDeleteSq, AdminCreateSq, AdminGetLogPage, AdminDeleteCq, AdminCreateCq, AdminIdentify, AdminAbort,
      AdminSetFeatures, AdminGetFeatures, AdminAsyncEvent, AdminKeepAlive:
      return Supported;
      AdminDoorbellBufferConfig: return DoorbellBuffer ? Supported : '0;
      AdminFormat: return Supported | ChangesContent | NamespaceAlone;
      default: return '0;
    endcase
  endfunction

  function automatic logic [31:0] io_effect(logic [7:0] opcode);
    unique case (opcode)
      IoFlush, IoRead, IoCompare, IoVerify: return Supported;
      IoWrite, IoWriteZeroes, IoDatasetManagement: return Supported | ChangesContent;
      default: begin
        if (!opcode[7] || !Routes[opcode[6:0]].valid) return '0;
        return Routes[opcode[6:0]].changes ? Supported | ChangesContent : Supported;
      end
    endcase
  endfunction

  always_ff @(posedge clk_i) begin
    if (re_i) begin
      for (int unsigned i = 0; i < 16; i++) begin
        unique case (beat_i[5:4])
          2'd0:    data_o[32*i+:32] <= admin_effect({beat_i[3:0], 4'(i)});
          2'd1:    data_o[32*i+:32] <= io_effect({beat_i[3:0], 4'(i)});
          default: data_o[32*i+:32] <= '0;
        endcase
      end
    end
  end

endmodule
