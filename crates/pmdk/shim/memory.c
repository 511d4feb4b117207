// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"
#include "crash.h"
#include "persist_points.h"
#include "nearpm_numbers.h"
#include "process.h"
#include "tracked.h"

/* libpmem's copy flags, and the size from which it streams. */
enum { NODRAIN = 1, NONTEMPORAL = 2, TEMPORAL = 4, WC = 8, WB = 16, NOFLUSH = 32, STREAMS_FROM = 256 };

enum { ALIGN = 2 << 20 };

/* Kinds of events of the trace: `src/trace.rs`. */
enum { FLUSH = 1, FENCE = 2, STREAM = 3, COMMAND = 4, TRANSACTION = 5, END = 6 };
struct event {
    uint32_t what, bytes;
    uint64_t place;
};

struct region {
    uintptr_t start, end;
    uint64_t place;
    /* Identity of the file. */
    dev_t device;
    ino_t inode;
};

/* Empty entries are free. */
static struct region *regions;
static size_t region_count, region_room;
static uint64_t next_place = ALIGN;
static struct memory_counts counts;

/* The trace: -1 without one. It is written in pieces, and at the end. */
static int trace = -1;
static struct event buffer[4096];
static size_t buffered;

/* The programs of a script append to it, one after the other. */
void ns_memory_follow(void) {
    const char *path = getenv("NEARSIDE_PMDK_TRACE");
    if (path == NULL) return;
    ns_lock(&ns_locks.memory);
    trace = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ns_unlock(&ns_locks.memory);
    if (trace < 0) ns_log("NEARSIDE_PMDK_TRACE = %s can't be written", path);
}

void ns_memory_forget(void) {
    if (trace >= 0) close(trace);
    trace = -1;
    buffered = 0;
}

static void write_buffer(void) {
    const char *at = (const char *)buffer;
    for (size_t left = buffered * sizeof *buffer; left > 0 && trace >= 0;) {
        ssize_t written = ns_write(trace, at, left);
        if (written <= 0) {
            ns_log("the trace can't be written");
            close(trace);
            trace = -1;
            break;
        }
        at += written;
        left -= (size_t)written;
    }
    buffered = 0;
}

void ns_memory_end(void) {
    if (!ns_lock_at_end(&ns_locks.memory)) {
        if (trace >= 0) ns_log("the trace lacks its end, as a signal's handler has ended the program");
        return;
    }
    write_buffer();
    ns_unlock(&ns_locks.memory);
}

static void trace_event(uint32_t what, uint32_t bytes, uint64_t place) {
    if (trace < 0) return;
    if (buffered == sizeof buffer / sizeof *buffer) write_buffer();
    buffer[buffered++] = (struct event){what, bytes, place};
}

/* The next free offset in the trace. The lock is held. */
static uint64_t new_place(size_t bytes) {
    uint64_t place = next_place;
    next_place += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return place;
}

/* The lock is held. */
static void add_region(struct region region) {
    size_t n = 0;
    while (n < region_count && regions[n].start != regions[n].end) n++;
    if (n == region_room) regions = ns_grow(regions, &region_room, sizeof *regions);
    if (n == region_count) region_count++;
    regions[n] = region;
}

/* Removes these bytes from all regions. The lock is held. */
static void remove_regions(uintptr_t start, size_t bytes) {
    uintptr_t end = start + bytes;
    for (size_t n = 0; n < region_count; n++) {
        struct region old = regions[n], before = old, after = old;
        if (old.start >= end || old.end <= start) continue;
        regions[n].start = regions[n].end = 0;
        before.end = start;
        after.start = end;
        after.place += end - old.start;
        if (old.start < start) add_region(before);
        if (old.end > end) add_region(after);
    }
}

void ns_memory_mapped(void *address, size_t bytes, uint64_t place, int file, int64_t offset) {
    ns_follow();
    ns_crash_mapped(address, bytes, file, offset);
    uintptr_t start = (uintptr_t)address;
    struct stat is;
    if (fstat(file, &is) != 0) is.st_ino = 0;
    ns_lock(&ns_locks.memory);
    if (place == 0) place = new_place(bytes);
    add_region((struct region){start, start + bytes, place, is.st_dev, is.st_ino});
    ns_unlock(&ns_locks.memory);
}

bool ns_memory_has(const void *address, size_t bytes) {
    uintptr_t start = (uintptr_t)address, end = start + bytes < start ? UINTPTR_MAX : start + bytes;
    bool touches = false;
    ns_lock(&ns_locks.memory);
    for (size_t n = 0; n < region_count; n++) touches = touches || (start < regions[n].end && regions[n].start < end);
    ns_unlock(&ns_locks.memory);
    return touches;
}

