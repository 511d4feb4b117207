// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "pools.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crash.h"
#include "device.h"
#include "memory.h"
#include "persist_points.h"
#include "process.h"
#include "tracked.h"

enum { PATH_BYTES = 208 };

/* The object of a pool with the generations of its logs; it is hidden from programs. */
#define GENERATIONS_TYPE 0x4E53504D444B4C47u

/* The first bytes of a pool's file. */
struct label {
    char magic[16];
    uint64_t id;
};
static const char LABEL[16] = "NEARSIDE-PMDK 1";

/* The device's first page. For each pool it says whether the pool's file had other names (hard
 * links) when it was last checked. The second page has the place of each pool. */
static const char DIRECTORY[16] = "NEARSIDE-PMDK D1";
struct first_page {
    char magic[16];
    uint8_t linked[NEARPM_POOLS];
    /* The pool was tracked last: its first log has what is to be undone, the others are void. */
    uint8_t tracked[NEARPM_POOLS];
};
struct directory_entry {
    uint64_t id; /* 0: free */
    uint64_t place, bytes;
    uint64_t generations; /* offset of that object; 0: unknown */
    uint64_t inode; /* of its file; 0: unknown, as while the next two are changed */
    char path[PATH_BYTES];
    uint64_t folder_device; /* the file system of the file's folder */
};
_Static_assert(sizeof(struct directory_entry) * NEARPM_POOLS <= PAGE, "the directory is a page");
enum { FIRST_PLACE = 2 * PAGE };

/* The descriptor of a log, as far as it is read here: `hw/engine/nearpm`. */
struct descriptor {
    char magic[8];
    uint64_t generation;
};
static const char DESCRIPTOR[8] = "NPMLOG\0\1";

static struct pool pools[NEARPM_POOLS];

/* Number of pools that are open or being opened: without any the device is not needed. */
static int users;

/* The pool that this thread is opening: its file, and the place of its contents. */
static __thread struct {
    const char *path;
    struct directory_entry *entry;
    bool create;
    /* Private mappings (copy on write) are requested, and made. */
    bool private_wanted, private_made;
    /* The device's window, with a lock on the place. */
    int window;
    /* A mapped page of the pool's file, which keeps libpmemobj's lock on the file. */
    void *file_lock;
} opening = {.window = -1};

void *ns_real(const char *name) {
    void *at = dlsym(RTLD_NEXT, name);
    if (at == NULL) {
        ns_log("%s: this program has no libpmemobj, or another one", name);
        abort();
    }
    return at;
}

/* Bytes of a pool with its logs. */
static uint64_t bytes_with_logs(uint64_t bytes) {
    return ns_whole_pages(bytes) + (uint64_t)NEARPM_THREADS * LOG_BYTES;
}

static struct directory_entry *directory(void) {
    const struct device *device = ns_device();
    if (device == NULL) return NULL;
    size_t used = 0;
    while (used < FIRST_PLACE && device->window[used] == 0) used++;
    if (used == FIRST_PLACE) memcpy(device->window, DIRECTORY, sizeof DIRECTORY);
    if (memcmp(device->window, DIRECTORY, sizeof DIRECTORY) != 0) {
        ns_log("the device's media hold something else than pools of libpmemobj");
        return NULL;
    }
    return (struct directory_entry *)(device->window + PAGE);
}

static bool label_of(int file, struct label *label) {
    bool there = pread(file, label, sizeof *label, 0) == sizeof *label;
    return there && memcmp(label->magic, LABEL, sizeof LABEL) == 0 && label->id != 0;
}

/* The result of reading the label of a path: a pool of the device, or none. Sets `errno` if
 * unknown; ENOENT: there is no file. */
enum label_result { POOL, NO_POOL, UNKNOWN };

static enum label_result read_label(const char *path, struct label *label) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return UNKNOWN;
    bool there = label_of(file, label);
    close(file);
    return there ? POOL : NO_POOL;
}

static struct directory_entry *find_entry(struct directory_entry *entries, uint64_t id) {
    for (int n = 0; n < (int)NEARPM_POOLS; n++)
        if (entries[n].id == id) return &entries[n];
    return NULL;
}

