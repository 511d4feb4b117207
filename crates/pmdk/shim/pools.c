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
#include "moments.h"
#include "process.h"

enum { PATH_BYTES = 208 };

/* The object of a pool that has the generations of its logs; programs do not see it. */
#define GENERATIONS_TYPE 0x4E53504D444B4C47u

/* What a pool's file begins with. */
struct label {
    char magic[16];
    uint64_t id;
};
static const char LABEL[16] = "NEARSIDE-PMDK 1";

/* The device's first page has this, and of each pool whether its file has had other names (hard links) when it was last looked at; the
 * second one a place for each pool. */
static const char DIRECTORY[16] = "NEARSIDE-PMDK D1";
struct first_page {
    char magic[16];
    uint8_t linked[NEARPM_POOLS];
};
struct entry {
    uint64_t id; /* 0: free */
    uint64_t place, bytes;
    uint64_t generations; /* offset of that object; 0: it is not known */
    uint64_t inode; /* of its file; 0: it is not known, as when the next two are being changed */
    char path[PATH_BYTES];
    uint64_t folder_device; /* the file system's, of the file's folder */
};
_Static_assert(sizeof(struct entry) * NEARPM_POOLS <= PAGE, "the directory is a page");
enum { FIRST_PLACE = 2 * PAGE };

/* The descriptor of a log, as far as it is read here: docs/hardware/nearpm.md. */
struct descriptor {
    char magic[8];
    uint64_t generation;
};
static const char DESCRIPTOR[8] = "NPMLOG\0\1";

static struct pool pools[NEARPM_POOLS];

/* How many pools are open or being opened: until there is none the device is needed. */
static int users;

/* The pool that this thread has libpmemobj open: which file, and where its contents lie. */
static __thread struct {
    const char *path;
    struct entry *entry;
    bool create;
    /* Private mappings of it are wanted, copy on write; they are made as such. */
    bool private_wanted, private_made;
    /* The device's window, with a lock on the place. */
    int window;
    /* A page of the pool's file: the lock of libpmemobj on the file lasts as long as it is mapped. */
    void *file_lock;
} opening = {.window = -1};

void *ns_real(const char *name) {
    void *at = dlsym(RTLD_NEXT, name);
    if (at == NULL) {
        ns_tell("%s: this program has no libpmemobj, or another one", name);
        abort();
    }
    return at;
}

/* Bytes of a pool with its logs. */
static uint64_t whole(uint64_t bytes) {
    return ns_whole_pages(bytes) + (uint64_t)NEARPM_THREADS * LOG_BYTES;
}

static struct entry *directory(void) {
    const struct device *device = ns_device();
    if (device == NULL) return NULL;
    size_t used = 0;
    while (used < FIRST_PLACE && device->window[used] == 0) used++;
    if (used == FIRST_PLACE) memcpy(device->window, DIRECTORY, sizeof DIRECTORY);
    if (memcmp(device->window, DIRECTORY, sizeof DIRECTORY) != 0) {
        ns_tell("the device's media hold something else than pools of libpmemobj");
        return NULL;
    }
    return (struct entry *)(device->window + PAGE);
}

static bool label_of(int file, struct label *label) {
    bool there = pread(file, label, sizeof *label, 0) == sizeof *label;
    return there && memcmp(label->magic, LABEL, sizeof LABEL) == 0 && label->id != 0;
}

/* What a path has: a pool of the device's, or none; `errno` where that can't be known, ENOENT: there is no file. */
enum found { POOL, NO_POOL, UNKNOWN };

static enum found read_label(const char *path, struct label *label) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return UNKNOWN;
    bool there = label_of(file, label);
    close(file);
    return there ? POOL : NO_POOL;
}

static struct entry *find_entry(struct entry *entries, uint64_t id) {
    for (int n = 0; n < (int)NEARPM_POOLS; n++)
        if (entries[n].id == id) return &entries[n];
    return NULL;
}

