// SPDX-License-Identifier: Apache-2.0

/* Objects that a program has reserved, and neither published nor cancelled: their memory is set
 * aside, but the heap does not have them yet. Reservations are recorded here because libpmemobj's
 * actions for deferred frees look alike. */
#ifndef NEARSIDE_PMDK_RESERVATIONS_H
#define NEARSIDE_PMDK_RESERVATIONS_H

#include "pools.h"
#include "ranges.h"

/* True if a part of a range of the pool is in such an object. */
bool ns_reserved(struct pool *pool, struct range range);

/* Ends the reservation of an action; returns its range, or an empty one without a reservation. */
struct range ns_reservation_ends(struct pool *pool, const struct pobj_action *action);

#endif
