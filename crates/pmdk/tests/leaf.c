// SPDX-License-Identifier: Apache-2.0

/* A leaf of a B-tree in persistent memory with sorted records. An insertion moves the following
 * records, beginning at the end, so that each of them exists once or twice at any power loss. A
 * reader skips a record that equals the one before.
 *
 *     leaf run|check FILE WAY
 *
 * Right ways: `flushes` (`mfence`, `clflush`, `mfence`), `clwb` (`sfence`).
 * Wrong ways: `no_flush` where a line is left, `no_fence` there (with `clwb`), `first` (moved from
 * the front), `no_flush_of_record`. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inline.h"

enum { ROOM = 32, BYTES = 4096 };

struct record {
    uint64_t key, value;
};

struct leaf {
    struct record records[ROOM];
    /* The last key that was put in, and its number. */
    uint64_t done, rest[7];
};

static const char *way;

static int is(const char *name) {
    return strcmp(way, name) == 0;
}

static int by_clwb(void) {
    return is("clwb") || is("no_fence");
}

static void persist(const void *at) {
    if (by_clwb()) {
        clwb(at);
        if (!is("no_fence")) sfence();
        return;
    }
    mfence();
    clflush(at);
    mfence();
}

/* The keys, in the order in which they are put in. */
static uint64_t key_of(uint64_t n) {
    return n * 7 % 23 + 1;
}

enum { KEYS = 22 };

static void put(struct leaf *leaf, uint64_t key) {
    int count = 0;
    while (leaf->records[count].key != 0) count++;
    int at = 0;
    while (at < count && leaf->records[at].key < key) at++;
    if (is("first")) {
        struct record moved = {key, key * 100};
        for (int n = at; n <= count; n++) {
            struct record old = leaf->records[n];
            leaf->records[n] = moved;
            persist(&leaf->records[n]);
            moved = old;
        }
    } else {
        for (int n = count; n > at; n--) {
            leaf->records[n] = leaf->records[n - 1];
            /* A line is left: the next one is about to change. */
            if (n % 4 == 0 && !is("no_flush")) persist(&leaf->records[n]);
        }
        leaf->records[at] = (struct record){key, key * 100};
        if (!is("no_flush_of_record")) persist(&leaf->records[at]);
    }
    leaf->done++;
    clwb(&leaf->done);
    sfence();
}

static int check(const struct leaf *leaf) {
    for (int n = 1; n < ROOM && leaf->records[n].key != 0; n++)
        if (leaf->records[n].key < leaf->records[n - 1].key) return puts("the records are not sorted"), 1;
    for (uint64_t n = 1; n <= leaf->done; n++) {
        int found = 0;
        for (int at = 0; at < ROOM && leaf->records[at].key != 0; at++) {
            if (leaf->records[at].value != leaf->records[at].key * 100) return puts("a record is torn"), 1;
            found += leaf->records[at].key == key_of(n);
        }
        if (found == 0) return printf("key %d is not there\n", (int)key_of(n)), 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    way = argv[3];
    int runs = strcmp(argv[1], "run") == 0;
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || (runs && ftruncate(file, BYTES) != 0)) return perror(argv[2]), 1;
    struct leaf *leaf = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (leaf == MAP_FAILED) return perror(argv[2]), 1;
    if (!runs) return check(leaf);
    for (uint64_t n = 1; n <= KEYS; n++) put(leaf, key_of(n));
    return 0;
}