/* True if a process has the pool mapped, even if its file is gone, or if the process is a child of
 * one that has ended. */
static bool is_mapped(const struct directory_entry *entry) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)entry->place, .l_len = (off_t)bytes_with_logs(entry->bytes)};
    return fcntl(ns_device()->file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Opens the window with a lock on a place: mappings through it keep the lock until the last process
 * has unmapped them. -1 sets `errno`. */
static int lock_place(const struct directory_entry *entry) {
    char path[32];
    /* Locks belong to an open file, and all clients share the server's. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", ns_device()->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        int why = errno;
        ns_log("the device's window can't be opened anew: %s", strerror(why));
        return errno = why, -1;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)entry->place, .l_len = (off_t)bytes_with_logs(entry->bytes)};
    if (fcntl(file, F_OFD_SETLK, &lock) == 0) return file;
    close(file);
    return errno = EAGAIN, -1;
}

/* Strips the last component of a path; a path without a slash becomes empty. */
static void strip_last_component(char *path) {
    char *slash = strrchr(path, '/');
    *(slash == NULL ? path : slash == path ? slash + 1 : slash) = 0;
}

/* True if a pool's file has further names: it still exists when the known name is gone. */
static uint8_t *linked(const struct directory_entry *entry) {
    uint8_t *window = ns_device()->window;
    return &((struct first_page *)window)->linked[entry - (const struct directory_entry *)(window + PAGE)];
}

static uint8_t *was_tracked(int number) {
    return &((struct first_page *)ns_device()->window)->tracked[number];
}

/* Records the path of a pool's file, for the search when the device has no room. False sets
 * `errno`. */
static bool set_file(struct directory_entry *entry, const char *path) {
    char full[PATH_MAX], folder[PATH_MAX];
    struct stat file, in;
    if (realpath(path, full) == NULL) return false;
    strcpy(folder, full);
    strip_last_component(folder);
    if (stat(full, &file) != 0 || stat(folder, &in) != 0) return false;
    if (strlen(full) >= PATH_BYTES) {
        ns_log("%s: the path has %zu bytes, allowed are %d", full, strlen(full), PATH_BYTES - 1);
        return errno = ENAMETOOLONG, false;
    }
    __atomic_store_n(&entry->inode, 0, __ATOMIC_RELEASE);
    memset(entry->path, 0, PATH_BYTES);
    strcpy(entry->path, full);
    entry->folder_device = in.st_dev;
    *linked(entry) = file.st_nlink > 1;
    __atomic_store_n(&entry->inode, file.st_ino, __ATOMIC_RELEASE);
    return true;
}

/* Checks a file with a pool's label: the pool's file, possibly renamed, or a replacement of a lost
 * one. A copy is refused. False sets `errno`. */
static bool is_its_file(struct directory_entry *entry, const char *path) {
    struct stat file, old = {0};
    struct label label;
    if (stat(path, &file) != 0) return false;
    bool there = entry->inode == 0 || stat(entry->path, &old) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR) {
        int why = errno;
        ns_log("%s: whether it is a copy of %s can't be known: %s", path, entry->path, strerror(why));
        return errno = why, false;
    }
    bool same = there && entry->inode != 0 && old.st_dev == file.st_dev && old.st_ino == file.st_ino;
    bool renamed = there && file.st_ino == entry->inode && old.st_ino != entry->inode;
    if (there && entry->inode != 0 && !same && !renamed && read_label(entry->path, &label) == POOL && label.id == entry->id) {
        ns_log("%s: a copy of %s, whose contents are on the device once", path, entry->path);
        return errno = ENXIO, false;
    }
    return set_file(entry, path);
}

/* Finds a file that was renamed within its folder, and records its name. True if it is found, or if
 * that is unknown. */
static bool found_in_folder(struct directory_entry *entry) {
    char path[PATH_MAX], folder[PATH_MAX];
    strcpy(folder, entry->path);
    strip_last_component(folder);
    DIR *list = opendir(folder);
    if (list == NULL) return errno != ENOENT;
    bool found = false;
    for (struct dirent *item; !found && (item = readdir(list)) != NULL;) {
        struct label label;
        if (item->d_ino != entry->inode) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, item->d_name) >= sizeof path) continue;
        enum label_result what = read_label(path, &label);
        if (what == POOL && label.id == entry->id) found = true, set_file(entry, path);
        if (what == UNKNOWN && errno != ENOENT) found = true;
    }
    closedir(list);
    return found;
}

