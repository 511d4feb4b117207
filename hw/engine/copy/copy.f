# The copy engine.
-f hw/ip/engine_launch/engine_launch.f
hw/engine/copy/rtl/gen/copy_job_pkg.sv
hw/engine/copy/rtl/copy.sv