void ns_memory_unmapped(const void *address, size_t bytes) {
    ns_lock(&ns_locks.memory);
    remove_regions((uintptr_t)address, ns_whole_pages(bytes));
    ns_unlock(&ns_locks.memory);
    ns_crash_unmapped(address, bytes);
}

EXPORT int munmap(void *address, size_t bytes) {
    /* An allocator unmaps no file, so it reaches no persist point with its locks held. */
    if (bytes > 0 && (uintptr_t)address % PAGE == 0 && ns_memory_has(address, bytes)) {
        ns_persist_point(BEFORE_UNMAPPING);
        ns_memory_unmapped(address, bytes);
    }
    return ns_munmap(address, bytes);
}

/* ---- memory of files that may be written to later ---- */

/* True if a mapping may become writable by `mprotect`. */
static bool may_become_writable;

void ns_memory_readable(int file) {
    int flags = fcntl(file, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDWR) __atomic_store_n(&may_become_writable, true, __ATOMIC_RELAXED);
}

/* The next bytes from `at` on that belong to no region; false if there are none before `end`. */
static bool next_gap(uintptr_t at, uintptr_t end, uintptr_t *from, uintptr_t *to) {
    ns_lock(&ns_locks.memory);
    for (size_t n = 0; n < region_count; n++) {
        if (regions[n].start > at || at >= regions[n].end) continue;
        at = ns_whole_pages(regions[n].end);
        n = (size_t)-1; /* start again, since regions are not sorted */
    }
    *from = at;
    *to = end;
    for (size_t n = 0; n < region_count; n++)
        if (regions[n].start > at && regions[n].start < *to) *to = regions[n].start;
    ns_unlock(&ns_locks.memory);
    return at < end;
}

/* Follows the part of a line of /proc/self/maps that has become writable: START-END rw-s OFFSET
 * DEVICE INODE PATH. */
static void follow_line(const char *line, uintptr_t start, uintptr_t end) {
    char shared = 0;
    unsigned long first, last, offset, inode;
    int path = 0;
    if (sscanf(line, "%lx-%lx %*c%*c%*c%c %lx %*s %lu %n", &first, &last, &shared, &offset, &inode, &path) < 5 || path == 0) return;
    if (first < start) offset += start - first, first = start;
    if (last > end) last = end;
    if (shared != 's' || inode == 0 || first >= last) return;
    uintptr_t from, to = first;
    int file = -1;
    while (next_gap(to, last, &from, &to)) {
        struct stat is;
        if (file < 0) file = (int)syscall(SYS_openat, AT_FDCWD, line + path, O_RDWR | O_CLOEXEC);
        if (file < 0 || fstat(file, &is) != 0 || is.st_ino != inode) {
            ns_log("a mapping of %zu bytes that has become writable is not followed: its file is not at %s", to - from, line + path);
            break;
        }
        if (S_ISREG(is.st_mode)) ns_memory_mapped((void *)from, to - from, 0, file, (int64_t)(offset + (from - first)));
    }
    if (file >= 0) close(file);
}

/* Follows what has become writable. Neither allocates memory nor opens a stream: an allocator may
 * be the caller. */
static void follow_writable(uintptr_t start, uintptr_t end) {
    int maps = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char text[2 * PAGE + 1];
    size_t have = 0;
    for (ssize_t got = 1; maps >= 0 && got > 0;) {
        got = read(maps, text + have, sizeof text - 1 - have);
        if (got > 0) have += (size_t)got;
        text[have] = 0;
        char *line = text, *next;
        for (; (next = strchr(line, '\n')) != NULL; line = next + 1) {
            *next = 0;
            follow_line(line, start, end);
        }
        have -= (size_t)(line - text);
        memmove(text, line, have);
        /* No line is this long. */
        if (have == sizeof text - 1) have = 0;
    }
    if (maps >= 0) close(maps);
}

EXPORT int mprotect(void *address, size_t bytes, int protection) {
    int result = (int)syscall(SYS_mprotect, address, bytes, protection);
    if (result != 0 || !(protection & PROT_WRITE) || ns_busy > 0 || !__atomic_load_n(&may_become_writable, __ATOMIC_RELAXED)) return result;
    int why = errno;
    follow_writable((uintptr_t)address, (uintptr_t)address + ns_whole_pages(bytes));
    errno = why;
    return result;
}

