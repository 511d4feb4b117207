# What starts an engine that does one job at a time.
-f hw/ip/nvme_ctrl/nvme_engine.f
-f hw/ip/command_page/command_page_if.f
hw/ip/engine_launch/rtl/engine_pkg.sv
hw/ip/engine_launch/rtl/engine_launch.sv
hw/ip/engine_launch/rtl/engine_job_mux.sv
hw/ip/engine_launch/rtl/engine_memory.sv
hw/ip/engine_launch/rtl/engine_axil.sv
hw/ip/engine_launch/rtl/engine_registers.sv
hw/ip/engine_launch/rtl/engine_nvme.sv
hw/ip/engine_launch/rtl/engine_page.sv
