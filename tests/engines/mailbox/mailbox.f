# Paths are relative to this folder, or to the root of Nearside.
-f hw/lib/lib.f
rtl/mailbox.sv