/* Whether some process has a pool mapped: also one whose file is gone, and a child of a process that has ended. */
static bool is_mapped(const struct entry *entry) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)entry->place, .l_len = (off_t)whole(entry->bytes)};
    return fcntl(ns_device()->file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* The window, with a lock on a place: a mapping that is made with it keeps that until the last process has unmapped it. -1, and `errno`. */
static int lock_place(const struct entry *entry) {
    char path[32];
    /* Locks are those of an open file, and the server's own is every client's. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", ns_device()->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        int why = errno;
        ns_tell("the device's window can't be opened anew: %s", strerror(why));
        return errno = why, -1;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)entry->place, .l_len = (off_t)whole(entry->bytes)};
    if (fcntl(file, F_OFD_SETLK, &lock) == 0) return file;
    close(file);
    return errno = EAGAIN, -1;
}

/* The path of a pool's file without its last part; nothing is left of a path without a slash. */
static void cut(char *path) {
    char *slash = strrchr(path, '/');
    *(slash == NULL ? path : slash == path ? slash + 1 : slash) = 0;
}

/* Whether a pool's file has more names than the one that is known: it is still there when that is gone. */
static uint8_t *linked(const struct entry *entry) {
    uint8_t *window = ns_device()->window;
    return &((struct first_page *)window)->linked[entry - (const struct entry *)(window + PAGE)];
}

/* Where a pool's file is: the pool is found there when the device lacks room. False, and `errno`. */
static bool set_file(struct entry *entry, const char *path) {
    char full[PATH_MAX], folder[PATH_MAX];
    struct stat file, in;
    if (realpath(path, full) == NULL) return false;
    strcpy(folder, full);
    cut(folder);
    if (stat(full, &file) != 0 || stat(folder, &in) != 0) return false;
    if (strlen(full) >= PATH_BYTES) {
        ns_tell("%s: the path has %zu bytes, allowed are %d", full, strlen(full), PATH_BYTES - 1);
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

/* The file that is opened has a pool's label: it is the pool's, which may have got another name, or has taken the place of one that is
 * gone; a copy of it is none. False, and `errno`. */
static bool is_its_file(struct entry *entry, const char *path) {
    struct stat file, old = {0};
    struct label label;
    if (stat(path, &file) != 0) return false;
    bool there = entry->inode == 0 || stat(entry->path, &old) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR) {
        int why = errno;
        ns_tell("%s: whether it is a copy of %s can't be known: %s", path, entry->path, strerror(why));
        return errno = why, false;
    }
    bool same = there && entry->inode != 0 && old.st_dev == file.st_dev && old.st_ino == file.st_ino;
    bool renamed = there && file.st_ino == entry->inode && old.st_ino != entry->inode;
    if (there && entry->inode != 0 && !same && !renamed && read_label(entry->path, &label) == POOL && label.id == entry->id) {
        ns_tell("%s: a copy of %s, whose contents are on the device once", path, entry->path);
        return errno = ENXIO, false;
    }
    return set_file(entry, path);
}

/* Looks for a file that was renamed within its folder, and takes its name. True if it is there, or that can't be known. */
static bool found_in_folder(struct entry *entry) {
    char path[PATH_MAX], folder[PATH_MAX];
    strcpy(folder, entry->path);
    cut(folder);
    DIR *list = opendir(folder);
    if (list == NULL) return errno != ENOENT;
    bool found = false;
    for (struct dirent *item; !found && (item = readdir(list)) != NULL;) {
        struct label label;
        if (item->d_ino != entry->inode) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, item->d_name) >= sizeof path) continue;
        enum found what = read_label(path, &label);
        if (what == POOL && label.id == entry->id) found = true, set_file(entry, path);
        if (what == UNKNOWN && errno != ENOENT) found = true;
    }
    closedir(list);
    return found;
}

/* Looks anew whether a pool's file has other names, if it is where it was. */
static void look_at_links(struct entry *entry) {
    struct stat file;
    if (entry->inode != 0 && stat(entry->path, &file) == 0 && file.st_ino == entry->inode) *linked(entry) = file.st_nlink > 1;
}

/* Whether the place is to be given away of a pool whose file may have a name that is not known. */
static bool asked_to_forget(const struct entry *entry) {
    const char *path = getenv("NEARSIDE_PMDK_FORGET");
    return path != NULL && strcmp(path, entry->path) == 0;
}

/* Whether a pool's file is no more. What can't be looked at, as it is out of reach or its file system is not mounted, may be there. */
static bool is_lost(struct entry *entry) {
    struct label label;
    char above[PATH_MAX];
    struct stat in;
    if (entry->inode == 0) return false;
    enum found what = read_label(entry->path, &label);
    if (what == POOL && label.id == entry->id) return look_at_links(entry), false;
    if (what == UNKNOWN && errno != ENOENT) return false;
    strcpy(above, entry->path);
    do {
        cut(above);
    } while (stat(above, &in) != 0 && errno == ENOENT && above[0] != 0 && strcmp(above, "/") != 0);
    if (stat(above, &in) != 0 || in.st_dev != entry->folder_device) return false;
    if (found_in_folder(entry)) return false;
    if (!*linked(entry) || asked_to_forget(entry)) return true;
    ns_tell("%s is no more, but its file had other names: its place is kept. Open the pool by another name, or have the place given away "
            "with NEARSIDE_PMDK_FORGET=%s", entry->path, entry->path);
    return false;
}

/* The device has a pool no longer, of whichever process: its logs are closed. False if it does not answer. */
static bool unmap(int number) {
    struct command command = {.operation = NEARPM_OP_PoolUnmap, .pool = (uint8_t)number};
    return ns_command(&command, NULL) >= 0;
}

/* Gives the places of pools back whose files are no more, and that nobody has mapped. The device has those of killed processes still. */
static void forget_lost(struct entry *entries) {
    for (int n = 0; n < (int)NEARPM_POOLS; n++)
        if (entries[n].id != 0 && !is_mapped(&entries[n]) && is_lost(&entries[n]) && unmap(n)) entries[n].id = 0;
}

/* A free place for a pool with its logs; 0 if there is none. */
static uint64_t free_place(struct entry *entries, uint64_t bytes, struct entry **free_entry) {
    uint64_t at = FIRST_PLACE;
    bool moved = true;
    *free_entry = NULL;
    while (moved) {
        moved = false;
        for (int n = 0; n < (int)NEARPM_POOLS; n++) {
            struct entry *other = &entries[n];
            if (other->id == 0) {
                *free_entry = other;
            } else if (at < other->place + whole(other->bytes) && other->place < at + whole(bytes)) {
                at = other->place + whole(other->bytes);
                moved = true;
            }
        }
    }
    uint64_t room = ns_device()->bytes;
    return *free_entry == NULL || at > room || whole(bytes) > room - at ? 0 : at;
}

/* A place for a new pool, which is zero; NULL and `errno` if there is none. One thread at a time. */
static struct entry *place(const char *path, uint64_t bytes) {
    const struct device *device = ns_device();
    struct entry *entries = directory(), *free_entry;
    if (entries == NULL) return errno = ENODEV, NULL;
    uint64_t at = free_place(entries, bytes, &free_entry);
    if (at == 0) {
        forget_lost(entries);
        at = free_place(entries, bytes, &free_entry);
    }
    if (at == 0) {
        ns_tell("%s: the device has no room for %llu bytes and their logs, %llu bytes, or has %u pools", path,
                (unsigned long long)bytes, (unsigned long long)whole(bytes) - bytes, NEARPM_POOLS);
        return errno = ENOSPC, NULL;
    }
    if (!set_file(free_entry, path)) return NULL;
    if (fallocate(device->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)whole(bytes)) != 0)
        memset(device->window + at, 0, whole(bytes));
    uint64_t id = 0;
    while (id == 0)
        if (getrandom(&id, sizeof id, 0) != sizeof id) return NULL;
    free_entry->place = at;
    free_entry->bytes = bytes;
    free_entry->generations = 0;
    __atomic_store_n(&free_entry->id, id, __ATOMIC_RELEASE);
    return free_entry;
}

