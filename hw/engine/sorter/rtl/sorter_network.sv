// SPDX-License-Identifier: Apache-2.0

// Bitonic sorting network: a pipeline of compare-and-swap stages with a throughput of one row per
// cycle.
//
// If `Full`, it sorts any row (24 compare-and-swaps in 6 stages for 8 lanes). Else it is the final
// merge part, which sorts a row that is bitonic in any rotation (12 in 3 stages). Equal records can
// change places, so records have to be unique. There is no back-pressure: the sender of a row
// reserves room for the result.
module sorter_network #(
  /// Bits of a record. Records are in ascending order.
  parameter int unsigned Width = 96,
  /// Records in a row, a power of two.
  parameter int unsigned Lanes = 8,
  /// Sort any row, not only bitonic ones.
  parameter bit          Full = 1'b1,
  /// Bits of the tag that accompanies a row.
  parameter int unsigned TagBits = 1,
  localparam int unsigned Log = unsigned'($clog2(Lanes)),
  localparam int unsigned Stages = Full ? Log * (Log + 1) / 2 : Log
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  /// Discards all rows: in the next cycle the state is that after a reset.
  input  logic                        flush_i,
  /// A row is in flight. Driven by registers.
  output logic                        busy_o,
  input  logic                        valid_i,
  input  logic [TagBits-1:0]           tag_i,
  input  logic [Lanes-1:0][Width-1:0] row_i,
  output logic                        valid_o,
  output logic [TagBits-1:0]           tag_o,
  output logic [Lanes-1:0][Width-1:0] row_o
);

  logic [Stages:0] valid;
  logic [Stages:0][TagBits-1:0] tag;
  logic [Stages:0][Lanes-1:0][Width-1:0] row;

  assign valid[0] = valid_i;
  assign tag[0] = tag_i;
  assign row[0] = row_i;

  // Sort blocks of 2**block lanes by compare-and-swaps of halving distance.
  for (genvar block = Full ? 1 : Log; block <= Log; block++) begin : gen_block
    for (genvar step = 0; step < block; step++) begin : gen_step
      localparam int unsigned Stage = Full ? block * (block - 1) / 2 + step : step;
      localparam int unsigned Distance = 1 << (block - 1 - step);
      logic [Lanes-1:0][Width-1:0] next;

      for (genvar lane = 0; lane < Lanes; lane++) begin : gen_lane
        localparam int unsigned Partner = lane ^ Distance;
        // The lower lane of a pair gets the lesser record. In every second block it gets the
        // greater one, so that two blocks form a bitonic block.
        localparam bit TakesFirst = ((lane & Distance) == 0) == ((lane & (1 << block)) == 0);
        logic not_after;
        assign not_after = (lane < Partner) ? row[Stage][lane] <= row[Stage][Partner] : row[Stage][lane] < row[Stage][Partner];
        assign next[lane] = (not_after == TakesFirst) ? row[Stage][lane] : row[Stage][Partner];
      end

      always_ff @(posedge clk_i) begin
        if (valid[Stage]) begin
          row[Stage+1] <= next;
          tag[Stage+1] <= tag[Stage];
        end
      end
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) valid[Stage+1] <= 1'b0;
        else valid[Stage+1] <= valid[Stage] && !flush_i;
      end
    end
  end

  assign valid_o = valid[Stages];
  assign tag_o = tag[Stages];
  assign row_o = row[Stages];
  assign busy_o = valid[Stages:1] != '0;

  if (Lanes < 2 || 2 ** Log != Lanes) begin : gen_bad_lanes
    $error("sorter_network: Lanes must be a power of two of at least 2");
  end

endmodule
