#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# The first process of a guest that runs a job: the command in /job/.run/command, in the folder
# /job.
#
# Serial ports: the first is the console. The second is the terminal of the job. The third carries
# a line for each step that the host is to know. A line from the host there interrupts the job. At
# the end the files of the job go to a virtio port, which is faster, as a tar archive.
export PATH=/bin LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm
mount -t tmpfs tmp /dev/shm
mount -t tmpfs tmp /tmp
for port in /dev/ttyS1 /dev/ttyS2; do stty -F $port raw -echo; done
exec 3> /dev/ttyS2

devices=$(cat /job/.run/devices)
tries=0
while set -- /dev/nvme*n1 && { [ ! -b "$1" ] || [ $# -lt "$devices" ]; } && [ $tries -lt 2000 ]; do
    usleep 5000
    tries=$((tries + 1))
done
if [ ! -b "$1" ] || [ $# -lt "$devices" ]; then
    echo "no-disk" >&3
    poweroff -f
fi
# The kernel numbers devices as it finds them. The names of the host are in the order of slots.
number=0
for controller in $(cd /sys/class/nvme && for name in *; do echo "$(cat $name/address)/$name"; done | sort); do
    name=${controller##*/}
    disk=$(cd "/sys/class/nvme/$name" && ls -d nvme*n1)
    ln -s "$name" /dev/nearside$number
    ln -s "$(echo "$disk" | sed 's/c[0-9]*n/n/')" /dev/nearside${number}n1
    number=$((number + 1))
done
# The last devices have images.
number=$((devices - $(wc -l < /job/.run/images)))
while read -r image; do
    mkdir "/image/$image"
    mount -t ext4 -o ro /dev/nearside${number}n1 "/image/$image" || echo "no-image $image" >&3
    number=$((number + 1))
done < /job/.run/images
echo "ready $(cut -d' ' -f1 /proc/uptime)" >&3

cd /job || exit 1
if [ -e .run/shell ]; then
    setsid cttyhack /bin/sh
    poweroff -f
fi
(read -r line < /dev/ttyS2 && until [ -s /tmp/job ]; do usleep 1000; done && kill -INT -"$(cat /tmp/job)") 2>/dev/null &
mark job
setsid sh -c 'echo $$ > /tmp/job; exec sh /job/.run/command' < /dev/null > /dev/ttyS1 2>&1
status=$?
mark end
[ "$(dmesg | grep -c 'Out of memory: Killed')" = 0 ] || echo "memory" >&3
echo "status $status" >&3
cd /job && rm -rf .run && tar -cf /dev/vport0p1 .
sync
poweroff -f
