// SPDX-License-Identifier: Apache-2.0

/* A program with libpmem that keeps the number before the last one until that is persistent, with a
 * missing fence; `careful` has it.
 *
 *     careless run FILE; careless check FILE */
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 4 };

/* Each in a separate line. */
struct numbers {
    uint64_t old, more[7], valid, room[7], number, rest[7], others[3][8];
};

static uint64_t number_of(uint64_t step) {
    return step * step * 1000;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int careful = strstr(argv[0], "careful") != NULL;
    int runs = strcmp(argv[1], "run") == 0;
    struct numbers *at = pmem_map_file(argv[2], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (at == NULL) return perror(argv[2]), 1;
    for (uint64_t step = 1; runs && step <= STEPS; step++) {
        at->old = at->number;
        pmem_flush(&at->old, 8);
        if (careful) pmem_drain();
        /* The old number is valid in this step. */
        at->valid = step;
        pmem_flush(&at->valid, 8);
        for (int n = 0; n < 3; n++) pmem_flush(at->others[n], 64);
        pmem_drain();
        at->number = number_of(step);
        pmem_persist(&at->number, 8);
        at->valid = 0;
        pmem_persist(&at->valid, 8);
    }
    if (!runs && at->valid != 0 && at->old != number_of(at->valid - 1)) {
        fprintf(stderr, "in step %llu the old number is %llu\n", (unsigned long long)at->valid, (unsigned long long)at->old);
        return 1;
    }
    pmem_unmap(at, 4096);
    return 0;
}
