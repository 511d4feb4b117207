// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "crash.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"
#include "device.h"
#include "nearpm_numbers.h"
#include "pools.h"
#include "process.h"
#include "tracked.h"

/* The unit of atomic persistence: a word. */
enum { WORD = 8 };

/* A mapped file, as a whole. */
struct file {
    struct file *next;
    /* Number of its mappings. */
    size_t mappings;
    dev_t device;
    ino_t inode;
    int descriptor;
    size_t bytes;
    /* A mapping of the file that forked processes share. */
    uint8_t *memory;
    /* The durable content, shared with forked processes. */
    uint8_t *durable;
    /* The content before the device began to write. */
    uint8_t *before;
    /* For each word the number of the last write-back that is durable. */
    uint64_t *newest;
};

struct mapping {
    const uint8_t *start;
    size_t bytes, offset;
    struct file *file;
    /* The last write-back before the mapping was made: older requests belong to an earlier
     * mapping. */
    uint64_t since;
};

/* A requested write-back, with the content at that time. */
struct pending {
    const uint8_t *at;
    size_t bytes;
    /* Needed because threads may fence in a different order than they flushed. */
    uint64_t number;
    uint8_t data[NEARPM_LINE];
};

static struct file *files;
/* Entries without a start are free. */
static struct mapping *mappings;
static size_t mapping_count, mapping_room;
static __thread struct {
    struct pending *list;
    size_t count, room;
} pending;

static uint64_t write_backs;
static bool wanted, without_fences, torn;
/* 0: no line leaves the cache early. */
static uint64_t seed;

__attribute__((constructor)) static void configure(void) {
    const char *number = getenv("NEARSIDE_PMDK_CRASH"), *without = getenv("NEARSIDE_PMDK_WITHOUT");
    wanted = number != NULL;
    seed = wanted ? strtoull(number, NULL, 10) : 0;
    torn = getenv("NEARSIDE_PMDK_TORN") != NULL;
    without_fences = without != NULL && strcmp(without, "fences") == 0;
    /* A script may go on after a power loss; that must not change what is left. */
    const char *report = getenv("NEARSIDE_PMDK_REPORT");
    struct stat is;
    if (!wanted || report == NULL || stat(report, &is) != 0 || is.st_size == 0) return;
    ns_log("the power has failed: %s tells of it", report);
    kill(getpid(), SIGKILL);
}

bool ns_crash_wanted(void) {
    return wanted;
}

/* Memory that forked processes share, or do not share, by `sharing`. */
static void *reserve(size_t bytes, int sharing) {
    void *at = ns_mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        ns_log("no memory to follow what is durable");
        abort();
    }
    return at;
}

/* The next part of a file between `at` and `end` that has been written to; the other parts are
 * zero. */
