# The dictionary decoder.
-f hw/engine/dict_decode/dict_decode_kernel.f
hw/engine/dict_decode/rtl/dict_decode.sv
