// SPDX-License-Identifier: Apache-2.0

/* Pools with contents on the device. A pool's file has the pool's size, and a label that identifies
 * its place on the device. */
#ifndef NEARSIDE_PMDK_POOLS_H
#define NEARSIDE_PMDK_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "nearpm_numbers.h"
#include "ranges.h"

/* Bytes of each thread's log on the device. */
#define LOG_BYTES (1u << 20)

/* A log of the engine for a pool. */
struct log {
    bool taken;
    uint64_t generation;
    /* Offset of the next record. */
    uint64_t next;
};

struct pool {
    PMEMobjpool *pop;
    uint64_t bytes;
    /* Offset on the device and address in its window for processes: the same number. */
    uint64_t place;
    /* The engine's number of the pool. */
    uint8_t number;
    /* The pool is libpmemobj's alone, since it is mapped privately. */
    bool alone;
    /* The process that has opened it: its children have it mapped, too. */
    pid_t process;
    /* A mapped page of its file, which keeps libpmemobj's lock on the file. */
    void *file_lock;
    /* The generation of each log, in the pool: the next one takes effect with the transaction. */
    uint64_t *generations;
    struct log logs[NEARPM_THREADS];
    /* Reserved objects that are not published yet; guarded by the lock on pools. */
    struct ranges reserved;
    /* It is tracked (`tracked.c`): the number of each line's last epoch, the present epoch, its
     * lines, and the lines that its transaction has announced. */
    bool tracked;
    uint32_t *epochs;
    uint32_t epoch;
    uint64_t lines, announced;
    /* A line could not be stored yet. libpmemobj is committing. */
    bool overflows, commits;
    /* The device no longer tracks it; its mapping is still private. */
    bool ending;
    /* The window, with the lock on its place, for a shared mapping later. */
    int window;
};

/* The pool of a handle, if the device has its transactions' logs. */
struct pool *ns_pool(PMEMobjpool *pop);

/* True if a parent of this process has opened it. */
bool ns_pool_inherited(const struct pool *pool);

/* Releases a child's locks on its parent's pools, without their mappings. */
void ns_pools_release(void);

/* A process without open pools leaves the device, so that its child may use it. */
void ns_pools_before_fork(void);

/* Ends the tracking of a pool: its logs are open then, all but the first. The second part opens that,
 * after the records of a transaction under way have been made. */
bool ns_pool_untrack(struct pool *pool);
bool ns_pool_untracked(struct pool *pool);

/* Acquires an empty log; -1 if all are in use. */
int ns_pool_acquire_log(struct pool *pool);
void ns_pool_release_log(struct pool *pool, int log);

/* The log's transaction has ended: it is empty, of the next generation. `written`: the pool already
 * has that generation. */
void ns_pool_next_generation(struct pool *pool, int log, bool written);

#endif
