# Data path of the NVMe controller: PRP engine, splitter, DMA movers. nvme_ctrl.f includes it.
-f hw/lib/lib.f
hw/ip/nvme_ctrl/rtl/nvme_pkg.sv
hw/ip/nvme_ctrl/rtl/nvme_data_pkg.sv
hw/ip/nvme_ctrl/rtl/nvme_ns_pkg.sv
hw/ip/nvme_ctrl/rtl/nvme_namespace.sv
hw/ip/nvme_ctrl/rtl/nvme_align.sv
hw/ip/nvme_ctrl/rtl/nvme_mover_read.sv
hw/ip/nvme_ctrl/rtl/nvme_mover_write.sv
hw/ip/nvme_ctrl/rtl/nvme_mover.sv
hw/ip/nvme_ctrl/rtl/nvme_hazard.sv
hw/ip/nvme_ctrl/rtl/nvme_split.sv
hw/ip/nvme_ctrl/rtl/nvme_fill.sv
hw/ip/nvme_ctrl/rtl/nvme_sweep.sv
hw/ip/nvme_ctrl/rtl/nvme_ranges.sv
hw/ip/nvme_ctrl/rtl/nvme_route.sv
hw/ip/nvme_ctrl/rtl/nvme_prp_walker.sv
hw/ip/nvme_ctrl/rtl/nvme_sgl_walker.sv
hw/ip/nvme_ctrl/rtl/nvme_gather.sv
hw/ip/nvme_ctrl/rtl/nvme_prp.sv
hw/ip/nvme_ctrl/rtl/nvme_read_limit.sv
hw/ip/nvme_ctrl/rtl/nvme_slots.sv
hw/ip/nvme_ctrl/rtl/nvme_trace_data.sv
hw/ip/nvme_ctrl/rtl/nvme_data.sv
