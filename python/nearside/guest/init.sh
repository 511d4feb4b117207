#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# The first process of a guest that runs a job: the command in /job/.run/command, in the folder
# /job.
#
# Serial ports: the first is the console. The second is the terminal of the job. The third carries
# what the host is to know: a line for each step, and at the end the files of the job as a tar
# archive.
export PATH=/bin LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm
mount -t tmpfs tmp /dev/shm
mount -t tmpfs tmp /tmp
for port in /dev/ttyS1 /dev/ttyS2; do stty -F $port raw -echo; done
exec 3> /dev/ttyS2

i=0
while [ ! -b /dev/nvme0n1 ] && [ $i -lt 2000 ]; do
    usleep 5000
    i=$((i + 1))
done
if [ ! -b /dev/nvme0n1 ]; then
    echo "no-disk" >&3
    poweroff -f
fi
echo "ready $(cut -d' ' -f1 /proc/uptime)" >&3

cd /job || exit 1
if [ -e .run/shell ]; then
    setsid cttyhack /bin/sh
    poweroff -f
fi
sh /job/.run/command < /dev/null > /dev/ttyS1 2>&1
status=$?
[ "$(dmesg | grep -c 'Out of memory: Killed')" = 0 ] || echo "memory" >&3
echo "status $status" >&3
cd /job && rm -rf .run && tar -cf /dev/ttyS2 .
sync
poweroff -f
