// SPDX-License-Identifier: Apache-2.0

// Lines of a log on the media; docs/hardware/nearpm.md describes the format.
package nearpm_log_pkg;

  parameter logic [63:0] DescriptorMagic = 64'h0100_474F_4C4D_504E;  // "NPMLOG\0\1"
  parameter logic [31:0] HeaderMagic = 32'h524D_504E;  // "NPMR"

  /// Descriptor: first line of a log.
  typedef struct packed {
    logic [31:0]  crc;
    logic [215:0] zeros;
    logic [7:0]   participants;  // of a pending commit
    logic [63:0]  transaction;
    logic [31:0]  records;
    logic [31:0]  state;  // 1: redo records are to be applied; 2: pending
    logic [63:0]  generation;
    logic [63:0]  magic;
  } descriptor_t;

  typedef enum logic [7:0] {
    KindNone       = 8'd0,
    KindUndo       = 8'd1,
    KindRedo       = 8'd2,
    KindCheckpoint = 8'd3
  } kind_e;

  /// Writer of a record. Records of a CPU may persist in any order unless a fence separates them.
  parameter logic [7:0] MakerEngine = 8'd0;
  parameter logic [7:0] MakerCpu = 8'd1;
  parameter logic [7:0] MakerCpuFenced = 8'd2;

  /// Header: first line of a record.
  typedef struct packed {
    logic [31:0] crc;
    logic [31:0] payload;  // CRC of the payload
    logic [63:0] zeros;
    logic [63:0] transaction;
    logic [63:0] previous;
    logic [31:0] number;
    logic [31:0] bytes;
    logic [63:0] object;
    logic [63:0] generation;
    logic [7:0]  maker;        // MakerEngine, MakerCpu or MakerCpuFenced
    logic [7:0]  thread;
    logic [7:0]  pool;
    logic [7:0]  kind;
    logic [31:0] magic;
  } header_t;

endpackage
