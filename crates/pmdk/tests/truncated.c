/* A file that is emptied and made anew between two mappings: what it had then is in none of it any more.
 * truncated run FILE; truncated check FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { B = 1 << 16 };
int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int f = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (!strcmp(argv[1], "run")) {
        for (int round = 0; round < 2; round++) {
            if (ftruncate(f, 0) || ftruncate(f, B) || fsync(f)) return 1;
            char *at = mmap(NULL, B, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
            if (at == MAP_FAILED) return 1;
            if (round == 0) { memset(at, 0xAA, 4096); msync(at, 4096, MS_SYNC); }
            else { at[0] = 1; msync(at, 4096, MS_SYNC); at[64*63] = 0; msync(at,4096,MS_SYNC); at[0] = 2; pmem_persist(at, 1); }
            munmap(at, B);
        }
        return 0;
    }
    unsigned char line[4096];
    if (pread(f, line, 4096, 0) != 4096) return 0;
    /* All 0xAA, all 0, or a number in front of zeroes. */
    int aa = 0, zero = 0;
    for (int n = 64; n < 4096; n++) aa += line[n] == 0xAA, zero += line[n] == 0;
    if (line[0] <= 2 && line[0] != 0 && aa) return fprintf(stderr, "first byte %d, and %d bytes of before ftruncate are back\n", line[0], aa), 1;
    return 0;
}
