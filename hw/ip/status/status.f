# List of the device's blocks.
-f hw/lib/lib.f
hw/ip/status/rtl/status.sv
