// SPDX-License-Identifier: Apache-2.0

/* Stores a number that is never made persistent, reports it in FILE.done, and ends: its last call
 * reports a number that is lost.
 *
 *     ends run|check FILE careful|careless WAY */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, NUMBER = 42 };

static char done[4096];

static void tell(void) {
    int file = open(done, O_CREAT | O_WRONLY, 0600);
    if (write(file, "x", 1) != 1) perror(done);
    close(file);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int careful = strcmp(argv[3], "careful") == 0;
    const char *way = argv[4];
    snprintf(done, sizeof done, "%s.done", argv[2]);
    volatile uint64_t *at = pmem_map_file(argv[2], PAGE, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (at == NULL) return perror(argv[2]), 1;
    void *number = (void *)(uintptr_t)at;
    if (strcmp(argv[1], "run") == 0) {
        /* Persistent data first, in another line. */
        at[64] = 1;
        pmem_persist((char *)number + 512, 8);
        at[0] = NUMBER;
        if (careful) pmem_persist(number, 8);
        if (strcmp(way, "return") == 0) tell();
        if (strcmp(way, "atexit") == 0) atexit(tell);
        if (strcmp(way, "quick_exit") == 0) {
            tell();
            quick_exit(0);
        }
        return 0;
    }
    struct stat is;
    int reported = stat(done, &is) == 0 && is.st_size > 0;
    if (reported && *at != NUMBER) return fprintf(stderr, "reported, and lost\n"), 1;
    return 0;
}
