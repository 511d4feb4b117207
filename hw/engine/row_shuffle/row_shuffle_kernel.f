# The gather engine without registers, command page and NVMe commands.
-f hw/ip/engine_launch/engine_launch.f
hw/engine/row_shuffle/rtl/gen/row_shuffle_job_pkg.sv
hw/engine/row_shuffle/rtl/row_shuffle_core.sv
hw/engine/row_shuffle/rtl/row_shuffle_kernel.sv
