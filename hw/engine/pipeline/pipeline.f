# The pipeline.
-f hw/engine/dict_decode/dict_decode_kernel.f
-f hw/engine/sorter/sorter_kernel.f
-f hw/engine/row_shuffle/row_shuffle_kernel.f
hw/engine/pipeline/rtl/gen/pipeline_job_pkg.sv
hw/engine/pipeline/rtl/pipeline_pkg.sv
hw/engine/pipeline/rtl/pipeline_axi_mux.sv
hw/engine/pipeline/rtl/pipeline_list.sv
hw/engine/pipeline/rtl/pipeline.sv
