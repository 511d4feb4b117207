/* Ranges of bytes that do not overlap, in order. */
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

/* The first part of `wanted` that is in none of them; false when there is no such part. */
bool ns_ranges_gap(const struct ranges *ranges, struct range wanted, struct range *gap);

/* Whether a part of `wanted` is in one of them. */
bool ns_ranges_touch(const struct ranges *ranges, struct range wanted);

/* Adds a range; false without memory, and nothing has changed. */
bool ns_ranges_add(struct ranges *ranges, struct range added);

/* Takes a range away; without memory for a part that is cut in two, more than that. */
void ns_ranges_remove(struct ranges *ranges, struct range removed);

/* Empty again; keeps its memory. */
static inline void ns_ranges_clear(struct ranges *ranges) {
    ranges->count = 0;
}

void ns_ranges_free(struct ranges *ranges);

#endif
