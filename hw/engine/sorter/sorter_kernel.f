# The sorter without registers, command page and NVMe commands.
-f hw/ip/engine_launch/engine_launch.f
hw/engine/sorter/rtl/gen/sorter_job_pkg.sv
hw/engine/sorter/rtl/sorter_pkg.sv
hw/engine/sorter/rtl/sorter_network.sv
hw/engine/sorter/rtl/sorter_select.sv
hw/engine/sorter/rtl/sorter_pair.sv
hw/engine/sorter/rtl/sorter_cascade.sv
hw/engine/sorter/rtl/sorter_level.sv
hw/engine/sorter/rtl/sorter_tree.sv
hw/engine/sorter/rtl/sorter_leaves.sv
hw/engine/sorter/rtl/sorter_load.sv
hw/engine/sorter/rtl/sorter_unload.sv
hw/engine/sorter/rtl/sorter_core.sv
hw/engine/sorter/rtl/sorter_kernel.sv
