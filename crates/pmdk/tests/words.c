// SPDX-License-Identifier: Apache-2.0

/* Two words of a line.
 *
 *     words run|check FILE alike     the words have to be equal, and are stored one after the other:
 *                                    wrong
 *     words run|check FILE ordered   the second word counts the first ones: right if stores to one
 *                                    line become durable in their order
 *     words run|check FILE fenced    the same with a fence in between: always right */
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 6 };

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int alike = strcmp(argv[3], "alike") == 0, fenced = strcmp(argv[3], "fenced") == 0;
    volatile uint64_t *at = pmem_map_file(argv[2], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (at == NULL) return perror(argv[2]), 1;
    for (uint64_t step = 1; strcmp(argv[1], "run") == 0 && step <= STEPS; step++) {
        at[0] = step;
        if (fenced) pmem_persist((void *)(uintptr_t)at, 8);
        at[1] = step;
        pmem_persist((void *)(uintptr_t)at, 16);
    }
    if (alike && at[0] != at[1]) return fprintf(stderr, "torn\n"), 1;
    if (at[1] > at[0]) return fprintf(stderr, "counted, and not there\n"), 1;
    return 0;
}
