// What passes between the MSI-X block and the block that has its table in a BAR and sends its messages.
package msix_pkg;

  /// Vectors are numbered with so many bits.
  parameter int unsigned VectorWidth = 7;
  /// Vectors at most.
  parameter int unsigned MaxVectors = 2 ** VectorWidth;

  /// From the sender.
  typedef struct packed {
    logic                   clear;            // its vectors are not pending any more
    logic                   irq;              // interrupt request, for one cycle
    logic [VectorWidth-1:0] vector;           // of it
    logic                   withdraw;         // the cause of a request has gone, for one cycle
    logic [VectorWidth-1:0] withdraw_vector;  // of that
    logic                   msg_ready;        // the message is taken
    logic                   table_req;        // access to the table; lasts one cycle
    logic                   table_we;         // it is a write
    logic [11:2]            table_addr;       // word of the table
    logic [31:0]            table_biten;      // bits to write
    logic [31:0]            table_wdata;      // data to write
  } to_msix_t;

  /// To the sender.
  typedef struct packed {
    logic                   busy;         // a message is there, or will soon be
    logic                   msg_valid;    // a message
    logic [VectorWidth-1:0] msg_vector;   // its vector
    logic                   table_ack;    // the access of the cycle before is done
    logic [31:0]            table_rdata;  // its data
    logic [31:0]            msg_data;     // what the message writes
    logic [63:2]            msg_addr;     // where to
    logic [MaxVectors-1:0]  pending;      // pending bits
  } from_msix_t;

endpackage
