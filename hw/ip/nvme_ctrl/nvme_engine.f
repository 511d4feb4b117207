# How an engine takes NVMe I/O commands.
-f hw/lib/lib.f
hw/ip/nvme_ctrl/rtl/common/nvme_pkg.sv
hw/ip/nvme_ctrl/rtl/common/nvme_engine_if.sv
