# MSI-X.
-f hw/lib/lib.f
hw/ip/msix/rtl/msix_pkg.sv
hw/ip/msix/rtl/msix.sv
hw/ip/msix/rtl/msix_order.sv
