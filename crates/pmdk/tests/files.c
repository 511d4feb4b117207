/* 33 files one after the other, each unmapped and closed before the next one; in the last one a flag is told before its number is durable.
 * files run FOLDER; files check FOLDER */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int many = getenv("MANY") ? atoi(getenv("MANY")) : 33;
    char path[300];
    for (int n = 0; n < many; n++) {
        snprintf(path, sizeof path, "%s/f%d", argv[2], n);
        int f = open(path, O_RDWR | O_CREAT, 0600);
        if (!strcmp(argv[1], "run")) {
            if (ftruncate(f, 4096)) return 1;
            char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
            at[0] = 1;
            if (n < many - 1) pmem_persist(at, 1);
            at[64] = 1; pmem_persist(at + 64, 1);
            at[128] = 1; pmem_persist(at + 128, 1);
            munmap(at, 4096);
        } else {
            char x[65] = {0};
            if (pread(f, x, 65, 0) == 65 && x[64] && !x[0]) return fprintf(stderr, "lost in %d\n", n), 1;
        }
        close(f);
    }
    return 0;
}
