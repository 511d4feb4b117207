// SPDX-License-Identifier: Apache-2.0

/* Threads that each change a separate number in transactions, every second of which is aborted: no
 * odd number stays.
 *
 *     aborting run FILE; aborting check FILE */
#include <libpmemobj.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 30 };

struct root {
    struct {
        uint64_t value, more[7];
    } numbers[THREADS];
};

static PMEMobjpool *pop;
static struct root *root;

static void change(uint64_t *number, uint64_t value, int aborts) {
    TX_BEGIN(pop) {
        pmemobj_tx_add_range_direct(number, sizeof *number);
        *number = value;
        if (aborts) pmemobj_tx_abort(1);
    }
    TX_END
}

static void *work(void *number) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
        change(number, 2 * round + 1, 1);
        change(number, 2 * round, 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int runs = strcmp(argv[1], "run") == 0;
    if (!runs && access(argv[2], F_OK) != 0) return 0;
    pop = runs ? pmemobj_create(argv[2], "aborting", PMEMOBJ_MIN_POOL, 0600) : pmemobj_open(argv[2], "aborting");
    if (pop == NULL) return fprintf(stderr, "%s\n", pmemobj_errormsg()), 1;
    root = pmemobj_direct(pmemobj_root(pop, sizeof *root));
    pthread_t threads[THREADS];
    for (int n = 0; runs && n < THREADS; n++) pthread_create(&threads[n], NULL, work, &root->numbers[n].value);
    for (int n = 0; runs && n < THREADS; n++) pthread_join(threads[n], NULL);
    int odd = 0;
    for (int n = 0; n < THREADS; n++) odd += root->numbers[n].value % 2;
    if (odd > 0) fprintf(stderr, "%d numbers are odd\n", odd);
    pmemobj_close(pop);
    return odd > 0;
}
