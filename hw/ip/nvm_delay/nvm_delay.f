# NVM timing emulator.
-f hw/lib/lib.f
hw/ip/nvm_delay/rtl/gen/nvm_delay_regs_pkg.sv
hw/ip/nvm_delay/rtl/gen/nvm_delay_regs.sv
hw/ip/nvm_delay/rtl/nvm_delay_pkg.sv
hw/ip/nvm_delay/rtl/nvm_delay_free_list.sv
hw/ip/nvm_delay/rtl/nvm_delay_target.sv
hw/ip/nvm_delay/rtl/nvm_delay_wheel.sv
hw/ip/nvm_delay/rtl/nvm_delay_id_lists.sv
hw/ip/nvm_delay/rtl/nvm_delay_responses.sv
hw/ip/nvm_delay/rtl/nvm_delay_ready_queue.sv
hw/ip/nvm_delay/rtl/nvm_delay_order.sv
hw/ip/nvm_delay/rtl/nvm_delay_cap.sv
hw/ip/nvm_delay/rtl/nvm_delay_stats.sv
hw/ip/nvm_delay/rtl/nvm_delay_control.sv
hw/ip/nvm_delay/rtl/nvm_delay_read.sv
hw/ip/nvm_delay/rtl/nvm_delay_write.sv
hw/ip/nvm_delay/rtl/nvm_delay.sv