/* Checks again whether a pool's file has other names, if it is at its path. */
static void look_at_links(struct directory_entry *entry) {
    struct stat file;
    if (entry->inode != 0 && stat(entry->path, &file) == 0 && file.st_ino == entry->inode) *linked(entry) = file.st_nlink > 1;
}

/* True if the user allows to reuse the place of a pool whose file may have an unknown name. */
static bool asked_to_forget(const struct directory_entry *entry) {
    const char *path = getenv("NEARSIDE_PMDK_FORGET");
    return path != NULL && strcmp(path, entry->path) == 0;
}

/* True if a pool's file is gone. A file that can't be accessed may exist, for example on an
 * unmounted file system. */
static bool is_lost(struct directory_entry *entry) {
    struct label label;
    char above[PATH_MAX];
    struct stat in;
    if (entry->inode == 0) return false;
    enum label_result what = read_label(entry->path, &label);
    if (what == POOL && label.id == entry->id) return look_at_links(entry), false;
    if (what == UNKNOWN && errno != ENOENT) return false;
    strcpy(above, entry->path);
    do {
        strip_last_component(above);
    } while (stat(above, &in) != 0 && errno == ENOENT && above[0] != 0 && strcmp(above, "/") != 0);
    if (stat(above, &in) != 0 || in.st_dev != entry->folder_device) return false;
    if (found_in_folder(entry)) return false;
    if (!*linked(entry) || asked_to_forget(entry)) return true;
    ns_log("%s is no more, but its file had other names: its place is kept. Open the pool by another name, or have the place given away "
            "with NEARSIDE_PMDK_FORGET=%s", entry->path, entry->path);
    return false;
}

/* Unmaps a pool on the device, whichever process mapped it: its logs are closed. False without an
 * answer. */
static bool unmap(int number) {
    struct command command = {.operation = NEARPM_OP_PoolUnmap, .pool = (uint8_t)number};
    return ns_command(&command, NULL) >= 0;
}

/* Frees the places of pools whose files are gone and that no process has mapped. The device still
 * has those of killed processes mapped. */
static void forget_lost(struct directory_entry *entries) {
    for (int n = 0; n < (int)NEARPM_POOLS; n++)
        if (entries[n].id != 0 && !is_mapped(&entries[n]) && is_lost(&entries[n]) && unmap(n)) entries[n].id = 0;
}

/* A free place for a pool with its logs; 0 if there is none. */
static uint64_t free_place(struct directory_entry *entries, uint64_t bytes, struct directory_entry **free_entry) {
    uint64_t at = FIRST_PLACE;
    bool moved = true;
    *free_entry = NULL;
    while (moved) {
        moved = false;
        for (int n = 0; n < (int)NEARPM_POOLS; n++) {
            struct directory_entry *other = &entries[n];
            if (other->id == 0) {
                *free_entry = other;
            } else if (at < other->place + bytes_with_logs(other->bytes) && other->place < at + bytes_with_logs(bytes)) {
                at = other->place + bytes_with_logs(other->bytes);
                moved = true;
            }
        }
    }
    uint64_t room = ns_device()->bytes;
    return *free_entry == NULL || at > room || bytes_with_logs(bytes) > room - at ? 0 : at;
}

/* Allocates a zeroed place for a new pool; NULL sets `errno`. One thread at a time. */
static struct directory_entry *allocate_place(const char *path, uint64_t bytes) {
    const struct device *device = ns_device();
    struct directory_entry *entries = directory(), *free_entry;
    if (entries == NULL) return errno = ENODEV, NULL;
    uint64_t at = free_place(entries, bytes, &free_entry);
    if (at == 0) {
        forget_lost(entries);
        at = free_place(entries, bytes, &free_entry);
    }
    if (at == 0) {
        ns_log("%s: the device has no room for %llu bytes and their logs, %llu bytes, or has %u pools", path,
                (unsigned long long)bytes, (unsigned long long)bytes_with_logs(bytes) - bytes, NEARPM_POOLS);
        return errno = ENOSPC, NULL;
    }
    if (!set_file(free_entry, path)) return NULL;
    if (fallocate(device->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes_with_logs(bytes)) != 0)
        memset(device->window + at, 0, bytes_with_logs(bytes));
    uint64_t id = 0;
    while (id == 0)
        if (getrandom(&id, sizeof id, 0) != sizeof id) return NULL;
    free_entry->place = at;
    free_entry->bytes = bytes;
    free_entry->generations = 0;
    *was_tracked((int)(free_entry - entries)) = 0;
    __atomic_store_n(&free_entry->id, id, __ATOMIC_RELEASE);
    return free_entry;
}

