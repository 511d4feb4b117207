// SPDX-License-Identifier: Apache-2.0

#include "reservations.h"

#include <errno.h>

#include "process.h"

/* The pool whose reservations are followed; a child has no transactions in its parent's pools, so
 * it needs none. */
static struct pool *followed(PMEMobjpool *pop) {
    struct pool *pool = ns_pool(pop);
    return pool != NULL && !ns_pool_inherited(pool) ? pool : NULL;
}

static struct range object_of(const struct pobj_action *action) {
    return (struct range){action->heap.offset, action->heap.offset + action->heap.usable_size};
}

static bool begin(struct pool *pool, struct range range) {
    pthread_mutex_lock(&ns_locks.pools);
    bool added = ns_ranges_add(&pool->reserved, range);
    pthread_mutex_unlock(&ns_locks.pools);
    return added;
}

bool ns_reserved(struct pool *pool, struct range range) {
    pthread_mutex_lock(&ns_locks.pools);
    bool reserved = ns_ranges_touch(&pool->reserved, range);
    pthread_mutex_unlock(&ns_locks.pools);
    return reserved;
}

struct range ns_reservation_ends(struct pool *pool, const struct pobj_action *action) {
    struct range none = {0, 0};
    if (action->type != POBJ_ACTION_TYPE_HEAP) return none;
    /* A deferred free is of an allocated object; its size field is undefined. */
    struct range start = {action->heap.offset, action->heap.offset + 1};
    pthread_mutex_lock(&ns_locks.pools);
    bool reserved = ns_ranges_touch(&pool->reserved, start);
    if (reserved) ns_ranges_remove(&pool->reserved, object_of(action));
    pthread_mutex_unlock(&ns_locks.pools);
    return reserved ? object_of(action) : none;
}

static PMEMoid reserved(PMEMobjpool *pop, struct pobj_action *action, PMEMoid oid) {
    struct pool *pool = oid.off != 0 ? followed(pop) : NULL;
    if (pool == NULL || begin(pool, object_of(action))) return oid;
    REAL(pmemobj_cancel)(pop, action, 1);
    errno = ENOMEM;
    return (PMEMoid){0, 0};
}

EXPORT PMEMoid pmemobj_reserve(PMEMobjpool *pop, struct pobj_action *action, size_t bytes, uint64_t type) {
    return reserved(pop, action, REAL(pmemobj_reserve)(pop, action, bytes, type));
}

EXPORT PMEMoid pmemobj_xreserve(PMEMobjpool *pop, struct pobj_action *action, size_t bytes, uint64_t type, uint64_t flags) {
    return reserved(pop, action, REAL(pmemobj_xreserve)(pop, action, bytes, type, flags));
}

/* Recorded before libpmemobj publishes: afterwards others may free the objects and reserve their
 * memory. Refused objects stay reserved. */
EXPORT int pmemobj_publish(PMEMobjpool *pop, struct pobj_action *actions, size_t count) {
    struct pool *pool = followed(pop);
    struct ranges ended = {0};
    for (size_t n = 0; pool != NULL && n < count; n++) ns_ranges_add(&ended, ns_reservation_ends(pool, &actions[n]));
    int error = REAL(pmemobj_publish)(pop, actions, count);
    for (size_t n = 0; error != 0 && n < ended.count; n++) begin(pool, ended.list[n]);
    ns_ranges_free(&ended);
    return error;
}

EXPORT void pmemobj_cancel(PMEMobjpool *pop, struct pobj_action *actions, size_t count) {
    struct pool *pool = followed(pop);
    for (size_t n = 0; pool != NULL && n < count; n++) ns_reservation_ends(pool, &actions[n]);
    REAL(pmemobj_cancel)(pop, actions, count);
}
