// SPDX-License-Identifier: Apache-2.0

/* A program with libpmem that is wrong rarely: among thousands of steps it closes its books once,
 * entry by entry, and its summary of them is wrong during 8 of its 130 entries.
 *
 *     seldom run|check FILE */
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 1500, ENTRIES = 130, WRONG_FROM = 100, WRONG_TO = 108 };

struct books {
    uint64_t steps, rest[7];
    struct {
        uint64_t closed, wrong, more[6];
    } entries[ENTRIES];
};

static void close_books(struct books *at) {
    for (int n = 0; n < ENTRIES; n++) {
        at->entries[n].closed = 1;
        at->entries[n].wrong = n >= WRONG_FROM && n < WRONG_TO;
        if (n >= WRONG_TO) at->entries[n - WRONG_TO + WRONG_FROM].wrong = 0;
        pmem_persist(&at->entries[n], 64);
        if (n >= WRONG_TO) pmem_persist(&at->entries[n - WRONG_TO + WRONG_FROM], 64);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    struct books *at = pmem_map_file(argv[2], 1 << 16, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (at == NULL) return perror(argv[2]), 1;
    for (int step = 0; strcmp(argv[1], "run") == 0 && step < STEPS; step++) {
        at->steps++;
        pmem_persist(&at->steps, 8);
        if (step == STEPS / 2) close_books(at);
    }
    for (int n = WRONG_FROM; n < WRONG_TO; n++)
        if (at->entries[n].wrong) return puts("an entry is wrong"), 1;
    return 0;
}