/* Allocates a place for the new pool, and writes its label to the file. False sets `errno`. */
static bool make_place(int file, const char *path, uint64_t bytes) {
    struct directory_entry *fresh = allocate_place(path, bytes);
    if (fresh == NULL) return false;
    struct label label = {.id = fresh->id};
    memcpy(label.magic, LABEL, sizeof LABEL);
    opening.window = syscall(SYS_pwrite64, file, &label, sizeof label, 0) == sizeof label ? lock_place(fresh) : -1;
    if (opening.window < 0) return fresh->id = 0, false;
    opening.entry = fresh;
    return true;
}

/* The place of the contents of the file being opened; NULL for another file. False sets `errno`:
 * they can't be placed. */
static bool find_contents(int file, struct directory_entry **entry) {
    struct stat is, wanted;
    *entry = NULL;
    if (opening.path == NULL || file < 0) return true;
    const char *path = opening.path;
    if (fstat(file, &is) != 0 || stat(path, &wanted) != 0 || is.st_dev != wanted.st_dev || is.st_ino != wanted.st_ino) return true;
    if (opening.entry == NULL) {
        struct label label;
        struct directory_entry *old = label_of(file, &label) ? find_entry(directory(), label.id) : NULL;
        if (old != NULL) {
            /* A pool exists already: libpmemobj will not create another one. */
            opening.entry = old;
            opening.create = false;
        } else {
            /* Until the file has its label and the place is locked, another thread takes the pool
             * for a lost one. */
            pthread_mutex_lock(&ns_locks.pools);
            bool made = make_place(file, path, (uint64_t)is.st_size);
            pthread_mutex_unlock(&ns_locks.pools);
            if (!made) return false;
        }
    }
    if (opening.window < 0) opening.window = lock_place(opening.entry);
    if (opening.window < 0) return false;
    *entry = opening.entry;
    return true;
}

/* A lock of the shim on a pool's file, beside libpmemobj's, that can be tested without taking it.
 * It lasts as long. */
static struct flock file_lock(void) {
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = sizeof(struct label)};
}

/* True if a process or thread has the pool's file open. */
static bool is_open(int file) {
    struct flock lock = file_lock();
    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Keeps libpmemobj's lock on the file as long as the pool is mapped, as libpmemobj's mapping
 * would. */
static void keep_file_lock(int file) {
    struct flock lock = file_lock();
    /* Without such locks a second process learns of the first from libpmemobj's lock, once it has
     * the device. */
    (void)fcntl(file, F_OFD_SETLK, &lock);
    if (opening.file_lock != NULL) ns_munmap(opening.file_lock, PAGE);
    void *page = ns_mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, file, 0);
    opening.file_lock = page == MAP_FAILED ? NULL : page;
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    struct directory_entry *entry;
    bool whole_pool = false;
    int pool_file = -1;
    if (!find_contents(file, &entry)) return MAP_FAILED;
    if (entry != NULL) {
        if (offset < 0 || (uint64_t)offset + bytes > ns_whole_pages(entry->bytes)) return errno = EINVAL, MAP_FAILED;
        if ((flags & MAP_TYPE) == MAP_PRIVATE) {
            opening.private_wanted = true;
            if (!opening.private_made) flags = (flags & ~MAP_TYPE) | MAP_SHARED;
        }
        whole_pool = offset == 0 && bytes >= entry->bytes;
        pool_file = file;
        file = opening.window;
        offset += (off_t)entry->place;
    }
    /* As in `munmap`. */
    bool unmaps = (flags & MAP_FIXED) && bytes > 0 && ns_memory_has(address, bytes);
    if (unmaps) ns_persist_point(BEFORE_UNMAPPING);
    void *at = ns_mmap(address, bytes, protection, flags, file, offset);
    if (at != MAP_FAILED && unmaps) ns_memory_unmapped(at, bytes);
    if (at != MAP_FAILED && whole_pool) keep_file_lock(pool_file);
    /* Data that libpmem and libpmemobj persist are in one of these. */
    bool shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
    if (at != MAP_FAILED && file >= 0 && shared && (protection & PROT_WRITE))
        ns_memory_mapped(at, bytes, entry != NULL ? (uint64_t)offset : 0, entry != NULL ? ns_device()->file : file, offset);
    else if (at != MAP_FAILED && file >= 0 && shared)
        ns_memory_readable(file);
    return at;
}

EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return mmap(address, bytes, protection, flags, file, offset);
}

/* The file of a pool with contents elsewhere uses no disk space. Unwritten parts need no check
 * after a crash. */
EXPORT int posix_fallocate(int file, off_t offset, off_t bytes) {
    if (!ns_crash_wanted() && (opening.path == NULL || !opening.create)) return REAL(posix_fallocate)(file, offset, bytes);
    struct stat is;
    if (fstat(file, &is) != 0 || (is.st_size < offset + bytes && ftruncate(file, offset + bytes) != 0)) return errno;
    return 0;
}

EXPORT int posix_fallocate64(int file, off_t offset, off_t bytes) {
    return posix_fallocate(file, offset, bytes);
}

/* Runs a command; false, with a message, if it is refused. */
static bool command_succeeds(const struct pool *pool, uint8_t operation, int log, struct command command) {
    command.operation = operation;
    command.pool = pool->number;
    command.thread = (uint8_t)log;
    int64_t result = ns_command(&command, NULL);
    if (result != 0) ns_log("the device refuses operation %#x of pool %u, log %d: %lld", operation, pool->number, log, (long long)result);
    return result == 0;
}

static const struct descriptor *descriptor(const struct pool *pool, int log) {
    return (const struct descriptor *)(ns_device()->window + pool->place + ns_whole_pages(pool->bytes) + (uint64_t)log * LOG_BYTES);
}

static void write_generation(struct pool *pool, int log, uint64_t generation) {
    pool->logs[log].generation = generation;
    pool->logs[log].next = NEARPM_FIRST_RECORD;
    __atomic_store_n(&pool->generations[log], generation, __ATOMIC_RELEASE);
    REAL(pmemobj_persist)(pool->pop, &pool->generations[log], sizeof(uint64_t));
}

/* Completes or undoes a log's transaction, and opens the log. The pool's generation decides: it
 * equals the log's unless the transaction was committed. The engine has the next one after it has
 * undone a transaction; the pool's follows. */
static bool open_log(struct pool *pool, int log) {
    uint64_t generation = pool->generations[log];
    if (generation == 0 || *was_tracked(pool->number) != 0) {
        /* A new pool: the generation differs from any before on the media. */
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) != sizeof random) return false;
        generation = ((uint64_t)random + 1) << 24;
    } else {
        const struct descriptor *found = descriptor(pool, log);
        bool known = memcmp(found->magic, DESCRIPTOR, sizeof DESCRIPTOR) == 0;
        uint64_t on_device = known ? found->generation : 0;
        if (known && on_device == generation) {
            ns_crash_hold();
            ns_crash_before_device(pool->pop);
            bool recovered = command_succeeds(pool, NEARPM_OP_Recover, log, (struct command){0});
            ns_crash_after_device(pool->pop);
            ns_crash_release();
            if (!recovered) return false;
            generation += 1;
        } else if (known && on_device == generation + 1) {
            generation += 1;
        } else if (!known || on_device + 1 != generation) {
            ns_log("log %d of the pool has generation %#llx, the device's is %#llx: one of them is damaged", log,
                    (unsigned long long)generation, (unsigned long long)on_device);
            return false;
        }
    }
    /* Without records the order of these two writes does not matter. */
    if (!command_succeeds(pool, NEARPM_OP_LogOpen, log, (struct command){.value = generation})) return false;
    write_generation(pool, log, generation);
    return true;
}

