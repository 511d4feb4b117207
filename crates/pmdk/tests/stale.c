// SPDX-License-Identifier: Apache-2.0

/* A thread writes back a line, another one streams words of it and fences; then the first fences:
 * all of it is durable. stale run FILE; stale check FILE */
#include <libpmem.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { STREAMED = 4, COUNTS = 8, LAST = 16 };

static pthread_barrier_t barrier;
static uint64_t *at;

static void *stream(void *unused) {
    uint64_t words[2] = {7, 7};
    pthread_barrier_wait(&barrier);
    pmem_memcpy(at + STREAMED, words, sizeof words, PMEM_F_MEM_NONTEMPORAL);
    at[COUNTS] = 1;
    pmem_persist(at + COUNTS, 8);
    pthread_barrier_wait(&barrier);
    return unused;
}

static int run(void) {
    pthread_t other;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&other, NULL, stream, NULL);
    at[0] = 1;
    pmem_flush(at, 8);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    pmem_drain();
    at[LAST] = 1;
    pmem_persist(at + LAST, 8);
    return pthread_join(other, NULL);
}

int main(int argc, char **argv) {
    size_t bytes;
    int is_pmem;
    if (argc != 3) return 2;
    at = pmem_map_file(argv[2], 4096, PMEM_FILE_CREATE, 0600, &bytes, &is_pmem);
    if (at == NULL) return perror("pmem_map_file"), 2;
    if (strcmp(argv[1], "run") == 0) return run();
    if (at[COUNTS] && (at[STREAMED] != 7 || at[STREAMED + 1] != 7))
        return fprintf(stderr, "counted, and not there\n"), 1;
    if (at[LAST] && !at[0]) return fprintf(stderr, "the line is not there\n"), 1;
    return 0;
}
