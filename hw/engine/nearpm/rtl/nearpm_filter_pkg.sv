// SPDX-License-Identifier: Apache-2.0

// Types of the conflict filter.
package nearpm_filter_pkg;
  import ns_axi_pkg::*;
  import nearpm_pkg::*;

`ifdef NEARPM_SMALL
  // Smallest configuration, for the proofs.
  parameter int unsigned Stores = 3;
  parameter logic [IdWidth-1:0] LineId = 12'd3;
  parameter int unsigned DataBeats = 4;
  parameter int unsigned QueueBits = 2;
  parameter int unsigned Loads = 2;
`else
  /// Stores between address and response; each has a place and an AXI ID.
  parameter int unsigned Stores = 63;
  /// AXI ID of lines that leave the queue.
  parameter logic [IdWidth-1:0] LineId = 12'd63;
  /// Buffered write data beats of stores.
  parameter int unsigned DataBeats = 32;
  /// Bits of a place in the queue.
  parameter int unsigned QueueBits = 6;
  /// Places for parked loads.
  parameter int unsigned Loads = 16;
`endif
  typedef logic [QueueBits-1:0] place_t;

  /// Lines in 4 KiB, which no burst crosses.
  parameter int unsigned PageLineBits = 6;
  parameter int unsigned PageBits = LineBits - PageLineBits;

  /// Lines of a burst, local to the channel.
  typedef struct packed {
    logic [PageBits-1:0]     page;
    logic [PageLineBits-1:0] first;
    logic [PageLineBits-1:0] last;
  } burst_t;

  /// Conflicts of an access: commands, and lines of the queue until `written` reaches `target`.
  typedef struct packed {
    logic      lines;
    count_t    target;
    commands_t commands;
  } conflict_set_t;

  function automatic burst_t burst_of(logic [MediaBits-1:0] addr, logic [7:0] len, logic [2:0] size,
                                      logic [1:0] burst);
    logic [11:0] first, bytes;  // bytes: less one
    bytes = 12'((13'(len) + 13'd1) << size) - 12'd1;
    first = addr[11:0] & ~((12'd1 << size) - 12'd1);
    if (burst == BurstWrap) first &= ~bytes;
    if (burst == BurstFixed) bytes = '0;
    burst_of.page = addr[MediaBits-1:12];
    burst_of.first = first[11:6];
    first += bytes;
    burst_of.last = first[11:6];
  endfunction

  /// Converts a line between channel and media. Sizes are logarithms of lines per granule and of
  /// channels.
  function automatic line_t to_media(line_t line, int unsigned granule_bits,
                                     int unsigned channel_bits, int unsigned channel);
    line_t granule;
    granule = line >> granule_bits;
    to_media = (granule << (granule_bits + channel_bits)) | (line_t'(channel) << granule_bits) | (line & ((line_t'(1) << granule_bits) - 1'b1));
  endfunction

  function automatic line_t to_local(line_t line, int unsigned granule_bits,
                                     int unsigned channel_bits);
    line_t granule;
    granule = line >> (granule_bits + channel_bits);
    to_local = (granule << granule_bits) | (line & ((line_t'(1) << granule_bits) - 1'b1));
  endfunction

  /// Conflicts that remain in the next cycle.
  function automatic conflict_set_t remaining(conflict_set_t conflicts, commands_t ended,
                                              count_t written);
    remaining = conflicts;
    remaining.commands &= ~ended;
    if (written == conflicts.target) remaining.lines = 1'b0;
  endfunction

  function automatic logic no_conflict(conflict_set_t conflicts);
    no_conflict = conflicts == conflict_set_t'{
        lines: 1'b0,
        target: conflicts.target,
        commands: '0
    };
  endfunction

endpackage