/* Moves or resizes a part of a region. The lock is held. */
static void move_region(uintptr_t old, size_t old_bytes, uintptr_t address, size_t bytes, bool stays) {
    struct region made = {0};
    for (size_t n = 0; n < region_count; n++)
        if (regions[n].start <= old && old < regions[n].end) made = regions[n];
    bool is_file = made.end != 0;
    /* The offsets after the region may belong to another one. */
    made.place = bytes <= made.end - old ? made.place + (old - made.start) : new_place(bytes);
    made.start = address;
    made.end = address + bytes;
    if (!stays) remove_regions(old, ns_whole_pages(old_bytes));
    remove_regions(address, ns_whole_pages(bytes));
    if (is_file) add_region(made);
}

EXPORT void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...) {
    bool stays = old_bytes == 0 || (flags & MREMAP_DONTUNMAP);
    void *to = NULL;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
        va_list arguments;
        va_start(arguments, flags);
        to = va_arg(arguments, void *);
        va_end(arguments);
    }
    /* As above: an allocator's mappings are none of these. */
    bool of_file = ns_memory_has(old, old_bytes > 0 ? old_bytes : 1);
    if (!of_file && !((flags & MREMAP_FIXED) && ns_memory_has(to, bytes))) return ns_mremap(old, old_bytes, bytes, flags, to);
    ns_persist_point(BEFORE_UNMAPPING);
    /* Atomic, since another thread may get the old address for a new mapping. */
    bool followed = true;
    ns_crash_hold();
    ns_lock(&ns_locks.memory);
    void *at = ns_mremap(old, old_bytes, bytes, flags, to);
    if (at != MAP_FAILED) {
        move_region((uintptr_t)old, old_bytes, (uintptr_t)at, bytes, stays);
        followed = ns_crash_moved(old, old_bytes, at, bytes, stays) || !of_file;
    }
    ns_unlock(&ns_locks.memory);
    ns_crash_release();
    if (!followed) ns_log("a mapping of %zu bytes that was moved is not followed", bytes);
    return at;
}

/* Parts of regions, collected under the lock, and processed without it. */
enum { SOME = 64 };
struct parts {
    /* The region to continue with; 0 for none. */
    size_t next, count;
    struct {
        uintptr_t start, end;
    } list[SOME];
};

static void add_part(struct parts *parts, uintptr_t start, uintptr_t end) {
    parts->list[parts->count].start = start;
    parts->list[parts->count++].end = end;
}

/* Records a write-back or a copy in all mappings that it touches: the next parts of it. */
static void count_parts(uint32_t what, const void *address, size_t bytes, struct parts *parts) {
    uintptr_t start = (uintptr_t)address, end = start + bytes < start ? UINTPTR_MAX : start + bytes;
    parts->count = 0;
    ns_lock(&ns_locks.memory);
    size_t n = parts->next;
    for (; n < region_count && parts->count < SOME; n++) {
        const struct region *region = &regions[n];
        uintptr_t from = start > region->start ? start : region->start, to = end < region->end ? end : region->end;
        if (from >= to) continue;
        if (what == STREAM) {
            counts.streamed += to - from;
        } else {
            counts.flushes++;
            counts.lines += (to - 1) / NEARPM_LINE - from / NEARPM_LINE + 1;
        }
        trace_event(what, (uint32_t)(to - from), region->place + (from - region->start));
        add_part(parts, from, to);
    }
    parts->next = n < region_count ? n : 0;
    ns_unlock(&ns_locks.memory);
}

static void all_synced(const struct parts *parts) {
    for (size_t n = 0; n < parts->count; n++) {
        ns_crash_synced((const void *)parts->list[n].start, parts->list[n].end - parts->list[n].start);
        ns_tracked_flushed((const void *)parts->list[n].start, parts->list[n].end - parts->list[n].start);
    }
}

/* This thread has requested a write-back since its last fence. */
static __thread bool write_back_pending;

static void record_write_back(uint32_t what, const void *address, size_t bytes) {
    struct parts parts;
    parts.next = 0;
    bool first = !write_back_pending;
    do {
        count_parts(what, address, bytes, &parts);
        write_back_pending = write_back_pending || parts.count > 0;
        for (size_t n = 0; n < parts.count; n++) {
            size_t part = parts.list[n].end - parts.list[n].start;
            ns_crash_flushed((const void *)parts.list[n].start, part, what == FLUSH);
            ns_tracked_flushed((const void *)parts.list[n].start, part);
        }
    } while (parts.next != 0);
    ns_persist_point(what == STREAM ? AFTER_STREAM : first ? AFTER_FIRST_FLUSH : AFTER_FLUSH);
}

