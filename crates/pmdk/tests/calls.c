// SPDX-License-Identifier: Apache-2.0

/* Calls of libpmemobj's transactions of all kinds, and the content of the pool after each. The
 * output is the same with the shim and without it.
 *
 *     calls POOL */
#include <inttypes.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64, BIG = 3 << 20, THREADS = 20 };
enum { TYPE_SOME = 7 };

struct root {
    uint64_t words[WORDS];
    PMEMoid oids[8];
    PMEMmutex mutex;
    PMEMrwlock lock;
    uint8_t big[BIG];
};

static PMEMobjpool *pop;
static struct root *root;
static PMEMoid root_oid;

#define SAY(...) (printf("%d: ", __LINE__), printf(__VA_ARGS__), printf("\n"))

static uint64_t sum(const uint8_t *bytes, size_t count) {
    uint64_t all = 1469598103934665603u;
    for (size_t n = 0; n < count; n++) all = (all ^ bytes[n]) * 1099511628211u;
    return all;
}

static uint64_t objects(void) {
    PMEMoid oid;
    uint64_t count = 0;
    POBJ_FOREACH(pop, oid) count++;
    return count;
}

static void set(int word, uint64_t value) {
    pmemobj_tx_add_range_direct(&root->words[word], 8);
    root->words[word] = value;
}

/* Without an environment libpmemobj returns where it would jump. */
static void without_jumps(void) {
    pmemobj_tx_begin(pop, NULL, TX_PARAM_NONE);
    set(0, 1);
    pmemobj_tx_commit();
    SAY("stage %d error %d", pmemobj_tx_stage(), pmemobj_tx_errno());
    SAY("end %d word %" PRIu64, pmemobj_tx_end(), root->words[0]);

    pmemobj_tx_begin(pop, NULL, TX_PARAM_NONE);
    set(0, 2);
    PMEMoid oid = pmemobj_tx_alloc((size_t)1 << 40, TYPE_SOME);
    SAY("null %d word %" PRIu64 " stage %d", OID_IS_NULL(oid), root->words[0], pmemobj_tx_stage());
    SAY("end %d", pmemobj_tx_end());

    pmemobj_tx_begin(pop, NULL, TX_PARAM_NONE);
    pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_RETURN);
    set(0, 3);
    oid = pmemobj_tx_alloc((size_t)1 << 40, TYPE_SOME);
    SAY("null %d word %" PRIu64 " stage %d", OID_IS_NULL(oid), root->words[0], pmemobj_tx_stage());
    pmemobj_tx_commit();
    SAY("end %d word %" PRIu64, pmemobj_tx_end(), root->words[0]);

    pmemobj_tx_begin(pop, NULL, TX_PARAM_NONE);
    set(0, 4);
    oid = pmemobj_tx_xalloc((size_t)1 << 40, TYPE_SOME, POBJ_XALLOC_NO_ABORT);
    SAY("null %d word %" PRIu64 " stage %d", OID_IS_NULL(oid), root->words[0], pmemobj_tx_stage());
    pmemobj_tx_abort(7);
    SAY("word %" PRIu64 " error %d", root->words[0], pmemobj_tx_errno());
    SAY("end %d", pmemobj_tx_end());
}

static void nested(void) {
    TX_BEGIN(pop) {
        set(1, 10);
        TX_BEGIN(pop) {
            set(2, 20);
            set(1, 11);
            pmemobj_tx_abort(5);
        }
        TX_ONABORT {
            SAY("inner %" PRIu64 " %" PRIu64, root->words[1], root->words[2]);
        }
        TX_END
        SAY("not reached");
    }
    TX_ONABORT {
        SAY("outer %" PRIu64 " %" PRIu64 " error %d", root->words[1], root->words[2], pmemobj_tx_errno());
    }
    TX_FINALLY {
        SAY("finally %" PRIu64 " %" PRIu64, root->words[1], root->words[2]);
    }
    TX_END
    TX_BEGIN(pop) {
        set(1, 12);
        TX_BEGIN(pop) {
            set(2, 22);
        }
        TX_ONCOMMIT {
            SAY("inner %" PRIu64 " %" PRIu64, root->words[1], root->words[2]);
        }
        TX_END
        pmemobj_tx_abort(6);
    }
    TX_END
    SAY("%" PRIu64 " %" PRIu64, root->words[1], root->words[2]);
}

static void reported(PMEMobjpool *its_pool, enum pobj_tx_stage stage, void *argument) {
    SAY("stage %d, %s, %d: %" PRIu64, stage, (char *)argument, its_pool == pop || stage == TX_STAGE_NONE, root->words[3]);
}

