// SPDX-License-Identifier: Apache-2.0

/* A hash table in persistent memory, with flush instructions: levels of buckets, each with a line of
 * tokens that say which slots are used.
 *
 *     hash run|check FILE WAY
 *
 * Right ways: `clwb`, `clflushopt`, `clflush`, `streams` (a whole slot past the cache), `locked` (a
 * locked instruction is the fence).
 * Wrong ways: `no_flush` of the slot, `no_fence` between slot and token, `token_first`,
 * `no_fence_at_end`, `half` (one line of two). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inline.h"

enum { BUCKETS = 16, SLOTS = 4, INSERTS = 24, BYTES = 1 << 16 };

/* A value is over two lines. */
struct slot {
    uint64_t key, value[15];
};

struct bucket {
    struct slot slots[SLOTS];
    uint64_t tokens, rest[7];
};

struct table {
    uint64_t inserted, rest[7];
    struct bucket buckets[BUCKETS];
};

static const char *way;
static int lock;

static int is(const char *name) {
    return strcmp(way, name) == 0;
}

static uint64_t key_of(uint64_t n) {
    return n * UINT64_C(0x9E3779B97F4A7C15) | 1;
}

static void flush(const void *at) {
    if (is("clflushopt"))
        clflushopt(at);
    else if (is("clflush"))
        clflush(at);
    else
        clwb(at);
}

static void fence(void) {
    if (is("clflush")) return; /* it is in order */
    if (is("locked"))
        __atomic_fetch_add(&lock, 1, __ATOMIC_SEQ_CST);
    else if (is("clflushopt"))
        mfence();
    else
        sfence();
}

static void fill(struct slot *slot, uint64_t key) {
    uint64_t words[16] = {key};
    for (uint64_t n = 1; n < 16; n++) words[n] = key + n;
    if (is("streams")) {
        for (int n = 0; n < 16; n++) movnti((uint64_t *)slot + n, words[n]);
        return;
    }
    memcpy(slot, words, sizeof words);
    if (is("no_flush")) return;
    flush(slot);
    if (!is("half")) flush(&slot->value[7]);
}

static void insert(struct table *table, uint64_t n) {
    uint64_t key = key_of(n);
    for (uint64_t at = key >> 32;; at++) {
        struct bucket *bucket = &table->buckets[at % BUCKETS];
        if (bucket->tokens == (1 << SLOTS) - 1) continue;
        unsigned slot = (unsigned)__builtin_ctzll(~bucket->tokens);
        if (is("token_first")) {
            bucket->tokens |= 1u << slot;
            flush(&bucket->tokens);
            fence();
        }
        fill(&bucket->slots[slot], key);
        if (!is("no_fence")) fence();
        bucket->tokens |= 1u << slot;
        flush(&bucket->tokens);
        if (!is("no_fence_at_end")) fence();
        break;
    }
    table->inserted = n;
    flush(&table->inserted);
    fence();
}

static const struct slot *find(const struct table *table, uint64_t key) {
    for (int b = 0; b < BUCKETS; b++)
        for (int s = 0; s < SLOTS; s++)
            if ((table->buckets[b].tokens >> s & 1) != 0 && table->buckets[b].slots[s].key == key) return &table->buckets[b].slots[s];
    return NULL;
}

static int check(const struct table *table) {
    for (int b = 0; b < BUCKETS; b++) {
        for (int s = 0; s < SLOTS; s++) {
            const struct slot *slot = &table->buckets[b].slots[s];
            if ((table->buckets[b].tokens >> s & 1) == 0) continue;
            for (uint64_t n = 1; n < 16; n++)
                if (slot->key == 0 || slot->value[n - 1] != slot->key + n) return puts("a slot that counts is torn"), 1;
        }
    }
    for (uint64_t n = 1; n <= table->inserted; n++)
        if (find(table, key_of(n)) == NULL) return printf("key %d of %d is not there\n", (int)n, (int)table->inserted), 1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    way = argv[3];
    int runs = strcmp(argv[1], "run") == 0;
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || (runs && ftruncate(file, BYTES) != 0)) return perror(argv[2]), 1;
    struct table *table = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (table == MAP_FAILED) return perror(argv[2]), 1;
    if (!runs) return check(table);
    for (uint64_t n = 1; n <= INSERTS; n++) insert(table, n);
    return 0;
}
