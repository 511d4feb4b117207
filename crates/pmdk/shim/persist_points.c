// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "persist_points.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "abi.h"
#include "crash.h"
#include "device.h"
#include "memory.h"
#include "process.h"

static uint64_t persist_points, last_persist_point;
static bool output_noted, ended;
static __thread uint8_t phase;

/* The record of a persist point. */
struct record {
    uint64_t number;
    uint32_t place;
    uint16_t thread;
    uint8_t phase, what;
} __attribute__((packed));
_Static_assert(sizeof(struct record) == 16, "as it is read");

static int file = -1;
static struct record buffer[1024];
static size_t buffered;
static uint16_t threads;
static __thread uint16_t thread;

/* Number of calls that identify the place of a persist point. */
enum { DEPTH = 12 };

__attribute__((constructor)) static void configure(void) {
    const char *number = getenv("NEARSIDE_PMDK_KILL");
    if (number != NULL) last_persist_point = strtoull(number, NULL, 10);
}

void ns_phase(enum phase now) {
    phase = (uint8_t)now;
}

static uintptr_t own_base;

/* Identifies an address of code by its file and offset, the same in each run; 0 for the shim. */
static uint32_t find_place(uintptr_t pc) {
    Dl_info info;
    uint32_t place = 2166136261u;
    if (dladdr((void *)pc, &info) != 0) {
        if ((uintptr_t)info.dli_fbase == own_base) return 0;
        const char *slash = strrchr(info.dli_fname, '/');
        for (const char *at = slash == NULL ? info.dli_fname : slash + 1; *at != 0; at++) place = (place ^ (uint8_t)*at) * 16777619u;
        pc -= (uintptr_t)info.dli_fbase;
    }
    for (unsigned bits = 0; bits < 64; bits += 8) place = (place ^ (uint8_t)(pc >> bits)) * 16777619u;
    return place;
}

/* The search takes time and a lock of the linker, so results are cached. An entry that changes
 * while it is read is not used. */
static uint32_t place_of(uintptr_t pc) {
    static struct {
        uintptr_t pc;
        uint32_t place;
    } known[4096];
    __typeof__(*known) *entry = &known[(pc >> 2 ^ pc >> 14) % (sizeof known / sizeof *known)];
    if (__atomic_load_n(&entry->pc, __ATOMIC_SEQ_CST) == pc) {
        uint32_t place = __atomic_load_n(&entry->place, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&entry->pc, __ATOMIC_SEQ_CST) == pc) return place;
    }
    uint32_t place = find_place(pc);
    uintptr_t old = __atomic_load_n(&entry->pc, __ATOMIC_SEQ_CST);
    /* 1 is no address of code: it marks an entry that one thread is changing. */
    if (old != 1 && __atomic_compare_exchange_n(&entry->pc, &old, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&entry->place, place, __ATOMIC_SEQ_CST);
        __atomic_store_n(&entry->pc, pc, __ATOMIC_SEQ_CST);
    }
    return place;
}

struct walk {
    uintptr_t last;
    uint32_t place;
    int depth;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
    struct walk *walk = argument;
    uintptr_t pc = _Unwind_GetIP(context);
    uint32_t place = place_of(pc);
    /* Recursive calls are one place. */
    if (place == 0 || pc == walk->last) return _URC_NO_REASON;
    walk->last = pc;
    walk->place = (walk->place ^ place) * 16777619u;
    return ++walk->depth < DEPTH ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* The lock is held. */
static void write_buffer(void) {
    const char *at = (const char *)buffer;
    for (size_t left = buffered * sizeof *buffer; left > 0;) {
        ssize_t written = ns_write(file, at, left);
        if (written <= 0) {
            ns_log("the moments can't be written");
            close(file);
            file = -1;
            break;
        }
        at += written;
        left -= (size_t)written;
    }
    buffered = 0;
}

static void record(uint64_t number, enum persist_point_kind what) {
    struct walk walk = {.place = 2166136261u};
    _Unwind_Backtrace(step, &walk);
    if (thread == 0) thread = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    ns_lock(&ns_locks.memory);
    if (file >= 0) {
        buffer[buffered++] = (struct record){number, walk.place, thread, phase, (uint8_t)what};
        if (buffered == sizeof buffer / sizeof *buffer) write_buffer();
    }
    ns_unlock(&ns_locks.memory);
}

void ns_persist_points_follow(void) {
    const char *path = getenv("NEARSIDE_PMDK_MOMENTS");
    if (path == NULL) return;
    Dl_info own;
    if (dladdr((void *)(uintptr_t)place_of, &own) != 0) own_base = (uintptr_t)own.dli_fbase;
    ns_lock(&ns_locks.memory);
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ns_unlock(&ns_locks.memory);
    if (file < 0) ns_log("NEARSIDE_PMDK_MOMENTS = %s can't be written", path);
}

void ns_persist_points_forget(void) {
    if (file >= 0) close(file);
    file = -1;
    buffered = 0;
}

void ns_persist_point(enum persist_point_kind what) {
    if (ns_busy > 0 || !ns_followed() || __atomic_load_n(&ended, __ATOMIC_RELAXED)) return;
    __atomic_store_n(&output_noted, false, __ATOMIC_RELAXED);
    uint64_t now = __atomic_add_fetch(&persist_points, 1, __ATOMIC_RELAXED);
    if (file >= 0) record(now, what);
    if (last_persist_point == 0 || now < last_persist_point) return;
    if (ns_crash_wanted() && now == last_persist_point) {
        ns_memory_end();
        ns_crash();
    }
    if (!ns_crash_wanted()) kill(getpid(), SIGKILL);
}

uint64_t ns_persist_point_count(void) {
    return __atomic_load_n(&persist_points, __ATOMIC_RELAXED);
}

void ns_end_persist_points(void) {
    __atomic_store_n(&ended, true, __ATOMIC_RELAXED);
    if (file < 0) return;
    if (!ns_lock_at_end(&ns_locks.memory)) {
        ns_log("the moments lack their end, as a signal's handler has ended the program");
        return;
    }
    write_buffer();
    ns_unlock(&ns_locks.memory);
}

bool ns_output_noted(void) {
    return __atomic_load_n(&output_noted, __ATOMIC_RELAXED);
}

void ns_note_output(void) {
    __atomic_store_n(&output_noted, true, __ATOMIC_RELAXED);
}
