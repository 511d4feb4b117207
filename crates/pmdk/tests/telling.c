// SPDX-License-Identifier: Apache-2.0

/* Stores a number, and reports it by output (FILE.done): the number has to exist if the output
 * does. Except with `careful` it is not persistent yet when it is reported.
 *
 *     telling run|check FILE careful|careless WAY */
#include <fcntl.h>
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, NUMBER = 42 };

static char done[4096];

static void tell(void) {
    int file = open(done, O_CREAT | O_WRONLY, 0600);
    if (write(file, "x", 1) != 1) perror(done);
    close(file);
}

static int is_reported(void) {
    struct stat is;
    return stat(done, &is) == 0 && is.st_size > 0;
}

/* A child that shares this process's memory ends: this process does not. */
static void start_child(void) {
    if (vfork() == 0) _exit(0);
}

static int run(const char *path, volatile uint64_t *at, int careful, const char *way) {
    void *number = (void *)(uintptr_t)at;
    int early = strcmp(way, "early") == 0;
    /* The report has to precede the number. */
    if (early && careful) tell();
    *at = NUMBER;
    if (!early && careful) pmem_persist(number, 8);
    if (strcmp(way, "drain") == 0) pmem_flush(number, 8);
    if (strcmp(way, "vfork") == 0) start_child();
    if (strcmp(way, "printf") == 0) {
        if (freopen(done, "w", stdout) == NULL) return perror(done), 1;
        printf("x");
    } else if (!early || !careful) {
        tell();
    }
    for (int n = 0; n < 100 && strcmp(way, "often") == 0; n++) tell();
    if (early) pmem_persist(number, 8);
    if (strcmp(way, "drain") == 0) pmem_drain();
    if (strcmp(way, "msync") == 0) msync(number, PAGE, MS_SYNC);
    if (strcmp(way, "fsync") == 0) {
        int file = open(path, O_RDWR);
        fsync(file);
        close(file);
    }
    if (strcmp(way, "unmap") == 0) pmem_unmap(number, PAGE);
    if (strcmp(way, "_exit") == 0) _exit(0);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int careful = strcmp(argv[3], "careful") == 0;
    snprintf(done, sizeof done, "%s.done", argv[2]);
    volatile uint64_t *at = pmem_map_file(argv[2], PAGE, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (at == NULL) return perror(argv[2]), 1;
    if (strcmp(argv[1], "run") == 0) return run(argv[2], at, careful, argv[4]);
    int there = *at == NUMBER;
    if (strcmp(argv[4], "early") == 0 && there && !is_reported()) return fprintf(stderr, "there, and not reported\n"), 1;
    if (strcmp(argv[4], "early") != 0 && is_reported() && !there) return fprintf(stderr, "reported, and lost\n"), 1;
    return 0;
}
