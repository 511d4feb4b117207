# The dictionary decoder.
-f hw/engine/dict_decode/dict_decode_kernel.f
hw/engine/dict_decode/rtl/gen/dict_decode_regs_pkg.sv
hw/engine/dict_decode/rtl/gen/dict_decode_regs.sv
hw/engine/dict_decode/rtl/dict_decode.sv