/* Finds or creates the object with the generations. */
static bool find_generations(struct pool *pool, struct directory_entry *entry) {
    PMEMoid oid = {0, 0};
    if (entry->generations == 0) {
        for (oid = REAL(pmemobj_first)(pool->pop); oid.off != 0; oid = REAL(pmemobj_next)(oid))
            if (REAL(pmemobj_type_num)(oid) == GENERATIONS_TYPE) break;
        size_t bytes = NEARPM_THREADS * sizeof(uint64_t);
        if (oid.off == 0 && REAL(pmemobj_xalloc)(pool->pop, &oid, bytes, GENERATIONS_TYPE, POBJ_XALLOC_ZERO, NULL, NULL) != 0) {
            ns_log("the pool has no room for %zu bytes: %s", bytes, strerror(errno));
            return false;
        }
        __atomic_store_n(&entry->generations, oid.off, __ATOMIC_RELEASE);
    }
    pool->generations = (uint64_t *)((char *)pool->pop + entry->generations);
    return true;
}

/* Maps a pool on the device, after whoever had it mapped; its logs are closed. */
static bool map_on_device(const struct pool *pool, uint64_t threads) {
    if (!unmap(pool->number)) return ns_log("the device does not answer"), false;
    struct command map = {.address = pool->place, .bytes = bytes_with_logs(pool->bytes), .target = pool->place,
                          .transaction = ns_whole_pages(pool->bytes), .value = LOG_BYTES, .extra = threads};
    return command_succeeds(pool, NEARPM_OP_PoolMap, 0, map);
}

/* Undoes what a tracked pool has had stored to since its last commit. libpmemobj opens it after
 * that, as its logs are undone, too. */
static bool undo_tracked(const struct directory_entry *entry, int number) {
    struct pool pool = {.bytes = entry->bytes, .place = entry->place, .number = (uint8_t)number};
    return map_on_device(&pool, 1 | NEARPM_TRACKED) && command_succeeds(&pool, NEARPM_OP_Recover, 0, (struct command){0}) && unmap(number);
}

/* Has the device track an open pool. Before the log is open nothing is to be undone. */
static bool track(struct pool *pool) {
    uint64_t generation = pool->logs[0].generation + 1;
    *was_tracked(pool->number) = 1;
    uint64_t tracked = ns_tracked_without_records() ? 0 : NEARPM_TRACKED;
    if (!map_on_device(pool, 1 | tracked) || !command_succeeds(pool, NEARPM_OP_LogOpen, 0, (struct command){.value = generation})) return false;
    pool->logs[0].generation = generation;
    ns_tracked_start(pool);
    return true;
}

bool ns_pool_untrack(struct pool *pool) {
    pool->ending = true;
    if (!map_on_device(pool, NEARPM_THREADS)) return false;
    for (int log = 1; log < (int)NEARPM_THREADS; log++)
        if (!open_log(pool, log)) return false;
    /* Not those of the first log: its records are still needed. */
    pool->logs[0].taken = true;
    pool->generations[0] = 0;
    REAL(pmemobj_persist)(pool->pop, pool->generations, sizeof(uint64_t));
    return true;
}

bool ns_pool_untracked(struct pool *pool) {
    *was_tracked(pool->number) = 0;
    ns_tracked_end(pool);
    pool->logs[0].taken = false;
    return open_log(pool, 0);
}

/* Recovers the logs of a pool that libpmemobj has opened. */
static bool recover_pool(struct pool *pool, struct directory_entry *entry) {
    /* The last process may have it mapped; its logs are closed then. */
    if (!map_on_device(pool, NEARPM_THREADS) || !find_generations(pool, entry)) return false;
    for (int log = 0; log < (int)NEARPM_THREADS; log++)
        if (!open_log(pool, log)) return false;
    *was_tracked(pool->number) = 0;
    return !ns_tracked_wanted() || track(pool);
}

/* Ends the opening of a pool. */
static void end_opening(void) {
    if (opening.window >= 0) close(opening.window);
    if (opening.file_lock != NULL) ns_munmap(opening.file_lock, PAGE);
    opening.path = NULL;
    opening.entry = NULL;
    opening.window = -1;
    opening.file_lock = NULL;
}

