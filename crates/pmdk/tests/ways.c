// SPDX-License-Identifier: Apache-2.0

/* Writes numbers, one after another, and counts each after it has been made persistent, in a named
 * way: the count may be at most the number of numbers that exist.
 *
 *     ways run FILE WAY...; ways check FILE */
#include <fcntl.h>
#include <libpmem.h>
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, LINE = 64, NUMBERS = 30 };

/* In the middle of pages, so that a persistent line is not the start of one. */
struct numbers {
    uint64_t count, rest[PAGE / 8 + 15];
    struct {
        uint64_t value, rest[LINE / 8 - 1];
    } list[NUMBERS];
};

static int file, another;
static char another_run[1000];

/* Another process with the same environment and persistent memory, and one with the same memory:
 * neither is followed. */
static void start_processes(uint64_t *at) {
    if (system(another_run) != 0) exit(3);
    pid_t child = fork();
    if (child == 0) {
        for (int n = 0; n < 100; n++) pmem_persist(at, 8);
        exit(0);
    }
    waitpid(child, NULL, 0);
}

/* A way of libpmem or libc; false for another one. */
static int made_persistent(const char *way, uint64_t *at, uint64_t value) {
    void *page = (void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
    if (strcmp(way, "nothing") == 0) *at = value;
    else if (strcmp(way, "persist") == 0) *at = value, pmem_persist(at, 8);
    else if (strcmp(way, "flush_drain") == 0) *at = value, pmem_flush(at, 8), pmem_drain();
    else if (strcmp(way, "deep_flush_drain") == 0) *at = value, pmem_deep_flush(at, 8), pmem_drain();
    else if (strcmp(way, "deep_flush_deep_drain") == 0) *at = value, pmem_deep_flush(at, 8), pmem_deep_drain(at, 8);
    else if (strcmp(way, "flush_deep_drain") == 0) *at = value, pmem_flush(at, 8), pmem_deep_drain(at, 8);
    else if (strcmp(way, "deep_persist") == 0) *at = value, pmem_deep_persist(at, 8);
    else if (strcmp(way, "pmem_msync") == 0) *at = value, pmem_msync(at, 8);
    else if (strcmp(way, "memcpy") == 0) pmem_memcpy(at, &value, 8, 0);
    else if (strcmp(way, "memcpy_noflush") == 0) pmem_memcpy(at, &value, 8, PMEM_F_MEM_NOFLUSH), pmem_drain();
    else if (strcmp(way, "memcpy_noflush_persist") == 0) pmem_memcpy(at, &value, 8, PMEM_F_MEM_NOFLUSH), pmem_persist(at, 8);
    else if (strcmp(way, "memmove_nontemporal") == 0) pmem_memmove(at, &value, 8, PMEM_F_MEM_NONTEMPORAL);
    else if (strcmp(way, "memmove_wb") == 0) pmem_memmove(at, &value, 8, PMEM_F_MEM_WB);
    else if (strcmp(way, "memcpy_nodrain_drain") == 0) pmem_memcpy_nodrain(at, &value, 8), pmem_drain();
    else if (strcmp(way, "memmove_persist") == 0) pmem_memmove_persist(at, &value, 8);
    else if (strcmp(way, "memset_persist") == 0) pmem_memset_persist(at, (int)value, 8);
    else if (strcmp(way, "memset_nodrain_drain") == 0) pmem_memset_nodrain(at, (int)value, 8), pmem_drain();
    else if (strcmp(way, "msync") == 0) *at = value, msync(page, PAGE, MS_SYNC);
    else if (strcmp(way, "msync_async") == 0) *at = value, msync(page, PAGE, MS_ASYNC);
    else if (strcmp(way, "msync_invalidate") == 0) *at = value, msync(page, PAGE, MS_INVALIDATE);
    else if (strcmp(way, "msync_misaligned") == 0) *at = value, msync(at, PAGE, MS_SYNC);
    else if (strcmp(way, "persist_with_processes") == 0) *at = value, start_processes(at), pmem_persist(at, 8);
    else if (strcmp(way, "fsync") == 0) *at = value, fsync(file);
    else if (strcmp(way, "fdatasync") == 0) *at = value, fdatasync(file);
    else if (strcmp(way, "fsync_another") == 0) *at = value, fsync(another);
    else return 0;
    return 1;
}

/* A way of libpmemobj, in a pool. */
static int made_persistent_in(PMEMobjpool *pop, const char *way, uint64_t *at, uint64_t value) {
    if (strcmp(way, "obj_persist") == 0) *at = value, pmemobj_persist(pop, at, 8);
    else if (strcmp(way, "obj_persist_with_processes") == 0) *at = value, start_processes(at), pmemobj_persist(pop, at, 8);
    else if (strcmp(way, "obj_flush_drain") == 0) *at = value, pmemobj_flush(pop, at, 8), pmemobj_drain(pop);
    else if (strcmp(way, "obj_xpersist") == 0) *at = value, pmemobj_xpersist(pop, at, 8, 0);
    else if (strcmp(way, "obj_xpersist_relaxed") == 0) *at = value, pmemobj_xpersist(pop, at, 8, PMEMOBJ_F_RELAXED);
    else if (strcmp(way, "obj_xflush_drain") == 0) *at = value, pmemobj_xflush(pop, at, 8, 0), pmemobj_drain(pop);
    else if (strcmp(way, "obj_memcpy") == 0) pmemobj_memcpy(pop, at, &value, 8, 0);
    else if (strcmp(way, "obj_memmove_nodrain_drain") == 0) pmemobj_memmove(pop, at, &value, 8, PMEMOBJ_F_MEM_NODRAIN), pmemobj_drain(pop);
    else if (strcmp(way, "obj_memset") == 0) pmemobj_memset(pop, at, (int)value, 8, PMEMOBJ_F_MEM_NONTEMPORAL);
    else if (strcmp(way, "obj_memcpy_persist") == 0) pmemobj_memcpy_persist(pop, at, &value, 8);
    else if (strcmp(way, "obj_memset_persist") == 0) pmemobj_memset_persist(pop, at, (int)value, 8);
    else return 0;
    return 1;
}

/* The power fails from the first transaction on. */
static void begin(PMEMobjpool *pop) {
    PMEMoid root = pmemobj_root(pop, sizeof(struct numbers));
    TX_BEGIN(pop) {
        pmemobj_tx_add_range(root, 0, 8);
    }
    TX_END
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    another = open(argv[0], O_RDONLY);
    snprintf(another_run, sizeof another_run, "%s run %s.child persist", argv[0], argv[2]);
    int runs = strcmp(argv[1], "run") == 0;
    PMEMobjpool *pop = NULL;
    struct numbers *numbers;
    if (runs && argc > 3 && strncmp(argv[3], "obj_", 4) == 0) {
        pop = pmemobj_create(argv[2], "ways", PMEMOBJ_MIN_POOL, 0600);
        if (pop == NULL) return fprintf(stderr, "%s\n", pmemobj_errormsg()), 1;
        begin(pop);
    } else if (!runs) {
        pop = pmemobj_open(argv[2], "ways");
    }
    if (pop != NULL) {
        numbers = pmemobj_direct(pmemobj_root(pop, sizeof *numbers));
    } else {
        numbers = pmem_map_file(argv[2], sizeof *numbers, PMEM_FILE_CREATE, 0600, NULL, NULL);
        file = open(argv[2], O_RDWR);
    }
    if (numbers == NULL) return perror(argv[2]), 1;
    for (uint64_t n = 0; runs && (int)n < argc - 3; n++) {
        /* The same byte repeatedly. */
        uint64_t value = (n + 1) * UINT64_C(0x0101010101010101), *at = &numbers->list[n].value;
        if (!(pop != NULL ? made_persistent_in(pop, argv[3 + n], at, value) : made_persistent(argv[3 + n], at, value)))
            return fprintf(stderr, "%s: unknown\n", argv[3 + n]), 2;
        numbers->count = n + 1;
        pmem_persist(&numbers->count, 8);
    }
    int wrong = 0;
    for (uint64_t n = 0; n < numbers->count && !wrong; n++)
        if (numbers->list[n].value != (n + 1) * UINT64_C(0x0101010101010101))
            wrong = fprintf(stderr, "number %llu of %llu is not there\n", (unsigned long long)n + 1, (unsigned long long)numbers->count);
    if (pop != NULL) pmemobj_close(pop);
    return wrong != 0;
}