static void record_fence(void) {
    ns_lock(&ns_locks.memory);
    counts.fences++;
    trace_event(FENCE, 0, 0);
    ns_unlock(&ns_locks.memory);
    ns_crash_fenced();
    ns_tracked_fenced();
    write_back_pending = false;
    ns_persist_point(AFTER_FENCE);
}

void ns_memory_transaction(void) {
    ns_lock(&ns_locks.memory);
    trace_event(TRANSACTION, 0, 0);
    ns_unlock(&ns_locks.memory);
}

void ns_memory_transaction_ended(void) {
    ns_lock(&ns_locks.memory);
    trace_event(END, 0, 0);
    ns_unlock(&ns_locks.memory);
}

void ns_memory_command(const struct command *c) {
    ns_lock(&ns_locks.memory);
    trace_event(COMMAND, c->operation | (uint32_t)c->pool << 8 | (uint32_t)c->thread << 16, c->address);
    trace_event(COMMAND, 0, c->bytes);
    trace_event(COMMAND, 0, c->target);
    trace_event(COMMAND, 0, c->transaction);
    trace_event(COMMAND, 0, c->value);
    trace_event(COMMAND, 0, c->extra);
    ns_unlock(&ns_locks.memory);
}

void ns_memory_flushed(const void *address) {
    if (ns_busy > 0 || !ns_followed()) return;
    const void *line = (const void *)((uintptr_t)address / NEARPM_LINE * NEARPM_LINE);
    if (ns_memory_has(line, NEARPM_LINE)) record_write_back(FLUSH, line, NEARPM_LINE);
}

void ns_memory_flushed_in_order(const void *address) {
    if (ns_busy > 0 || !ns_followed()) return;
    const void *line = (const void *)((uintptr_t)address / NEARPM_LINE * NEARPM_LINE);
    if (!ns_memory_has(line, NEARPM_LINE)) return;
    ns_persist_point(BEFORE_FENCE);
    struct parts parts;
    parts.next = 0;
    do {
        count_parts(FLUSH, line, NEARPM_LINE, &parts);
        all_synced(&parts);
    } while (parts.next != 0);
    ns_tracked_fenced();
    ns_persist_point(AFTER_FENCE);
}

void ns_memory_streamed(const void *address, size_t bytes) {
    if (ns_busy == 0 && ns_followed() && ns_memory_has(address, bytes)) record_write_back(STREAM, address, bytes);
}

void ns_memory_fenced(void) {
    if (ns_busy > 0 || !write_back_pending || !ns_followed()) return;
    ns_persist_point(BEFORE_FENCE);
    record_fence();
}

struct memory_counts ns_memory_counts(void) {
    bool locked = ns_lock_at_end(&ns_locks.memory);
    struct memory_counts now = counts;
    if (locked) ns_unlock(&ns_locks.memory);
    return now;
}

/* ---- libpmem, whose internal flushes and drains come through these functions, too ---- */

void pmem_flush(const void *address, size_t bytes);
void pmem_deep_flush(const void *address, size_t bytes);
void pmem_drain(void);
void pmem_persist(const void *address, size_t bytes);
void *pmem_memcpy(void *to, const void *from, size_t bytes, unsigned flags);
void *pmem_memmove(void *to, const void *from, size_t bytes, unsigned flags);
void *pmem_memset(void *to, int value, size_t bytes, unsigned flags);
void *pmem_memcpy_nodrain(void *to, const void *from, size_t bytes);
void *pmem_memmove_nodrain(void *to, const void *from, size_t bytes);
void *pmem_memset_nodrain(void *to, int value, size_t bytes);
void *pmem_memcpy_persist(void *to, const void *from, size_t bytes);
void *pmem_memmove_persist(void *to, const void *from, size_t bytes);
void *pmem_memset_persist(void *to, int value, size_t bytes);

EXPORT void pmem_flush(const void *address, size_t bytes) {
    REAL(pmem_flush)(address, bytes);
    record_write_back(FLUSH, address, bytes);
}

/* `pmem_deep_drain` is an `msync` on such memory. */
EXPORT void pmem_deep_flush(const void *address, size_t bytes) {
    REAL(pmem_deep_flush)(address, bytes);
    record_write_back(FLUSH, address, bytes);
}

static void drain(void) {
    REAL(pmem_drain)();
    record_fence();
}

