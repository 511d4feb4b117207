// SPDX-License-Identifier: Apache-2.0

// Types and constants of every AXI4 and AXI4-Lite bus inside the device.
//
// All internal AXI4 buses have one shape: 64-bit byte addresses, 512-bit data, 12-bit IDs. Bits
// that a block does not need are constant and cost nothing after synthesis. IDs grow upwards: a
// multiplexer puts the port's number above the bits that its masters use. ns_axi_id_remap reduces
// their number. LOCK, CACHE, PROT, QOS, REGION and USER do not exist inside. Blocks meant for use
// outside this device (nvm_delay) carry them on flat ports.
//
// Packed structs have their widest field last: the simulator then moves the small fields with one
// mask.
package ns_axi_pkg;

  parameter int unsigned AddrWidth = 64;
  parameter int unsigned DataWidth = 512;
  parameter int unsigned StrbWidth = DataWidth / 8;
  parameter int unsigned IdWidth = 12;

  /// Address channel (AW or AR).
  typedef struct packed {
    logic [IdWidth-1:0]   id;
    logic [7:0]           len;    // beats - 1
    logic [2:0]           size;   // log2(bytes per beat)
    logic [1:0]           burst;
    logic [AddrWidth-1:0] addr;
  } ax_t;

  /// Write data channel.
  typedef struct packed {
    logic                 last;
    logic [StrbWidth-1:0] strb;
    logic [DataWidth-1:0] data;
  } w_t;

  /// Write response channel.
  typedef struct packed {
    logic [IdWidth-1:0] id;
    logic [1:0]         resp;
  } b_t;

  /// Read data channel.
  typedef struct packed {
    logic [IdWidth-1:0]   id;
    logic [1:0]           resp;
    logic                 last;
    logic [DataWidth-1:0] data;
  } r_t;

  parameter logic [1:0] BurstFixed = 2'b00;
  parameter logic [1:0] BurstIncr = 2'b01;
  parameter logic [1:0] BurstWrap = 2'b10;

  parameter logic [1:0] RespOkay = 2'b00;
  parameter logic [1:0] RespExOkay = 2'b01;
  parameter logic [1:0] RespSlvErr = 2'b10;
  parameter logic [1:0] RespDecErr = 2'b11;

  /// ceil(log2(n)), but at least 1: the width of an index into n elements.
  function automatic int unsigned idx_width(int unsigned n);
    return (n > 1) ? unsigned'($clog2(n)) : 1;
  endfunction

endpackage
