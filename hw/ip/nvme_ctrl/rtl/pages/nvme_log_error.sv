// SPDX-License-Identifier: Apache-2.0

// Error Information log (NVMe 1.4, 5.14.1.1): a ring of the latest errors, newest first.
//
// An entry is made for every completion whose status is not 0, with the namespace and the first LBA
// of its command. Each kind of doorbell error (figure 145) makes an entry with SQID and CID FFFFh
// and the closest status. So does the expiry of the Keep Alive Timeout. Error counts are not
// stored: they count down from the newest. Entries that are overwritten during a transfer read as
// 0. The parameter error location (FFFFh) and command specific information are not supported. The
// log is lost with power.
`include "ns_assert.svh"

module nvme_log_error
  import nvme_pkg::*;
#(
  /// Command slots.
  parameter int unsigned NumSlots  = 128,
  /// Entries, a power of two, 16 to 64.
  parameter int unsigned NumErrors = 64
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  /// From registers: an entry is being made.
  output logic                 busy_o,

  /// A slot gets a command.
  input  owner_t               owner_i,
  input  logic                 owner_valid_i,

  /// Entry that is being posted to a completion queue.
  input  posted_t              posted_i,
  /// Valid; at most every third cycle.
  input  logic                 posted_valid_i,
  /// A doorbell that does not exist was written.
  input  logic                 bad_register_i,
  /// An invalid value was written to a doorbell.
  input  logic                 bad_value_i,
  /// The Keep Alive Timeout has expired.
  input  logic                 expired_i,
  /// Errors so far.
  output logic [47:0]          count_o,

  /// A transfer begins.
  input  logic                 snapshot_i,
  /// Read a beat.
  input  logic                 re_i,
  /// Beat, of the 64 of a page; each is one entry.
  input  logic [5:0]           beat_i,
  /// The beat, one cycle later.
  output logic [511:0]         data_o
);

  localparam int unsigned SlotBits = ns_axi_pkg::idx_width(NumSlots);
  localparam int unsigned Bits = unsigned'($clog2(NumErrors));

  typedef struct packed {
    logic [15:0] sqid;
    logic [15:0] cid;
    logic [15:0] status;  // with phase
    logic [31:0] nsid;
    logic [63:0] lba;
  } entry_t;

  // Namespaces and LBAs of the commands in flight.
  logic [31:0] nsid;
  logic [63:0] lba;
  logic failed;

  assign failed = posted_valid_i && {posted_i.status.sct, posted_i.status.sc} != '0;

  ns_ram_1r1w #(
    .Width(96),
    .Depth(NumSlots)
  ) u_dispatch (
    .clk_i,
    .we_i   (owner_valid_i),
    .waddr_i(owner_i.slot[SlotBits-1:0]),
    .wdata_i({owner_i.nsid, owner_i.lba}),
    .re_i   (failed),
    .raddr_i(posted_i.slot[SlotBits-1:0]),
    .rdata_o({nsid, lba})
  );

  // The entry of a failed command is made in the next cycle; other entries wait for a free cycle.
  logic failed_q, register_q, value_q, expired_q, entry_we;
  logic [QidWidth-1:0] sqid_q;
  logic [15:0] cid_q, status_q;  // status with phase
  entry_t entry;
  logic [47:0] count_q;
  logic [Bits-1:0] next_q;

  assign entry_we = failed_q || register_q || value_q || expired_q;

  function automatic entry_t no_command(status_t status);
    return '{sqid: '1, cid: '1, status: {status, 1'b0}, nsid: '0, lba: '0};
  endfunction

  always_comb begin
    if (failed_q) begin
      entry = '{sqid: 16'(sqid_q), cid: cid_q, status: status_q, nsid: nsid, lba: lba};
    end else if (register_q) begin
      entry = no_command(command_status(ScInvalidQueueId));
    end else if (value_q) begin
      entry = no_command(generic_status(ScInvalidField));
    end else begin
      entry = no_command(generic_status(ScKeepAliveExpired));
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      failed_q <= 1'b0;
      register_q <= 1'b0;
      value_q <= 1'b0;
      expired_q <= 1'b0;
      count_q <= '0;
      next_q <= '0;
    end else begin
      failed_q <= failed;
      register_q <= bad_register_i || (register_q && failed_q);
      value_q <= bad_value_i || (value_q && (failed_q || register_q));
      expired_q <= expired_i || (expired_q && (failed_q || register_q || value_q));
      if (entry_we) begin
        count_q <= count_q + 1'b1;
        next_q <= next_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (failed) begin
      sqid_q   <= posted_i.sqid;
      cid_q    <= posted_i.cid;
      status_q <= {posted_i.status, posted_i.phase};
    end
  end

  (* ram_style = "distributed" *) entry_t ring_mem[NumErrors];
  always_ff @(posedge clk_i) if (entry_we) ring_mem[next_q] <= entry;

  // What a transfer shows: the ring at its start.
  logic [47:0] shown_count_q;
  logic [Bits-1:0] shown_next_q;
  logic [Bits:0] entries_since_q;  // entries made meanwhile, at most NumErrors

  always_ff @(posedge clk_i) begin
    if (snapshot_i) begin
      shown_count_q <= count_q;
      shown_next_q <= next_q;
      entries_since_q <= (Bits + 1)'(entry_we);
    end else if (entry_we && !entries_since_q[Bits]) begin
      entries_since_q <= entries_since_q + 1'b1;
    end
  end

  // The entry, and whether it is valid.
  entry_t read_q;
  logic [63:0] read_count_q;
  logic entry_valid_q;

  always_ff @(posedge clk_i)
    if (re_i) begin
      read_q <= ring_mem[shown_next_q-Bits'(beat_i)-1'b1];
      read_count_q <= 64'(shown_count_q) - 64'(beat_i);
      entry_valid_q <= 48'(beat_i) < shown_count_q && 32'(beat_i) + 32'(entries_since_q) < NumErrors;
    end

  always_comb begin
    data_o = '0;
    if (entry_valid_q) begin
      data_o[63:0] = read_count_q;
      data_o[8*8+:16] = read_q.sqid;
      data_o[8*10+:16] = read_q.cid;
      data_o[8*12+:16] = read_q.status;
      data_o[8*14+:16] = 16'hFFFF;  // Parameter Error Location: none
      data_o[8*16+:64] = read_q.lba;
      data_o[8*24+:32] = read_q.nsid;
    end
  end

  assign count_o = count_q;
  assign busy_o = entry_we;

  if (NumErrors < 16 || NumErrors > 64 || 2 ** Bits != NumErrors) begin : gen_bad_errors
    $error("nvme_log_error: NumErrors must be 16, 32 or 64");
  end

  `NS_ASSERT(slot_in_range, !posted_valid_i || 32'(posted_i.slot) < NumSlots)

endmodule
