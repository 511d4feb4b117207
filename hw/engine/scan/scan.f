# The scan engine.
-f hw/ip/engine_launch/engine_launch.f
hw/engine/scan/rtl/gen/scan_job_pkg.sv
hw/engine/scan/rtl/scan_pkg.sv
hw/engine/scan/rtl/scan_count.sv
hw/engine/scan/rtl/scan_bitmap.sv
hw/engine/scan/rtl/scan_write.sv
hw/engine/scan/rtl/scan_channel.sv
hw/engine/scan/rtl/scan.sv
