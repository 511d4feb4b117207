// SPDX-License-Identifier: Apache-2.0

/* A list of phone numbers in persistent memory. The power fails while the list grows: within a
 * transaction that has not been committed, then at arbitrary times. Each time the list is recovered,
 * and contains the result of complete transactions only.
 *
 *     cc phones.c -lnearside_pm && ./a.out   # by the CPU
 *     ./a.out offload                        # by the device's engine
 *     ./a.out offload 2                      # the pool spans two devices, synchronised by peers
 *     ./a.out offload 4 host                 # four devices, synchronised by the host */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearside_pm.h"

#define PLACE 0
#define BYTES (8u << 20)
#define NAME "phones"

struct list { /* the root */
    uint64_t count, head;
};
struct entry {
    uint64_t number, check, next;
    char note[4096]; /* larger than a device's contiguous part of a pool */
};

static void must(int code, const char *what) {
    if (code != NSPM_OK) {
        fprintf(stderr, "%s: error %d: %s\n", what, code, nspm_message());
        exit(1);
    }
}

static char note_of(uint64_t number) { return (char)('a' + number % 26); }

/* One transaction: an entry at the head of the list. Returns the first error. */
static int insert(nspm_thread thread, uint64_t number) {
    struct list list;
    uint64_t root, at;
    int code;
    if ((code = nspm_begin(thread)) != NSPM_OK) return code;
    if ((code = nspm_root(thread, &root)) != NSPM_OK) return code;
    if ((code = nspm_read(thread, root, &list, sizeof list)) != NSPM_OK) return code;
    if ((code = nspm_alloc(thread, sizeof(struct entry), &at)) != NSPM_OK) return code;
    struct entry entry = {.number = number, .check = ~number, .next = list.head};
    memset(entry.note, note_of(number), sizeof entry.note);
    if ((code = nspm_write(thread, at, &entry, sizeof entry)) != NSPM_OK) return code;
    list.count += 1;
    list.head = at;
    if ((code = nspm_write(thread, root, &list, sizeof list)) != NSPM_OK) return code;
    return nspm_commit(thread);
}

/* Opens the pool, walks the list, and returns its length. */
static uint64_t recovered(nspm_system system, const nspm_options *options, nspm_pool *pool, nspm_thread *thread) {
    struct list list;
    uint64_t root, objects, n = 0;
    must(nspm_pool_open(system, PLACE, NAME, options, pool), "open");
    must(nspm_thread_open(*pool, 0, thread), "thread");
    must(nspm_root(*thread, &root), "root");
    must(nspm_read(*thread, root, &list, sizeof list), "read");
    for (uint64_t at = list.head; at != 0; n++) {
        struct entry entry;
        must(nspm_read(*thread, at, &entry, sizeof entry), "read");
        size_t same = 0;
        while (same < sizeof entry.note && entry.note[same] == note_of(entry.number)) same++;
        if (entry.check != ~entry.number || entry.number != 1000 + list.count - n || same < sizeof entry.note) {
            fprintf(stderr, "entry %" PRIu64 " is torn\n", n);
            exit(1);
        }
        at = entry.next;
    }
    must(nspm_pool_check(*pool, &objects), "check");
    if (n != list.count || objects != n + 1) {
        fprintf(stderr, "%" PRIu64 " entries, %" PRIu64 " counted, %" PRIu64 " objects\n", n, list.count, objects);
        exit(1);
    }
    return n;
}

int main(int argc, char **argv) {
    nspm_options options = {0};
    options.offload = argc > 1 && strcmp(argv[1], "offload") == 0;
    uint32_t devices = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    uint32_t synchronise = argc > 3 && strcmp(argv[3], "host") == 0 ? NSPM_BY_HOST : NSPM_BY_DEVICES;
    nspm_layout layout = {0};
    layout.name = NAME;
    nspm_system system;
    nspm_pool pool;
    nspm_thread thread;
    must(nspm_system_open_over("nearpm", "fast", "cpu.profile = \"nearpm\"", devices, synchronise, &system), "system");
    must(nspm_pool_create(system, PLACE, BYTES, &layout, &options, &pool), "create");
    must(nspm_thread_open(pool, 0, &thread), "thread");

    uint64_t root, committed = 0;
    struct list empty = {0, 0};
    must(nspm_begin(thread), "begin");
    must(nspm_alloc(thread, sizeof empty, &root), "alloc");
    must(nspm_write(thread, root, &empty, sizeof empty), "write");
    must(nspm_set_root(thread, root), "set_root");
    must(nspm_commit(thread), "commit");
    while (committed < 10) must(insert(thread, 1000 + ++committed), "insert");

    /* A partial transaction, and the power fails. */
    struct list half = {99, 0};
    uint64_t lost;
    must(nspm_begin(thread), "begin");
    must(nspm_write(thread, root, &half, sizeof half), "write");
    must(nspm_power_cut(system, NSPM_CUT_HOST, &lost), "power");
    if (nspm_commit(thread) != NSPM_POWER) return 1;
    printf("power lost in a transaction: %s\n", nspm_message());
    must(nspm_thread_close(thread), "close");
    must(nspm_pool_close(pool), "close");
    must(nspm_power_on(system), "power");
    uint64_t n = recovered(system, &options, &pool, &thread);
    printf("recovered: %" PRIu64 " entries of %" PRIu64 " committed\n", n, committed);
    if (n != committed) return 1;

    /* And at 20 times within an insertion. */
    int more = 0;
    for (uint64_t cut = 0; cut < 20; cut++) {
        must(nspm_power_cut_after(system, 450000 * cut + 1000), "power");
        int code = NSPM_OK;
        while (code == NSPM_OK) {
            code = insert(thread, 1000 + committed + 1);
            if (code == NSPM_OK) committed++;
        }
        if (code != NSPM_POWER) must(code, "insert");
        must(nspm_thread_close(thread), "close");
        must(nspm_power_on(system), "power");
        must(nspm_pool_close(pool), "close");
        n = recovered(system, &options, &pool, &thread);
        if (n != committed && n != committed + 1) {
            fprintf(stderr, "%" PRIu64 " entries, %" PRIu64 " committed\n", n, committed);
            return 1;
        }
        more += n == committed + 1;
        committed = n;
    }
    printf("20 losses of power: all whole, %d with a transaction that was not known to be committed; %" PRIu64 " entries\n", more, n);

    nspm_counts counts;
    must(insert(thread, 1000 + ++committed), "insert");
    must(nspm_thread_counts(thread, &counts), "counts");
    printf("an insertion: %" PRIu64 " ns simulated, %" PRIu64 " of them crash consistency; %" PRIu64 " fences, %" PRIu64 " records, %" PRIu64
           " commands\n",
           counts.time_ps / 1000, counts.consistency_ps / 1000, counts.fences, counts.records, counts.commands);
    must(nspm_system_close(system), "close");
    return 0;
}
