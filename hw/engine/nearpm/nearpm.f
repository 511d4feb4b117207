# The crash-consistency engine.
-f hw/ip/engine_launch/engine_launch.f
-f hw/engine/nearpm/nearpm_unit.f
hw/engine/nearpm/rtl/nearpm_lookup_if.sv
hw/engine/nearpm/rtl/nearpm_order_if.sv
hw/engine/nearpm/rtl/nearpm_hook_pkg.sv
hw/engine/nearpm/rtl/nearpm_match.sv
hw/engine/nearpm/rtl/nearpm_table.sv
hw/engine/nearpm/rtl/nearpm_gate.sv
hw/engine/nearpm/rtl/nearpm_queue.sv
hw/engine/nearpm/rtl/nearpm_loads.sv
hw/engine/nearpm/rtl/nearpm_stores.sv
hw/engine/nearpm/rtl/nearpm_order_pkg.sv
hw/engine/nearpm/rtl/nearpm_hook_recorder.sv
hw/engine/nearpm/rtl/nearpm_hook.sv
hw/engine/nearpm/rtl/nearpm_shut.sv
hw/engine/nearpm/rtl/nearpm_job_pkg.sv
hw/engine/nearpm/rtl/nearpm_contexts.sv
hw/engine/nearpm/rtl/nearpm_take.sv
hw/engine/nearpm/rtl/nearpm_dispatch.sv
hw/engine/nearpm/rtl/nearpm_save.sv
hw/engine/nearpm/rtl/nearpm_peers.sv
hw/engine/nearpm/rtl/nearpm_register_gate.sv
hw/engine/nearpm/rtl/nearpm_words.sv
hw/engine/nearpm/rtl/gen/nearpm_regs_pkg.sv
hw/engine/nearpm/rtl/gen/nearpm_regs.sv
hw/engine/nearpm/rtl/nearpm_recorder.sv
hw/engine/nearpm/rtl/nearpm.sv
