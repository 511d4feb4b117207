# SPDX-License-Identifier: Apache-2.0
"""`nearside guest`: a stock Linux guest on a device, in the device's own time.

- `kit`: QEMU, a kernel and programs, from Debian's packages
- `clock`: the object that gives QEMU simulated time (`clock.c`, `clock_host.c`, `clock_plugin.c`)
- `image`: the guest's file system, with the files of a job
- `machine`: the command line of QEMU for a guest beside served devices
- `job`: a command in a guest, or a shell, from the boot to the results
- `report`: what a guest has reported
- `check`: whether simulated time works with a QEMU
- `bootable`: a disk from which a guest boots
"""
