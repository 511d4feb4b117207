# The dictionary decoder without registers, command page and NVMe commands.
-f hw/ip/engine_launch/engine_launch.f
hw/engine/dict_decode/rtl/gen/dict_decode_job_pkg.sv
hw/engine/dict_decode/rtl/dict_decode_pkg.sv
hw/engine/dict_decode/rtl/dict_decode_runs.sv
hw/engine/dict_decode/rtl/dict_decode_keys.sv
hw/engine/dict_decode/rtl/dict_decode_table.sv
hw/engine/dict_decode/rtl/dict_decode_unload.sv
hw/engine/dict_decode/rtl/dict_decode_core.sv
hw/engine/dict_decode/rtl/dict_decode_kernel.sv
