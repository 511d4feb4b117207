// SPDX-License-Identifier: Apache-2.0

/* A program with libpmem linked in: copies of several lengths, each durable when it counts; with
 * `wrong` one is not flushed.
 *
 *     inside run|check FILE right|wrong */
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { COPIES = 64, MOST = 1024, STEP = 15, UNFLUSHED = 40 };

struct copies {
    uint64_t count, rest[7];
    char copies[COPIES][MOST];
};

/* Not aligned to any boundary. */
static char *place(struct copies *at, int n) {
    return at->copies[n] + n % 13 * 3;
}

static size_t length(int n) {
    return (size_t)(1 + n * STEP);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int wrong = strcmp(argv[3], "wrong") == 0;
    struct copies *at = pmem_map_file(argv[2], sizeof *at, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (at == NULL) return perror(argv[2]), 1;
    for (int n = 0; strcmp(argv[1], "run") == 0 && n < COPIES; n++) {
        char data[MOST];
        memset(data, n + 1, sizeof data);
        if (wrong && n == UNFLUSHED)
            memcpy(place(at, n), data, length(n));
        else
            pmem_memcpy_persist(place(at, n), data, length(n));
        at->count = (uint64_t)n + 1;
        pmem_persist(&at->count, 8);
    }
    for (int n = 0; n < (int)at->count; n++)
        for (size_t i = 0; i < length(n); i++)
            if (place(at, n)[i] != n + 1) return printf("byte %zu of copy %d of %d\n", i, n, (int)at->count), 1;
    return 0;
}
