/* Pools whose contents lie on the device. A pool's file has its size, and a label by which its place on the device is found. */
#ifndef NEARSIDE_PMDK_POOLS_H
#define NEARSIDE_PMDK_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "nearpm_numbers.h"
#include "ranges.h"

/* Bytes of each thread's log on the device. */
#define LOG_BYTES (1u << 20)

/* One of the engine's logs of a pool. */
struct log {
    bool taken;
    uint64_t generation;
    /* Where the next record goes. */
    uint64_t next;
};

struct pool {
    PMEMobjpool *pop;
    uint64_t bytes;
    /* On the device, and in its window for processes: both are the same number. */
    uint64_t place;
    /* The engine's number of it. */
    uint8_t number;
    /* It is libpmemobj's alone, as it is mapped privately. */
    bool alone;
    /* Which process has opened it: its children have it, too. */
    pid_t process;
    /* A page of its file: as long as that is mapped, libpmemobj's lock on the file lasts. */
    void *file_lock;
    /* The generation of each log, in the pool itself: its next value becomes true with the transaction. */
    uint64_t *generations;
    struct log logs[NEARPM_THREADS];
    /* Objects that are reserved, and not published yet; with the lock on pools. */
    struct ranges reserved;
};

/* The pool of a handle, if its transactions' logs are on the device. */
struct pool *ns_pool(PMEMobjpool *pop);

/* Whether a parent of this process has opened it. */
bool ns_pool_inherited(const struct pool *pool);

/* A child's end of what holds the locks on its parent's pools, but for their mappings. */
void ns_pools_release(void);

/* A process that has no pool open leaves the device, so that its child may have it. */
void ns_pools_before_fork(void);

/* A log that nobody has, which is empty; -1 if there is none. */
int ns_pool_take_log(struct pool *pool);
void ns_pool_give_log(struct pool *pool, int log);

/* The log's transaction is over: it is empty, of the next generation. `written`: the pool says so already. */
void ns_pool_next_generation(struct pool *pool, int log, bool written);

#endif
