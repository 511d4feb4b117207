// SPDX-License-Identifier: Apache-2.0

// Number, sizes and media addresses of namespaces, fixed at elaboration.
//
// NSIDs count from 1. Namespaces follow each other on the media in that order, each from the next
// multiple of 4 KiB. A namespace of size 0 is allocated but inactive (NVMe 1.4, 6.1.4).
package nvme_ns_pkg;

  import nvme_pkg::NsWidth;

  /// Most namespaces.
  parameter int unsigned MaxNamespaces = 2 ** NsWidth;

  /// Bits of a block's address on the media.
  parameter int unsigned LbaWidth = 55;

  /// A number of blocks for each namespace, that of namespace 1 in the low bits.
  typedef logic [MaxNamespaces-1:0][63:0] ns_blocks_t;

  /// Result of the lookup of a namespace identifier.
  typedef struct packed {
    logic                valid;   // 1 to NN
    logic                active;
    logic [NsWidth-1:0]  idx;     // NSID - 1
    logic [LbaWidth-1:0] base;    // first block on the media
    logic [LbaWidth-1:0] blocks;  // 0 if inactive
  } namespace_t;

  /// Sizes in blocks; one namespace without a size takes the whole media.
  function automatic ns_blocks_t ns_sizes(int unsigned count, ns_blocks_t blocks,
                                          longint unsigned media_bytes);
    ns_blocks_t sizes = '0;
    for (int unsigned n = 0; n < MaxNamespaces; n++) if (n < count) sizes[n] = blocks[n];
    if (count == 1 && blocks[0] == '0) sizes[0] = media_bytes / 512;
    return sizes;
  endfunction

  /// First blocks.
  function automatic ns_blocks_t ns_bases(ns_blocks_t sizes);
    ns_blocks_t bases = '0;
    for (int unsigned n = 1; n < MaxNamespaces; n++)
    bases[n] = bases[n-1] + ((sizes[n-1] + 64'd7) & ~64'd7);
    return bases;
  endfunction

  /// Active namespaces.
  function automatic logic [MaxNamespaces-1:0] ns_active(ns_blocks_t sizes);
    for (int unsigned n = 0; n < MaxNamespaces; n++) ns_active[n] = sizes[n] != '0;
  endfunction

endpackage
