// SPDX-License-Identifier: Apache-2.0

/* A transaction that changes 2,000 objects of a line each, after a pool was filled.
 *
 *     large POOL commit|abort|begun   # begun: killed before its end
 *     large POOL check */
#include <libpmemobj.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 2000 };
struct root {
    uint64_t lines[LINES][8];
};

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    bool checks = strcmp(argv[2], "check") == 0;
    PMEMobjpool *pop = checks ? pmemobj_open(argv[1], "large") : pmemobj_create(argv[1], "large", 16 << 20, 0600);
    if (pop == NULL) return 1;
    struct root *root = pmemobj_direct(pmemobj_root(pop, sizeof *root));
    if (checks) {
        int fresh = 0;
        for (int n = 0; n < LINES; n++) fresh += root->lines[n][0] == 2;
        int old = 0;
        for (int n = 0; n < LINES; n++) old += root->lines[n][0] == 1;
        printf("%d new, %d old\n", fresh, old);
        pmemobj_close(pop);
        return 0;
    }
    for (int n = 0; n < LINES; n++) root->lines[n][0] = 1;
    pmemobj_persist(pop, root, sizeof *root);
    TX_BEGIN(pop) {
        for (int n = 0; n < LINES; n++) {
            pmemobj_tx_add_range_direct(root->lines[n], sizeof root->lines[n]);
            root->lines[n][0] = 2;
            /* Some lines leave the cache before the tracking ends. */
            if (n % 3 == 0) pmemobj_persist(pop, root->lines[n], sizeof root->lines[n]);
        }
        if (strcmp(argv[2], "begun") == 0) kill(getpid(), SIGKILL);
        if (strcmp(argv[2], "abort") == 0) pmemobj_tx_abort(1);
    }
    TX_END
    pmemobj_close(pop);
    return 0;
}
