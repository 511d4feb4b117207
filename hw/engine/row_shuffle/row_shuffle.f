# The gather engine.
-f hw/engine/row_shuffle/row_shuffle_kernel.f
hw/engine/row_shuffle/rtl/gen/row_shuffle_regs_pkg.sv
hw/engine/row_shuffle/rtl/gen/row_shuffle_regs.sv
hw/engine/row_shuffle/rtl/row_shuffle.sv
