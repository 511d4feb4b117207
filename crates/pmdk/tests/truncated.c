// SPDX-License-Identifier: Apache-2.0

/* A file, or all of it except a mapped page, that is emptied and written again between two
 * mappings: nothing of the old content remains. And a file that is mapped again at the same
 * address: older write-back requests do not cover later stores.
 *
 * truncated run FILE all|part|again; truncated check FILE WAY */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 1 << 16, PAGE = 4096, OLD = 0xAA, FAR = 60 * 64 };

static int run(int file, const char *way) {
    if (strcmp(way, "part") == 0) {
        if (ftruncate(file, BYTES) != 0 || mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, BYTES - PAGE) == MAP_FAILED) return 2;
    }
    unsigned char *at = NULL;
    for (int round = 0; round < 2; round++) {
        if (ftruncate(file, 0) != 0 || ftruncate(file, BYTES) != 0) return 2;
        at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (at == MAP_FAILED) return 2;
        if (round == 0) {
            memset(at + 64, OLD, PAGE - 64);
            pmem_persist(at, PAGE);
            munmap(at, PAGE);
        }
    }
    /* The page is one of the file, not a hole, and only this is persistent of it. */
    at[FAR] = 1;
    at[0] = 1;
    pmem_persist(at, 1);
    pmem_drain();
    return 0;
}

static int again(int file) {
    if (ftruncate(file, BYTES) != 0) return 2;
    unsigned char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    at[64] = 1;
    pmem_flush(at + 64, 1);
    at[64] = 2;
    munmap(at, PAGE);
    if (mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != at) return 2;
    pmem_drain();
    at[0] = 1;
    pmem_persist(at, 1);
    pmem_drain();
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    int anew = strcmp(argv[3], "again") == 0;
    if (strcmp(argv[1], "run") == 0) return anew ? again(file) : run(file, argv[3]);
    unsigned char page[PAGE];
    if (pread(file, page, PAGE, 0) != PAGE || page[0] != 1) return 0;
    if (anew ? page[64] == 2 : memchr(page, OLD, PAGE) == NULL) return 0;
    fprintf(stderr, "what it was before\n");
    return 1;
}