static void release_user(void) {
    __atomic_fetch_sub(&users, 1, __ATOMIC_RELEASE);
}

/* Finishes the opening: with the contents on the device, or by libpmemobj alone. */
static PMEMobjpool *finish_opening(PMEMobjpool *pop) {
    struct directory_entry *entry = opening.entry;
    int why = errno;
    if (entry == NULL || pop == NULL) {
        if (entry != NULL && opening.create) entry->id = 0;
        end_opening();
        release_user();
        return errno = why, pop;
    }
    struct pool *pool = &pools[entry - directory()];
    pthread_mutex_lock(&ns_locks.pools);
    *pool = (struct pool){.bytes = entry->bytes, .place = entry->place, .number = (uint8_t)(pool - pools),
                          .process = getpid(), .alone = opening.private_made, .file_lock = opening.file_lock};
    opening.file_lock = NULL;
    pool->pop = pop;
    pool->window = opening.window;
    bool started = pool->alone || recover_pool(pool, entry);
    pthread_mutex_unlock(&ns_locks.pools);
    if (pool->tracked) opening.window = -1;
    end_opening();
    if (started) return pop;
    pool->alone = true;
    pmemobj_close(pop);
    errno = EIO;
    return NULL;
}

/* Prepares the opening of a pool that may be on the device; false sets `errno`. */
static bool prepare(const char *path, bool create) {
    end_opening();
    opening.create = create;
    opening.private_wanted = opening.private_made = false;
    __atomic_fetch_add(&users, 1, __ATOMIC_ACQ_REL);
    if (getenv("NEARSIDE_PMDK") == NULL || path == NULL) return true;
    struct label label;
    if (!create) {
        int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) return true; /* libpmemobj reports why */
        bool there = label_of(file, &label);
        bool busy = there && is_open(file);
        close(file);
        if (busy) return true; /* it is open, and libpmemobj reports that */
        if (!there) ns_log("%s: its contents are not on the device; it is left to libpmemobj alone", path);
        if (!there) return true;
    }
    /* A child may use the device while its parent has no pool open, but not two threads at a
     * time. */
    pthread_mutex_lock(&ns_locks.pools);
    struct directory_entry *entries = directory();
    bool good = entries != NULL;
    if (!good) errno = ENODEV;
    if (good && !create) {
        opening.entry = find_entry(entries, label.id);
        good = opening.entry != NULL;
        if (!good) {
            ns_log("%s: its contents are on another device", path);
            errno = ENXIO;
        }
        good = good && is_its_file(opening.entry, path);
        int number = good ? (int)(opening.entry - entries) : 0;
        if (good && *was_tracked(number) != 0 && !is_mapped(opening.entry) && !undo_tracked(opening.entry, number)) good = false, errno = EIO;
    }
    pthread_mutex_unlock(&ns_locks.pools);
    if (good) {
        opening.path = path;
        return true;
    }
    opening.entry = NULL;
    release_user();
    return false;
}

EXPORT PMEMobjpool *pmemobj_create(const char *path, const char *layout, size_t bytes, mode_t mode) {
    if (!prepare(path, true)) return NULL;
    return finish_opening(REAL(pmemobj_create)(path, layout, bytes, mode));
}

EXPORT PMEMobjpool *pmemobj_open(const char *path, const char *layout) {
    if (!prepare(path, false)) return NULL;
    PMEMobjpool *pop = finish_opening(REAL(pmemobj_open)(path, layout));
    if (pop == NULL || !opening.private_wanted) return pop;
    /* A copy-on-write pool is libpmemobj's alone: its logs are empty after the recovery. */
    pmemobj_close(pop);
    if (!prepare(path, false)) return NULL;
    opening.private_made = true;
    return finish_opening(REAL(pmemobj_open)(path, layout));
}

EXPORT int pmemobj_check(const char *path, const char *layout) {
    if (!prepare(path, false)) return -1;
    opening.private_made = true;
    int result = REAL(pmemobj_check)(path, layout);
    int why = errno;
    end_opening();
    release_user();
    errno = why;
    return result;
}

