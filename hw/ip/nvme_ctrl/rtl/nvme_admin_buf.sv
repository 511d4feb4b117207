// The pages that Identify returns, as an AXI read slave of 4 KiB: 64 beats of 64 bytes, made up on the fly.
//
// One burst at a time, INCR, 64-byte beats, not beyond offset 4095. Page and list content must not change meanwhile.
module nvme_admin_buf
  import ns_axi_pkg::*;
  import nvme_pkg::*;
#(
  /// Size of namespace 1 in bytes.
  parameter longint unsigned MediaBytes   = 64'h1_0000_0000,
  /// Serial number, 20 characters.
  parameter logic [159:0]    SerialNumber = "NS000000000000000001",
  /// EUI-64 of namespace 1.
  parameter logic [63:0]     Eui64        = 64'h0200_4E53_0000_0001,
  /// PCI vendor and subsystem vendor ID.
  parameter logic [15:0]     VendorId     = 16'h4E53,
  /// Asynchronous Event Requests that can be parked.
  parameter int unsigned     NumEvents    = 4
) (
  /// Clock.
  input  logic  clk_i,
  /// Reset, active low.
  input  logic  rst_ni,
  /// From registers: a burst is under way.
  output logic  busy_o,

  /// Page.
  input  page_e page_i,
  /// PageNsList: there is no namespace above the one asked for.
  input  logic  empty_i,

  /// Read address.
  input  ax_t   ar_i,
  /// Valid.
  input  logic  ar_valid_i,
  /// Ready.
  output logic  ar_ready_o,
  /// Read data.
  output r_t    r_o,
  /// Valid.
  output logic  r_valid_o,
  /// Ready.
  input  logic  r_ready_i
);

  typedef logic [511:0] beat_t;

  localparam longint unsigned NumBlocks = MediaBytes / 512;
  // Locally administered, so that no vendor's range is touched.
  localparam logic [63:0] NguidHigh = 64'h0200_4E56_4D45_0000;
  localparam logic [319:0] Model = "Nearside NVMe controller                ";
  localparam logic [63:0] Firmware = "1.0     ";
  localparam logic [8*41-1:0] SubNqnPrefix = "nqn.2026-11.example.nearside:nvme_ctrl:sn";

  // Strings and identifiers are written with their first byte on the left; in memory it comes first.
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
  function automatic beat_t controller0();
    beat_t b = '0;
    b = put(b, 0, 2, 512'(VendorId));
    b = put(b, 2, 2, 512'(VendorId));
    b = put(b, 4, 20, reverse(512'(SerialNumber), 20));
    b = put(b, 24, 40, reverse(512'(Model), 40));
    return b;
  endfunction

  function automatic beat_t controller1();
    beat_t b = '0;
    b = put(b, 0, 8, reverse(512'(Firmware), 8));  // 64: FR
    b = put(b, 13, 1, 512'(8));  // 77: MDTS, 1 MiB
    b = put(b, 14, 2, 512'(1));  // 78: CNTLID
    b = put(b, 16, 4, 512'h0001_0400);  // 80: VER
    b = put(b, 20, 4, 512'(100_000));  // 84: RTD3R, us
    b = put(b, 24, 4, 512'(1_000_000));  // 88: RTD3E, us
    b = put(b, 47, 1, 512'(1));  // 111: CNTRLTYPE, I/O controller
    return b;
  endfunction

  function automatic beat_t controller4();
    beat_t b = '0;
    b = put(b, 2, 1, 512'(3));  // 258: ACL
    b = put(b, 3, 1, 512'(NumEvents - 1));  // 259: AERL
    b = put(b, 4, 1, 512'h03);  // 260: FRMW, one slot, read only
    b = put(b, 10, 2, 512'h0157);  // 266: WCTEMP
    b = put(b, 12, 2, 512'h0166);  // 268: CCTEMP
    return b;
  endfunction

  function automatic beat_t controller8();
    beat_t b = '0;
    b = put(b, 0, 1, 512'h66);  // 512: SQES
    b = put(b, 1, 1, 512'h44);  // 513: CQES
    b = put(b, 4, 4, 512'(1));  // 516: NN
    b = put(b, 8, 2, 512'h008D);  // 520: ONCS: Compare, Dataset Management, Write Zeroes, Verify
    b = put(b, 13, 1, 512'h06);  // 525: VWC, no cache; flush of all namespaces accepted
    return b;
  endfunction

  function automatic beat_t controller12();
    return reverse(512'({SubNqnPrefix, SerialNumber}), 61);  // 768: SUBNQN
  endfunction

  function automatic beat_t controller32();
    return put('0, 0, 2, 512'(2500));  // 2048: power state 0, 25 W
  endfunction

  // Identify Namespace (figure 245).
  function automatic beat_t namespace0();
    beat_t b = '0;
    b = put(b, 0, 8, 512'(NumBlocks));  // NSZE
    b = put(b, 8, 8, 512'(NumBlocks));  // NCAP
    b = put(b, 16, 8, 512'(NumBlocks));  // NUSE
    b = put(b, 33, 1, 512'h09);  // DLFEAT: deallocated blocks read as zeros; Write Zeroes may deallocate
    return b;
  endfunction

  function automatic beat_t namespace1();
    beat_t b = '0;
    b = put(b, 40, 16, reverse(512'({NguidHigh, Eui64}), 16));  // 104: NGUID
    b = put(b, 56, 8, reverse(512'(Eui64), 8));  // 120: EUI64
    return b;
  endfunction

  function automatic beat_t namespace2();
    return put('0, 2, 1, 512'(9));  // 130: LBAF0.LBADS
  endfunction

  // Namespace Identification Descriptors (figure 249).
  function automatic beat_t descriptors0();
    beat_t b = '0;
    b = put(b, 0, 4, 512'h0000_0801);  // EUI-64, 8 bytes
    b = put(b, 4, 8, reverse(512'(Eui64), 8));
    b = put(b, 12, 4, 512'h0000_1002);  // NGUID, 16 bytes
    b = put(b, 16, 16, reverse(512'({NguidHigh, Eui64}), 16));
    return b;
  endfunction

  localparam beat_t Controller0 = controller0();
  localparam beat_t Controller1 = controller1();
  localparam beat_t Controller4 = controller4();
  localparam beat_t Controller8 = controller8();
  localparam beat_t Controller12 = controller12();
  localparam beat_t Controller32 = controller32();
  localparam beat_t Namespace0 = namespace0();
  localparam beat_t Namespace1 = namespace1();
  localparam beat_t Namespace2 = namespace2();
  localparam beat_t Descriptors0 = descriptors0();

  // The burst: beat_q is the next one to load into the output register.
  logic busy_q, valid_q, last_q;
  logic [5:0] beat_q;
  logic [7:0] left_q;
  logic [IdWidth-1:0] id_q;
  beat_t data_q;
  logic load;
  logic [7:0] at;  // page and beat

  assign at = {page_i, beat_q};

  assign load = busy_q && (!valid_q || r_ready_i);
  assign ar_ready_o = !busy_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      valid_q <= 1'b0;
    end else begin
      if (ar_valid_i && !busy_q) busy_q <= 1'b1;
      else if (load && left_q == '0) busy_q <= 1'b0;
      if (load) valid_q <= 1'b1;
      else if (r_ready_i) valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!busy_q) begin
      beat_q <= ar_i.addr[11:6];
      left_q <= ar_i.len;
      if (ar_valid_i) id_q <= ar_i.id;
    end else if (load) begin
      beat_q <= beat_q + 1'b1;
      left_q <= left_q - 1'b1;
    end
    if (load) begin
      last_q <= left_q == '0;
      unique case (at)
        {PageController, 6'd0}:  data_q <= Controller0;
        {PageController, 6'd1}:  data_q <= Controller1;
        {PageController, 6'd4}:  data_q <= Controller4;
        {PageController, 6'd8}:  data_q <= Controller8;
        {PageController, 6'd12}: data_q <= Controller12;
        {PageController, 6'd32}: data_q <= Controller32;
        {PageNamespace, 6'd0}:   data_q <= Namespace0;
        {PageNamespace, 6'd1}:   data_q <= Namespace1;
        {PageNamespace, 6'd2}:   data_q <= Namespace2;
        {PageNsList, 6'd0}:      data_q <= empty_i ? '0 : beat_t'(1);
        {PageDescriptors, 6'd0}: data_q <= Descriptors0;
        default:                 data_q <= '0;
      endcase
    end
  end

  assign r_o = '{id: id_q, resp: RespOkay, last: last_q, data: data_q};
  assign r_valid_o = valid_q;
  assign busy_o = busy_q || valid_q;

  logic unused;
  assign unused = ^{ar_i.size, ar_i.burst, ar_i.addr[63:12], ar_i.addr[5:0]};

endmodule
