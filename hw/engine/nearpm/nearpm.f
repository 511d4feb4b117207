# Crash-consistency engine.
-f hw/ip/engine_launch/engine_launch.f
-f hw/engine/nearpm/nearpm_unit.f
hw/engine/nearpm/rtl/nearpm_lookup_if.sv
hw/engine/nearpm/rtl/nearpm_order_if.sv
hw/engine/nearpm/rtl/nearpm_filter_pkg.sv
hw/engine/nearpm/rtl/nearpm_range_match.sv
hw/engine/nearpm/rtl/nearpm_table.sv
hw/engine/nearpm/rtl/nearpm_nvme_path.sv
hw/engine/nearpm/rtl/nearpm_queue.sv
hw/engine/nearpm/rtl/nearpm_load_path.sv
hw/engine/nearpm/rtl/nearpm_store_path.sv
hw/engine/nearpm/rtl/nearpm_order_pkg.sv
hw/engine/nearpm/rtl/nearpm_filter_recorder.sv
hw/engine/nearpm/rtl/nearpm_filter.sv
hw/engine/nearpm/rtl/nearpm_isolate.sv
hw/engine/nearpm/rtl/nearpm_rate.sv
hw/engine/nearpm/rtl/nearpm_track.sv
hw/engine/nearpm/rtl/nearpm_track_set.sv
hw/engine/nearpm/rtl/nearpm_track_record.sv
hw/engine/nearpm/rtl/nearpm_contexts.sv
hw/engine/nearpm/rtl/nearpm_decode.sv
hw/engine/nearpm/rtl/nearpm_dispatch.sv
hw/engine/nearpm/rtl/nearpm_save_filter.sv
hw/engine/nearpm/rtl/nearpm_save.sv
hw/engine/nearpm/rtl/nearpm_peers_walk.sv
hw/engine/nearpm/rtl/nearpm_peers.sv
hw/engine/nearpm/rtl/nearpm_progress.sv
hw/engine/nearpm/rtl/nearpm_register_gate.sv
hw/engine/nearpm/rtl/nearpm_reg_snapshot.sv
hw/engine/nearpm/rtl/gen/nearpm_regs_pkg.sv
hw/engine/nearpm/rtl/gen/nearpm_regs.sv
hw/engine/nearpm/rtl/nearpm_recorder.sv
hw/engine/nearpm/rtl/nearpm.sv
