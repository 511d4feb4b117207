# Conflict filter of the crash-consistency engine, one channel.
-f hw/lib/lib.f
hw/engine/nearpm/rtl/nearpm_pkg.sv
hw/engine/nearpm/rtl/nearpm_lookup_if.sv
hw/engine/nearpm/rtl/nearpm_order_if.sv
hw/engine/nearpm/rtl/nearpm_filter_pkg.sv
hw/engine/nearpm/rtl/nearpm_queue.sv
hw/engine/nearpm/rtl/nearpm_store_path.sv
hw/engine/nearpm/rtl/nearpm_load_path.sv
hw/engine/nearpm/rtl/nearpm_nvme_path.sv
hw/engine/nearpm/rtl/nearpm_order_pkg.sv
hw/engine/nearpm/rtl/nearpm_filter_recorder.sv
hw/engine/nearpm/rtl/nearpm_filter.sv
