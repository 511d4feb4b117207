// SPDX-License-Identifier: Apache-2.0

/* Objects that are not of the transaction's pool, and calls that fail without an abort: a new
 * object stays new. The output is the same with the shim and without it, and no record is made.
 *
 *     foreign POOL ANOTHER */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>

enum { TYPE_SOME = 7, BYTES = 64, UNKNOWN_FLAG = 1 << 20 };

#define SAY(...) (printf("%d: ", __LINE__), printf(__VA_ARGS__), printf("\n"))

static PMEMobjpool *pop;

/* A new object, which needs no record. */
static PMEMoid begin(void) {
    pmemobj_tx_begin(pop, NULL, TX_PARAM_NONE);
    return pmemobj_tx_alloc(BYTES, TYPE_SOME);
}

static void end(PMEMoid oid) {
    SAY("stage %d", pmemobj_tx_stage());
    if (pmemobj_tx_stage() == TX_STAGE_WORK) {
        SAY("added %d", pmemobj_tx_add_range(oid, 0, BYTES));
        pmemobj_tx_commit();
    }
    SAY("end %d", pmemobj_tx_end());
}

static void wrong(PMEMoid foreign_pool) {
    PMEMoid oid = begin(), foreign = {foreign_pool.pool_uuid_lo, oid.off};
    SAY("xfree %d", pmemobj_tx_xfree(foreign, POBJ_XFREE_NO_ABORT));
    SAY("flags %d", pmemobj_tx_xfree(oid, POBJ_XFREE_NO_ABORT | UNKNOWN_FLAG));
    end(oid);

    oid = begin(), foreign.off = oid.off;
    pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_RETURN);
    SAY("free %d", pmemobj_tx_free(foreign));
    SAY("huge %d", OID_IS_NULL(pmemobj_tx_realloc(oid, (size_t)1 << 40, TYPE_SOME)));
    end(oid);

    oid = begin(), foreign.off = oid.off;
    SAY("free %d", pmemobj_tx_free(foreign));
    end(oid);

    oid = begin(), foreign.off = oid.off;
    SAY("realloc %d", OID_IS_NULL(pmemobj_tx_realloc(foreign, 2 * BYTES, TYPE_SOME)));
    end(oid);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    pop = pmemobj_create(argv[1], "foreign", PMEMOBJ_MIN_POOL, 0600);
    PMEMobjpool *another = pmemobj_create(argv[2], "foreign", PMEMOBJ_MIN_POOL, 0600);
    if (pop == NULL || another == NULL) return fprintf(stderr, "%s\n", pmemobj_errormsg()), 1;
    PMEMoid oid;
    pmemobj_alloc(another, &oid, BYTES, TYPE_SOME, NULL, NULL);
    wrong(oid);
    /* Of no open pool. */
    oid.pool_uuid_lo ^= 1;
    wrong(oid);
    pmemobj_close(another);
    pmemobj_close(pop);
    return 0;
}
