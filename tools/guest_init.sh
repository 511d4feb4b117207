#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# The first process of the test guest. It reports each check on the serial console, after the
# output of the check, in one line:
#   @@ NAME pass, or @@ NAME fail
#
# tools/guest.py sets the task on the kernel's command line, or in the file /task of a disk that the
# guest boots from:
# - guest=first    an empty disk: every check
# - guest=second   the disk of `first` under another server, before and after a reboot
# - guest=pair     two devices of one server
# - guest=boot     the root file system is on the device; a reboot in the middle
# - guest=shell    no checks: a shell
# busybox is the shell. Other tools are called by their path, because busybox prefers its applets.
export PATH=/bin LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /mnt /tmp
mount -t tmpfs tmp /dev/shm
task=$(sed -n 's/.*guest=\([a-z]*\).*/\1/p' /proc/cmdline)
[ -n "$task" ] || read -r task < /task
seed=$(sed -n 's/.*seed=\([0-9]*\).*/\1/p' /proc/cmdline)
disk=/dev/none
control=/dev/nvme0
nvme=/bin/nvme

at() { echo "@@time $1 $(cut -d' ' -f1 /proc/uptime)"; }

# check NAME COMMAND...: runs it and reports. The host ends a check that hangs, with the guest.
check() {
    name=$1
    shift
    if "$@" > /tmp/out 2>&1; then result=pass; else result=fail; fi
    tail -n 12 /tmp/out | sed 's/^/   /'
    echo "@@ $name $result"
}

finish() {
    at end
    dmesg | grep -i nvme | grep -v 'ommand line:' | sed 's/^/dmesg /'
    echo "@@done"
    sync
    poweroff -f
}

namespace() { # the disk of a namespace, of a controller: the kernel numbers disks as it finds them, in any order
    for found in /sys/block/nvme${2:-0}n*; do
        [ "$(cat "$found/nsid" 2>/dev/null)" = "$1" ] && echo "/dev/${found##*/}" && return
    done
    echo /dev/none
}

look() { # is the disk of NSID 1 there?
    disk=$(namespace 1)
    [ -b "$disk" ]
}

probe() {
    i=0
    while ! look && [ $i -lt 600 ]; do
        usleep 50000
        i=$((i + 1))
    done
    # Without the device, what follows would write a plain file and pass.
    [ -b $disk ] && [ "$(cat /sys/class/nvme/nvme0/state)" = live ]
}

interrupts() { # every queue that was used has interrupted
    grep nvme0q /proc/interrupts
    grep nvme0q1 /proc/interrupts | awk '{n = 0; for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i} n > 0 {ok = 1} END {exit !ok}'
}

