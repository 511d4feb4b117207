#define _GNU_SOURCE
#include "pools.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crash.h"
#include "device.h"
#include "memory.h"
#include "process.h"

enum { PAGE = 4096, PATH_BYTES = 216 };

/* The object of a pool that has the generations of its logs; programs do not see it. */
#define GENERATIONS_TYPE 0x4E53504D444B4C47u

/* What a pool's file begins with. */
struct label {
    char magic[16];
    uint64_t id;
};
static const char LABEL[16] = "NEARSIDE-PMDK 1";

/* The device's first page has this, the second one a place for each pool. */
static const char DIRECTORY[16] = "NEARSIDE-PMDK D1";
struct entry {
    uint64_t id; /* 0: free */
    uint64_t place, bytes;
    uint64_t generations; /* offset of that object; 0: it is not known */
    uint64_t reserved;
    char path[PATH_BYTES];
};
_Static_assert(sizeof(struct entry) * NEARPM_POOLS <= PAGE, "the directory is a page");
enum { FIRST_PLACE = 2 * PAGE };

/* The descriptor of a log, as far as it is read here: hw/engine/nearpm/README.md. */
struct descriptor {
    char magic[8];
    uint64_t generation;
};
static const char DESCRIPTOR[8] = "NPMLOG\0\1";

static struct pool pools[NEARPM_POOLS];

/* The pool that this thread has libpmemobj open: which file, and where its contents lie. */
static __thread struct {
    const char *path;
    struct entry *entry;
    bool create;
} opening;

void *ns_real(const char *name) {
    void *at = dlsym(RTLD_NEXT, name);
    if (at == NULL) {
        ns_tell("%s: this program has no libpmemobj, or another one", name);
        abort();
    }
    return at;
}

static uint64_t up(uint64_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Bytes of a pool with its logs. */
static uint64_t whole(uint64_t bytes) {
    return up(bytes) + (uint64_t)NEARPM_THREADS * LOG_BYTES;
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

static bool read_label(const char *path, struct label *label) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    bool there = label_of(file, label);
    close(file);
    return there;
}

static struct entry *find_entry(struct entry *entries, uint64_t id) {
    for (int n = 0; n < (int)NEARPM_POOLS; n++)
        if (entries[n].id == id) return &entries[n];
    return NULL;
}

/* Gives the places of pools back whose files are no more. */
static void forget_lost(struct entry *entries) {
    for (int n = 0; n < (int)NEARPM_POOLS; n++) {
        struct label label;
        if (entries[n].id != 0 && (!read_label(entries[n].path, &label) || label.id != entries[n].id)) entries[n].id = 0;
    }
}

/* A place for a new pool, which is zero; NULL and `errno` if there is none. One thread at a time. */
static struct entry *place(const char *path, uint64_t bytes) {
    const struct device *device = ns_device();
    struct entry *entries = directory(), *free_entry = NULL;
    char full[PATH_MAX];
    if (entries == NULL) return errno = ENODEV, NULL;
    if (realpath(path, full) == NULL) return NULL;
    if (strlen(full) >= PATH_BYTES) return errno = ENAMETOOLONG, NULL;
    forget_lost(entries);
    uint64_t at = FIRST_PLACE;
    bool moved = true;
    while (moved) {
        moved = false;
        for (int n = 0; n < (int)NEARPM_POOLS; n++) {
            struct entry *other = &entries[n];
            if (other->id == 0) {
                free_entry = other;
            } else if (at < other->place + whole(other->bytes) && other->place < at + whole(bytes)) {
                at = other->place + whole(other->bytes);
                moved = true;
            }
        }
    }
    if (free_entry == NULL || at > device->bytes || whole(bytes) > device->bytes - at) {
        ns_tell("%s: the device has no room for %llu bytes and their logs, %llu bytes, or has %u pools", path,
                (unsigned long long)bytes, (unsigned long long)whole(bytes) - bytes, NEARPM_POOLS);
        return errno = ENOSPC, NULL;
    }
    if (fallocate(device->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)whole(bytes)) != 0)
        memset(device->window + at, 0, whole(bytes));
    uint64_t id = 0;
    while (id == 0)
        if (getrandom(&id, sizeof id, 0) != sizeof id) return NULL;
    free_entry->place = at;
    free_entry->bytes = bytes;
    free_entry->generations = 0;
    memset(free_entry->path, 0, PATH_BYTES);
    strcpy(free_entry->path, full);
    __atomic_store_n(&free_entry->id, id, __ATOMIC_RELEASE);
    return free_entry;
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
            pthread_mutex_lock(&ns_locks.pools);
            struct entry *fresh = place(path, (uint64_t)is.st_size);
            pthread_mutex_unlock(&ns_locks.pools);
            if (fresh == NULL) return false;
            memcpy(label.magic, LABEL, sizeof LABEL);
            label.id = fresh->id;
            if (pwrite(file, &label, sizeof label, 0) != sizeof label) return fresh->id = 0, false;
            opening.entry = fresh;
        }
    }
    *entry = opening.entry;
    return true;
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    struct entry *entry;
    if (!redirected(file, &entry)) return MAP_FAILED;
    if (entry != NULL) {
        if (offset < 0 || (uint64_t)offset + bytes > up(entry->bytes)) return errno = EINVAL, MAP_FAILED;
        file = ns_device()->file;
        offset += (off_t)entry->place;
    }
    void *at = ns_mmap(address, bytes, protection, flags, file, offset);
    /* What libpmem and libpmemobj persist is in one of these. */
    bool shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
    if (at != MAP_FAILED && file >= 0 && shared && (protection & PROT_WRITE))
        ns_memory_mapped(at, bytes, entry != NULL ? (uint64_t)offset : 0, file, offset);
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
    return (const struct descriptor *)(ns_device()->window + pool->place + up(pool->bytes) + (uint64_t)log * LOG_BYTES);
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
static bool start(struct entry *entry, PMEMobjpool *pop) {
    uint8_t number = (uint8_t)(entry - directory());
    struct pool *pool = &pools[number];
    *pool = (struct pool){.bytes = entry->bytes, .place = entry->place, .number = number};
    pool->pop = pop;
    /* The last process may have had it; its logs are closed then. */
    struct command unmap = {.operation = NEARPM_OP_PoolUnmap, .pool = number};
    if (ns_command(&unmap, NULL) < 0) return ns_tell("the device does not answer"), false;
    struct command map = {.address = pool->place, .bytes = whole(pool->bytes), .target = pool->place,
                          .transaction = up(pool->bytes), .value = LOG_BYTES, .extra = NEARPM_THREADS};
    if (!must(pool, NEARPM_OP_PoolMap, 0, map) || !find_generations(pool, entry)) return false;
    for (int log = 0; log < (int)NEARPM_THREADS; log++)
        if (!open_log(pool, log)) return false;
    return true;
}

