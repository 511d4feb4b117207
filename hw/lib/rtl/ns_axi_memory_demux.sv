// AXI4 demultiplexer for a device's memories: one master, the channels of the storage and, if there is one, of a local memory.
//
// The storage has the addresses below `Bytes`, the local memory `LocalBytes` of them from `LocalBase` on; ns_axi_demux says how
// each is spread over its channels, what order is kept, and what becomes of other addresses. A local channel's addresses start at
// the memory's own beginning. Addresses for the local memory, and those outside, pass two register slices more, the other channels one.
module ns_axi_memory_demux
  import ns_axi_pkg::*;
#(
  /// Channels of the storage, a power of two.
  parameter int unsigned M = 2,
  /// Bytes of its granules, see ns_axi_demux.
  parameter int unsigned Granule = 4096,
  /// Its bytes, a multiple of M * Granule.
  parameter logic [AddrWidth-1:0] Bytes = 64'h1_0000_0000,
  /// Channels of the local memory, a power of two; 0: there is none.
  parameter int unsigned LocalM = 0,
  /// Bytes of its granules.
  parameter int unsigned LocalGranule = 4096,
  /// Its first address: a power of two, at least Bytes and at least LocalBytes.
  parameter logic [AddrWidth-1:0] LocalBase = '0,
  /// Its bytes, a multiple of LocalM * LocalGranule.
  parameter logic [AddrWidth-1:0] LocalBytes = '0,
  /// Transactions under way per direction and ID.
  parameter int unsigned MaxOutstanding = 32,
  /// Low ID bits that tell transactions apart when order is kept.
  parameter int unsigned OrderBits = 4,
  /// 1: there is a slave more for all other addresses, the last one.
  parameter bit Outside = 1'b0
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  /// Master.
  ns_axi_if.slave s_axi,

  /// Channels of the storage, of the local memory, what lies outside.
  ns_axi_if.master m_axi[M+LocalM+32'(Outside)]
);

  if (LocalM == 0) begin : gen_storage
    ns_axi_demux #(
      .M             (M),
      .Granule       (Granule),
      .Bytes         (Bytes),
      .MaxOutstanding(MaxOutstanding),
      .OrderBits     (OrderBits),
      .Outside       (Outside)
    ) u_demux (
      .clk_i,
      .rst_ni,
      .s_axi,
      .m_axi
    );
  end else begin : gen_both
    ns_axi_if storage[M+1] ();
    ns_axi_if behind ();
    ns_axi_if local_[LocalM+32'(Outside)] ();

    ns_axi_demux #(
      .M             (M),
      .Granule       (Granule),
      .Bytes         (Bytes),
      .MaxOutstanding(MaxOutstanding),
      .OrderBits     (OrderBits),
      .Outside       (1'b1)
    ) u_storage (
      .clk_i,
      .rst_ni,
      .s_axi,
      .m_axi(storage)
    );

    for (genvar c = 0; c < M; c++) begin : gen_storage
      ns_axi_link u_link (
        .s_axi(storage[c]),
        .m_axi(m_axi[c])
      );
    end

    // What comes here is not below LocalBase, a power of two that is not smaller than the memory: with that bit turned its
    // addresses start at 0, and all others stay outside.
    ns_axi_link #(
      .Invert(LocalBase)
    ) u_behind (
      .s_axi(storage[M]),
      .m_axi(behind)
    );

    ns_axi_demux #(
      .M             (LocalM),
      .Granule       (LocalGranule),
      .Bytes         (LocalBytes),
      .MaxOutstanding(MaxOutstanding),
      .OrderBits     (OrderBits),
      .Outside       (Outside)
    ) u_local (
      .clk_i,
      .rst_ni,
      .s_axi(behind),
      .m_axi(local_)
    );

    for (genvar c = 0; c < LocalM; c++) begin : gen_local
      ns_axi_link u_link (
        .s_axi(local_[c]),
        .m_axi(m_axi[M+c])
      );
    end

    if (Outside) begin : gen_outside
      ns_axi_link #(
        .Invert(LocalBase)
      ) u_outside (
        .s_axi(local_[LocalM]),
        .m_axi(m_axi[M+LocalM])
      );
    end

    if ((LocalBase & (LocalBase - 1'b1)) != '0 || LocalBase < Bytes || LocalBase < LocalBytes) begin : gen_bad_base
      $error(
          "ns_axi_memory_demux: LocalBase must be a power of two, at least Bytes and LocalBytes"
      );
    end
  end

endmodule