queues() { # an I/O queue for each CPU
    n=$(ls -d /sys/block/${disk##*/}/mq/* | wc -l)
    echo "$n queues, $(nproc) CPUs"
    [ "$n" = "$(nproc)" ]
}

keep_alive() { # Keep Alive is a command; a timeout is rounded up to 100 ms, 0 ends it
    $nvme admin-passthru $control --opcode=0x18 && no_timer || return 1
    if ! $nvme set-feature $control -f 0x0f -V 120050 2> /tmp/refused; then
        cat /tmp/refused
        grep -q 'Permission denied' /tmp/refused || return 1
        echo 'this kernel lets nobody else set the timer: only the command and the value 0 were tried'
        return 0
    fi
    $nvme get-feature $control -f 0x0f | tee /dev/stderr | grep -iq 'value: *0x0*1d524' &&
        $nvme set-feature $control -f 0x0f -V 0 && no_timer
}

no_timer() { $nvme get-feature $control -f 0x0f | grep -iqE 'value: *(0x)?0+$'; }

host_behavior() { # the kernel has enabled retries of interrupted commands (ACRE)
    $nvme get-feature $control -f 0x16 -l 512 -b > /tmp/behavior
    printf '\001' > /tmp/acre && dd if=/tmp/behavior of=/tmp/first bs=1 count=1 && cmp /tmp/acre /tmp/first
}

raw_data() { # what was written through the block layer comes back, in other sizes
    dd if=/dev/urandom of=/tmp/a bs=64k count=8 2>/dev/null
    dd if=/tmp/a of=$disk bs=64k oflag=direct && dd if=$disk of=/tmp/b bs=4k count=128 iflag=direct && cmp /tmp/a /tmp/b
}

list() { $nvme list && $nvme list | grep -q "$disk.*Nearside"; }

listed() { # the model number in Identify is what the kernel shows
    model=$($nvme id-ctrl $control | sed -n 's/^mn *: *//p' | sed 's/ *$//')
    echo "model '$model'"
    [ -n "$model" ] && [ "$model" = "$(sed 's/ *$//' /sys/class/nvme/nvme0/model)" ]
}

write_zeroes() {
    dd if=/tmp/a of=$disk bs=4k count=1 oflag=direct && $nvme write-zeroes $disk -s 0 -c 7 &&
        dd if=$disk of=/tmp/b bs=4k count=1 iflag=direct && ! tr -d '\0' < /tmp/b | grep -q .
}

namespaces() { # those of the design, with their sizes in KiB
    cat /proc/partitions
    [ "$(awk '/nvme0n/ {print $3}' /proc/partitions | sort -n | xargs)" = "500 1024 33792 983040" ] &&
        $nvme list-ns $control && $nvme ns-descs "$(namespace 2)"
}

format_second() { # the second namespace becomes zeros, the first one stays
    second=$(namespace 2)
    dd if=/tmp/a of=$disk bs=4k count=1 oflag=direct && dd if=/tmp/a of=$second bs=4k count=16 oflag=direct &&
        $nvme format $second -f -l 0 && dd if=$second of=/tmp/b bs=4k count=16 iflag=direct && ! tr -d '\0' < /tmp/b | grep -q . &&
        dd if=$disk of=/tmp/b bs=4k count=1 iflag=direct && dd if=/tmp/a of=/tmp/block bs=4k count=1 && cmp /tmp/b /tmp/block &&
        ! $nvme format $second -f -l 1 && ! $nvme format $second -f -l 0 -s 2
}

deallocate() { # blocks that were deallocated read as zeros, their neighbours stay
    dd if=/tmp/a of=$disk bs=4k count=4 oflag=direct && $nvme dsm $disk -d -s 8 -b 8 &&
        dd if=/tmp/a of=/tmp/want bs=4k count=4 && dd if=/dev/zero of=/tmp/want bs=4k seek=1 count=1 conv=notrunc &&
        dd if=$disk of=/tmp/b bs=4k count=4 iflag=direct && cmp /tmp/b /tmp/want
}

discard() { # the same through the block layer
    dd if=/tmp/a of=$disk bs=64k oflag=direct && blkdiscard -o 65536 -l 1048576 $disk &&
        dd if=/tmp/a of=/tmp/want bs=64k count=1 && dd if=/dev/zero of=/tmp/want bs=64k seek=1 count=7 conv=notrunc &&
        dd if=$disk of=/tmp/b bs=64k count=8 iflag=direct && cmp /tmp/b /tmp/want
}

uptime_cs() { tr -d . < /proc/uptime | cut -d' ' -f1; } # hundredths of a second

timed() { # COMMAND...: says how long it took by this guest's clock; clean_log finds what the kernel found too slow
    began=$(uptime_cs)
    "$@" || return 1
    took=$(($(uptime_cs) - began))
    echo "$((took / 100)).$(printf %02d $((took % 100))) s"
}

discard_limits() { # the kernel splits by what the controller says
    cd /sys/block/${disk##*/}/queue && grep . discard_max_hw_bytes discard_max_bytes write_zeroes_max_bytes
    [ "$(cat discard_max_hw_bytes)" = 67108864 ] && [ "$(cat write_zeroes_max_bytes)" -gt 0 ]
}

zeros_at() { # BLOCK of 4 KiB...
    for at in "$@"; do
        dd if=$disk of=/tmp/b bs=4k count=1 skip="$at" iflag=direct 2>/dev/null && ! tr -d '\0' < /tmp/b | grep -q . || return 1
    done
}

mark() { # BLOCK of 4 KiB...: they hold data
    for at in "$@"; do
        dd if=/tmp/a of=$disk bs=4k count=1 seek="$at" oflag=direct 2>/dev/null || return 1
    done
}

last_block() { echo $(($(cat /sys/block/${disk##*/}/size) / 8 - 1)); }

discard_all() {
    mark 0 1000 "$(last_block)" && timed blkdiscard $disk && zeros_at 0 1000 "$(last_block)"
}

format_all() { # also below the 30 s of a single I/O command
    mark 0 1000 "$(last_block)" && timed $nvme format $disk -f -l 0 && look && zeros_at 0 1000 "$(last_block)"
}

fstrim_all() { # -v says how many bytes
    sync
    timed fstrim -v /mnt
}

discarded() { awk '{print $14}' /sys/block/${disk##*/}/stat; } # sectors

deletion_discards() { # files that are gone are discarded by the mounted file system
    before=$(discarded)
    dd if=/tmp/a of=/mnt/a bs=64k count=8 && sync && rm /mnt/a && sync && sleep 6 && sync
    echo "$(($(discarded) - before)) sectors discarded"
    [ "$(discarded)" -gt "$before" ]
}

compare() { # equal data compares, other data doesn't
    dd if=/tmp/a of=$disk bs=4k count=1 oflag=direct && dd if=/tmp/a of=/tmp/block bs=4k count=1 &&
        $nvme compare $disk -s 0 -c 7 -z 4096 -d /tmp/block && ! $nvme compare $disk -s 8 -c 7 -z 4096 -d /tmp/block
}

tree() { # some hundred files of all sizes
    mkdir -p /mnt/tree && cp -a /bin /init /mnt/tree/ && mkdir -p /mnt/tree/small || return 1
    i=0
    while [ $i -lt 200 ]; do
        head -c $((i * 37)) /tmp/a > /mnt/tree/small/$i || return 1
        i=$((i + 1))
    done
    remember_device > /mnt/names
    (cd /mnt/tree && find . -type f | sort | xargs md5sum) > /tmp/sums && cp /tmp/sums /mnt/sums && sync
    du -s /mnt/tree
    wc -l < /tmp/sums
}

attach() { mount -t ext4 -o noinit_itable $disk /mnt; }

compare_tree() { # from the disk, not from the page cache
    echo 3 > /proc/sys/vm/drop_caches
    (cd /mnt/tree && md5sum -c /mnt/sums > /tmp/sums.out) || { grep -v OK /tmp/sums.out; return 1; }
    n=$(grep -c OK /tmp/sums.out)
    echo "$n files"
    [ "$n" -gt 200 ]
}

count_range() { # LBA BLOCKS LOW HIGH: values of 32 bits between the bounds, by the scan engine's NVMe command
    $nvme io-passthru $disk --opcode=0xc0 -n 1 --cdw10="$1" --cdw12=$(($2 - 1)) --cdw2="$3" --cdw14="$4" > /tmp/count 2>&1 || return 1
    sed -n 's/.*result: *0x\([0-9a-fA-F]*\).*/\1/p' /tmp/count
}

engine_counts() { # values of a file, counted by the engine in the file's blocks and by awk in its data
    head -c 65536 /dev/urandom > /mnt/values && sync || return 1
    expected=$(numbers /mnt/values | awk '$1 >= 1000000000 && $1 <= 3000000000' | wc -l)
    # A line an extent: number, logical range, physical range, length; here in units of 512 bytes.
    /bin/filefrag -b512 -v /mnt/values | tee /tmp/extents | sed -n 's/^ *[0-9]*: *[0-9]*\.\. *[0-9]*: *\([0-9]*\)\.\. *[0-9]*: *\([0-9]*\):.*/\1 \2/p' > /tmp/ranges
    counted=0
    blocks=0
    while read -r lba length; do
        here=$(count_range "$lba" "$length" 1000000000 3000000000) && [ -n "$here" ] || { cat /tmp/count; return 1; }
        counted=$((counted + 0x$here))
        blocks=$((blocks + length))
    done < /tmp/ranges
    echo "$blocks blocks in $(wc -l < /tmp/ranges) extents: $counted values, $expected expected"
    [ $blocks = 128 ] && [ $counted = "$expected" ] && [ "$expected" -gt 0 ] || { cat /tmp/extents /tmp/count; return 1; }
    # Beyond the namespace, and one more block than a command may have.
    for wrong in "--cdw10=0xffffff00" "--cdw12=0x1000000"; do
        $nvme io-passthru $disk --opcode=0xc0 -n 1 "$wrong" > /tmp/count 2>&1 && return 1
    done
    rm /mnt/values
}

numbers() { # FILE: values of 32 bits, one a line
    hexdump -v -e '1/4 "%u\n"' "$1"
}

engine_sorts() { # a column of 32-bit keys on the disk: its records {key, index} come sorted, equal keys in the order of the column
    keys=16000
    head -c $((keys * 4)) /dev/urandom > /tmp/keys && dd if=/tmp/keys of=$disk bs=4k seek=16384 conv=sync oflag=direct 2> /dev/null || return 1
    # From the 4 KiB 16384 on; the records to 16512, with room to sort at 16640.
    $nvme io-passthru $disk --opcode=0xd0 -n 1 --cdw10=16384 --cdw11=16512 --cdw12=16640 --cdw13=$keys > /tmp/sorted 2>&1 || { cat /tmp/sorted; return 1; }
    dd if=$disk of=/tmp/records bs=4k skip=16512 count=$(((keys * 8 + 4095) / 4096)) iflag=direct 2> /dev/null || return 1
    numbers /tmp/keys | awk '{print $1, NR - 1}' | sort -n -k1,1 -k2,2 > /tmp/expected
    hexdump -v -e '2/4 "%u " "\n"' -n $((keys * 8)) /tmp/records | sed 's/ $//' > /tmp/found
    cmp /tmp/expected /tmp/found || { head -n 3 /tmp/expected /tmp/found; return 1; }
    echo "$(wc -l < /tmp/found) keys, from $(head -n 1 /tmp/found) to $(tail -n 1 /tmp/found)"
    # Records that overlap their keys, keys past the namespace, no keys, a reserved bit.
    for wrong in "--cdw11=16384" "--cdw10=0xffffff00" "--cdw13=0" "--cdw14=0x80"; do
        $nvme io-passthru $disk --opcode=0xd0 -n 1 --cdw10=16384 --cdw11=16512 --cdw12=16640 --cdw13=$keys "$wrong" > /tmp/sorted 2>&1 && return 1
    done
    return 0
}

fsck() { /bin/e2fsck -fn $disk; }

fio_verify() { # fio writes, reads back and compares by checksum
    /bin/fio --name=verify --directory=/mnt --direct=1 --rw=randwrite --bsrange=512-16k --bs_unaligned=0 --size="$1" --numjobs="$2" \
        --verify=crc32c --do_verify=1 --ioengine=libaio --iodepth=16 --group_reporting > /tmp/fio 2>&1
    code=$?
    grep -E 'err=|READ:|WRITE:|verify:' /tmp/fio
    rm -f /mnt/verify.*
    [ $code = 0 ] && ! grep -q 'err=[^ 0]' /tmp/fio
}

rate() { # NAME fio options: a number for people, no check
    name=$1
    shift
    line=$(/bin/fio --name=t --filename=$disk --direct=1 --time_based --runtime=3 --minimal "$@" 2>/dev/null | tail -n 1)
    echo "@@rate $name $(echo "$line" | cut -d';' -f7,8)"
}

io_in_background() { # reads until the file goes away
    touch /tmp/reading
    while [ -e /tmp/reading ]; do dd if=$disk of=/dev/null bs=16k count=64 iflag=direct 2>/dev/null || usleep 1000; done &
}

write_in_background() { # writes the second namespace, over and over, until the file goes away
    second=$(namespace 2)
    rm -f /tmp/write-failed
    dd if=/dev/urandom of=/tmp/written bs=16k count=16 2>/dev/null
    while [ -e /tmp/reading ]; do
        dd if=/tmp/written of=$second bs=16k oflag=direct conv=notrunc 2>/tmp/write-error || cp /tmp/write-error /tmp/write-failed
    done &
}

written() { # no write failed, and all of it is there
    if [ -e /tmp/write-failed ]; then
        cat /tmp/write-failed
        return 1
    fi
    dd if=$second of=/tmp/b bs=16k count=16 iflag=direct && cmp /tmp/b /tmp/written
}

wait_live() {
    i=0
    while [ "$(cat /sys/class/nvme/nvme0/state 2>/dev/null)" != live ] || ! look; do
        i=$((i + 1))
        [ $i -lt 600 ] || return 1
        usleep 50000
    done
}

reset_under_io() { # the kernel resets the controller while commands are in flight, and repeats them
    io_in_background
    write_in_background
    usleep 300000
    for _ in 1 2 3; do
        echo 1 > /sys/class/nvme/nvme0/reset_controller || return 1
        wait_live || return 1
    done
    rm /tmp/reading
    wait
    written && raw_untouched
}

pci_address() { basename "$(readlink /sys/class/nvme/nvme0/device)"; }

rebind_under_io() {
    address=$(pci_address)
    io_in_background
    usleep 300000
    for _ in 1 2; do
        echo "$address" > /sys/bus/pci/drivers/nvme/unbind || return 1
        [ ! -b $disk ] || return 1
        echo "$address" > /sys/bus/pci/drivers/nvme/bind || return 1
        wait_live || return 1
    done
    rm /tmp/reading
    wait
    raw_untouched
}

function_reset() { # FLR, through PCI configuration space
    address=$(pci_address)
    cat /sys/bus/pci/devices/$address/reset_method
    grep -q flr /sys/bus/pci/devices/$address/reset_method || return 1
    echo "$address" > /sys/bus/pci/drivers/nvme/unbind && echo 1 > /sys/bus/pci/devices/$address/reset || return 1
    echo "$address" > /sys/bus/pci/drivers/nvme/bind && wait_live && raw_untouched
}

raw_untouched() { # the file system's first blocks are what they were
    dd if=$disk of=/tmp/b bs=4k count=16 iflag=direct 2>/dev/null && [ "$(md5sum < /tmp/b)" = "$(cat /tmp/head)" ]
}

remember_head() { dd if=$disk bs=4k count=16 iflag=direct 2>/dev/null | md5sum > /tmp/head; }

clean_log() { # the driver has complained about nothing
    dmesg | grep -v 'ommand line:' | grep -iE 'nvme.*(timeout|error|abort|fail|invalid|unexpected|not ready|i/o [0-9]+)|blk_update_request|buffer i/o' \
        > /tmp/complaints
    cat /tmp/complaints
    [ ! -s /tmp/complaints ]
}

root_on_device() { # neither kernel nor file system came from elsewhere
    mount | grep ' on / '
    mount | grep -q "^${disk}p1 on / \|^/dev/root on / " && grep -q "root=PARTUUID=" /proc/cmdline && [ -s /boot/vmlinuz ] &&
        [ "$(stat -c %d /)" = "$((0x$(stat -c %t "${disk}p1") * 256 + 0x$(stat -c %T "${disk}p1")))" ]
}

load_modules() { while read -r module; do insmod /modules/$module.ko || return 1; done < /modules/order; }

# Random commands.

random_commands() { # of all opcodes, with all fields; the first namespace is not to be changed by them
    sync
    /bin/guest_passthru $control $disk "$seed" 2000 "$(namespace 4)" "$(namespace 5)" "$(namespace 2)"
}

no_time_outs() { # no command has taken the driver's patience
    dmesg | grep -v 'ommand line:' | grep -iE 'nvme nvme[0-9]*: .*(timeout|is down|not ready|removing|disabling)|i/o error|blocked for' \
        > /tmp/complaints
    cat /tmp/complaints
    [ ! -s /tmp/complaints ]
}

unharmed() { wait_live && raw_untouched && fsck; }

# Who the device is.

remember_device() { cat /sys/class/nvme/nvme0/serial /sys/class/nvme/nvme0/subsysnqn /sys/block/nvme0n*/wwid | sort; }

same_device() { # under another server, with the same media
    mount -o ro $disk /mnt || return 1
    remember_device | cmp - /mnt/names
    same=$?
    umount /mnt
    cat /sys/class/nvme/nvme0/serial
    [ $same = 0 ]
}

# Two devices.

two_devices() { # both are there, and nothing is called the same
    i=0
    until [ "$(cat /sys/class/nvme/nvme[01]/state | grep -c live)" = 2 ] && [ -b "$(namespace 2 0)" ] && [ -b "$(namespace 2 1)" ]; do
        i=$((i + 1))
        [ $i -lt 600 ] || return 1
        usleep 50000
    done
    for what in serial subsysnqn; do
        cat /sys/class/nvme/nvme?/$what
        [ "$(cat /sys/class/nvme/nvme?/$what | sort -u | wc -l)" = 2 ] || return 1
    done
    for what in wwid nguid uuid eui; do
        [ "$(cat /sys/block/nvme?n*/$what | sort -u | wc -l)" = 8 ] || return 1
    done
    left=$(namespace 2 0)
    right=$(namespace 2 1)
}

raid_create() {
    load_modules && echo y | /bin/mdadm --create /dev/md0 --run --level=1 --metadata=1.2 --size=8M --raid-devices=2 $left $right &&
        /bin/mdadm --wait /dev/md0
    cat /proc/mdstat
    grep -q '\[UU\]' /proc/mdstat
}

raid_filesystem() {
    head -c 1048576 /dev/urandom > /tmp/a && /bin/mke2fs -q -t ext4 -F /dev/md0 && mount -t ext4 /dev/md0 /mnt && cp /tmp/a /mnt/a && sync &&
        echo 3 > /proc/sys/vm/drop_caches && cmp /tmp/a /mnt/a
}

raid_degraded() { # one of them fails, and the other one goes on
    /bin/mdadm /dev/md0 --fail $left --remove $left && cp /tmp/a /mnt/b && sync && echo 3 > /proc/sys/vm/drop_caches && cmp /tmp/a /mnt/b &&
        grep '\[_U\]\|\[U_\]' /proc/mdstat
}

raid_rebuilt() {
    dd if=/dev/zero of=$left bs=64k count=24 seek=16 oflag=direct conv=notrunc 2>/dev/null
    /bin/mdadm /dev/md0 --add $left && /bin/mdadm --wait /dev/md0
    cat /proc/mdstat
    grep -q '\[UU\]' /proc/mdstat
}

raid_same() { # the kernel compares both, and each alone has the data
    umount /mnt && echo check > /sys/block/md0/md/sync_action && /bin/mdadm --wait /dev/md0
    echo "$(cat /sys/block/md0/md/mismatch_cnt) blocks differ"
    [ "$(cat /sys/block/md0/md/mismatch_cnt)" = 0 ] && /bin/e2fsck -fn /dev/md0 > /tmp/fsck && /bin/mdadm /dev/md0 --fail $right --remove $right &&
        mount -t ext4 -o ro /dev/md0 /mnt && cmp /tmp/a /mnt/a && cmp /tmp/a /mnt/b && umount /mnt && /bin/mdadm --stop /dev/md0
}

write_root() { echo kept > /kept && sync; }

at userland
if [ "$task" = pair ]; then
    check two-devices two_devices
    at probed
    check raid1-create raid_create
    check raid1-filesystem raid_filesystem
    check raid1-degraded raid_degraded
    check raid1-rebuilt raid_rebuilt
    check raid1-same-on-both raid_same
    check no-time-outs no_time_outs
    finish
fi
check probe probe
if [ ! -b $disk ]; then
    dmesg | grep -iE 'nvme|pci 0000' | tail -n 20
    finish
fi
at probed

case $task in
boot)
    check root-on-device root_on_device
    if [ ! -e /kept ]; then
        check write-root write_root
        mount -o remount,ro /
        reboot -f
    fi
    check root-kept grep kept /kept
    mount -o remount,ro /
    ;;
shell)
    echo "$disk is there; mke2fs, e2fsck, nvme and fio are in /bin: call them by that path. Leave with: poweroff -f"
    setsid cttyhack sh
    poweroff -f
    ;;
first)
    check queues queues
    check id-ctrl listed
    check id-ns $nvme id-ns $disk
    check list list
    check get-feature $nvme get-feature $control -f 7 -H
    check keep-alive keep_alive
    check host-behavior host_behavior
    check raw-data raw_data
    check flush $nvme flush $disk
    check interrupts interrupts
    check clean-log clean_log
    check smart-log $nvme smart-log $control
    check error-log $nvme error-log $control
    check write-zeroes write_zeroes
    check compare compare
    check verify $nvme verify $disk -s 0 -c 7
    check engine-sorts engine_sorts
    check dsm deallocate
    check blkdiscard discard
    check namespaces namespaces
    check format format_second
    at discards
    check discard-limits discard_limits
    check blkdiscard-all discard_all
    check format-all format_all
    check mkfs-xfs timed /bin/mkfs.xfs -q -f $disk
    check mkfs-btrfs timed /bin/mkfs.btrfs -q -f $disk
    check mkfs-f2fs timed /bin/mkfs.f2fs -q -f $disk
    check mkfs-ext4 timed /bin/mke2fs -q -t ext4 -F $disk
    check mount-discard mount -t ext4 -o discard $disk /mnt
    check discards-of-deletion deletion_discards
    check fstrim fstrim_all
    umount /mnt
    check clean-log-discards clean_log
    at mkfs
    check mkfs timed /bin/mke2fs -q -t ext4 -F $disk
    at mount
    check mount attach
    check copy-tree tree
    check engine-counts engine_counts
    at copied
    check umount umount /mnt
    check fsck fsck
    check remount attach
    check checksums compare_tree
    at fio
    check fio-verify fio_verify 8m 1
    umount /mnt
    rate randread-4k-qd1 --rw=randread --bs=4k --ioengine=psync
    rate randread-4k-qd32 --rw=randread --bs=4k --ioengine=libaio --iodepth=32
    rate read-128k-qd8 --rw=read --bs=128k --ioengine=libaio --iodepth=8
    remember_head
    at reset
    check reset-under-io reset_under_io
    check rebind-under-io rebind_under_io
    check function-reset function_reset
    check fsck-after-resets fsck
    at random
    check random-commands random_commands
    check no-time-outs no_time_outs
    check unharmed unharmed
    ;;
second)
    check same-device same_device
    check fsck-restarted fsck
    check mount-restarted attach
    check checksums-restarted compare_tree
    if [ ! -e /mnt/rebooted ]; then
        check queues queues
        check fio-verify-4-jobs fio_verify 2m 4
        touch /mnt/rebooted
        check interrupts interrupts
        check umount umount /mnt
        remember_head
        check reset-under-io reset_under_io
        check rebind-under-io rebind_under_io
        at reboot
        reboot -f
    fi
    check rebooted umount /mnt
    check fsck-rebooted fsck
    ;;
*) echo "@@ task fail" ;;
esac
finish
