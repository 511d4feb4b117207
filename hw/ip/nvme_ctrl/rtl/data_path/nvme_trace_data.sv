// SPDX-License-Identifier: Apache-2.0

// Events of commands in the data path, for a trace. nvme_trace says how events are encoded.
//
// A descriptor is traced with its slot when a mover accepts it. A mover executes descriptors in
// order, each with one source read except for zeros. For the reads and for the first data of each,
// the number of the mover is therefore sufficient.
module nvme_trace_data
  import nvme_pkg::*;
#(
  /// Movers to the host, those before the movers to the media.
  parameter int unsigned NumToHost = 3,
  /// Movers.
  parameter int unsigned NumMovers = 5
) (
  input logic clk_i,
  input logic rst_ni,

  /// A mover accepts a descriptor, one of each direction at a time.
  input logic [NumMovers-1:0]          desc_i,
  /// Slot of the descriptor to the host (0) and of that to the media (1).
  input logic [1:0][SlotWidth-1:0]     slot_i,
  /// A mover's source read is accepted.
  input logic [NumMovers-1:0]          read_i,
  /// A beat of source data arrives.
  input logic [NumMovers-1:0]          beat_i,
  /// The beat is the last of its read. Only with beat_i.
  input logic [NumMovers-1:0]          last_i,

  /// From the right: events (descriptor to the host, to the media), 6 zeros, slots of the two,
  /// movers of the two.
  output logic [39:0]            desc_o,
  /// Events: source reads of each mover.
  output logic [NumMovers-1:0]   read_o,
  /// Events: first beats of source data of each mover.
  output logic [NumMovers-1:0]   data_o,
  /// Events: beats of source data of each mover.
  output logic [NumMovers-1:0]   beat_o
);

  logic [1:0] desc, event_q;
  logic [1:0][SlotWidth-1:0] slot_q;
  logic [1:0][7:0] mover, mover_q;
  logic [NumMovers-1:0] read_q, data_q, beat_q, read_open_q;  // within the data of a read

  assign desc = {desc_i[NumMovers-1:NumToHost] != '0, desc_i[NumToHost-1:0] != '0};

  always_comb begin
    mover = '0;
    for (int unsigned m = 0; m < NumMovers; m++) begin
      if (desc_i[m]) mover[m>=NumToHost] = 8'(m);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      event_q  <= '0;
      read_q   <= '0;
      data_q   <= '0;
      beat_q   <= '0;
      read_open_q <= '0;
    end else begin
      event_q  <= event_q ^ desc;
      read_q   <= read_q ^ read_i;
      data_q   <= data_q ^ (beat_i & ~read_open_q);
      beat_q   <= beat_q ^ beat_i;
      read_open_q <= (read_open_q | beat_i) & ~(beat_i & last_i);
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned d = 0; d < 2; d++) begin
      if (desc[d]) begin
        slot_q[d]  <= slot_i[d];
        mover_q[d] <= mover[d];
      end
    end
  end

  assign desc_o = {mover_q[1], mover_q[0], slot_q[1], slot_q[0], 6'd0, event_q};
  assign read_o = read_q;
  assign data_o = data_q;
  assign beat_o = beat_q;

endmodule
