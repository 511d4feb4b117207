# Paths are relative to this folder, or to the root of Nearside.
-f hw/ip/nvme_ctrl/nvme_engine.f
rtl/mailbox.sv