/* Data flushed before may have been reported by output since then. */
EXPORT void pmem_drain(void) {
    ns_persist_point(BEFORE_FENCE);
    drain();
}

EXPORT void pmem_persist(const void *address, size_t bytes) {
    pmem_flush(address, bytes);
    drain();
}

/* libpmem's fallback where memory is not persistent. Only a successful call with MS_SYNC makes data
 * durable. */
EXPORT int msync(void *address, size_t bytes, int flags) {
    /* The data may have been reported by output before. */
    if ((flags & MS_SYNC) && ns_memory_has(address, bytes)) ns_persist_point(BEFORE_SYNC);
    int result = REAL(msync)(address, bytes, flags);
    if (result != 0 || !(flags & MS_SYNC)) return result;
    struct parts parts;
    parts.next = 0;
    do {
        count_parts(FLUSH, address, bytes, &parts);
        all_synced(&parts);
    } while (parts.next != 0);
    record_fence();
    return result;
}

/* The next mappings of a file. */
static void parts_of(const struct stat *is, struct parts *parts) {
    parts->count = 0;
    ns_lock(&ns_locks.memory);
    size_t n = parts->next;
    for (; n < region_count && parts->count < SOME; n++)
        if (regions[n].end != 0 && regions[n].device == is->st_dev && regions[n].inode == is->st_ino)
            add_part(parts, regions[n].start, regions[n].end);
    parts->next = n < region_count ? n : 0;
    ns_unlock(&ns_locks.memory);
}

/* All mappings of the file are durable as they are. Which of their lines are dirty is not known, so
 * the trace gets a fence. */
static int sync_file(int file, int (*sync)(int file)) {
    if (ns_busy > 0) return sync(file);
    struct stat is;
    struct parts parts;
    parts.next = parts.count = 0;
    if (fstat(file, &is) == 0) parts_of(&is, &parts);
    bool mapped = parts.count > 0;
    if (mapped) ns_persist_point(BEFORE_SYNC);
    int result = sync(file);
    if (result != 0 || !mapped) return result;
    parts.next = 0;
    do {
        parts_of(&is, &parts);
        all_synced(&parts);
    } while (parts.next != 0);
    record_fence();
    return result;
}

EXPORT int fsync(int file) {
    return sync_file(file, REAL(fsync));
}

EXPORT int fdatasync(int file) {
    return sync_file(file, REAL(fdatasync));
}

/* A copy has been made, without its fence, as libpmem does it. */
static void *record_copy(void *to, size_t bytes, unsigned flags) {
    bool streams = flags & (NONTEMPORAL | WC) || (!(flags & (TEMPORAL | WB)) && bytes >= STREAMS_FROM);
    if (!(flags & NOFLUSH)) record_write_back(streams ? STREAM : FLUSH, to, bytes);
    if (!(flags & (NODRAIN | NOFLUSH))) drain();
    return to;
}

EXPORT void *pmem_memmove(void *to, const void *from, size_t bytes, unsigned flags) {
    REAL(pmem_memmove)(to, from, bytes, flags | NODRAIN);
    return record_copy(to, bytes, flags);
}

EXPORT void *pmem_memcpy(void *to, const void *from, size_t bytes, unsigned flags) {
    REAL(pmem_memcpy)(to, from, bytes, flags | NODRAIN);
    return record_copy(to, bytes, flags);
}

EXPORT void *pmem_memset(void *to, int value, size_t bytes, unsigned flags) {
    REAL(pmem_memset)(to, value, bytes, flags | NODRAIN);
    return record_copy(to, bytes, flags);
}

EXPORT void *pmem_memmove_nodrain(void *to, const void *from, size_t bytes) {
    return pmem_memmove(to, from, bytes, NODRAIN);
}

EXPORT void *pmem_memcpy_nodrain(void *to, const void *from, size_t bytes) {
    return pmem_memcpy(to, from, bytes, NODRAIN);
}

EXPORT void *pmem_memset_nodrain(void *to, int value, size_t bytes) {
    return pmem_memset(to, value, bytes, NODRAIN);
}

EXPORT void *pmem_memmove_persist(void *to, const void *from, size_t bytes) {
    return pmem_memmove(to, from, bytes, 0);
}

EXPORT void *pmem_memcpy_persist(void *to, const void *from, size_t bytes) {
    return pmem_memcpy(to, from, bytes, 0);
}

EXPORT void *pmem_memset_persist(void *to, int value, size_t bytes) {
    return pmem_memset(to, value, bytes, 0);
}
