# Table of commands of the crash-consistency engine.
-f hw/lib/lib.f
hw/engine/nearpm/rtl/nearpm_pkg.sv
hw/engine/nearpm/rtl/nearpm_lookup_if.sv
hw/engine/nearpm/rtl/nearpm_order_if.sv
hw/engine/nearpm/rtl/nearpm_range_match.sv
hw/engine/nearpm/rtl/nearpm_table.sv
