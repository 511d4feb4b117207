# The gather engine.
-f hw/engine/row_shuffle/row_shuffle_kernel.f
hw/engine/row_shuffle/rtl/row_shuffle.sv
