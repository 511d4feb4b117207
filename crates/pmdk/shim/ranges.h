// SPDX-License-Identifier: Apache-2.0

/* Sorted, disjoint ranges of bytes. */
#ifndef NEARSIDE_PMDK_RANGES_H
#define NEARSIDE_PMDK_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    uint64_t start, end;
};

struct ranges {
    struct range *list;
    size_t count, room;
};

/* The first part of `wanted` outside of all ranges; false if there is none. */
bool ns_ranges_gap(const struct ranges *ranges, struct range wanted, struct range *gap);

/* True if a part of `wanted` is in a range. */
bool ns_ranges_touch(const struct ranges *ranges, struct range wanted);

/* Adds a range; false without memory, and nothing has changed. */
bool ns_ranges_add(struct ranges *ranges, struct range added);

/* Removes a range; without memory for splitting a range, removes that range completely. */
void ns_ranges_remove(struct ranges *ranges, struct range removed);

/* Empties the set; keeps its memory. */
static inline void ns_ranges_clear(struct ranges *ranges) {
    ranges->count = 0;
}

void ns_ranges_free(struct ranges *ranges);

#endif
