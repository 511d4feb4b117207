# Paths are relative to this folder or to the root of the repository.
-f hw/ip/nvme_ctrl/nvme_engine.f
rtl/mailbox.sv
