// SPDX-License-Identifier: Apache-2.0

/* Tracked pools: the device makes a record of each line before the first store to it, without a
 * command. The program's mapping is private: it stands for the cache, and flushes are stores of the
 * device's window. What was flushed since the last commit is undone if the program ends before. */
#ifndef NEARSIDE_PMDK_TRACKED_H
#define NEARSIDE_PMDK_TRACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pools.h"

/* True if the user wants tracked pools, and the program has one thread. */
bool ns_tracked_wanted(void);

/* True for a fault injection: the device does not track. */
bool ns_tracked_without_records(void);

/* A child has the mappings of its parent. */
void ns_tracked_before_fork(void);

/* A pool has been mapped as tracked, and its log opened; or its tracking ends, and its mapping is
 * shared again. */
void ns_tracked_start(struct pool *pool);
void ns_tracked_end(struct pool *pool);

/* The thread's transaction changes a pool; NULL: no transaction. */
void ns_tracked_transaction(struct pool *pool);

/* The transaction is going to store to further lines, or commits: true if these are too
 * many for the device. */
bool ns_tracked_is_full(struct pool *pool, uint64_t lines);

/* Flushed bytes; a fence. */
void ns_tracked_flushed(const void *address, size_t bytes);
void ns_tracked_fenced(void);

/* All that was flushed stays. */
void ns_tracked_commit(struct pool *pool);

/* At a power loss lines leave the cache: `leaves` decides. */
void ns_tracked_evict(bool (*leaves)(void));

#endif
