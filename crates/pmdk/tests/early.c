// SPDX-License-Identifier: Apache-2.0

/* A number may only be durable if FILE.done exists, which is made before the flush but after the
 * store: too late.
 *
 *     early run|check FILE WAY */
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

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *way = argv[3];
    snprintf(done, sizeof done, "%s.done", argv[2]);
    volatile uint64_t *at = pmem_map_file(argv[2], PAGE, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (at == NULL) return perror(argv[2]), 1;
    if (strcmp(argv[1], "run") == 0) {
        at[0] = NUMBER; /* too early: the line may leave the cache */
        if (strcmp(way, "write") == 0) {
            int file = open(done, O_CREAT | O_WRONLY, 0600);
            if (write(file, "x", 1) != 1) return 1;
        }
        if (strcmp(way, "create") == 0) close(open(done, O_CREAT | O_WRONLY, 0600));
        if (strcmp(way, "mkdir") == 0) mkdir(done, 0700);
        if (strcmp(way, "symlink") == 0 && symlink("x", done) != 0) return 1;
        if (strcmp(way, "unbuffered") == 0) {
            FILE *log = fopen(done, "w");
            setvbuf(log, NULL, _IONBF, 0);
            fputs("x", log);
        }
        if (strcmp(way, "dprintf") == 0) dprintf(open(done, O_CREAT | O_WRONLY, 0600), "x");
        pmem_persist((void *)(uintptr_t)at, 8);
        return 0;
    }
    struct stat is;
    int said = strcmp(way, "write") == 0 || strcmp(way, "unbuffered") == 0 || strcmp(way, "dprintf") == 0;
    int reported = lstat(done, &is) == 0 && (!said || is.st_size > 0);
    if (at[0] == NUMBER && !reported) return fprintf(stderr, "there, and not reported\n"), 1;
    return 0;
}
