// SPDX-License-Identifier: Apache-2.0

/* Deferred frees, reservations and values, published in aborted transactions: everything is as
 * before. The output is the same with the shim and without it.
 *
 *     deferred POOL */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 64, LARGE = 100000, MOST = 6 };

static PMEMobjpool *pop;
/* Adjacent objects, so that a range with the size of a large object covers them all. */
static PMEMoid freed, kept, last;
static struct pobj_action actions[MOST];

static int first_byte(PMEMoid oid) {
    return *(char *)pmemobj_direct(oid);
}

static void change(PMEMoid oid) {
    pmemobj_tx_add_range(oid, 0, BYTES);
    memset(pmemobj_direct(oid), 7, BYTES);
}

static void aborted(const char *what, int count, int flags, PMEMoid fresh) {
    TX_BEGIN(pop) {
        if (flags < 0) pmemobj_tx_publish(actions, (size_t)count);
        else pmemobj_tx_xpublish(actions, (size_t)count, (uint64_t)flags);
        if (!OID_IS_NULL(fresh)) change(fresh);
        change(freed);
        change(kept);
        change(last);
        pmemobj_tx_abort(1);
    }
    TX_END
    printf("%s: %d %d %d\n", what, first_byte(freed), first_byte(kept), first_byte(last));
}

int main(int argc, char **argv) {
    pop = argc == 2 ? pmemobj_create(argv[1], "deferred", 16 << 20, 0600) : NULL;
    if (pop == NULL) return 1;
    pmemobj_zalloc(pop, &freed, BYTES, 1);
    pmemobj_zalloc(pop, &kept, BYTES, 1);
    pmemobj_zalloc(pop, &last, BYTES, 1);
    /* libpmemobj does not write the size of the object to be freed: the old value stays. */
    PMEMoid fresh = pmemobj_reserve(pop, &actions[0], LARGE, 1);
    pmemobj_publish(pop, actions, 1);
    pmemobj_defer_free(pop, freed, &actions[0]);
    aborted("after a publication", 1, -1, OID_NULL);
    pmemobj_free(&fresh);
    pmemobj_xreserve(pop, &actions[0], LARGE, 1, POBJ_XALLOC_ZERO);
    pmemobj_cancel(pop, actions, 1);
    pmemobj_defer_free(pop, freed, &actions[0]);
    aborted("after a cancellation", 1, POBJ_XPUBLISH_NO_ABORT, OID_NULL);
    memset(actions, 0x11, sizeof actions);
    pmemobj_defer_free(pop, freed, &actions[0]);
    aborted("something else", 1, 0, OID_NULL);
    /* The action of an aborted transaction, and copies of others, several at once. */
    struct pobj_action others[3];
    memset(others, 0x11, sizeof others);
    fresh = pmemobj_reserve(pop, &others[0], LARGE, 1);
    pmemobj_set_value(pop, &others[1], pmemobj_direct(last), 9);
    pmemobj_defer_free(pop, kept, &others[2]);
    memcpy(&actions[1], others, sizeof others);
    pmemobj_defer_free(pop, freed, &actions[0]);
    pmemobj_xreserve(pop, &actions[4], BYTES, 1, 0);
    pmemobj_set_value(pop, &actions[5], pmemobj_direct(last) + 8, 9);
    aborted("many", 6, -1, fresh);
    pmemobj_close(pop);
    return 0;
}
