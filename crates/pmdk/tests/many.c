// SPDX-License-Identifier: Apache-2.0

/* Many adjacent mappings, of which one loses its middle. Stores numbers after that part and in the
 * last mapping, then a number that counts them. many run FILE WAY; many check FILE. WAY: what makes
 * both persistent, or which of them is not made persistent. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT = 140, BYTES = 16384, AFTER_HOLE = 3 * BYTES + 8192, LAST = (COUNT - 1) * BYTES, COUNTS = 4 * BYTES };

static int run(int file, const char *way) {
    if (ftruncate(file, COUNT * BYTES) != 0) return 2;
    char *at = mmap(NULL, COUNT * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int n = 0; n < COUNT; n++)
        if (mmap(at + n * BYTES, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, n * BYTES) == MAP_FAILED) return 2;
    munmap(at + 3 * BYTES + 4096, 4096);
    at[AFTER_HOLE] = at[LAST] = 1;
    size_t bytes = LAST + 1 - AFTER_HOLE;
    if (strcmp(way, "persist") == 0) pmem_persist(at + AFTER_HOLE, bytes);
    if (strcmp(way, "msync") == 0 && msync(at + AFTER_HOLE, bytes, MS_SYNC) != 0) return 2;
    if (strcmp(way, "fsync") == 0 && fsync(file) != 0) return 2;
    if (strcmp(way, "not_after") == 0) pmem_persist(at + LAST, 1);
    if (strcmp(way, "not_last") == 0) pmem_persist(at + AFTER_HOLE, 1);
    at[COUNTS] = 1;
    pmem_persist(at + COUNTS, 1);
    pmem_drain();
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (strcmp(argv[1], "run") == 0) return run(file, argv[3]);
    char after = 0, last = 0, counts = 0;
    if (pread(file, &after, 1, AFTER_HOLE) != 1 || pread(file, &last, 1, LAST) != 1 || pread(file, &counts, 1, COUNTS) != 1) return 0;
    if (!counts || (after && last)) return 0;
    fprintf(stderr, "counted, and not there\n");
    return 1;
}
