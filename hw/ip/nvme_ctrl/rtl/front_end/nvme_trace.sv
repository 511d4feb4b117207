// SPDX-License-Identifier: Apache-2.0

// Events of commands in the front end, for a trace.
//
// Each kind of event has a bit of `event_o` that toggles with it, and registers that identify the
// event. They hold until the next event of that kind. Nothing is lost while the clock stops, and an
// observer that samples every cycle sees all events. An event shows after the clock edge at which
// it happened; a decoded command one cycle later. The outputs drive no other logic: if they are
// unconnected, the block is removed.
module nvme_trace
  import nvme_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  /// The read of a submission queue entry is requested.
  input logic                 fetch_i,
  /// For this slot.
  input logic [SlotWidth-1:0] fetch_slot_i,
  /// From this queue.
  input logic [QidWidth-1:0]  fetch_qid_i,
  /// Its head after this entry.
  input logic [PtrWidth-1:0]  fetch_head_i,

  /// A command is decoded at the end of this cycle.
  input logic                decode_i,
  /// Its queue.
  input logic [QidWidth-1:0] decode_qid_i,
  /// Its fields, from the next cycle on.
  input admin_cmd_t          sqe_i,

  /// The data path accepts a command.
  input logic                 start_i,
  /// Its slot.
  input logic [SlotWidth-1:0] start_slot_i,
  /// The data path has ended a command.
  input logic                 done_i,
  /// Its slot.
  input logic [SlotWidth-1:0] done_slot_i,

  /// A completion queue entry is written.
  input logic                 post_i,
  /// Its address.
  input logic [63:2]          cqe_addr_i,
  /// The entry.
  input logic [127:0]         cqe_i,
  /// The cycle after the entry, or if there is none: the slot is released.
  input logic                 retire_i,
  /// The slot.
  input logic [SlotWidth-1:0] retire_slot_i,
  /// The entry requests an interrupt.
  input logic                 irq_i,
  /// Of this vector.
  input logic [QidWidth-1:0]  irq_vector_i,

  /// An MSI-X message leaves.
  input logic                msg_i,
  /// Its vector.
  input logic [QidWidth-1:0] msg_vector_i,
  /// Its address.
  input logic [63:2]         msg_addr_i,
  /// Its data.
  input logic [31:0]         msg_data_i,

  /// From the right: events (fetch, decode, start, done, post, retire, message), queue and head of
  /// the fetch, slots of fetch, retire, done and start.
  output logic [63:0]  event_o,
  /// Decoded command, from the right: queue, slot, opcode, 8 zeros, CID, 16 zeros, NSID, CDW10 to
  /// CDW12.
  output logic [191:0] sqe_o,
  /// Entry or message, from the right: data, address.
  output logic [191:0] cqe_o,
  /// From the right: vector of the entry's interrupt, whether the entry requests it, vector of the
  /// message.
  output logic [15:0]  irq_o
);

  localparam int unsigned NumEvents = 7;

  logic [NumEvents-1:0] event_d, event_q;
  logic decoded_q, irq_q;
  logic [QidWidth-1:0] fetch_qid_q, decode_qid_q, irq_vector_q, msg_vector_q;
  logic [PtrWidth-1:0] head_q;
  logic [SlotWidth-1:0] fetch_slot_q, start_slot_q, done_slot_q, retire_slot_q;
  logic [191:0] sqe_q, cqe_q;

  logic unused;
  assign unused  = ^sqe_i;
  assign event_d = {msg_i, retire_i, post_i, done_i, start_i, decoded_q, fetch_i};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      event_q   <= '0;
      decoded_q <= 1'b0;
    end else begin
      event_q   <= event_q ^ event_d;
      decoded_q <= decode_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (decode_i) decode_qid_q <= decode_qid_i;
    if (event_d != '0) begin
      if (fetch_i) begin
        fetch_slot_q <= fetch_slot_i;
        fetch_qid_q <= fetch_qid_i;
        head_q <= fetch_head_i;
      end
      if (decoded_q) begin
        sqe_q <= {
          sqe_i.cdw12,
          sqe_i.cdw11,
          sqe_i.cdw10,
          sqe_i.nsid,
          16'd0,
          sqe_i.cid,
          8'd0,
          sqe_i.opcode,
          sqe_i.slot,
          8'(decode_qid_q)
        };
      end
      if (start_i) start_slot_q <= start_slot_i;
      if (done_i) done_slot_q <= done_slot_i;
      if (post_i) cqe_q <= {cqe_addr_i, 2'b0, cqe_i};
      if (retire_i) begin
        retire_slot_q <= retire_slot_i;
        irq_q <= irq_i;
        irq_vector_q <= irq_vector_i;
      end
      if (msg_i) begin
        cqe_q <= {msg_addr_i, 2'b0, 96'd0, msg_data_i};
        msg_vector_q <= msg_vector_i;
      end
    end
  end

  assign event_o = {start_slot_q, done_slot_q, retire_slot_q, fetch_slot_q, head_q, 8'(fetch_qid_q), 8'(event_q)};
  assign sqe_o = sqe_q;
  assign cqe_o = cqe_q;
  assign irq_o = {8'(msg_vector_q), irq_q, irq_vector_q};

endmodule
