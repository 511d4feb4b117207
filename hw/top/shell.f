# All of the device but its top and the engines.
-f hw/lib/lib.f
-f hw/ip/status/status.f
-f hw/ip/nvm_delay/nvm_delay.f
-f hw/ip/qos/qos.f
-f hw/ip/command_page/command_page.f
-f hw/ip/nvme_ctrl/nvme_ctrl.f
hw/top/rtl/nearside_pkg.sv
hw/top/rtl/nearside_reset.sv
hw/top/rtl/nearside_control.sv
hw/top/rtl/nearside_window.sv
hw/top/rtl/nearside_fills.sv
hw/top/rtl/nearside_filter.sv
hw/top/rtl/nearside_channel.sv
hw/top/rtl/nearside_memory.sv
hw/top/rtl/nearside_host.sv
hw/top/rtl/nearside_idle.sv
hw/top/rtl/nearside_shell.sv
