#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# usage: mark NAME
#
# Begins a phase of the report. The host finds the mark in the trace of each device: a Get Features
# command (Arbitration) whose dword 11, which has no meaning there, holds "NS" and a number.
if [ $# != 1 ]; then
    echo "usage: mark NAME" >&2
    exit 2
fi
number=$(($(cat /tmp/.mark 2>/dev/null || echo 0) + 1))
echo $number > /tmp/.mark
for controller in /sys/class/nvme/*; do
    nvme get-feature "/dev/${controller##*/}" -f 1 --cdw11=$((0x4E530000 + number)) > /dev/null
done
echo "mark $number $1" > /dev/ttyS2