/* Has libpmemobj open a pool with its contents on the device, or leaves it all to it where they are not there. */
static PMEMobjpool *opened(PMEMobjpool *pop) {
    struct entry *entry = opening.entry;
    bool create = opening.create;
    opening.path = NULL;
    opening.entry = NULL;
    if (entry == NULL) return pop;
    if (pop == NULL) {
        if (create) entry->id = 0;
        return NULL;
    }
    pthread_mutex_lock(&ns_locks.pools);
    bool started = start(entry, pop);
    if (!started) pools[entry - directory()].pop = NULL;
    pthread_mutex_unlock(&ns_locks.pools);
    if (started) return pop;
    REAL(pmemobj_close)(pop);
    errno = EIO;
    return NULL;
}

/* Whether a pool is to be on the device; false, and `errno`, if that can't be. */
static bool prepare(const char *path, bool create) {
    opening.path = NULL;
    opening.entry = NULL;
    opening.create = create;
    if (getenv("NEARSIDE_PMDK") == NULL || path == NULL) return true;
    struct entry *entries = directory();
    if (entries == NULL) return errno = ENODEV, false;
    if (!create) {
        struct label label;
        if (!read_label(path, &label)) {
            ns_tell("%s: its contents are not on the device; it is left to libpmemobj alone", path);
            return true;
        }
        opening.entry = find_entry(entries, label.id);
        if (opening.entry == NULL) {
            ns_tell("%s: its contents are on another device", path);
            return errno = ENXIO, false;
        }
    }
    opening.path = path;
    return true;
}

EXPORT PMEMobjpool *pmemobj_create(const char *path, const char *layout, size_t bytes, mode_t mode) {
    if (!prepare(path, true)) return NULL;
    return opened(REAL(pmemobj_create)(path, layout, bytes, mode));
}

EXPORT PMEMobjpool *pmemobj_open(const char *path, const char *layout) {
    if (!prepare(path, false)) return NULL;
    return opened(REAL(pmemobj_open)(path, layout));
}

EXPORT int pmemobj_check(const char *path, const char *layout) {
    if (!prepare(path, false)) return -1;
    int result = REAL(pmemobj_check)(path, layout);
    opening.path = NULL;
    opening.entry = NULL;
    return result;
}

EXPORT void pmemobj_close(PMEMobjpool *pop) {
    struct pool *pool = ns_pool(pop);
    if (pool != NULL) {
        must(pool, NEARPM_OP_PoolUnmap, 0, (struct command){0});
        pthread_mutex_lock(&ns_locks.pools);
        pool->pop = NULL;
        pthread_mutex_unlock(&ns_locks.pools);
    }
    REAL(pmemobj_close)(pop);
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
    struct pool *found = NULL;
    pthread_mutex_lock(&ns_locks.pools);
    for (int n = 0; n < (int)NEARPM_POOLS && pop != NULL; n++)
        if (pools[n].pop == pop) found = &pools[n];
    pthread_mutex_unlock(&ns_locks.pools);
    return found;
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
