/* Many mappings: 64 that stay, of which one loses its middle; what is behind that is written without a fence, and lost.
 * splitting run FILE; splitting check FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int f = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (!strcmp(argv[1], "run")) {
        if (ftruncate(f, 1 << 20)) return 1;
        char *at[64];
        for (int n = 0; n < 64; n++) at[n] = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, f, n * 16384);
        munmap(at[3] + 4096, 4096); /* a part in front, and one behind */
        char *x = at[3] + 8192, *flag = at[4];
        x[0] = 1;               /* never flushed */
        flag[0] = 1; pmem_persist(flag, 1);
        flag[64] = 1; pmem_persist(flag + 64, 1);
        return 0;
    }
    char x = 0, flag = 0;
    if (pread(f, &x, 1, 3 * 16384 + 8192) != 1 || pread(f, &flag, 1, 4 * 16384) != 1) return 0;
    if (flag && !x) return fprintf(stderr, "lost\n"), 1;
    return 0;
}
