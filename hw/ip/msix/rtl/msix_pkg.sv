// SPDX-License-Identifier: Apache-2.0

// Interface of the MSI-X block and the block that has its table in a BAR and sends its messages.
package msix_pkg;

  /// Bits of a vector's number.
  parameter int unsigned VectorWidth = 7;
  /// Most vectors.
  parameter int unsigned MaxVectors = 2 ** VectorWidth;

  /// From the sender.
  typedef struct packed {
    logic                   clear;            // clears the pending bits of its vectors
    logic                   irq;              // interrupt request, for one cycle
    logic [VectorWidth-1:0] vector;           // its vector
    logic                   withdraw;         // the cause of a request has gone, for one cycle
    logic [VectorWidth-1:0] withdraw_vector;  // its vector
    logic                   msg_ready;        // the message is accepted
    logic                   table_req;        // access to the table; lasts one cycle
    logic                   table_we;         // it is a write
    logic [11:2]            table_addr;       // word of the table
    logic [31:0]            table_biten;      // bits to write
    logic [31:0]            table_wdata;      // data to write
  } to_msix_t;

  /// To the sender.
  typedef struct packed {
    logic                   busy;         // a message is available, or may become so
    logic                   msg_valid;    // a message
    logic [VectorWidth-1:0] msg_vector;   // its vector
    logic                   table_ack;    // the access of the cycle before is done
    logic [31:0]            table_rdata;  // its data
    logic [31:0]            msg_data;     // data of the message
    logic [63:2]            msg_addr;     // address of the message
    logic [MaxVectors-1:0]  pending;      // pending bits
  } from_msix_t;

endpackage
