// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "tracked.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi.h"
#include "crash.h"
#include "device.h"
#include "memory.h"
#include "process.h"
#include "transactions.h"

/* The device records 1,024 lines. The rest is for what libpmemobj stores at a commit beside the
 * announced ranges and objects. */
enum { MOST_LINES = 1024, ANNOUNCED_LINES = 896 };

static bool wanted, without_records, has_threads;
static int tracked_pools;
static struct pool *list[NEARPM_POOLS];
static struct pool *in_transaction;

__attribute__((constructor)) static void configure(void) {
    const char *choice = getenv("NEARSIDE_PMDK_TRACKED"), *without = getenv("NEARSIDE_PMDK_WITHOUT");
    wanted = choice != NULL && strcmp(choice, "auto") == 0;
    without_records = without != NULL && strcmp(without, "snapshots") == 0;
}

bool ns_tracked_wanted(void) {
    return wanted && !__atomic_load_n(&has_threads, __ATOMIC_RELAXED);
}

bool ns_tracked_without_records(void) {
    return without_records;
}

static void stop_all(void) {
    for (int n = 0; n < (int)NEARPM_POOLS; n++)
        if (list[n] != NULL) ns_transaction_stops_tracking(list[n]);
}

void ns_tracked_before_fork(void) {
    if (tracked_pools > 0) stop_all();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);

/* A tracked pool has one writer. */
EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    __atomic_store_n(&has_threads, true, __ATOMIC_RELAXED);
    if (tracked_pools > 0) stop_all();
    return REAL(pthread_create)(thread, attributes, start, argument);
}

void ns_tracked_start(struct pool *pool) {
    size_t bytes = ns_whole_pages(pool->bytes);
    void *at = ns_mmap(pool->pop, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, ns_device()->file, (off_t)pool->place);
    if (at == MAP_FAILED) {
        ns_log("a tracked pool can't be mapped privately");
        abort();
    }
    /* Its durable content is the device's. */
    ns_crash_unmapped(pool->pop, bytes);
    pool->epochs = ns_mmap(NULL, ns_whole_pages(bytes / NEARPM_LINE * sizeof(uint32_t)), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool->epochs == MAP_FAILED) {
        ns_log("no memory for the lines of a tracked pool");
        abort();
    }
    pool->epoch = 1;
    pool->lines = 0;
    pool->overflows = pool->ending = false;
    pool->tracked = true;
    list[pool->number] = pool;
    tracked_pools++;
}

void ns_tracked_end(struct pool *pool) {
    size_t bytes = ns_whole_pages(pool->bytes);
    uint8_t *window = ns_device()->window + pool->place, *cached = (uint8_t *)pool->pop;
    list[pool->number] = NULL;
    tracked_pools--;
    pool->tracked = false;
    if (in_transaction == pool) in_transaction = NULL;
    for (size_t at = 0; at < bytes; at += NEARPM_LINE)
        if (memcmp(window + at, cached + at, NEARPM_LINE) != 0) memcpy(window + at, cached + at, NEARPM_LINE);
    int file = pool->window;
    void *at = ns_mmap(cached, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t)pool->place);
    if (at == MAP_FAILED) {
        ns_log("a pool that is no longer tracked can't be mapped");
        abort();
    }
    /* The mapping keeps the lock. */
    close(pool->window);
    ns_crash_mapped(cached, bytes, ns_device()->file, (int64_t)pool->place);
    ns_munmap(pool->epochs, ns_whole_pages(bytes / NEARPM_LINE * sizeof(uint32_t)));
    pool->epochs = NULL;
}

void ns_tracked_transaction(struct pool *pool) {
    if (tracked_pools > 0) in_transaction = pool != NULL && pool->tracked ? pool : NULL;
}

bool ns_tracked_is_full(struct pool *pool, uint64_t lines) {
    pool->announced += lines;
    return pool->overflows || pool->announced > ANNOUNCED_LINES;
}

static void push(struct pool *pool, size_t line) {
    uint32_t *epoch = &pool->epochs[line];
    if (!pool->ending && *epoch != pool->epoch) {
        if (in_transaction == pool && (pool->overflows || pool->lines >= MOST_LINES)) {
            if (pool->commits) {
                /* As at a power loss: the next opening undoes the transaction. */
                ns_log("a transaction stores to more than %d lines, unannounced: it is ended", MOST_LINES);
                abort();
            }
            /* It stays in the cache until the pool is no longer tracked. */
            pool->overflows = true;
            return;
        }
        if (in_transaction != pool && pool->lines >= MOST_LINES) ns_tracked_commit(pool);
        *epoch = pool->epoch;
        pool->lines++;
    }
    uint64_t at = line * NEARPM_LINE;
    if (!ns_device_store(pool->place + at, (const uint8_t *)pool->pop + at)) {
        ns_log("the device does not answer to a store");
        abort();
    }
}

void ns_tracked_flushed(const void *address, size_t bytes) {
    for (int n = 0; tracked_pools > 0 && n < (int)NEARPM_POOLS; n++) {
        struct pool *pool = list[n];
        if (pool == NULL || bytes == 0) continue;
        uintptr_t start = (uintptr_t)pool->pop, from = (uintptr_t)address, to = from + bytes;
        if (from < start) from = start;
        if (to > start + pool->bytes) to = start + pool->bytes;
        for (; from < to; from = (from / NEARPM_LINE + 1) * NEARPM_LINE) push(pool, (from - start) / NEARPM_LINE);
    }
}

void ns_tracked_commit(struct pool *pool) {
    pool->announced = 0;
    if (pool->lines == 0 || pool->ending) return;
    struct command commit = {.operation = NEARPM_OP_Commit, .pool = pool->number};
    pool->lines = 0;
    pool->epoch++;
    int64_t result = without_records ? 0 : ns_command(&commit, NULL);
    if (result != 0) {
        ns_log("the device refuses the commit of a tracked pool: %lld", (long long)result);
        abort();
    }
}

void ns_tracked_fenced(void) {
    for (int n = 0; tracked_pools > 0 && n < (int)NEARPM_POOLS; n++)
        if (list[n] != NULL && list[n] != in_transaction) ns_tracked_commit(list[n]);
}

void ns_tracked_evict(bool (*leaves)(void)) {
    for (int n = 0; tracked_pools > 0 && n < (int)NEARPM_POOLS; n++) {
        struct pool *pool = list[n];
        if (pool == NULL) continue;
        const uint8_t *window = ns_device()->window + pool->place, *cached = (const uint8_t *)pool->pop;
        for (size_t at = 0; at < pool->bytes; at += NEARPM_LINE)
            if (memcmp(window + at, cached + at, NEARPM_LINE) != 0 && leaves() && pool->lines++ < MOST_LINES) ns_device_store(pool->place + at, cached + at);
    }
}