static struct pool *find_pool(PMEMobjpool *pop) {
    struct pool *found = NULL;
    pthread_mutex_lock(&ns_locks.pools);
    for (int n = 0; n < (int)NEARPM_POOLS && pop != NULL; n++)
        if (pools[n].pop == pop) found = &pools[n];
    pthread_mutex_unlock(&ns_locks.pools);
    return found;
}

bool ns_pool_inherited(const struct pool *pool) {
    return pool->process != getpid();
}

/* Checks the file's names a last time: they may have changed while it was open. */
static void note_links(const struct pool *pool) {
    struct directory_entry *entries = directory();
    if (entries != NULL && entries[pool->number].id != 0) look_at_links(&entries[pool->number]);
}

EXPORT void pmemobj_close(PMEMobjpool *pop) {
    struct pool *pool = find_pool(pop);
    void *file_lock = NULL;
    if (pool != NULL) {
        if (pool->tracked) {
            ns_tracked_commit(pool);
            pool->ending = true;
            command_succeeds(pool, NEARPM_OP_PoolUnmap, 0, (struct command){0});
            ns_tracked_end(pool);
        } else if (!pool->alone && !ns_pool_inherited(pool))
            command_succeeds(pool, NEARPM_OP_PoolUnmap, 0, (struct command){0});
        pthread_mutex_lock(&ns_locks.pools);
        if (!ns_pool_inherited(pool)) {
            note_links(pool);
            ns_ranges_free(&pool->reserved);
        }
        file_lock = pool->file_lock;
        pool->pop = NULL;
        pthread_mutex_unlock(&ns_locks.pools);
    }
    REAL(pmemobj_close)(pop);
    if (file_lock != NULL) ns_munmap(file_lock, PAGE);
    if (pool != NULL) release_user();
}

static PMEMoid skip_generations(PMEMoid oid) {
    while (oid.off != 0 && REAL(pmemobj_type_num)(oid) == GENERATIONS_TYPE) oid = REAL(pmemobj_next)(oid);
    return oid;
}

EXPORT PMEMoid pmemobj_first(PMEMobjpool *pop) {
    return skip_generations(REAL(pmemobj_first)(pop));
}

EXPORT PMEMoid pmemobj_next(PMEMoid oid) {
    return skip_generations(REAL(pmemobj_next)(oid));
}

struct pool *ns_pool(PMEMobjpool *pop) {
    struct pool *pool = find_pool(pop);
    return pool != NULL && !pool->alone ? pool : NULL;
}

void ns_pools_release(void) {
    for (int n = 0; n < (int)NEARPM_POOLS; n++)
        if (pools[n].file_lock != NULL) ns_munmap(pools[n].file_lock, PAGE);
    end_opening();
}

void ns_pools_before_fork(void) {
    ns_tracked_before_fork();
    if (__atomic_load_n(&users, __ATOMIC_ACQUIRE) != 0) return;
    /* The holder of the lock needs the device. */
    if (pthread_mutex_trylock(&ns_locks.pools) != 0) return;
    if (__atomic_load_n(&users, __ATOMIC_ACQUIRE) == 0) ns_device_leave();
    pthread_mutex_unlock(&ns_locks.pools);
}

int ns_pool_acquire_log(struct pool *pool) {
    int taken = -1;
    pthread_mutex_lock(&ns_locks.pools);
    for (int log = 0; log < (int)NEARPM_THREADS && taken < 0; log++)
        if (!pool->logs[log].taken) taken = log;
    if (taken >= 0) pool->logs[taken].taken = true;
    pthread_mutex_unlock(&ns_locks.pools);
    return taken;
}

void ns_pool_release_log(struct pool *pool, int log) {
    pthread_mutex_lock(&ns_locks.pools);
    pool->logs[log].taken = false;
    pthread_mutex_unlock(&ns_locks.pools);
}

void ns_pool_next_generation(struct pool *pool, int log, bool written) {
    uint64_t next = pool->logs[log].generation + 1;
    if (!written) {
        write_generation(pool, log, next);
        return;
    }
    pool->logs[log].generation = next;
    pool->logs[log].next = NEARPM_FIRST_RECORD;
}