static bool next_part(const struct file *file, size_t at, size_t end, size_t *from, size_t *to) {
    off_t data = lseek(file->descriptor, (off_t)at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return false;
    *from = data < 0 ? at : (size_t)data;
    if (*from >= end) return false;
    off_t hole = data < 0 ? -1 : lseek(file->descriptor, data, SEEK_HOLE);
    *to = hole < 0 || (size_t)hole > end ? end : (size_t)hole;
    return true;
}

static void copy(const struct file *file, uint8_t *to, size_t at, size_t end) {
    for (size_t from; next_part(file, at, end, &from, &at);) memcpy(to + from, file->memory + from, at - from);
}

static struct mapping *mapping_of(const uint8_t *address) {
    for (size_t n = 0; n < mapping_count; n++)
        if (mappings[n].start != NULL && mappings[n].start <= address && address < mappings[n].start + mappings[n].bytes) return &mappings[n];
    return NULL;
}

/* Bytes for the numbers of all words, including those of the last line. */
static size_t bytes_of_numbers(size_t bytes) {
    return (bytes / NEARPM_LINE + 1) * (NEARPM_LINE / WORD) * sizeof(uint64_t);
}

/* Releases everything that follows a file. */
static void unmap(const struct file *file) {
    ns_munmap(file->memory, file->bytes);
    ns_munmap(file->durable, file->bytes);
    ns_munmap(file->newest, bytes_of_numbers(file->bytes));
}

/* A file may have grown since it was first mapped: the new part is durable as it is. */
static void follow_growth(struct file *file) {
    struct stat is;
    if (fstat(file->descriptor, &is) != 0 || (size_t)is.st_size <= file->bytes) return;
    struct file longer = *file;
    longer.bytes = (size_t)is.st_size;
    longer.memory = ns_mmap(NULL, longer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor, 0);
    if (longer.memory == MAP_FAILED) return;
    longer.durable = reserve(longer.bytes, MAP_SHARED);
    longer.newest = reserve(bytes_of_numbers(longer.bytes), MAP_SHARED);
    size_t at = 0;
    for (size_t from; next_part(file, at, file->bytes, &from, &at);) {
        size_t first = from / WORD, last = (at - 1) / WORD;
        memcpy(longer.durable + from, file->durable + from, at - from);
        memcpy(longer.newest + first, file->newest + first, (last - first + 1) * sizeof *file->newest);
    }
    unmap(file);
    *file = longer;
}

static struct file *file_of(int descriptor) {
    struct stat is;
    if (fstat(descriptor, &is) != 0 || !S_ISREG(is.st_mode)) return NULL;
    for (struct file *file = files; file != NULL; file = file->next) {
        if (file->device != is.st_dev || file->inode != is.st_ino) continue;
        follow_growth(file);
        return file;
    }
    if (is.st_size == 0) return NULL;
    struct file made = {.device = is.st_dev, .inode = is.st_ino, .bytes = (size_t)is.st_size};
    /* Opened again if possible: the program's descriptor may have a lock, which would outlast the
     * program's close and unmap. */
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    made.descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (made.descriptor < 0) made.descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    made.memory = ns_mmap(NULL, made.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.descriptor, 0);
    if (made.memory == MAP_FAILED) {
        if (made.descriptor >= 0) close(made.descriptor);
        return NULL;
    }
    made.durable = reserve(made.bytes, MAP_SHARED);
    made.newest = reserve(bytes_of_numbers(made.bytes), MAP_SHARED);
    made.next = files;
    files = reserve(sizeof made, MAP_PRIVATE);
    *files = made;
    return files;
}

/* Files without mappings are durable as they are, and are forgotten. */
static void forget_unmapped(void) {
    for (struct file **at = &files; *at != NULL;) {
        struct file *file = *at;
        if (file->mappings > 0) {
            at = &file->next;
            continue;
        }
        *at = file->next;
        unmap(file);
        close(file->descriptor);
        ns_munmap(file, sizeof *file);
    }
}

/* Clears a part of a reserved area, as where the file has never been written to. */
static void clear(uint8_t *room, size_t at, size_t end) {
    size_t first = ns_whole_pages(at), last = end / PAGE * PAGE;
    if (first < last && madvise(room + first, last - first, MADV_REMOVE) == 0) {
        memset(room + at, 0, first - at);
        at = last;
    }
    memset(room + at, 0, end - at);
}

/* Unmapped parts are durable as they are, even if emptied since; for mapped parts nothing
 * changes. */
static void make_unmapped_durable(struct mapping made) {
    for (size_t at = made.offset; at < made.offset + made.bytes;) {
        size_t next = made.offset + made.bytes;
        bool mapped = false;
        for (size_t n = 0; n < mapping_count; n++) {
            const struct mapping *m = &mappings[n];
            if (m->start == NULL || m->file != made.file) continue;
            size_t end = m->offset + m->bytes;
            if (m->offset <= at && at < end) {
                mapped = true;
                if (end < next) next = end;
            } else if (at < m->offset && m->offset < next) {
                next = m->offset;
            }
        }
        if (!mapped) {
            clear(made.file->durable, at, next);
            copy(made.file, made.file->durable, at, next);
        }
        at = next;
    }
}

/* True if a mapping's pages are in its file. The rest of the last page, past the end of the file,
 * is cut off. */
static bool is_in_file(struct mapping *m) {
    if (m->file == NULL || m->offset > m->file->bytes) return false;
    size_t left = m->file->bytes - m->offset;
    if (m->bytes > ns_whole_pages(left)) return false;
    if (m->bytes > left) m->bytes = left;
    return true;
}

static void add_mapping(struct mapping made) {
    size_t n = 0;
    while (n < mapping_count && mappings[n].start != NULL) n++;
    if (n == mapping_room) mappings = ns_grow(mappings, &mapping_room, sizeof *mappings);
    if (n == mapping_count) mapping_count++;
    mappings[n] = made;
    made.file->mappings++;
}

/* Removes the pages of these bytes from all mappings. */
static void remove_mappings(const uint8_t *start, size_t bytes) {
    const uint8_t *end = start + ns_whole_pages(bytes);
    for (size_t n = 0; n < mapping_count; n++) {
        struct mapping old = mappings[n];
        if (old.start == NULL || old.start >= end || old.start + old.bytes <= start) continue;
        mappings[n].start = NULL;
        old.file->mappings--;
        struct mapping before = old, after = old;
        if (old.start < start) before.bytes = (size_t)(start - old.start), add_mapping(before);
        if (end >= old.start + old.bytes) continue;
        after.start = end;
        after.bytes = (size_t)(old.start + old.bytes - end);
        after.offset += (size_t)(end - old.start);
        add_mapping(after);
    }
}

void ns_crash_mapped(const void *address, size_t bytes, int file, int64_t offset) {
    if (!wanted) return;
    ns_lock(&ns_locks.crash);
    struct mapping made = {.start = address, .bytes = bytes, .offset = (size_t)offset, .file = file_of(file)};
    made.since = __atomic_load_n(&write_backs, __ATOMIC_RELAXED);
    bool known = is_in_file(&made);
    if (known) {
        make_unmapped_durable(made);
        add_mapping(made);
    }
    forget_unmapped();
    ns_unlock(&ns_locks.crash);
    if (!known) ns_log("a mapping of %zu bytes is not followed: the crash leaves it as it is", bytes);
}

void ns_crash_unmapped(const void *address, size_t bytes) {
    if (!wanted) return;
    ns_lock(&ns_locks.crash);
    remove_mappings(address, bytes);
    forget_unmapped();
    ns_unlock(&ns_locks.crash);
}

bool ns_crash_moved(const void *old, size_t old_bytes, const void *address, size_t bytes, bool stays) {
    if (!wanted) return true;
    const uint8_t *from = old, *to = address;
    const struct mapping *source = mapping_of(from);
    struct mapping made = {.start = to, .bytes = bytes};
    if (source != NULL) {
        made.file = source->file;
        made.since = source->since;
        made.offset = source->offset + (size_t)(from - source->start);
        follow_growth(made.file);
    }
    bool known = is_in_file(&made);
    /* The old part keeps its durable content. */
    if (known) make_unmapped_durable(made);
    if (!stays) remove_mappings(from, old_bytes);
    remove_mappings(to, bytes);
    if (known) add_mapping(made);
    forget_unmapped();
    /* Requested write-backs of this thread stay requested at the new address. */
    for (size_t n = 0; !stays && n < pending.count; n++) {
        const uint8_t **at = &pending.list[n].at;
        if (from <= *at && *at < from + ns_whole_pages(old_bytes)) *at = to + (*at - from);
    }
    return known;
}

void ns_crash_flushed(const void *address, size_t bytes, bool whole_lines) {
    if (!wanted) return;
    const uint8_t *at = address, *end = at + bytes;
    /* libpmem streams at least whole words; for a part of one it flushes the line. */
    size_t unit = whole_lines ? NEARPM_LINE : WORD;
    at -= (uintptr_t)at % unit;
    end += (unit - (uintptr_t)end % unit) % unit;
    ns_begin();
    while (at < end) {
        /* An allocator may flush, too, so no memory is allocated here. */
        if (pending.count == pending.room) pending.list = ns_grow(pending.list, &pending.room, sizeof *pending.list);
        size_t part = NEARPM_LINE - (uintptr_t)at % NEARPM_LINE;
        if (part > (size_t)(end - at)) part = (size_t)(end - at);
        struct pending *one = &pending.list[pending.count++];
        one->at = at;
        one->bytes = part;
        one->number = __atomic_add_fetch(&write_backs, 1, __ATOMIC_RELAXED);
        memcpy(one->data, at, part);
        at += part;
    }
    ns_end();
}

/* The durable content of a write-back; NULL if it is no longer mapped. Words with a newer
 * write-back are kept. */
static uint8_t *place_of(struct pending *one) {
    const struct mapping *m = mapping_of(one->at);
    if (m == NULL || one->number <= m->since) return NULL;
    size_t at = m->offset + (size_t)(one->at - m->start);
    uint8_t *durable = m->file->durable + at;
    for (size_t n = 0; n < one->bytes; n += WORD) {
        uint64_t *newest = &m->file->newest[(at + n) / WORD];
        if (one->number < *newest)
            memcpy(one->data + n, durable + n, WORD);
        else
            *newest = one->number;
    }
    return durable;
}

static void make_durable(struct pending *one) {
    uint8_t *place = place_of(one);
    if (place != NULL) memcpy(place, one->data, one->bytes);
}

void ns_crash_fenced(void) {
    if (!wanted || without_fences) return;
    ns_lock(&ns_locks.crash);
    for (size_t n = 0; n < pending.count; n++) make_durable(&pending.list[n]);
    pending.count = 0;
    ns_unlock(&ns_locks.crash);
}

void ns_crash_hold(void) {
    if (wanted) ns_lock(&ns_locks.crash);
}

void ns_crash_release(void) {
    if (wanted) ns_unlock(&ns_locks.crash);
}

/* Makes a part of a mapping durable as it is in memory, with the rest of its lines: these might
 * have left the cache just before. */
static void made_durable(const struct mapping *m, size_t at, size_t bytes) {
    uint64_t number = __atomic_add_fetch(&write_backs, 1, __ATOMIC_RELAXED);
    for (size_t line = at / NEARPM_LINE; line * NEARPM_LINE < at + bytes; line++) {
        size_t from = line * NEARPM_LINE, part = m->file->bytes - from < NEARPM_LINE ? m->file->bytes - from : NEARPM_LINE;
        memcpy(m->file->durable + from, m->file->memory + from, part);
        for (size_t n = 0; n < part; n += WORD) m->file->newest[(from + n) / WORD] = number;
    }
}

void ns_crash_written(const void *address, size_t bytes) {
    const struct mapping *m = wanted ? mapping_of(address) : NULL;
    if (m != NULL) made_durable(m, m->offset + (size_t)((const uint8_t *)address - m->start), bytes);
}

void ns_crash_synced(const void *address, size_t bytes) {
    if (!wanted || without_fences) return;
    ns_lock(&ns_locks.crash);
    const struct mapping *m = mapping_of(address);
    if (m != NULL) {
        size_t at = m->offset + (size_t)((const uint8_t *)address - m->start), end = at + bytes;
        for (size_t from; next_part(m->file, at, end, &from, &at);) made_durable(m, from, at - from);
    }
    ns_unlock(&ns_locks.crash);
}

void ns_crash_before_device(const void *address) {
    struct mapping *m = wanted ? mapping_of(address) : NULL;
    if (m == NULL) return;
    m->file->before = reserve(m->file->bytes, MAP_SHARED);
    copy(m->file, m->file->before, m->offset, m->offset + m->bytes);
}

void ns_crash_after_device(const void *address) {
    struct mapping *m = wanted ? mapping_of(address) : NULL;
    if (m == NULL || m->file->before == NULL) return;
    struct file *file = m->file;
    size_t at = m->offset;
    for (size_t from; next_part(file, at, m->offset + m->bytes, &from, &at);)
        for (size_t n = from; n < at; n++)
            if (file->memory[n] != file->before[n]) file->durable[n] = file->memory[n];
    ns_munmap(file->before, file->bytes);
    file->before = NULL;
}

/* True if a thread is stopped, or has ended. */
static bool thread_stopped(const char *process, const char *thread) {
    char name[384], line[512];
    snprintf(name, sizeof name, "%s/%s/stat", process, thread);
    int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return true;
    ssize_t got = read(file, line, sizeof line - 1);
    close(file);
    line[got > 0 ? got : 0] = 0;
    /* The state follows the name, which may contain any characters. */
    const char *state = strrchr(line, ')');
    return state == NULL || state + 2 >= line + got || strchr("TtZX", state[2]) != NULL;
}

/* A directory entry of the kernel. */
struct directory_entry {
    uint64_t inode;
    int64_t next;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

/* True if all threads of a process are stopped, or have ended. */
static bool all_threads_stopped(pid_t process) {
    char path[64], some[4096] __attribute__((aligned(8)));
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    int tasks = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks < 0) return true;
    bool all = true;
    for (long bytes; all && (bytes = syscall(SYS_getdents64, tasks, some, sizeof some)) > 0;) {
        for (const char *at = some; all && at < some + bytes;) {
            const struct directory_entry *task = (const struct directory_entry *)(const void *)at;
            all = task->name[0] == '.' || thread_stopped(path, task->name);
            at += task->bytes;
        }
    }
    close(tasks);
    return all;
}

static void write_report(uint64_t lost, uint64_t left, uint64_t in_part) {
    const char *path = getenv("NEARSIDE_PMDK_REPORT");
    if (path == NULL) return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return;
    char line[128];
    int bytes = snprintf(line, sizeof line, "{\"lines_lost\": %llu, \"lines_left\": %llu, \"lines_torn\": %llu}\n", (unsigned long long)lost,
                         (unsigned long long)left, (unsigned long long)in_part);
    ssize_t written = ns_write(file, line, (size_t)bytes);
    (void)written;
    close(file);
}

static uint64_t draw(void) {
    seed += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t x = (seed ^ seed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* A part of a line leaves the cache early: as a whole, or, if lines are torn, any of its words in
 * three cases of four. Returns true for a whole line. */
static bool leave_cache(uint8_t *durable, const uint8_t *now, size_t bytes) {
    bool whole = !torn || draw() % 4 == 0, all = true;
    for (size_t at = 0, next; at < bytes; at = next) {
        /* Streamed parts may begin within a word: words are those of memory, not of the part. */
        next = at + WORD - ((uintptr_t)durable + at) % WORD;
        if (next > bytes) next = bytes;
        if (memcmp(durable + at, now + at, next - at) == 0) continue;
        if (whole || draw() % 2 == 0)
            memcpy(durable + at, now + at, next - at);
        else
            all = false;
    }
    return all;
}

static uint64_t evicted_one_in;

static bool line_leaves(void) {
    return draw() % evicted_one_in == 0;
}

/* Runs in a forked process, so that no thread of the program does anything meanwhile. Locks of the
 * program and of its allocator may stay held there: so only system calls are made, and no memory is
 * allocated. */
static void leave_what_is_durable(pid_t program) {
    kill(program, SIGSTOP);
    while (!all_threads_stopped(program)) usleep(100);
    bool evicts = seed != 0;
    uint64_t one_in = evicts ? (uint64_t)2 << draw() % 4 : 0, lost = 0, left = 0, in_part = 0;
    /* Requested write-backs may have been completed. */
    for (size_t n = 0; evicts && n < pending.count; n++) {
        uint8_t *place = draw() % 2 == 0 ? place_of(&pending.list[n]) : NULL;
        if (place != NULL && !leave_cache(place, pending.list[n].data, pending.list[n].bytes)) in_part++;
    }
    for (size_t n = 0; n < mapping_count; n++) {
        const struct mapping *m = &mappings[n];
        if (m->start == NULL) continue;
        size_t at = m->offset, end = m->offset + m->bytes;
        for (size_t from; next_part(m->file, at, end, &from, &at);) {
            for (size_t line = from / NEARPM_LINE * NEARPM_LINE; line < at; line += NEARPM_LINE) {
                size_t part = end - line < NEARPM_LINE ? end - line : NEARPM_LINE;
                uint8_t *memory = m->file->memory + line, *durable = m->file->durable + line;
                if (memcmp(memory, durable, part) == 0) continue;
                bool leaves = evicts && draw() % one_in == 0;
                bool all = leaves && leave_cache(durable, memory, part);
                memcpy(memory, durable, part);
                left += all;
                in_part += leaves && !all;
                lost += !leaves;
            }
        }
    }
    evicted_one_in = one_in;
    if (evicts) ns_tracked_evict(line_leaves);
    ns_device_leave();
    write_report(lost, left, in_part);
    /* A process that waits for the program's end may open its files: by then nothing holds their
     * locks. */
    for (size_t n = 0; n < mapping_count; n++)
        if (mappings[n].start != NULL) ns_munmap((void *)(uintptr_t)mappings[n].start, mappings[n].bytes);
    for (const struct file *followed = files; followed != NULL; followed = followed->next) ns_munmap(followed->memory, followed->bytes);
    ns_pools_release();
    syscall(SYS_close_range, 0, ~0u, 0);
    kill(program, SIGKILL);
}

void ns_crash(void) {
    pid_t program = getpid();
    ns_lock(&ns_locks.crash);
    /* Not `fork`: the program's fork handlers (`pthread_atfork`) may wait for its locks, one of
     * which this thread may hold. */
    pid_t child = _Fork();
    if (child == 0) {
        pthread_mutex_init(&ns_locks.device, NULL);
        leave_what_is_durable(program);
        for (;;) syscall(SYS_exit_group, 0);
    }
    if (child < 0) {
        ns_log("no process to have the power fail: %s", strerror(errno));
        kill(program, SIGKILL);
    }
    for (;;) pause();
}
