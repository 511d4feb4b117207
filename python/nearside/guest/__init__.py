# SPDX-License-Identifier: Apache-2.0
"""`nearside guest`: a stock Linux guest on a device, in the device's own time.

- `kit`: QEMU, a kernel and programs, from Debian's packages
- `clock`: the object that gives QEMU simulated time (`clock.c`, `clock_host.c`, `clock_plugin.c`)
- `image`: the guest's file system, with the files of a job
- `machine`: a guest beside a served device, until its end
- `job`: a command in a guest, its output and results
"""
