// SPDX-License-Identifier: Apache-2.0

// AXI4 bus: one port for a whole bus, its read half, or its write half.
//
// Signals are those of AXI4; the payload of each channel is a struct of ns_axi_pkg. `valid`,
// `ready` and payload are separate variables. So a simulator sees no loop if `ready` depends on
// `valid` in the opposite direction. ns_axi_flat.svh connects a bus to flat ports (`s_axi_awaddr`
// ...), as at the edge of the device.
interface ns_axi_if;
  import ns_axi_pkg::*;

  ax_t aw;
  logic aw_valid, aw_ready;
  w_t w;
  logic w_valid, w_ready;
  b_t b;
  logic b_valid, b_ready;
  ax_t ar;
  logic ar_valid, ar_ready;
  r_t r;
  logic r_valid, r_ready;

  modport master(
      output aw, aw_valid, w, w_valid, b_ready, ar, ar_valid, r_ready,
      input aw_ready, w_ready, b, b_valid, ar_ready, r, r_valid
  );
  modport slave(
      input aw, aw_valid, w, w_valid, b_ready, ar, ar_valid, r_ready,
      output aw_ready, w_ready, b, b_valid, ar_ready, r, r_valid
  );
  modport read_master(output ar, ar_valid, r_ready, input ar_ready, r, r_valid);
  modport read_slave(input ar, ar_valid, r_ready, output ar_ready, r, r_valid);
  modport write_master(
      output aw, aw_valid, w, w_valid, b_ready,
      input aw_ready, w_ready, b, b_valid
  );
  modport write_slave(
      input aw, aw_valid, w, w_valid, b_ready,
      output aw_ready, w_ready, b, b_valid
  );

endinterface
