// SPDX-License-Identifier: Apache-2.0

/* Files one after the other, each unmapped and closed before the next one, with few descriptors: a
 * number, then a number that counts it. A careless program does not make the first number of the
 * last file persistent.
 *
 * files run FOLDER careful|careless COUNT; files check FOLDER HOW COUNT */
#include <fcntl.h>
#include <libpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BYTES = 4096, COUNTS = 64 };

static int run(int file, int careful) {
    if (ftruncate(file, BYTES) != 0) return 2;
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return 2;
    at[0] = 1;
    if (careful) pmem_persist(at, 1);
    at[COUNTS] = 1;
    pmem_persist(at + COUNTS, 1);
    munmap(at, BYTES);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    struct rlimit few = {32, 32};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 2;
    int last = atoi(argv[4]) - 1, careful = strcmp(argv[3], "careful") == 0;
    for (int n = 0; n <= last; n++) {
        char path[300], read[COUNTS + 1] = {0};
        snprintf(path, sizeof path, "%s/%d", argv[2], n);
        int file = open(path, O_RDWR | O_CREAT, 0600);
        if (file < 0) return 2;
        if (strcmp(argv[1], "run") == 0) {
            int result = run(file, careful || n < last);
            if (result != 0) return result;
        } else if (pread(file, read, sizeof read, 0) == sizeof read && read[COUNTS] && !read[0]) {
            fprintf(stderr, "counted in %d, and not there\n", n);
            return 1;
        }
        close(file);
    }
    return 0;
}
