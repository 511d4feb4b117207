# The gatherer of rows.
-f hw/ip/engine_launch/engine_launch.f
hw/engine/row_shuffle/rtl/gen/row_shuffle_regs_pkg.sv
hw/engine/row_shuffle/rtl/gen/row_shuffle_regs.sv
hw/engine/row_shuffle/rtl/row_shuffle_core.sv
hw/engine/row_shuffle/rtl/row_shuffle.sv
