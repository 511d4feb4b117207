/* A deferred free in a transaction that is aborted. It prints the same with the shim and without it.
 *
 *     deferred POOL */
#include <libpmemobj.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    PMEMobjpool *pop = argc == 2 ? pmemobj_create(argv[1], "deferred", 16 << 20, 0600) : NULL;
    if (pop == NULL) return 1;
    struct pobj_action action;
    PMEMoid first = pmemobj_reserve(pop, &action, 100000, 1), freed, kept;
    (void)first;
    pmemobj_publish(pop, &action, 1);
    pmemobj_zalloc(pop, &freed, 64, 1);
    pmemobj_zalloc(pop, &kept, 64, 1);
    /* The same action once more: libpmemobj does not write its usable size, which is that of the reservation. */
    pmemobj_defer_free(pop, freed, &action);
    TX_BEGIN(pop) {
        pmemobj_tx_publish(&action, 1);
        pmemobj_tx_add_range(freed, 0, 64);
        memset(pmemobj_direct(freed), 7, 64);
        pmemobj_tx_add_range(kept, 0, 64);
        memset(pmemobj_direct(kept), 7, 64);
        pmemobj_tx_abort(1);
    }
    TX_END
    printf("%d %d\n", *(char *)pmemobj_direct(freed), *(char *)pmemobj_direct(kept));
    pmemobj_close(pop);
    return 0;
}
