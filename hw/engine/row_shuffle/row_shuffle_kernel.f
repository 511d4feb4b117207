# The gatherer of rows without its ways to be started.
-f hw/ip/engine_launch/engine_launch.f
hw/engine/row_shuffle/rtl/row_shuffle_core.sv
hw/engine/row_shuffle/rtl/row_shuffle_kernel.sv
