# What an engine with a command page needs.
hw/ip/command_page/rtl/command_page_pkg.sv
hw/ip/command_page/rtl/command_page_if.sv
