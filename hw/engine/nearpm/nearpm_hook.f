# The access hook of the crash-consistency engine, one channel.
-f hw/lib/lib.f
hw/engine/nearpm/rtl/nearpm_pkg.sv
hw/engine/nearpm/rtl/nearpm_lookup_if.sv
hw/engine/nearpm/rtl/nearpm_order_if.sv
hw/engine/nearpm/rtl/nearpm_hook_pkg.sv
hw/engine/nearpm/rtl/nearpm_queue.sv
hw/engine/nearpm/rtl/nearpm_stores.sv
hw/engine/nearpm/rtl/nearpm_loads.sv
hw/engine/nearpm/rtl/nearpm_gate.sv
hw/engine/nearpm/rtl/nearpm_order_pkg.sv
hw/engine/nearpm/rtl/nearpm_hook_recorder.sv
hw/engine/nearpm/rtl/nearpm_hook.sv
