# The device.
-f hw/top/shell.f
hw/top/rtl/nearside_top.sv
