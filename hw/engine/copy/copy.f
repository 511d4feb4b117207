# The copy engine.
-f hw/ip/engine_launch/engine_launch.f
hw/engine/copy/rtl/gen/copy_regs_pkg.sv
hw/engine/copy/rtl/gen/copy_regs.sv
hw/engine/copy/rtl/copy.sv
