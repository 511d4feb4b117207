// SPDX-License-Identifier: Apache-2.0

/* Ranges of a reserved object, added before and after it is published in a transaction that is
 * aborted, beside a thread that allocates: it has the memory by the time the transaction's old
 * bytes are back.
 *
 *     reserved POOL */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BYTES = 4000 };
static PMEMobjpool *pop;
static PMEMoid reserved;
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

static void aborted(struct pobj_action *action) {
    memset(pmemobj_direct(reserved), 1, BYTES);
    TX_BEGIN(pop) {
        pmemobj_tx_add_range(reserved, 0, BYTES / 2);
        pmemobj_tx_publish(action, 1);
        pmemobj_tx_add_range(reserved, BYTES / 2, BYTES / 2);
        memset(pmemobj_direct(reserved), 7, BYTES);
        pmemobj_tx_abort(1);
    }
    TX_END
}

int main(int argc, char **argv) {
    pop = argc == 2 ? pmemobj_create(argv[1], "reserved", 16 << 20, 0600) : NULL;
    if (pop == NULL) return 1;
    pmemobj_ctl_exec(pop, "heap.arena.create", &arena);
    pmemobj_ctl_set(pop, "heap.thread.arena_id", &arena);
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    for (int n = 0; n < 1500; n++) {
        struct pobj_action action;
        reserved = n % 2 == 0 ? pmemobj_reserve(pop, &action, BYTES, 1) : pmemobj_xreserve(pop, &action, BYTES, 1, 0);
        if (!OID_IS_NULL(reserved)) aborted(&action);
    }
    stop = 1;
    pthread_join(thread, NULL);
    printf("allocated %s, overwritten %d\n", allocated > 0 ? "some" : "none", wrong);
    pmemobj_close(pop);
    return 0;
}
