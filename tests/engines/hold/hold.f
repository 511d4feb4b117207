# Paths are relative to this folder, or to the root of Nearside.
-f hw/lib/lib.f
rtl/hold_bus.sv
rtl/hold.sv
