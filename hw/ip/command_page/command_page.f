# Command pages of the engines.
-f hw/lib/lib.f
-f hw/ip/command_page/command_page_if.f
hw/ip/command_page/rtl/command_page.sv
hw/ip/command_page/rtl/command_pages.sv
