# Data path of the NVMe controller: PRP engine, splitter, DMA movers. nvme_ctrl.f includes it.
-f hw/lib/lib.f
hw/ip/nvme_ctrl/rtl/common/nvme_pkg.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_data_pkg.sv
hw/ip/nvme_ctrl/rtl/common/nvme_ns_pkg.sv
hw/ip/nvme_ctrl/rtl/common/nvme_namespace.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_aligner.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_mover_read.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_mover_write.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_mover.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_hazard.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_splitter.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_fill.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_range_walk.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_ranges.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_segment_router.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_prp_walker.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_sgl_walker.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_block_assembler.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_walkers.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_read_limit.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_transfer_tracker.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_trace_data.sv
hw/ip/nvme_ctrl/rtl/data_path/nvme_data.sv
