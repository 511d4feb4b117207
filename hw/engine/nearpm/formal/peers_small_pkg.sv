// nearpm_pkg for two devices of few logs and transactions, as far as the handler of several devices needs it.
package nearpm_pkg;

  parameter int unsigned Pools = 2;
  parameter int unsigned Threads = 2;
  parameter int unsigned ThreadBits = 1;
  parameter int unsigned LogBits = 2;
  parameter int unsigned MediaBits = 32;
  parameter int unsigned Devices = 2;
  parameter int unsigned DeviceBits = 1;
  parameter int unsigned SequenceBits = 2;
  parameter logic [11:0] PeersDone = 12'h1C0;

  typedef logic [SequenceBits-1:0] sequence_t;

  typedef struct packed {
    logic                 mapped;
    logic [MediaBits-1:0] media;
    logic [MediaBits-1:0] logs;
    logic [MediaBits-1:0] log_bytes;
  } pool_t;

  typedef struct packed {
    logic               open;
    logic               pending;
    logic [Devices-1:0] participants;
    sequence_t          number;
    logic               committed;
    logic [63:0]        generation;
    logic [31:0]        next;
    logic [31:0]        last;
    logic [31:0]        records;
  } log_t;

  typedef struct packed {
    logic [LogBits-1:0]               log;
    logic [63-LogBits-SequenceBits:0] zero;
    sequence_t                        number;
  } completion_t;

  typedef struct packed {
    logic [LogBits-1:0]   log;
    logic [MediaBits-1:0] base;
    logic [63:0]          generation;
    sequence_t            number;
  } delete_t;

  typedef struct packed {
    logic [Devices-1:0]      tell;
    sequence_t               all;
    sequence_t [Devices-1:0] seen;
  } peers_row_t;

endpackage
