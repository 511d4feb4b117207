# Library: primitives and AXI4 interconnect.
+incdir+hw/lib/rtl
hw/lib/rtl/ns_axi_pkg.sv
hw/lib/rtl/ns_ram_1r1w.sv
hw/lib/rtl/ns_fifo.sv
hw/lib/rtl/ns_skid.sv
hw/lib/rtl/ns_skid_mux.sv
hw/lib/rtl/ns_rr_arbiter.sv
hw/lib/rtl/ns_clock_gate.sv
hw/lib/rtl/ns_axi_mux.sv
hw/lib/rtl/ns_axi_fill.sv
hw/lib/rtl/ns_axi_drain.sv
hw/lib/rtl/ns_axi_error.sv
hw/lib/rtl/ns_axi_route.sv
hw/lib/rtl/ns_axi_demux.sv
hw/lib/rtl/ns_axi_xbar.sv
hw/lib/rtl/ns_axil_demux.sv
