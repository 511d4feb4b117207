# The sorter.
-f hw/engine/sorter/sorter_kernel.f
hw/engine/sorter/rtl/sorter.sv