static void parameters(void) {
    char name[] = "callback";
    for (volatile int aborts = 0; aborts < 2; aborts++) {
        TX_BEGIN_PARAM(pop, TX_PARAM_MUTEX, &root->mutex, TX_PARAM_CB, reported, name, TX_PARAM_RWLOCK, &root->lock, TX_PARAM_NONE) {
            set(3, 30 + (uint64_t)aborts);
            TX_BEGIN_PARAM(pop, TX_PARAM_CB, reported, name, TX_PARAM_NONE) {
                set(3, 40 + (uint64_t)aborts);
            }
            TX_END
            SAY("locked %d", pmemobj_mutex_trylock(pop, &root->mutex) != 0);
            if (aborts) pmemobj_tx_abort(3);
        }
        TX_END
        SAY("free %d", pmemobj_mutex_trylock(pop, &root->mutex) == 0);
        pmemobj_mutex_unlock(pop, &root->mutex);
        SAY("free %d", pmemobj_rwlock_trywrlock(pop, &root->lock) == 0);
        pmemobj_rwlock_unlock(pop, &root->lock);
    }
}

static void large(void) {
    const size_t sizes[] = {1, 65536, 65537, 300000, BIG - 5};
    for (volatile int n = 0; n < 5; n++) {
        for (volatile int aborts = 1; aborts >= 0; aborts--) {
            TX_BEGIN(pop) {
                pmemobj_tx_add_range(root_oid, offsetof(struct root, big) + 5, sizes[n] / 2);
                pmemobj_tx_add_range_direct(root->big + 5, sizes[n]);
                memset(root->big + 5, n + 1, sizes[n]);
                pmemobj_tx_add_range_direct(root->big, BIG / 3);
                memset(root->big, n + 40, BIG / 3);
                if (aborts) pmemobj_tx_abort(1);
            }
            TX_END
            SAY("%zu: %" PRIx64, sizes[n], sum(root->big, BIG));
        }
    }
}

static void show(int n) {
    PMEMoid oid = root->oids[n];
    const uint8_t *bytes = pmemobj_direct(oid);
    SAY("object %d: %zu bytes, type %" PRIu64 ", %" PRIx64, n, OID_IS_NULL(oid) ? 0 : pmemobj_alloc_usable_size(oid),
        OID_IS_NULL(oid) ? 0 : pmemobj_type_num(oid), OID_IS_NULL(oid) ? 0 : sum(bytes, 40));
}

static void objects_come_and_go(void) {
    for (volatile int aborts = 1; aborts >= 0; aborts--) {
        TX_BEGIN(pop) {
            pmemobj_tx_add_range_direct(root->oids, sizeof root->oids);
            root->oids[0] = pmemobj_tx_zalloc(100, TYPE_SOME);
            root->oids[1] = pmemobj_tx_strdup("forty bytes of text, which is enough....", TYPE_SOME);
            root->oids[2] = pmemobj_tx_wcsdup(L"forty bytes of text", TYPE_SOME);
            root->oids[3] = pmemobj_tx_xalloc(5000, TYPE_SOME, POBJ_XALLOC_ZERO);
            pmemobj_tx_add_range(root->oids[0], 0, 100);
            memset(pmemobj_direct(root->oids[0]), 9, 100);
            if (aborts) pmemobj_tx_abort(1);
        }
        TX_END
        for (int n = 0; n < 4; n++) show(n);
        SAY("%" PRIu64 " objects", objects());
    }
    for (volatile int aborts = 1; aborts >= 0; aborts--) {
        TX_BEGIN(pop) {
            pmemobj_tx_add_range_direct(root->oids, sizeof root->oids);
            pmemobj_tx_add_range(root->oids[0], 10, 50);
            memset((char *)pmemobj_direct(root->oids[0]) + 10, 8, 50);
            root->oids[0] = pmemobj_tx_realloc(root->oids[0], 9000, TYPE_SOME);
            root->oids[1] = pmemobj_tx_zrealloc(root->oids[1], 700, TYPE_SOME);
            pmemobj_tx_free(root->oids[2]);
            root->oids[2] = OID_NULL;
            /* The object is freed and allocated repeatedly. */
            PMEMoid oid = pmemobj_tx_alloc(64, TYPE_SOME);
            memset(pmemobj_direct(oid), 1, 64);
            pmemobj_tx_free(oid);
            root->oids[4] = pmemobj_tx_zalloc(64, TYPE_SOME);
            if (aborts) pmemobj_tx_abort(1);
        }
        TX_END
        for (int n = 0; n < 5; n++) show(n);
        SAY("%" PRIu64 " objects", objects());
    }
    for (volatile int aborts = 1; aborts >= 0; aborts--) {
        struct pobj_action actions[2];
        PMEMoid oid = pmemobj_reserve(pop, &actions[0], 200, TYPE_SOME);
        memset(pmemobj_direct(oid), 5, 200);
        pmemobj_persist(pop, pmemobj_direct(oid), 200);
        pmemobj_set_value(pop, &actions[1], &root->words[20], 77);
        TX_BEGIN(pop) {
            pmemobj_tx_publish(actions, 2);
            pmemobj_tx_add_range_direct(&root->oids[5], sizeof(PMEMoid));
            root->oids[5] = oid;
            pmemobj_tx_add_range(oid, 0, 200);
            memset(pmemobj_direct(oid), 6, 100);
            if (aborts) pmemobj_tx_abort(1);
        }
        TX_END
        show(5);
        SAY("word %" PRIu64 ", %" PRIu64 " objects", root->words[20], objects());
    }
}

