# The sorter.
-f hw/engine/sorter/sorter_kernel.f
hw/engine/sorter/rtl/gen/sorter_regs_pkg.sv
hw/engine/sorter/rtl/gen/sorter_regs.sv
hw/engine/sorter/rtl/sorter.sv
