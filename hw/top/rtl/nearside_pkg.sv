// SPDX-License-Identifier: Apache-2.0

// Description of the engines, from the device top to the shell.
package nearside_pkg;

  /// Most engines in a device: a channel's multiplexer has as many masters beside the PM window and
  /// the NVMe controller.
  parameter int unsigned MaxEngines = qos_pkg::Masters - 2;
  /// Most MSI-X vectors of an engine.
  parameter int unsigned MaxEngineVectors = 8;
  /// Most NVMe I/O commands of an engine.
  parameter int unsigned MaxEngineCommands = 2 ** nvme_pkg::EngineCommandWidth;
  /// Address of the engines' command pages (from 0x4_0000 in BAR4 on) on the bus of the PM window.
  parameter logic [63:0] PageBase = 64'h8000_0000_0000_0000;
  /// First address of the local memory in the PM window: the first multiple of its size after the
  /// storage. Both sizes are powers of two.
  function automatic longint unsigned local_base(longint unsigned media_bytes,
                                                 longint unsigned local_bytes);
    local_base = (local_bytes > media_bytes) ? local_bytes : media_bytes;
  endfunction

  /// Bytes of the PM window: up to the end of the last memory.
  function automatic longint unsigned window_bytes(longint unsigned media_bytes,
                                                   longint unsigned local_bytes);
    window_bytes = (local_bytes == 0) ? media_bytes :
        local_base(media_bytes, local_bytes) + local_bytes;
  endfunction

  /// Bits of the IDs on an engine's host master.
  parameter int unsigned EngineHostIdBits = 4;
  /// Bits of the IDs on an engine's memory masters: 16 transactions for each master of a crossbar.
  function automatic int unsigned engine_id_bits(int unsigned channels);
    return 4 + unsigned'($clog2(channels));
  endfunction

  /// An engine: its entry in the status block, and its access rights.
  typedef struct packed {
    logic [31:0] kind;       // type in the status block; values below 0x8000_0000 are defined by Nearside
    logic [31:0] version;    // major << 16 | minor
    logic [31:0] instance_;  // number among those of its kind
    logic [31:0] offset;     // of its registers in BAR4, a multiple of `size`
    logic [31:0] size;       // bytes of its registers, a power of two of at least 4096
    logic [31:0] cap0;       // capability words
    logic [31:0] cap1;
    logic        memory;     // has memory masters: one per channel of the storage,
    logic        local_;     // and one per channel of the local memory
    logic        local_open; // which it may access
    logic        host;       // has a host master
    logic [7:0]  vectors;    // MSI-X vectors, up to MaxEngineVectors
    logic [63:0] first;      // media addresses that these may access: from this one on,
    logic [63:0] limit;      // below this one
    logic        page;       // has a command page
    logic        filter;       // has the conflict filter (`hook` in engine.toml)
    logic [63:0] reserved;   // bytes reserved for its state at the end of the media; only with the filter
    logic [7:0]  commands;   // NVMe I/O commands, up to MaxEngineCommands
    logic [MaxEngineCommands-1:0][7:0] opcodes;  // their opcodes, 80h to FFh
    logic [MaxEngineCommands-1:0] changes;       // those that may change the content of namespaces
    logic [2**nvme_pkg::NsWidth-1:0] namespaces; // namespaces in which they are allowed, namespace 1 in the lowest bit
  } engine_t;

  /// Routes of the I/O opcodes to the first `count` engines.
  function automatic nvme_pkg::engine_routes_t engine_routes(engine_t [MaxEngines-1:0] engines,
                                                             int unsigned count);
    engine_routes = '0;
    for (int unsigned e = 0; e < MaxEngines; e++)
    for (int unsigned c = 0; c < MaxEngineCommands; c++)
    if (e < count && c < 32'(engines[e].commands))
      engine_routes[engines[e].opcodes[c][6:0]] = '{
          valid: 1'b1,
          changes: engines[e].changes[c],
          engine: nvme_pkg::EngineWidth'(e),
          command: nvme_pkg::EngineCommandWidth'(c),
          namespaces: engines[e].namespaces
      };
  endfunction

  /// MSI-X vectors of the engines before number `engine`.
  function automatic int unsigned vectors_before(engine_t [MaxEngines-1:0] engines,
                                                 int unsigned engine);
    vectors_before = 0;
    for (int unsigned e = 0; e < MaxEngines; e++)
    if (e < engine) vectors_before += 32'(engines[e].vectors);
  endfunction

  /// The engines with a command page, of the first `count`.
  function automatic logic [MaxEngines-1:0] pages(engine_t [MaxEngines-1:0] engines,
                                                  int unsigned count);
    for (int unsigned e = 0; e < MaxEngines; e++) pages[e] = e < count && engines[e].page;
  endfunction

  /// The engines with a conflict filter, of the first `count`.
  function automatic logic [MaxEngines-1:0] filters(engine_t [MaxEngines-1:0] engines,
                                                    int unsigned count);
    for (int unsigned e = 0; e < MaxEngines; e++) filters[e] = e < count && engines[e].filter;
  endfunction

  /// Bytes at the end of the media that are reserved for the first `count` engines.
  function automatic longint unsigned reserved(engine_t [MaxEngines-1:0] engines,
                                               int unsigned count);
    reserved = 0;
    for (int unsigned e = 0; e < MaxEngines; e++) if (e < count) reserved |= engines[e].reserved;
  endfunction

  /// One of the first `count` engines has a host master.
  function automatic bit has_host(engine_t [MaxEngines-1:0] engines, int unsigned count);
    has_host = 1'b0;
    for (int unsigned e = 0; e < MaxEngines; e++) if (e < count) has_host |= engines[e].host;
  endfunction

endpackage
