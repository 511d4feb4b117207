// SPDX-License-Identifier: Apache-2.0

#include "ranges.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends after `at`: it contains `at`, or follows it. */
static size_t find(const struct ranges *ranges, uint64_t at) {
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges->list[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces `old` ranges from `at` on by `count` new ones; false without memory. */
static bool splice(struct ranges *ranges, size_t at, size_t old, const struct range *fresh, size_t count) {
    size_t after = ranges->count - at - old;
    size_t total = ranges->count - old + count;
    if (total > ranges->room) {
        size_t room = total * 2 + 16;
        struct range *list = realloc(ranges->list, room * sizeof *list);
        if (list == NULL) return false;
        ranges->list = list;
        ranges->room = room;
    }
    memmove(ranges->list + at + count, ranges->list + at + old, after * sizeof *fresh);
    if (count > 0) memcpy(ranges->list + at, fresh, count * sizeof *fresh);
    ranges->count = total;
    return true;
}

bool ns_ranges_gap(const struct ranges *ranges, struct range wanted, struct range *gap) {
    size_t n = find(ranges, wanted.start);
    uint64_t start = wanted.start;
    for (; n < ranges->count && ranges->list[n].start <= start; n++) start = ranges->list[n].end;
    if (start >= wanted.end) return false;
    bool cut = n < ranges->count && ranges->list[n].start < wanted.end;
    *gap = (struct range){start, cut ? ranges->list[n].start : wanted.end};
    return true;
}

bool ns_ranges_touch(const struct ranges *ranges, struct range wanted) {
    size_t n = find(ranges, wanted.start);
    return n < ranges->count && ranges->list[n].start < wanted.end;
}

bool ns_ranges_add(struct ranges *ranges, struct range added) {
    if (added.start >= added.end) return true;
    /* Adjacent ranges are merged. */
    size_t first = added.start == 0 ? 0 : find(ranges, added.start - 1);
    size_t last = first;
    for (; last < ranges->count && ranges->list[last].start <= added.end; last++) {
        if (ranges->list[last].start < added.start) added.start = ranges->list[last].start;
        if (ranges->list[last].end > added.end) added.end = ranges->list[last].end;
    }
    return splice(ranges, first, last - first, &added, 1);
}

void ns_ranges_remove(struct ranges *ranges, struct range removed) {
    if (removed.start >= removed.end) return;
    size_t first = find(ranges, removed.start), last = first, count = 0;
    struct range rest[2];
    for (; last < ranges->count && ranges->list[last].start < removed.end; last++) {
        struct range old = ranges->list[last];
        if (old.start < removed.start) rest[count++] = (struct range){old.start, removed.start};
        if (old.end > removed.end) rest[count++] = (struct range){removed.end, old.end};
    }
    if (!splice(ranges, first, last - first, rest, count)) splice(ranges, first, last - first, rest, 0);
}

void ns_ranges_free(struct ranges *ranges) {
    free(ranges->list);
    *ranges = (struct ranges){0};
}
