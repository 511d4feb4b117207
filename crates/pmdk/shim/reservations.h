/* Objects that a program has reserved, and neither published nor cancelled: nobody else has their memory, but the heap knows nothing of
 * them yet. Which action is a reservation is known here, as what libpmemobj puts into one for a deferred free looks alike. */
#ifndef NEARSIDE_PMDK_RESERVATIONS_H
#define NEARSIDE_PMDK_RESERVATIONS_H

#include "pools.h"
#include "ranges.h"

/* Whether a part of a range of the pool is in such an object. */
bool ns_reserved(struct pool *pool, struct range range);

/* The object that an action has reserved in the pool, which is no reservation from now on; an empty range if it has none. */
struct range ns_reservation_ends(struct pool *pool, const struct pobj_action *action);

#endif