static void flags(void) {
    TX_BEGIN(pop) {
        pmemobj_tx_xadd_range_direct(&root->words[4], 16, POBJ_XADD_NO_SNAPSHOT);
        root->words[4] = 41;
        pmemobj_tx_add_range_direct(&root->words[3], 32);
        root->words[3] = root->words[5] = root->words[6] = 42;
        pmemobj_tx_abort(1);
    }
    TX_END
    SAY("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, root->words[3], root->words[4], root->words[5], root->words[6]);
    TX_BEGIN(pop) {
        PMEMoid none = {1, 2};
        uint64_t outside;
        set(7, 70);
        SAY("foreign %d", pmemobj_tx_xadd_range(none, 0, 8, POBJ_XADD_NO_ABORT));
        SAY("outside %d", pmemobj_tx_xadd_range_direct(&outside, 8, POBJ_XADD_NO_ABORT));
        SAY("flags %d", pmemobj_tx_xadd_range_direct(&root->words[7], 8, POBJ_XADD_NO_ABORT | 1 << 20));
        SAY("huge %d", pmemobj_tx_xadd_range_direct(&root->words[7], (size_t)1 << 50, POBJ_XADD_NO_ABORT));
        SAY("nothing %d", pmemobj_tx_xadd_range_direct(&root->words[7], 0, POBJ_XADD_NO_ABORT));
        SAY("word %" PRIu64 " stage %d", root->words[7], pmemobj_tx_stage());
        pmemobj_tx_add_range_direct(&outside, 8);
        SAY("not reached");
    }
    TX_ONABORT {
        SAY("error %d word %" PRIu64, pmemobj_tx_errno(), root->words[7]);
    }
    TX_END
}

static pthread_barrier_t barrier;

/* All transactions are under way at once, more than a pool has logs on the device. */
static void *thread(void *number) {
    uint64_t n = (uint64_t)(uintptr_t)number;
    for (volatile uint64_t turn = 1; turn <= 3; turn++) {
        TX_BEGIN(pop) {
            set((int)(32 + n), 100 * n + turn);
            pthread_barrier_wait(&barrier);
            set((int)(32 + n), 200 * n + turn);
            if ((n + turn) % 3 == 0) pmemobj_tx_abort(1);
        }
        TX_END
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void threads(void) {
    pthread_t ids[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uintptr_t n = 0; n < THREADS; n++) pthread_create(&ids[n], NULL, thread, (void *)n);
    for (int n = 0; n < THREADS; n++) pthread_join(ids[n], NULL);
    for (int n = 0; n < THREADS; n++) SAY("%" PRIu64, root->words[32 + n]);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    for (int life = 0; life < 2; life++) {
        pop = life == 0 ? pmemobj_create(argv[1], "calls", (size_t)64 << 20, 0600) : pmemobj_open(argv[1], "calls");
        if (pop == NULL) {
            fprintf(stderr, "%s: %s\n", argv[1], pmemobj_errormsg());
            return 1;
        }
        root_oid = pmemobj_root(pop, sizeof *root);
        root = pmemobj_direct(root_oid);
        SAY("sum %" PRIx64, sum(root->big, BIG));
        without_jumps();
        nested();
        parameters();
        large();
        objects_come_and_go();
        flags();
        threads();
        pmemobj_close(pop);
    }
    printf("check %d\n", pmemobj_check(argv[1], "calls"));
    return 0;
}
