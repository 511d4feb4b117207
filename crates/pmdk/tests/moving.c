// SPDX-License-Identifier: Apache-2.0

/* Numbers in memory that moves, or has lost a part, and a count of them in another file: the count
 * may be at most the number that is there. A careless program does not persist the number. Nothing
 * but the number is in the file.
 *
 *     moving run FILE careful|careless WAY; moving check FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The third page of the file has the number. */
enum { PAGE = 4096, PAGES = 4, AT = 2 * PAGE + 192, STEPS = 3 };

static int file;

static void *checked(void *at) {
    if (at == MAP_FAILED) perror("a mapping"), exit(1);
    return at;
}

static char *map(char *at, int page, int pages) {
    int fixed = at == NULL ? 0 : MAP_FIXED;
    return checked(mmap(at, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, file, page * PAGE));
}

static char *move(char *at, int pages, int wanted, char *to) {
    int flags = to == NULL ? MREMAP_MAYMOVE : MREMAP_MAYMOVE | MREMAP_FIXED;
    return checked(mremap(at, (size_t)pages * PAGE, (size_t)wanted * PAGE, flags, to));
}

/* Persistent data here are not in a file. */
static void use(char *page) {
    checked(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    memset(page, 0x55, PAGE);
    pmem_persist(page, PAGE);
}

/* The final address of the third page. */
static char *third_page(const char *way) {
    char *at = NULL, *to;
    if (strcmp(way, "moved") == 0) return move(map(NULL, 0, 3), 3, 3, map(NULL, 1, 3)) + 2 * PAGE;
    if (strcmp(way, "grown") == 0) return move(map(NULL, 0, 1), 1, 3, NULL) + 2 * PAGE;
    if (strcmp(way, "grown_file") == 0) {
        if (ftruncate(file, PAGE) != 0) exit(1);
        at = map(NULL, 0, 1);
        if (ftruncate(file, PAGES * PAGE) != 0) exit(1);
        return move(at, 1, PAGES, NULL) + 2 * PAGE;
    }
    if (strcmp(way, "twice") == 0) return move(map(NULL, 0, 3), 0, 3, NULL) + 2 * PAGE;
    if (strcmp(way, "shrunk") == 0) {
        at = move(map(NULL, 2, 2), 2, 1, NULL);
        use(at + PAGE);
        return at;
    }
    if (strcmp(way, "covered") == 0) {
        at = map(NULL, 1, 3);
        use(at);
        use(at + 2 * PAGE);
        return at + PAGE;
    }
    if (strcmp(way, "unmapped") == 0) {
        at = map(NULL, 1, 3);
        munmap(at, PAGE);
        munmap(at + 2 * PAGE, PAGE);
        use(at);
        use(at + 2 * PAGE);
        return at + PAGE;
    }
    if (strcmp(way, "part") == 0) {
        at = map(NULL, 0, PAGES);
        to = move(at + 2 * PAGE, 1, 1, map(NULL, 0, 1));
        use(at + 2 * PAGE);
        return to;
    }
    return strcmp(way, "under_way") == 0 ? map(NULL, 2, 1) : NULL;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    char name[1000];
    snprintf(name, sizeof name, "%s.count", argv[2]);
    file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, PAGES * PAGE) != 0) return perror(argv[2]), 1;
    uint64_t *count = pmem_map_file(name, PAGE, PMEM_FILE_CREATE, 0600, NULL, NULL);
    if (count == NULL) return perror(name), 1;
    if (strcmp(argv[1], "check") == 0) {
        char *all = map(NULL, 0, PAGES);
        for (int n = 0; n < PAGES * PAGE; n++)
            if (all[n] != 0 && n / 8 != AT / 8) return fprintf(stderr, "something else is there\n"), 1;
        if (*(uint64_t *)(all + AT) < *count) return fprintf(stderr, "counted, and not there\n"), 1;
        return 0;
    }
    if (argc != 5) return 2;
    int careful = strcmp(argv[3], "careful") == 0, under_way = strcmp(argv[4], "under_way") == 0;
    /* No page of it is a hole. */
    for (int n = 0; n < PAGES; n++)
        if (pwrite(file, "", 1, n * PAGE) != 1) return perror(argv[2]), 1;
    char *page = third_page(argv[4]);
    if (page == NULL) return 2;
    for (uint64_t n = 1; n <= STEPS; n++) {
        uint64_t *number = (uint64_t *)(page + AT % PAGE);
        *number = n;
        if (careful) pmem_flush(number, 8);
        if (under_way) page = move(page, 1, 1, map(NULL, 0, 1));
        if (careful) pmem_drain();
        *count = n;
        pmem_persist(count, 8);
    }
    return 0;
}
