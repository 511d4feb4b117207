# The engine for crash consistency near memory.
hw/engine/nearpm/rtl/nearpm_pkg.sv
hw/engine/nearpm/rtl/nearpm_lookup_if.sv
hw/engine/nearpm/rtl/nearpm_order_if.sv
