# Paths are relative to this folder or to the root of the repository.
-f hw/lib/lib.f
-f hw/ip/command_page/command_page_if.f
rtl/hold_bus.sv
rtl/hold.sv
