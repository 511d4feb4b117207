# Quality of service: registers.
-f hw/lib/lib.f
hw/ip/qos/rtl/qos_pkg.sv
hw/ip/qos/rtl/gen/qos_regs_pkg.sv
hw/ip/qos/rtl/gen/qos_regs.sv
hw/ip/qos/rtl/qos.sv
