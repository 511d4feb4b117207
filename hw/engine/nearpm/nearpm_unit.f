# Unit of the crash-consistency engine, and the log format.
-f hw/lib/lib.f
hw/engine/nearpm/rtl/nearpm_pkg.sv
hw/engine/nearpm/rtl/nearpm_job_pkg.sv
hw/engine/nearpm/rtl/nearpm_unit_pkg.sv
hw/engine/nearpm/rtl/nearpm_log_pkg.sv
hw/engine/nearpm/rtl/nearpm_crc_pkg.sv
hw/engine/nearpm/rtl/nearpm_mover.sv
hw/engine/nearpm/rtl/nearpm_control.sv
hw/engine/nearpm/rtl/nearpm_unit.sv
