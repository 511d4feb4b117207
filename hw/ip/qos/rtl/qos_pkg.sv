// SPDX-License-Identifier: Apache-2.0

// Quality of service of a master at a memory channel.
package qos_pkg;

  /// Masters: the PM window, the NVMe controller, six engines.
  parameter int unsigned Masters = 8;
  /// Bits of a count of outstanding lines.
  parameter int unsigned CreditBits = 10;
  /// Bits of a weight.
  parameter int unsigned WeightBits = 8;

  typedef struct packed {
    logic [CreditBits-1:0] reads;   // most lines outstanding of reads; 0: no limit
    logic [CreditBits-1:0] writes;  // the same of writes
    logic [CreditBits-1:0] beside;  // both, while the NVMe controller has accesses outstanding; 0: no further limit
    logic [WeightBits-1:0] weight;  // lines per round, at least 1
  } qos_t;

endpackage
