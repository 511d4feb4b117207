// SPDX-License-Identifier: Apache-2.0

// Types inside the data path of nvme_ctrl: between the walkers, the splitter, the movers and the
// transfer tracker.
package nvme_data_pkg;

  import nvme_pkg::SlotWidth;
  import nvme_pkg::data_status_e;

  /// Bytes of a segment or a descriptor: 4 to 4096.
  parameter int unsigned LenWidth = 13;

  /// Operation of a segment or descriptor.
  typedef enum logic [1:0] {
    KindCopy    = 2'd0,
    KindZero    = 2'd1,  // write zeros: there is no source
    KindDrop    = 2'd2,  // read and discard: there is no target
    KindCompare = 2'd3   // read both sides and compare: there is no target
  } transfer_kind_e;

  /// Part of a command within one host page.
  ///
  /// From a walker: a PRP segment or a part of an SGL descriptor, which may cross one 4 KiB
  /// boundary of the media. `more`: another segment of its command follows. From
  /// nvme_block_assembler on: a transfer segment of a group, which lies within 4 KiB of the media.
  /// `more`: another segment of the group follows at once. The host's address is used only for
  /// copies and comparisons.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e       kind;
    logic                 more;
    logic [LenWidth-1:0]  total;  // bytes of the group; valid for its first segment
    logic [LenWidth-1:0]  len;
    logic [63:0]          mem;
    logic [63:0]          host;
  } seg_t;

  /// Descriptor: the work of a mover within one 4 KiB page at both ends.
  ///
  /// Addresses and length are multiples of 4. Without a target, dst is the media address, to whose
  /// place within a beat the data are aligned.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e       kind;
    logic                 more;   // another descriptor of its group follows at once
    logic [LenWidth-1:0]  total;  // bytes of the group; valid for its first segment
    logic [LenWidth-1:0]  len;
    logic [63:0]          src;
    logic [63:0]          dst;
  } desc_t;

  /// The part of a descriptor that the write side needs.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e       kind;
    logic [LenWidth-1:0]  len;
    logic [63:0]          dst;
  } write_desc_t;

  /// A range of the media for nvme_range_walk. A command has one or more ranges; the last one has
  /// `last`.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    transfer_kind_e       kind;    // KindZero or KindDrop
    logic                 last;
    data_status_e         status;  // with last
    logic [54:0]          lba;
    logic [31:0]          blocks;  // may be 0
  } range_t;

  /// The transfer tracker counts a command's descriptors modulo 2**DescsWidth, which exceeds the
  /// number that movers can hold.
  parameter int unsigned DescsWidth = 13;

  /// Event for the transfer tracker. From a mover: one descriptor has ended. From a walker: the
  /// command has `descs` descriptors in all.
  typedef struct packed {
    logic [SlotWidth-1:0]  slot;
    logic                  walk;    // from a walker
    logic [DescsWidth-1:0] descs;    // with walk
    data_status_e          status;
  } transfer_event_t;

  /// IDs of list reads: walkers of PRPs and SGLs in both directions, and one for lists of ranges.
  function automatic int unsigned num_lists(int unsigned walkers, int unsigned sgl_walkers);
    return 2 * (walkers + sgl_walkers) + 1;
  endfunction

  /// Bits of an ID at the controller's host port: those of a list, and those that number a master.
  function automatic int unsigned host_id_bits(int unsigned channels, int unsigned walkers,
                                               int unsigned sgl_walkers);
    return unsigned'($clog2(num_lists(walkers, sgl_walkers) + 1)) + unsigned'($clog2(channels + 2));
  endfunction

endpackage
