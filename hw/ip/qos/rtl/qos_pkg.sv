// Quality of service of a master at a memory channel.
package qos_pkg;

  /// Masters: the PM window, the NVMe controller, six engines.
  parameter int unsigned Masters = 8;
  /// Bits of a number of lines outstanding.
  parameter int unsigned CreditBits = 10;
  /// Bits of a weight.
  parameter int unsigned WeightBits = 8;

  typedef struct packed {
    logic [CreditBits-1:0] reads;   // lines read and not received, at most; 0: no limit
    logic [CreditBits-1:0] writes;  // lines written without a response
    logic [CreditBits-1:0] beside;  // both, while the NVMe controller has something outstanding; 0: no other limit
    logic [WeightBits-1:0] weight;  // lines in a round, at least 1
  } qos_t;

endpackage
