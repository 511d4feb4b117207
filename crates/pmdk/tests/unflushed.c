/* Programs with libpmem that are wrong, and that a crash test has to refuse.
 *
 *     last run|check FILE: says outside (FILE.done) that a number is there which it has not flushed, and ends
 *     told run|check FILE: the same, goes on, and persists it a moment later
 *     torn run|check FILE: two words of a line, which have to be alike, are stored one after the other without a log */
#include <fcntl.h>
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    int runs = strcmp(argv[1], "run") == 0;
    char done[4096];
    snprintf(done, sizeof done, "%s.done", argv[2]);
    volatile uint64_t *at = pmem_map_file(argv[2], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (at == NULL) return perror(argv[2]), 1;
    if (strcmp(name, "torn") == 0) {
        for (uint64_t step = 1; runs && step <= 20; step++) {
            at[0] = step;
            at[1] = step;
            pmem_persist((void *)at, 16);
        }
        if (!runs && at[0] != at[1]) return fprintf(stderr, "torn\n"), 1;
        return 0;
    }
    if (runs) {
        at[64] = 1;
        pmem_persist((void *)&at[64], 8);
        at[0] = 42;
        close(open(done, O_CREAT | O_WRONLY, 0600));
        if (strcmp(name, "told") == 0) pmem_persist((void *)at, 8);
    } else if (access(done, F_OK) == 0 && at[0] != 42) {
        return fprintf(stderr, "acknowledged, and lost\n"), 1;
    }
    return 0;
}
