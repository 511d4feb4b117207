// SPDX-License-Identifier: Apache-2.0

// Sizes and types of nvm_delay.
package nvm_delay_pkg;

  /// Times are unsigned Q20.12 cycles and saturate at all ones (just below 1,048,576 cycles).
  parameter int unsigned TimeWidth = 32;
  parameter int unsigned FracBits = 12;
  parameter int unsigned IntBits = TimeWidth - FracBits;

  /// Cycles are counted modulo 2**CycleWidth: 67 ms at 250 MHz, 16 times the longest target.
  parameter int unsigned CycleWidth = 24;

  /// Address regions, which are counted in pages of 4 KiB.
  parameter int unsigned NumRegions = 4;
  parameter int unsigned PageBits = 12;

  /// Bandwidth caps are bytes per cycle in Q8.16.
  parameter int unsigned RateWidth = 24;
  parameter int unsigned RateFracBits = 16;

  /// Buckets of a latency histogram: four to an octave.
  parameter int unsigned Buckets = 64;

  typedef logic [TimeWidth-1:0] time_t;  // Q20.12
  typedef logic [RateWidth-1:0] rate_t;  // 0: no cap
  typedef logic [CycleWidth-1:0] cycle_t;  // cycle counter; only differences matter

  /// Committed parameters except the times, of which `bank` selects the active half.
  typedef struct packed {
    logic                        enable;
    logic                        bank;
    logic [NumRegions-1:0]       region_enable;
    logic [NumRegions-1:0][31:0] first;
    logic [NumRegions-1:0][31:0] last;
  } config_t;

  /// Index of a set of times: a region, NumRegions for addresses outside of all regions, or
  /// NumRegions + 1 for the calibration.
  parameter int unsigned RegionWidth = $clog2(NumRegions + 2);
  typedef logic [RegionWidth-1:0] region_t;

  /// A write to the times of a direction.
  typedef struct packed {
    logic   base;   // 1: base, 0: beat
    logic   bank;
    region_t region;
    time_t  data;
  } time_write_t;

  /// Fields of an address channel that nvm_delay passes unchanged.
  typedef struct packed {
    logic       lock;
    logic [1:0] burst;
    logic [2:0] prot;
    logic [3:0] cache;
    logic [3:0] qos;
    logic [3:0] region;
  } extra_t;

endpackage
