/* A range of a reserved object, added before it is published in a transaction that is aborted, beside a thread that allocates.
 *
 *     reserved POOL BEFORE */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 4000 };
static PMEMobjpool *pop;
static unsigned arena;
static atomic_int stop;
static int wrong, allocated;

static void *other(void *unused) {
    (void)unused;
    pmemobj_ctl_set(pop, "heap.thread.arena_id", &arena);
    while (!stop) {
        PMEMoid oid;
        if (pmemobj_zalloc(pop, &oid, BYTES, 1) != 0) continue;
        char *at = pmemobj_direct(oid);
        memset(at, 0x42, BYTES);
        pmemobj_persist(pop, at, BYTES);
        allocated++;
        nanosleep(&(struct timespec){0, 3000000}, NULL);
        int same = 0;
        for (int n = 0; n < BYTES; n++) same += at[n] == 0x42;
        wrong += same != BYTES;
        pmemobj_free(&oid);
    }
    return NULL;
}

static void turn(int before) {
    struct pobj_action action;
    PMEMoid oid = pmemobj_reserve(pop, &action, BYTES, 1);
    if (OID_IS_NULL(oid)) return;
    memset(pmemobj_direct(oid), 1, BYTES);
    TX_BEGIN(pop) {
        if (before) pmemobj_tx_add_range(oid, 0, BYTES);
        pmemobj_tx_publish(&action, 1);
        if (!before) pmemobj_tx_add_range(oid, 0, BYTES);
        memset(pmemobj_direct(oid), 7, BYTES);
        pmemobj_tx_abort(1);
    }
    TX_END
}

int main(int argc, char **argv) {
    pop = argc == 3 ? pmemobj_create(argv[1], "reserved", 16 << 20, 0600) : NULL;
    if (pop == NULL) return 1;
    pmemobj_ctl_exec(pop, "heap.arena.create", &arena);
    pmemobj_ctl_set(pop, "heap.thread.arena_id", &arena);
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    for (int n = 0; n < 1500; n++) turn(atoi(argv[2]));
    stop = 1;
    pthread_join(thread, NULL);
    printf("allocs %s wrong %d\n", allocated > 0 ? "some" : "none", wrong);
    pmemobj_close(pop);
    return 0;
}
