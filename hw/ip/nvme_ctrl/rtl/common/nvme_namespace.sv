// SPDX-License-Identifier: Apache-2.0

// Looks up a namespace identifier. Combinational: its users register the result before they compute
// with it.
module nvme_namespace
  import nvme_ns_pkg::*;
  import nvme_pkg::NsWidth;
#(
  /// Namespaces, 1 to 16.
  parameter int unsigned     NumNamespaces = 1,
  /// Their sizes in blocks; 0 is inactive. A single namespace of size 0 takes the whole media.
  parameter ns_blocks_t      NsBlocks      = '0,
  /// Bytes of the media.
  parameter longint unsigned MediaBytes    = 64'h1_0000_0000
) (
  /// Namespace identifier.
  input  logic [31:0] nsid_i,
  /// The namespace. If it is not valid, the other fields are undefined.
  output namespace_t  ns_o
);

  localparam ns_blocks_t Sizes = ns_sizes(NumNamespaces, NsBlocks, MediaBytes);
  localparam ns_blocks_t Bases = ns_bases(Sizes);
  localparam logic [MaxNamespaces-1:0] Active = ns_active(Sizes);

  logic valid;
  logic [NsWidth-1:0] idx;

  assign valid = nsid_i != '0 && nsid_i <= NumNamespaces;
  assign idx = (NumNamespaces == 1) ? '0 : nsid_i[NsWidth-1:0] - 1'b1;

  assign ns_o = '{
          valid: valid,
          active: valid && Active[idx],
          idx: idx,
          base: Bases[idx][LbaWidth-1:0],
          blocks: Sizes[idx][LbaWidth-1:0]
      };

  if (NumNamespaces < 1 || NumNamespaces > MaxNamespaces) begin : gen_bad_count
    $error("nvme_namespace: NumNamespaces must be 1 to 16");
  end
  if (MediaBytes == 0 || MediaBytes % 512 != 0) begin : gen_bad_media
    $error("nvme_namespace: MediaBytes must be a multiple of 512");
  end
  if (Active == '0) begin : gen_none
    $error("nvme_namespace: at least one namespace must have a size");
  end
  if (Bases[NumNamespaces-1] + Sizes[NumNamespaces-1] > MediaBytes / 512) begin : gen_too_large
    $error("nvme_namespace: the namespaces do not fit the media");
  end

endmodule
