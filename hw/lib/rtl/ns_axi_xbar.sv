// AXI4 crossbar: `NumMasters` masters, `NumSlaves` address-interleaved slaves, every pair connected.
//
// One ns_axi_demux a master (addresses, order, DECERR) and one ns_axi_mux a slave (arbitration, IDs); their headers say how
// they route, order and arbitrate. Master m uses IDs below 2**(8 - log2(NumMasters)); a slave sees m in the upper
// bits. An address takes three cycles through the crossbar, data and responses two; each port moves one beat a cycle.
//
// Assumes slaves that do not interleave the beats of different reads. Reads and writes are not ordered against each other.
module ns_axi_xbar
  import ns_axi_pkg::*;
#(
  /// Number of masters, 1 to 128.
  parameter int unsigned NumMasters = 2,
  /// Number of slaves, a power of two.
  parameter int unsigned NumSlaves = 2,
  /// Bytes that stay together on a slave, a power of two, at least 4096.
  parameter int unsigned Granule = 4096,
  /// Size of the address space; DECERR from there on.
  parameter logic [AddrWidth-1:0] Bytes = 64'h1_0000_0000,
  /// Transactions under way per master, direction and ID.
  parameter int unsigned MaxOutstanding = 32,
  /// Writes per slave whose address has been granted and whose data is not complete.
  parameter int unsigned MaxWrites = 16,
  /// Low ID bits that tell a master's transactions apart when order is kept.
  parameter int unsigned OrderBits = 4
) (
  /// Clock.
  input  logic                  clk_i,
  /// Reset.
  input  logic                  rst_ni,

  /// Write address of each master.
  input  ax_t  [NumMasters-1:0] s_aw_i,
  /// Valid.
  input  logic [NumMasters-1:0] s_aw_valid_i,
  /// Ready.
  output logic [NumMasters-1:0] s_aw_ready_o,
  /// Write data of each master.
  input  w_t   [NumMasters-1:0] s_w_i,
  /// Valid.
  input  logic [NumMasters-1:0] s_w_valid_i,
  /// Ready.
  output logic [NumMasters-1:0] s_w_ready_o,
  /// Write response to each master.
  output b_t   [NumMasters-1:0] s_b_o,
  /// Valid.
  output logic [NumMasters-1:0] s_b_valid_o,
  /// Ready.
  input  logic [NumMasters-1:0] s_b_ready_i,
  /// Read address of each master.
  input  ax_t  [NumMasters-1:0] s_ar_i,
  /// Valid.
  input  logic [NumMasters-1:0] s_ar_valid_i,
  /// Ready.
  output logic [NumMasters-1:0] s_ar_ready_o,
  /// Read data to each master.
  output r_t   [NumMasters-1:0] s_r_o,
  /// Valid.
  output logic [NumMasters-1:0] s_r_valid_o,
  /// Ready.
  input  logic [NumMasters-1:0] s_r_ready_i,

  /// Write address to each slave.
  output ax_t  [NumSlaves-1:0]  m_aw_o,
  /// Valid.
  output logic [NumSlaves-1:0]  m_aw_valid_o,
  /// Ready.
  input  logic [NumSlaves-1:0]  m_aw_ready_i,
  /// Write data to each slave.
  output w_t   [NumSlaves-1:0]  m_w_o,
  /// Valid.
  output logic [NumSlaves-1:0]  m_w_valid_o,
  /// Ready.
  input  logic [NumSlaves-1:0]  m_w_ready_i,
  /// Write response of each slave.
  input  b_t   [NumSlaves-1:0]  m_b_i,
  /// Valid.
  input  logic [NumSlaves-1:0]  m_b_valid_i,
  /// Ready.
  output logic [NumSlaves-1:0]  m_b_ready_o,
  /// Read address to each slave.
  output ax_t  [NumSlaves-1:0]  m_ar_o,
  /// Valid.
  output logic [NumSlaves-1:0]  m_ar_valid_o,
  /// Ready.
  input  logic [NumSlaves-1:0]  m_ar_ready_i,
  /// Read data of each slave.
  input  r_t   [NumSlaves-1:0]  m_r_i,
  /// Valid.
  input  logic [NumSlaves-1:0]  m_r_valid_i,
  /// Ready.
  output logic [NumSlaves-1:0]  m_r_ready_o
);

  // [master][slave], as the demultiplexers see it.
  ax_t [NumMasters-1:0][NumSlaves-1:0] aw;
  ax_t [NumMasters-1:0][NumSlaves-1:0] ar;
  w_t  [NumMasters-1:0][NumSlaves-1:0] w;
  b_t  [NumMasters-1:0][NumSlaves-1:0] b;
  r_t  [NumMasters-1:0][NumSlaves-1:0] r;
  logic [NumMasters-1:0][NumSlaves-1:0] aw_valid, w_valid, b_valid, ar_valid, r_valid;
  logic [NumMasters-1:0][NumSlaves-1:0] aw_ready, w_ready, b_ready, ar_ready, r_ready;

  // [slave][master], as the multiplexers see it.
  ax_t [NumSlaves-1:0][NumMasters-1:0] t_aw;
  ax_t [NumSlaves-1:0][NumMasters-1:0] t_ar;
  w_t  [NumSlaves-1:0][NumMasters-1:0] t_w;
  b_t  [NumSlaves-1:0][NumMasters-1:0] t_b;
  r_t  [NumSlaves-1:0][NumMasters-1:0] t_r;
  logic [NumSlaves-1:0][NumMasters-1:0] t_aw_valid, t_w_valid, t_b_valid, t_ar_valid, t_r_valid;
  logic [NumSlaves-1:0][NumMasters-1:0] t_aw_ready, t_w_ready, t_b_ready, t_ar_ready, t_r_ready;

  for (genvar m = 0; m < NumMasters; m++) begin : gen_master
    ns_axi_demux #(
      .M             (NumSlaves),
      .Granule       (Granule),
      .Bytes         (Bytes),
      .MaxOutstanding(MaxOutstanding),
      .OrderBits     (OrderBits)
    ) u_demux (
      .clk_i,
      .rst_ni,
      .s_aw_i      (s_aw_i[m]),
      .s_aw_valid_i(s_aw_valid_i[m]),
      .s_aw_ready_o(s_aw_ready_o[m]),
      .s_w_i       (s_w_i[m]),
      .s_w_valid_i (s_w_valid_i[m]),
      .s_w_ready_o (s_w_ready_o[m]),
      .s_b_o       (s_b_o[m]),
      .s_b_valid_o (s_b_valid_o[m]),
      .s_b_ready_i (s_b_ready_i[m]),
      .s_ar_i      (s_ar_i[m]),
      .s_ar_valid_i(s_ar_valid_i[m]),
      .s_ar_ready_o(s_ar_ready_o[m]),
      .s_r_o       (s_r_o[m]),
      .s_r_valid_o (s_r_valid_o[m]),
      .s_r_ready_i (s_r_ready_i[m]),
      .m_aw_o      (aw[m]),
      .m_aw_valid_o(aw_valid[m]),
      .m_aw_ready_i(aw_ready[m]),
      .m_w_o       (w[m]),
      .m_w_valid_o (w_valid[m]),
      .m_w_ready_i (w_ready[m]),
      .m_b_i       (b[m]),
      .m_b_valid_i (b_valid[m]),
      .m_b_ready_o (b_ready[m]),
      .m_ar_o      (ar[m]),
      .m_ar_valid_o(ar_valid[m]),
      .m_ar_ready_i(ar_ready[m]),
      .m_r_i       (r[m]),
      .m_r_valid_i (r_valid[m]),
      .m_r_ready_o (r_ready[m])
    );

    for (genvar s = 0; s < NumSlaves; s++) begin : gen_pair
      assign t_aw[s][m] = aw[m][s];
      assign t_w[s][m] = w[m][s];
      assign b[m][s] = t_b[s][m];
      assign t_ar[s][m] = ar[m][s];
      assign r[m][s] = t_r[s][m];
      assign t_aw_valid[s][m] = aw_valid[m][s];
      assign t_w_valid[s][m] = w_valid[m][s];
      assign b_valid[m][s] = t_b_valid[s][m];
      assign t_ar_valid[s][m] = ar_valid[m][s];
      assign r_valid[m][s] = t_r_valid[s][m];
      assign aw_ready[m][s] = t_aw_ready[s][m];
      assign w_ready[m][s] = t_w_ready[s][m];
      assign t_b_ready[s][m] = b_ready[m][s];
      assign ar_ready[m][s] = t_ar_ready[s][m];
      assign t_r_ready[s][m] = r_ready[m][s];
    end
  end

  for (genvar s = 0; s < NumSlaves; s++) begin : gen_slave
    ns_axi_mux #(
      .N        (NumMasters),
      .MaxWrites(MaxWrites)
    ) u_mux (
      .clk_i,
      .rst_ni,
      .s_aw_i      (t_aw[s]),
      .s_aw_valid_i(t_aw_valid[s]),
      .s_aw_ready_o(t_aw_ready[s]),
      .s_w_i       (t_w[s]),
      .s_w_valid_i (t_w_valid[s]),
      .s_w_ready_o (t_w_ready[s]),
      .s_b_o       (t_b[s]),
      .s_b_valid_o (t_b_valid[s]),
      .s_b_ready_i (t_b_ready[s]),
      .s_ar_i      (t_ar[s]),
      .s_ar_valid_i(t_ar_valid[s]),
      .s_ar_ready_o(t_ar_ready[s]),
      .s_r_o       (t_r[s]),
      .s_r_valid_o (t_r_valid[s]),
      .s_r_ready_i (t_r_ready[s]),
      .m_aw_o      (m_aw_o[s]),
      .m_aw_valid_o(m_aw_valid_o[s]),
      .m_aw_ready_i(m_aw_ready_i[s]),
      .m_w_o       (m_w_o[s]),
      .m_w_valid_o (m_w_valid_o[s]),
      .m_w_ready_i (m_w_ready_i[s]),
      .m_b_i       (m_b_i[s]),
      .m_b_valid_i (m_b_valid_i[s]),
      .m_b_ready_o (m_b_ready_o[s]),
      .m_ar_o      (m_ar_o[s]),
      .m_ar_valid_o(m_ar_valid_o[s]),
      .m_ar_ready_i(m_ar_ready_i[s]),
      .m_r_i       (m_r_i[s]),
      .m_r_valid_i (m_r_valid_i[s]),
      .m_r_ready_o (m_r_ready_o[s])
    );
  end

endmodule
