# NVMe controller.
-f hw/ip/msix/msix.f
-f hw/ip/nvme_ctrl/nvme_data.f
hw/ip/nvme_ctrl/rtl/gen/nvme_regs_pkg.sv
hw/ip/nvme_ctrl/rtl/gen/nvme_regs.sv
hw/ip/nvme_ctrl/rtl/nvme_bar0.sv
hw/ip/nvme_ctrl/rtl/nvme_state.sv
hw/ip/nvme_ctrl/rtl/nvme_shadow.sv
hw/ip/nvme_ctrl/rtl/nvme_slot_table.sv
hw/ip/nvme_ctrl/rtl/nvme_arbiter.sv
hw/ip/nvme_ctrl/rtl/nvme_fetch.sv
hw/ip/nvme_ctrl/rtl/nvme_decode.sv
hw/ip/nvme_ctrl/rtl/nvme_fused.sv
hw/ip/nvme_ctrl/rtl/nvme_pairs.sv
hw/ip/nvme_ctrl/rtl/nvme_abort.sv
hw/ip/nvme_ctrl/rtl/nvme_get_log.sv
hw/ip/nvme_ctrl/rtl/nvme_format.sv
hw/ip/nvme_ctrl/rtl/nvme_ns_flight.sv
hw/ip/nvme_ctrl/rtl/nvme_admin.sv
hw/ip/nvme_ctrl/rtl/nvme_admin_in.sv
hw/ip/nvme_ctrl/rtl/nvme_identify.sv
hw/ip/nvme_ctrl/rtl/nvme_log_error.sv
hw/ip/nvme_ctrl/rtl/nvme_log_smart.sv
hw/ip/nvme_ctrl/rtl/nvme_log_firmware.sv
hw/ip/nvme_ctrl/rtl/nvme_log_changed_ns.sv
hw/ip/nvme_ctrl/rtl/nvme_log_effects.sv
hw/ip/nvme_ctrl/rtl/nvme_log_supported.sv
hw/ip/nvme_ctrl/rtl/nvme_uptime.sv
hw/ip/nvme_ctrl/rtl/nvme_keep_alive.sv
hw/ip/nvme_ctrl/rtl/nvme_events.sv
hw/ip/nvme_ctrl/rtl/nvme_coalesce.sv
hw/ip/nvme_ctrl/rtl/nvme_admin_buf.sv
hw/ip/nvme_ctrl/rtl/nvme_pages.sv
hw/ip/nvme_ctrl/rtl/nvme_completion.sv
hw/ip/nvme_ctrl/rtl/nvme_post.sv
hw/ip/nvme_ctrl/rtl/nvme_trace.sv
hw/ip/nvme_ctrl/rtl/nvme_front.sv
hw/ip/nvme_ctrl/rtl/nvme_ctrl.sv