/* A place for the new pool that is being opened, and its label in the file. False, and `errno`, if there can't be one. */
static bool make_place(int file, const char *path, uint64_t bytes) {
    struct entry *fresh = place(path, bytes);
    if (fresh == NULL) return false;
    struct label label = {.id = fresh->id};
    memcpy(label.magic, LABEL, sizeof LABEL);
    opening.window = syscall(SYS_pwrite64, file, &label, sizeof label, 0) == sizeof label ? lock_place(fresh) : -1;
    if (opening.window < 0) return fresh->id = 0, false;
    opening.entry = fresh;
    return true;
}

/* Where the contents of the file lie that is being opened; NULL if it is another file. False, and `errno`, if they can't be anywhere. */
static bool redirected(int file, struct entry **entry) {
    struct stat is, wanted;
    *entry = NULL;
    if (opening.path == NULL || file < 0) return true;
    const char *path = opening.path;
    if (fstat(file, &is) != 0 || stat(path, &wanted) != 0 || is.st_dev != wanted.st_dev || is.st_ino != wanted.st_ino) return true;
    if (opening.entry == NULL) {
        struct label label;
        struct entry *old = label_of(file, &label) ? find_entry(directory(), label.id) : NULL;
        if (old != NULL) {
            /* A pool is there already: libpmemobj will not create another one. */
            opening.entry = old;
            opening.create = false;
        } else {
            /* Until the file has its label and the place is locked, another thread takes the pool for one that is no more. */
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

/* A lock of the shim's own on a pool's file beside libpmemobj's, as this one can be looked at without taking it. It lasts as long. */
static struct flock file_lock(void) {
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = sizeof(struct label)};
}

/* Whether a pool's file is open as a pool, of whichever process or thread. */
static bool is_open(int file) {
    struct flock lock = file_lock();
    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* The lock that libpmemobj has on the file of a pool is to last as long as the pool is mapped, as it would with its own mapping. */
static void keep_file_lock(int file) {
    struct flock lock = file_lock();
    /* Where there are no such locks who comes second learns from libpmemobj's, once it has the device. */
    (void)fcntl(file, F_OFD_SETLK, &lock);
    if (opening.file_lock != NULL) ns_munmap(opening.file_lock, PAGE);
    void *page = ns_mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, file, 0);
    opening.file_lock = page == MAP_FAILED ? NULL : page;
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    struct entry *entry;
    bool whole_pool = false;
    int pool_file = -1;
    if (!redirected(file, &entry)) return MAP_FAILED;
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
    if (unmaps) ns_moment(BEFORE_UNMAPPING);
    void *at = ns_mmap(address, bytes, protection, flags, file, offset);
    if (at != MAP_FAILED && unmaps) ns_memory_gone(at, bytes);
    if (at != MAP_FAILED && whole_pool) keep_file_lock(pool_file);
    /* What libpmem and libpmemobj persist is in one of these. */
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

/* The file of a pool whose contents are elsewhere takes no room; what has not been written to need not be looked at after a crash. */
EXPORT int posix_fallocate(int file, off_t offset, off_t bytes) {
    if (!ns_crash_wanted() && (opening.path == NULL || !opening.create)) return REAL(posix_fallocate)(file, offset, bytes);
    struct stat is;
    if (fstat(file, &is) != 0 || (is.st_size < offset + bytes && ftruncate(file, offset + bytes) != 0)) return errno;
    return 0;
}

EXPORT int posix_fallocate64(int file, off_t offset, off_t bytes) {
    return posix_fallocate(file, offset, bytes);
}

/* A command that has to end well. */
static bool must(const struct pool *pool, uint8_t operation, int log, struct command command) {
    command.operation = operation;
    command.pool = pool->number;
    command.thread = (uint8_t)log;
    int64_t result = ns_command(&command, NULL);
    if (result != 0) ns_tell("the device refuses operation %#x of pool %u, log %d: %lld", operation, pool->number, log, (long long)result);
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

/* Brings a log to the end of its transaction, or to its start, and opens it. The pool's generation says which: it is the log's unless the
 * transaction was committed. The engine's next one is there when it has undone a transaction, and the pool's has to follow. */
static bool open_log(struct pool *pool, int log) {
    uint64_t generation = pool->generations[log];
    if (generation == 0) {
        /* A new pool: none that has been on the media before. */
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
            bool recovered = must(pool, NEARPM_OP_Recover, log, (struct command){0});
            ns_crash_behind_device(pool->pop);
            ns_crash_release();
            if (!recovered) return false;
            generation += 1;
        } else if (known && on_device == generation + 1) {
            generation += 1;
        } else if (!known || on_device + 1 != generation) {
            ns_tell("log %d of the pool has generation %#llx, the device's is %#llx: one of them is damaged", log,
                    (unsigned long long)generation, (unsigned long long)on_device);
            return false;
        }
    }
    /* Until a record is made nothing depends on which of the two is written first. */
    if (!must(pool, NEARPM_OP_LogOpen, log, (struct command){.value = generation})) return false;
    write_generation(pool, log, generation);
    return true;
}

/* Finds the object with the generations, or makes it. */
static bool find_generations(struct pool *pool, struct entry *entry) {
    PMEMoid oid = {0, 0};
    if (entry->generations == 0) {
        for (oid = REAL(pmemobj_first)(pool->pop); oid.off != 0; oid = REAL(pmemobj_next)(oid))
            if (REAL(pmemobj_type_num)(oid) == GENERATIONS_TYPE) break;
        size_t bytes = NEARPM_THREADS * sizeof(uint64_t);
        if (oid.off == 0 && REAL(pmemobj_xalloc)(pool->pop, &oid, bytes, GENERATIONS_TYPE, POBJ_XALLOC_ZERO, NULL, NULL) != 0) {
            ns_tell("the pool has no room for %zu bytes: %s", bytes, strerror(errno));
            return false;
        }
        __atomic_store_n(&entry->generations, oid.off, __ATOMIC_RELEASE);
    }
    pool->generations = (uint64_t *)((char *)pool->pop + entry->generations);
    return true;
}

/* A pool that libpmemobj has opened: its logs are recovered. */
static bool start(struct pool *pool, struct entry *entry) {
    /* The last process may have had it; its logs are closed then. */
    if (!unmap(pool->number)) return ns_tell("the device does not answer"), false;
    struct command map = {.address = pool->place, .bytes = whole(pool->bytes), .target = pool->place,
                          .transaction = ns_whole_pages(pool->bytes), .value = LOG_BYTES, .extra = NEARPM_THREADS};
    if (!must(pool, NEARPM_OP_PoolMap, 0, map) || !find_generations(pool, entry)) return false;
    for (int log = 0; log < (int)NEARPM_THREADS; log++)
        if (!open_log(pool, log)) return false;
    return true;
}

/* No pool is being opened any more. */
static void end_opening(void) {
    if (opening.window >= 0) close(opening.window);
    if (opening.file_lock != NULL) ns_munmap(opening.file_lock, PAGE);
    opening.path = NULL;
    opening.entry = NULL;
    opening.window = -1;
    opening.file_lock = NULL;
}

static void one_user_less(void) {
    __atomic_fetch_sub(&users, 1, __ATOMIC_RELEASE);
}

/* Has libpmemobj open a pool with its contents on the device, or leaves it all to it where they are not there. */
static PMEMobjpool *opened(PMEMobjpool *pop) {
    struct entry *entry = opening.entry;
    int why = errno;
    if (entry == NULL || pop == NULL) {
        if (entry != NULL && opening.create) entry->id = 0;
        end_opening();
        one_user_less();
        return errno = why, pop;
    }
    struct pool *pool = &pools[entry - directory()];
    pthread_mutex_lock(&ns_locks.pools);
    *pool = (struct pool){.bytes = entry->bytes, .place = entry->place, .number = (uint8_t)(pool - pools),
                          .process = getpid(), .alone = opening.private_made, .file_lock = opening.file_lock};
    opening.file_lock = NULL;
    pool->pop = pop;
    bool started = pool->alone || start(pool, entry);
    pthread_mutex_unlock(&ns_locks.pools);
    end_opening();
    if (started) return pop;
    pool->alone = true;
    pmemobj_close(pop);
    errno = EIO;
    return NULL;
}

/* Whether a pool is to be on the device; false, and `errno`, if that can't be. */
static bool prepare(const char *path, bool create) {
    end_opening();
    opening.create = create;
    opening.private_wanted = opening.private_made = false;
    __atomic_fetch_add(&users, 1, __ATOMIC_ACQ_REL);
    if (getenv("NEARSIDE_PMDK") == NULL || path == NULL) return true;
    struct label label;
    if (!create) {
        int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) return true; /* libpmemobj says why */
        bool there = label_of(file, &label);
        bool busy = there && is_open(file);
        close(file);
        if (busy) return true; /* it is open, and libpmemobj says so */
        if (!there) ns_tell("%s: its contents are not on the device; it is left to libpmemobj alone", path);
        if (!there) return true;
    }
    /* A child may have the device while its parent has no pool open: not two threads at a time. */
    pthread_mutex_lock(&ns_locks.pools);
    struct entry *entries = directory();
    bool good = entries != NULL;
    if (!good) errno = ENODEV;
    if (good && !create) {
        opening.entry = find_entry(entries, label.id);
        good = opening.entry != NULL;
        if (!good) {
            ns_tell("%s: its contents are on another device", path);
            errno = ENXIO;
        }
        good = good && is_its_file(opening.entry, path);
    }
    pthread_mutex_unlock(&ns_locks.pools);
    if (good) {
        opening.path = path;
        return true;
    }
    opening.entry = NULL;
    one_user_less();
    return false;
}

EXPORT PMEMobjpool *pmemobj_create(const char *path, const char *layout, size_t bytes, mode_t mode) {
    if (!prepare(path, true)) return NULL;
    return opened(REAL(pmemobj_create)(path, layout, bytes, mode));
}

EXPORT PMEMobjpool *pmemobj_open(const char *path, const char *layout) {
    if (!prepare(path, false)) return NULL;
    PMEMobjpool *pop = opened(REAL(pmemobj_open)(path, layout));
    if (pop == NULL || !opening.private_wanted) return pop;
    /* With copies on write the pool is libpmemobj's alone, as the logs are empty now that it has been recovered. */
    pmemobj_close(pop);
    if (!prepare(path, false)) return NULL;
    opening.private_made = true;
    return opened(REAL(pmemobj_open)(path, layout));
}

EXPORT int pmemobj_check(const char *path, const char *layout) {
    if (!prepare(path, false)) return -1;
    opening.private_made = true;
    int result = REAL(pmemobj_check)(path, layout);
    int why = errno;
    end_opening();
    one_user_less();
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

/* The last look at its file: it may have got other names while it was open. */
static void note_links(const struct pool *pool) {
    struct entry *entries = directory();
    if (entries != NULL && entries[pool->number].id != 0) look_at_links(&entries[pool->number]);
}

EXPORT void pmemobj_close(PMEMobjpool *pop) {
    struct pool *pool = find_pool(pop);
    void *file_lock = NULL;
    if (pool != NULL) {
        if (!pool->alone && !ns_pool_inherited(pool)) must(pool, NEARPM_OP_PoolUnmap, 0, (struct command){0});
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
    if (pool != NULL) one_user_less();
}

static PMEMoid seen(PMEMoid oid) {
    while (oid.off != 0 && REAL(pmemobj_type_num)(oid) == GENERATIONS_TYPE) oid = REAL(pmemobj_next)(oid);
    return oid;
}

EXPORT PMEMoid pmemobj_first(PMEMobjpool *pop) {
    return seen(REAL(pmemobj_first)(pop));
}

EXPORT PMEMoid pmemobj_next(PMEMoid oid) {
    return seen(REAL(pmemobj_next)(oid));
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
    if (__atomic_load_n(&users, __ATOMIC_ACQUIRE) != 0) return;
    /* Who has the lock needs the device. */
    if (pthread_mutex_trylock(&ns_locks.pools) != 0) return;
    if (__atomic_load_n(&users, __ATOMIC_ACQUIRE) == 0) ns_device_leave();
    pthread_mutex_unlock(&ns_locks.pools);
}

int ns_pool_take_log(struct pool *pool) {
    int taken = -1;
    pthread_mutex_lock(&ns_locks.pools);
    for (int log = 0; log < (int)NEARPM_THREADS && taken < 0; log++)
        if (!pool->logs[log].taken) taken = log;
    if (taken >= 0) pool->logs[taken].taken = true;
    pthread_mutex_unlock(&ns_locks.pools);
    return taken;
}

void ns_pool_give_log(struct pool *pool, int log) {
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
