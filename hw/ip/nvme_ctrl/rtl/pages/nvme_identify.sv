// SPDX-License-Identifier: Apache-2.0

// Identify pages (NVMe 1.4, 5.15; CNS 06h and 08h of 2.0): beats of 64 bytes, built from constants.
//
// A beat requested with `re_i` is at `data_o` from the next cycle on. The device's identity follows
// from `serial_i` and `eui64_i`. The subsystem's NQN ends in the serial number without its padding.
// EUI-64, NGUID and UUID of namespace n are those of namespace 1 with n - 1 in their low 4 bits.
// Only power state 0 is described.
module nvme_identify
  import nvme_pkg::*;
  import nvme_ns_pkg::*;
#(
  /// See nvme_namespace.
  parameter int unsigned     NumNamespaces = 1,
  /// See nvme_namespace.
  parameter ns_blocks_t      NsBlocks      = '0,
  /// See nvme_namespace.
  parameter longint unsigned MediaBytes    = 64'h1_0000_0000,
  /// See nvme_ctrl.
  parameter int unsigned     MaxDeallocate = 131_072,
  /// PCI vendor and subsystem vendor ID.
  parameter logic [15:0]     VendorId      = 16'h4E53,
  /// Asynchronous Event Requests that can be parked.
  parameter int unsigned     NumEvents     = 4,
  /// Entries of the Error Information log.
  parameter int unsigned     NumErrors     = 64,
  /// See nvme_ctrl.
  parameter bit              DoorbellBuffer = 1'b1
) (
  input  logic         clk_i,
  /// Serial number, 20 characters, the first one in the high bits, padded with spaces. From a
  /// register that changes only in reset.
  input  logic [159:0] serial_i,
  /// EUI-64 of namespace 1; its low 4 bits are 0. From a register that changes only in reset.
  input  logic [63:0]  eui64_i,
  /// Page of Identify.
  input  page_e        page_i,
  /// NSID of the command. The page is all zeros if it describes a namespace and that one is
  /// inactive.
  input  logic [31:0]  nsid_i,
  /// Read a beat.
  input  logic         re_i,
  /// Beat, of the 64 of a page.
  input  logic [5:0]   beat_i,
  /// The beat.
  output logic [511:0] data_o
);

  typedef logic [511:0] beat_t;

  localparam logic [MaxNamespaces-1:0] Active = ns_active(
      ns_sizes(NumNamespaces, NsBlocks, MediaBytes)
  );
  // Locally administered, so that no vendor's range is touched.
  localparam logic [63:0] NguidHigh = 64'h0200_4E56_4D45_0000;
  // A UUID of version 8 (RFC 9562), whose 122 bits are free to choose.
  localparam logic [63:0] UuidHigh = {"Nearsi", 16'h8465};
  localparam logic [319:0] Model = "Nearside NVMe controller                ";
  localparam logic [8*41-1:0] SubNqnPrefix = "nqn.2026-11.example.nearside:nvme_ctrl:sn";

  // Strings and identifiers are written with their first byte on the left; in memory it comes
  // first.
  function automatic beat_t reverse(beat_t value, int unsigned bytes);
    beat_t result = '0;
    for (int unsigned i = 0; i < bytes; i++) result[8*i+:8] = value[8*(bytes-1-i)+:8];
    return result;
  endfunction

  // `bytes` bytes of value at offset `at` of a beat.
  function automatic beat_t put(beat_t beat, int unsigned at, int unsigned bytes, beat_t value);
    beat_t mask = (bytes >= 64) ? '1 : (beat_t'(1) << (8 * bytes)) - 1'b1;
    return beat | ((value & mask) << (8 * at));
  endfunction

  // Identify Controller (figure 247).
  function automatic beat_t controller0(logic [159:0] serial);
    beat_t b = '0;
    b = put(b, 0, 2, 512'(VendorId));
    b = put(b, 2, 2, 512'(VendorId));
    b = put(b, 4, 20, reverse(512'(serial), 20));
    b = put(b, 24, 40, reverse(512'(Model), 40));
    return b;
  endfunction

  function automatic beat_t controller1();
    beat_t b = '0;
    b = put(b, 0, 8, reverse(512'(FirmwareRevision), 8));  // 64: FR
    b = put(b, 13, 1, 512'(8));  // 77: MDTS, 1 MiB
    b = put(b, 14, 2, 512'(ControllerId));  // 78: CNTLID
    b = put(b, 16, 4, 512'h0001_0400);  // 80: VER
    b = put(b, 20, 4, 512'(100_000));  // 84: RTD3R, us
    b = put(b, 24, 4, 512'(1_000_000));  // 88: RTD3E, us
    b = put(b, 28, 4, 512'h100);  // 92: OAES, namespace attribute notices
    b = put(b, 47, 1, 512'(1));  // 111: CNTRLTYPE, I/O controller
    return b;
  endfunction

  function automatic beat_t controller2();
    return put('0, 0, 2, 512'(1));  // 128: CRDT1, 100 ms; the only one in use
  endfunction

  function automatic beat_t controller4();
    beat_t b = '0;
    b = put(b, 0, 2, 512'h2);  // 256: OACS, Format NVM
    b = put(b, 1, 1, 512'(DoorbellBuffer));  // 257: OACS, Doorbell Buffer Config
    b = put(b, 2, 1, 512'(3));  // 258: ACL
    b = put(b, 3, 1, 512'(NumEvents - 1));  // 259: AERL
    b = put(b, 4, 1, 512'h03);  // 260: FRMW, one slot, read only
    b = put(b, 5, 1, 512'h06);  // 261: LPA, log 05h; offsets and 32-bit lengths
    b = put(b, 6, 1, 512'(NumErrors - 1));  // 262: ELPE
    b = put(b, 10, 2, 512'(WarningTemperature));  // 266: WCTEMP
    b = put(b, 12, 2, 512'(CriticalTemperature));  // 268: CCTEMP
    return b;
  endfunction

  function automatic beat_t controller5();
    return put('0, 0, 2, 512'(1));  // 320: KAS, 100 ms
  endfunction

  function automatic beat_t controller8();
    beat_t b = '0;
    b = put(b, 0, 1, 512'h66);  // 512: SQES
    b = put(b, 1, 1, 512'h44);  // 513: CQES
    b = put(b, 4, 4, 512'(NumNamespaces));  // 516: NN
    // 520: ONCS: Compare, Dataset Management, Write Zeroes, Save and Select, Timestamp, Verify
    b = put(b, 8, 2, 512'hDD);
    b = put(b, 10, 2, 512'(1));  // 522: FUSES, Compare and Write
    b = put(b, 14, 2, 512'(0));  // 526: AWUN, one block
    b = put(b, 16, 2, 512'(0));  // 528: AWUPF, one block
    b = put(b, 20, 2, 512'(2047));  // 532: ACWU, 1 MiB
    b = put(b, 12, 1, 512'h00);  // 524: FNA, per namespace; no cryptographic erase
    b = put(b, 24, 4, 512'h0005_0002);  // 536: SGLS: dwords, bit buckets, longer than the data
    b = put(b, 13, 1, 512'h06);  // 525: VWC, no cache; flush of all namespaces accepted
    return b;
  endfunction

  function automatic beat_t controller12(logic [159:0] serial);
    beat_t b = reverse(512'(SubNqnPrefix), 41);  // 768: SUBNQN, which ends in zeros
    for (int unsigned i = 0; i < 20; i++)
    if (serial[8*(19-i)+:8] != " ") b[8*(41+i)+:8] = serial[8*(19-i)+:8];
    return b;
  endfunction

  function automatic beat_t controller32();
    return put('0, 0, 2, 512'(2500));  // 2048: power state 0, 25 W
  endfunction

  // Active namespaces above `nsid` (figure 244).
  function automatic beat_t list_above(int unsigned nsid);
    beat_t b = '0;
    int unsigned at = 0;
    for (int unsigned n = 0; n < NumNamespaces; n++) begin
      if (n >= nsid && Active[n]) begin
        b = put(b, at, 4, 512'(n + 1));
        at += 4;
      end
    end
    return b;
  endfunction

  // Identify Namespace (figure 245).
  function automatic beat_t namespace0(logic [LbaWidth-1:0] blocks);
    beat_t b = '0;
    b[0+:64] = 64'(blocks);  // NSZE
    b[64+:64] = 64'(blocks);  // NCAP
    b[128+:64] = 64'(blocks);  // NUSE
    // NAWUN, NAWUPF and NACWU are valid: they are 0, as AWUN, AWUPF and ACWU. No atomic boundaries.
    if (blocks != '0) b = put(b, 24, 1, 512'h02);  // NSFEAT
    if (blocks != '0)
      b = put(
          b, 33, 1, 512'h09
      );  // DLFEAT: deallocated blocks read as zeros; Write Zeroes may deallocate
    return b;
  endfunction

  function automatic beat_t namespace1(logic [63:0] eui);
    beat_t b = '0;
    b = put(b, 40, 16, reverse(512'({NguidHigh, eui}), 16));  // 104: NGUID
    b = put(b, 56, 8, reverse(512'(eui), 8));  // 120: EUI64
    return b;
  endfunction

  function automatic beat_t namespace2();
    return put('0, 2, 1, 512'(9));  // 130: LBAF0.LBADS
  endfunction

  // Namespace Identification Descriptors (figure 249).
  function automatic beat_t descriptors0(logic [63:0] eui);
    beat_t b = '0;
    b = put(b, 0, 4, 512'h0000_0801);  // EUI-64, 8 bytes
    b = put(b, 4, 8, reverse(512'(eui), 8));
    b = put(b, 12, 4, 512'h0000_1002);  // NGUID, 16 bytes
    b = put(b, 16, 16, reverse(512'({NguidHigh, eui}), 16));
    b = put(b, 32, 4, 512'h0000_1003);  // UUID, 16 bytes
    b = put(b, 36, 16, reverse(512'({UuidHigh, 2'b10, eui[61:0]}), 16));
    return b;
  endfunction

  // I/O Command Set specific Identify Controller, NVM command set (CNS 06h): any number of blocks
  // that fits NLB. Limits of lists of ranges: all three or none.
  function automatic beat_t command_set0();
    beat_t b = '0;
    b = put(b, 0, 1, 512'(13));  // VSL, 2**13 pages are 65536 blocks
    b = put(b, 1, 1, 512'(13));  // WZSL
    if (MaxDeallocate != 0) begin
      b = put(b, 3, 1, 512'(255));  // DMRL
      b = put(b, 4, 4, 512'(MaxDeallocate));  // DMRSL
      b = put(b, 8, 8, 512'(MaxDeallocate));  // DMSL
    end
    return b;
  endfunction

  // I/O Command Set Independent Identify Namespace (CNS 08h).
  function automatic beat_t independent0();
    return put('0, 14, 1, 512'(1));  // NSTAT: ready
  endfunction

  localparam beat_t Controller1 = controller1();
  localparam beat_t Controller2 = controller2();
  localparam beat_t Controller4 = controller4();
  localparam beat_t Controller5 = controller5();
  localparam beat_t Controller8 = controller8();
  localparam beat_t Controller32 = controller32();
  localparam beat_t Namespace2 = namespace2();
  localparam beat_t CommandSet0 = command_set0();
  localparam beat_t Independent0 = independent0();

  namespace_t ns;
  nvme_namespace #(
    .NumNamespaces(NumNamespaces),
    .NsBlocks     (NsBlocks),
    .MediaBytes   (MediaBytes)
  ) u_namespace (
    .nsid_i,
    .ns_o(ns)
  );

  logic unused;
  assign unused = ^{ns.valid, ns.base, eui64_i[3:0]};

  logic [63:0] eui;
  beat_t list;
  assign eui = {eui64_i[63:4], 4'(ns.idx)};

  always_comb begin
    list = '0;
    for (int unsigned n = 0; n < NumNamespaces; n++) if (nsid_i == n) list = list_above(n);
  end

  always_ff @(posedge clk_i) begin
    if (re_i) begin
      unique case ({
        page_i, beat_i
      })
        {PageController, 6'd0}:  data_o <= controller0(serial_i);
        {PageController, 6'd1}:  data_o <= Controller1;
        {PageController, 6'd2}:  data_o <= Controller2;
        {PageController, 6'd4}:  data_o <= Controller4;
        {PageController, 6'd5}:  data_o <= Controller5;
        {PageController, 6'd8}:  data_o <= Controller8;
        {PageController, 6'd12}: data_o <= controller12(serial_i);
        {PageController, 6'd32}: data_o <= Controller32;
        {PageNamespace, 6'd0}:   data_o <= namespace0(ns.blocks);  // 0 if inactive
        {PageNamespace, 6'd1}:   data_o <= ns.active ? namespace1(eui) : '0;
        {PageNamespace, 6'd2}:   data_o <= ns.active ? Namespace2 : '0;
        {PageNsList, 6'd0}:      data_o <= list;
        {PageDescriptors, 6'd0}: data_o <= descriptors0(eui);
        {PageCommandSet, 6'd0}:  data_o <= CommandSet0;
        // Controller List (4.9): one identifier, this one.
        {PageControllers, 6'd0}: data_o <= 512'({ControllerId, 16'd1});
        {PageIndependent, 6'd0}: data_o <= ns.active ? Independent0 : '0;
        default:                 data_o <= '0;
      endcase
    end
  end

endmodule
