# The device that the engine's own tests run on.
-f hw/lib/lib.f
hw/top/sim/rtl_fixture.sv
