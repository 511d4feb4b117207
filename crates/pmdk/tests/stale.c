/* One thread writes back a line, another one streams words of it and waits, the first waits: both are durable.
 * stale run FILE; stale check FILE */
#include <libpmem.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static pthread_barrier_t b;
static uint64_t *at;
static void *other(void *x) {
    (void)x;
    pthread_barrier_wait(&b);
    uint64_t v[2] = {7, 7};
    pmem_memcpy(at + 4, v, 16, PMEM_F_MEM_NONTEMPORAL);
    at[8] = 1; /* it is durable */
    pmem_persist(at + 8, 8);
    pthread_barrier_wait(&b);
    return 0;
}
int main(int argc, char **argv) {
    if (argc != 3) return 2;
    size_t l; int p;
    at = pmem_map_file(argv[2], 4096, PMEM_FILE_CREATE, 0600, &l, &p);
    if (!at) return perror("map"), 1;
    if (!strcmp(argv[1], "run")) {
        pthread_t t;
        pthread_barrier_init(&b, 0, 2);
        pthread_create(&t, 0, other, 0);
        at[0] = 1;
        pmem_flush(at, 8);
        pthread_barrier_wait(&b);
        pthread_barrier_wait(&b);
        pmem_drain();
        at[16] = 1;
        pmem_persist(at + 16, 8);
        pthread_join(t, 0);
    } else if (at[8] && (at[4] != 7 || at[5] != 7))
        return fprintf(stderr, "what was streamed and waited for is %d, %d\n", (int)at[4], (int)at[5]), 1;
    return 0;
}
